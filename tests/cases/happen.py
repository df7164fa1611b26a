"""What other people do, told in plain words: a clause is read by its verb and the paths beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.cases.grammar import Unsupported

PATH = r"(?P<{}>[^\s,;()\"']+)"


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that happens: ``verb`` is a word of this harness."""

    verb: str
    path: str = ""
    other: str = ""
    size: int | None = None
    """Bytes, or whatever number belongs to the verb."""
    text: str = ""


def deeds(text: str, known: list[str]) -> list[Deed]:
    """Everything that a sentence tells of.

    Args:
        text: the sentence.
        known: paths and units of the case, for telling paths from other words.

    Raises:
        Unsupported: not one clause of it is understood.
    """
    reader = _Reader(known)
    found: list[Deed] = []
    for clause in _clauses(text):
        found += reader.clause(clause)
    if not found:
        raise Unsupported(f"event {text!r}")
    return found


def _clauses(text: str) -> Iterator[str]:
    """Clauses, without what stands in parentheses unless that holds a size."""
    kept = re.sub(r"\((?![^)]*\bsize\b)[^)]*\)", " ", text)
    for part in re.split(r";|,?\s+then\s+|,?\s+and\s+(?=\w+s\b|\w+ed\b|then\b|makes?\b|put\b|PUT)", kept):
        if part.strip():
            yield part.strip()


HTTP = re.compile(r"\b(?:answers?|returns?|gets?|gives?|fails? with|replies)\b.*?\b([45]\d\d)\b")
ERRNO = re.compile(
    r"\b(EIO|ESTALE|EPERM|EACCES|EROFS|ENOSPC|EBUSY|ENOTEMPTY|EDQUOT|EXDEV)\b"
    r"|(?i:\b(permission denied|not permitted)\b)"
)
KILL = re.compile(
    r"\b(SIGKILL|kill(?:ed|s)? -9|is killed|killed|kills?|crash(?:es|ed)?|power (?:loss|cut|fails?)|OOM|dies)\b", re.I
)
LISTING = re.compile(
    r"\b(page|listing|IsTruncated|continuation token|NextContinuationToken|readdir|scandir|list|ListObjects\w*)\b", re.I
)
LOST = re.compile(
    r"\b(lost|fail(?:s|ed)?|missing|cut|truncated|times? out|drop(?:s|ped)?|empty|ignored|never|[45]\d\d|EIO|ESTALE)\b"
    r"|\b(repeat\w*|twice|error)\b",
    re.I,
)
UNMOUNT = re.compile(r"\b(unmount\w*|umount\w*|not mounted|mount (?:is )?(?:gone|lost|missing))\b", re.I)
NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "eight": 8}
MANY = re.compile(
    r"\b(two|three|four|five|eight|\d+)\s+(?:\w+\s+)?(process\w*|schedulers?|workers?|engines?|runs?|instances?)\b",
    re.I,
)
SILLY = re.compile(r"\.nfs|silly", re.I)
MIGRATION = re.compile(r"\bmigrat\w+", re.I)
STALE = re.compile(r"\b(cache[sd]?|stale|still lists?|still shows?)\b", re.I)
RESTART = re.compile(r"\b(start\w* again|restart\w*|next run|runs? again|comes back|recover\w*)\b", re.I)
CLOCK = re.compile(r"\bclock\b.*?\b(back|forward|ahead|jump\w*|set)\b.*?(\d+)\s*(h|hours?|d|days?|m|minutes?)\b", re.I)
READS = re.compile(r"\b(reads?|opens?|loads?|resum\w+|holds? .* open|maps?)\b", re.I)

RENAME = re.compile(
    r"\b(?:renam\w+|mov\w+|mv)\b\s+(?:the\s+\w+\s+)?"
    + PATH.format("a")
    + r"\s+(?:to|into|onto|as|->)\s+"
    + PATH.format("b"),
    re.I,
)
RELINK = re.compile(
    r"(?:mak\w+|made|replac\w+|turn\w+|swap\w+|re?points?|sets?|updates?|links?|symlinks?)\s+"
    + PATH.format("a")
    + r"\s+(?:with|by|for|into|is|now)?\s*(?:a|an)?\s*(?:sym(?:bolic )?)?(?:link\s+)?(?:to|at|->)\s+"
    + PATH.format("b"),
    re.I,
)
TRUNCATE = (
    re.compile(PATH.format("a") + r"\s+(?:is|was|gets?|has been)\s+(?:truncated|cut)\s+(?:to|at)\s+(?P<n>\d+)", re.I),
    re.compile(r"\b(?:truncat\w+|cuts?)\s+" + PATH.format("a") + r"\s+(?:to|at)\s+(?P<n>\d+)", re.I),
)
COPY = re.compile(
    r"\b(?:copies|copy|copied|rsyncs?|cp)\b\s+" + PATH.format("a") + r"\s+(?:to|into|over|onto)\s+" + PATH.format("b"),
    re.I,
)
REMOVE = re.compile(r"\b(unlink\w*|remov\w+|delet\w+|rm|rotat\w+|expir\w+|prun\w+|erases?)\b", re.I)
TOUCH = re.compile(r"\b(touch\w*|utimes?)\b", re.I)
CHMOD = re.compile(r"\bchmods?\s+(?P<n>[0-7]{3,4})\b", re.I)
MKDIR = re.compile(r"\b(?:creates?|makes?|mkdir)\b.*\b(?:empty )?(?:dir|directory|folder)\b|\bmkdir\b", re.I)
WRITE = re.compile(
    r"\b(PUTs?|writ\w+|wrote|overwrit\w+|overwrote|creat\w+|upload\w*|sav\w+|append\w*|modif\w+|chang\w+|replac\w+)\b"
    r"|\b(rewrit\w+|re-?saves?|adds?|appears?|drops?|places?|leaves?|lays?|takes?|refresh\w*|renews?|finish\w*|grows?)\b"
    r"|\b(is new|commits?)\b",
    re.I,
)
SIZE = re.compile(r"\bsize\s+(\d+)|\b(\d+)\s+bytes\b", re.I)
CONTENT = re.compile(r"\b(?:with|saying|containing|naming|holding|that says|=)\s+[\"']?([^\"',;]+?)[\"']?\s*$")


