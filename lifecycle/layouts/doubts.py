"""What the units of a run make doubtful in each other: a doubt deletes nothing, it keeps one from standing for all."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from lifecycle.core.listing import join, split
from lifecycle.core.model import Evidence, Kind, Shape
from lifecycle.layouts.declared import Template
from lifecycle.layouts.heads import Head, head_of, is_role
from lifecycle.layouts.peek import Peek
from lifecycle.layouts.portions import are_portions, examples, is_shrunk
from lifecycle.layouts.table import DirLayout, plain
from lifecycle.layouts.twins import Moment, Save, doubled, rivals, settings
from lifecycle.layouts.walk import Found

SOUND = (Evidence.PROVEN, Evidence.WHOLE)
APART = (Kind.EXPORT, Kind.BEST_COPY)
"""What is made by hand or for others is no course of training, whatever it is called."""
KIN: tuple[tuple[str, ...], ...] = (
    ("lightning", "lightning_sharded", "nemo1", "nemo1_ranks", "nemo2"),
    ("accelerate", "diffusers"),
    ("dcp", "torchtitan"),
    ("deepspeed", "deepspeed_universal"),
    ("composer", "composer_sharded", "llm_foundry"),
    ("keras", "keras_weights", "tensorflow"),
    ("fairseq", "fairseq_shards"),
    ("olmo", "olmo_core"),
    ("torchtune", "torchtune_dcp"),
)
"""Layouts in which one trainer writes, by its version and its settings. Those of different lines are not one run's."""
FAMILY = {layout: line[0] for line in KIN for layout in line}
HEADS_MAX = 16
"""Directories of more names than this are collections: none of their files is asked whose it is."""
ASKED_MAX = 2
"""Files a name that are asked, the newest ones."""

TWINS_MIN = 2
"""So many names that are there with ``-v1`` and without are more than one save repeated after a restart."""

Name = tuple[str, Head]
"""Family of layouts, and what the names of its units have for themselves."""


def cast(found: list[Found], peek: Peek) -> None:
    """All doubts on the units of one run; those on a single unit come first, for they decide who is compared."""
    doubt_lonely_ranks(found)
    doubt_shrunk(found)
    doubt_numberless(found)
    doubt_lacking(found)
    doubt_peerless(found)
    doubt_strangers(found, peek)


def kind_of(found: Found) -> Kind:
    """What its content says that it is for, else what its layout is for."""
    return found.verdict.kind or (found.row.kind if isinstance(found.row, DirLayout) else Kind.FULL)


def doubt_lonely_ranks(found: list[Found]) -> None:
    """Prevents that a unit which lost the files of some ranks, with nothing else to show it, stands for whole ones.

    A set of ranks that two units share is a world size, not a loss.
    """
    by_layout: dict[str, list[Found]] = {}
    for unit in found:
        if unit.ranks and unit.verdict.evidence in (SOUND if unranked(unit) else SOUND[1:]):
            by_layout.setdefault(unit.layout, []).append(unit)
    for units in by_layout.values():
        seen = Counter(u.ranks for u in units)
        for unit in units:
            if seen[unit.ranks] == 1 and any(unit.ranks < other for other in seen):
                why = "it has fewer ranks' files than the others of its run"
                unit.verdict = unit.verdict.but(Evidence.DOUBTFUL, why, "members_missing")


def doubt_shrunk(found: list[Found]) -> None:
    """Prevents that two in a row which lost the same rank's file pass for a smaller world."""
    by_layout: dict[str, list[Found]] = {}
    for unit in filter(are_portions, found):
        by_layout.setdefault(unit.layout, []).append(unit)
    for units in by_layout.values():
        others = examples(units) if len({unit.ranks for unit in units}) > 1 else []
        for unit in units:
            if unit.verdict.evidence in SOUND and is_shrunk(unit, others):
                why = "it has fewer ranks' files than others of its run, whose bytes are in none of its own"
                unit.verdict = unit.verdict.but(Evidence.DOUBTFUL, why, "members_missing")


def unranked(unit: Found) -> bool:
    """Whether even a proof says nothing of its ranks."""
    return isinstance(unit.row, DirLayout) and unit.row.unranked


def doubt_numberless(found: list[Found]) -> None:
    """Prevents that of models that people put side by side under any names the youngest alone is kept.

    Of a unit of any name beside others that tells no step, nothing but its age is known: that must not rank it.
    What the site declared is as it says.
    """
    for unit in found if len(found) > 1 else ():
        if unit.verdict.evidence in SOUND and is_numberless(unit):
            why = "nothing tells its step: it may be of another run than what lies beside it"
            unit.verdict = unit.verdict.but(Evidence.DOUBTFUL, why, "step_unknown")


def is_numberless(unit: Found) -> bool:
    """Whether neither its name, which may be any, nor its content says when in its run it was saved."""
    named, verdict = unit.named, unit.verdict
    numbers = (named.step, named.epoch, verdict.step, verdict.epoch, named.saved_at_ns or None)
    any_name = not isinstance(unit.row, Template) and unit.row.any_name and kind_of(unit) is not Kind.EXPORT
    return any_name and numbers.count(None) == len(numbers)


def doubt_lacking(found: list[Found]) -> None:
    """Prevents that a composite which lost a member, as another one of its run has it, is taken for a smaller unit."""
    held: dict[str, frozenset[str]] = {}
    for unit in found:
        if unit.held:
            held[unit.layout] = held.get(unit.layout, frozenset()) | unit.held
    for unit in found if held else ():
        lacking = held.get(unit.layout, frozenset()) - unit.held
        if lacking and unit.verdict.evidence in SOUND:
            why = f"others of its run have {plain(min(lacking))}, and it does not"
            unit.verdict = unit.verdict.but(Evidence.DOUBTFUL, why, "members_missing")


