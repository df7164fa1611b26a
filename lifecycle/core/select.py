"""One selector engine: which policies apply to a run, which checkpoints they cover, which runs are judged as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from lifecycle.core.model import Checkpoint, Run
from lifecycle.core.policy import Policy

Group = tuple[Run, ...]


@lru_cache(maxsize=4096)
def glob(pattern: str) -> re.Pattern[str]:
    """A path glob as a regular expression: ``*`` and ``?`` stop at ``/``, ``**`` crosses it.

    ``a/**`` also matches ``a`` itself, so that a glob for all runs below a directory takes in a run that is
    that directory.
    """
    out: list[str] = []
    i = 0
    while i < len(pattern):
        if pattern.startswith("/**", i) and i + 3 == len(pattern):
            out.append("(?:/.*)?")
            i += 3
        elif pattern.startswith("**/", i):
            out.append("(?:.*/)?")
            i += 3
        elif pattern.startswith("**", i):
            out.append(".*")
            i += 2
        elif pattern[i] == "*":
            out.append("[^/]*")
            i += 1
        elif pattern[i] == "?":
            out.append("[^/]")
            i += 1
        elif pattern[i] == "[" and (end := pattern.find("]", i + 2)) > 0:
            body = re.sub(r"([\[\\^&~|])", r"\\\1", pattern[i + 1 : end])
            out.append("(?!/)[" + ("^" + body[1:] if body[0] == "!" else body) + "]")
            i = end + 1
        else:
            out.append(re.escape(pattern[i]))
            i += 1
    return re.compile("".join(out), re.DOTALL)


def applies(policy: Policy, run: Run) -> bool:
    """Whether ``policy`` has anything to say about ``run``."""
    match = policy.match
    if match.stores and run.store not in match.stores:
        return False
    return not match.runs or any(glob(pattern).fullmatch(run.id) for pattern in match.runs)


def covers(policy: Policy, checkpoint: Checkpoint) -> bool:
    """Whether ``policy``, applying to the run, takes in this checkpoint by layout, kind and owner."""
    match = policy.match
    return (
        (not match.layouts or checkpoint.layout in match.layouts)
        and (not match.kinds or checkpoint.kind.value in match.kinds)
        and (not match.owners or checkpoint.owner in match.owners)
    )


def group_key(policy: Policy, run: Run) -> tuple[str, ...]:
    """What runs of one group share: the captured groups of ``group_by``, or the run itself."""
    if policy.group_by is not None:
        found = re.search(policy.group_by, run.path)
        if found:
            return ("by", *(text or "" for text in (found.groups() or (found.group(),))))
    return ("run", run.store, run.path)


def groups(policy: Policy, runs: Iterable[Run]) -> list[Group]:
    """Runs that ``policy`` judges as one, in order of their first run."""
    found: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        found.setdefault(group_key(policy, run), []).append(run)
    return [tuple(group) for group in found.values()]


def clusters(runs: Iterable[Run], policies: Sequence[Policy]) -> Iterator[tuple[Group, tuple[Policy, ...]]]:
    """Runs that must be looked at together, with the policies that apply to any of them.

    A run that no ``group_by`` touches comes at once, so that a large index can be streamed; runs that some
    policy joins come last, all that are joined with one another in one cluster.
    """
    joined: list[tuple[Run, tuple[Policy, ...]]] = []
    for run in runs:
        mine = tuple(p for p in policies if applies(p, run))
        if any(p.group_by is not None for p in mine):
            joined.append((run, mine))
        else:
            yield (run,), mine
    leader: dict[tuple[str, ...], int] = {}
    parent = list(range(len(joined)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, (run, mine) in enumerate(joined):
        for policy in mine:
            first = leader.setdefault((policy.name, *group_key(policy, run)), i)
            parent[root(i)] = root(first)
    members: dict[int, list[int]] = {}
    for i in range(len(joined)):
        members.setdefault(root(i), []).append(i)
    for group in members.values():
        names = {p.name for i in group for p in joined[i][1]}
        yield tuple(joined[i][0] for i in group), tuple(p for p in policies if p.name in names)
