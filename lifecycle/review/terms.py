"""How the text of two sets of policies differs, in a line each, and which differences leave less room for a mistake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import NamedTuple

from lifecycle.core.policy import Limits, Match, Policy, Rule
from lifecycle.core.rules import write
from lifecycle.core.units import format_bytes, format_seconds


class Term(NamedTuple):
    """One difference."""

    policy: str
    what: str
    """The key as a policy writes it, such as ``limits.trash``."""
    old: str
    """As it was; empty where it was not there."""
    new: str
    risk: str = ""
    """What may go wrong more easily from now on; empty where nothing does."""


NONE = "none"
_UNASKED = "nobody is asked before it deletes"
_LOST = "what it deletes is gone at once, with no way back"


def terms(old: Iterable[Policy], new: Iterable[Policy]) -> list[Term]:
    """Every difference, policy by policy; order, comments and spelling are none."""
    before, after = {p.name: p for p in old}, {p.name: p for p in new}
    found: list[Term] = []
    for name in sorted(before.keys() | after.keys()):
        one, other = before.get(name), after.get(name)
        if one is None:
            found += _whole(other) if other else ()
        elif other is None:
            found.append(Term(name, "policy", "there", "gone"))
        elif one.digest != other.digest or one != other:
            found += _changed(one, other)
    return found


def _whole(new: Policy) -> Iterator[Term]:
    """A policy that was not there, with all that it says."""
    yield Term(new.name, "policy", "", "new")
    yield Term(new.name, "apply", "", "approve" if new.approve else "auto", "" if new.approve else _UNASKED)
    trash_s = new.limits.trash_s
    yield Term(new.name, "limits.trash", "", _seconds(trash_s), "" if trash_s else _LOST)
    yield Term(new.name, "keep", "", _listed(new.keep))
    blank = Policy(new.name, Match(), new.keep, limits=Limits(trash_s=trash_s), approve=new.approve)
    yield from (term._replace(old="") for term in _changed(blank, new))


def _changed(old: Policy, new: Policy) -> Iterator[Term]:
    name = new.name
    yield from _consent(old, new)
    yield from _limits(name, old.limits, new.limits)
    yield from _kept(name, old, new)
    yield from _match(name, old.match, new.match)
    for what in ("incomplete", "ended", "place", "pressure", "group_by", "timezone"):
        one, other = getattr(old, what), getattr(new, what)
        if one != other:
            yield Term(name, what, _told(one), _told(other), _risks(old, new).get(what, ""))


def _risks(old: Policy, new: Policy) -> dict[str, str]:
    """What these take that is never given back, by key, where they did not before."""
    found = {}
    if any(place.gives_up_full for place in new.place) and not any(place.gives_up_full for place in old.place):
        found["place"] = "what trainings need to resume may be given up"
    if new.ended and not new.ended.floor and not (old.ended and not old.ended.floor):
        found["ended"] = "the newest checkpoint of a run that is over goes too"
    return found


def _consent(old: Policy, new: Policy) -> Iterator[Term]:
    if old.approve != new.approve:
        words = {True: "approve", False: "auto"}
        risk = _UNASKED if old.approve else ""
        yield Term(new.name, "apply", words[old.approve], words[new.approve], risk)
    if old.announce_s != new.announce_s:
        risk = "less time to object before it deletes" if (new.announce_s or 0) < (old.announce_s or 0) else ""
        yield Term(new.name, "announce", _seconds(old.announce_s), _seconds(new.announce_s), risk)


def _seconds(value: int | None) -> str:
    return format_seconds(value) if value else NONE


def _bytes(value: int | None) -> str:
    return NONE if value is None else format_bytes(value)


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:g}"


def _count(value: int | None) -> str:
    return NONE if value is None else str(value)


_TRASH = "less time to bring back what it deletes"
_GRACE = "younger checkpoints may be deleted"
_COPIES = "fewer copies are enough"
_MORE = "one plan may delete more"
_LIMITS: dict[str, tuple[str, str, Callable[..., str], str]] = {
    "trash_s": ("trash", "fewer", _seconds, _TRASH),
    "grace_s": ("grace", "fewer", _seconds, _GRACE),
    "copies_min": ("copies_min", "fewer", _count, _COPIES),
    "deletes_max": ("deletes_max", "more", _count, _MORE),
    "delete_bytes_max": ("delete_bytes_max", "more", _bytes, _MORE),
    "delete_fraction_max": ("delete_fraction_max", "more", _number, _MORE),
    "run_deletes_max": ("run_deletes_max", "more", _count, _MORE),
}
"""By field: the key in a policy, which way is the risky one, how a value reads, and what the risk is."""


def _limits(name: str, old: Limits, new: Limits) -> Iterator[Term]:
    for field, (key, risky, told, risk) in _LIMITS.items():
        one, other = getattr(old, field), getattr(new, field)
        if one == other:
            continue
        fewer = (other or 0) < (one or 0)
        more = other is None or (one is not None and other > one)
        worse = fewer if risky == "fewer" else more
        text = _LOST if field == "trash_s" and other is None else risk
        yield Term(name, f"limits.{key}", told(one), told(other), text if worse else "")


def _kept(name: str, old: Policy, new: Policy) -> Iterator[Term]:
    one, other = _rules(old.keep), _rules(new.keep)
    if old.keep is None or new.keep is None:
        if old.keep != new.keep:
            yield Term(name, "keep", _listed(old.keep), _listed(new.keep))
        return
    gone, come = list((one - other).elements()), list((other - one).elements())
    for rule in gone:  # a rule whose number changes is one line: last: 5 -> last: 3
        word = rule.partition(":")[0]
        twin = next((r for r in come if r.partition(":")[0] == word), "")
        if twin:
            come.remove(twin)
        yield Term(name, "keep", rule, twin)
    yield from (Term(name, "keep", "", rule) for rule in come)


def _rules(keep: tuple[Rule, ...] | None) -> Counter[str]:
    return Counter(write(rule) for rule in keep or ())


def _listed(keep: tuple[Rule, ...] | None) -> str:
    if keep is None:
        return "everything"
    return "; ".join(sorted(_rules(keep))) or NONE


def _match(name: str, old: Match, new: Match) -> Iterator[Term]:
    for field in fields(Match):
        one, other = getattr(old, field.name), getattr(new, field.name)
        if frozenset(one) != frozenset(other):
            yield Term(name, f"match.{field.name}", _told(one), _told(other))


def _told(value: object) -> str:
    """A value in one line, without what is not given."""
    if value is None or value in ((), frozenset()):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if is_dataclass(value) and not isinstance(value, type):
        given = ((f.name, getattr(value, f.name), f.default) for f in fields(value))
        parts = (_pair(k, v) for k, v, default in given if v != default and _told(v))
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, frozenset):
        return ", ".join(sorted(map(_told, value)))
    if isinstance(value, tuple):
        return ", ".join(map(_told, value))
    return str(value.value) if isinstance(value, Enum) else str(value)


_KEYS = {
    "age_s": "than",
    "anchor": "of",
    "part": "parts",
    "kinds": "kind",
    "owners": "owner",
    "above_bp": "above",
    "until_bp": "until",
    "quota_bytes": "quota",
}
"""Fields that a policy calls otherwise."""
_WHOLE = {"gives_up_full": "full: none", "cost_ignored": "cost: ignore", "floor": "floor: none"}
"""Fields that say something by not being as usual."""


def _pair(field: str, value: object) -> str:
    """A field as a policy writes it."""
    return _WHOLE.get(field) or f"{_KEYS.get(field, field.removesuffix('_s'))}: {_length(field, value)}"


def _length(field: str, value: object) -> str:
    if field.endswith("_s") and isinstance(value, int) and not isinstance(value, bool):
        return _seconds(value)
    if field.endswith("_bp") and isinstance(value, int):
        return f"{value / 100:g} %"
    return _told(value)