def doubt_peerless(found: list[Found]) -> None:
    """Prevents that the first of a run, cut while it was saved, counts: only a neighbour with the same files tells."""
    asking = [u for u in found if isinstance(u.row, DirLayout) and u.row.peers and u.verdict.evidence in SOUND]
    seen = Counter((u.layout, u.ranks) for u in asking)
    for unit in asking:
        if seen[unit.layout, unit.ranks] < 2:
            why = "no other checkpoint of its run has the same files, and nothing else tells whether these are all"
            unit.verdict = unit.verdict.but(Evidence.DOUBTFUL, why)


def doubt_strangers(found: list[Found], peek: Peek) -> None:
    """Prevents that one person's newest pushes out all that another one has in the same directory.

    Where the units of a directory have several names for themselves, or layouts that no one trainer writes, none
    of them stands for another: not even those without a name of their own, which may be anybody's. The same where
    settings in the names, or ``-v1`` behind them, show two runs. What files say of each other is heard first. What
    a site declares is one run, as it says.
    """
    units = [u for u in found if kind_of(u) not in APART and u.verdict.evidence is not Evidence.DOOMED]
    telling = settings((u.named.head, moment(u)) for u in units if not isinstance(u.row, Template))
    named = by_name(units, telling)
    apart = len(named) > 1 and not (len(named) <= HEADS_MAX and is_one(named, telling, peek))
    if not apart and not are_twins(units, peek):
        return
    for unit in units:
        if unit.verdict.evidence in SOUND and not isinstance(unit.row, Template):
            why = "names of several runs are in its directory: it may be of another one than what lies beside it"
            unit.verdict = unit.verdict.but(Evidence.DOUBTFUL, why, "several_names")


def by_name(units: Sequence[Found], telling: frozenset[str]) -> dict[Name, list[Found]]:
    """The units of each name; those that only say what they are to their run stand with its other units."""
    named: dict[Name, list[Found]] = defaultdict(list)
    roles: list[Found] = []
    for unit in units:
        if is_numberless(unit):
            continue
        head = () if isinstance(unit.row, Template) else head_of(unit.named.head, telling)
        if head or not is_role(unit.named.head):
            named[family(unit), head].append(unit)
        else:
            roles.append(unit)
    known = {which for which, _ in named}
    for unit in roles:
        if family(unit) not in known:
            named[family(unit), ()].append(unit)
    return named


def moment(unit: Found) -> Moment:
    """When in its run it was saved, as far as its name or else its content tells."""
    named, verdict = unit.named, unit.verdict
    step = verdict.step if named.step is None else named.step
    return step, verdict.epoch if named.epoch is None else named.epoch


def are_twins(units: Sequence[Found], peek: Peek) -> bool:
    """Whether two trainers wrote the same names: Lightning put ``-v1`` to those of the later one, or metrics differ.

    Two callbacks of one trainer do that, too, but then a file names both of a pair. A single pair is a save repeated
    after a restart, and names that tell no moment, like ``last``, say nothing.
    """
    ours = {u.key: u for u in units if family(u) == "lightning"}
    versions = doubled({key for key, unit in ours.items() if unit.named[:3] != (None, None, ())})
    values = rivals(Save(key, moment(u), dict(u.named.metrics), saved_at_ns(u)) for key, u in ours.items())
    return any(len(pairs) >= TWINS_MIN and not are_of_one(pairs, ours, peek) for pairs in (versions, values))


def are_of_one(pairs: Sequence[tuple[str, str]], ours: Mapping[str, Found], peek: Peek) -> bool:
    """Whether a file names both of a pair as its own trainer's."""
    names = [{split(key)[1] for key in pair} for pair in pairs]
    for side in range(2):
        for unit in newest(ours[pair[side]] for pair in pairs):
            said = set(names_in(unit, peek))
            if any(pair <= said for pair in names):
                return True
    return False


def saved_at_ns(unit: Found) -> int:
    """The newest time of its files."""
    return max((max(f.mtimes_ns, default=0) for f in unit.folders), default=0)


def family(unit: Found) -> str:
    """The layouts with which a unit's may share a run, by the name of the first of them."""
    return "" if isinstance(unit.row, Template) else FAMILY.get(unit.layout, unit.layout)


def is_one(named: dict[Name, list[Found]], telling: frozenset[str], peek: Peek) -> bool:
    """Whether what the newest units of each name say of others links all the names to each other."""
    linked: list[set[Name]] = [{name} for name in named]
    for name, units in named.items():
        texts = (re.sub(r"\.ckpt$", "", text) for unit in newest(units) for text in names_in(unit, peek))
        heard = {(name[0], head_of(text, telling)) for text in texts}
        said = {name, *heard}.intersection(named)
        touching = [group for group in linked if group & said]
        linked = [group for group in linked if not group & said] + [set().union(*touching)]
    return len(linked) == 1


def newest(units: Iterable[Found]) -> list[Found]:
    """Those of the highest steps, which are asked for all of their name."""
    return sorted(units, key=lambda u: (u.named.step or 0, u.key))[-ASKED_MAX:]


def names_in(unit: Found, peek: Peek) -> Iterable[str]:
    """The names that a unit mentions as of its own directory, which may have been moved as a whole."""
    memory = None if isinstance(unit.row, Template) else unit.row.memory
    file = join(unit.key, unit.verdict.proof) if unit.verdict.proof and unit.shape is Shape.DIR else unit.key
    size = next((s for f in unit.folders for n, s in zip(f.names, f.sizes, strict=True) if join(f.path, n) == file), 0)
    for mention in memory(peek, file, size) if memory and size else ():
        above, name = split(mention.text)
        if split(above)[1] == split(unit.run)[1]:
            yield name
