"""What stands in and below one directory: cheap questions by patterns over the columns of a listing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import compress

from lifecycle.core.listing import Flavour, Folder, Listing, join, split
from lifecycle.layouts.peek import Document, Look, Peek

NOTHING = Folder("")


CACHED_MAX = 65_536
"""Characters of joined names up to which answers are remembered: the units of a run have the same names."""
REMEMBERED = 128
"""Texts for which each pattern remembers its answer: a walk goes from unit to unit of one run."""


class PathPattern:
    """A relative path of which each segment is a regular expression for one whole name."""

    def __init__(self, pattern: str) -> None:
        *lead, last = re.split(r"/(?![^\[]*\])", pattern)  # not the slash in [^/]
        self.lead = tuple(re.compile(segment, re.ASCII) for segment in lead)
        self.last = re.compile(last, re.ASCII)
        self.directory = not last
        self._search = re.compile(f"(?<=/)(?:{last})(?=/)", re.ASCII)
        self._needles = needles(last)
        self._remembered = lru_cache(maxsize=REMEMBERED)(self._find)
        self._known = lru_cache(maxsize=REMEMBERED)(self._seen)

    def seen(self, text: str) -> bool:
        """Whether a name in joined names matches the last segment."""
        return self._known(text) if len(text) <= CACHED_MAX else self._seen(text)

    def find(self, text: str) -> tuple[str, ...]:
        """All names in joined names that match the last segment."""
        return self._remembered(text) if len(text) <= CACHED_MAX else self._find(text)

    def _seen(self, text: str) -> bool:
        return possible(self._needles, text) and self._search.search(text) is not None

    def _find(self, text: str) -> tuple[str, ...]:
        return tuple(m.group() for m in self._search.finditer(text)) if possible(self._needles, text) else ()


@lru_cache(maxsize=4096)
def compile_path(pattern: str) -> PathPattern:
    """The compiled form of a path pattern."""
    return PathPattern(pattern)


TOKEN = re.compile(
    r"(?P<group>[()])|(?P<bar>\|)|(?P<repeat>[*?]|\{[^}]*\}|\+)|(?P<klass>\[[^\]]*\]|\\[a-zA-Z]|\.)|\\?(?P<char>.)"
)


def needles(pattern: str) -> tuple[str, ...]:
    """Plain texts of which one stands in whatever the pattern matches; () when that cannot be told.

    Searching for a plain text is a hundred times faster than searching for an expression.
    """
    found, best, run, depth = [], "", "", 0
    for token in TOKEN.finditer(pattern):
        depth += {"(": 1, ")": -1}.get(token["group"] or "", 0)
        if token["char"] and not depth:
            run += token["char"]
            continue
        if token["repeat"] and not depth and token["repeat"] != "+":
            run = run[:-1]
        best, run = max(best, run, key=len), ""
        if token["bar"] and not depth:
            found.append(best)
            best = ""
    found.append(max(best, run, key=len))
    return tuple(found) if all(found) else ()


def possible(plain: tuple[str, ...], text: str) -> bool:
    """Whether a text may hold a match of a pattern with these needles."""
    return not plain or any(needle in text for needle in plain)


def joined(names: list[str]) -> str:
    """Names as one searchable text, each between two slashes.

    Names hold no ``/``, so all names of a directory can be searched at the speed of C.
    """
    return "/" + "/".join(names) + "/" if names else ""


class Inside:
    """A directory of a listing with all below it.

    Patterns are relative paths of which each segment is a regular expression for one whole name (write
    ``[^/]*`` where a name may be anything); a trailing ``/`` asks for a directory.
    """

    def __init__(self, listing: Listing, path: str, peek: Peek) -> None:
        self.listing = listing
        self.path = path
        self.peek = peek
        self._own = listing.get(path) or NOTHING
        self._texts: dict[str, str] = {}
        self._contents: dict[str, bytes] = {}
        self._folders: list[Folder] | None = None

    @property
    def name(self) -> str:
        """Base name of the directory."""
        return split(self.path)[1]

    def around(self) -> Inside:
        """The directory that it stands in."""
        return Inside(self.listing, split(self.path)[0], self.peek)

    @property
    def on_objects(self) -> bool:
        """Whether this is a flat store, where no rename commits anything."""
        return self.listing.flavour is Flavour.OBJECT

    @property
    def folders(self) -> list[Folder]:
        """The directory and every one below it."""
        if self._folders is None:
            self._folders = list(self.listing.below(self.path))
        return self._folders

    def folder(self, relative: str = "") -> Folder:
        """One directory below; an empty one where there is none."""
        return (self.listing.get(join(self.path, relative)) or NOTHING) if relative else self._own

    def text(self, relative: str = "") -> str:
        """All names of files directly in a directory, joined for searching."""
        if relative not in self._texts:
            self._texts[relative] = joined(self.folder(relative).names)
        return self._texts[relative]

    def _bases(self, lead: tuple[re.Pattern[str], ...]) -> list[str]:
        bases = [""]
        for segment in lead:
            bases = [join(b, d) for b in bases for d in self.folder(b).dirs if segment.fullmatch(d)]
        return bases

    def has(self, pattern: str) -> bool:
        """Whether a file (or, with a trailing slash, a directory) matches."""
        path = compile_path(pattern)
        if path.directory:
            return bool(self._bases(path.lead))
        if not path.lead:
            return path.seen(self.text())
        return any(path.seen(self.text(base)) for base in self._bases(path.lead))

    def names(self, pattern: str) -> list[str]:
        """Relative paths of all matching files or directories, in no particular order."""
        path = compile_path(pattern)
        if path.directory:
            return self._bases(path.lead)
        if not path.lead:
            return list(path.find(self.text()))
        return [join(base, name) for base in self._bases(path.lead) for name in path.find(self.text(base))]

    def empty(self, pattern: str) -> bool:
        """Whether a matching file has no bytes."""
        path = compile_path(pattern)
        for base in self._bases(path.lead) if path.lead else ("",):
            folder = self.folder(base)
            if 0 in folder.sizes:
                zeros = compress(folder.names, (not size for size in folder.sizes))
                if any(path.last.fullmatch(name) for name in zeros):
                    return True
        return False

    def filled(self) -> set[str]:
        """Names of the files directly in the directory that have bytes."""
        folder = self.folder()
        return set(compress(folder.names, folder.sizes) if 0 in folder.sizes else folder.names)

    def newer(self, pattern: str, than: str, at: str = "", *, by_ns: int = 0) -> bool:
        """Whether a matching file in the directory, or in ``at`` below, is younger than ``than`` beside it.

        By more than ``by_ns``, in nanoseconds.
        """
        folder = self.folder(at)
        if than not in folder.names:
            return False
        stamped = folder.mtimes_ns[folder.names.index(than)] + by_ns
        if max(folder.mtimes_ns) <= stamped:
            return False
        last = compile_path(pattern).last
        young = compress(folder.names, (mtime > stamped for mtime in folder.mtimes_ns))
        return any(last.fullmatch(name) for name in young)

    def size(self, relative: str) -> int | None:
        """Size of a file in bytes, None where there is none."""
        return self.listing.size(join(self.path, relative))

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        """Sizes in bytes of many files by their relative paths; 0 where there is none."""
        columns: dict[str, dict[str, int]] = {}
        found = {}
        for name in names:
            base, last = split(name)
            if base not in columns:
                folder = self.folder(base)
                columns[base] = dict(zip(folder.names, folder.sizes, strict=True))
            found[name] = columns[base].get(last, 0)
        return found

    def beside(self, name: str) -> bool:
        """Whether a regular file ``name`` stands next to the directory."""
        return self.listing.has(split(self.path)[0], name)

    def any_sibling_has(self, name: str) -> bool:
        """Whether a directory next to this one holds the file ``name``."""
        parent = split(self.path)[0]
        siblings = (self.listing.get(parent) or NOTHING).dirs
        return any(self.listing.has(join(parent, d), name) for d in siblings if d != self.name)

    def text_beside(self, name: str) -> tuple[Look, str]:
        """Content of a small file next to the directory."""
        key = join(split(self.path)[0], name)
        if not self.beside(name):
            return Look.ODD, ""
        text = self.peek.text(key)
        if text is None:
            return (Look.BLIND if self.peek.read is None else Look.FAILED), ""
        return Look.SEEN, text.strip()

    def content(self, relative: str, most_bytes: int) -> bytes:
        """All of a file that is no larger than that, read once; empty where it is, or cannot be had."""
        size = self.size(relative)
        if not size or size > most_bytes:
            return b""
        if relative not in self._contents:
            self._contents[relative] = self.peek.bytes(join(self.path, relative), 0, size) or b""
        return self._contents[relative]

    def json(self, relative: str) -> Document:
        """The JSON object in a file; ODD where there is no such file."""
        size = self.size(relative)
        return Document(Look.ODD, {}) if size is None else self.peek.json(join(self.path, relative), size)
