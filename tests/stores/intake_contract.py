"""What every store promises of copies: what it tells of a unit, how it takes one in, and what a cut leaves of it.

An adapter's test module subclasses `IntakeContract` and gives one fixture, `bench`, with an empty store; its `cut`
must reach every change that the intake makes.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import pytest

from lifecycle.core.copies import Contents, CopyManifest, Directory, Member, Spare, in_order, payload
from lifecycle.core.listing import Flavour, split
from lifecycle.core.model import Checkpoint, Evidence, Shape
from lifecycle.errors import Changed, LifecycleError, NotFound, Occupied, Refused, StoreError
from lifecycle.ports import Intake, Records, Renews, Store, Target
from lifecycle.stores.local import LocalStore
from lifecycle.stores.open import open_intake
from tests.stores.contract import (
    NOW,
    ODD_NAMES,
    PLAN,
    T0,
    UNITS,
    Bench,
    Shown,
    every_shape,
    fill,
    shown,
    unit_keys,
)

MIB = 1024 * 1024
CUTS_MAX = 400


class IntakeBench(Bench, Protocol):
    """A bench whose store takes copies in."""

    @property
    def keeps_modes(self) -> bool:
        """Whether `contents` tells permission bits and directories, and a copy comes with them."""
        ...

    @property
    def keeps_links(self) -> bool:
        """Whether symbolic and hard links stand in the store itself; else in the manifest only."""
        ...


@dataclass(frozen=True)
class Parcel:
    """A unit that comes from elsewhere: what it holds, and what its manifest says of it."""

    manifest: CopyManifest
    content: dict[str, bytes]

    @property
    def key(self) -> str:
        return self.manifest.key

    @property
    def target(self) -> Target:
        return target_of(self.manifest)

    @property
    def sealed(self) -> CopyManifest:
        return sealed(self.manifest, self.content)

    def named(self, copy_id: str) -> "Parcel":
        return Parcel(replace(self.manifest, copy_id=copy_id), self.content)


def target_of(manifest: CopyManifest) -> Target:
    return Target(manifest.key, manifest.checkpoint.shape, manifest.keys)


def sealed(manifest: CopyManifest, content: dict[str, bytes]) -> CopyManifest:
    """The manifest with every checksum in it."""
    members = [
        m._replace(sha256=sha256(content[m.key]).hexdigest()) if m.key in content else m for m in manifest.members
    ]
    return replace(manifest, members=tuple(members))


def checkpoint(key: str, shape: Shape, members: tuple[str, ...] = (), proof: str | None = None) -> Checkpoint:
    return Checkpoint(
        store="home",
        run=split(key)[0],
        key=key,
        name=split(key)[1],
        layout="test",
        shape=shape,
        evidence=Evidence.PROVEN,
        fingerprint="as seen at home",
        members=members,
        proof=proof,
    )


def manifest_of(unit: Checkpoint, contents: Contents, copy_id: str = "c1", place: str = "cold") -> CopyManifest:
    return CopyManifest(copy_id, place, unit, contents.members, contents.directories, NOW, PLAN)


def parcel(
    unit: Checkpoint, content: dict[str, bytes], directories: Iterable[str] = (), links: Iterable[Member] = ()
) -> Parcel:
    """Every file and directory with a time and a mode of its own."""
    members = [
        Member(key, len(body), T0 + i, 0o640 if i % 2 else 0o604)
        for i, (key, body) in enumerate(sorted(content.items()))
    ]
    folders = [Directory(key, T0 - 10**12 - i, 0o751 if i % 2 else 0o715) for i, key in enumerate(sorted(directories))]
    everything = tuple(sorted((*members, *links), key=lambda member: member.key))
    return Parcel(manifest_of(unit, Contents(everything, tuple(folders))), content)


def parcel_of(shape: Shape, odd_names: Iterable[str] = ODD_NAMES) -> Parcel:
    """A unit whose parents exist in the tree of `fill`, with odd names, an empty file and an empty directory."""
    match shape:
        case Shape.DIR:
            key = "runs/a/step-9"
            odd = {f"{key}/odd/{name}/{name}": name.encode() for name in odd_names}
            deep = {f"{key}/w/0.bin": b"0" * 3000, f"{key}/w/a/b/c/d.txt": b"deep", f"{key}/empty": b""}
            content = {**odd, **deep, f"{key}/DONE": b"9"}
            inside = (
                "",
                "/hollow",
                "/odd",
                "/w",
                "/w/a",
                "/w/a/b",
                "/w/a/b/c",
                *(f"/odd/{name}" for name in ODD_NAMES),
            )
            return parcel(checkpoint(key, shape, (), f"{key}/DONE"), content, [key + path for path in inside])
        case Shape.FILE:
            key = "runs/b/step=9 ä+\n.ckpt"
            return parcel(checkpoint(key, shape, (key,)), {key: b"y" * 90})
        case Shape.GROUP:
            names = ("m-9.index", "m-9.data", "m-9 \t?.meta", "deep/m-9.meta", "other/new\nline/m-9", "m-9.empty")
            keys = tuple(f"runs/c/{name}" for name in names)
            content = {key: key.encode() * 5 for key in keys[:-1]} | {keys[-1]: b""}
            return parcel(checkpoint("runs/c/m-9", shape, keys, keys[0]), content)


def plain_parcel(shape: Shape) -> Parcel:
    """Fewer files, for what is done once for each change."""
    return parcel_of(shape, ())


def linked_parcel() -> Parcel:
    """A directory with links inside of it, one of them to nowhere, and a file with three names."""
    key = "runs/a/step-9"
    content = {f"{key}/DONE": b"", f"{key}/w/0.bin": b"0123456789"}
    links = [
        Member(f"{key}/best", 0, T0 + 50, link="w/0.bin"),
        Member(f"{key}/w/nowhere", 0, T0 + 51, link="../../../not there \n"),
    ]
    first = next(m for m in parcel(checkpoint(key, Shape.DIR), content).manifest.members if m.key.endswith("0.bin"))
    same = [first._replace(key=f"{key}/{name}", same=first.key) for name in ("w/1.bin", "z/2.bin")]
    unit = checkpoint(key, Shape.DIR, (), f"{key}/DONE")
    return parcel(unit, content, [key, f"{key}/w", f"{key}/z"], [*links, *same])


def in_pieces(content: bytes, count: int = 3) -> Iterator[bytes]:
    step = len(content) // count + 1
    return (content[at : at + step] for at in range(0, len(content), step))


def put(intake: Intake, sent: Parcel, member: Member) -> None:
    content = sent.content[member.key]
    intake.put(sent.manifest.copy_id, member, in_pieces(content), sha256(content).hexdigest)


def lay(intake: Intake, sent: Parcel, *, everything: bool = False) -> list[str]:
    """All but the publishing, in the order that the port asks for; keys of what had to be sent."""
    told = intake.begin(sent.manifest)
    had = {} if everything else told
    assert all(digest == sha256(sent.content[key]).hexdigest() for key, digest in had.items())
    missing = [member for member in payload(in_order(sent.manifest)) if member.key not in had]
    for member in missing:
        put(intake, sent, member)
    return [member.key for member in missing]


def carry(source: Store, intake: Intake, manifest: CopyManifest) -> CopyManifest:
    """Copy a unit as an engine does: read once, read back, compare, publish; the manifest as published."""
    intake.begin(manifest)
    digests: dict[str, str] = {}
    for member in payload(in_order(manifest)):
        digest = sha256()

        def pieces(member: Member = member, digest=digest) -> Iterator[bytes]:
            for piece in source.stream(member.key, member.size_bytes):
                digest.update(piece)
                yield piece

        intake.put(manifest.copy_id, member, pieces())
        back = sha256()
        for piece in intake.staged(manifest.copy_id, member):
            back.update(piece)
        assert back.hexdigest() == digest.hexdigest()
        digests[member.key] = digest.hexdigest()
    members = tuple(m._replace(sha256=digests.get(m.key, "")) for m in manifest.members)
    whole = replace(manifest, members=members)
    assert whole.sealed()
    intake.publish(whole)
    return whole


def clear(bench: IntakeBench, sent: Parcel) -> None:
    """Take a published copy away again behind the store's back, its manifest through it."""
    for key in sent.manifest.keys or (sent.key,):
        bench.remove(key)
    open_intake(bench.store).forget(sent.manifest.copy_id)
    assert not standing(bench, sent) and dict(bench.store.copies()) == {}


