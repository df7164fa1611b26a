"""What the doctor tells of a store: every check by itself, and none hides another."""

import threading
from collections.abc import Callable, Iterator

import pytest

from lifecycle.core.listing import Flavour
from lifecycle.core.model import Shape
from lifecycle.errors import Denied, Refused, StoreError
from lifecycle.flows.doctor import OVERDUE_NS, Check, Found, Patient, Row, Verdict, examine_all, iter_rows, room
from lifecycle.ports import Powers, StoreRow, Trashed, Usage
from lifecycle.ports.ruled import BucketRule
from lifecycle.stores.memory import MemoryEntry, MemoryStore
from lifecycle.stores.memory_trash import MemoryTrash
from tests.flows.place import HOUR, NOW, Clock, S

OK, WARNING, FAILED, UNKNOWN = Verdict


class Bucket(MemoryStore):
    """A bucket with rules and versions, as far as a test says."""

    def __init__(self) -> None:
        super().__init__("warm", Flavour.OBJECT)
        self.powers = Powers(rename=False, conditional_delete=True, versioned=False)
        self.found: list[BucketRule] = []

    def rules(self) -> tuple[BucketRule, ...]:
        self.seam.reach("rules")
        return tuple(self.found)

    def probe(self) -> Powers:
        return self.powers


def known(store: MemoryStore, **more: object) -> StoreRow:
    row = StoreRow(store.name, store.url, f"memory-{store.name}", NOW - HOUR, 1, 1)
    return row._replace(**more)  # type: ignore[arg-type]  # its own fields


def patient(store: MemoryStore, **more: object) -> Patient:
    made = Patient(store, MemoryTrash(store), known(store), Clock())
    return made._replace(**more)  # type: ignore[arg-type]  # its own fields


def told(one: Patient) -> dict[Check, Row]:
    rows = list(iter_rows(one))
    assert {row.subject for row in rows} == {f"store {one.store.name}"}
    assert len({row.check for row in rows}) == len(rows)
    return {row.check: row for row in rows}


class Spread(MemoryStore):
    """A store on two disks."""

    def rooms(self) -> dict[str, Usage]:
        return {"/n1": Usage(100, 90, None, None), "/n2": Usage(1000, 20, None, None)}


def test_one_full_disk_among_empty_ones_is_told():
    row = told(patient(Spread("hot")))[Check.ROOM]
    assert row.verdict is WARNING and "2% of room (20 B)" in row.text and "/n2, one of 2" in row.text


@pytest.fixture
def hot() -> MemoryStore:
    return MemoryStore("hot")


@pytest.fixture
def warm() -> Bucket:
    return Bucket()


def test_all_is_well(hot: MemoryStore, warm: Bucket):
    full = Usage(1000, 500, 1000, 500)
    hot.usage = lambda: full  # type: ignore[method-assign]  # a disk
    rows = told(patient(hot))
    assert {row.verdict for row in rows.values()} == {OK}
    assert rows.keys() == set(Check) - {
        Check.SETTINGS, Check.ZONES, Check.SECRETS, Check.INDEX, Check.LEASE, Check.TURN, Check.JOURNAL, Check.OWNER,
        Check.VERSIONS, Check.RULES
    }  # fmt: skip
    rows = told(patient(warm))
    assert {row.verdict for row in rows.values()} == {OK}
    assert {Check.VERSIONS, Check.RULES} <= rows.keys() and Check.ROOM not in rows


def test_what_cannot_be_reached_is_told_and_asked_nothing_more(hot: MemoryStore):
    hot.fail("identity", 1, Refused("not mounted", code="source_unavailable", hint="mount it"))
    (row,) = iter_rows(patient(hot))
    assert row == Row("store hot", Check.REACH, FAILED, "not mounted", "mount it")


@pytest.mark.parametrize("op", ["told_ns", "probe", "usage", "notes", "trash"])
@pytest.mark.parametrize("error", [StoreError("no answer"), RuntimeError("token=hunter2")], ids=["ours", "other"])
def test_a_check_that_fails_hides_no_other(hot: MemoryStore, op: str, error: Exception):
    every = told(patient(hot)).keys()
    hot.fail(op, 1, error)
    rows = told(patient(hot))
    assert rows.keys() == every
    assert len([row for row in rows.values() if row.verdict in (FAILED, WARNING)]) == 1
    assert "hunter2" not in str(rows)


@pytest.mark.parametrize(
    ("change", "verdict", "text"),
    [
        ({"identity": "other"}, FAILED, "not the store that was scanned last time"),
        ({"identity": ""}, WARNING, "never scanned"),
        ({"scanned_at_ns": 0}, WARNING, "no scan of it ever came to its end"),
        ({"scanned_at_ns": NOW + HOUR}, WARNING, "1h in the future"),
        ({}, OK, "1h ago"),
    ],
)
def test_identity(hot: MemoryStore, change: dict[str, object], verdict: Verdict, text: str):
    row = told(patient(hot, known=known(hot, **change)))[Check.IDENTITY]
    assert row.verdict is verdict and text in row.text


def test_without_an_index_nothing_is_written(hot: MemoryStore, warm: Bucket):
    rows = told(patient(hot, known=None, blind=True))
    assert rows[Check.IDENTITY].verdict is WARNING
    assert rows[Check.CLOCK].verdict is rows[Check.RIGHTS].verdict is UNKNOWN
    assert not {"told_ns", "probe", "change"} & hot.seam.calls.keys()
    rows = told(patient(warm, known=None, lost=True, blind=True))
    assert rows[Check.IDENTITY].verdict is rows[Check.RIGHTS].verdict is UNKNOWN
    assert rows[Check.CLOCK].verdict is OK, "a bucket is asked without a write"
    assert Check.VERSIONS not in rows


