"""Carries out a plan, one checkpoint after the other, each on fresh evidence; decides nothing itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from lifecycle.core.action import Action, Verb
from lifecycle.core.copies import CopyManifest, copy_name
from lifecycle.core.listing import ARCHIVES
from lifecycle.core.model import Checkpoint, Run
from lifecycle.core.plan import Plan
from lifecycle.core.protect import Around, by_target
from lifecycle.core.reasons import Mark
from lifecycle.core.units import format_age
from lifecycle.core.warrant import Warrant
from lifecycle.errors import Changed, LifecycleError, NotFound, Occupied, Refused, StoreError
from lifecycle.flows.alive import Pulse
from lifecycle.flows.carry import Carrier, Unsaid
from lifecycle.flows.causes import causes_of
from lifecycle.flows.copies import forget_gone
from lifecycle.flows.fills import still_pressed
from lifecycle.flows.handlers import Retirer, protected
from lifecycle.flows.pace import LEASE_NS, Turn
from lifecycle.flows.propose import surroundings
from lifecycle.flows.reclass import Changer
from lifecycle.flows.recover import recover, settle
from lifecycle.flows.renewal import meet
from lifecycle.flows.site import Site, check, same_clocks, same_stores
from lifecycle.flows.slimming import Slimmer
from lifecycle.flows.staged import go_on
from lifecycle.flows.views import Views
from lifecycle.ports import Freed


@dataclass(slots=True)
class Outcome:
    """What became of each action; ``counts`` add up to the number of actions."""

    plan: str
    counts: Counter[str] = field(default_factory=Counter)
    """By word: done, kept, gone, failed, left, waits."""
    freed_bytes: int = 0
    """Measured: what was deleted at once."""
    retired_bytes: int = 0
    """Measured: what now lies in the trash."""
    copied_bytes: int = 0
    """Measured: what was copied and read back."""
    reclassed_bytes: int = 0
    """Of copies that were brought to another storage class."""
    spared_bytes: int = 0
    """Measured: what of it an earlier try had sent, and was only read back."""
    waiting: int = 0
    """How many of those left wait for the time of day at which bytes may begin to move."""
    notes: list[tuple[str, str, str]] = field(default_factory=list)
    """(id, code, sentence) of everything that was not simply done."""
    stopped: str = ""
    """Why it ended before the last action, or empty."""
    stop_code: int = 3

    def note(self, action: Action, code: str, text: str, word: str) -> str:
        """Tell of an action that was not simply done; gives the word back."""
        self.notes.append((action.id, code, text))
        return word

    @property
    def exit_code(self) -> int:
        """0 when every action was done or rightly not done; else 3, or what made it stop says."""
        if self.stopped:
            return self.stop_code
        return 3 if self.counts["failed"] else 0


def apply(
    plan: Plan,
    site: Site,
    *,
    age_max_s: int,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[Action, str], None] = lambda _action, _word: None,
    goes: Callable[[Action], bool] = lambda _action: True,
) -> Outcome:
    """Apply ``plan``; one failure does not end it, a store that is another one does.

    Args:
        plan: judged against its limits as a whole, whatever of it is done.
        site: where.
        age_max_s: how old it may be.
        stop: whether to begin nothing more.
        progress: told of each action as it ends.
        goes: asked of each action before it is begun; what may not go yet waits, and is looked at no further.

    Raises:
        Refused, StalePlan, LeaseHeld: nothing was done.
    """
    identity = plan.id
    # Before the lease: whoever is ahead of the others would take one that is not over yet.
    same_stores(plan, site)
    same_clocks(plan, site)
    with site.journal.lease(f"{site.host} apply {identity[:12]}", site.clock.now_ns(), LEASE_NS) as fence:
        recovered = recover(site.journal, site.stores, site.trashes, site.intakes, site.clock.now_ns())
        if recovered.open:
            raise Refused(f"an earlier act cannot be closed: {recovered.open[0]}", code="journal_open")
        check(plan, site, age_max_s)
        still_pressed(plan, site.stores)
        settle(site.journal, site.reader, site.stores, site.trashes, site.clock.now_ns(), site.intakes)
        return _Application(plan, identity, site, fence, stop, progress, goes).run()


def trash_name(plan: str, action: Action) -> str:
    """Opaque name in the trash: no framework takes it for a checkpoint, and a second try finds the first."""
    return blake2b(f"{plan}\0{action.id}".encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


class _Application:
    """One application of one plan under one lease."""

    def __init__(
        self,
        plan: Plan,
        identity: str,
        site: Site,
        fence: int,
        stop: Callable[[], bool],
        progress: Callable[[Action, str], None],
        goes: Callable[[Action], bool],
    ) -> None:
        self.plan, self.site, self.fence, self.stop, self.progress = plan, site, fence, stop, progress
        self.goes = goes
        self.outcome = Outcome(identity)
        self.waiting: set[str] = set()
        """Ids of copies that were not begun, since it is not the time for it."""
        self.base = surroundings(site.reader, site.rules, tuple(site.stores), (), site.clock.now_ns())
        self.pointers = self.base.pointers
        self.turn = Turn(site.journal, fence, site.clock, site.pace)
        known = site.stores, site.reader, site.conventions, site.clock
        self.views = Views(*known, self.turn.tick, lambda identity: site.journal.rows(key=identity))
        anchors = {anchor.id: anchor for anchor in plan.anchors}
        pulse = Pulse.of(plan, site.reader.run, self.views.run, site.rules.rotations)
        self.retirers = {
            name: Retirer(name, site.stores, site.trashes[name], anchors, identity, pulse)
            for name in site.stores
            if name in site.trashes
        }
        self.changer = Changer(site, self.views, self.outcome, self._start, self._protected, self.turn.tick)

    def run(self) -> Outcome:
        outcome = self.outcome
        for done, action in enumerate(self.plan.actions):
            if self.stop():
                outcome.stopped = "asked to stop"
            if outcome.stopped:
                outcome.counts["left"] += len(self.plan.actions) - done
                break
            try:
                word = "waits" if not self.goes(action) else "left" if self._waits(action) else self._one(action)
            except LifecycleError as e:  # a store that is another one, a lost lease, a journal that cannot be written
                outcome.stopped, outcome.stop_code = str(e), max(e.exit_code, 3)
                word = self._note(action, e.code, str(e), "failed")
            outcome.counts[word] += 1
            outcome.waiting += word == "left"
            self.progress(action, word)
        return outcome

    def _one(self, action: Action) -> str:
        """Look, get a warrant, write it down, act, write down what came of it.

        Raises:
            LifecycleError: what makes it wrong to go on with any other action.
        """
        site = self.site
        self.turn.confirm()
        site.stores[action.store].identity()
        if action.verb in (Verb.COPY, Verb.RECLASS):
            return self._copy(action) if action.verb is Verb.COPY else self.changer.change(action)
        retirer = self.retirers[action.store]
        trash_id = trash_name(self.outcome.plan, action)
        try:
            # Copies may have to be read for it, which takes its time: what protects is looked at after that.
            proven = {identity for identity in action.copies if self.views.proves(identity, action)}
            record = self._record(action, trash_id) if action.verb is Verb.SLIM else None
            run, around = self._fresh(action), self._around(site.clock.now_ns())
            warrant = retirer.warrant(action, run, around, trash_id, proven.__contains__)
        except NotFound:
            return self._note(action, "already_gone", "it was gone already", "gone")
        except Changed as e:
            return self._note(action, e.code, f"{e}{self.views.doubt(action)}", "kept")
        except (Refused, StoreError) as e:
            return self._note(action, e.code, str(e), "failed")
        row = self._start(action, trash_id)
        try:
            freed = self._act(warrant, retirer, record)
        except NotFound:
            site.journal.end(row, "kept", "already_gone", site.clock.now_ns())
            return self._note(action, "already_gone", "it was gone already", "gone")
        except (Changed, Refused) as e:
            site.journal.end(row, "kept", e.code, site.clock.now_ns())
            return self._note(action, e.code, str(e), "kept" if isinstance(e, Changed) else "failed")
        except StoreError as e:
            return self._failed(action, retirer, row, trash_id, e)
        site.journal.end(row, "done", freed.note, site.clock.now_ns())
        if action.trash_s is not None:
            self.outcome.retired_bytes += freed.bytes
        else:
            self.outcome.freed_bytes += freed.bytes
            name = action.store
            forget_gone(site.stores[name], site.intakes[name], site.trashes[name], {action.key})
        if freed.note:
            self._note(action, freed.note, freed.note, "done")
        return "done"

    def _act(self, warrant: Warrant, retirer: Retirer, record: CopyManifest | None) -> Freed:
        now_ns = self.site.clock.now_ns()
        if record is None:
            return retirer.act(warrant, now_ns, lambda: self._confirm(warrant))
        return self._slimmer(warrant.action).act(warrant, record, now_ns, lambda: self._confirm(warrant))

    def _slimmer(self, action: Action) -> Slimmer:
        name = action.store
        return Slimmer(self.site.stores[name], self.site.intakes[name], self.retirers[name], self.turn.tick)

    def _record(self, action: Action, name: str) -> CopyManifest:
        """What is to be made thin, read and summed; it takes its time, so what protects is looked at after that."""
        stands = self.views.checkpoint(action.store, action.run, action.key)
        return self._slimmer(action).look(action, self._facts(stands), name, self.site.clock.now_ns())

    def _waits(self, action: Action) -> bool:
        """Whether it moves bytes outside of the window, or needs what does; what has begun is never broken off."""
        window, moves = self.site.window, action.verb in (Verb.COPY, Verb.RECLASS)
        if moves and window is not None and not window.holds(self.site.clock.now_ns()):
            self.waiting.add(f"{action.to or action.store}:{action.key}")
            return True
        return not self.waiting.isdisjoint(action.copies)

    def _start(self, action: Action, name: str, note: str = "") -> int:
        site = self.site
        return site.journal.start(
            plan=self.outcome.plan,
            trash_id=name,
            action=action,
            now_ns=site.clock.now_ns(),
            fence=self.fence,
            host=site.host,
            engine=site.engine,
            note=note,
            causes=causes_of(self.plan, action),
        )

    def _copy(self, action: Action) -> str:
        """Make a copy and prove it, written down before and after.

        Raises:
            LifecycleError: what makes it wrong to go on with any other action.
        """
        site = self.site
        site.stores[action.to].identity()
        try:
            stands = self.views.checkpoint(action.store, action.run, action.key)
            origin = self.views.manifest(stands)
        except NotFound:
            return self._note(action, "already_gone", "it was gone already", "gone")
        except StoreError as e:
            return self._note(action, e.code, str(e), "failed")
        facts = origin.checkpoint if origin else self._facts(stands)
        try:
            begun = go_on(site.journal, site.stores[action.to], site.intakes[action.to], facts)
        except StoreError as e:
            return self._note(action, e.code, str(e), "failed")
        copy_id = begun or copy_name(self.outcome.plan, facts, action.to)
        row = self._start(action, copy_id)
        archive = action.storage_class in ARCHIVES
        carrier = Carrier(
            site.stores[action.store],
            site.stores[action.to],
            site.intakes[action.to],
            self.turn.tick,
            storage_class="" if archive else action.storage_class,
            spared=self._spared,
            confirm=self.turn.confirm,
            at_once=site.pace.at_once,
        )
        planned = replace(stands, fingerprint=action.fingerprint)
        now_ns = site.clock.now_ns()
        try:
            made = carrier.carry(
                copy_id, facts, planned, plan=self.outcome.plan, now_ns=now_ns, origin=origin, part=action.part
            )
        except Unsaid as e:
            return self._note(action, e.code, f"{e}; left open for recovery", "failed")
        except Occupied as e:
            word, code, text = meet(action, facts, e, self.views, site.intakes)
            site.journal.end(row, word, code, site.clock.now_ns())
            return self._note(action, code, text, word)
        except (Changed, Refused, StoreError) as e:
            site.journal.end(row, "kept" if isinstance(e, Changed) else "failed", e.code, site.clock.now_ns())
            return self._note(action, e.code, str(e), "kept" if isinstance(e, Changed) else "failed")
        site.journal.end(row, "done", "", site.clock.now_ns())
        self.views.note(action.to, made)
        self.outcome.copied_bytes += made.size_bytes
        return self.changer.put_away(action, made) if archive else "done"

    def _protected(self, action: Action) -> Mark | None:
        return protected(action, self._fresh(action), self._around(self.site.clock.now_ns()))

    def _facts(self, stands: Checkpoint) -> Checkpoint:
        """With what the index knows of it besides: tags, and what was compared with the scan before."""
        run = self.site.reader.run(stands.store, stands.run)
        known = next((c for c in run.checkpoints if c.key == stands.key), stands) if run else stands
        return known if known.fingerprint == stands.fingerprint else stands

    def _spared(self, count: int) -> None:
        self.outcome.spared_bytes += count
        self.site.pace.spared(count)

    def _confirm(self, warrant: Warrant) -> None:
        """Whether what was just done may stand, when so much time has passed since the look that it need not.

        Raises:
            LeaseHeld: somebody else's turn has begun. Refused: ``warrant_expired``: it was stopped in the middle, for
                longer than any act takes; its time in the trash would count from before that.
        """
        now_ns = self.site.clock.now_ns()
        if now_ns > warrant.expires_at_ns:
            self.turn.confirm()
        if now_ns - warrant.issued_at_ns > LEASE_NS and warrant.action.trash_s is not None:
            text = f"{warrant.action.id} took {format_age(now_ns - warrant.issued_at_ns)} to retire"
            raise Refused(f"{text}: it was stopped in the middle of it, and is back", code="warrant_expired")

    def _failed(self, action: Action, retirer: Retirer, row: int, trash_id: str, error: StoreError) -> str:
        """A store's error says nothing about whether the act happened: ask, and leave the row open if nobody knows."""
        try:
            state = retirer.done(action, trash_id)
        except StoreError:
            return self._note(action, error.code, f"{error}; left open for recovery", "failed")
        if isinstance(error, Occupied):  # the same plan is being applied from another index, and its entry is not ours
            code = "already_gone" if state is True else "busy"
            self.site.journal.end(row, "kept", code, self.site.clock.now_ns())
            if state is True:
                return self._note(action, code, "it was gone already", "gone")
            return self._note(action, code, f"another process is at work on it: {error}", "kept")
        if state is True:
            self.site.journal.end(row, "done", f"{error.code}, but it was carried out", self.site.clock.now_ns())
            self.outcome.retired_bytes += action.bytes
            word = "failed" if error.code in {"floor_lost", "lease_lost"} else "done"
            return self._note(action, error.code, f"{error}; it was carried out all the same", word)
        if state is False:
            retirer.forget(trash_id)
            self.site.journal.end(row, "failed", error.code, self.site.clock.now_ns())
            return self._note(action, error.code, str(error), "failed")
        return self._note(action, "partial_delete", f"{error}; left open for recovery", "failed")

    def _note(self, action: Action, code: str, text: str, word: str) -> str:
        return self.outcome.note(action, code, text, word)

    def _fresh(self, action: Action) -> Run | None:
        """The action's run as the store shows it, at most as old as a warrant may be; a run's actions come together."""
        run = self.views.run_of(action)
        self.pointers = {**self.base.pointers}
        for target, found in by_target(run.pointers if run else ()).items():
            self.pointers[target] = self.pointers.get(target, ()) + found
        return run

    def _around(self, now_ns: int) -> Around:
        """Holds read afresh; pointers as the index has them, with those of the run as it is now."""
        return Around(now_ns, tuple(self.site.holds()), self.pointers, self.base.lease_ttl_s)
