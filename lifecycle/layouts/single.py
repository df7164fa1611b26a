"""What one file of ``torch.save`` shows, whoever wrote it: whether it is whole, and whose names stand in its pickle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from lifecycle.core.listing import join
from lifecycle.core.model import Evidence, Kind
from lifecycle.layouts.parts import SINGLE, Roles
from lifecycle.layouts.peek import ZIP_DIRECTORY_MAX_BYTES, Directory, Hints, Look, Peek
from lifecycle.layouts.table import Batch, FileLayout, Verdict, row

TENSORS = ("torch._utils _rebuild_tensor_v2", "_rebuild_tensor_v2", "torch._utils _rebuild_parameter")
"""How pickles of torch name what makes a tensor."""
ZIP = b"PK\3\4"
"""With what a zip file begins."""
STOP = b"."
"""The opcode with which every pickle ends."""
FILES_MAX = 512
"""Files of one checkpoint that are looked into, each with two small reads: a run of ten thousand checkpoints of
thousands of ranks would take tens of millions."""


class TorchFile(NamedTuple):
    """What a framework writes into its file.

    A name alone proves nothing: a whole file without the marks is kept and counts for nothing.
    """

    marks: tuple[tuple[str, ...], ...]
    """Of each of these groups of names one must stand in the pickle."""
    resumes: tuple[str, ...] = ()
    """Names of which any says that a resume has what it needs; none: nothing has to."""
    step: str = ""
    """The name before the step."""
    first: int = 0
    """What to add to that for the number of steps done."""
    epoch: str = ""
    kind: Kind | None = None
    """Where the file's name says it."""
    roles: Roles = SINGLE

    def judge(self, batch: Batch) -> Verdict:
        """The verdict on files that one save wrote: all are looked at, the first one is looked into."""
        verdict = Verdict(Evidence.PROVEN, "it is a whole zip file", kind=self.kind, roles=self.roles)
        if why := crowded(len(batch.sizes)):
            return verdict.but(Evidence.DOUBTFUL, why)
        ends: dict[str, Directory] = {}
        for name in sorted(batch.sizes):
            end = whole(batch, name)
            if isinstance(end, Verdict):
                return end._replace(kind=self.kind, roles=self.roles)
            ends[name] = end
        name = min(ends)
        return self.told(verdict, batch.peek.torch(join(batch.folder, name), ends[name], self.wanted()))

    def of_kind(self, kind: Kind) -> TorchFile:
        """The same for files whose name says what they are for."""
        return self._replace(kind=kind)

    def wanted(self) -> Iterable[str]:
        """All names that are looked for."""
        return {*(name for group in self.marks for name in group), *self.resumes, self.step, self.epoch}

    def told(self, verdict: Verdict, hints: Hints | None) -> Verdict:
        """What the names and plain numbers of the pickle say."""
        if hints is None:
            return verdict.but(Evidence.DOUBTFUL, "it is a whole zip file; what it holds was not read")
        if not hints.ended:
            return verdict.but(Evidence.DOUBTFUL, "it is a whole zip file, but the pickle in it does not end as one")
        if not all(any(name in hints.names for name in group) for group in self.marks):
            why = "it is a whole zip file, but holds nothing that only its framework writes"
            return verdict.but(Evidence.DOUBTFUL, why)
        resumable = not self.resumes or any(name in hints.names for name in self.resumes)
        step, epoch = hints.values.get(self.step), hints.values.get(self.epoch)
        return verdict._replace(
            kind=self.kind or (Kind.FULL if resumable else Kind.WEIGHTS),
            step=step + self.first if isinstance(step, int) and 0 <= step < 2**62 else None,
            epoch=float(epoch) if isinstance(epoch, int) and 0 <= epoch < 2**53 else None,
        )


def best_copy(of: FileLayout, file: TorchFile, member: str) -> FileLayout:
    """A framework's copy of its best beside what it numbers: the same file under a name of its own."""
    return replace(of, member=row(member), judge=file.of_kind(Kind.BEST_COPY).judge, lasting=None)


def listed(batch: Batch, name: str, end: Directory) -> bytes:
    """The directory of a zip file as it stands there, in which the names of its members can be searched."""
    room = min(end.size, ZIP_DIRECTORY_MAX_BYTES)
    return batch.peek.bytes(join(batch.folder, name), end.offset, room) or b""


def crowded(count: int) -> str | None:
    """Why so many files are not looked into, so that nobody knows whether each is whole; None where they are."""
    return f"it has {count:,} files, and more than {FILES_MAX} are not looked into" if count > FILES_MAX else None


def cut_short(peek: Peek, key: str, size: int) -> bool:
    """Whether a file begins as a zip file and does not end as one; what begins otherwise says nothing."""
    return (peek.bytes(key, 0, 4) or b"") == ZIP and peek.zip(key, size)[0] is Look.ODD


def whole(batch: Batch, name: str) -> Directory | Verdict:
    """Where the directory of a zip file lies, or what it means that it was not found.

    Only what begins as a zip file was cut short. Anything else may be of an old torch, or nobody's checkpoint.
    """
    key, size = join(batch.folder, name), batch.sizes[name]
    if not size:
        return Verdict(Evidence.PARTIAL, f"{name} is empty", flags=("empty_shard",))
    look, directory = batch.peek.zip(key, size)
    if directory is not None:
        return directory
    if look in (Look.FAILED, Look.BLIND):
        return Verdict(Evidence.DOUBTFUL, f"the end of {name} was not read")
    if (batch.peek.bytes(key, 0, 4) or b"") == ZIP:
        return Verdict(Evidence.PARTIAL, f"{name} begins like a zip file and was cut short")
    return Verdict(Evidence.DOUBTFUL, f"{name} is no zip file as torch writes them: nothing tells whether it is whole")
