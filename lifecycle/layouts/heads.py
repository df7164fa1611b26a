"""Whose run a name speaks of: what is left of it when the words of the trade and the numbers they count are gone."""

from __future__ import annotations

import re
from functools import lru_cache

from lifecycle.layouts.metrics import PAIR

TRADE = """
acc accuracy all and at auc auroc auto autosave average avg ba backup batch batches best bleu by cer checkpoint
checkpoints checkpt chk chkpt ck ckpt ckpts consolidated consumed cp daily data default dev dict emergency end ep
epoch epochs err error eval evaluation every exception f1 fid final full global h5 highest hourly hours hpc in
interrupted interval iou it iter iteration iterations iters keras last latest loss lowest mae map max mean metric
min minutes miou model mse newest of on only opt optimizer params periodic perplexity ppl precision psnr pt pth r2
rank raw recall recovery regular restart resume return reward rl rmse rouge samples save saved score sharded
snapshot ssim state states step steps tar test the top total train training universal unsharded val valid validation
wer weight weights zip
"""
WORDS = frozenset(TRADE.split())
"""What people call checkpoints after: a moment, a measure, a reason. It is nobody's name."""
PARTS = (
    "best last latest newest top final end exception hpc resume recovery interrupted emergency backup lowest highest"
)
ROLES = frozenset(PARTS.split())
"""Words that say what one checkpoint is to its run, whatever the others of the run are called."""
BETWEEN = "arch bs fold lr model name run seed size trial version wd"
TELLING = frozenset(BETWEEN.split())
"""Keys of pairs whose values differ between runs and not between the saves of one."""
PARTING = re.compile(r"[\s\-_.=+~,:;()\[\]{}@#/]+|(?<=[a-z])(?=[A-Z])")
NUMBERED = re.compile(r"([A-Za-z]+)\d+", re.ASCII)

Head = tuple[str, ...]


@lru_cache(maxsize=8192)
def head_of(text: str) -> Head:
    """The words of a name that are nobody's but its run's; () where there are none.

    Numbers after a word of the trade count what that says (``epoch-3``); after any other word they are a part
    of the name (``gpt-2``). Of ``key=number`` pairs the keys are read like all words, and the numbers are not.
    """
    found: list[str] = []
    counted = False
    for word in filter(None, PARTING.split(PAIR.sub(_key, text))):
        if word.isdecimal():
            if not counted:
                found.append(word)
            continue
        numbered = NUMBERED.fullmatch(word)
        counted = word.lower() in WORDS or (numbered is not None and numbered[1].lower() in WORDS)
        if not counted:
            found.append(word)
    return tuple(found)


def _key(pair: re.Match[str]) -> str:
    """What a pair says of the run: its key, or all of it where the number tells runs apart."""
    words = PARTING.split(pair["key"])
    return f"{pair['key']} name{pair['value']}" if words[-1].lower() in TELLING else f"{pair['key']} step"


@lru_cache(maxsize=8192)
def is_role(text: str) -> bool:
    """Whether a name says what it is to its run, so that any run may have one beside its own names."""
    return any(word.lower() in ROLES for word in PARTING.split(text))
