"""A bucket's own lifecycle rules and our policies: one in the words of the other, and what neither can say.

Form: the lifecycle configuration of the Amazon S3 API, as ``get-bucket-lifecycle-configuration`` shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from lifecycle.core.policy import Anchor, Place, Policy, Younger
from lifecycle.core.units import escape, format_seconds
from lifecycle.review.borrowed import Borrowed, Unclear

DAY_S = 86_400
AMONG = "S3 counts whole days of each object to midnight UTC; here it is the age of the checkpoint, to the second"
FLOOR = "S3 lets everything of that age go; here the newest complete checkpoint of each run, and what is held, stays"
ALL_OBJECTS = "S3 takes every object there, be it part of a checkpoint or not: trash, notes and markers of ours, too"
LATER_CLASSES = frozenset({"STANDARD_IA", "ONEZONE_IA"})
NARROW = frozenset({"Tag", "Tags", "ObjectSizeGreaterThan", "ObjectSizeLessThan"})
"""What makes a filter be about some objects only."""
IA_DAYS_MIN = 30
"""S3 refuses transitions to these classes before so many days."""

Json = Mapping[str, object]


class Told(NamedTuple):
    """One rule of a bucket in our words."""

    name: str
    prefix: str
    """Below the root of the bucket."""
    policy: Borrowed


# -- from a bucket


def read_rules(configuration: object, store: str) -> Iterator[Told | Unclear]:
    """Each rule that is switched on as a policy's body for ``store``, or why it is none.

    Raises:
        Unclear: it is no lifecycle configuration at all.
    """
    rules = configuration.get("Rules") if isinstance(configuration, dict) else None
    if not isinstance(rules, list):
        raise Unclear('this is no lifecycle configuration: it has no list "Rules"')
    for number, rule in enumerate(rules, 1):
        if not isinstance(rule, dict):
            raise Unclear(f"rule {number} is no object")
        name = str(rule.get("ID") or f"rule-{number}")
        try:
            yield _read(rule, name, store)
        except Unclear as e:
            yield Unclear(f"{escape(name)}: {e}")


def _read(rule: Json, name: str, store: str) -> Told:
    if rule.get("Status") != "Enabled":
        raise Unclear("it is switched off")
    prefix = _prefix(rule)
    notes = [AMONG]
    body: dict[str, object] = {}
    expires = _days(rule, "Expiration", notes)
    moves = _moves(rule)
    if expires is not None:
        body["keep"] = [{"younger": {"than": f"{expires}d", "of": "now"}}]
        notes.append(FLOOR)
    if moves:
        older = [{"older": {"than": f"{days}d", "of": "now"}, "on": [f"{store}@{word}"]} for days, word in moves]
        body["place"] = [*reversed(older), {"on": [store]}]
    abort = rule.get("AbortIncompleteMultipartUpload")
    if isinstance(abort, dict):
        days = _number(abort.get("DaysAfterInitiation"), "DaysAfterInitiation")
        body["incomplete"] = {"delete_after": f"{days}d"}
        notes.append("here incomplete is all that never became complete, not uploads alone, and they go only if a")
        notes[-1] += " complete one is there; leave the bucket's rule for uploads as it is"
    notes += [
        f"{key} has no word here: versions are the bucket's own business, and undo may rest on them"
        for key in ("NoncurrentVersionExpiration", "NoncurrentVersionTransitions")
        if key in rule
    ]
    if not body:
        raise Unclear("nothing of it has a word here")
    return Told(name, prefix, Borrowed(body, tuple(notes)))


def _prefix(rule: Json) -> str:
    """Of what the rule is about. Raises Unclear where it is about less than a prefix: a policy would be about more."""
    asked = rule.get("Filter", rule)
    inner = asked.get("And", asked) if isinstance(asked, dict) else None
    if not isinstance(asked, dict) or not isinstance(inner, dict):
        raise Unclear("its filter cannot be read")
    if asked is not rule and (unknown := sorted(map(str, {*asked, *inner} - NARROW - {"And", "Prefix"}))):
        raise Unclear(f"its filter has a word that is not known here ({escape(unknown[0])})")
    if narrow := sorted(NARROW & inner.keys()):
        raise Unclear(f"it is about some objects only ({narrow[0]}), and a policy would be about all")
    prefix = inner.get("Prefix", "")
    if not isinstance(prefix, str):
        raise Unclear("its prefix is no text")
    if prefix and not prefix.endswith("/"):
        raise Unclear(f"its prefix {escape(prefix)} ends within a name, and a policy is about whole runs")
    return prefix


def _days(rule: Json, key: str, notes: list[str]) -> int | None:
    said = rule.get(key)
    if not isinstance(said, dict):
        return None
    if "Date" in said:
        raise Unclear("it expires at a date: a policy has none, delete what is to go by hand")
    if "Days" not in said:
        notes.append(f"{key} of delete markers is the bucket's own business")
        return None
    return _number(said["Days"], "Days")


def _moves(rule: Json) -> list[tuple[int, str]]:
    """(days, storage class), the earliest first."""
    said = rule.get("Transitions") or []
    if not isinstance(said, list) or not all(isinstance(one, dict) for one in said):
        raise Unclear("its transitions are no list of objects")
    if any("Date" in one for one in said):
        raise Unclear("it moves at a date: a policy has none")
    return sorted((_number(one.get("Days"), "Days"), str(one.get("StorageClass"))) for one in said)


def _number(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Unclear(f"{what} needs a whole number from 1, not {escape(str(value))}")
    return value


# -- into a bucket


class Exported(NamedTuple):
    """What of a policy a bucket could do by itself, and what it could not, or would do otherwise."""

    configuration: dict[str, object]
    differences: tuple[str, ...]


def export(policies: Iterable[Policy], store: str, prefix: str, *, expire: bool) -> Exported:
    """A lifecycle configuration that never does what one of the policies would not do, as far as S3 can tell.

    Args:
        policies: to be said.
        store: name of the store, as they write it.
        prefix: of the store in its bucket, with a slash at the end, or empty.
        expire: also let S3 delete; it knows no floor, no hold and no pointer, so this is never done unasked.
    """
    rules: list[dict[str, object]] = []
    differences: list[str] = []
    said = [_Policy(policy, store, expire=expire) for policy in policies]
    for one in said:
        places = one.places() if one.acts else []
        name, found = one.policy.name, []
        for number, place in enumerate(places):
            actions = one.actions(place, [other for other in said if other is not one and other.reaches(place)])
            if actions:
                title = name if len(places) == 1 else f"{name}-{number + 1}"
                found.append({"ID": title, "Status": "Enabled", "Filter": {"Prefix": prefix + place}, **actions})
        if found:
            one.differences.append(ALL_OBJECTS)
        rules += found
        differences += [f"{escape(name)}: {text}" for text in dict.fromkeys(one.differences)]
    if rules:
        differences.append(AMONG)
    return Exported({"Rules": rules}, tuple(differences))


class _Policy:
    """One policy, asked what of it S3 could do; remembers what it could not."""

    def __init__(self, policy: Policy, store: str, *, expire: bool) -> None:
        self.policy, self.store = policy, store
        self.differences: list[str] = []
        self.expiration, self.transitions, self.abort = self.expires(expire=expire), self.moves(), self.aborts()

    @property
    def acts(self) -> bool:
        """Whether S3 could do anything of it."""
        return bool(self.expiration or self.transitions or self.abort)

    def reaches(self, place: str) -> bool:
        """Whether it may have a say on a run at or below a prefix of the store, or on one that holds that.

        Whatever layouts, kinds or owners it is about: what any policy keeps stays, and S3 cannot tell them apart.
        """
        match, at = self.policy.match, f"{self.store}:{place}"
        if match.stores and self.store not in match.stores:
            return False
        literals = [re.split(r"[*?\[]", pattern, maxsplit=1)[0] for pattern in match.runs or ("**",)]
        return any(literal.startswith(at) or at.startswith(literal) for literal in literals)

    def actions(self, place: str, others: Sequence[_Policy]) -> dict[str, object]:
        """What S3 may do at a prefix where those others have a say, too: what all of them would do, and no sooner."""
        all_of_them = [self, *others]
        days = [one.expiration for one in all_of_them]
        aborts = [one.abort for one in all_of_them]
        expires = None if None in days else max(filter(None, days))
        abort = None if None in aborts else max(filter(None, aborts))
        moves = self.transitions if all(one.transitions == self.transitions for one in others) else []
        if (expires, moves, abort) != (self.expiration, self.transitions, self.abort):
            names = ", ".join(escape(one.policy.name) for one in others)
            where = escape(f"{self.store}:{place}**")
            self.differences.append(f"{names} has a say in {where}, too: S3 does what all would do, and no sooner")
        return {
            **({"Transitions": moves} if moves else {}),
            **({"Expiration": {"Days": expires}} if expires else {}),
            **({"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": abort}} if abort else {}),
        }

    def places(self) -> list[str]:
        """Prefixes of the store that hold what it is about, and nothing else."""
        match = self.policy.match
        if narrow := [word for word in ("layouts", "kinds", "owners") if getattr(match, word)]:
            self.differences.append(f"S3 knows no {narrow[0]}, so nothing of it is exported")
            return []
        if match.stores and self.store not in match.stores:
            return []
        found = []
        for pattern in match.runs or (f"{self.store}:**",):
            where, colon, run = pattern.partition(":")
            if where != self.store and where not in ("*", "**"):
                continue
            literal = run.removesuffix("**")
            if not colon or literal == run or set(literal) & set("*?[{") or (literal and not literal.endswith("/")):
                self.differences.append(f"{escape(pattern)} is no prefix that ends at a slash, so it is left out")
                continue
            found.append(literal)
        return found

    def expires(self, *, expire: bool) -> int | None:
        """Days after which S3 may delete."""
        keep = self.policy.keep
        if keep is None:
            return None
        ages = [rule for rule in keep if isinstance(rule, Younger) and rule.anchor is Anchor.NOW]
        if not keep or len(ages) < len(keep):
            self.differences.append("S3 cannot rank: what its keep rules let go is left to lifecycle")
            return None
        if not expire:
            self.differences.append("expiration is left out: S3 knows no floor, no hold and no pointer (--expire)")
            return None
        if self.policy.approve or self.policy.announce_s is not None:
            self.differences.append("S3 asks nobody and announces nothing: what its keep rules let go is left to us")
            return None
        self.differences += [FLOOR, "S3 knows no limits and no trash: what it lets go is gone"]
        return _up(max(rule.age_s for rule in ages))

    def moves(self) -> list[dict[str, object]]:
        """Transitions, the earliest first; none at all where one item cannot be said, for each changes the others."""
        items = list(self.policy.place)
        if items and _plain(items[-1]) and items[-1].on == (self.store,):
            items.pop()
        moves = []
        for item in items:
            move = self._move(item)
            if move is None:
                return []
            moves.append(move)
        ages = [days for days, _ in moves]
        if ages != sorted(ages, reverse=True):
            self.differences.append("an earlier item of place is for younger ones: S3 cannot tell")
            return []
        if early := [w for days, w in moves if w in LATER_CLASSES and days < IA_DAYS_MIN]:
            self.differences.append(f"S3 refuses {early[0]} before {IA_DAYS_MIN} days: place is left to lifecycle")
            return []
        if moves:
            self.differences.append("S3 also moves the newest, and what is held or pointed at")
        return [{"Days": days, "StorageClass": word} for days, word in reversed(moves)]

    def _move(self, item: Place) -> tuple[int, str] | None:
        store, _, word = item.on[0].partition("@")
        if len(item.on) != 1 or store != self.store or not word:
            self.differences.append(f"S3 cannot bring anything to {escape(', '.join(item.on))}: place is left to us")
            return None
        if item.older is None or item.older.anchor is not Anchor.NOW or not _plain(item, besides_age=True):
            self.differences.append("S3 moves by age from now alone: place is left to lifecycle")
            return None
        return _up(item.older.age_s), word

    def aborts(self) -> int | None:
        """Days after which S3 may drop open uploads."""
        incomplete = self.policy.incomplete
        if incomplete is None:
            return None
        days = _up(incomplete.delete_after_s)
        self.differences.append(
            f"of what never became complete S3 drops open uploads alone, after {format_seconds(days * DAY_S)}"
        )
        return days


def _plain(item: Place, *, besides_age: bool = False) -> bool:
    """Whether an item has no condition, or none but its age."""
    return item == Place(item.on, older=item.older if besides_age else None, cost_ignored=item.cost_ignored)


def _up(seconds: int) -> int:
    """Whole days, never fewer than asked for, and one at the least: all that S3 can wait."""
    return max(1, -(-seconds // DAY_S))


def runs_of(prefix: str, store: str, below: str) -> str:
    """The glob of runs below a bucket's prefix, as a store at ``below`` writes it.

    Raises:
        Unclear: it is outside of that, so that a policy for it would be one for other runs.
    """
    if prefix.startswith(below):
        literal = re.sub(r"([*?\[])", r"[\1]", prefix[len(below) :])  # S3 knows no globs: there they are letters
        return f"{store}:{literal}**"
    if below.startswith(prefix):
        return f"{store}:**"
    raise Unclear(f"its prefix {escape(prefix)} is outside of {escape(below)}, where {escape(store)} begins")