def standing(bench: IntakeBench, sent: Parcel) -> dict[str, bytes]:
    """What of a copy stands at its keys."""
    return {key: body for key, (body, _) in shown(bench).files.items() if key in sent.content}


def of_others(view: Shown, sent: Parcel) -> dict[str, tuple[bytes, int]]:
    return {key: file for key, file in view.files.items() if key not in sent.content}


def assert_published(bench: IntakeBench, sent: Parcel) -> None:
    """The copy is whole and its manifest is the only one."""
    store = bench.reopen()[0]
    assert standing(bench, sent) == sent.content
    copies = dict(store.copies())
    assert set(copies) == {sent.manifest.copy_id} and dict(store.incoming()) == {}
    assert CopyManifest.decode(copies[sent.manifest.copy_id], sent.manifest.copy_id) == sent.sealed


def assert_nothing_of(bench: IntakeBench, sent: Parcel) -> None:
    store = bench.reopen()[0]
    assert not standing(bench, sent) and not {*store.copies(), *store.incoming()}


def as_told(bench: IntakeBench, sent: Parcel) -> Contents:
    """What `contents` must tell of a published parcel, as far as the store keeps it."""
    members = sent.manifest.members if bench.keeps_links else tuple(payload(sent.manifest.members))
    if not bench.keeps_modes:
        members = tuple(m._replace(mode=None) for m in members)
    return Contents(members, sent.manifest.directories if bench.keeps_modes else ())


