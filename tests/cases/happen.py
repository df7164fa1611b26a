"""What other people do, told in plain words: a clause is read by its verb and the paths beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.cases.grammar import Unsupported

A = r"(?P<a>[^\s,;()\"']+)"
B = r"(?P<b>[^\s,;()\"']+)"


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
    found = [deed for clause in _clauses(text) for deed in reader.clause(clause)]
    if not found:
        raise Unsupported(f"event {text!r}")
    return found


def _clauses(text: str) -> Iterator[str]:
    """Clauses, without what stands in parentheses unless that holds a size or a fault."""
    kept = re.sub(r"\((?![^)]*\b(?:size|IsTruncated|page|bytes|E[A-Z]{3,})\b)[^)]*\)", " ", text)
    for part in re.split(r";|,?\s+then\s+|,?\s+and\s+(?=\w+s\b|\w+ed\b|then\b|makes?\b|put\b|PUT)", kept):
        if part.strip():
            yield part.strip()


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


ASIDE = re.compile(r",?\s+\b(?:while|when|because|since|before|so that|in the same|at the same)\b.*", re.I | re.DOTALL)
"""What only says when or why."""
SIZE = re.compile(r"\bsize\s+(\d+)|\b(\d+)\s+bytes\b", re.I)
CONTENT = re.compile(r"\b(?:with|saying|containing|naming|holding|that says|=)\s+[\"']?([^\"',;\s]+)[\"']?\s*$")

# Faults: what a system answers.
HTTP = re.compile(r"\b(?:answers?|returns?|gets?|gives?|fails? with|replies)\b.*?\b([45]\d\d)\b")
ERRNO = re.compile(
    r"\b(EIO|ESTALE|EPERM|EACCES|EROFS|ENOSPC|EBUSY|ENOTEMPTY|EDQUOT|EXDEV)\b"
    r"|(?i:\b(permission denied|not permitted|immutable)\b)"
)
KILL = _any(r"\b(?:SIGKILL|kill(?:ed|s)? -9|killed|kills?|crash(?:es|ed)?|power (?:loss|cut|fails?)|OOM|dies)\b")
MIGRATION = _any(r"\bmigrat\w+")
NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8}
MANY = re.compile(
    r"\b(two|three|four|five|six|eight|\d+)\s+(?:\w+\s+)?(?:process\w*|schedulers?|workers?|engines?|instances?)\b",
    re.I,
)
TAGS = re.compile(r"Tagging|\b[Tt]ags?\b")
LISTING = _any(r"\b(?:pages?|listing|IsTruncated|continuation token|NextContinuationToken|readdir|scandir|getdents)\b")
LISTING_TOO = _any(r"\b(?:list|ListObjects\w*)\b")
LOST = _any(
    r"\b(?:stops?|ends?|lost|fail(?:s|ed)?|missing|cut|truncated|times? out|drop(?:s|ped)?|ignored|never|[45]\d\d)\b",
    r"\b(?:EIO|ESTALE|repeat\w*|twice|error)\b",
)
SILLY = _any(r"\.nfs", r"\bsilly")
UNMOUNT = _any(
    r"\b(?:unmount\w*|umount\w*|not mounted)\b", r"\bmount\b.*\b(?:gone|lost|missing|goes away|disappears)\b"
)
STALE = _any(r"\b(?:cache[sd]?|stale|still lists?|still shows?)\b")
LOCKED = _any(r"\b(?:database|index|db)\b.*\blocked\b", r"\bBEGIN IMMEDIATE\b")
FULL = _any(r"\b(?:disk|file system|quota|trash)\b.*\bfull\b")
SESSION = _any(r"\b(?:second|another|other)\s+(?:engine|scheduler|instance|run of ours|process of ours)\b")
CLOCK = re.compile(
    r"\bclock\b.*?\b(?:back|forward|ahead|jump\w*|set)\b.*?(\d+)\s*(h|hours?|d|days?|m|minutes?)\b", re.I
)
RESTART = _any(r"\b(?:start\w* again|restart\w*|next run|runs? again|comes back|recover\w*)\b")
READS = _any(r"\b(?:reads?|opens?|loads?|resum\w+|maps?|keeps?)\b")

ROT = _any(
    r"\b(?:flip\w*|corrupt\w*|garbl\w*|rotten|bit ?rot)\b",
    r"\bchecksum\w*\b.*\b(?:differ\w*|wrong|mismatch\w*|match)\b|\breads? back\b.*\b(?:other|different|wrong)",
)
BROKEN = _any(r"\b(?:connection|network|link to the target)\b.*\b(?:resets?|reset|drops?|lost|breaks?|fails?|down)\b")

# Deeds: what somebody does.
_LINK = r"(?:by|with|into|for)?\s*(?:a|an)?\s*(?:sym(?:bolic )?)?link\s*(?:to|at|->)\s+"
RELINK = [
    re.compile(A + r"\s+(?:is|was|gets?|has been)\s+\w+\s+" + _LINK + B, re.I),
    re.compile(A + r"\s+becomes?\s+" + _LINK + B, re.I),
    re.compile(r"\b\w+\s+" + A + r"\s+" + _LINK + B, re.I),
    re.compile(r"\b(?:sym)?links?\s+" + A + r"\s*(?:to|at|->)\s+" + B, re.I),
]
POINT = [
    re.compile(
        r"\b(?:re-?)?(?:points?|pointed|updat\w+|sets?|switch\w+)\s+" + A + r"\s+(?:back\s+)?(?:to|at)\s+" + B,
        re.I,
    ),
    re.compile(A + r"\s+(?:now\s+)?(?:names?|points?(?:\s+(?:to|at))?|says?)\s+" + B, re.I),
    re.compile(r"\bwr\w+\s+" + B + r"\s+(?:in)?to\s+" + A, re.I),
    re.compile(r"\b(?:re|over)?wr\w+\s+" + A + r"\s+(?:with|to name|naming)\s+" + B, re.I),
]
RENAME = re.compile(
    r"\b(?:renam\w+|mov\w+|mv)\b\s+(?:the\s+\w+\s+)?" + A + r"\s+(?:(?:to|into|onto|as|->)\s+)?" + B, re.I
)
COPY = re.compile(r"\b(?:copies|copy|copied|rsyncs?|cp)\b\s+" + A + r"\s+(?:to|into|over|onto)\s+" + B, re.I)
TRUNCATE = [
    re.compile(A + r"\s+(?:is|was|gets?|has been)\s+(?:truncated|cut)\s+(?:to|at)\s+(?P<n>\d+)", re.I),
    re.compile(r"\b(?:truncat\w+|cuts?)\s+" + A + r"\s+(?:to|at)\s+(?P<n>\d+)", re.I),
]
LEASE = re.compile(r"\blease\s+(?:on|for)\s+" + A, re.I)
HOLD = re.compile(r"\b(?:hold|pin)s?\s+(?:on|for)\s+" + A + r"|\bpins\s+" + B, re.I)
TAG = re.compile(r"\btags?\b.*?(?P<t>[\w.-]+=[\w.-]+)", re.I)
CHMOD = re.compile(r"\bchmods?\b.*?\b(?P<n>0?[0-7]{3})\b", re.I)
PLAIN = [
    ("remove", _any(r"\b(?:unlink\w*|remov\w+|delet\w+|rm|rotat\w+|expir\w+|prun\w+|erases?)\b")),
    ("mkdir", _any(r"\b(?:creates?|makes?)\b.*\b(?:directory|folder)\b", r"\bmkdir\b")),
    ("touch", _any(r"\b(?:touch\w*|utimes?)\b")),
    (
        "write",
        _any(
            r"\b(?:PUTs?|writ\w+|wrote|overwrit\w+|overwrote|creat\w+|upload\w*|sav\w+|append\w*|modif\w+|chang\w+)\b",
            r"\b(?:replac\w+|rewrit\w+|re-?saves?|adds?|appears?|drops?|places?|puts?|leaves?|lays?|takes?|refresh\w*)\b",
            r"\b(?:renews?|finish\w*|grows?|is new|commits?|flush\w*|complet\w+|lands?|arriv\w+)\b",
        ),
    ),
]


class _Reader:
    def __init__(self, known: list[str]) -> None:
        self.known = known
        self.last = ""

    def is_path(self, word: str) -> bool:
        bare = word.rstrip("/*").rstrip("/")
        if bare in self.known or any(path.startswith(bare + "/") for path in self.known):
            return bool(bare)
        if "://" in word:
            return any("://" in path and bare.startswith(path + "/") for path in self.known)
        return bool(re.search(r"[^/]/[^/]|\*", word)) and not re.fullmatch(r"\d+/\d+", word)

    def paths(self, text: str) -> list[str]:
        """Paths in a text, in order; a base name stands for its path where no path is given."""
        words = [w.rstrip(".:!?") for w in re.findall(r"[^\s,;()\"']+", text)]
        found = [w.rstrip("*").rstrip("/") for w in words if w and self.is_path(w)]
        base = {p.rpartition("/")[2]: p for p in self.known if len(p.rpartition("/")[2]) > 1}
        return found or [base[w] for w in words if w in base]

    def clause(self, clause: str) -> list[Deed]:
        fault = self._fault(clause)
        found = [fault] if fault else self._change(ASIDE.sub("", clause)) or self._change(clause)
        for deed in found:
            self.last = deed.path or self.last
        return found

    def _fault(self, clause: str) -> Deed | None:
        paths = self.paths(clause)
        first, or_last = (paths[0], paths[0]) if paths else ("", self.last)
        many, http, errno, clock = (p.search(clause) for p in (MANY, HTTP, ERRNO, CLOCK))
        lost = LOST.search(clause)
        table: list[tuple[object, Callable[[], Deed]]] = [
            (MIGRATION.search(clause) and KILL.search(clause), lambda: Deed("kill_migration")),
            (many, lambda: Deed("many", size=_number(many))),
            (TAGS.search(clause) and (http or lost), lambda: Deed("tags_fail", first)),
            (ROT.search(clause), lambda: Deed("rot", or_last)),
            (BROKEN.search(clause), lambda: Deed("http", or_last, size=503, text=clause)),
            (SILLY.search(clause), lambda: Deed("silly_rename", or_last)),
            (UNMOUNT.search(clause), lambda: Deed("unmount", first)),
            (LOCKED.search(clause), lambda: Deed("db_locked")),
            (KILL.search(clause), lambda: Deed("kill", or_last, text=clause)),
            (clock, lambda: Deed("clock", size=_seconds(clock, "back" in clause.lower()))),
            (LISTING.search(clause) and (lost or http or errno), lambda: Deed("listing_cut", first, text=clause)),
            (LISTING_TOO.search(clause) and (http or errno), lambda: Deed("listing_cut", first, text=clause)),
            (FULL.search(clause), lambda: Deed("errno", "", text="ENOSPC")),
            (errno, lambda: Deed("errno", or_last, text=(errno and errno[1]) or "EPERM")),
            (http, lambda: Deed("http", or_last, size=int(http[1]) if http else 500, text=clause)),
            (SESSION.search(clause), lambda: Deed("session")),
            (STALE.search(clause) and not PLAIN[-1][1].search(STALE.sub("", clause)), lambda: Deed("stale")),
        ]
        return next((make() for fits, make in table if fits), None)

    def _change(self, clause: str) -> list[Deed]:
        return self._two_places(clause) or self._one_place(clause)

    def _two_places(self, clause: str) -> list[Deed]:
        """Deeds that lead from one place to another."""
        for pattern in TRUNCATE:
            if (match := pattern.search(clause)) and self.is_path(match["a"]):
                return [Deed("truncate", match["a"], size=int(match["n"]))]
        for verb, patterns in (("link", RELINK), ("point", POINT)):
            for pattern in patterns:
                match = pattern.search(clause)
                if match and self.is_path(match["a"]) and (verb == "link" or match["a"] in self.known):
                    return [Deed(verb, match["a"], match["b"].rstrip("."))]
        if match := RENAME.search(clause):
            old, new = match["a"], match["b"].rstrip(".")
            beside = new if "/" in new or "/" not in old else f"{old.rpartition('/')[0]}/{new}"
            return [Deed("rename", old, beside)]
        if match := COPY.search(clause):
            return [Deed("copy", match["a"], match["b"].rstrip("."))]
        return []

    def _one_place(self, clause: str) -> list[Deed]:
        for verb, pattern in (("lease", LEASE), ("hold", HOLD)):
            if match := pattern.search(clause):
                return [Deed(verb, next(g for g in match.groups() if g))]
        paths = self.paths(clause)
        if (match := TAG.search(clause)) and paths:
            return [Deed("tag", p, text=match["t"]) for p in paths]
        if match := CHMOD.search(clause):
            return [Deed("chmod", p, size=int(match["n"], 8)) for p in paths]
        size = SIZE.search(clause)
        length = int(size[1] or size[2]) if size else None
        for verb, pattern in PLAIN:
            if match := pattern.search(clause):
                after = self.paths(clause[match.end() :]) or paths or ([self.last] if self.last else [])
                told = CONTENT.search(clause) if verb == "write" and not size else None
                return [Deed(verb, p, size=length, text=told[1] if told else "") for p in after]
        if READS.search(clause) and paths:
            return [Deed("read", paths[0])]
        return [Deed("restart")] if RESTART.search(clause) else []


def _number(match: re.Match[str] | None) -> int:
    word = match[1].lower() if match else "2"
    return NUMBERS.get(word) or int(word)


def _seconds(match: re.Match[str] | None, back: bool) -> int:
    if match is None:
        return 0
    return int(match[1]) * {"h": 3600, "d": 86_400, "m": 60}[match[2][0].lower()] * (-1 if back else 1)
