"""Where a pointer leads: links and texts resolved on paper, within the store and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from lifecycle.core.listing import Listing, join, split
from lifecycle.core.model import PointerRole
from lifecycle.layouts.table import Mention
from lifecycle.layouts.unions import roots_of

HOPS_MAX = 40
"""As many links as Linux follows before it calls them a loop."""
TAIL_MIN = 2
"""So many names at the end of a path, run and checkpoint, tell what it means where another machine began it."""
TEXT_MAX = 4096
"""Longer texts are no path on any file system."""
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://", re.ASCII)
SAME = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "az": "abfs"}
"""Schemes that other programs write for the same store."""


class Lead(NamedTuple):
    """A key in the store, or None with a code word that says why there is none."""

    key: str | None
    flags: tuple[str, ...] = ()


NOWHERE = Lead(None, ("pointer_unreadable",))
OUTSIDE = Lead(None, ("external_reference",))
LOOP = Lead(None, ("pointer_loop",))


def scheme_url(url: str) -> str:
    """A URL with its scheme in the usual spelling and without a trailing slash."""
    found = SCHEME.match(url)
    if not found:
        return url
    scheme = found[1].lower()
    return f"{SAME.get(scheme, scheme)}://{url[found.end() :].rstrip('/')}"


def common_end(one: str, other: str) -> int:
    """How many of their last path segments are the same."""
    pairs = zip(reversed(one.split("/")), reversed(other.split("/")), strict=False)
    return next((count for count, (mine, theirs) in enumerate(pairs) if mine != theirs), one.count("/") + 1)


def sound(text: str) -> bool:
    """Whether a text can be a path at all."""
    if not text or "\0" in text or len(text) > TEXT_MAX:
        return False
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True)
class Resolver:
    """Knows the listing, the store's URL, and to which unit each key belongs."""

    listing: Listing
    url: str
    units: Mapping[str, str]
    """Key of a unit or of a group's file -> key of the unit."""
    homes: Collection[str] = frozenset()
    """Directories of all runs that hold a unit."""

    def unit(self, key: str) -> str | None:
        """The unit that a key is, is a member of, or lies in."""
        while key:
            if key in self.units:
                return self.units[key]
            key = split(key)[0]
        return None

    def settled(self, lead: Lead) -> Lead:
        """The same with the unit in place of whatever of it was named."""
        return lead if lead.key is None else Lead(self.unit(lead.key) or lead.key, lead.flags)

    def walk(self, start: str, text: str) -> Lead:
        """Follow a path from a directory, links and all, as the file system would, on paper."""
        if text.startswith("/"):
            inner = self.under_root(text)
            if inner is None:
                return OUTSIDE
            start, text = "", inner
        here = start.split("/") if start else []
        ahead = text.split("/")[::-1]
        hops = 0
        while ahead:
            part = ahead.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not here:
                    return OUTSIDE
                here.pop()
                continue
            folder = self.listing.get("/".join(here))
            link = folder.links.get(part) if folder else None
            if link is None:
                here.append(part)
                continue
            hops += 1
            if hops > HOPS_MAX:
                return LOOP
            if not sound(link):
                return NOWHERE
            if link.startswith("/"):
                inner = self.under_root(link)
                if inner is None:
                    return OUTSIDE
                here, link = [], inner
            ahead += link.split("/")[::-1]
        return Lead("/".join(here)) if here else OUTSIDE

    def under_root(self, path: str) -> str | None:
        """The rest of an absolute path below a root of a local store."""
        for url in roots_of(self.url):
            root = url.removeprefix("file://").rstrip("/")
            if url.startswith("file://") and path.startswith(root + "/"):
                return path[len(root) + 1 :]
        return None

    def link(self, folder: str, name: str) -> Lead:
        """Where the link ``name`` in ``folder`` leads.

        An absolute one that leads out was made where the mount had another name, or leads to another run: a unit
        beside it of the same base name is what it may mean, and that is enough to protect it.
        """
        lead = self.settled(self.walk(folder, name))
        text = self.listing.folders[folder].links[name]
        beside = join(folder, text.rstrip("/").rpartition("/")[2])
        if lead.key is None and text.startswith("/") and beside in self.units:
            return Lead(self.units[beside], lead.flags)
        return lead

    def mention(self, run: str, mention: Mention) -> Lead:
        """Which checkpoint a text in a run's directory means.

        Paths that were written on another machine, or before a move, are told by their base name; but
        what a run was resumed from may lie in any run, so there a base name proves nothing.
        """
        text = mention.text
        if not sound(text) or "\n" in text:
            return NOWHERE
        home = mention.role is not PointerRole.RESUME
        base = text.rstrip("/").rpartition("/")[2]
        if base in ("", ".", ".."):
            return OUTSIDE
        if home and (join(run, base) in self.units or "/" not in text):
            return self.settled(self.walk(run, base))
        lead = self.place(run, text)
        if lead.key is not None and self.unit(lead.key):
            return self.settled(lead)
        return self.settled(self.walk(run, base)) if home else lead

    def namesakes(self, run: str, text: str, units: Mapping[str, Sequence[str]]) -> list[Lead]:
        """Which units of a run a path means that a trainer noted down, wherever the run lay then.

        Those whose own path is like its end for longest, all of them where several are. A path that ends
        like none leads to where its base name would be in the run, and never out of the run.

        Args:
            run: key of the run's directory.
            text: the path.
            units: keys of the run's units by their base names.
        """
        if not sound(text) or "\n" in text:
            return [NOWHERE]
        base = text.rstrip("/").rpartition("/")[2]
        if base in ("", ".", ".."):
            return [OUTSIDE]
        alike = {key: common_end(key, text.rstrip("/")) for key in units.get(base, ())}
        if alike:
            longest = max(alike.values())
            return [Lead(key) for key in sorted(alike) if alike[key] == longest]
        lead = self.settled(self.walk(run, base))
        inside = lead.key is None or not run or lead.key.startswith(f"{run}/")
        return [lead if inside else OUTSIDE]

    def place(self, run: str, text: str) -> Lead:
        """A URL, an absolute path, or one relative to the run or to the store's root; keys only if certain."""
        if SCHEME.match(text):
            url, roots = scheme_url(text), map(scheme_url, roots_of(self.url))
            root = next((root for root in roots if root and url.startswith(root + "/")), None)
            return self.walk("", url[len(root) + 1 :]) if root else OUTSIDE
        if text.startswith("/"):
            return self.walk("", text)
        leads = self.relative(run, text)
        return next((lead for lead in leads if lead.key is not None and self.unit(lead.key)), OUTSIDE)

    def relative(self, run: str, text: str) -> Iterator[Lead]:
        """Where a relative path leads from the run, from the directory above and from the root, each once."""
        return (self.walk(start, text) for start in dict.fromkeys((run, split(run)[0], "")))

    def readings(self, run: str, text: str) -> list[Lead]:
        """All that a run may mean by a path that names its parent: units, or directories of runs.

        A relative one is read from the run, from the directory above and from the root, and may mean any of these.
        An absolute one that leads out may be what another machine's mount is called: what ends like it for longest,
        by two names at least, is what it may mean too.
        """
        if not sound(text) or SCHEME.match(text):
            return []
        if not text.startswith("/"):
            leads = map(self.settled, self.relative(run, text))
            found = {lead.key: lead for lead in leads if lead.key is not None and self.is_known(lead.key)}
            return list(found.values())
        if self.walk("", text).key is not None:
            return []
        base = text.rstrip("/").rpartition("/")[2]
        alike = {key: common_end(key, text.rstrip("/")) for key in self.named.get(base, ())}
        longest = max(alike.values(), default=0)
        return [Lead(key) for key in sorted(alike) if alike[key] == longest >= TAIL_MIN]

    def is_known(self, key: str) -> bool:
        """Whether a key is a unit, lies in one, or is the directory of a run."""
        return self.unit(key) is not None or key in self.homes

    @cached_property
    def named(self) -> dict[str, list[str]]:
        """Keys of units and of runs by their base names."""
        found: dict[str, list[str]] = {}
        for key in {*self.units.values(), *self.homes}:
            found.setdefault(split(key)[1], []).append(key)
        return found
