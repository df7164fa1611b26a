"""``index export``: an index in a file that can be handed on, for reviews where there is no site."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lifecycle.cli.desk import Desk
from lifecycle.config.policies import load_policies
from lifecycle.core.model import Run
from lifecycle.core.units import escape, format_bytes
from lifecycle.errors import ConfigInvalid, LifecycleError
from lifecycle.flows.arriving import donors_of
from lifecycle.render.report import plural

if TYPE_CHECKING:
    from lifecycle.index.export import Source
    from lifecycle.index.hiding import Hiding
    from lifecycle.ports import Trashed
    from lifecycle.world import World

KEY_MIN_BYTES, KEY_MAX_BYTES = 16, 64


@dataclass(frozen=True, slots=True)
class Wish:
    """The command line, as it was typed."""

    file: Path
    hash_paths: bool
    key: Path | None
    policies: tuple[Path, ...]


def export_index(desk: Desk, wish: Wish) -> int:
    """``lifecycle index export``"""
    from lifecycle.index.export import export

    if (wish.key or wish.policies) and not wish.hash_paths:
        raise ConfigInvalid("--hash-key and --for say how names are replaced: give --hash-paths too", code="usage")
    with desk.world(write=False, create=False) as world:
        source = _source(world)
        hiding = _hiding(world, source, wish) if wish.hash_paths else None
        made = export(source, wish.file, hiding)
    value = {"export": str(wish.file), "names_hidden": wish.hash_paths, **made._asdict()}
    what = f"{plural(made.runs, 'run')}, {plural(made.checkpoints, 'checkpoint')}, {format_bytes(made.bytes)}"
    lines = [f"The index is exported to {escape(str(wish.file))}: {what}."]
    if hiding is None:
        lines.append("It names runs and checkpoints as they are. It holds no credentials and no addresses of stores.")
    else:
        left = "of no run" if not made.shown else f"of {plural(made.shown, 'run')} as policies look at them"
        lines.append(f"Names are replaced; left whole are those {left}.")
    desk.answer(value, [*lines, "Look at it: zcat, a JSON value a line."])
    return 0


def _source(world: World) -> Source:
    from lifecycle.index.export import Source
    from lifecycle.index.exported import Facts

    reader, settings, names = world.index.reader, world.settings, tuple(world.stores)
    trash: dict[str, list[Trashed]] = {}
    unread: list[tuple[str, str]] = []
    for name, lying in world.lying.items():
        try:
            trash[name] = lying()
        except LifecycleError as e:
            unread.append((name, str(e)))
    rows, now_ns = reader.stores(), world.clock.now_ns()
    histories = [
        (name, start.path)
        for name in names
        if name in rows
        for start in donors_of(reader.watched(name), min(now_ns, rows[name].scanned_at_ns))
    ]
    rules = world.rules
    facts = Facts(
        made_at_ns=now_ns,
        engine=world.engine,
        serial=reader.serial(),
        stores=names,
        schemes=tuple((s.name, s.url.partition(":")[0]) for s in settings.stores),
        layouts=tuple(layout.name for layout in settings.conventions.declared),
        references=rules.references,
        parents=rules.parents,
        lease_ttl_s=rules.lease_ttl_s,
        node_local=rules.node_local,
        read_only=tuple(sorted(rules.read_only)),
        prices=settings.prices,
        capacities=settings.capacities,
        copied_as=tuple((s.name, s.storage_class or "STANDARD") for s in settings.stores if s.url.startswith("s3:")),
        unread=tuple(unread),
    )
    return Source(reader, facts, world.holds(), trash, histories)


def _hiding(world: World, source: Source, wish: Wish) -> Hiding:
    """How names are replaced: so that no policy, configured or named, can tell."""
    from lifecycle.index.hiding import Hiding

    urls = {store.name: store.url for store in world.settings.stores}
    more = [load_policies([path], list(urls), urls=urls) for path in wish.policies]
    policies = [*world.rules.policies, *(policy for found in more for policy in found)]
    key = secrets.token_bytes(KEY_MAX_BYTES) if wish.key is None else _key(wish.key)
    names, reader = source.facts.stores, source.reader
    away = [Run(*place, tuple(copies)) for place, copies in reader.copies(names).items()]
    return Hiding(policies, source.facts.parents, [*reader.runs(names), *away], key)


def _key(path: Path) -> bytes:
    """A secret of the site's own. Raises ConfigInvalid; its content is never told."""
    try:
        with path.open("rb") as stream:
            content = stream.read(KEY_MAX_BYTES + 1).strip()
    except OSError as e:
        raise ConfigInvalid(f"--hash-key: {e}", code="usage") from e
    if not KEY_MIN_BYTES <= len(content) <= KEY_MAX_BYTES:
        text = f"--hash-key: {str(path)!a} needs {KEY_MIN_BYTES} to {KEY_MAX_BYTES} bytes"
        raise ConfigInvalid(text, code="usage", hint="head -c 32 /dev/urandom | base64 > FILE")
    return content
