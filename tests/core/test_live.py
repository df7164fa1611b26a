"""What keeps more of a run while it is live: its pace, signs that it is open, its framework's own rotation."""

from dataclasses import replace

import pytest

from lifecycle.core.evaluate import Judgement, evaluate
from lifecycle.core.model import Pointer, PointerRole, Run
from lifecycle.core.policy import Ended, Last, Match, Policy
from lifecycle.core.protect import LIVE_NS, OPEN, WORK_MAX_NS, Around, at_work, live
from lifecycle.core.reasons import Mark
from tests.core.worlds import DAY, HOUR, NOW, checkpoint, gone, run_of

LAST_ONE = Policy("p", Match(), (Last(1),))
AT_NOW = Around(NOW)
STAYS = Mark(True, "rotates.crash", "", ("composer",))


def old(path: str, **more: object) -> Run:
    ages = (40 * DAY, 30 * DAY, 20 * DAY)
    saved = (checkpoint(f"{path}/s{n}", n, age, layout="composer") for n, age in enumerate(ages))
    return replace(run_of(path, *saved), **{"active_at_ns": NOW - 20 * DAY, **more})  # type: ignore[arg-type]  # by name


def judge(*runs: Run, policy: Policy = LAST_ONE, around: Around = AT_NOW) -> Judgement:
    return evaluate(runs, [policy], around)


@pytest.mark.parametrize(("pace", "hours"), [(0, 1), (HOUR // 4, 1), (2 * HOUR, 4), (90 * DAY, WORK_MAX_NS // HOUR)])
def test_a_run_may_go_on_for_two_saves_within_bounds_and_is_live_for_an_hour(pace: int, hours: int):
    run = old("r", pace_ns=pace)
    assert at_work([run], run.active_at_ns + hours * HOUR - 1)
    assert not at_work([run], run.active_at_ns + hours * HOUR)
    assert live([run], run.active_at_ns + LIVE_NS - 1)
    assert not live([run], run.active_at_ns + LIVE_NS)


def test_a_run_with_something_open_is_live_and_keeps_two():
    run = old("r", flags=(("r/.nfs0001", OPEN),))
    assert live([run], NOW) and at_work([run], NOW)
    found = judge(run)
    assert gone(found) == {"hot:r/s0"}
    assert {f.code for f in found.findings if f.subject in ("hot:r", "hot:r/.nfs0001")} == {"active", OPEN}
    assert gone(judge(old("r"))) == {"hot:r/s0", "hot:r/s1"}


def test_a_slow_run_that_goes_on_is_not_over():
    policy = Policy("p", Match(), None, ended=Ended(86_400))
    quiet = {"active_at_ns": NOW - 30 * HOUR}
    assert gone(judge(old("r", **quiet), policy=policy)) == {"hot:r/s0", "hot:r/s1"}
    assert gone(judge(old("r", **quiet, pace_ns=DAY), policy=policy)) == set()


def test_a_run_that_may_go_on_keeps_no_second_one_for_that_and_tells_it():
    found = judge(old("r", active_at_ns=NOW - 3 * HOUR, pace_ns=2 * HOUR))
    assert gone(found) == {"hot:r/s0", "hot:r/s1"}
    assert [(f.code, f.text) for f in found.findings] == [
        ("may_go_on", "at the run's own pace the next save can still come")
    ]


def test_what_a_framework_would_fail_over_stays_and_says_why():
    asked: list[tuple[str, int]] = []

    def rotating(run: Run, now_ns: int) -> dict[str, Mark]:
        asked.append((run.id, now_ns))
        return {"composer": STAYS} if run.path == "r" else {}

    found = judge(old("r"), old("q"), around=Around(NOW, rotating=rotating))
    assert gone(found) == {"hot:q/s0", "hot:q/s1"}
    assert ("p", STAYS) in found.decisions[-3].marks
    assert set(asked) == {("hot:r", NOW), ("hot:q", NOW)}
    other = replace(old("r"), checkpoints=tuple(replace(c, layout="hf_trainer") for c in old("r").checkpoints))
    assert gone(judge(other, around=Around(NOW, rotating=rotating))) == {"hot:r/s0", "hot:r/s1"}


def test_a_copy_on_another_store_is_out_of_its_frameworks_sight():
    copies = tuple(replace(c, home="warm") for c in old("r").checkpoints)
    around = Around(NOW, rotating=lambda _run, _now: {"composer": STAYS})
    assert gone(judge(replace(old("r"), checkpoints=copies), around=around)) == {"hot:r/s0", "hot:r/s1"}


@pytest.mark.parametrize(("text", "flags", "active_at", "judged"), [
    ("", ("pointer_unreadable",), NOW, False),
    ("", ("pointer_unreadable",), NOW - 2 * HOUR, True),
    ("s9", ("pointer_unreadable",), NOW, True),
    ("", (), NOW, True),
])  # fmt: skip
def test_an_empty_pointer_of_a_live_run_names_nothing_yet(
    text: str, flags: tuple[str, ...], active_at: int, judged: bool
):
    pointer = Pointer("hot", "r", "r/latest", PointerRole.LATEST, None, text, flags=flags)
    found = judge(old("r", pointers=(pointer,), active_at_ns=active_at))
    assert found.judged is judged
    assert bool(gone(found)) is judged
    told = [(f.subject, f.severity) for f in found.findings if f.code == "pointer_empty"]
    assert told == ([] if judged else [("hot:r/latest", "error")])
