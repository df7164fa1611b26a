"""Keras: ``.keras`` zips and ``.weights.h5`` files of callbacks, told by an epoch in the name and by their end."""

from __future__ import annotations

from lifecycle.core.listing import join
from lifecycle.core.model import Evidence, Kind
from lifecycle.layouts.parts import SINGLE
from lifecycle.layouts.peek import ZIP_DIRECTORY_MAX_BYTES
from lifecycle.layouts.single import whole
from lifecycle.layouts.table import Batch, FileLayout, Verdict, row

WORD = r"(?:.*[-_.])?(?:epoch|ep|step|ckpt|checkpoint|cp|weights)[-_.=]?"
TEMPLATE = r".+[-_.](?=\d+-\d+\.\d+\.)"
NUMBER = rf"(?:{WORD}|{TEMPLATE})(?P<epoch>\d+)(?:[-_.][^/]*)?"
HDF5 = b"\x89HDF\r\n\x1a\n"


HEAD = row(rf"(?<=/)(?P<head>{WORD}|{TEMPLATE})\d+[^/]*\.(?:keras|weights\.h5)(?=/)")


def several(text: str, _folder: str) -> bool:
    """Two numbers under one name are a series; one file alone may be anything."""
    heads = [m["head"] for m in HEAD.finditer(text)]
    return len(heads) > len(set(heads))


def archive(batch: Batch) -> Verdict:
    """Written in place, its directory last."""
    (name, _) = next(iter(batch.sizes.items()))
    end = whole(batch, name)
    if isinstance(end, Verdict):
        return end._replace(roles=SINGLE)
    room = min(end.size, ZIP_DIRECTORY_MAX_BYTES)
    table = batch.peek.bytes(join(batch.folder, name), end.offset, room) or b""
    if b"model.weights.h5" not in table or b"config.json" not in table:
        return Verdict(Evidence.DOUBTFUL, "it is a whole zip file, but not one of Keras", roles=SINGLE)
    return Verdict(Evidence.PROVEN, "it is a whole zip file", roles=SINGLE)


def end_of(head: bytes) -> int | None:
    """Where an HDF5 file ends by its superblock (HDF5 file format 3.0, II.A)."""
    if len(head) < 48 or not head.startswith(HDF5):
        return None
    version = head[8]
    if version in (0, 1) and head[13] == 8:
        at = 40 + 4 * version
        return int.from_bytes(head[at : at + 8], "little")
    if version in (2, 3) and head[9] == 8:
        return int.from_bytes(head[28:36], "little")
    return None


def weights(batch: Batch) -> Verdict:
    """A file shorter than its superblock says was cut short."""
    (name, size) = next(iter(batch.sizes.items()))
    if not size:
        return Verdict(Evidence.PARTIAL, "it is empty", flags=("empty_shard",), roles=SINGLE)
    end = end_of(batch.peek.bytes(join(batch.folder, name), 0, 64) or b"")
    if end is None:
        return Verdict(Evidence.DOUBTFUL, "it is no HDF5 file that is understood, or was not read", roles=SINGLE)
    if end > size:
        return Verdict(Evidence.PARTIAL, "it ends before its superblock says so", roles=SINGLE)
    return Verdict(Evidence.PROVEN, "it is as long as its superblock says", kind=Kind.WEIGHTS, roles=SINGLE)


ARCHIVE = FileLayout(name="keras", member=row(rf"{NUMBER}\.keras"), judge=archive, credible=several)
WEIGHTS = FileLayout(name="keras_weights", member=row(rf"{NUMBER}\.weights\.h5"), judge=weights, credible=several)

FILES = (ARCHIVE, WEIGHTS)
