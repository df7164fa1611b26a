"""The words of a change of policies, for screens and for pull requests alike: labels, sentences, rows of tables."""

from __future__ import annotations

from collections.abc import Iterable

from lifecycle.core.action import Verb
from lifecycle.core.reasons import Mark, instead, why
from lifecycle.core.units import escape, format_age, format_bytes, format_minute, format_seconds
from lifecycle.render.report import PROTECTED_BY, plural
from lifecycle.review.change import Change, Doing, Fate, Share, Verdict, share
from lifecycle.review.difference import Difference, FullDate
from lifecycle.sizing.bill import money

TITLES = {
    Fate.GOES: "newly deleted",
    Fate.TRASH: "already due, but the time to undo changes",
    Fate.THINS: "kept, but without what a training needs to resume",
    Fate.MOVES: "kept, but in other places",
    Fate.STAYS: "no longer deleted",
    Fate.REASON: "still kept, but for other reasons",
}
UNKNOWN = "not known"
_KEPT_BY = {
    "unmatched": "no policy applies, so nothing deletes it",
    "unjudged": "it is not judged",
    "keep.all": "its policy keeps everything",
    "floor.newest": "the newest complete one",
    "floor.full": "the newest to resume from",
    "floor.live": "its run is live",
    "grace": "it changed just now",
}
"""What protects, as the answer to why it is kept; for all others what a plan says of it."""


def headline(found: Difference) -> str:
    """The change in one sentence, the worst of it first."""
    if found.empty:
        return "no difference"
    goes = share(found.of(Fate.GOES))
    if goes.checkpoints:
        return f"newly deletes {plural(goes.checkpoints, 'checkpoint')} ({format_bytes(goes.bytes)})"
    if thins := found.of(Fate.THINS):
        return f"deletes no checkpoint, but takes from {len(thins)} what a training needs to resume"
    if trash := [change for change in found.of(Fate.TRASH) if _sooner(change)]:
        return f"deletes no other checkpoints, but {len(trash)} can be brought back for less time"
    if stays := found.of(Fate.STAYS):
        return f"deletes nothing more, and keeps {plural(len(stays), 'checkpoint')} that would have gone"
    if moves := found.of(Fate.MOVES):
        return f"deletes nothing more, and puts {plural(len(moves), 'checkpoint')} elsewhere"
    return "deletes and moves the same as until now"


def _sooner(change: Change) -> bool:
    """Whether what goes by both sets is out of reach sooner by the new one."""
    return (_undo_s(change.new) or 0) < (_undo_s(change.old) or 0)


def _undo_s(verdict: Verdict) -> int | None:
    """How long all that is done with it can be brought back, in seconds; None where nothing is done."""
    return min((doing.trash_s or 0 for doing in verdict.doings), default=None)


def counted(part: Share) -> str:
    """``4 checkpoints, 3.92 TB``."""
    return f"{plural(part.checkpoints, 'checkpoint')}, {format_bytes(part.bytes)}"


def month(part: Share, currency: str) -> str:
    """What they cost a month, or that nobody knows."""
    return UNKNOWN if part.month_micro is None else money(part.month_micro, currency)


def label(policy: str, rule: str) -> str:
    """What keeps, in a few words: ``last: 5 (policy pretrain)``, or what protects."""
    if rule in PROTECTED_BY or not policy:
        return _KEPT_BY.get(rule) or PROTECTED_BY.get(rule) or escape(rule)
    return f"{escape(rule)} (policy {escape(policy)})"


def kept_by(verdict: Verdict) -> str:
    """All that keeps it, in a few words."""
    return "; ".join(dict.fromkeys(label(*keeper) for keeper in verdict.keepers))


def owner(uid: int | None) -> str:
    """Whose files they are, as far as stores say: they know numbers."""
    return UNKNOWN if uid is None else f"uid {uid}"


def first_why(verdict: Verdict) -> str:
    """The reason that tells most, with what would have kept what goes."""
    marks = [mark for _, mark in verdict.because]
    if not marks:
        return ""
    text = why(marks[0])
    would = next(filter(None, map(instead, marks)), "") if not verdict.keep else ""
    return f"{text}; it would need {would}" if would else text


def done(verdict: Verdict) -> str:
    """What is done with it, in words."""
    if not verdict.doings:
        return "stays where it is" if verdict.keep else "goes nowhere yet"
    return ", ".join(dict.fromkeys(map(doing_words, verdict.doings)))


def doing_words(doing: Doing) -> str:
    """One act in words."""
    store = escape(doing.store)
    place = escape(f"{doing.to or doing.store}@{doing.storage_class}" if doing.storage_class else doing.to)
    undo = "" if doing.to or doing.verb is Verb.RECLASS else f" ({undo_words(doing.trash_s)})"
    match doing.verb:
        case Verb.COPY:
            return f"copy {'weights ' if doing.part else ''}to {place}"
        case Verb.RECLASS:
            return f"change to {place}"
        case Verb.SLIM:
            return f"only weights stay on {store}{undo}"
        case Verb.RETIRE | Verb.DELETE:
            if doing.leaves:
                return f"delete from {store}, as {'weights stay' if doing.part else 'a copy stays'} elsewhere{undo}"
            return f"delete from {store}{undo}"


