"""What was announced, asked and answered, on both kinds of database: it comes back, and a yes ends."""

from collections.abc import Callable
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifecycle.core.consent import Notice
from lifecycle.errors import NotFound
from lifecycle.index import consents as module
from lifecycle.index import schema
from lifecycle.index.backup import renew
from lifecycle.index.open import Index, _site, open_index
from lifecycle.ports.consents import APPROVED, REJECTED, Answer, Asked, Request
from tests.index.scenes import NAMES, WORDS, S

SOME = settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
DAY = 86_400 * S
MOMENTS = st.integers(-(2**62), 2**62)
SIGNATURES = st.integers(0, 5).map(lambda n: f"{n:064x}")
NOTICES = st.dictionaries(SIGNATURES, st.builds(Notice, NAMES, MOMENTS, MOMENTS), max_size=4)


def asked(n: int, **changes: object) -> Asked:
    plain = Asked(f"{n:064x}", f"hot:r/step-{n}", "retire", "hot:r", "", 10, 3600, ("p",))
    return plain._replace(**changes)  # type: ignore[arg-type]  # fields by name


def yes(at: int = 0, until: int = 9 * S, by: str = "ann") -> Answer:
    return Answer(APPROVED, by, "ann@box", at, until)


@SOME
@given(first=NOTICES, then=NOTICES)
def test_what_is_announced_comes_back_and_nothing_else(
    fresh: Callable[[], Index], first: dict[str, Notice], then: dict[str, Notice]
):
    index = fresh()
    serial = index.reader.serial()
    for standing in (first, then):
        index.consents.announce(standing)
        assert index.consents.notices() == standing
    assert index.reader.serial() == serial, "no plan is stale for it"


@SOME
@given(subject=NAMES, run=NAMES, to=NAMES, names=st.lists(WORDS, max_size=2).map(tuple), by=WORDS, at=MOMENTS)
def test_what_is_asked_and_said_comes_back(
    fresh: Callable[[], Index], subject: str, run: str, to: str, names: tuple[str, ...], by: str, at: int
):
    made = fresh().consents
    one = asked(1, subject=subject, run=run, to=to, policies=names)
    request = made.ask([one, asked(2)], plan="p1", now_ns=at)
    assert made.content(request) == [one, asked(2)]
    assert made.requests() == [Request(request, "p1", at, True, 2, 20)]
    said = Answer(REJECTED, by, "ann@box", at, at)
    made.answer(request, said)
    assert made.requests()[0].answer == said and made.answers(request) == [said]


def test_the_same_set_is_the_same_request(index: Index, monkeypatch: pytest.MonkeyPatch):
    """Whatever the order, whichever plan asks, and whatever was asked for in between."""
    made = index.consents
    first = made.ask([asked(1), asked(2)], plan="p1", now_ns=1)
    with monkeypatch.context() as patch:
        patch.setattr(index.database, "write", None)
        assert made.ask([asked(2), asked(1)], plan="p2", now_ns=2) == first, "and nothing is written"
    other = made.ask([asked(1)], plan="p3", now_ns=3)
    assert other != first and [(r.id, r.asked) for r in made.requests()] == [(other, True), (first, False)]
    assert made.ask([asked(1), asked(2)], plan="p4", now_ns=4) == first
    assert made.requests()[0] == Request(first, "p1", 4, True, 2, 20)
    assert made.ask([], plan="p5", now_ns=5) == "" and not any(r.asked for r in made.requests())
    with monkeypatch.context() as patch:
        patch.setattr(index.database, "write", None)
        assert made.ask([], plan="p6", now_ns=6) == ""


def test_a_yes_is_to_actions_and_ends(index: Index):
    made = index.consents
    first = made.ask([asked(1), asked(2)], plan="p1", now_ns=0)
    made.answer(first, yes(at=0, until=9 * S))
    both = {asked(n).signature: first for n in (1, 2)}
    assert made.approved(9 * S - 1) == both and made.approved(9 * S) == {}
    assert made.is_approved(asked(1).signature, 9 * S - 1) and not made.is_approved(asked(1).signature, 9 * S)
    assert not made.is_approved(asked(3).signature, 0)
    made.answer(first, yes(at=8 * S, until=20 * S, by="bob"))
    assert made.approved(10 * S) == both, "the later one counts"
    assert [answer.by for answer in made.answers(first)] == ["ann", "bob"]


