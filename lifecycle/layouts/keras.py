"""Keras: ``.keras`` zips and ``.weights.h5`` files of callbacks, told by an epoch in the name and by their end."""

from __future__ import annotations

import re
from typing import NamedTuple

from lifecycle.core.listing import join
from lifecycle.core.model import Evidence, Kind
from lifecycle.layouts.parts import SINGLE
from lifecycle.layouts.single import listed, whole
from lifecycle.layouts.table import Batch, FileLayout, Named, Verdict, by_groups, row

WORD = r"(?:.*[-_.])?(?:epoch|ep|step|ckpt|checkpoint|cp|weights)[-_.=]?"
TEMPLATE = r".+[-_.](?=\d+-\d+\.\d+\.)"
NUMBER = rf"(?P<head>{WORD}|{TEMPLATE})(?P<epoch>\d+)(?P<rest>[-_.][^/]*)?"
SHARD = row(r"(?P<stem>.+)_\d{5,6}\.weights\.h5")
"""One of several files of weights; which they are stands in a JSON file beside them."""
HDF5 = b"\x89HDF\r\n\x1a\n"


HEAD = row(rf"(?<=/)(?P<head>{WORD}|{TEMPLATE})\d+[^/]*\.(?:keras|weights\.h5)(?=/)")


def several(text: str, _folder: str) -> bool:
    """Two numbers under one name are a series; one file alone may be anything."""
    heads = [m["head"] for m in HEAD.finditer(text)]
    return len(heads) > len(set(heads))


def by_number(match: re.Match[str]) -> Named:
    """Epoch, and what stands before and after it."""
    return by_groups(match)._replace(head=f"{match['head']} epoch{match['rest'] or ''}")


def archive(batch: Batch) -> Verdict:
    """Written in place, its directory last."""
    (name, _) = next(iter(batch.sizes.items()))
    end = whole(batch, name)
    if isinstance(end, Verdict):
        return end._replace(roles=SINGLE)
    table = listed(batch, name, end)
    if b"model.weights.h5" not in table or b"config.json" not in table:
        return Verdict(Evidence.DOUBTFUL, "it is a whole zip file, but not one of Keras", roles=SINGLE)
    return Verdict(Evidence.PROVEN, "it is a whole zip file", roles=SINGLE)


class Superblock(NamedTuple):
    """What the head of an HDF5 file says of the file."""

    end: int
    """Where it ends, in bytes."""
    is_open: bool
    """Whether who writes it has not closed it."""


def superblock(head: bytes) -> Superblock | None:
    """Of an HDF5 file (HDF5 file format 3.0, II.A); None where it is none that is understood."""
    if len(head) < 48 or not head.startswith(HDF5):
        return None
    version = head[8]
    if version in (0, 1) and head[13] == 8:
        at = 40 + 4 * version
        return Superblock(int.from_bytes(head[at : at + 8], "little"), any(head[20:24]))
    if version in (2, 3) and head[9] == 8:
        return Superblock(int.from_bytes(head[28:36], "little"), head[11] != 0)
    return None


def weights(batch: Batch) -> Verdict:
    """A file shorter than its superblock says was cut short; a longer one is being written, or something else.

    The superblock is written first and again at the end, so that it agrees proves no more than that.
    """
    (name, size) = next(iter(batch.sizes.items()))
    if not size:
        return Verdict(Evidence.PARTIAL, "it is empty", flags=("empty_shard",), roles=SINGLE)
    verdict = Verdict(Evidence.WHOLE, "it is as long as its superblock says", kind=Kind.WEIGHTS, roles=SINGLE)
    block = superblock(batch.peek.bytes(join(batch.folder, name), 0, 64) or b"")
    if block is None:
        return verdict.but(Evidence.DOUBTFUL, "it is no HDF5 file that is understood, or was not read")
    if block.is_open:
        return verdict.but(Evidence.WRITING, "its superblock says that it is open for writing")
    if block.end > size:
        return verdict.but(Evidence.PARTIAL, "it ends before its superblock says so")
    if block.end < size:
        return verdict.but(Evidence.DOUBTFUL, "it goes on after the end that its superblock knows: it was not closed")
    if (whole_of := SHARD.fullmatch(name)) and f"/{whole_of['stem']}.weights.json/" in batch.text:
        return verdict.but(Evidence.DOUBTFUL, f"it is one of the files that {whole_of['stem']}.weights.json names")
    return verdict


ARCHIVE = FileLayout(name="keras", member=row(rf"{NUMBER}\.keras"), judge=archive, credible=several, named=by_number)
WEIGHTS = FileLayout(
    name="keras_weights", member=row(rf"{NUMBER}\.weights\.h5"), judge=weights, credible=several, named=by_number
)

FILES = (ARCHIVE, WEIGHTS)