def undo_words(trash_s: int | None) -> str:
    """How long something can be brought back."""
    return "at once, no way back" if trash_s is None else f"{format_seconds(trash_s)} to undo"


def in_all_words(found: Difference) -> str:
    """How much the new set deletes in all; empty where that is what it deletes newly, or nothing."""
    goes, totals = share(found.of(Fate.GOES)), found.new.totals
    count, size = totals.get("expired_checkpoints", 0), totals.get("expired_bytes", 0)
    if count <= goes.checkpoints:
        return ""
    old = plural(count - goes.checkpoints, "checkpoint")
    old_bytes = format_bytes(size - goes.bytes)
    if not goes.checkpoints:
        return f"As before, {old} ({old_bytes}) {'is' if count == 1 else 'are'} deleted."
    return f"In all {count} ({format_bytes(size)}) are deleted: {old} ({old_bytes}) by the old policies too."


def at_once(found: Difference) -> list[Change]:
    """What goes newly, and with no way back."""
    return [change for change in found.of(Fate.GOES) if _undo_s(change.new) == 0]


def undo_column(change: Change) -> str:
    """How long it can be brought back, in a cell."""
    seconds = _undo_s(change.new)
    return UNKNOWN if seconds is None else format_seconds(seconds) if seconds else "**none**"


def back_words(found: Iterable[Change]) -> str:
    """How long what goes can be brought back."""
    times = [seconds for change in found if (seconds := _undo_s(change.new)) is not None]
    kept, lost = sorted(filter(None, times)), times.count(0)
    if not kept:
        return "What is deleted is gone at once: nothing brings it back." if lost else ""
    least = f"at least {format_seconds(kept[0])}" if kept[0] != kept[-1] else format_seconds(kept[0])
    who = f"{len(kept)} of these can" if lost else "It can" if len(kept) == 1 else "They can"
    some = f" {lost} {'is' if lost == 1 else 'are'} gone at once: nothing brings {'it' if lost == 1 else 'them'} back."
    return f"{who} be brought back for {least} after being deleted, and are lost for good then.{some if lost else ''}"


def snapshot_words(found: Difference) -> str:
    """What both sets were judged on."""
    times = [one.scanned_at_ns for one in found.looked if one.scanned_at_ns]
    oldest_ns = min(times, default=0)
    age = (
        f"scanned {format_minute(oldest_ns)}, {format_age(found.now_ns - oldest_ns)} ago" if times else "never scanned"
    )
    size = sum(found.new.totals.get(name, 0) for name in ("kept_bytes", "expired_bytes"))
    what = f"{plural(len(found.new.lines), 'checkpoint')} in {plural(found.runs, 'run')}, {format_bytes(size)}"
    return f"{found.source}: {what}; {age}; judged as of {format_minute(found.now_ns)}"


def stale_words(found: Difference) -> list[str]:
    """A warning a store of which nothing fresh is known."""
    told = []
    for one in found.stale:
        if not one.scanned_at_ns:
            told.append(f"{one.store} was never scanned: nothing is known of it")
        else:
            age = format_age(found.now_ns - one.scanned_at_ns)
            told.append(f"{one.store} was last scanned {age} ago: what was saved or deleted there since is not in this")
    return told


def date_words(date: FullDate, days: int) -> tuple[str, str]:
    """When a store is full by the old and by the new set."""
    if date.unknown:
        return UNKNOWN, UNKNOWN

    def told(at_ns: int | None) -> str:
        return f"not within {days} days" if at_ns is None else format_minute(at_ns)[:10]

    return told(date.old_ns), told(date.new_ns)


def cost_words(found: Difference) -> str:
    """What all stores with a price cost a month by either set; empty where none has one."""
    if found.bills is None:
        return ""
    old, new = (sum(line.after for line in bill.priced) for bill in found.bills)
    names = ", ".join(map(escape, sorted(set(found.bills[1].unpriced))))
    rest = f"; without {names}, of which no price is known" if names else ""
    change = money(abs(new - old), found.currency)
    way = "the same" if new == old else f"{change} {'less' if new < old else 'more'}"
    told = f"{money(old, found.currency)} a month by the old set, {money(new, found.currency)} by the new: {way}"
    return f"stores cost, once all is carried out, {told}{rest}"


def given_up_words(found: Difference) -> str:
    """What nothing would keep any more of checkpoints that stay; empty where that is as before."""
    old, new = found.given_up
    if new <= old:
        return ""
    return f"{format_bytes(new - old)} that trainings need to resume stand nowhere any more: full: none"


def refusals(found: Difference) -> list[tuple[str, str]]:
    """(side, sentence) of plans that would be refused as a whole."""
    sides = (("old", found.old), ("new", found.new))
    return [(side, f"{f.subject}: {f.text}") for side, plan in sides for f in plan.refusals]


def mark_words(marks: Iterable[tuple[str, Mark]]) -> list[str]:
    """Each reason in a sentence, once."""
    return list(dict.fromkeys(why(mark) for _, mark in marks))
