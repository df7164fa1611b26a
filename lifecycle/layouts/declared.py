"""Layouts that a site declares: templates compiled to patterns, which come before every built-in row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from lifecycle.core.listing import join
from lifecycle.core.model import Evidence, Kind, Shape
from lifecycle.layouts.conventions import Declared
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.parts import PLAIN, SINGLE
from lifecycle.layouts.peek import Look
from lifecycle.layouts.table import Batch, Named, Verdict, finite, whole_number

WORD = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)
FIELDS = {
    "step": r"\d+",
    "epoch": r"\d+(?:\.\d+)?",
    "time": r"\d{4}-?\d\d-?\d\d[T_ ]?\d\d[:-]?\d\d(?:[:-]?\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?",
}
REST = r"(?P<rest_>[-._](?!(?:[^/]*[.~](?:bak|old|orig|save|swp))(?:/|$))[^/]*)?"
"""What may follow a group's stem; copies that somebody set aside are not members."""
TEMPORARY = (".tmp", ".part", ".partial")
ZIPS = (".ckpt", ".pt", ".pth", ".pth.tar", ".zip", ".keras", ".npz")
SHARD = re.compile(r"(?:shard|rank|part|worker|host)[-_]?(\d{1,6})(?!\d)|-(\d{5})-of-(\d{5})", re.ASCII)
TIMES = ("%Y%m%dT%H%M%S", "%Y%m%dT%H%M", "%Y%m%d%H%M%S", "%Y%m%d%H%M")


def pattern(template: str) -> str:
    """The regular expression of a template; a word that occurs again must be the same text again."""
    text, seen, at = "", set(), 0
    for match in WORD.finditer(template):
        word = match[1]
        text += re.escape(template[at : match.start()])
        text += f"(?P=w_{word})" if word in seen else f"(?P<w_{word}>{FIELDS.get(word, '[^/]+?')})"
        seen.add(word)
        at = match.end()
    return text + re.escape(template[at:])


def glob(text: str, tail: str = "") -> re.Pattern[str]:
    """A glob over keys: ``**`` crosses ``/``, ``*`` and ``?`` do not."""
    found, at = "", 0
    for match in re.finditer(r"/?\*\*/?|\*|\?", text):
        found += re.escape(text[at : match.start()])
        token, at = match[0], match.end()
        found += {"*": "[^/]*", "?": "[^/]", "**": ".*", "/**": "(?:/.*)?", "**/": "(?:.*/)?"}.get(token, "/(?:.*/)?")
    return re.compile(found + re.escape(text[at:]) + tail, re.DOTALL)


@dataclass(frozen=True, slots=True)
class Template:
    """A declared layout, ready for matching."""

    declared: Declared
    name: re.Pattern[str]
    """Over a whole base name."""
    search: re.Pattern[str]
    """The same, in names joined by slashes; for a group with what follows the stem."""
    runs: tuple[re.Pattern[str], ...]

    def serves(self, run: str) -> bool:
        """Whether it is meant for the run."""
        return not self.runs or any(r.fullmatch(run) for r in self.runs)

    @property
    def directories(self) -> bool:
        """Whether its units may be directories."""
        return self.declared.shape in (None, Shape.DIR)

    @property
    def files(self) -> bool:
        """Whether its units may be files or groups of them."""
        return self.declared.shape is not Shape.DIR


@lru_cache(maxsize=256)
def compile_template(declared: Declared) -> Template:
    """Compile one declaration."""
    text = pattern(declared.template)
    rest = REST if declared.shape is Shape.GROUP else ""
    return Template(
        declared,
        re.compile(text, re.ASCII | re.DOTALL),
        re.compile(f"(?<=/)(?P<stem_>{text}){rest}(?=/)", re.ASCII | re.DOTALL),
        tuple(glob(run) for run in declared.runs),
    )


def named(match: re.Match[str]) -> Named:
    """Step, epoch and time of a matched name; other words that hold numbers are metrics."""
    words = {k[2:]: v for k, v in match.groupdict().items() if k.startswith("w_") and v is not None}
    step, flags = whole_number(words.pop("step", None))
    epoch = finite(words.pop("epoch", None))
    saved = time_ns(words.pop("time", ""))
    found = ((word, finite(text)) for word, text in sorted(words.items()))
    return Named(step, epoch, tuple((w, v) for w, v in found if v is not None), saved, flags)


