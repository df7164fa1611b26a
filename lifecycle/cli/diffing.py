"""``policy diff``: what another set of policies would do with the checkpoints that there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lifecycle import __version__
from lifecycle.cli.desk import Desk, writing
from lifecycle.cli.forecasting import site_of
from lifecycle.cli.selecting import moment
from lifecycle.core.policy import Policy, Rules
from lifecycle.core.units import parse_size
from lifecycle.errors import ConfigInvalid, LifecycleError, Refused
from lifecycle.flows.compare import Snapshot, compare
from lifecycle.flows.shelves import Site
from lifecycle.render.change import change_lines
from lifecycle.render.change_markdown import change_markdown
from lifecycle.render.change_value import change_value

if TYPE_CHECKING:
    from lifecycle.config.revisions import Revision
    from lifecycle.ports import Trashed
    from lifecycle.review.difference import Difference
    from lifecycle.world import World

REFUSED = 4
SIDES = ("old", "new")


@dataclass(frozen=True, slots=True)
class Wish:
    """The command line, as it was typed."""

    old: str
    new: str
    repo: Path
    index: Path | None
    at: str | None
    days: int
    most: tuple[str, ...]
    markdown: bool
    everything: bool


@dataclass(frozen=True, slots=True)
class _Known:
    """What policies are held against: names of stores and layouts, and where stores are."""

    stores: Collection[str]
    layouts: Collection[str]
    urls: Mapping[str, str]


Load = Callable[[Collection[str] | None, Collection[str] | None, Mapping[str, str] | None], tuple[Policy, ...]]


def diff(desk: Desk, wish: Wish) -> int:
    """``lifecycle policy diff``"""
    if wish.markdown and desk.as_json:
        raise ConfigInvalid("--markdown and --json are two answers: ask for one", code="usage")
    limits = [_limit(text) for text in wish.most]
    loads = [_source(text, wish.repo) for text in (wish.old, wish.new)]
    for side, load in zip(SIDES, loads, strict=True):
        _loaded(side, load, None)  # before anything else: what cannot be meant need not be compared
    with _snapshot(desk, wish) as (snapshot, known):
        old, new = (_loaded(side, load, known) for side, load in zip(SIDES, loads, strict=True))
        _refuse_undecidable(snapshot, (*old, *new))
        now_ns = desk.clock.now_ns()
        at_ns = now_ns if wish.at is None else moment(wish.at, now_ns)
        found = compare(snapshot, old, new, now_ns=at_ns, engine=__version__, days=wish.days)
    over = [text for text, exceeded in limits if exceeded(found)]
    code = REFUSED if over else 0
    _answer(desk, wish, found, over, code)
    return code


def _answer(desk: Desk, wish: Wish, found: Difference, over: Sequence[str], code: int) -> None:
    if wish.markdown:
        with writing():
            print(change_markdown(found), end="")
    else:
        value = {**change_value(found), "over": list(over), "exit_code": code}
        desk.answer(value, change_lines(found, desk.look, everything=wish.everything))
    for text in over:
        desk.warn(f"refused: the new set deletes more than {text} that the old one keeps")


def _limit(text: str) -> tuple[str, Callable[[Difference], bool]]:
    """A limit, and what tells whether a change is over it."""
    if text.isdecimal() and len(text) < 19:
        count = int(text)
        return f"{count} checkpoints", lambda found: found.lost[0] > count
    try:
        size = parse_size(text)
    except ValueError as e:
        hint = "a size such as 1TB, or a number of checkpoints"
        raise ConfigInvalid(f"--fail-if-deletes-more-than: {e}", code="usage", hint=hint) from e
    return text, lambda found: found.lost[1] > size


# -- the two sets


def _source(text: str, repo: Path) -> Load:
    """What reads a set; nothing is read yet but what git knows."""
    from lifecycle.config.policies import load_policies, parse_policies
    from lifecycle.config.revisions import Revision, files_of

    revision: Revision | None = Revision.read(text)
    if revision is None:
        return partial(load_policies, [Path(text)])
    return partial(parse_policies, files_of(revision, repo))


def _loaded(side: str, load: Load, known: _Known | None) -> tuple[Policy, ...]:
    """The policies of a side. Raises ConfigInvalid: with what is wrong, and on which side."""
    try:
        return load(known.stores, known.layouts, known.urls) if known else load(None, None, None)
    except ConfigInvalid as e:
        raise ConfigInvalid(f"the {side} set: {e}", code=e.code, hint=e.hint) from e


# -- what they are judged on


@contextmanager
def _snapshot(desk: Desk, wish: Wish) -> Iterator[tuple[Snapshot, _Known]]:
    if wish.index is not None:
        if desk.root is not None:
            raise ConfigInvalid("--root and --index name two different indexes: give one of them", code="usage")
        yield _exported(wish.index)
        return
    with desk.world(write=False, create=False) as world:
        yield snapshot_of(world, desk.warn)


def snapshot_of(world: World, warn: Callable[[str], None]) -> tuple[Snapshot, _Known]:
    """The index of a site, as it is now."""
    from lifecycle.config.compile import BUILT_IN

    settings = world.settings
    snapshot = Snapshot(
        reader=world.index.reader,
        rules=world.rules,
        site=site_of(world, warn),
        holds=tuple(world.holds()),
        lying=world.lying,
        source="the site's own index",
    )
    layouts = BUILT_IN | {layout.name for layout in settings.conventions.declared}
    return snapshot, _Known([s.name for s in settings.stores], layouts, {s.name: s.url for s in settings.stores})


def _exported(path: Path) -> tuple[Snapshot, _Known]:
    """An index that was exported."""
    from lifecycle.config.compile import BUILT_IN
    from lifecycle.index.exported import read_export

    found = read_export(path)
    facts, levels = found.facts, found.levels
    why = dict(facts.unread)

    def lying(name: str) -> list[Trashed]:
        if name in why:
            raise LifecycleError(why[name], code="trash_unread")
        return list(levels[name].trash or ())

    told = [name for name in facts.stores if name in why or (name in levels and levels[name].trash is not None)]
    rules = Rules(
        policies=(),
        references=facts.references,
        lease_ttl_s=facts.lease_ttl_s,
        digest="",
        node_local=facts.node_local,
        read_only=frozenset(facts.read_only),
        parents=facts.parents,
    )
    site = Site(
        names=facts.stores,
        prices=dict(facts.prices),
        copied_as=dict(facts.copied_as),
        capacities=dict(facts.capacities),
        lying={name: trash for name, level in levels.items() if (trash := level.trash)},
    )
    snapshot = Snapshot(
        reader=found,
        rules=rules,
        site=site,
        holds=found.holds(),
        lying={name: partial(lying, name) for name in told},
        source=f"the exported index {path.name}",
        hidden=None if facts.hidden is None else frozenset(facts.hidden),
    )
    urls = {name: f"{scheme}://" for name, scheme in facts.schemes}
    return snapshot, _Known(facts.stores, BUILT_IN | set(facts.layouts), urls)


def _refuse_undecidable(snapshot: Snapshot, policies: Sequence[Policy]) -> None:
    """Refuse patterns of which nobody can say what they match. Raises Refused."""
    from lifecycle.index.hiding import undecidable

    unknown = undecidable(policies, snapshot.hidden) if snapshot.hidden is not None else []
    if unknown:
        name, key, text = unknown[0]
        more = f", and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise Refused(
            f"names were replaced in this export: what {key}: {text!a} of policy {name} matches is not known{more}",
            code="names_hidden",
            hint="export it for these policies too (`index export --hash-paths --for DIR`), or with its names",
        )
