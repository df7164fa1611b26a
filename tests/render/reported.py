"""A report of a site as there are some: every kind of section, with names that people give to runs."""

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import cycle

from lifecycle.render.charts import Fill, Written, occupancy, written
from lifecycle.render.document import Chart, Column, Document, Section, Table, Unit, Value

DAY_NS = 86_400 * 10**9
NOW_NS = 1_796_040_000 * 10**9
"""2026-11-30, 10:40 in UTC."""
DONE = "In the last 30 days 2,204 checkpoints were deleted and 310 were moved."
SAVED = "Policies save EUR 41,200 a month against keeping everything: an estimate by the price list of 2026-10-01."
FILL = "What each place will hold; the band holds in 80 of 100 cases, the dashed line is its capacity"
RUNS = ("pretrain/moe-8x22b/stage2", "sft/chat-v7/seed-3", "rlhf/ppo-140b", "ablations/lr-sweep-04/lr=3e-4,wd=0.1")
OWNERS = ("amina", "bo.lindqvist", "research-platform", None)


def checkpoints(count: int) -> Iterator[tuple[str, str | None, int, int]]:
    """(name, owner, bytes, saved), no two alike."""
    for at, run, owner in zip(range(count), cycle(RUNS), cycle(OWNERS), strict=False):
        step = 500 * (count - at)
        yield f"hot:{run}/checkpoint-{step}", owner, (at * 7919 % 997 + 1) * 10**9, NOW_NS - at * DAY_NS // 3


def table(name: str, title: str, columns: tuple[Column, ...], *rows: tuple[Value, ...], empty: str = "None.") -> Table:
    return Table(name, title, columns, rows, empty)


def section(name: str, title: str, *sentences: str, tables: tuple[Table, ...] = (), chart: Chart | None = None):
    return Section(name, title, sentences, (chart,) if chart else (), tables)


