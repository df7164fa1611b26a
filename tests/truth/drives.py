"""What a storage has to take and to hold, how its drives stand that, and how NERSC reckoned it."""

from __future__ import annotations

import csv
from pathlib import Path

from lifecycle.sizing import endurance, storage
from lifecycle.sizing.endurance import Wear
from lifecycle.sizing.storage import GB
from tests.truth.answers import Inputs, answers

TB = 10**12
TRACES = Path(__file__).parent.parent / "data/capacity"
CORI_BYTES = 29_763_608_416_864 * 1024
"""Of Cori's scratch file system, by df; the notebooks of its study look at two years of it."""
FROM, TO = "2017-04-01", "2019-03-31"


def days(file: str, column: str, from_day: str = FROM, to_day: str = TO) -> list[float]:
    """A column of a trace, of the days between two."""
    with open(TRACES / file, newline="") as stream:
        rows = list(csv.DictReader(stream))
    when = next(iter(rows[0]))
    return [float(row[column]) for row in rows if from_day <= row[when][:10] <= to_day]


@answers("bandwidth", "ckpt_TB", "save_s")
def bandwidth_gbps(given: Inputs) -> float:
    return storage.needed_bps(given["ckpt_TB"] * TB, given["save_s"], most=1) / GB


@answers("seed", "ckpt_bytes", "interval_s", "fraction")
def needed_bps(given: Inputs) -> float:
    return storage.needed_bps(given["ckpt_bytes"], given["interval_s"], given["fraction"])


@answers("seed", "save_s", "interval_s", "fraction")
def meets_rule(given: Inputs) -> bool:
    return storage.meets_rule(given["save_s"], given["interval_s"], given["fraction"])


@answers("seed", "ckpt_bytes", "interval_s")
def written_a_day(given: Inputs) -> float:
    return storage.a_day(given["ckpt_bytes"], given["interval_s"])


@answers("seed", "scheme")
def scheme(given: Inputs) -> float:
    return endurance.redundancy(given["scheme"]).factor


@answers("redundancy", "k", "m")
def coded(given: Inputs) -> float:
    return endurance.redundancy(f"{given['k']}+{given['m']}").factor


@answers("capacity", "needed_TB", "usable_fraction")
def raw_tb(given: Inputs) -> float:
    return endurance.raw_needed(given["needed_TB"], 1, given["usable_fraction"])


@answers("capacity", "file", "from", "to", "positive_diffs_only")
def growth(given: Inputs) -> float:
    full = [percent / 100 for percent in days(given["file"], "ost_avg_full_pct", given["from"], given["to"])]
    return endurance.mean_growth(full, CORI_BYTES)


@answers("capacity", "ssi", "growth_Bpd", "purge_interval_d", "purge_fraction")
def capacity(given: Inputs) -> float:
    return endurance.capacity(given["ssi"], given["growth_Bpd"], given["purge_interval_d"], given["purge_fraction"])


@answers("endurance", "file", "fs_bytes")
def writes_a_day(given: Inputs) -> float:
    return endurance.writes_a_day(days(given["file"], "write_bytes"), given["fs_bytes"])


@answers("endurance", "ssi", "fswpd", "waf", "R_ref", "N_ref", "c_ref", "C_new")
def dwpd_needed(given: Inputs) -> float:
    raw = given["N_ref"] * given["c_ref"] * given["R_ref"]
    return endurance.dwpd_needed(given["ssi"], given["fswpd"], given["waf"], raw, given["C_new"])


@answers("endurance", "capacity_TB", "tbw_TB", "years")
def drive_writes(given: Inputs) -> float:
    return endurance.drive_writes(given["capacity_TB"], given["tbw_TB"], given["years"])


@answers("endurance", "daily_TB", "overhead", "rated_dwpd")
def least_raw_tb(given: Inputs) -> float:
    return Wear(given["daily_TB"], given["overhead"]).least_raw(given["rated_dwpd"])


@answers("endurance", "daily_TB", "overhead", "rated_dwpd", "raw_TB", "warranty_y")
def life_years(given: Inputs) -> float:
    wear = Wear(given["daily_TB"], given["overhead"])
    return wear.life_years(given["raw_TB"], given["rated_dwpd"], given["warranty_y"])
