"""From policy files to the policies that the core reads, each with a digest of what it means."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from lifecycle import errors
from lifecycle.config import schema
from lifecycle.config.check import check
from lifecycle.config.fields import Context
from lifecycle.config.load import Document, parse, read_file
from lifecycle.config.problems import InvalidFiles, Problem, gather
from lifecycle.core.policy import (
    Age,
    Best,
    Bucket,
    Ended,
    Every,
    Final,
    First,
    Incomplete,
    Last,
    Limits,
    Match,
    Name,
    Period,
    Place,
    Policy,
    Rule,
    Steps,
    Tagged,
    Unit,
    Younger,
)
from lifecycle.core.units import escape
from lifecycle.layouts.unions import SCHEME

FILES_MAX = 1000


def load_policies(
    paths: Iterable[Path],
    stores: Collection[str] | None = None,
    layouts: Collection[str] | None = None,
    urls: Mapping[str, str] | None = None,
) -> tuple[Policy, ...]:
    """The policies in ``paths``, in order of their names.

    Args:
        paths: files, one policy each, and directories of ``*.yaml`` and ``*.yml``.
        stores: names of the stores there are: a policy that speaks of others is wrong. None: not known here.
        layouts: names of the layouts there are, likewise.
        urls: where they are, by name, likewise: it says which storage classes there are.

    Raises:
        ConfigInvalid: with all that is wrong in all the files.
    """
    problems: list[Problem] = []
    files = [partial(read_file, path) for path in _files(paths, problems)]
    return _gathered(files, problems, stores, layouts, urls)


def parse_policies(
    texts: Iterable[tuple[str, bytes]],
    stores: Collection[str] | None = None,
    layouts: Collection[str] | None = None,
    urls: Mapping[str, str] | None = None,
) -> tuple[Policy, ...]:
    """The same from (name, content) of files that lie nowhere, such as those of another revision.

    Raises:
        ConfigInvalid: with all that is wrong in all of them.
    """
    files = [partial(parse, content, escape(name)) for name, content in texts]
    return _gathered(files, [], stores, layouts, urls)


def _gathered(
    files: Iterable[Callable[[], Document]],
    problems: list[Problem],
    stores: Collection[str] | None,
    layouts: Collection[str] | None,
    urls: Mapping[str, str] | None,
) -> tuple[Policy, ...]:
    found: dict[str, Policy] = {}
    for file in files:
        with gather(problems):
            document = file()
            policy = compile_policy(document, stores, layouts, urls)
            if policy.name in found:
                text = f"policy: {policy.name} is already the name of the one at {found[policy.name].source}"
                problems.append(Problem(document.place(("policy",)), text))
            found.setdefault(policy.name, policy)
    if problems:
        raise InvalidFiles(problems)
    return tuple(found[name] for name in sorted(found))


def is_policy(name: str) -> bool:
    """Whether a file of a directory of policies is one, by its name."""
    return name.endswith((".yaml", ".yml")) and name[0] != "."


def _files(paths: Iterable[Path], problems: list[Problem]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        place = errors.Place(escape(str(path)))
        try:
            if not path.is_dir():
                files.append(path)
                continue
            inside = sorted(p for p in path.iterdir() if is_policy(p.name))
        except (OSError, ValueError) as error:
            problems.append(Problem(place, f"cannot be read: {getattr(error, 'strerror', None) or error}"))
            continue
        if not inside:
            problems.append(Problem(place, "holds no policy: no file here ends in .yaml or .yml"))
        files += inside
    if len(files) > FILES_MAX:
        problems.append(
            Problem(errors.Place(escape(str(files[0]))), f"one of {len(files)} files, more than {FILES_MAX}")
        )
        return []
    return files


def compile_policy(
    document: Document,
    stores: Collection[str] | None = None,
    layouts: Collection[str] | None = None,
    urls: Mapping[str, str] | None = None,
) -> Policy:
    """The policy in ``document``, with its digest and its source.

    Raises:
        ConfigInvalid: with all that is wrong in the file.
    """
    problems: list[Problem] = []
    context = Context(
        stores=None if stores is None else frozenset(stores),
        layouts=None if layouts is None else frozenset(layouts),
        urls=urls,
    )
    file = check(schema.PolicyFile, document, problems, context)
    if file is None:
        raise InvalidFiles(problems)
    if problems := list(_takers(file, document, urls or {})):
        raise InvalidFiles(problems)
    place = document.place(("policy",), key=True)
    policy = Policy(
        name=file.policy,
        match=Match(
            runs=tuple(file.match.runs),
            stores=frozenset(file.match.stores),
            layouts=frozenset(file.match.layouts),
            kinds=frozenset(kind.value for kind in file.match.kinds),
            owners=frozenset(file.match.owners),
        ),
        keep=None if file.keep is None else tuple(map(_rule, file.keep)),
        place=tuple(map(_place, file.place)),
        pressure=tuple(item.meant for item in file.pressure),
        incomplete=_incomplete(file.incomplete) if file.incomplete else None,
        ended=_ended(file.ended) if file.ended else None,
        limits=_limits(file.limits),
        group_by=file.group_by,
        timezone=file.timezone,
        approve=file.apply == "approve",
        announce_s=file.announce,
    )
    return replace(policy, digest=meaning_digest(policy), source=f"{place.file}:{place.line}")


def _takers(file: schema.PolicyFile, document: Document, urls: Mapping[str, str]) -> Iterator[Problem]:
    """Places on a store over several roots, which takes no copies, for what may come from other stores."""
    homes = {*file.match.stores} or {run.partition(":")[0] for run in file.match.runs} or {""}
    for i, item in enumerate(file.place):
        for j, name in enumerate(item.on):
            store = name.partition("@")[0]
            if not urls.get(store, "").startswith(SCHEME):
                continue
            loc = ("place", i, "on", j)
            if homes - {store}:
                text = f"place.on: {store} is spread over several roots and takes no copies"
                hint = f"only what is at home there can stay there: match: {{stores: [{store}]}}"
                yield Problem(document.place(loc), f"{text}: {hint}", "takes_no_copies")
            elif item.full:
                text = f"place.full: {store} is spread over several roots, where nothing is made thin in place"
                yield Problem(document.place(loc), text, "slim_unsupported")


def _every(file: schema.EveryFile) -> Every:
    if file.time is not None:
        return Every(Unit.TIME, file.time, file.pick)
    if file.epochs is not None:
        return Every(Unit.EPOCHS, file.epochs, file.pick)
    return Every(Unit.STEPS, file.steps or 1, file.pick)  # the schema lets exactly one of the three pass


def _best(file: schema.BestFile) -> Best:
    ties = tuple((tie.metric, tie.mode) for tie in file.ties if tie is not None)
    return Best(file.metric, file.mode, file.count, ties, file.missing)


def _tagged(text: str) -> Tagged:
    key, equals, value = text.partition("=")
    return Tagged(key, value if equals else None)


_RULES: dict[str, Callable[[Any], Rule]] = {
    "last": Last,
    "first": First,
    "final": lambda file: Final(file.quiet),
    "every": _every,
    "best": _best,
    **{period.value: partial(Bucket, period) for period in Period},
    "steps": lambda steps: Steps(frozenset(steps)),
    "younger": lambda file: Younger(file.than, file.of),
    "name": Name,
    "tagged": _tagged,
}


def _rule(item: schema.RuleFile) -> Rule:
    (name,) = item.model_fields_set
    return _RULES[name](getattr(item, name))


def _place(file: schema.PlaceFile) -> Place:
    return Place(
        on=tuple(file.on),
        kept_by=frozenset(file.kept_by),
        older=_age(file.older),
        younger=_age(file.younger),
        steps_min=file.steps.min if file.steps else None,
        steps_max=file.steps.max if file.steps else None,
        bytes_min=file.bytes.min if file.bytes else None,
        bytes_max=file.bytes.max if file.bytes else None,
        kinds=frozenset(kind.value for kind in file.kind),
        owners=frozenset(file.owner),
        best=Best(file.best.metric, file.best.mode, file.best.count) if file.best else None,
        part=file.parts or "",
        gives_up_full=file.full is not None,
        cost_ignored=file.cost == "ignore",
    )


def _age(file: schema.AgeFile | None) -> Age | None:
    return Age(file.than, file.of) if file else None


def _incomplete(file: schema.IncompleteFile) -> Incomplete:
    return Incomplete(file.delete_after, file.staging_after)


def _ended(file: schema.EndedFile) -> Ended:
    return Ended(
        delete_after_s=file.delete_after,
        runs=tuple(file.runs),
        quiet_s=file.quiet,
        step_max=file.step_max,
        floor=file.floor != "none",
    )


def _limits(file: schema.LimitsFile) -> Limits:
    return Limits(
        copies_min=file.copies_min,
        deletes_max=file.deletes_max,
        delete_bytes_max=file.delete_bytes_max,
        delete_fraction_max=file.delete_fraction_max,
        run_deletes_max=file.run_deletes_max,
        grace_s=file.grace,
        trash_s=file.trash,
    )


def meaning_digest(*values: object) -> str:
    """SHA-256 over what ``values`` mean: comments, the order of keys, of rules and of globs do not change it."""
    text = json.dumps([_canonical(value) for value in values], sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


# Lists whose order means nothing: the rules are OR-ed, and so are globs; stores at one place are all meant.
_UNORDERED = frozenset({"keep", "on", "runs"})
# Where a value was written, what it is called when hashed and how fast it is read are no part of what it means.
_LEFT_OUT = frozenset({"digest", "source", "workers"})
# What came later is left out while it says nothing, so that it makes no plan stale that was made before it was there.
_LATER = frozenset({"announce_s", "approve", "cost_ignored", "gives_up_full", "part", "roots"})


def _canonical(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        kept = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in _LEFT_OUT}
        kept = {name: part for name, part in kept.items() if part or name not in _LATER}
        table = {name: _canonical(part) for name, part in kept.items() if not isinstance(part, errors.Place)}
        for name in _UNORDERED & table.keys():
            part = table[name]
            table[name] = sorted(part, key=_text) if isinstance(part, list) else part
        return [type(value).__name__, table]
    if isinstance(value, frozenset):
        return sorted((_canonical(part) for part in value), key=_text)
    if isinstance(value, tuple):
        return [_canonical(part) for part in value]
    return value.value if isinstance(value, Enum) else value


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)
