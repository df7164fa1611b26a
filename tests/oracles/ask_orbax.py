"""Asks Orbax's preservation policies; runs in a Python that has orbax-checkpoint and knows nothing of ours.

Questions come as JSON on standard input, answers go out as JSON. Nothing of Orbax is replaced but its clock.
"""

import datetime as real
import importlib
import importlib.metadata
import json
import sys
from types import SimpleNamespace

UTC = real.timezone.utc  # noqa: UP017  # this file also runs in Pythons older than ours


def policy_of(part, pp):
    """One of Orbax's policies for a part."""
    match part:
        case ["latest", n]:
            return pp.LatestN(n)
        case ["duration", seconds]:
            return pp.LatestDuration(real.timedelta(seconds=seconds))
        case ["steps", n, exact, most]:
            return pp.EveryNSteps(n, exact, most)
        case ["closest", n, most]:
            return pp.EveryNStepsClosest(n, most)
        case ["seconds", n]:
            return pp.EveryNSeconds(n)
        case ["best", n, smallest, keep_missing]:
            # What is sorted last is kept: with reverse the smallest.
            return pp.BestN(
                get_metric_fn=lambda m: m["loss"], reverse=smallest, n=n, keep_checkpoints_without_metrics=keep_missing
            )
        case ["custom", steps]:
            return pp.CustomSteps(steps)
        case _:
            raise ValueError(part)


def answer(question, pp):
    """Which saves Orbax preserves, one letter each."""
    source = sys.modules[pp.LatestN.__module__]

    class Clock(real.datetime):
        @classmethod
        def now(cls, tz=None):
            return real.datetime.fromtimestamp(question["now_s"], tz)

    vars(source)["datetime"] = SimpleNamespace(datetime=Clock, timedelta=real.timedelta, timezone=real.timezone)
    infos = [
        SimpleNamespace(
            step=step,
            time=real.datetime.fromtimestamp(at, UTC),
            metrics=None if loss is None else {"loss": float(loss)},
        )
        for step, at, loss in zip(question["steps"], question["times_s"], question["loss"], strict=True)
    ]
    policies = [policy_of(part, pp) for part in question["policy"]]
    whole = policies[0] if len(policies) == 1 else pp.AnyPreservationPolicy(policies)
    found = whole.should_preserve(infos, context=pp.PreservationContext())
    return "".join("k" if one else "." for one in found)


def main():
    """Answer all questions of standard input."""
    pp = importlib.import_module("orbax.checkpoint.checkpoint_managers").preservation_policy
    version = "orbax-checkpoint " + importlib.metadata.version("orbax-checkpoint")
    answers = [answer(question, pp) for question in json.load(sys.stdin)]
    json.dump({"version": version, "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()
