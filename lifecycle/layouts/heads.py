"""Whose run a name speaks of: what is left of it when roles, the counts of saves and the values of metrics are gone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from lifecycle.layouts.metrics import PAIR

COUNTING = """
ba batch batches checkpoint checkpoints checkpt chk chkpt ck ckpt ckpts cp ep epoch epochs iter iteration iterations
iters itr samples step steps top
"""
COUNTERS = frozenset(COUNTING.split())
"""What numbers the saves of one run. Numbers after any other word are a part of the name: ``model1``, ``gpt-2``."""
BEING = """
autosave backup best daily emergency end exception final highest hourly hpc interrupted last latest lowest newest
periodic recovery regular resume top
"""
ROLES = frozenset(BEING.split())
"""Words that say what one checkpoint is to its run, whatever the others of the run are called."""
BESIDE_ROLES = frozenset(["model", "on", "weights"])
"""Nobody's name next to a role (``best_model``, ``on_exception``), and a name elsewhere."""
MEASURED = """
acc accuracy auc auroc bleu cer err error f1 fid iou loss mae map metric miou mse perplexity ppl precision psnr r2
recall return reward rmse rouge score ssim wer
"""
METRICS = frozenset(MEASURED.split())
"""What is measured: only before its value (``loss=0.3``, ``loss0.31``) or after a role (``best_loss``)."""
SPLITS = frozenset(["dev", "eval", "test", "train", "valid", "val", "validation"])
"""On what it is measured: only before a metric."""
OF_KEYS = SPLITS | frozenset(["average", "avg", "consumed", "global", "max", "mean", "min", "total", "training"])
"""What precedes a metric or a counter in the key of a pair."""
BETWEEN = "arch bs fold lr model name run seed size trial version wd"
TELLING = frozenset(BETWEEN.split())
"""Keys of pairs whose values differ between runs and not between the saves of one."""
PARTING = re.compile(r"(?:[\s\-_=+~,:;()\[\]{}@#/]|(?<!\d)\.|\.(?!\d))+|(?<=[a-z])(?=[A-Z])")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
NUMBERED = re.compile(r"([A-Za-z]+)(\d+(?:\.\d+)?)", re.ASCII)

Head = tuple[str, ...]


@lru_cache(maxsize=2048)
def head_of(text: str, telling: frozenset[str] = frozenset()) -> Head:
    """The words of a name that are nobody's but its run's; () where there are none.

    In doubt a word is a name: what two names wrongly keep apart is kept. Of ``key=number`` pairs the number counts
    where the key is one that tells runs apart, by itself or as ``telling`` says for this directory.
    """
    found: list[str] = []
    at = 0
    for pair in PAIR.finditer(text):
        found += free(words_of(text[at : pair.start()]), counted=at > 0)
        found += keyed(words_of(pair["key"]))
        if tells(pair["key"]) or pair["key"] in telling:
            found.append(pair["value"])
        at = pair.end()
    return (*found, *free(words_of(text[at:]), counted=at > 0))


def words_of(text: str) -> list[str]:
    """The words and numbers of a text; a fraction is one number."""
    return [word for word in PARTING.split(text) if word]


def tells(key: str) -> bool:
    """Whether the numbers under a key tell runs apart wherever it is found."""
    return (words_of(key) or [""])[-1].lower() in TELLING


def free(words: Sequence[str], *, counted: bool = False) -> list[str]:
    """The names among words outside of pairs; ``counted`` says that a number before them was a count."""
    found: list[str] = []
    valued = counted
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if NUMBER.fullmatch(word):
            if not (counted or (valued and "." in word)):
                found.append(word)
            continue
        low, (stem, digits) = word.lower(), parts_of(word)
        counted = stem in COUNTERS and not (low in ROLES and not followed_by_number(rest))
        valued = counted or low in ROLES or is_value(stem, digits or (rest[0] if rest else ""))
        if low in ROLES and not counted:
            if found and found[-1].lower() in BESIDE_ROLES:
                found.pop()
            del rest[: beside_role(rest)]
        elif valued and not counted:
            while found and found[-1].lower() in SPLITS:
                found.pop()
        elif not counted and not (low == "global" and rest and rest[0].lower().startswith("step")):
            found.append(word)
    return found


def parts_of(word: str) -> tuple[str, str]:
    """The letters of a word in lower case, and the number that it ends with."""
    numbered = NUMBERED.fullmatch(word)
    whole = word.lower()
    return (whole, "") if numbered is None or whole in METRICS else (numbered[1].lower(), numbered[2])


def followed_by_number(rest: Sequence[str]) -> bool:
    """Whether a number comes next."""
    return bool(rest) and NUMBER.fullmatch(rest[0]) is not None


def is_value(stem: str, number: str) -> bool:
    """Whether this is a metric with its value: a fraction, for ``loss1`` and ``loss2`` are two names."""
    return stem in METRICS and "." in number and NUMBER.fullmatch(number) is not None


def beside_role(rest: Sequence[str]) -> int:
    """How many words after a role say only of what it is, or by which metric."""
    first, second = (*(word.lower() for word in rest[:2]), "", "")[:2]
    if first in SPLITS and second in METRICS:
        return 2
    return int(first in METRICS or first in BESIDE_ROLES)


def keyed(words: Sequence[str]) -> list[str]:
    """The names in the key of a pair: ``mean_loss`` has none, and ``mean_epoch`` one."""
    if not words:
        return []
    last, rest = words[-1], list(words[:-1])
    if last.lower() in COUNTERS:
        while rest and rest[-1].lower() in ("global", "consumed"):
            rest.pop()
        return free(rest)
    while rest and rest[-1].lower() in OF_KEYS | METRICS:
        rest.pop()
    return [*free(rest), *([] if is_metric(last) else [last])]


def is_metric(word: str) -> bool:
    """Whether the last word of a key names a metric; ``acc1`` and ``acc5`` do."""
    return word.lower() in METRICS or parts_of(word)[0] in METRICS


def unknown_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of a name that may be metrics or settings of the run: nothing but their values tells."""
    for pair in PAIR.finditer(text):
        last = (words_of(pair["key"]) or [""])[-1]
        if last.lower() not in COUNTERS and not is_metric(last) and not tells(pair["key"]):
            yield pair["key"], pair["value"]


@lru_cache(maxsize=2048)
def is_role(text: str) -> bool:
    """Whether a name says what it is to its run, so that any run may have one beside its own names."""
    return any(parts_of(word)[0] == "top" or word.lower() in ROLES for word in words_of(text))
