"""Members that come into a local store side by side: in once they are durable, written down once they are in."""

import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from lifecycle.core.copies import Member, payload
from lifecycle.core.model import Shape
from lifecycle.errors import StoreError
from lifecycle.stores import beneath, posix_sitting
from lifecycle.stores.open import open_intake
from lifecycle.stores.posix_intake import LocalIntake
from lifecycle.stores.posix_sitting import SMALL_BYTES, Sitting
from tests.stores.intake_contract import Parcel, assert_published, checkpoint, parcel
from tests.stores.places import memory_directory, open_descriptors
from tests.stores.test_local import LocalBench

KEY = "runs/a/step-9"
CONTENT = {f"{KEY}/{n % 3}/{n}": str(n).encode() * 99 for n in range(12)}
FOLDERS = [KEY, *(f"{KEY}/{n}" for n in range(3))]


@pytest.fixture
def bench() -> Iterator[LocalBench]:
    with memory_directory() as path:
        made = LocalBench(path / "root")
        made.path("runs/a").mkdir(parents=True)
        yield made


@pytest.fixture
def sent() -> Parcel:
    return parcel(checkpoint(KEY, Shape.DIR), CONTENT, FOLDERS)


def stage(bench: LocalBench) -> Path:
    return bench.root / ".lifecycle/incoming/c1"


def staged(bench: LocalBench) -> set[str]:
    top = stage(bench) / "payload"
    return {path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()}


def put_together(intake: LocalIntake, sent: Parcel, at_once: int = len(CONTENT)) -> list[StoreError]:
    """All at the same time: none ends before the last one has come."""
    barrier = Barrier(at_once)
    failed: list[StoreError] = []

    def put(member: Member) -> None:
        def pieces() -> Iterator[bytes]:
            barrier.wait(30)
            yield sent.content[member.key]

        try:
            intake.put("c1", member, pieces(), lambda: sha256(sent.content[member.key]).hexdigest())
        except StoreError as error:
            failed.append(error)

    members = list(payload(sent.manifest.members))
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(put, members))
    return failed


@contextmanager
def sitting(intake: LocalIntake) -> Iterator[Sitting]:
    with intake._sittings.use("c1", intake._sit) as held:
        yield held


def take(held: Sitting, sent: Parcel, key: str) -> None:
    (member,) = (m for m in sent.manifest.members if m.key == key)
    held.put(member, [sent.content[key]], lambda: sha256(sent.content[key]).hexdigest())


def noted(monkeypatch: pytest.MonkeyPatch, fail: Callable[[str, tuple[Any, ...]], None] = lambda *_: None) -> list[str]:
    """The order of what makes members durable, shows them, and writes them down."""
    log: list[str] = []

    def watch(module: Any, name: str) -> None:
        real = getattr(module, name)

        def act(*args: Any) -> Any:
            log.append(name)
            fail(name, args)
            return real(*args)

        monkeypatch.setattr(module, name, act)

    watch(beneath, "replace")
    watch(beneath, "append")
    watch(os, "fsync")
    return log


def test_those_that_come_at_once_share_a_sitting_and_all_are_in_when_the_last_one_ends(
    bench: LocalBench, sent: Parcel, monkeypatch: pytest.MonkeyPatch
):
    intake = LocalIntake(bench.store)
    intake.begin(sent.manifest)
    real = intake._sit
    opened: list[str] = []

    def sit(name: str) -> Any:
        opened.append(name)
        return real(name)

    monkeypatch.setattr(intake, "_sit", sit)
    before = open_descriptors()
    assert put_together(intake, sent) == [] and opened == ["c1"] and open_descriptors() == before
    assert staged(bench) == set(CONTENT) and not os.listdir(stage(bench) / "new")
    again = open_intake(bench.store)
    assert again.begin(sent.manifest) == {key: sha256(body).hexdigest() for key, body in CONTENT.items()}
    again.publish(sent.sealed)
    assert_published(bench, sent)