class _Reader:
    def __init__(self, known: list[str]) -> None:
        self.known = known
        self.last = ""

    def is_path(self, word: str) -> bool:
        bare = word.rstrip("/*").rstrip("/")
        if bare in self.known or any(path.startswith(bare + "/") for path in self.known):
            return bool(bare)
        return bool(re.search(r"[^/]/[^/]|\*", word)) and "://" not in word and not re.fullmatch(r"\d+/\d+", word)

    def paths(self, text: str) -> list[str]:
        words = (
            w.strip(".:!?") if not w.startswith(".") else w.rstrip(":!?") for w in re.findall(r"[^\s,;()\"']+", text)
        )
        found = [w for w in words if w and self.is_path(w)]
        if found:
            return found
        base = {p.rpartition("/")[2]: p for p in self.known}
        return [base[w] for w in re.findall(r"[^\s,;()\"']+", text) if w in base]

    def clause(self, clause: str) -> list[Deed]:
        found = self._faults(clause) or self._changes(clause)
        for deed in found:
            self.last = deed.path or self.last
        return found

    def _faults(self, clause: str) -> list[Deed]:  # noqa: PLR0911  # one return a pattern
        paths = [p.rstrip("*").rstrip("/") for p in self.paths(clause)]
        first = paths[0] if paths else ""
        if MIGRATION.search(clause) and KILL.search(clause):
            return [Deed("kill_migration")]
        if match := MANY.search(clause):
            return [Deed("many", size=NUMBERS.get(match[1].lower()) or int(match[1]))]
        if "Tagging" in clause or (re.search(r"\btags?\b", clause) and (HTTP.search(clause) or LOST.search(clause))):
            return [Deed("tags_fail", first)]
        if SILLY.search(clause):
            return [Deed("silly_rename", first or self.last)]
        if UNMOUNT.search(clause):
            return [Deed("unmount", first)]
        if KILL.search(clause):
            return [Deed("kill", first or self.last, text=clause)]
        if match := CLOCK.search(clause):
            unit = {"h": 3600, "d": 86_400, "m": 60}[match[3][0].lower()]
            return [Deed("clock", size=int(match[2]) * unit * (-1 if match[1].lower() == "back" else 1))]
        if LISTING.search(clause) and LOST.search(clause):
            return [Deed("listing_cut", first, text=clause)]
        if match := ERRNO.search(clause):
            return [Deed("errno", first or self.last, text=match[1] or "EPERM")]
        if match := HTTP.search(clause):
            return [Deed("http", first or self.last, size=int(match[1]), text=clause)]
        if STALE.search(clause) and not WRITE.search(re.sub(STALE, "", clause)):
            return [Deed("stale")]
        return []

    def _changes(self, clause: str) -> list[Deed]:  # noqa: PLR0911  # one return a pattern
        for pattern in TRUNCATE:
            if (match := pattern.search(clause)) and self.is_path(match["a"]):
                return [Deed("truncate", match["a"], size=int(match["n"]))]
        if ((match := RELINK.search(clause)) and "link" in clause.lower()) or (match and self._is_pointer(match["a"])):
            assert match is not None
            return [Deed("link", match["a"], match["b"].rstrip("."))]
        if match := RENAME.search(clause):
            return [Deed("rename", match["a"], self._beside(match["a"], match["b"].rstrip(".")))]
        if match := COPY.search(clause):
            return [Deed("copy", match["a"], match["b"].rstrip("."))]
        paths = self.paths(clause)
        if match := CHMOD.search(clause):
            return [Deed("chmod", p, size=int(match["n"], 8)) for p in paths]
        size = SIZE.search(clause)
        length = int(size[1] or size[2]) if size else None
        for verb, pattern in (("remove", REMOVE), ("mkdir", MKDIR), ("touch", TOUCH), ("write", WRITE)):
            if match := pattern.search(clause):
                after = self.paths(clause[match.end() :]) or paths or ([self.last] if self.last else [])
                told = CONTENT.search(clause) if verb == "write" else None
                if (
                    verb == "write"
                    and len(after) == 2
                    and re.search(rf"\b(?:to|with|naming|at)\s+{re.escape(after[1])}", clause)
                ):
                    return [Deed("point", after[0], after[1])]
                return [Deed(verb, p.rstrip("*").rstrip("/"), size=length, text=told[1] if told else "") for p in after]
        if READS.search(clause) and paths:
            return [Deed("read", paths[0])]
        if RESTART.search(clause):
            return [Deed("restart")]
        return []

    def _is_pointer(self, path: str) -> bool:
        return path in self.known

    def _beside(self, old: str, new: str) -> str:
        """A bare new name stays in the old directory."""
        return new if "/" in new or "/" not in old else f"{old.rpartition('/')[0]}/{new}"
