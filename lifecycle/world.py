"""The composition root: builds stores, trashes, index and rules from settings; decides where our own files lie."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from lifecycle import __version__
from lifecycle.core.model import Hold
from lifecycle.core.notes import read_hold, unreadable
from lifecycle.core.policy import Rules
from lifecycle.errors import LifecycleError, Refused
from lifecycle.ports import Ask, Clock, Hear, Intake, Reader, Store, Trash, Trashed, ask, unheard

if TYPE_CHECKING:
    from lifecycle.config.compile import Settings, StoreSettings
    from lifecycle.index.open import Index
    from lifecycle.stores.open import StoreSpec

STATE_NAME = ".lifecycle"

Wrap = Callable[[Store], Store]


@dataclass(frozen=True)
class World:
    """Everything a use case may touch; leave it to close it. A read-only world has no trashes."""

    settings: Settings
    clock: Clock
    index: Index
    stores: Mapping[str, Store]
    trashes: Mapping[str, Trash]
    intakes: Mapping[str, Intake]
    rules: Rules
    host: str
    lying: Mapping[str, Callable[[], list[Trashed]]]
    """Tells what lies in the trash of a store: all that a read-only world can do with it."""
    engine: str = __version__
    told: Ask = ask
    """Asks a store what time it is."""
    closing: ExitStack = field(default_factory=ExitStack, repr=False)

    def holds(self) -> list[Hold]:
        """Every hold, read afresh from the index and from beside the data; the same hold comes once.

        Where the notes of a store cannot be read, all of that store is held.
        """
        found = dict.fromkeys(self.index.reader.holds())
        for name, store in self.stores.items():
            try:
                notes = store.notes()
            except LifecycleError as e:
                found[unreadable(name, "", f"holds beside the data cannot be read: {e}")] = None
                continue
            for note, content in sorted(notes.items()):
                hold = read_hold(name, note, content)
                if hold is not None:
                    found[hold] = None
        return sorted(found, key=lambda hold: (hold.target, hold.created_at_ns, hold.id))

    def refuse_state_in_runs(self) -> None:
        """Stop before anything of ours could lie where a framework looks for checkpoints.

        Raises:
            Refused: ``state_in_run``.
        """
        for spec in self.settings.stores:
            if spec.name not in self.stores or spec.read_only:
                continue
            for part in spec.parts:
                path = _state_key(part, state_of(part, self.index.reader))
                while path:
                    path = path.rpartition("/")[0]
                    if self.index.reader.everything(spec.name, path) is not None:
                        text = f"our own directory of store {spec.name} lies inside the run {spec.name}:{path}"
                        way = f"set stores.{spec.name}.state to a place outside every run"
                        way = "move it out by hand once its trash is empty" if spec.roots else way
                        raise Refused(text, code="state_in_run", hint=f"{way}; undo or purge what is in trash")

    def __enter__(self) -> World:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.__exit__(kind, error, trace)


def open_world(  # noqa: PLR0913 - one argument for each way of opening it
    settings: Settings,
    clock: Clock,
    *,
    write: bool,
    create: bool = True,
    readonly: bool = False,
    wrap: Wrap = lambda store: store,
    told: Ask = ask,
    hear: Hear = unheard,
) -> World:
    """Open the index and the stores; no store is contacted yet.

    Args:
        settings: the site.
        clock: the only source of now.
        write: whether anything in the stores may be changed: a world opened without it cannot.
        create: make an index where there is none.
        readonly: nothing can be written to the index either, and it is not looked for damage first.
        wrap: put around each store; a seam for tests.
        told: asks a store what time it is; a seam for tests whose own clock stands still.
        hear: told of each row of the journal as it is written.

    Raises:
        ConfigInvalid, Refused: the index or a store's URL cannot be used.
    """
    from lifecycle.index.open import open_index
    from lifecycle.stores.open import open_intake, open_store, open_trash

    with ExitStack() as stack:
        index = stack.enter_context(
            open_index(settings.database, create=create, readonly=readonly, damage=not readonly, hear=hear)
        )
        stores: dict[str, Store] = {}
        trashes: dict[str, Trash] = {}
        intakes: dict[str, Intake] = {}
        lying: dict[str, Callable[[], list[Trashed]]] = {}
        for spec in settings.stores:
            store = open_store(_told(spec, index.reader))
            stores[spec.name] = wrap(store)
            if spec.read_only:
                continue
            trash = open_trash(store)
            lying[spec.name] = trash.trash
            if write:
                trashes[spec.name] = trash
                intakes[spec.name] = open_intake(store)
        return World(
            settings=settings,
            clock=clock,
            index=index,
            stores=stores,
            trashes=trashes,
            intakes=intakes,
            rules=_rules(settings),
            host=socket.gethostname(),
            lying=lying,
            told=told,
            closing=stack.pop_all(),
        )


def open_one(
    spec: StoreSettings, reader: Reader | None, wrap: Wrap = lambda store: store
) -> tuple[Store, Trash | None]:
    """One store by itself, whatever becomes of the others, and what may change it; nothing is contacted yet.

    Raises:
        ConfigInvalid: its URL cannot be meant, or what speaks with it is not installed.
    """
    from lifecycle.stores.open import open_store, open_trash

    store = open_store(_told(spec, reader))
    return wrap(store), None if spec.read_only else open_trash(store)


def _rules(settings: Settings) -> Rules:
    from lifecycle.layouts.table import Rotation

    nodes = tuple((store.name, store.exposed_after) for store in settings.stores if store.node_local)
    read_only = frozenset(store.name for store in settings.stores if store.read_only)
    declared = settings.conventions.declared
    rotations = tuple((own.name, own.rotation.value) for own in declared if own.rotation is not Rotation.GUARDED)
    return Rules(
        settings.policies,
        settings.references,
        settings.lease_ttl_s,
        settings.digest,
        nodes,
        read_only,
        settings.parents,
        rotations,
    )


def _told(spec: StoreSettings, reader: Reader | None) -> StoreSpec:
    """A store's settings as the stores take them."""
    from lifecycle.stores.open import StoreSpec

    return StoreSpec(
        name=spec.name,
        url=spec.url,
        endpoint_url=spec.endpoint_url,
        region=spec.region,
        profile=spec.profile,
        sentinel=spec.sentinel,
        state=state_of(spec, reader),
        cross_mounts=spec.cross_mounts,
        workers=spec.workers,
        addressing_style=spec.addressing_style,
        storage_class=spec.storage_class,
        node=(spec.node or socket.gethostname()) if spec.node_local else "",
        roots=tuple(_told(part, reader) for part in spec.parts if part is not spec),
        place=spec.place,
    )


