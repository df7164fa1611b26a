"""What protects whatever a policy says: pointers by all their ways, holds by all theirs, leases and uploads."""

from dataclasses import replace

import pytest

from lifecycle.core.model import Hold, Pointer, PointerRole
from lifecycle.core.protect import Around, by_target, live, pointing, protections
from tests.core.worlds import HOUR, MINUTE, NOW, checkpoint, run_of

C = checkpoint("a/r/step-1", 1, inode=7)
GROUP = checkpoint("a/r/ckpt-1", 1, members=("a/r/ckpt-1.index", "a/r/ckpt-1.data"))


@pytest.mark.parametrize("target", ["a/r/step-1", "a/r/step-1/", "a/r/step-1/model/w.bin", "a/r", "a", "", "/", "a/r/"])
def test_holds_on_it_above_it_and_inside_it(target: str):
    assert Hold("h", f"hot:{target}", "ann", "", 0).covers(C)


@pytest.mark.parametrize("target", ["hot:a/r/step-10", "hot:a/r/step", "hot:r", "cold:a/r/step-1", "cold:", "hot:a/r2"])
def test_holds_elsewhere(target: str):
    assert not Hold("h", target, "ann", "", 0).covers(C)


def test_holds_follow_a_rename_and_take_in_members():
    assert Hold("h", "hot:a/r/old-name", "ann", "", 0, inode=7).covers(C)
    assert not Hold("h", "cold:a/r/old-name", "ann", "", 0, inode=7).covers(C)
    assert not Hold("h", "hot:a/r/old-name", "ann", "", 0, inode=0).covers(checkpoint("a/r/step-1", 1))
    assert Hold("h", "hot:a/r/ckpt-1.index", "ann", "", 0).covers(GROUP)


def pointer(target: str | None, name: str = "latest", role: PointerRole = PointerRole.LATEST) -> Pointer:
    return Pointer("hot", "a/r", f"a/r/{name}", role, target, "text")


@pytest.mark.parametrize("target", ["hot:a/r/step-1", "hot:a/r/step-1/model/w.bin"])
def test_pointers_at_it_and_into_it(target: str):
    assert pointing(C, Around(NOW, (), by_target([pointer(target)]))) == (pointer(target),)


def test_pointers_at_a_group_or_its_members():
    for target in ("hot:a/r/ckpt-1", "hot:a/r/ckpt-1.data"):
        assert pointing(GROUP, Around(NOW, (), by_target([pointer(target)])))
    assert not pointing(GROUP, Around(NOW, (), by_target([pointer("hot:a/r/ckpt-10.data")])))


def test_pointers_are_in_order_and_those_at_nothing_are_left_out():
    many = [pointer("hot:x", "b"), pointer(None, "c"), pointer("hot:x", "a"), pointer("hot:", "d")]
    assert by_target(many) == {"hot:x": (pointer("hot:x", "a"), pointer("hot:x", "b"))}


@pytest.mark.parametrize("key", ["a/r/step-1", "a/r/step-1/w.bin", "a/r", ""])
def test_leases_on_it_inside_it_and_on_its_run(key: str):
    def marks(age: int) -> list[str]:
        return [m.code for m in protections(C, run_of("a/r", C, leases=((key, NOW - age),)), Around(NOW))[0]]

    assert marks(0) == marks(29 * MINUTE) == marks(-HOUR) == ["leased"]
    assert marks(30 * MINUTE) == []


def test_a_lease_on_a_neighbour_is_none():
    assert protections(C, run_of("a/r", C, leases=(("a/r/step-10", NOW),)), Around(NOW)) == ([], [])


def test_a_run_is_live_for_an_hour_or_while_an_upload_is_open():
    assert live([run_of("a", active_at_ns=NOW - HOUR + 1)], NOW)
    assert not live([run_of("a", active_at_ns=NOW - HOUR)], NOW)
    assert live([run_of("a", active_at_ns=0, writing=(("a/x", 0),))], NOW)
    assert not live([], NOW)


def test_a_date_in_the_future_says_nothing_about_life():
    old, new, future = (checkpoint(f"a/{age}", None, age) for age in (9 * HOUR, HOUR // 2, -9 * HOUR))
    assert live([run_of("a", old, new, future)], NOW)
    assert not live([run_of("a", old, future)], NOW)
    assert live([run_of("a", future)], NOW)  # nothing else is known


def test_the_order_of_holds_does_not_show():
    holds = tuple(Hold(name, "hot:a/r", name, "why", 0) for name in ("bob", "ann", "cy"))
    marks, _ = protections(C, run_of("a/r", C), Around(NOW, holds))
    assert [mark.facts[0] for mark in marks] == ["ann", "bob", "cy"]


@pytest.mark.parametrize(
    ("role", "keeps"),
    [(PointerRole.REFERENCE, True), (PointerRole.RESUME, True), (PointerRole.LATEST, False)],
)
def test_a_whole_run_can_be_named_from_outside(role: PointerRole, keeps: bool):
    around = Around(NOW, (), by_target([pointer("hot:a/r", "prod/model", role)]))
    marks, _ = protections(C, run_of("a/r", C), around)
    assert any(mark.keeps for mark in marks) is keeps


@pytest.mark.parametrize("role", [PointerRole.REFERENCE, PointerRole.RESUME, PointerRole.NEED])
@pytest.mark.parametrize("target", ["hot:a/r", "warm:a/r"])
def test_who_names_a_run_or_the_place_of_its_copies_names_each_checkpoint_in_it(role: PointerRole, target: str):
    c = replace(C, elsewhere=(replace(C, store="warm", home="hot", copy_id="1"),))
    around = Around(NOW, (), by_target([replace(pointer(target, "c/x.json", role), store="warm", key="c/x.json")]))
    marks, findings = protections(c, run_of("a/r", c), around)
    assert [(m.code, m.facts) for m in marks] == [("pointer", ("warm:c/x.json", role.value))]
    assert [f.text for f in findings] == ["warm:c/x.json names it"]
    assert protections(c, run_of("a/r2", replace(c, key="a/r2/step-1", run="a/r2")), around)[0] == []


def test_who_names_a_copy_means_the_checkpoint():
    c = replace(C, elsewhere=(replace(C, store="warm", home="hot", copy_id="1"),))
    around = Around(NOW, (), by_target([pointer("warm:a/r/step-1")]))
    assert pointing(c, around) and not pointing(C, around)
