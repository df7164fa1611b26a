"""Replaces the names of runs and checkpoints in an export by keyed digests, as far as no policy can tell.

A name is replaced part by part, parts being what stands between slashes. What a pattern of a policy spells out stays as
it is, wherever it stands; so does every part of a name that some pattern would match otherwise once it is replaced. So
the policies that an export was made for say the same of it as of the index. Of a pattern that they do not have, nobody
could say what it matches: ``undecidable`` names those, and a review refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from hashlib import blake2b

from lifecycle.core.model import Checkpoint, Hold, Pointer, Run
from lifecycle.core.policy import Name, Policy
from lifecycle.core.select import applies, glob
from lifecycle.index.exported import Facts, Gone, OfRun, OfStore, Row
from lifecycle.ports import StoreRow

LEFT_OUT = "(left out)"
LEAD = "~"
_ANY = frozenset({"*", "**", ""})
_WILD = re.compile(r"[*?\[]")


def patterns(policies: Iterable[Policy]) -> Iterator[tuple[str, str, str]]:
    """(policy, key, pattern) of all in policies that looks at names."""
    for policy in policies:
        yield from ((policy.name, "match.runs", text) for text in policy.match.runs)
        yield from ((policy.name, "ended.runs", text) for text in (policy.ended.runs if policy.ended else ()))
        yield from ((policy.name, "keep.name", r.pattern) for r in policy.keep or () if isinstance(r, Name))
        if policy.group_by is not None:
            yield policy.name, "group_by", policy.group_by


def undecidable(policies: Iterable[Policy], hidden: Collection[str]) -> list[tuple[str, str, str]]:
    """Patterns of which nobody can say what they match in an export: neither was it made for them, nor are they made
    of nothing but words that it left as they are and ``*``.
    """
    words = frozenset(hidden)
    return [
        (name, key, text)
        for name, key, text in patterns(policies)
        if f"{key} {text}" not in words and (key in ("group_by", "keep.name") or not {*_parts(text)} <= words | _ANY)
    ]


def _parts(pattern: str) -> list[str]:
    """Parts of a run's pattern, without its store."""
    return pattern.partition(":")[2].split("/")


class Hiding:
    """One replacing of names, the same for the same name and key."""

    def __init__(
        self,
        policies: Sequence[Policy],
        parents: Mapping[str, str] | Sequence[tuple[str, str]],
        runs: Iterable[Run],
        key: bytes,
        kept: Iterable[str] = (),
    ) -> None:
        self._key = key
        self._asked = [*patterns(policies), *(("", "match.runs", pattern) for pattern, _ in dict(parents).items())]
        texts = [text for _, key_, text in self._asked if key_ in ("match.runs", "ended.runs")]
        self.words = {part for text in texts for part in _parts(text) if part and not _WILD.search(part)} | {*kept}
        self._cache: dict[str, str] = {}
        self.shown = 0
        self._leave_what_patterns_see(list(runs), policies, [glob(text) for text in texts])

    @property
    def hidden(self) -> tuple[str, ...]:
        """What a review has to know: words that were left, and patterns that see no difference."""
        return tuple(sorted(self.words | {f"{key} {text}" for _, key, text in self._asked}))

    def _leave_what_patterns_see(
        self, runs: list[Run], policies: Sequence[Policy], globs: Sequence[re.Pattern[str]]
    ) -> None:
        """Part by part from the left until no pattern sees a difference; what is left whole is counted and told."""
        for run in runs:
            if any(policy.group_by is not None and applies(policy, run) for policy in policies):
                self.words.update(run.path.split("/"))
        names = {c.name for run in runs for c in run.checkpoints}
        wanted = [text for _, key, text in self._asked if key == "keep.name"]
        again = True
        while again:
            before = len(self.words)
            self._cache.clear()
            for run in runs:
                for part in run.path.split("/"):
                    if not self._is_seen(run, globs):
                        break
                    self.words.add(part)
            for name in names if wanted else ():
                if any(fnmatchcase(name, text) != fnmatchcase(self.path(name), text) for text in wanted):
                    self.words.update(name.split("/"))
            again = len(self.words) > before
        self._cache.clear()
        self.shown = sum(self.path(run.path) == run.path for run in runs)

    def _is_seen(self, run: Run, globs: Sequence[re.Pattern[str]]) -> bool:
        """Whether some pattern matches its name otherwise once that is replaced."""
        shown = f"{run.store}:{self.path(run.path)}"
        return any(bool(g.fullmatch(run.id)) != bool(g.fullmatch(shown)) for g in globs)

    # -- names

    def path(self, path: str) -> str:
        """A path or key, part by part."""
        return "/".join(map(self._part, path.split("/")))

    def _part(self, part: str) -> str:
        if not part or part in self.words:
            return part
        if part not in self._cache:
            content = part.encode("utf-8", "surrogatepass")
            self._cache[part] = LEAD + blake2b(content, key=self._key, digest_size=8).hexdigest()
        return self._cache[part]

    def _id(self, identity: str) -> str:
        store, colon, key = identity.partition(":")
        return f"{store}:{self.path(key)}" if colon else self._part(identity)

    # -- rows

    def facts(self, facts: Facts) -> Facts:
        """What the settings say, with names replaced."""
        return replace(
            facts,
            references=tuple((self._reference(name), self._id(target)) for name, target in facts.references),
            parents=tuple((pattern, self._id(target)) for pattern, target in facts.parents),
            unread=tuple((store, LEFT_OUT) for store, _ in facts.unread),
            hidden=self.hidden,
        )

    def _reference(self, name: str) -> str:
        return self._id(name) if ":" in name else self._part(name)

    def row(self, value: Row) -> Row:
        """A row, with names replaced."""
        match value:
            case Run():
                return self._run(value)
            case OfRun():
                return value._replace(
                    path=self.path(value.path),
                    copies=tuple(map(self._checkpoint, value.copies)),
                    history=tuple((self._checkpoint(c), there) for c, there in value.history),
                )
            case OfStore():
                starts = tuple(start._replace(path=self.path(start.path)) for start in value.watched.starts)
                return value._replace(watched=value.watched._replace(starts=starts))
            case Pointer():
                return self._pointer(value)
            case Gone():
                return value._replace(key=self.path(value.key))
            case Hold():
                return replace(value, target=self._id(value.target), owner=self._part(value.owner), reason=LEFT_OUT)
            case StoreRow():
                return value
            case (store, path):
                return (store, self.path(path))

    def _run(self, run: Run) -> Run:
        return replace(
            run,
            path=self.path(run.path),
            checkpoints=tuple(map(self._checkpoint, run.checkpoints)),
            pointers=tuple(map(self._pointer, run.pointers)),
            leases=tuple((self.path(key), at) for key, at in run.leases),
            writing=tuple((self.path(key), at) for key, at in run.writing),
            flags=tuple((self.path(key), code) for key, code in run.flags),
        )

    def _pointer(self, pointer: Pointer) -> Pointer:
        target = None if pointer.target is None else self._id(pointer.target)
        return replace(pointer, run=self.path(pointer.run), key=self._reference(pointer.key), target=target)

    def _checkpoint(self, c: Checkpoint) -> Checkpoint:
        return replace(
            c,
            run=self.path(c.run),
            key=self.path(c.key),
            name=self.path(c.name),
            members=tuple(map(self.path, c.members)),
            needs=tuple(map(self.path, c.needs)),
            why=LEFT_OUT if c.why else "",
        )