def only(world: World, names: list[str]) -> World:
    """The same world with just these stores; all of them where none is named."""
    if not names:
        return world
    return replace(
        world,
        stores={name: store for name, store in world.stores.items() if name in names},
        trashes={name: trash for name, trash in world.trashes.items() if name in names},
    )


# -- where our own files lie


def state_of(spec: StoreSettings, reader: Reader | None) -> str | None:
    """Where our own files of a store are, as its constructor takes it; None for ``.lifecycle`` below the root.

    When checkpoints stand directly in the root, the root is a run, and a foreign directory in it would be
    taken for a checkpoint: ours is beside it then. One that exists stays where it is: moving would lose it.
    Without a reader nobody knows whether it is one: then this is good for looking only.
    """
    a_run = reader is not None and reader.everything(spec.name, "") is not None
    if spec.state is not None:
        return spec.state
    path = _local(spec)
    if path is not None:
        beside = path.parent / f"{STATE_NAME}-{path.name}"
        if os.path.lexists(path / STATE_NAME) or not path.name:
            return None
        return str(beside) if a_run or os.path.lexists(beside) else None
    _bucket, _, prefix = spec.url.partition("://")[2].partition("/")
    if prefix and a_run:
        parent, _, name = prefix.rpartition("/")
        return f"{parent}/{STATE_NAME}-{name}".lstrip("/")
    return None


def _local(spec: StoreSettings) -> Path | None:
    return Path(spec.url.removeprefix("file://")) if spec.url.startswith("file://") else None


def _state_key(spec: StoreSettings, state: str | None) -> str | None:
    """The key, in its own store, of our directory; None where it is outside the root."""
    if state is None:
        return STATE_NAME
    path = _local(spec)
    if path is not None:
        inside, place = os.path.realpath(path), os.path.realpath(state)
        return os.path.relpath(place, inside) if place.startswith(inside + "/") else None
    prefix = spec.url.partition("://")[2].partition("/")[2]
    if not prefix:
        return state
    return state[len(prefix) + 1 :] if state.startswith(prefix + "/") else None
