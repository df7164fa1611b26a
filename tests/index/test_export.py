"""An exported index says what the index says, from either kind of database; a hostile file is an error, no more."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lifecycle.core.model import Checkpoint, OnDangle, Pointer, PointerRole, Run, Shape
from lifecycle.core.policy import Last, Limits, Match, Name, Policy, Rules
from lifecycle.errors import ConfigInvalid, LifecycleError, Refused
from lifecycle.flows.compare import Snapshot, compare
from lifecycle.flows.shelves import Site
from lifecycle.index import exported
from lifecycle.index.export import Source, export
from lifecycle.index.exported import Exported, Facts, read_export
from lifecycle.index.hiding import LEFT_OUT, Hiding, undecidable
from lifecycle.index.open import Index
from lifecycle.ports import Reader, Trashed, Usage
from lifecycle.review.difference import Difference
from tests.index.scenes import STORE, S, hold, run_of, runs, scan

SOME = settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink whole pictures takes minutes and makes none small
)
NOW_NS = 10**6 * S
FACTS = Facts(made_at_ns=NOW_NS, engine="1", serial=1, stores=(STORE, "warm"))
KEY = b"k" * 32
OLD = (Policy("p", Match(), (Last(2),), limits=Limits(grace_s=0), digest="1"),)
NEW = (Policy("p", Match(), (Last(1),), limits=Limits(grace_s=0, trash_s=None), digest="2"),)
TRASHED = Trashed("t1", "run/x", Shape.DIR, (), "plan", 5 * S, 60, 100, True, 3)


def bare(c: Checkpoint) -> Checkpoint:
    return replace(c, fingerprint="", inode=0, proof=None, copy_id="", metrics_from=(), elsewhere=())


def lean(run: Run) -> Run:
    return replace(run, checkpoints=tuple(map(bare, run.checkpoints)), pointers=())


def told(reader: Reader) -> list[str]:
    """Every answer that a review asks for, without what only acts need; by repr, for NaN is never itself."""
    names = [STORE, "warm"]
    places = [(name, path) for name in names for path in reader.marks(name)]
    answers: list[object] = [
        reader.serial(), [(r.name, r.scanned_at_ns, r.checkpoints) for r in reader.stores().values()], places,
        list(map(lean, reader.runs(names))), [run.pace_ns for run in reader.runs(names)],
        [(at, list(map(bare, found))) for at, found in sorted(reader.copies(names).items())],
        [replace(p, text="") for p in reader.pointers(names)], [m[:2] for m in reader.missing(names)],
        [(reader.sample(n), reader.samples(n), reader.watched(n), reader.told(n)) for n in names],
        [(r := reader.run(*place)) and lean(r) for place in places],
    ]  # fmt: skip
    return list(map(repr, answers))


def exported_from(index: Index, path: Path, hiding: Hiding | None = None) -> Exported:
    facts = replace(FACTS, serial=index.reader.serial())
    source = Source(index.reader, facts, index.reader.holds(), {STORE: [TRASHED]})
    path.unlink(missing_ok=True)
    export(source, path, hiding)
    return read_export(path)


def difference(
    reader: Reader, old: tuple[Policy, ...] = OLD, new: tuple[Policy, ...] = NEW, days: int = 0
) -> Difference:
    rules = Rules((), (), 1800, "")
    snapshot = Snapshot(reader, rules, Site((STORE, "warm")), reader.holds(), {}, "here")
    return compare(snapshot, old, new, now_ns=NOW_NS, engine="1", days=days)


def decided(found: Difference) -> list[object]:
    return [
        [(c.fate, c.bytes, c.owner, c.month_micro, c.step) for c in found.changes],
        found.terms,
        [cover[1:] for cover in found.covers],
        found.old.totals,
        found.new.totals,
        found.dates,
        found.runs,
    ]


@SOME
@given(
    pictures=st.lists(st.lists(runs(homes=("", STORE)), max_size=3, unique_by=lambda r: r.path), min_size=1, max_size=2)
)
def test_an_export_answers_as_the_index(fresh: Callable[[], Index], tmp_path: Path, pictures: list[list[Run]]):
    index = fresh()
    for n, found in enumerate(pictures, 1):
        scan(index, found, at_s=n * 100, usage=Usage(9, 5, None, 7))
    exported_ = exported_from(index, tmp_path / "x.gz")
    assert told(exported_) == told(index.reader)
    there, here = difference(exported_), difference(index.reader)
    assert repr(there.changes) == repr(here.changes)
    assert decided(there) == decided(here)


def _rising(run: Run) -> Run:
    """No two at the same moment: which of equals goes is told by names, and other names tell otherwise."""
    return replace(
        run,
        checkpoints=tuple(replace(c, saved_at_ns=n * S, changed_at_ns=n * S) for n, c in enumerate(run.checkpoints, 1)),
    )


def a_site(index: Index) -> None:
    found = [_rising(run_of(f"proj/{name}", *"abcde")) for name in ("one", "two", "ann@lab")]
    pointer = Pointer(STORE, "proj/one", "proj/one/latest", PointerRole.LATEST, f"{STORE}:proj/one/a", "SECRETWORD a",
                      on_dangle=OnDangle.CRASH)  # fmt: skip
    found[0] = replace(found[0], pointers=(pointer,), flags=(("proj/one/s3://bob:hunter2@h/x", "odd"),))
    scan(index, found, usage=Usage(10**6, 10, 5, 5))
    index.writer.add_hold(hold(target=f"{STORE}:proj/two/a", owner="ada", reason="the paper of may"))


def lines(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode("ascii")


def test_the_same_index_is_the_same_file_and_nothing_is_overwritten(index: Index, tmp_path: Path):
    a_site(index)
    exported_from(index, tmp_path / "one.gz")
    exported_from(index, tmp_path / "two.gz")
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()
    with pytest.raises(ConfigInvalid, match="is there already"):
        export(Source(index.reader, FACTS, (), {}), tmp_path / "one.gz")


class Restless:
    """A reader of an index that somebody is writing to."""

    def __init__(self, reader: Reader, quiet: int) -> None:
        self.reader, self.quiet, self.count = reader, quiet, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.reader, name)

    def serial(self) -> int:
        self.count += 1
        return max(self.count, self.quiet)


def test_an_index_that_changes_meanwhile_is_neither_compared_nor_exported(index: Index, tmp_path: Path):
    a_site(index)
    reader: Any = None
    for quiet in (1, 2):  # once a plan and once at the end it is looked at
        reader = Restless(index.reader, quiet)
        with pytest.raises(LifecycleError) as caught:
            difference(reader)
        assert caught.value.code == "index_changed"
    difference(cast("Reader", Restless(index.reader, 3)))
    with pytest.raises(LifecycleError) as caught:
        export(Source(reader, FACTS, (), {}), tmp_path / "x.gz")
    assert caught.value.code == "index_changed"
    assert not list(tmp_path.glob("*x.gz")), "all of it or nothing"


def test_what_could_reach_a_store_is_not_in_it(index: Index, tmp_path: Path):
    a_site(index)
    exported_from(index, tmp_path / "x.gz")
    text = lines(tmp_path / "x.gz")
    for word in ("/mnt/hot", "disk-1", "hunter2", "bob", "SECRETWORD", "print of", "plan-1"):
        assert word not in text, word
    assert "proj/one" in text


def test_names_can_be_replaced_and_policies_cannot_tell(index: Index, tmp_path: Path):
    a_site(index)
    match = (Match(runs=(f"{STORE}:proj/t*",)), Match(runs=(f"{STORE}:proj/**",)))
    sides = [
        tuple(
            Policy(n, m, (Last(count), Name("b*")), limits=Limits(grace_s=0), digest=f"{n}{count}")
            for n, m in zip("pq", match, strict=True)
        )
        for count in (3, 1)
    ]
    plain = difference(index.reader, sides[0], sides[1])
    hiding = Hiding(sides[0], (), index.reader.runs([STORE]), KEY)
    hidden = exported_from(index, tmp_path / "x.gz", hiding)
    assert plain.of(*{c.fate for c in plain.changes})
    there = difference(hidden, sides[0], sides[1])
    assert [part[1:] for part in _by_fate(there)] == [part[1:] for part in _by_fate(plain)]
    assert decided(there)[1:] == decided(plain)[1:]
    text = lines(tmp_path / "x.gz")
    for word in ("ann@lab", "one", "ada", "paper"):
        assert word not in text, word
    assert "two" in text, "a pattern looks into this name"
    assert LEFT_OUT in text
    assert hiding.shown == 1
    assert undecidable([*sides[0], *sides[1]], hiding.hidden) == []


def _by_fate(found: Difference) -> list[tuple[str, int, int]]:
    return sorted((c.fate.value, c.bytes, 1) for c in found.changes)


def test_a_key_of_your_own_gives_the_same_names():
    made = [Hiding(OLD, (), [run_of("proj/one", "a")], key).path("proj/one") for key in (KEY, KEY, b"other" * 8)]
    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize(
    ("match", "keep", "group_by", "known"),
    [
        ((), (), None, True),
        ((f"{STORE}:**",), (), None, True),
        ((f"{STORE}:*/**",), (), None, True),
        ((f"{STORE}:proj/**",), (), None, True),
        ((f"{STORE}:proj/two",), (), None, False),
        ((f"{STORE}:proj/o*",), (), None, False),
        ((), (Name("a"),), None, False),
        ((), (), "^([a-z]+)", False),
    ],
)
def test_what_nobody_can_tell_of_replaced_names_is_said(
    match: tuple[str, ...], keep: tuple[Name, ...], group_by: str | None, known: bool
):
    there = [run_of(f"proj/{name}", *"ab") for name in ("one", "two")]
    base = Policy("p", Match(runs=(f"{STORE}:proj/**",)), (), digest="1")
    hidden = Hiding([base], (), there, KEY).hidden
    other = Policy("q", Match(runs=match), keep, group_by=group_by, digest="2")
    assert (undecidable([other], hidden) == []) is known
    assert undecidable([other], Hiding([base, other], (), there, KEY).hidden) == []


# -- files that are not what they seem


def packed(*rows: object) -> bytes:
    return gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode(), mtime=0)


HEAD = {
    "format": exported.FORMAT,
    "version": 1,
    "facts": {"made_at_ns": 1, "engine": "1", "serial": 1, "stores": ["hot"]},
}
DEEP = gzip.compress(b"[" * 100_000, mtime=0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"no gzip at all", "cannot be read"),
        (packed(HEAD)[:-9], "cannot be read|is cut short"),
        (packed(HEAD), "is cut short"),
        (packed(HEAD, ["end", 1]), "other rows than it says"),
        (packed(HEAD, ["end", 0], ["end", 0]), "other rows than it says"),
        (packed({"format": "another", "version": 1}), "no export of an index"),
        (packed({**HEAD, "version": "1"}), "no version that there is"),
        (packed({**HEAD, "facts": {}}), "is no facts"),
        (packed({**HEAD, "facts": {**HEAD["facts"], "more": 1}}), "is no facts"),  # type: ignore[dict-item]  # a table
        (packed(HEAD, ["rune", {}]), "no row of an export"),
        (packed(HEAD, ["run", {"store": "hot"}]), "is no run"),
        (packed(HEAD, ["path", ["hot"]]), "needs 2 values"),
        (packed(HEAD, ["path", ["hot", 7]]), "needs a text"),
        (packed(HEAD, ["gone", ["hot", "k", True]]), "needs a whole number"),
        (packed(HEAD, ["gone", ["hot", "k", 10**301]]), "needs a whole number"),
        (packed(HEAD, 7), "no row of an export"),
        (DEEP, "no row of an export"),
        (gzip.compress(b"9" * 5000, mtime=0), "no row of an export"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_export_is_an_error_with_its_line(tmp_path: Path, content: bytes, said: str):
    path = tmp_path / "x.gz"
    path.write_bytes(content)
    with pytest.raises(ConfigInvalid, match=said) as caught:
        read_export(path)
    assert caught.value.code == "export_unreadable"
    assert str(path) in str(caught.value)


def test_a_later_format_is_refused(tmp_path: Path):
    (tmp_path / "x.gz").write_bytes(packed({**HEAD, "version": 2, "facts": {"strange": 1}}))
    with pytest.raises(Refused, match="exported in format 2") as caught:
        read_export(tmp_path / "x.gz")
    assert caught.value.code == "export_newer"


def test_what_unfolds_without_end_is_not_unfolded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(exported, "LINE_MAX_BYTES", 10_000)
    (tmp_path / "x.gz").write_bytes(gzip.compress(bytes(10**8)))
    with pytest.raises(ConfigInvalid, match="larger than any export"):
        read_export(tmp_path / "x.gz")
    monkeypatch.setattr(exported, "TEXT_MAX_BYTES", 3000)
    (tmp_path / "x.gz").write_bytes(packed(HEAD, *[["path", ["hot", "x" * 100]]] * 100))
    with pytest.raises(ConfigInvalid, match="larger than any export"):
        read_export(tmp_path / "x.gz")


def test_a_pipe_or_nothing_is_no_export(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigInvalid):
        read_export(tmp_path / "pipe")
    with pytest.raises(ConfigInvalid, match="No such file"):
        read_export(tmp_path / "missing")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 2000), byte=st.integers(0, 255))
def test_one_changed_byte_is_an_error_or_another_export(tmp_path: Path, at: int, byte: int):
    text = bytearray(gzip.decompress(_packed_site()))
    text[at % len(text)] = byte
    path = tmp_path / "x.gz"
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as stream:
        stream.write(bytes(text))
    path.write_bytes(out.getvalue())
    with suppress(ConfigInvalid, Refused):
        read_export(path)


def _packed_site() -> bytes:
    c = {"store": "hot", "run": "r", "key": "r/a", "name": "a", "layout": "x", "shape": "dir", "evidence": "proven"}
    run = {"store": "hot", "path": "r", "checkpoints": [{**c, "metrics": [["loss", "nan"], ["acc", 1.5]]}]}
    level = ["hot", [[1, 2, None, 3], 4, 5, None], [], [0, []], [], None]
    return packed(HEAD, ["level", level], ["run", run], ["path", ["hot", "q"]], ["gone", ["hot", "k", 1]], ["end", 4])
