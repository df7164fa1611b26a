"""Laws of what a copy says of itself."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.copies import (
    Contents,
    CopyManifest,
    Directory,
    Member,
    as_copied,
    as_copy,
    copy_name,
    in_order,
    payload,
    relocated,
)
from lifecycle.core.model import Checkpoint, Evidence, Shape
from lifecycle.errors import StoreError

names = st.text(st.characters(codec=None), min_size=1, max_size=8)
hexes = st.text("0123456789abcdef", min_size=64, max_size=64)
sizes = st.integers(0, 2**50)
times = st.integers(0, 2**62)
members = st.builds(
    Member,
    key=names,
    size_bytes=sizes,
    mtime_ns=times,
    mode=st.none() | st.integers(0, 0o7777),
    sha256=hexes,
    link=st.none() | names,
    same=st.none() | names,
)
checkpoints = st.builds(
    Checkpoint,
    store=names,
    run=names,
    key=names,
    name=names,
    layout=names,
    shape=st.sampled_from(Shape),
    evidence=st.sampled_from(Evidence),
    step=st.none() | sizes,
    epoch=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    metrics=st.lists(st.tuples(names, st.floats(allow_nan=False)), max_size=2).map(tuple),
    members=st.lists(names, max_size=3).map(tuple),
    proof=st.none() | names,
)
manifests = st.builds(
    CopyManifest,
    copy_id=st.just("c1"),
    place=names,
    checkpoint=checkpoints,
    members=st.lists(members, max_size=4, unique_by=lambda m: m.key).map(tuple),
    directories=st.lists(st.builds(Directory, names, times, st.integers(0, 0o7777)), max_size=2).map(tuple),
    copied_at_ns=times,
    plan=names,
)


@given(manifests)
def test_it_comes_back_as_it_was(manifest: CopyManifest):
    assert CopyManifest.decode(manifest.encode(), "c1") == manifest


@given(manifests, st.data())
def test_no_byte_of_it_can_be_changed_unnoticed(manifest: CopyManifest, data: st.DataObject):
    content = bytearray(manifest.encode())
    at = data.draw(st.integers(0, len(content) - 2))  # but for the line's end
    content[at] ^= 1 << data.draw(st.integers(0, 6))
    with pytest.raises(StoreError) as caught:
        CopyManifest.decode(bytes(content), "c1")
    assert caught.value.code == "broken_manifest"


@given(manifests, st.data())
def test_no_beginning_of_it_is_taken_for_it(manifest: CopyManifest, data: st.DataObject):
    content = manifest.encode()
    with pytest.raises(StoreError):
        CopyManifest.decode(content[: data.draw(st.integers(0, len(content) - 2))], "c1")


def test_another_copys_manifest_is_refused():
    manifest = CopyManifest(
        "c1", "warm", Checkpoint("h", "r", "r/1", "1", "l", Shape.DIR, Evidence.PROVEN), (), (), 0, ""
    )
    with pytest.raises(StoreError):
        CopyManifest.decode(manifest.encode(), "c2")


@given(manifests)
def test_the_proof_comes_last(manifest: CopyManifest):
    order = in_order(manifest)
    assert set(order) == set(manifest.members)
    proof = [m.key == manifest.checkpoint.proof for m in order]
    assert proof == sorted(proof)


@given(manifests)
def test_a_base_is_cut_off_everywhere_and_nothing_else_changes(manifest: CopyManifest):
    c = manifest.checkpoint
    moved = replace(
        manifest,
        checkpoint=replace(
            c, run="", key=f"r/{c.key}", members=tuple(f"r/{k}" for k in c.members), proof=c.proof and f"r/{c.proof}"
        ),
        members=tuple(m._replace(key=f"r/{m.key}", same=m.same and f"r/{m.same}") for m in manifest.members),
        directories=tuple(d._replace(key=f"r/{d.key}") for d in manifest.directories),
    )
    assert relocated(moved, "r/") == replace(manifest, checkpoint=replace(c, run=""))
    assert relocated(manifest, "").content == manifest.content


@given(manifests)
def test_what_a_bucket_does_not_keep_comes_from_the_manifest(manifest: CopyManifest):
    bare = tuple(Member(m.key, m.size_bytes, 5) for m in payload(manifest.members))
    told = as_copied(Contents(bare), manifest)
    bodies = set(payload(manifest.members))
    unsummed = [m._replace(sha256="") if m in bodies else m for m in manifest.members]
    assert sorted(told.members, key=repr) == sorted(unsummed, key=repr)
    assert told.directories == manifest.directories


@given(manifests)
def test_what_a_place_keeps_itself_is_believed_and_nothing_is_made_up(manifest: CopyManifest):
    whole = Contents((Member("x", 1, 5, 0o600), Member("y", 1, 6)))
    assert as_copied(whole, manifest) == whole
    strange = Contents((Member("not in it\0", 1, 5),))
    assert Member("not in it\0", 1, 5) in as_copied(strange, manifest).members
    for m in manifest.members:
        shown = Contents((Member(m.key, m.size_bytes + 1, 5),))
        found = [one for one in as_copied(shown, manifest).members if one.key == m.key]
        assert len(found) == 1 and found[0].size_bytes == m.size_bytes + 1


@given(manifests, names)
def test_the_same_content_has_the_same_digest_wherever_and_whenever(manifest: CopyManifest, text: str):
    moved = replace(manifest, copy_id="c2", place=text, copied_at_ns=1, plan=text, members=manifest.members[::-1])
    assert moved.content == manifest.content


@given(manifests)
def test_other_content_has_another_digest(manifest: CopyManifest):
    more = replace(manifest, members=(*manifest.members, Member("more than eight", 1, 1, None, "0" * 64)))
    assert more.content != manifest.content


@given(checkpoints, names, names)
def test_a_copys_name_is_its_own(c: Checkpoint, plan: str, place: str):
    one = copy_name(plan, c, place)
    assert one == copy_name(plan, replace(c, step=7), place), "a second try finds the first"
    assert one != copy_name(plan, replace(c, fingerprint=c.fingerprint + "x"), place)
    assert one != copy_name(plan, c, place + "x")
    assert one.isalnum()


@given(manifests)
def test_a_copy_knows_its_home(manifest: CopyManifest):
    copy = as_copy(manifest, "cold", fingerprint="f", online=False)
    assert (copy.home, copy.key, copy.copy_id) == (manifest.checkpoint.store, manifest.key, "c1")
    assert (copy.store, copy.fingerprint, copy.online, copy.step) == ("cold", "f", False, manifest.checkpoint.step)
    assert copy.id == f"cold:{manifest.key}"


def test_a_manifest_that_names_a_file_twice_is_refused():
    c = Checkpoint("h", "r", "r/1", "1", "l", Shape.DIR, Evidence.PROVEN)
    twice = (Member("r/1/a", 1, 1, None, "0" * 64), Member("r/1/a", 2, 1, None, "1" * 64))
    with pytest.raises(StoreError, match="twice"):
        CopyManifest.decode(CopyManifest("c1", "warm", c, twice, (), 0, "").encode(), "c1")
