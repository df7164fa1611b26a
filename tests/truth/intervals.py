"""How often to save, what that wastes, how often training is interrupted, and what standing still costs."""

from __future__ import annotations

from lifecycle.sizing import failures, interval, modes, storage, waste
from lifecycle.sizing.failures import HOUR_S
from lifecycle.sizing.storage import GB
from lifecycle.sizing.waste import Counting, Saving
from tests.truth.answers import Inputs, answers

GIB = 2**30


@answers("interval", "delta_min", "mtbf_min", named="^daly")
def daly(given: Inputs) -> float:
    return interval.daly(given["delta_min"], given["mtbf_min"])


@answers("interval", "delta_min", "mtbf_min", named="^young")
def young(given: Inputs) -> float:
    return interval.young(given["delta_min"], given["mtbf_min"])


@answers("interval", "delta_min", "mtbf_min", named="^exact")
def exact(given: Inputs) -> float:
    return interval.exact(given["delta_min"], given["mtbf_min"])


@answers("interval", "save_s", "restart_s", "mtbf_s")
def saxena(given: Inputs) -> float:
    return interval.saxena(given["save_s"], given["mtbf_s"], given["restart_s"])


@answers("interval", "lambda_per_s", "cost_s")
def overhead_of_levels(given: Inputs) -> float:
    pairs = zip(given["lambda_per_s"], given["cost_s"], strict=True)
    return interval.levels([interval.Level(*pair) for pair in pairs]).overhead


def saving_of(given: Inputs) -> Saving:
    restart_s = given["restart_s"] + given.get("reload_s", 0)
    return Saving(given["save_s"], restart_s, given["mtbf_s"])


@answers("seed", "save_s", "interval_s", "mtbf_s", "restart_s", "reload_s")
def wasted_percent(given: Inputs) -> float:
    return 100 * waste.first_order(saving_of(given), given["interval_s"])


@answers("seed", "waste_pct", "save_s", "interval_s")
def overhead_without_save(given: Inputs) -> float:
    return float(given["waste_pct"] - 100 * storage.share(given["save_s"], given["interval_s"]))


@answers("seed", "save_s", "mtbf_s")
def best_s(given: Inputs) -> float:
    return waste.best(Saving(given["save_s"], 0, given["mtbf_s"]), Counting.FIRST_ORDER)


@answers("seed", "save_s", "mtbf_s", "restart_s", "reload_s")
def wasted_at_best(given: Inputs) -> float:
    saving = saving_of(given)
    return 100 * waste.first_order(saving, waste.best(saving, Counting.FIRST_ORDER))


@answers("waste", "compute_s", "save_s", "restart_s", "mtbf_s")
def wasted_in_all(given: Inputs) -> float:
    return waste.complete(saving_of(given), given["compute_s"] + given["save_s"])


@answers("waste", "nodes", "r_f_per_node_day", "restart_min", "interval_min", "write_min")
def training_ratio(given: Inputs) -> float:
    saving = Saving(given["write_min"] * 60, given["restart_min"] * 60, mtbf_h(given) * HOUR_S)
    return waste.training_ratio(saving, given["interval_min"] * 60)


@answers("waste", "stall_s", "interval_s")
def stalled_percent(given: Inputs) -> float:
    return 100 * storage.share(given["stall_s"], given["interval_s"])


@answers("waste", "save_s", "interval_h")
def saving_percent(given: Inputs) -> float:
    return 100 * storage.share(given["save_s"], given["interval_h"] * HOUR_S)


@answers("waste", "gpus", "model")
def stall_measured(given: Inputs) -> float:
    [found] = [each for each in modes.STALLS if f"{given['gpus']:,}" in each.source]
    return found.stall_s


@answers("waste", "ckpt_GB", "bw_GBps")
def stall_s(given: Inputs) -> float:
    return storage.write_s(given["ckpt_GB"] * GB, given["bw_GBps"] * GB)


@answers("seed", "ckpt_bytes", "write_bw_Bps")
def save_s(given: Inputs) -> float:
    return storage.write_s(given["ckpt_bytes"], given["write_bw_Bps"])


@answers("failure", "nodes", "r_f_per_node_day")
def mtbf_h(given: Inputs) -> float:
    return failures.node_rate(given["r_f_per_node_day"], gpus_a_node=8) / (8 * given["nodes"])


@answers("failure", "accel_mttf_h", "accelerators")
def mtbf_of_parts_h(given: Inputs) -> float:
    assert given["accel_mttf_h"] == failures.RATES["generic"].gpu_hours
    return failures.RATES["generic"].mtbf_s(given["accelerators"]) / HOUR_S


@answers("seed", "interruptions", "days", named="per_day")
def interruptions_a_day(given: Inputs) -> float:
    return 24 / failures.counted(1, given["days"], given["interruptions"])


@answers("seed", "interruptions", "days", named="mtbf")
def mtbf_of_job_h(given: Inputs) -> float:
    return failures.counted(1, given["days"], given["interruptions"])


@answers("seed", "interruptions", "days", "ref_gpus", "gpus", named="mtbf")
def mtbf_scaled_h(given: Inputs) -> float:
    assert failures.counted(given["ref_gpus"], given["days"], given["interruptions"]) == (
        failures.RATES["llama3"].gpu_hours
    )
    return failures.RATES["llama3"].mtbf_s(given["gpus"]) / HOUR_S


@answers("cost", "stall_s", "saves", "gpus", "usd_per_gpu_h")
def standing_still(given: Inputs) -> float:
    return float(waste.gpu_hours(given["stall_s"] * given["saves"], given["gpus"]) * given["usd_per_gpu_h"])


@answers("cost", "params", "bytes_per_param", "bw_GiBps", "saves", "gpus", "usd_per_gpu_h")
def standing_still_for_a_model(given: Inputs) -> float:
    stall = storage.write_s(given["params"] * given["bytes_per_param"], given["bw_GiBps"] * GIB)
    return standing_still({**given, "stall_s": stall})