def report(rows: int = 40) -> Document:
    """Of so many checkpoints that go next."""
    checkpoint, size = Column("checkpoint", "Checkpoint"), Column("bytes", "Size", Unit.BYTES)
    owner, run, why = Column("owner", "Owner"), Column("run", "Run"), Column("why", "Why")
    day = date(2026, 11, 30)
    fills = [
        Fill(day + timedelta(days), place, base + slope * days * 0.8, base + slope * days, base + slope * days * 1.3)
        for place, base, slope in (("hot", 61e12, 0.55e12), ("warm", 200e12, 0.3e12))
        for days in range(0, 91, 3)
    ]
    writes = [
        Written(day - timedelta(days), place, size * (1 + days % 5 / 4))
        for place, size in (("hot", 2.1e12), ("warm", 0.6e12))
        for days in range(30)
    ]
    going = [
        (name, f"hot:{name[4:].rpartition('/')[0]}", who, many, at, NOW_NS + (at * 7 % 30) * DAY_NS, why_it)
        for (name, who, many, at), why_it in zip(
            checkpoints(rows), cycle(("no keep rule holds it", "older than 14d (policy pretrain)")), strict=False
        )
    ]
    stores = table(
        "stores",
        "Stores by tier",
        (
            Column("store", "Store"),
            Column("tier", "Tier"),
            Column("part", "Full", Unit.PART),
            Column("used", "Used", Unit.BYTES),
            Column("size", "Holds", Unit.BYTES),
            Column("count", "Checkpoints", Unit.COUNT),
            Column("full", "Full on", Unit.TIME_NS),
            Column("cost", "Cost a month", Unit.MONEY),
            Column("scanned", "Scanned", Unit.TIME_NS),
        ),
        ("hot", "nvme", 0.871, 61 * 10**12, 70 * 10**12, 18_204, NOW_NS + 16 * DAY_NS, 9_872_110_000, NOW_NS - 10**12),
        ("warm", "lustre", 0.5, 200 * 10**12, 400 * 10**12, 91_332, None, 4_000_000_000, NOW_NS - 10**13),
        ("cold", "archive", None, 1310 * 10**12, None, 402_118, None, 1_310_000_000, NOW_NS - 10**14),
    )
    shares = [
        table(
            name,
            f"Bytes by {name}",
            (Column(name, name.capitalize()), size, Column("part", "Part of all", Unit.PART)),
            *((value, 10**12 * (9 - at), (9 - at) / 45) for at, value in enumerate(values)),
        )
        for name, values in (("owner", OWNERS), ("run", RUNS), ("rule", ("last: 5", "best: 3", "every: 10000 steps")))
    ]
    return Document(
        "Where the checkpoints of cluster-eu1 are, and why",
        NOW_NS,
        "EUR",
        (
            "The store hot is 87.1 % full and will be full around 16 December 2026.",
            f"{rows:,} checkpoints go next; the first of them on 1 December 2026, which frees 19.2 TB.",
            "3 copies failed their verification: somebody should look at them today.",
        ),
        (
            section(
                "summary",
                "Summary",
                "Policies keep 511,654 checkpoints (1.57 PB) of 214 runs of 31 people.",
                tables=(
                    table(
                        "summary",
                        "In numbers",
                        (
                            Column("what", "What"),
                            Column("count", "Number", Unit.COUNT),
                            size,
                            Column("cost", "Cost a month", Unit.MONEY),
                        ),
                        ("Checkpoints that stay", 511_654, 1571 * 10**12, 15_182_110_000),
                        ("Checkpoints that go next", rows, 19_200 * 10**9, 1_204_500_000),
                        ("Copies that failed their verification", 3, 4_100 * 10**9, None),
                    ),
                ),
            ),
            section(
                "stores",
                "Stores: fill and forecast",
                "hot fills faster than it did a month ago.",
                chart=Chart(
                    "fill",
                    FILL,
                    occupancy(fills, {"hot": 70 * 10**12, "warm": 400 * 10**12}),
                    "hot will be full around 16 December 2026, warm not within 90 days.",
                ),
                tables=(stores,),
            ),
            section(
                "next",
                "Goes next, and when",
                tables=(
                    Table(
                        "next",
                        "Goes next, and when",
                        (
                            checkpoint,
                            run,
                            owner,
                            size,
                            Column("saved", "Saved", Unit.TIME_NS),
                            Column("due", "Goes on", Unit.TIME_NS),
                            why,
                        ),
                        tuple(going),
                        "Nothing goes.",
                        1_200,
                    ),
                ),
            ),
            section(
                "done",
                "Done and freed",
                DONE,
                chart=Chart(
                    "written",
                    "What is written a day",
                    written(writes),
                    "About 2.9 TB a day to hot and 0.9 TB to warm, with no day above 6 TB.",
                ),
                tables=(
                    table(
                        "done",
                        "Done in the last 30 days",
                        (
                            Column("what", "What"),
                            Column("count", "Number", Unit.COUNT),
                            Column("freed", "Freed", Unit.BYTES),
                            Column("took", "Took", Unit.SPAN_NS),
                        ),
                        ("Deleted", 2_204, 88 * 10**12, 7_400 * 10**9),
                        ("Moved to cold", 310, 41 * 10**12, 2 * DAY_NS),
                        ("Thinned", 0, 0, None),
                    ),
                ),
            ),
            section("savings", "Savings", SAVED),
            section("bytes", "Bytes by owner, run and rule", tables=tuple(shares)),
            section(
                "unmanaged",
                "Unmanaged and doubtful",
                "Nobody's policy applies to these.",
                tables=(
                    table(
                        "unmanaged",
                        "Unmanaged",
                        (Column("path", "Path"), size, why),
                        ("hot:scratch/old-experiments (do not touch)", 12 * 10**12, "no policy applies"),
                        (
                            "hot:tmp/\u202egpj.exe<img src=x onerror=alert(1)>",
                            None,
                            "its name holds marks that turn text around",
                        ),
                    ),
                ),
            ),
            section(
                "holds",
                "Stale holds",
                tables=(
                    table(
                        "holds",
                        "Stale holds",
                        (
                            Column("hold", "Hold"),
                            owner,
                            Column("since", "Held for", Unit.SPAN_NS),
                            size,
                            Column("reason", "Reason"),
                        ),
                        ("h-0192", "amina", 412 * DAY_NS, 3 * 10**12, "paper deadline"),
                        ("h-0007", None, 800 * DAY_NS, 9 * 10**11, "ask Bo before"),
                    ),
                ),
            ),
            section(
                "verifies",
                "Failed verifies",
                tables=(
                    table(
                        "verifies",
                        "Failed verifies",
                        (
                            checkpoint,
                            Column("store", "Store"),
                            Column("at", "Found", Unit.TIME_NS),
                            Column("what", "What"),
                        ),
                        *(
                            (name, "cold", at, "2 of 64 files differ from their checksums")
                            for name, _, _, at in checkpoints(3)
                        ),
                    ),
                ),
            ),
            section(
                "copies",
                "Copies below the minimum",
                tables=(
                    table(
                        "copies",
                        "Copies below the minimum",
                        (checkpoint,),
                        empty="Every checkpoint has as many copies as its policy asks for.",
                    ),
                ),
            ),
            section(
                "uploads",
                "Orphaned uploads",
                tables=(table("uploads", "Orphaned uploads", (checkpoint,), empty="No upload was begun and left."),),
            ),
            section(
                "dead",
                "Dead runs",
                "A run is dead when nothing of it was written for as long as its policy says.",
                tables=(
                    table(
                        "dead",
                        "Dead runs",
                        (run, owner, Column("last", "Last written", Unit.TIME_NS), size),
                        *(
                            (f"hot:{name}", who, NOW_NS - (at + 40) * DAY_NS, (at + 1) * 10**12)
                            for at, (name, who) in enumerate(zip(RUNS, OWNERS, strict=True))
                        ),
                    ),
                ),
            ),
            section(
                "findings",
                "Findings",
                tables=(
                    table(
                        "findings",
                        "Findings",
                        (
                            Column("severity", "Severity"),
                            Column("code", "Code"),
                            Column("subject", "Where"),
                            Column("text", "What"),
                        ),
                        *(
                            (
                                "warning",
                                "scan.stale",
                                f"hot:{name}",
                                "it was last listed 9 days ago, and only listed things are judged",
                            )
                            for name in RUNS
                        ),
                    ),
                ),
            ),
            section(
                "wanted",
                "Wanted again, by rule",
                "Of what was deleted, this was asked for again within 30 days.",
                tables=(
                    table(
                        "wanted",
                        "Wanted again",
                        (
                            Column("rule", "Rule"),
                            Column("gone", "Deleted", Unit.COUNT),
                            Column("back", "Wanted again", Unit.COUNT),
                            Column("part", "Part", Unit.PART),
                        ),
                        ("last: 5 (policy pretrain)", 1204, 2, 2 / 1204),
                        ("every: 10000 steps (policy sft)", 388, 0, 0.0),
                    ),
                ),
            ),
        ),
    )
