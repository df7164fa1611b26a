"""NeMo 1 with model parallelism: a file of one name in every rank's directory, and a marker beside these."""

from __future__ import annotations

import re
from itertools import islice, product

from lifecycle.core.listing import join
from lifecycle.core.model import Evidence, Shape
from lifecycle.layouts.lightning import end_of
from lifecycle.layouts.nemo import marked, read_name
from lifecycle.layouts.parts import SINGLE
from lifecycle.layouts.single import crowded
from lifecycle.layouts.table import Batch, FileLayout, Verdict, row
from lifecycle.layouts.traps import RANKS


def every_rank(batch: Batch) -> Verdict:
    """No rank's file may be missing, empty or cut short, and no marker may say that some are still to come."""
    verdict = Verdict(Evidence.WHOLE, "all ranks' files are whole; the layout writes no proof", roles=SINGLE)
    if marker := marked(batch.stem, batch.text):
        return verdict.but(Evidence.WRITING, f"{marker} says that it is being written or removed")
    have = {name.rpartition("/")[0] for name in batch.sizes}
    absent = min(set(batch.due) - have, default=None) or gap(have)
    if absent:
        return verdict.but(Evidence.PARTIAL, f"the file in {absent} is missing", "members_missing")
    if not all(batch.sizes.values()):
        return verdict.but(Evidence.PARTIAL, "a rank's file is empty", "empty_shard")
    if why := crowded(len(batch.sizes)):
        return verdict.but(Evidence.DOUBTFUL, why)
    for name, size in batch.sizes.items():
        end = end_of(batch.peek, join(batch.folder, name), size)
        if isinstance(end, Verdict):
            return end._replace(why=f"{name}: {end.why}")
    return verdict


def gap(ranks: set[str]) -> str | None:
    """A rank directory that the numbers of the others promise; a rank alone would have no directory of its own."""
    first = min(ranks)
    if len(ranks) == 1:
        return f"another directory than {first}"
    have = {tuple(map(int, re.findall(r"\d+", rank))) for rank in ranks}
    if len(set(map(len, have))) > 1:
        return None
    ends = [max(column) + 1 for column in zip(*have, strict=True)]
    for wanted in islice(product(*map(range, ends)), len(have) + 1):
        if wanted not in have:
            return named_after(first, wanted)
    return None


def named_after(name: str, numbers: tuple[int, ...]) -> str:
    """The directory name with these numbers in place of its own, padded as they are."""
    left = list(numbers)
    return re.sub(r"\d+", lambda digits: f"{left.pop(0):0{len(digits[0])}d}", name)


SPREAD = (
    FileLayout(
        name="nemo1_ranks",
        member=row(r"(?P<stem>(?!.*-no-optim\.ckpt).+\.ckpt)"),
        judge=every_rank,
        shape=Shape.GROUP,
        named=read_name,
        lasting=row(r".+-last(?:-v\d+)?\.ckpt"),
        spread=re.compile(RANKS, re.ASCII),
    ),
)