def time_ns(text: str) -> int:
    """Nanoseconds since the epoch of a time in a name, taken as UTC without an offset; 0 when it is none."""
    zone = re.search(r"(Z|[+-]\d\d:?\d\d)$", text)
    zone_text = zone[1].replace("Z", "+0000").replace(":", "") if zone and len(text) > 12 else "+0000"
    plain = re.sub(r"[-:_ ]", lambda m: "T" if m[0] in "_ " else "", text[: zone.start()] if zone else text)
    plain, _, fraction = plain.partition(".")
    for form in TIMES:
        try:
            moment = datetime.strptime(plain + zone_text, form + "%z")
        except (ValueError, OverflowError):
            continue
        seconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // _SECOND
        return max(0, seconds * 10**9 + int((fraction + "0" * 9)[:9]))
    return 0


_SECOND = datetime(1970, 1, 1, 0, 0, 1) - datetime(1970, 1, 1)


def judge_directory(template: Template, inside: Inside) -> Verdict:
    """Marker, then proof; without a declared proof, whatever stands there must have bytes."""
    declared, kind = template.declared, template.declared.kind
    if declared.writing and inside.has(re.escape(declared.writing)):
        return Verdict(Evidence.WRITING, f"{declared.writing} says that it is being written", kind=kind)
    files = sum(len(f.names) for f in inside.folders)
    if declared.proof:
        if inside.has(re.escape(declared.proof)):
            return Verdict(Evidence.PROVEN, f"{declared.proof} is there", declared.proof, kind)
        return Verdict(Evidence.PARTIAL, f"{declared.proof} is missing", kind=kind)
    if not files:
        return Verdict(Evidence.PARTIAL, "it is empty", kind=kind)
    if any(0 in f.sizes for f in inside.folders):
        return Verdict(Evidence.PARTIAL, "a file in it is empty", kind=kind, flags=("empty_shard",))
    return Verdict(Evidence.WHOLE, "nothing in it is empty; no proof is declared", kind=kind)


def judge_files(template: Template, batch: Batch) -> Verdict:
    """A file, or all files of a stem: nothing temporary left, nothing empty, no number left out."""
    declared = template.declared
    roles = SINGLE if declared.shape is not Shape.GROUP else PLAIN
    kind: Kind = declared.kind
    if any(name.endswith(TEMPORARY) for name in batch.sizes) or any(
        f"/{name}{end}/" in batch.text for name in batch.sizes for end in TEMPORARY
    ):
        return Verdict(Evidence.WRITING, "a temporary file of it is still there", kind=kind, roles=roles)
    proof = next((n for n in sorted(batch.sizes) if declared.proof and n.endswith(declared.proof)), None)
    if not all(size for name, size in batch.sizes.items() if name != proof):
        return Verdict(Evidence.PARTIAL, "a file of it is empty", kind=kind, flags=("empty_shard",), roles=roles)
    if gap := missing(batch.sizes):
        return Verdict(Evidence.PARTIAL, gap, kind=kind, flags=("members_missing",), roles=roles)
    if declared.proof and proof is None:
        return Verdict(Evidence.PARTIAL, f"its {declared.proof} is missing", kind=kind, roles=roles)
    if proof:
        return Verdict(Evidence.PROVEN, f"{proof} is there", proof, kind, roles=roles)
    if len(batch.sizes) == 1 and (archive := zipped(batch, *batch.sizes)) is not None:
        if archive:
            return Verdict(Evidence.PROVEN, "it is a whole zip file", kind=kind, roles=roles)
        return Verdict(Evidence.PARTIAL, "it begins like a zip file and was cut short", kind=kind, roles=roles)
    return Verdict(Evidence.WHOLE, "nothing of it is empty; no proof is declared", kind=kind, roles=roles)


def zipped(batch: Batch, name: str) -> bool | None:
    """Whether a file that begins like a zip, as torch and Keras write them, also ends like one."""
    key, size = join(batch.folder, name), batch.sizes[name]
    if not name.endswith(ZIPS) or batch.peek.bytes(key, 0, 4) != b"PK\3\4":
        return None
    look, directory = batch.peek.zip(key, size)
    return None if look is Look.FAILED else directory is not None


def missing(names: dict[str, int]) -> str | None:
    """The first shard number that is left out, as a sentence; counting may start at 0 or 1."""
    numbers: set[int] = set()
    promised = 0
    for match in filter(None, map(SHARD.search, names)):
        numbers.add(int(match[1] or match[2]))
        promised = max(promised, int(match[3] or 0))
    if not numbers:
        return None
    start = 0 if 0 in numbers or 1 not in numbers else 1
    end = max(*numbers, promised - 1 + start)
    absent = next((n for n in range(start, end + 1) if n not in numbers), None)
    return None if absent is None else f"shard {absent} is missing"
