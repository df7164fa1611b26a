"""A delete needs a warrant, and only fresh evidence gives one."""

import copy
import dataclasses

import pytest

from lifecycle.core.action import Action, Verb
from lifecycle.core.listing import Totals
from lifecycle.core.warrant import WARRANT_NS, PurgeWarrant, Warrant, issue, issue_purge
from lifecycle.errors import Changed, Refused
from tests.core.worlds import NOW, SECOND, checkpoint

C = checkpoint("r/step-1", 1)
ACTION = Action.upon(C, trash_s=60, policies=("p",), floor=("hot:r/step-2", "hot:r/step-3"))


def seen(fingerprint: str = C.fingerprint) -> Totals:
    return Totals(100, 2, NOW, NOW, fingerprint, frozenset({7}), 0)


def ask(**changes: object) -> Warrant:
    given: dict[str, object] = {
        "plan": "plan", "trash_id": "t1", "seen": seen(), "standing": frozenset(ACTION.floor), "held": False,
        "now_ns": NOW,
    }  # fmt: skip
    return issue(ACTION, **{**given, **changes})  # type: ignore[arg-type]  # arguments of one function


def test_fresh_evidence_gives_a_warrant():
    warrant = ask()
    assert (warrant.action, warrant.plan, warrant.trash_id, warrant.seen) == (ACTION, "plan", "t1", seen())
    assert warrant.expires_at_ns - warrant.issued_at_ns == WARRANT_NS


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"seen": seen("other")}, "changed_since_plan"),
        ({"held": True}, "held"),
        ({"standing": frozenset({"hot:r/step-2"})}, "floor_gone"),
        ({"standing": frozenset()}, "floor_gone"),
    ],
)
def test_no_warrant_for_what_changed(change: dict[str, object], code: str):
    with pytest.raises(Changed) as caught:
        ask(**change)
    assert caught.value.code == code


def test_nobody_else_can_make_or_change_one():
    warrant, purge = ask(), issue_purge("t1", retired_at_ns=0, trash_s=1, now_ns=NOW, held=False)
    with pytest.raises(Refused, match="fresh evidence"):
        Warrant(ACTION, "plan", "t1", seen(), NOW, NOW + 1, object())
    with pytest.raises(Refused, match="fresh evidence"):
        PurgeWarrant("t1", 0, 1, object())
    for made in (warrant, purge):
        with pytest.raises(ValueError, match="seal"):
            dataclasses.replace(made, trash_id="another")  # type: ignore[call-arg]  # that is what is tried
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.trash_id = "another"  # type: ignore[misc]  # that is what is tried
        assert not hasattr(made, "seal")
        assert copy.copy(made) == made


def test_purge_only_after_its_time():
    leave = issue_purge("t1", retired_at_ns=NOW, trash_s=60, now_ns=NOW + 60 * SECOND, held=False)
    assert (leave.trash_id, leave.retired_at_ns, leave.trash_s) == ("t1", NOW, 60)
    with pytest.raises(Refused) as caught:
        issue_purge("t1", retired_at_ns=NOW, trash_s=60, now_ns=NOW + 60 * SECOND - 1, held=False)
    assert caught.value.code == "trash_too_young"
    with pytest.raises(Refused) as caught:
        issue_purge("t1", retired_at_ns=0, trash_s=60, now_ns=NOW, held=True)
    assert caught.value.code == "held"


def test_an_action_carries_all_that_identifies():
    assert ACTION.id == C.id
    assert ACTION.verb is Verb.RETIRE
    assert Action.upon(C, trash_s=None, policies=(), floor=()).verb is Verb.DELETE
    assert Action.upon(C, trash_s=0, policies=(), floor=()).verb is Verb.RETIRE
    for name in ("store", "run", "key", "shape", "members", "proof", "fingerprint", "inode", "bytes", "files"):
        assert getattr(ACTION, name) == getattr(C, name)
