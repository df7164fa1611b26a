"""Values that the index must keep: what any store could show, and plain ones to tell a story with."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from hypothesis import strategies as st

from lifecycle.core.action import Action
from lifecycle.core.model import (
    Checkpoint,
    Evidence,
    Hold,
    Kind,
    OnDangle,
    Pointer,
    PointerRole,
    Run,
    Shape,
)
from lifecycle.index.open import Index, open_index
from lifecycle.ports import Memory, RunMark, ScanResult, Usage
from lifecycle.review.regret import How, Release, Sign, Wanted, Way
from lifecycle.sizing.records import Scope, Told

S = 1_000_000_000
STORE = "hot"
URL = "file:///mnt/hot"

HUGE = st.one_of(st.integers(-(2**70), 2**70), st.sampled_from([2**63 - 1, 2**63, -(2**63), 2**64 - 1]))
NAMES = st.binary(max_size=12).map(lambda b: b.replace(b"/", b"").decode("utf-8", "surrogateescape"))
WORDS = st.text(st.characters(codec="utf-8"), max_size=12) | NAMES
PAIRS = st.lists(st.tuples(WORDS, HUGE), max_size=2).map(tuple)


@st.composite
def checkpoints(draw: st.DrawFn, key: str, run: str = "run", home: str = "") -> Checkpoint:
    metrics = draw(st.lists(st.tuples(WORDS, st.floats() | HUGE), max_size=2).map(tuple))
    return Checkpoint(
        store=STORE,
        run=run,
        key=key,
        name=draw(NAMES),
        layout=draw(WORDS),
        shape=draw(st.sampled_from(Shape)),
        evidence=draw(st.sampled_from(Evidence)),
        kind=draw(st.sampled_from(Kind)),
        step=draw(st.none() | HUGE),
        epoch=draw(st.none() | st.floats().map(lambda x: x + 0.0)),  # a column keeps no minus of zero
        saved_at_ns=draw(HUGE),
        changed_at_ns=draw(HUGE),
        bytes=draw(HUGE),
        files=draw(HUGE),
        shared_bytes=draw(HUGE),
        fingerprint=draw(WORDS),
        inode=draw(HUGE),
        owner=draw(st.none() | HUGE),
        members=draw(st.lists(NAMES, max_size=3).map(tuple)),
        proof=draw(st.none() | NAMES),
        why=draw(WORDS),
        metrics=metrics,
        metrics_from=draw(st.just(()) | st.tuples(*[NAMES.filter(bool)] * len(metrics))),
        tags=draw(st.lists(st.tuples(WORDS, WORDS), max_size=2).map(tuple)),
        parts=draw(PAIRS),
        needs=draw(st.lists(NAMES, max_size=2).map(tuple)),
        flags=draw(st.lists(WORDS, max_size=2).map(tuple)),
        online=draw(st.booleans()),
        home=home,
        copy_id=draw(WORDS) if home else "",
    )


@st.composite
def pointers(draw: st.DrawFn, run: str) -> Pointer:
    return Pointer(
        STORE,
        run,
        draw(NAMES),
        draw(st.sampled_from(PointerRole)),
        draw(st.none() | NAMES),
        draw(WORDS),
        draw(WORDS),
        draw(st.sampled_from(OnDangle)),
        draw(st.lists(WORDS, max_size=2).map(tuple)),
    )


@st.composite
def runs(draw: st.DrawFn, homes: tuple[str, ...] = ("",)) -> Run:
    """What one run may be; ``homes`` are drawn from, and only where there are some is anything a copy."""
    at = draw(NAMES)
    keys = draw(st.lists(NAMES, max_size=4, unique=True))
    return Run(
        store=STORE,
        path=at,
        checkpoints=tuple(
            draw(checkpoints(f"{at}/{key}", at, draw(st.sampled_from(homes)))) for key in sorted(keys, key=encoded)
        ),
        pointers=draw(st.lists(pointers(at), max_size=2).map(tuple)),
        active_at_ns=draw(HUGE),
        complete=draw(st.booleans()),
        holds=draw(st.lists(NAMES, max_size=2).map(tuple)),
        leases=draw(PAIRS),
        writing=draw(PAIRS),
        flags=draw(st.lists(st.tuples(NAMES, WORDS), max_size=2).map(tuple)),
    )


def encoded(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")


def checkpoint(key: str, **changes: object) -> Checkpoint:
    """A whole checkpoint whose inode and fingerprint follow from its key."""
    run, _, name = key.rpartition("/")
    inode = int.from_bytes(hashlib.sha256(encoded(key)).digest()[:4], "big") + 1
    plain = Checkpoint(
        store=STORE,
        run=run,
        key=key,
        name=name,
        layout="demo",
        shape=Shape.DIR,
        evidence=Evidence.PROVEN,
        saved_at_ns=5 * S,
        changed_at_ns=5 * S,
        bytes=1000,
        files=3,
        fingerprint=f"print of {name}",
        inode=inode,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # fields by name


def run_of(path: str, *names: str, **changes: object) -> Run:
    plain = Run(STORE, path, tuple(checkpoint(f"{path}/{name}") for name in names))
    return replace(plain, **changes)  # type: ignore[arg-type]  # fields by name


MEMORY = Memory(("a", "\udcff"), "stamps")


def mark_of(run: Run) -> RunMark:
    return RunMark(hashlib.sha256(repr(run).encode("utf-8", "backslashreplace")).hexdigest(), MEMORY)


def scan(
    index: Index,
    found: Iterable[Run],
    *,
    at_s: int = 100,
    complete: bool = True,
    seen: Iterable[str] = (),
    store: str = STORE,
    usage: Usage | None = None,
) -> ScanResult:
    """A whole scan that starts at ``at_s`` and takes a second."""
    number = index.writer.open_scan(store, URL, "disk-1", at_s * S)
    for run in found:
        index.writer.save_run(number, run, mark_of(run))
    return index.writer.close_scan(number, complete=complete, seen=seen, usage=usage, ended_at_ns=(at_s + 1) * S)


def keys(index: Index, store: str = STORE) -> list[str]:
    return [c.key for run in index.reader.runs([store]) for c in run.checkpoints]


def action_on(c: Checkpoint) -> Action:
    return Action.upon(c, trash_s=3600, policies=("p",), floor=("run/z",))


def start(index: Index, c: Checkpoint, fence: int, *, plan: str = "plan-1", at_s: int = 200) -> int:
    return index.journal.start(
        plan=plan,
        trash_id="t-1",
        action=action_on(c),
        now_ns=at_s * S,
        fence=fence,
        host="box",
        engine="0.1.0",
    )


def hold(name: str = "h1", **changes: object) -> Hold:
    plain = Hold(name, "hot:run/a", "ada", "paper", 7 * S)
    return replace(plain, **changes)  # type: ignore[arg-type]  # fields by name


def forbid_writes(index: Index) -> None:
    """From now on a change of any row of facts fails."""
    on_server = index.database.engine.dialect.name == "postgresql"
    raising = "EXECUTE FUNCTION refuse()" if on_server else "BEGIN SELECT RAISE(ABORT, 'written'); END"
    with index.database.write() as connection:
        if on_server:
            connection.exec_driver_sql(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'written'; END $$"
            )
        for table in ("runs", "checkpoints", "copies"):
            for verb in ("INSERT", "UPDATE", "DELETE"):
                each = "FOR EACH ROW " if on_server else ""
                connection.exec_driver_sql(f"CREATE TRIGGER {table}_{verb} AFTER {verb} ON {table} {each}{raising}")


def content(index: Index) -> dict[str, list[tuple[object, ...]]]:
    """All that the tables of facts hold, without numbers that depend on the order of arrival."""
    queries = {
        "runs": "SELECT path, present, complete, digest, facts, memory FROM runs ORDER BY path",
        "copies": "SELECT c.key, c.state, c.since_ns, c.fingerprint, c.bytes, c.inode, k.name, k.odd, r.path "
        "FROM copies c JOIN checkpoints k ON k.id = c.checkpoint_id JOIN runs r ON r.id = k.run_id ORDER BY c.key",
        "stores": "SELECT name, url, identity, scanned_at_ns FROM stores ORDER BY name",
    }
    with index.database.read() as connection:
        return {name: [tuple(row) for row in connection.exec_driver_sql(query)] for name, query in queries.items()}


def fill(url: str) -> None:
    """Make an index there, with something in every table."""
    with open_index(url, create=True) as index:
        scan(index, [run_of("run", "a", "b"), run_of("other", "x")], usage=Usage(10, 5, 100, 50))
        index.writer.add_hold(hold())
        index.writer.add_wanted(Wanted(Sign.UNDO, S, Release("one", "hot:run/a", 0, How.DROPPED, 1), Way.BACK))
        index.writer.add_told([Told(STORE, S, 86_400, 7, Scope.USED, 1, 2, 3)])
        with index.journal.lease("one", 0, S) as fence:
            start(index, checkpoint("run/a"), fence)
