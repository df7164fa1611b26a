"""Ticks that announce and ask: nothing goes before its date or without its yes, and a hold before that wins."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lifecycle.core.consent import Notice
from lifecycle.core.model import Hold
from lifecycle.core.plan import Plan
from lifecycle.core.policy import Limits
from lifecycle.errors import LifecycleError, StoreError
from lifecycle.flows.consents import consent_of
from lifecycle.flows.stages import Ticked
from lifecycle.flows.tick import Wishes, tick
from lifecycle.flows.upcoming import Asked, When, acted_on, look_ahead
from lifecycle.ports.consents import APPROVED, REJECTED, Answer
from tests.flows.place import HOUR, LAST_ONE, TIERED, place
from tests.flows.test_tick import Ticking, facts_of, stage
from tests.stores.places import memory_directory

DAY = 24 * HOUR
AUTO = Wishes(applies=True)
ANNOUNCED = replace(LAST_ONE, announce_s=3 * 86_400, digest="announced")
APPROVED_ONE = replace(LAST_ONE, approve=True, digest="approve")


@pytest.fixture
def hot() -> Iterator[Ticking]:
    """Three checkpoints of which the policy keeps one."""
    with memory_directory() as path:
        made = place(path)
        for step, age in ((1, 50), (2, 40), (3, 30)):
            made.save("hot", "r", step, age * HOUR)
        yield Ticking(made)
        made.index.close()


def stands(hot: Ticking, store: str = "hot") -> list[int]:
    return sorted(
        int(key.split("step-")[1].split("/")[0]) for key in hot.place.stores[store].files if key.endswith("/w")
    )


def notices(hot: Ticking) -> dict[str, Notice]:
    return {notice.subject: notice for notice in hot.place.index.consents.notices().values()}


def say(hot: Ticking, word: str = APPROVED, days: int = 7) -> str:
    """Answer what is asked for."""
    consents, now = hot.place.index.consents, hot.place.clock.now
    (request,) = [one for one in consents.requests() if one.asked]
    consents.answer(request.id, Answer(word, "ann", "ann@box", now, now + days * DAY))
    return request.id


def night(hot: Ticking, hours: int = 24, wishes: Wishes = AUTO) -> Ticked:
    hot.place.clock.now += hours * HOUR
    return hot.tick(wishes)


# -- dates


def test_what_is_announced_goes_once_its_date_has_come(hot: Ticking):
    hot.place.policy, begun = ANNOUNCED, hot.place.clock.now
    first = hot.tick(AUTO)
    told = stage(first, "apply")
    assert first.exit_code == 0 and (told.word, told.code, told.counts) == ("skipped", "announced", {"waits": 2})
    assert "2 (20 B) wait for their dates, the first until" in told.text
    assert notices(hot) == {f"hot:r/step-{n}": Notice(f"hot:r/step-{n}", begun, begun + 3 * DAY) for n in (1, 2)}
    assert stage(night(hot), "apply").code == "announced" and stage(night(hot, 47), "apply").code == "announced"
    assert stands(hot) == [1, 2, 3] and hot.outcomes() == []
    assert stage(night(hot, 1), "apply").counts["done"] == 2
    assert stands(hot) == [3] and notices(hot) == {}, "used up"
    assert "apply" in first.facts() and first.gate is not None and first.gate.waiting[0].value()["code"] == "announced"


def test_each_has_its_own_date(hot: Ticking):
    hot.place.policy = ANNOUNCED
    hot.tick(AUTO)
    hot.place.clock.now += DAY
    hot.place.save("hot", "r", 4, 5 * HOUR)
    hot.tick(AUTO)
    assert {subject: n.due_ns - hot.place.clock.now for subject, n in notices(hot).items()} == {
        "hot:r/step-1": 2 * DAY,
        "hot:r/step-2": 2 * DAY,
        "hot:r/step-3": 3 * DAY,
    }
    made = night(hot, 48)
    told = stage(made, "apply")
    assert stands(hot) == [3, 4] and told.counts["done"] == 2 and told.counts["waits"] == 1
    assert told.word == "done" and told.code == "announced" and "1 (10 B) waits for its date" in told.text
    assert made.outcome is not None and sum(made.outcome.counts.values()) == 3


def test_a_hold_before_the_date_wins_and_what_is_released_is_announced_anew(hot: Ticking):
    hot.place.policy = ANNOUNCED
    hot.tick(AUTO)
    hot.place.holds.append(Hold("h1", "hot:r/step-1", "ann", "paper", 0))
    night(hot)
    assert notices(hot).keys() == {"hot:r/step-2"}
    hot.place.holds.clear()
    night(hot)
    night(hot)
    assert stands(hot) == [1, 3], "the other one had stood all the time"
    assert notices(hot)["hot:r/step-1"].due_ns == hot.place.clock.now + 2 * DAY
    night(hot, 48)
    assert stands(hot) == [3]


def test_a_hold_between_plan_and_act_wins_too(hot: Ticking):
    """The plan is made, the date has come, and somebody is quicker than the act."""
    hot.place.policy = ANNOUNCED
    hot.tick(AUTO)
    held = Hold("h1", "hot:r/step-1", "ann", "paper", 0)
    hot.place.clock.now += 3 * DAY

    def save(plan: Plan) -> str:
        assert "r/step-1" in {a.key for a in plan.actions}
        hot.place.holds.append(held)
        return "plan.json"

    made = tick(replace(hot.round, save=save), AUTO)
    assert stands(hot) == [1, 3] and stage(made, "apply").counts["kept"] == 1
    assert made.outcome is not None and [code for _, code, _ in made.outcome.notes] == ["held"]


def test_what_was_saved_again_is_announced_anew(hot: Ticking):
    hot.place.policy = ANNOUNCED
    hot.tick(AUTO)
    hot.place.clock.now += 2 * DAY
    hot.place.save("hot", "r", 1, 97 * HOUR, more=b"more")
    hot.tick(AUTO)
    assert notices(hot)["hot:r/step-1"].since_ns == hot.place.clock.now
    night(hot)
    assert stands(hot) == [1, 3]


@pytest.mark.parametrize("back", [HOUR // 60, 3 * HOUR])
def test_a_clock_that_was_set_back_brings_no_date_nearer(hot: Ticking, back: int):
    hot.place.policy, begun = ANNOUNCED, hot.place.clock.now
    hot.tick(AUTO)
    hot.place.save("hot", "r", 4, 5 * HOUR)
    hot.place.clock.now = begun - back
    made = hot.tick(AUTO)
    assert notices(hot).keys() == {"hot:r/step-1", "hot:r/step-2"}, "the third would be announced by a wrong clock"
    assert {n.due_ns for n in notices(hot).values()} == {begun + 3 * DAY}
    assert made.gate is not None and (made.gate.waiting[-1].wait.due_ns, made.gate.waiting[-1].code) == (
        None,
        "announced",
    )
    hot.place.clock.now = begun + DAY
    hot.tick(AUTO)
    assert notices(hot)["hot:r/step-3"].due_ns == begun + 4 * DAY, "from when the clock was right again"
    hot.place.clock.now = begun + 3 * DAY
    hot.tick(AUTO)
    assert stands(hot) == [3, 4]


def test_where_all_wait_for_a_clock_it_says_so(hot: Ticking):
    hot.tick(Wishes())
    hot.place.policy = ANNOUNCED
    hot.place.clock.now -= HOUR
    assert "cannot be yet: the clock is in doubt" in stage(hot.tick(AUTO), "apply").text


def test_a_clock_apart_from_a_store_s_announces_nothing(hot: Ticking, monkeypatch: pytest.MonkeyPatch):
    from lifecycle.core.model import Finding

    hot.place.policy = ANNOUNCED
    skewed = (Finding("hot:", "clock_skew", "warning", "apart"),)
    with monkeypatch.context() as patch:
        patch.setattr("lifecycle.flows.tick.tell_skew", lambda *_: skewed)
        hot.tick(AUTO)
    assert notices(hot) == {}
    hot.tick(AUTO)
    assert len(notices(hot)) == 2


def test_what_was_announced_of_a_store_that_is_down_stands(tmp_path: Path):
    made = place(tmp_path, ("hot", "warm"))
    for store in made.stores:
        for step, age in ((1, 50), (2, 40)):
            made.save(store, f"{store}-r", step, age * HOUR)
    both = Ticking(made)
    both.place.policy = ANNOUNCED
    both.tick(AUTO)
    before = notices(both)
    assert before.keys() == {"hot:hot-r/step-1", "warm:warm-r/step-1"}
    made.stores["warm"].fail("walk", 1, StoreError("no route", code="source_unavailable"))
    night(both)
    assert notices(both) == before
    night(both, 48)
    assert stands(both) == [2] and stands(both, "warm") == [2]
    made.index.close()


def test_a_plan_over_its_limits_announces_and_asks_nothing_new(hot: Ticking):
    strict = replace(LAST_ONE, announce_s=86_400, approve=True, limits=Limits(trash_s=3600, deletes_max=2), digest="s")
    hot.place.policy = strict
    hot.tick(AUTO)
    request = say(hot)
    before = notices(hot)
    hot.place.save("hot", "r", 4, 5 * HOUR)
    made = night(hot)
    assert stage(made, "plan").code == "guard_max_delete" and stage(made, "apply").code == "no_plan"
    assert notices(hot) == before, "what was wanted before still is, and nothing came to it"
    assert not [r for r in hot.place.index.consents.requests() if r.asked] and stands(hot) == [1, 2, 3, 4]
    hot.place.policy = replace(strict, limits=Limits(trash_s=3600), digest="t")
    made = night(hot)
    assert stands(hot) == [3, 4], "their yes and their dates stood all the time"
    assert made.gate is not None and made.gate.request != request


def test_a_dry_tick_announces_and_asks_for_nothing(hot: Ticking):
    hot.place.policy = replace(ANNOUNCED, approve=True)
    made = hot.tick(Wishes())
    assert stage(made, "apply").code == "dry_tick" and len(notices(hot)) == 2
    assert hot.place.index.consents.requests() == []


def test_a_policy_that_stops_to_announce_leaves_nothing_behind(hot: Ticking):
    hot.place.policy = ANNOUNCED
    hot.tick(AUTO)
    hot.place.policy = LAST_ONE
    assert stage(hot.tick(AUTO), "apply").counts["done"] == 2
    assert notices(hot) == {}


def test_ticks_that_wait_come_to_rest(hot: Ticking, monkeypatch: pytest.MonkeyPatch):
    """Nothing is written, night after night, for what waits unchanged."""
    hot.place.policy = replace(ANNOUNCED, approve=True)
    hot.tick(AUTO)
    facts, before = facts_of(hot), (notices(hot), hot.place.index.consents.requests())
    for _ in range(2):
        night(hot)
        assert (facts_of(hot), (notices(hot), hot.place.index.consents.requests())) == (facts, before)


# -- a yes


def test_what_needs_a_yes_waits_for_it_and_then_goes(hot: Ticking):
    hot.place.policy = APPROVED_ONE
    first = hot.tick(AUTO)
    told = stage(first, "apply")
    assert first.exit_code == 0 and (told.word, told.code, told.counts) == (
        "skipped",
        "awaiting_approval",
        {"waits": 2},
    )
    assert first.gate is not None and f"lifecycle approve {first.gate.request[:12]}" in told.text
    again = night(hot)
    assert again.gate is not None and again.gate.request == first.gate.request and stands(hot) == [1, 2, 3]
    say(hot)
    assert stage(night(hot), "apply").counts["done"] == 2 and stands(hot) == [3]
    assert night(hot).exit_code == 0
    assert not [r for r in hot.place.index.consents.requests() if r.asked]


def test_a_yes_is_to_what_was_looked_at(hot: Ticking):
    """What has changed since, and what came to it since, needs one of its own."""
    hot.place.policy = APPROVED_ONE
    hot.tick(AUTO)
    say(hot)
    hot.place.save("hot", "r", 1, 40 * HOUR, more=b"more")
    hot.place.save("hot", "r", 4, 5 * HOUR)
    made = night(hot)
    assert stands(hot) == [1, 3, 4]
    told = stage(made, "apply")
    assert told.counts["done"] == 1 and told.counts["waits"] == 2 and told.code == "awaiting_approval"
    say(hot)
    night(hot)
    assert stands(hot) == [4]


def test_a_yes_ends(hot: Ticking):
    hot.place.policy = APPROVED_ONE
    hot.tick(AUTO)
    say(hot, days=1)
    assert stage(night(hot), "apply").code == "awaiting_approval" and stands(hot) == [1, 2, 3]


def test_a_yes_that_was_taken_back_in_the_middle_counts_no_more(hot: Ticking):
    hot.place.policy = APPROVED_ONE
    hot.tick(AUTO)
    request = say(hot)
    no = Answer(REJECTED, "bob", "bob@box", hot.place.clock.now, hot.place.clock.now)

    def acted(*_: Any) -> None:
        if hot.place.index.consents.answers(request)[-1] != no:
            hot.place.index.consents.answer(request, no)

    made = tick(replace(hot.round, acted=acted), AUTO)
    assert stands(hot) == [2, 3] and stage(made, "apply").counts["waits"] == 1
    assert made.gate is not None and made.gate.waiting == []


def test_who_said_no_is_told_of_and_not_asked_for_ever(hot: Ticking):
    hot.place.policy = APPROVED_ONE
    hot.tick(AUTO)
    say(hot, REJECTED)
    text = stage(night(hot), "apply").text
    assert "ann said no" in text and "lifecycle approve" not in text


def test_a_yes_counts_once(hot: Ticking):
    """What was brought back is not dropped again by the yes that dropped it, though it is the same to the last byte."""
    from lifecycle.flows.undo import undo

    hot.place.policy = APPROVED_ONE
    hot.tick(AUTO)
    say(hot)
    made = night(hot)
    assert made.plan is not None and stands(hot) == [3]
    site = hot.place.site
    back = undo(site.trashes, site.journal, made.plan.id, hot.place.clock.now, site.intakes, site.stores)
    assert len(back.done) == 2
    assert stage(night(hot), "apply").code == "awaiting_approval" and stands(hot) == [1, 2, 3]


def test_a_yes_and_a_date(hot: Ticking):
    hot.place.policy = replace(ANNOUNCED, approve=True)
    hot.tick(AUTO)
    say(hot)
    assert stage(night(hot), "apply").code == "announced"
    night(hot, 48)
    assert stands(hot) == [3]


def test_where_the_site_says_so_all_that_takes_needs_a_yes_and_copies_go(tmp_path: Path):
    made = place(tmp_path, ("hot", "warm"))
    for step, days in ((1, 30), (2, 20), (3, 1)):
        made.save("hot", "r", step, days * DAY)
    made.policy = TIERED
    tiered = Ticking(made)
    told = stage(tiered.tick(Wishes(applies=True, approves=True)), "apply")
    assert stands(tiered, "warm") == [1, 2] and stands(tiered) == [1, 2, 3]
    assert told.counts["done"] == 2 and told.counts["waits"] == 2 and told.exit_code == 0
    say(tiered)
    tiered.tick(Wishes(applies=True, approves=True))
    assert stands(tiered) == [3]
    made.index.close()


def test_an_index_that_takes_no_word_lets_nothing_go(hot: Ticking, monkeypatch: pytest.MonkeyPatch):
    hot.place.policy = ANNOUNCED

    def full(*_: object) -> None:
        raise LifecycleError("no space left", code="index_full")

    monkeypatch.setattr(type(hot.place.index.consents), "announce", full)
    made = hot.tick(AUTO)
    assert stage(made, "plan").code == "index_full" and made.plan is None and made.exit_code == 1
    assert stage(made, "apply").code == "no_plan" and hot.outcomes() == []


def test_a_tick_that_was_killed_between_the_act_and_the_note_of_it_leaves_nothing_behind(
    hot: Ticking, monkeypatch: pytest.MonkeyPatch
):
    hot.place.policy = ANNOUNCED
    hot.tick(AUTO)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(hot.place.index.consents), "spend", die)
        with pytest.raises(KeyboardInterrupt):
            night(hot, 72)
    assert stands(hot) == [3] and len(notices(hot)) == 2
    assert night(hot, 1).exit_code == 0 and notices(hot) == {}


def test_what_fails_may_be_tried_again_by_the_same_yes(hot: Ticking, monkeypatch: pytest.MonkeyPatch):
    hot.place.policy = APPROVED_ONE
    hot.tick(AUTO)
    say(hot)

    def deny(*_: object, **__: object) -> None:
        raise StoreError("permission denied", code="denied")

    with monkeypatch.context() as patch:
        patch.setattr("lifecycle.stores.memory_trash.MemoryTrash.retire", deny)
        assert stage(night(hot), "apply").exit_code == 3
    assert stage(night(hot), "apply").counts["done"] == 2


def test_what_goes_by_a_yes_is_looked_at_as_freshly_as_ever(hot: Ticking, monkeypatch: pytest.MonkeyPatch):
    """It changes between the plan and the act: the yes is not to that."""
    hot.place.policy = APPROVED_ONE
    hot.tick(AUTO)
    say(hot)

    def save(_plan: Plan) -> str:
        hot.place.save("hot", "r", 1, 97 * HOUR, more=b"more")
        return "plan.json"

    made = tick(replace(hot.round, save=save), AUTO)
    assert stands(hot) == [1, 3] and stage(made, "apply").counts["kept"] == 1


def test_what_a_scan_found_gone_meanwhile_is_going_nowhere(hot: Ticking):
    plan, made = hot.place.plan(), hot.place
    consent = consent_of(made.index.consents, made.rules, made.clock.now)
    known = acted_on(made.index.reader, ("hot",), plan)
    assert [c.action.key for c in look_ahead(plan, consent, known, Asked(), When(None, True)).coming] == [
        "r/step-1",
        "r/step-2",
    ]
    known.pop("hot:r/step-1")
    assert [c.action.key for c in look_ahead(plan, consent, known, Asked(), When(None, True)).coming] == ["r/step-2"]