def test_each_is_durable_before_it_is_in_and_in_before_it_is_written_down(
    bench: LocalBench, sent: Parcel, monkeypatch: pytest.MonkeyPatch
):
    intake = LocalIntake(bench.store)
    intake.begin(sent.manifest)
    for key in CONTENT:  # so that no directory has to be made, which syncs as well
        (stage(bench) / "payload" / key).parent.mkdir(parents=True, exist_ok=True)
    log = noted(monkeypatch)
    with sitting(intake) as held:
        for key in CONTENT:
            take(held, sent, key)
        assert log == [] and staged(bench) == set()
    many = len(CONTENT)
    assert log == ["fsync"] * many + ["replace"] * many + ["append"]
    assert staged(bench) == set(CONTENT)


def test_neither_many_nor_a_large_one_wait_for_the_end(
    bench: LocalBench, sent: Parcel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(posix_sitting, "TOGETHER", 2)
    monkeypatch.setattr(posix_sitting, "FOLDERS_MAX", 1)
    one, two, three = list(CONTENT)[:3]
    large = f"{KEY}/large"
    sent = parcel(checkpoint(KEY, Shape.DIR), {**CONTENT, large: b"x" * (SMALL_BYTES + 1)}, FOLDERS)
    intake = LocalIntake(bench.store)
    intake.begin(sent.manifest)
    with sitting(intake) as held:
        take(held, sent, one)
        assert staged(bench) == set()
        take(held, sent, large)
        assert staged(bench) == {large}
        take(held, sent, two)
        assert staged(bench) == {large, one, two}
        take(held, sent, three)
    assert staged(bench) == {large, one, two, three}


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_one_that_cannot_be_let_in_fails_by_its_own_name_and_leaves_nothing(
    bench: LocalBench, sent: Parcel, monkeypatch: pytest.MonkeyPatch, name: str
):
    intake, bad = LocalIntake(bench.store), list(CONTENT)[4]
    intake.begin(sent.manifest)
    before = open_descriptors()
    calls = 0

    def fail(call: str, args: tuple[Any, ...]) -> None:
        nonlocal calls
        calls += call == name
        if call == name and calls == 5:
            raise OSError(errno.EIO, "injected")

    for key in CONTENT:
        (stage(bench) / "payload" / key).parent.mkdir(parents=True, exist_ok=True)
    with monkeypatch.context() as patch:
        noted(patch, fail)
        with pytest.raises(StoreError, match=f"take in '{bad}'"), sitting(intake) as held:
            for key in CONTENT:
                take(held, sent, key)
    there = set() if name == "fsync" else set(list(CONTENT)[:4])
    assert staged(bench) == there and not os.listdir(stage(bench) / "new") and open_descriptors() == before
    told = open_intake(bench.store).begin(sent.manifest)
    assert set(told) == there


def test_whoever_ends_last_is_told_of_what_another_one_left(
    bench: LocalBench, sent: Parcel, monkeypatch: pytest.MonkeyPatch
):
    intake = LocalIntake(bench.store)
    intake.begin(sent.manifest)

    def fail(call: str, args: tuple[Any, ...]) -> None:
        if call == "replace":
            raise OSError(errno.ENOSPC, "injected")

    with monkeypatch.context() as patch:
        noted(patch, fail)
        (error,) = put_together(intake, sent)
    assert error.code == "no_space"
    assert staged(bench) == set() and open_intake(bench.store).begin(sent.manifest) == {}


def test_what_fails_while_it_is_written_takes_no_other_one_along(bench: LocalBench, sent: Parcel):
    intake, (one, two, *_) = LocalIntake(bench.store), CONTENT
    intake.begin(sent.manifest)
    with ExitStack() as stack:
        held = stack.enter_context(sitting(intake))
        take(held, sent, one)
        (member,) = (m for m in sent.manifest.members if m.key == two)
        with suppress(ZeroDivisionError):
            held.put(member, (1 // 0 for _ in "x"), None)  # type: ignore[misc]  # it never yields
    assert staged(bench) == {one} and not os.listdir(stage(bench) / "new")


def test_a_root_that_leads_elsewhere_stops_what_comes_next(bench: LocalBench, sent: Parcel):
    intake = LocalIntake(bench.store)
    intake.begin(sent.manifest)
    member = next(payload(sent.manifest.members))
    with sitting(intake):
        bench.root.rename(bench.root.with_name("moved"))
        bench.root.mkdir()
        with pytest.raises(Exception, match="no longer the directory it was"):
            intake.put("c1", member, [sent.content[member.key]])
