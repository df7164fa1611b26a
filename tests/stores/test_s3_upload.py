"""Laws of how an object is cut into parts."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.errors import Changed, StoreError
from lifecycle.stores.s3_bucket import Bucket
from lifecycle.stores.s3_upload import (
    MEMORY_MAX_BYTES,
    MIB,
    PART_MAX_BYTES,
    PARTS_MAX,
    ROOM,
    Plan,
    Room,
    Upload,
    cut,
    plan_of,
    send_parts,
)

TERA = 10**12
EDGES = [8 * MIB * PARTS_MAX, PART_MAX_BYTES * PARTS_MAX, 64 * MIB, 5 * MIB, 1, 0]
sizes = st.integers(0, 50 * TERA) | st.sampled_from(EDGES).flatmap(lambda n: st.integers(max(0, n - 2), n))


@given(sizes)
def test_every_size_has_parts_that_s3_takes(size_bytes: int):
    part_bytes, parts, at_once = plan_of(size_bytes)
    assert 1 <= parts <= 10_000
    assert 5 * MIB <= part_bytes <= 5 * 1024 * MIB
    last = size_bytes - (parts - 1) * part_bytes
    assert (0 < last <= part_bytes) or size_bytes == last == 0, "they do not add up"
    assert 1 <= at_once <= 8
    assert at_once * min(part_bytes, MEMORY_MAX_BYTES) <= MEMORY_MAX_BYTES, "they do not fit into memory"


@given(sizes, sizes)
def test_larger_objects_have_no_smaller_parts(one: int, other: int):
    small, large = sorted((one, other))
    assert plan_of(small).part_bytes <= plan_of(large).part_bytes


@given(st.integers(PART_MAX_BYTES * PARTS_MAX + 1, 2**63))
def test_what_no_plan_can_hold_is_refused(size_bytes: int):
    with pytest.raises(StoreError) as told:
        plan_of(size_bytes)
    assert told.value.code == "too_large"


pieces = st.lists(st.binary(max_size=20), max_size=12)


def read_all(parts: Iterator) -> list[bytes]:
    """Each part is read only after the next was asked for: it must not be closed by then."""
    held = list(parts)
    contents = [part.read() for part in held]
    for part in held:
        part.close()
    return contents


@given(pieces, st.integers(1, 30))
def test_parts_are_the_same_bytes(given_pieces: list[bytes], part_bytes: int):
    content = b"".join(given_pieces)
    parts = read_all(cut(iter(given_pieces), len(content), part_bytes))
    assert b"".join(parts) == content
    assert all(len(part) == part_bytes for part in parts[:-1]) and all(parts)
    assert all(len(one) >= len(next_one) for one, next_one in pairwise(parts))


@given(pieces, st.integers(1, 30), st.integers(-40, 40).filter(bool))
def test_more_or_fewer_bytes_than_told_are_noticed(given_pieces: list[bytes], part_bytes: int, off: int):
    told = len(b"".join(given_pieces)) + off
    with pytest.raises(Changed):
        read_all(cut(iter(given_pieces), max(0, told), part_bytes) if told >= 0 else cut([b"x"], 0, part_bytes))


def test_parts_too_large_for_memory_wait_in_a_file(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lifecycle.stores.s3_upload.MEMORY_MAX_BYTES", 100)
    (part,) = cut((b"x" * 50 for _ in range(4)), 200, 1000)
    assert part._rolled  # type: ignore[attr-defined]  # no other way to tell
    assert part.read() == b"x" * 200
    part.close()


def test_room_is_waited_for_and_given_back():
    """Eight at once that want half of it each are never more than two."""
    room, most = Room(10), []

    def use(_number: int) -> None:
        room.take(5)
        most.append(room.used_bytes)
        room.give(5)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(200)))
    assert max(most) <= 10 and room.used_bytes == 0


def test_who_wants_more_than_all_room_gets_it_alone():
    room = Room(10)
    room.take(50)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(room.take, 1)
        assert not waiting.done()
        room.give(50)
        waiting.result()
    assert room.used_bytes == 1


@pytest.mark.parametrize("fails", ["pieces", "server", "nothing"])
def test_an_upload_gives_back_all_room(monkeypatch: pytest.MonkeyPatch, fails: str):
    """However it ends."""
    monkeypatch.setattr("lifecycle.stores.s3_upload.plan_of", lambda _: Plan(10, 5, 2))

    class Client:
        def upload_part(self, **_: object) -> dict[str, str]:
            if fails == "server":
                raise ConnectionResetError("gone")
            return {"ETag": '"e"'}

    def pieces() -> Iterator[bytes]:
        yield b"x" * 25
        if fails == "pieces":
            raise Changed("it grew")
        yield b"x" * 25

    bucket: Any = Bucket(Client(), "b", "s")  # type: ignore[arg-type]  # it is asked for nothing else
    with suppress(StoreError):
        assert len(send_parts(bucket, Upload("k", "u"), pieces(), 50)) == 5 and fails == "nothing"
    assert ROOM.used_bytes == 0