def test_a_yes_of_a_clock_far_ahead_does_not_count_before_its_time(index: Index):
    made = index.consents
    request = made.ask([asked(1)], plan="p1", now_ns=0)
    made.answer(request, yes(at=DAY, until=2 * DAY))
    assert made.approved(0) == {} and made.approved(DAY - module.EARLY_NS) != {}


def test_a_no_is_to_its_actions_whoever_said_yes_to_them(index: Index):
    made = index.consents
    first = made.ask([asked(1), asked(2)], plan="p1", now_ns=0)
    made.answer(first, yes())
    second = made.ask([asked(2)], plan="p2", now_ns=1)
    made.answer(second, Answer(REJECTED, "bob", "bob@box", 1, 1))
    assert made.approved(1) == {asked(1).signature: first}
    assert not made.is_approved(asked(2).signature, 1)


def test_what_was_done_is_used_up(index: Index, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "AT_ONCE", 2)
    made = index.consents
    every = [asked(n) for n in range(5)]
    made.announce({a.signature: Notice(a.subject, 1, 2) for a in every})
    request = made.ask(every, plan="p1", now_ns=0)
    made.answer(request, yes())
    made.spend({a.signature for a in every[:3]})
    rest = {a.signature for a in every[3:]}
    assert made.notices().keys() == rest and made.approved(1).keys() == rest
    made.spend(())
    assert made.notices().keys() == rest
    assert made.content(request) == every, "what was asked stays as it was seen"


def test_nobody_answers_what_was_not_asked(index: Index):
    for call in (lambda: index.consents.content("f" * 64), lambda: index.consents.answer("f" * 64, yes())):
        with pytest.raises(NotFound) as raised:
            call()
        assert raised.value.code == "no_such_request"
    assert index.consents.approved(0) == {}


def test_what_was_never_answered_makes_room_and_what_was_stays(index: Index):
    made = index.consents
    old, answered, now = [made.ask([asked(n)], plan="p", now_ns=n) for n in (1, 2, 3)]
    made.answer(answered, yes())
    assert {r.id for r in made.requests()} == {old, answered, now}
    last = made.ask([asked(4)], plan="p", now_ns=module.KEPT_NS + 3)
    assert {r.id for r in made.requests()} == {answered, now, last}, "each of its own time"
    again = made.ask([asked(3)], plan="p", now_ns=9 * module.KEPT_NS)
    assert again == now and {r.id for r in made.requests()} == {answered, now}


def test_an_older_index_gets_the_tables_and_loses_them_again(url: str):
    with open_index(url, create=True) as index:
        index.consents.announce({asked(1).signature: Notice("hot:a", 1, 2)})
    with closing(_site(url, None, None).open(references=False)) as database:
        schema.migrate(database, "0006")
        schema.migrate(database, schema.HEAD)
    with open_index(url, create=False) as index:
        assert index.consents.notices() == {} and index.consents.requests() == []


def test_what_was_said_before_a_backup_is_not_said_again(fresh: Callable[[], Index]):
    """Between the backup and its return somebody may have said no, and a date may have been broken."""
    index = fresh()
    made = index.consents
    request = made.ask([asked(1)], plan="p", now_ns=0)
    made.answer(request, yes(until=9 * DAY))
    made.announce({asked(1).signature: Notice("hot:r/step-1", 0, DAY)})
    assert made.is_approved(asked(1).signature, S)
    renew(index.database, S)
    assert made.notices() == {} and not made.is_approved(asked(1).signature, S)
    assert made.answers(request) == [yes(until=9 * DAY)], "who said what is still known"
    assert made.ask([asked(1)], plan="p", now_ns=S) == request and made.requests()[0].asked_at_ns == S, "asked anew"