def test_what_can_only_be_read(hot: MemoryStore):
    rows = told(patient(hot, trash=None))
    assert rows[Check.CLOCK].verdict is UNKNOWN
    assert rows[Check.RIGHTS].verdict is OK
    assert Check.TRASH not in rows


@pytest.mark.parametrize(("seconds", "verdict"), [(600, FAILED), (-600, FAILED), (2, OK)])
def test_clock(hot: MemoryStore, seconds: int, verdict: Verdict):
    hot.clock = lambda: NOW + seconds * S
    row = told(patient(hot))[Check.CLOCK]
    assert row.verdict is verdict
    assert ("10m" if verdict is FAILED else "within 2s") in row.text


def test_rights(hot: MemoryStore, warm: Bucket):
    hot.probe = lambda: Powers(rename=False, conditional_delete=False, versioned=False)  # type: ignore[method-assign]
    assert told(patient(hot))[Check.RIGHTS].verdict is FAILED
    warm.powers = warm.powers._replace(conditional_delete=False)
    assert told(patient(warm))[Check.RIGHTS].verdict is WARNING


def test_versions_and_rules(warm: Bucket):
    warm.powers = warm.powers._replace(versioned=True)
    warm.found = [BucketRule("tidy", "ckpt/", "deletes objects after 30 days")]
    rows = told(patient(warm))
    assert rows[Check.VERSIONS].verdict is rows[Check.RULES].verdict is WARNING
    assert "'tidy' ('ckpt/*') deletes objects after 30 days" in rows[Check.RULES].text
    warm.fail("rules", 1, Denied("not with these rights"))
    assert told(patient(warm))[Check.RULES].verdict is UNKNOWN


@pytest.mark.parametrize(
    ("usage", "verdict"),
    [
        (Usage(1000, 50, None, None), OK),
        (Usage(1000, 49, 1000, 500), WARNING),
        (Usage(1000, 500, 1000, 9), FAILED),
        (Usage(1000, 500, 0, 0), OK),
        (Usage(None, None, None, None), UNKNOWN),
        (Usage(1000, 0, None, None), FAILED),
    ],
)
def test_room(usage: Usage, verdict: Verdict):
    assert room(usage)[0] is verdict


def test_owner_is_told_where_it_matters(hot: MemoryStore):
    found: Found = (WARNING, "somebody's", "")
    assert told(patient(hot, owner=lambda: found))[Check.OWNER].text == "somebody's"


def test_holds(hot: MemoryStore):
    MemoryTrash(hot).write_note("a", b"x")
    assert told(patient(hot))[Check.HOLDS].text.startswith("1 kept")
    hot.fail("notes", 1, StoreError("unreadable"))
    assert told(patient(hot))[Check.HOLDS].verdict is WARNING


@pytest.mark.parametrize(
    ("age_ns", "whole", "verdict", "text"),
    [
        (0, True, OK, "none due"),
        (2 * HOUR, True, OK, "1 due, the first since 1h"),
        (OVERDUE_NS + 2 * HOUR, True, WARNING, "the first since 7d1h"),
        (0, False, WARNING, "only in part"),
    ],
)
def test_trash(hot: MemoryStore, age_ns: int, whole: bool, verdict: Verdict, text: str):
    entry = Trashed("t", "r/step-1", Shape.FILE, (), "p", NOW - age_ns, 3600, 5, whole=True)
    hot.trash["t"] = MemoryEntry(entry, None)
    hot.trash["t"].purging = whole
    row = told(patient(hot))[Check.TRASH]
    assert row.verdict is verdict and text in row.text, row


# -- all of them


def test_one_that_hangs_or_breaks_hides_no_other(hot: MemoryStore):
    stuck, end = MemoryStore("stuck"), threading.Event()
    stuck.seam.at("usage", 1, lambda: (end.wait(20), None)[1])

    def broken() -> Patient:
        raise KeyError("secret")

    def refused() -> Patient:
        raise Refused("no such place", hint="look")

    openings: list[tuple[str, Callable[[], Patient]]] = [
        ("broken", broken), ("stuck", lambda: patient(stuck)), ("refused", refused), ("hot", lambda: patient(hot))
    ]  # fmt: skip
    try:
        rows = examine_all(openings, patience_s=0.5)
    finally:
        end.set()
    names = list(dict.fromkeys(row.subject for row in rows))
    assert names == ["store broken", "store stuck", "store refused", "store hot"]
    assert "secret" not in str(rows)
    assert {row.check for row in rows if row.subject == "store hot"} == told(patient(hot)).keys()
    last = [row for row in rows if row.subject == "store stuck"][-1]
    assert last.verdict is FAILED and "does not answer any more after `rights`" in last.text


def test_one_that_never_answers_at_all():
    end = threading.Event()

    def never() -> Patient:
        end.wait(20)
        raise Refused("too late")

    try:
        (row,) = examine_all([("gone", never)], patience_s=0.05)
    finally:
        end.set()
    assert row.text == "it does not answer any more"


@pytest.fixture(autouse=True)
def _no_thread_stays() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.daemon and thread.name.startswith("Thread-") and "_gather" in thread.name:
            thread.join(5)
