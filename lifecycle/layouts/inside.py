"""What stands in and below one directory: cheap questions by patterns over the columns of a listing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import compress

from lifecycle.core.listing import Flavour, Folder, Listing, join, split
from lifecycle.layouts.peek import Document, Look, Peek

NOTHING = Folder("")


@lru_cache(maxsize=4096)
def compile_path(pattern: str) -> tuple[tuple[re.Pattern[str], ...], re.Pattern[str], re.Pattern[str]]:
    """A path pattern: its leading segments, its last one, and the last one as searched in joined names.

    Names hold no ``/``, so all names of a directory joined by it can be searched at the speed of C.
    """
    *lead, last = re.split(r"/(?![^\[]*\])", pattern)  # not the slash in [^/]
    return (
        tuple(re.compile(segment, re.ASCII) for segment in lead),
        re.compile(last, re.ASCII),
        re.compile(f"(?<=/)(?:{last})(?=/)", re.ASCII),
    )


def joined(names: list[str]) -> str:
    """Names as one searchable text, each between two slashes."""
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
        self._texts: dict[str, str] = {}
        self._folders: list[Folder] | None = None

    @property
    def name(self) -> str:
        """Base name of the directory."""
        return split(self.path)[1]

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
        return self.listing.get(join(self.path, relative) if relative else self.path) or NOTHING

    def text(self, relative: str = "") -> str:
        """All names of files directly in a directory, joined for searching."""
        if relative not in self._texts:
            self._texts[relative] = joined(self.folder(relative).names)
        return self._texts[relative]

    def _bases(self, lead: tuple[re.Pattern[str], ...]) -> Iterator[str]:
        bases = [""]
        for segment in lead:
            bases = [join(b, d) for b in bases for d in self.folder(b).dirs if segment.fullmatch(d)]
        yield from bases

    def has(self, pattern: str) -> bool:
        """Whether a file (or, with a trailing slash, a directory) matches."""
        lead, last, search = compile_path(pattern)
        if not last.pattern:
            return next(self._bases(lead), None) is not None
        return any(search.search(self.text(base)) for base in self._bases(lead))

    def names(self, pattern: str) -> list[str]:
        """Relative paths of all matching files or directories, in no particular order."""
        lead, last, search = compile_path(pattern)
        if not last.pattern:
            return list(self._bases(lead))
        return [join(b, m.group()) for b in self._bases(lead) for m in search.finditer(self.text(b))]

    def empty(self, pattern: str) -> bool:
        """Whether a matching file has no bytes."""
        lead, last, _ = compile_path(pattern)
        for base in self._bases(lead):
            folder = self.folder(base)
            if 0 in folder.sizes:
                zeros = compress(folder.names, (not size for size in folder.sizes))
                if any(last.fullmatch(name) for name in zeros):
                    return True
        return False

    def newest_ns(self, pattern: str) -> int:
        """Newest mtime of a matching file, 0 without any."""
        lead, last, _ = compile_path(pattern)
        return max(
            (
                mtime
                for base in self._bases(lead)
                for name, mtime in zip(self.folder(base).names, self.folder(base).mtimes_ns, strict=True)
                if last.fullmatch(name)
            ),
            default=0,
        )

    def size(self, relative: str) -> int | None:
        """Size of a file in bytes, None where there is none."""
        return self.listing.size(join(self.path, relative))

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

    def json(self, relative: str) -> Document:
        """The JSON object in a file; ODD where there is no such file."""
        size = self.size(relative)
        return Document(Look.ODD, {}) if size is None else self.peek.json(join(self.path, relative), size)