def _times(bench: IntakeBench, key: str) -> dict[str, int]:
    """When each directory of a unit was changed."""
    return {d.key: d.mtime_ns for d in bench.store.contents(Target(key, Shape.DIR, ())).directories}


def timeless(contents: Contents) -> Contents:
    return Contents(
        tuple(m._replace(mtime_ns=0) for m in contents.members),
        tuple(d._replace(mtime_ns=0) for d in contents.directories),
    )


class ContentsContract:
    """What a store tells of a unit that is to be copied."""

    @every_shape
    def test_contents_name_every_file_once(self, bench: IntakeBench, shape: Shape):
        fill(bench)
        key, members, _ = UNITS[shape]
        told = bench.store.contents(Target(key, shape, members))
        assert [m.key for m in told.members] == sorted(unit_keys(shape))
        view = shown(bench).files
        for member in told.members:
            assert member.size_bytes == len(view[member.key][0])
            assert (member.sha256, member.link, member.same) == ("", None, None)
            assert (member.mode is not None) is bench.keeps_modes
            if bench.keeps_times:
                assert member.mtime_ns == view[member.key][1]
        folders = [key, f"{key}/w"] if shape is Shape.DIR and bench.keeps_modes else []
        assert [d.key for d in told.directories] == folders

    @every_shape
    def test_contents_where_nothing_is(self, bench: IntakeBench, shape: Shape):
        fill(bench)
        key, members, _ = UNITS[shape]
        for gone in members or (key,):
            bench.remove(gone)
        with pytest.raises(NotFound):
            bench.store.contents(Target(key, shape, members))

    def test_contents_of_a_group_that_lacks_a_member(self, bench: IntakeBench):
        fill(bench)
        key, members, _ = UNITS[Shape.GROUP]
        bench.remove(members[1])
        with pytest.raises((Changed, NotFound)):
            bench.store.contents(Target(key, Shape.GROUP, members))

    @pytest.mark.parametrize("size_bytes", [0, 1, 10, 9 * MIB + 5])
    def test_a_stream_is_the_whole_file_in_pieces(self, bench: IntakeBench, size_bytes: int):
        content = bytes(range(251)) * (size_bytes // 251 + 1)
        bench.put("r/file", content[:size_bytes])
        digest, longest = sha256(), 0
        for piece in bench.store.stream("r/file", size_bytes):
            assert piece
            digest.update(piece)
            longest = max(longest, len(piece))
        assert digest.hexdigest() == sha256(content[:size_bytes]).hexdigest()
        assert longest <= 8 * MIB

    @pytest.mark.parametrize("said", [0, 9, 11])
    def test_a_stream_of_a_file_that_grew_or_shrank(self, bench: IntakeBench, said: int):
        bench.put("r/file", b"0123456789")
        with pytest.raises(Changed):
            list(bench.store.stream("r/file", said))
        bench.put("r/file", b"")
        with pytest.raises(Changed):
            list(bench.store.stream("r/file", 10))

    def test_a_stream_of_nothing(self, bench: IntakeBench):
        fill(bench)
        for key in ("nothing", "runs/a"):
            with pytest.raises((NotFound, Changed)):
                list(bench.store.stream(key, 0))

    def test_a_store_without_copies_says_so(self, bench: IntakeBench):
        fill(bench)
        assert dict(bench.store.copies()) == {} and dict(bench.store.incoming()) == {}


class WayContract:
    """The way of a copy, undisturbed."""

    @every_shape
    def test_the_whole_way(self, bench: IntakeBench, shape: Shape):
        fill(bench)
        before, sent, intake = shown(bench), parcel_of(shape), open_intake(bench.store)
        lay(intake, sent)
        for member in payload(sent.manifest.members):
            assert b"".join(intake.staged("c1", member)) == sent.content[member.key]
        incoming = dict(bench.reopen()[0].incoming())
        assert {k: CopyManifest.decode(v, k) for k, v in incoming.items()} == {"c1": sent.manifest}
        assert dict(bench.store.copies()) == {}
        if bench.store.flavour is Flavour.POSIX:
            assert shown(bench) == before, "a copy under way shows"
        intake.publish(sent.sealed)
        assert_published(bench, sent)
        after = shown(bench)
        assert of_others(after, sent) == before.files
        assert {k: v for k, v in after.dirs.items() if k in before.dirs} == before.dirs, "a parent got a new time"
        told = bench.store.contents(sent.target)
        if bench.keeps_times:
            assert told == as_told(bench, sent)
        else:
            assert timeless(told) == timeless(as_told(bench, sent))

    def test_into_an_empty_store(self, bench: IntakeBench):
        for shape, copy_id in zip(Shape, ("c1", "c2", "c3"), strict=True):
            sent = parcel_of(shape).named(copy_id)
            intake = open_intake(bench.store)
            lay(intake, sent)
            intake.publish(sent.sealed)
            assert standing(bench, sent) == sent.content
        assert set(bench.store.copies()) == {"c1", "c2", "c3"} and not bench.store.incoming()

    def test_links_come_along(self, bench: IntakeBench):
        fill(bench)
        sent, intake = linked_parcel(), open_intake(bench.store)
        lay(intake, sent)
        intake.publish(sent.sealed)
        told = bench.store.contents(sent.target)
        if bench.keeps_times:
            assert told == as_told(bench, sent)
        else:
            assert timeless(told) == timeless(as_told(bench, sent))
        held = bench.store.copies()["c1"]
        assert CopyManifest.decode(held, "c1") == sent.sealed, "the manifest tells of every link, stored or not"

    def test_a_unit_from_where_no_modes_are_known(self, bench: IntakeBench):
        sent = parcel_of(Shape.DIR)
        members = tuple(m._replace(mode=None) for m in sent.manifest.members)
        sent = Parcel(replace(sent.manifest, members=members, directories=()), sent.content)
        intake = open_intake(bench.store)
        lay(intake, sent)
        intake.publish(sent.sealed)
        assert_published(bench, sent)
        if bench.keeps_times:
            times = {key: mtime_ns for key, (_, mtime_ns) in shown(bench).files.items()}
            assert times == {m.key: m.mtime_ns for m in sent.manifest.members}

    @pytest.mark.parametrize("size_bytes", [0, 1, 9 * MIB + 5])
    def test_a_single_file_of_any_size(self, bench: IntakeBench, size_bytes: int):
        content = (bytes(range(251)) * (size_bytes // 251 + 1))[:size_bytes]
        sent, intake = parcel(checkpoint("r/one", Shape.FILE, ("r/one",)), {"r/one": content}), open_intake(bench.store)
        intake.begin(sent.manifest)
        (member,) = sent.manifest.members
        intake.put("c1", member, (content[at : at + 100_000] for at in range(0, size_bytes, 100_000)))
        back = list(intake.staged("c1", member))
        assert b"".join(back) == content and max(map(len, back), default=0) <= 8 * MIB
        intake.publish(sent.sealed)
        assert b"".join(bench.store.stream("r/one", size_bytes)) == content

    def test_several_at_once(self, bench: IntakeBench):
        sent, intake = parcel_of(Shape.DIR), open_intake(bench.store)
        intake.begin(sent.manifest)
        *first, proof = payload(in_order(sent.manifest))
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda m: intake.put("c1", m, in_pieces(sent.content[m.key])), first))
        intake.put("c1", proof, in_pieces(sent.content[proof.key]))
        intake.publish(sent.sealed)
        assert_published(bench, sent)

    @every_shape
    def test_there_and_back_again(self, bench: IntakeBench, shape: Shape, tmp_path: Path):
        """What is home again is what it was: names, sizes, contents, times, modes and links."""
        home, again = (LocalStore("home", tmp_path / name) for name in ("home", "again"))
        sent = linked_parcel() if shape is Shape.DIR else parcel_of(shape)
        for store in (home, again):
            Path(store.path).mkdir()
        intake = open_intake(home)
        lay(intake, sent)
        intake.publish(sent.sealed)
        told = home.contents(sent.target)
        out = carry(home, open_intake(bench.store), manifest_of(sent.manifest.checkpoint, told, "out"))
        held = CopyManifest.decode(bench.store.copies()["out"], "out")
        assert held == out and held.content == sent.sealed.content
        bare = Contents(tuple(m._replace(sha256="") for m in held.members), held.directories)
        back = carry(bench.store, open_intake(again), manifest_of(held.checkpoint, bare, "back", "home"))
        assert back.members == held.members and back.content == sent.sealed.content
        assert again.contents(sent.target) == told == Contents(sent.manifest.members, sent.manifest.directories)
        for member in payload(told.members):
            assert b"".join(again.stream(member.key, member.size_bytes)) == sent.content[member.key]


class AgainContract:
    """Doing it again, giving up, and what stands in the way."""

    @every_shape
    def test_done_again_it_changes_nothing(self, bench: IntakeBench, shape: Shape):
        sent, intake = parcel_of(shape), open_intake(bench.store)
        lay(intake, sent)
        intake.publish(sent.sealed)
        before = shown(bench)
        intake.publish(sent.sealed)
        open_intake(bench.reopen()[0]).publish(sent.sealed)
        assert_published(bench, sent)
        lay(intake, sent)
        intake.publish(sent.sealed)
        assert_published(bench, sent)
        assert shown(bench) == before

    @every_shape
    def test_a_try_that_comes_too_late_and_fails_changes_nothing(self, bench: IntakeBench, shape: Shape):
        sent, intake = parcel_of(shape), open_intake(bench.store)
        lay(intake, sent)
        intake.publish(sent.sealed)
        before = shown(bench)

        def gone() -> Iterator[bytes]:
            raise Changed("the source is gone by now")
            yield b""

        intake.begin(sent.manifest)
        for member in payload(sent.manifest.members):
            with pytest.raises(Changed):
                intake.put("c1", member, gone())
        intake.abandon("c1")
        assert_published(bench, sent)
        assert shown(bench) == before

    def test_what_an_earlier_try_left_is_replaced(self, bench: IntakeBench):
        sent, intake = parcel_of(Shape.GROUP), open_intake(bench.store)
        lay(intake, sent)
        other = Parcel(sent.manifest, {key: body[::-1] for key, body in sent.content.items()})
        lay(open_intake(bench.reopen()[0]), other, everything=True)
        for member in payload(sent.manifest.members):
            assert b"".join(intake.staged("c1", member)) == other.content[member.key]
        intake.publish(other.sealed)
        assert_published(bench, other)

    @every_shape
    def test_what_is_in_is_not_sent_again(self, bench: IntakeBench, shape: Shape):
        """By another process, whatever became of the time and the plan."""
        fill(bench)
        for k in {1, len(plain_parcel(shape).content)}:
            sent = plain_parcel(shape).named(f"c{k}")
            keys = [member.key for member in payload(in_order(sent.manifest))]
            intake = open_intake(bench.store)
            intake.begin(sent.manifest)
            for member in list(payload(in_order(sent.manifest)))[:k]:
                put(intake, sent, member)
            later = Parcel(replace(sent.manifest, copied_at_ns=NOW + 1, plan="another"), sent.content)
            assert lay(open_intake(bench.reopen()[0]), later) == keys[k:]
            open_intake(bench.reopen()[0]).publish(later.sealed)
            assert_published(bench, later)
            clear(bench, sent)

    @every_shape
    def test_what_is_in_of_another_source_is_sent_again(self, bench: IntakeBench, shape: Shape):
        sent = plain_parcel(shape)
        first = sent.manifest.members[0]
        unit = replace(sent.manifest.checkpoint, fingerprint="as it was later")
        for changed in (
            replace(sent.manifest, checkpoint=unit),
            replace(sent.manifest, members=(first._replace(mtime_ns=first.mtime_ns + 1), *sent.manifest.members[1:])),
        ):
            lay(open_intake(bench.store), sent)
            later = Parcel(changed, {key: body[::-1] for key, body in sent.content.items()})
            assert set(lay(open_intake(bench.reopen()[0]), later)) == set(sent.content)
            open_intake(bench.reopen()[0]).publish(later.sealed)
            assert_published(bench, later)
            clear(bench, later)

    def test_of_what_is_published_nothing_is_told(self, bench: IntakeBench):
        sent, intake = parcel_of(Shape.FILE), open_intake(bench.store)
        lay(intake, sent)
        intake.publish(sent.sealed)
        assert intake.begin(sent.manifest) == {}
        intake.abandon("c1")
        assert_published(bench, sent)

    def test_of_what_was_given_up_nothing_is_told(self, bench: IntakeBench):
        sent, intake = parcel_of(Shape.GROUP), open_intake(bench.store)
        lay(intake, sent)
        intake.abandon("c1")
        assert intake.begin(sent.manifest) == {}

    @every_shape
    def test_abandon(self, bench: IntakeBench, shape: Shape):
        fill(bench)
        before, sent, intake = shown(bench), parcel_of(shape), open_intake(bench.store)
        intake.abandon("c1")
        lay(intake, sent)
        open_intake(bench.reopen()[0]).abandon("c1")
        intake.abandon("c1")
        assert_nothing_of(bench, sent)
        assert shown(bench) == before
        with pytest.raises(StoreError):
            list(intake.staged("c1", sent.manifest.members[0]))
        with pytest.raises(StoreError):
            intake.publish(sent.sealed)
        assert shown(bench) == before

    @every_shape
    def test_abandon_never_touches_what_was_published(self, bench: IntakeBench, shape: Shape):
        sent, other, intake = parcel_of(shape), parcel_of(shape).named("c2"), open_intake(bench.store)
        lay(intake, sent)
        intake.publish(sent.sealed)
        intake.abandon("c1")
        intake.abandon("c2")
        assert_published(bench, sent)
        with pytest.raises(Occupied):
            intake.begin(other.manifest)
        intake.abandon("c2")
        assert_published(bench, sent)

    def test_abandon_takes_one_copy_only(self, bench: IntakeBench):
        intake = open_intake(bench.store)
        one, two = parcel_of(Shape.DIR), parcel_of(Shape.FILE).named("c10")
        for sent in (one, two):
            lay(intake, sent)
        intake.abandon("c1")
        assert set(bench.store.incoming()) == {"c10"}
        intake.publish(two.sealed)
        assert_published(bench, two)

    def test_forget(self, bench: IntakeBench):
        intake, (one, two) = open_intake(bench.store), (parcel_of(Shape.DIR), parcel_of(Shape.FILE).named("c10"))
        intake.forget("c1")
        for sent in (one, two):
            lay(intake, sent)
            intake.publish(sent.sealed)
        bench.remove(one.key)
        before = shown(bench)
        for _ in range(2):
            intake.forget("c1")
            assert set(bench.reopen()[0].copies()) == {"c10"}
        assert shown(bench) == before

    def test_a_published_copy_can_be_told_of_anew(self, bench: IntakeBench):
        """Its files stay as they are; what is not that copy, or not published, is not told of."""
        intake, sent = open_intake(bench.store), parcel_of(Shape.DIR)
        assert isinstance(intake, Renews)
        later = replace(sent.sealed, checkpoint=replace(sent.manifest.checkpoint, saved_at_ns=NOW + 1))
        with pytest.raises(NotFound):
            intake.renew(later)
        lay(intake, sent)
        with pytest.raises(NotFound):
            intake.renew(later)
        intake.publish(sent.sealed)
        before = shown(bench)
        first = later.members[0]._replace(sha256="0" * 64)
        for wrong in (replace(later, members=(first, *later.members[1:])), replace(later, part="weights")):
            with pytest.raises(Occupied):
                intake.renew(wrong)
        with pytest.raises(Refused):
            intake.renew(replace(later, members=later.bare))
        assert CopyManifest.decode(bench.store.copies()["c1"], "c1") == sent.sealed
        for _ in range(2):
            intake.renew(later)
            assert CopyManifest.decode(bench.reopen()[0].copies()["c1"], "c1") == later
        assert shown(bench) == before and bench.store.incoming() == {}

    def test_a_record_is_kept_and_gives_times_back(self, bench: IntakeBench):
        """Of what stands there; where others have been at work, their time stays."""
        intake = open_intake(bench.store)
        if not isinstance(intake, Records) or bench.store.flavour is Flavour.OBJECT:
            pytest.skip("it makes nothing thin in place")
        fill(bench)
        key, _, _ = UNITS[Shape.DIR]
        contents = bench.store.contents(Target(key, Shape.DIR, ()))
        told = replace(checkpoint(key, Shape.DIR), store=bench.store.name)
        made = manifest_of(told, contents, place=bench.store.name)
        gone = made.members[0]
        record = replace(
            made, members=made.members[1:], part="weights", spare=(Spare(gone.key, gone.size_bytes, "optimizer"),)
        )
        before = shown(bench)
        for _ in range(2):
            intake.record(record)
        assert {i: CopyManifest.decode(c, i) for i, c in bench.store.copies().items()} == {"c1": record}
        assert shown(bench) == before and bench.store.incoming() == {}
        bench.put(f"{key}/new", b"new")
        bench.remove(f"{key}/new")
        bench.remove(gone.key)
        times = {d.key: d.mtime_ns for d in contents.directories}
        assert _times(bench, key) != times
        intake.mend("c1")
        intake.mend("c2")
        assert _times(bench, key) == times
        bench.put(f"{key}/new", b"new")
        intake.mend("c1")
        assert _times(bench, key)[key] != times[key]
        bench.remove(key)
        intake.mend("c1")
        intake.forget("c1")
        assert not bench.store.copies()

    @every_shape
    def test_what_stands_there_already_is_left_alone(self, bench: IntakeBench, shape: Shape):
        fill(bench)
        sent, intake = parcel_of(shape), open_intake(bench.store)
        for key in (min(sent.content), max(sent.content)):
            bench.put(key, b"somebody else's")
            before = shown(bench)
            with pytest.raises(Occupied):
                intake.begin(sent.manifest)
            assert shown(bench) == before
            intake.abandon("c1")
            assert shown(bench) == before and not bench.store.incoming()
            bench.remove(key if sent.manifest.keys else sent.key)

    def test_something_else_below_the_key_is_in_the_way_too(self, bench: IntakeBench):
        sent, intake = parcel_of(Shape.DIR), open_intake(bench.store)
        bench.put(f"{sent.key}/of another checkpoint", b"x")
        with pytest.raises(Occupied):
            intake.begin(sent.manifest)
        assert set(shown(bench).files) == {f"{sent.key}/of another checkpoint"}

    def test_a_key_that_only_begins_alike_is_not_in_the_way(self, bench: IntakeBench):
        sent, intake = parcel_of(Shape.DIR), open_intake(bench.store)
        bench.put(f"{sent.key}0/DONE", b"x")
        lay(intake, sent)
        intake.publish(sent.sealed)
        assert_published(bench, sent)

    @every_shape
    @pytest.mark.parametrize("which", [min, max])
    def test_what_has_come_to_stand_there_meanwhile_is_left_alone(self, bench: IntakeBench, shape: Shape, which):
        fill(bench)
        sent, intake, key = parcel_of(shape), open_intake(bench.store), which(parcel_of(shape).content)
        lay(intake, sent)
        bench.put(key, b"somebody else's")
        before = shown(bench)
        for _ in range(2):
            with pytest.raises(Occupied):
                intake.publish(sent.sealed)
            assert shown(bench) == before
            assert dict(bench.store.copies()) == {} and set(bench.store.incoming()) == {"c1"}
        open_intake(bench.reopen()[0]).abandon("c1")
        after = shown(bench)
        assert after.files[key][0] == b"somebody else's" and not {*bench.store.copies(), *bench.store.incoming()}
        assert set(standing(bench, sent)) == {key}

    @pytest.mark.parametrize("copy_id", ["", ".", "..", "../c", "a/b", "nul\0"])
    def test_a_copy_name_cannot_climb(self, bench: IntakeBench, copy_id: str):
        sent, intake = parcel_of(Shape.FILE).named(copy_id), open_intake(bench.store)
        (member,) = sent.manifest.members
        acts = [
            lambda: intake.begin(sent.manifest),
            lambda: intake.put(copy_id, member, [b"x"]),
            lambda: list(intake.staged(copy_id, member)),
            lambda: intake.publish(sent.sealed),
            lambda: intake.abandon(copy_id),
            lambda: intake.forget(copy_id),
        ]
        for act in acts:
            with pytest.raises(LifecycleError):
                act()

    def test_without_a_beginning_there_is_no_way(self, bench: IntakeBench):
        fill(bench)
        before, sent, intake = shown(bench), parcel_of(Shape.FILE), open_intake(bench.store)
        (member,) = sent.manifest.members
        for act in (
            lambda: intake.put("c1", member, [sent.content[member.key]]),
            lambda: list(intake.staged("c1", member)),
            lambda: intake.publish(sent.sealed),
        ):
            with pytest.raises(StoreError):
                act()
        assert shown(bench) == before and not bench.store.copies()

    @every_shape
    def test_a_copy_that_lacks_a_file_is_not_published(self, bench: IntakeBench, shape: Shape):
        fill(bench)
        before, sent, intake = shown(bench), parcel_of(shape), open_intake(bench.store)
        intake.begin(sent.manifest)
        for member in list(payload(in_order(sent.manifest)))[1:]:
            intake.put("c1", member, in_pieces(sent.content[member.key]))
        with pytest.raises(StoreError):
            intake.publish(sent.sealed)
        assert not bench.store.copies()
        intake.abandon("c1")
        assert shown(bench) == before

    @every_shape
    def test_a_manifest_without_checksums_is_not_published(self, bench: IntakeBench, shape: Shape):
        sent, intake = parcel_of(shape), open_intake(bench.store)
        lay(intake, sent)
        with pytest.raises(LifecycleError):
            intake.publish(sent.manifest)
        assert not bench.store.copies()


class CutContract:
    """Whatever is cut short can be done again or given up."""

    def test_pieces_that_fail_leave_nothing(self, bench: IntakeBench):
        sent, intake = parcel_of(Shape.FILE), open_intake(bench.store)
        intake.begin(sent.manifest)
        (member,) = sent.manifest.members

        def broken() -> Iterator[bytes]:
            yield b"y" * 30
            raise Changed("it grew meanwhile")

        with pytest.raises(Changed, match="it grew meanwhile"):
            intake.put("c1", member, broken())
        with pytest.raises(StoreError):
            list(intake.staged("c1", member))
        for wrong in (b"y" * 89, b"y" * 91, b""):
            with pytest.raises(Changed):
                intake.put("c1", member, in_pieces(wrong))
            with pytest.raises(StoreError):
                list(intake.staged("c1", member))
        intake.put("c1", member, in_pieces(sent.content[member.key]))
        intake.publish(sent.sealed)
        assert_published(bench, sent)

    @pytest.mark.parametrize("finish", ["redo", "abandon"])
    @every_shape
    def test_cut_short_anywhere_before_the_publishing(self, bench: IntakeBench, shape: Shape, finish: str):
        fill(bench)
        before = shown(bench)
        for k in range(1, CUTS_MAX):
            sent = plain_parcel(shape).named(f"c{k}")
            with bench.cut(k) as fired:
                try:
                    lay(open_intake(bench.store), sent)
                except StoreError:
                    assert fired(), "it failed without a fault"
            assert not bench.store.copies()
            if bench.store.flavour is Flavour.POSIX:
                assert shown(bench).files == before.files, "a copy under way shows"
            intake = open_intake(bench.reopen()[0])
            if finish == "redo":
                lay(intake, sent)
                intake.publish(sent.sealed)
                assert_published(bench, sent)
                clear(bench, sent)
            else:
                intake.abandon(sent.manifest.copy_id)
                assert_nothing_of(bench, sent)
                assert shown(bench).files == before.files
            if not fired():
                return
        pytest.fail("the fault never stopped firing")

    @every_shape
    def test_a_put_cut_short_leaves_all_or_nothing(self, bench: IntakeBench, shape: Shape):
        sent, intake = plain_parcel(shape), open_intake(bench.store)
        for k in range(1, CUTS_MAX):
            intake.begin(sent.manifest)
            member = in_order(sent.manifest)[0]
            content = sent.content[member.key]
            with bench.cut(k) as fired:
                try:
                    intake.put("c1", member, in_pieces(content))
                except StoreError:
                    assert fired(), "it failed without a fault"
            try:
                left = b"".join(open_intake(bench.reopen()[0]).staged("c1", member))
            except NotFound:
                assert fired()
            else:
                assert left == content
            intake.put("c1", member, in_pieces(content))
            assert b"".join(intake.staged("c1", member)) == content
            intake.abandon("c1")
            if not fired():
                return
        pytest.fail("the fault never stopped firing")

    @pytest.mark.parametrize("finish", ["publish", "redo", "abandon"])
    @pytest.mark.parametrize("sent", [*map(plain_parcel, Shape), linked_parcel()], ids=[*Shape, "links"])
    def test_a_publishing_cut_short_anywhere(self, bench: IntakeBench, sent: Parcel, finish: str):
        """Another process finishes it from what `incoming` says, begins anew, or gives it up."""
        fill(bench)
        before, proof = shown(bench), sent.manifest.checkpoint.proof
        for k in range(1, CUTS_MAX):
            sent = sent.named(copy_id := f"c{k}")
            lay(open_intake(bench.store), sent)
            with bench.cut(k) as fired:
                try:
                    open_intake(bench.store).publish(sent.sealed)
                except StoreError:
                    assert fired(), "it failed without a fault"
            store, left = bench.reopen()[0], standing(bench, sent)
            assert proof not in left or left == sent.content, "half of it is there, and looks complete"
            assert copy_id in {*store.incoming(), *store.copies()}, "nobody knows of it any more"
            assert left == sent.content or not store.copies(), "said to be published, and is not"
            published = copy_id in store.copies()
            self.finish(store, sent, finish)
            if finish != "abandon" or published:
                assert_published(bench, sent)
                if bench.keeps_times:
                    assert store.contents(sent.target) == as_told(bench, sent)
                clear(bench, sent)
            else:
                assert_nothing_of(bench, sent)
            assert shown(bench).files == before.files
            if not fired():
                return
        pytest.fail("the fault never stopped firing")

    @staticmethod
    def finish(store: Store, sent: Parcel, how: str) -> None:
        copy_id, intake = sent.manifest.copy_id, open_intake(store)
        if how == "abandon":
            intake.abandon(copy_id)
            return
        if how == "publish" and copy_id in store.incoming():
            found = CopyManifest.decode(store.incoming()[copy_id], copy_id)
            intake.publish(found if found.sealed() else sent.sealed)
        if how == "redo":
            lay(intake, sent)
            intake.publish(sent.sealed)

    @every_shape
    def test_giving_up_cut_short_anywhere(self, bench: IntakeBench, shape: Shape):
        fill(bench)
        before, sent = shown(bench), plain_parcel(shape)
        for k in range(1, CUTS_MAX):
            lay(open_intake(bench.store), sent)
            with bench.cut(k) as fired:
                try:
                    open_intake(bench.store).abandon("c1")
                except StoreError:
                    assert fired(), "it failed without a fault"
            open_intake(bench.reopen()[0]).abandon("c1")
            assert_nothing_of(bench, sent)
            assert shown(bench).files == before.files
            if not fired():
                return
        pytest.fail("the fault never stopped firing")


class IntakeContract(ContentsContract, WayContract, AgainContract, CutContract):
    """All of it."""
