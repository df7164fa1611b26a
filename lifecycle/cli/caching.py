"""``cache fill``, ``evict``, ``status`` and ``release``: what people and init containers do with a node's cache."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from lifecycle.cli.desk import Desk, flush, writing
from lifecycle.cli.progress import bytes_of
from lifecycle.core.units import escape, format_age, format_bytes, parse_duration, parse_size
from lifecycle.errors import ConfigInvalid, NotFound
from lifecycle.flows.cache import Filled, Wish, evict, fill, hold
from lifecycle.flows.cache_source import Ancestor, Source, source_at, source_in, url_parts
from lifecycle.flows.copies import published
from lifecycle.layouts.unions import roots_of
from lifecycle.ports.cache import Cache
from lifecycle.render.report import plural

STAY_RENEWS = 3
"""A lease is renewed so many times before it would end."""
STAY_S = 3600.0
PARTLY = 3
VERIFIED = {
    "manifest": "verified by manifest: every checksum is that of the copy",
    "transport": "verified by transport: read whole, sizes agree, reads back the same; no manifest tells its checksums",
}


class Asked(NamedTuple):
    """The options of ``cache fill`` as typed."""

    source: str
    directory: Path
    budget: str
    min_free: str
    wait: str
    holder: str | None
    lease: str | None
    stay: bool
    link: Path | None


def fill_cache(desk: Desk, asked: Asked) -> int:
    """``lifecycle cache fill``"""
    budget_bytes, wait_s, lease_s = _size(asked.budget), _seconds("--wait", asked.wait), _lease(asked)
    stop = {signal.SIGTERM, signal.SIGINT}
    with ExitStack() as keep, bytes_of("Filling", desk.as_json) as meter:
        cache = _cache(asked.directory, make=True)
        free_min_bytes = _free_min(cache, asked.min_free)
        wish = Wish(budget_bytes, free_min_bytes, wait_s or 0, asked.holder or socket.gethostname(), lease_s)
        source = _source(desk, asked.source, keep)
        _refuse_inside(source, cache)
        if source.note:
            desk.warn(escape(source.note))
        done = fill(cache, source, wish, desk.clock, keep, tick=meter.moved, say=lambda text: desk.warn(escape(text)))
        if asked.link is not None:
            from lifecycle.stores.cache_link import point

            point(str(asked.link), done.path)
        _tell(desk, done)
        if asked.stay:
            signal.pthread_sigmask(signal.SIG_BLOCK, stop)
            while signal.sigtimedwait(stop, wish.lease_s / STAY_RENEWS if wish.lease_s else STAY_S) is None:
                hold(cache, done.entry_id, wish, desk.clock.now_ns())
            if wish.lease_s != 0:
                cache.release(wish.holder)
    return 0


def _tell(desk: Desk, done: Filled) -> None:
    """The path alone on standard output, so that a script can take it; all else beside it."""
    if desk.as_json:
        desk.answer(done._asdict(), ())
    else:
        for name in done.evicted:
            desk.warn(f"evicted {name}")
        words = {"hit": "was there", "filled": "is ready", "waited": "is ready, filled by another process"}
        desk.warn(f"{done.entry} {words[done.how]}: {format_bytes(done.bytes)}")
        desk.warn(VERIFIED.get(done.verified, "how it was verified is not known"))
        with writing():
            print(done.path)
    flush()


def _lease(asked: Asked) -> int | None:
    """Seconds; 0 for none, None for one without end. Who stays needs none."""
    if asked.lease is None:
        return 0 if asked.stay else None
    return _seconds("--lease", asked.lease) or 0


def _seconds(option: str, text: str) -> int | None:
    """Seconds; None for ``none``."""
    try:
        return None if text == "none" else parse_duration(text)
    except ValueError as e:
        raise ConfigInvalid(f"{option}: {e}", code="usage") from e


def _size(text: str, option: str = "--budget") -> int:
    try:
        return parse_size(text)
    except ValueError as e:
        raise ConfigInvalid(f"{option}: {e}", code="usage") from e


def _free_min(cache: Cache, text: str) -> int:
    if text == "none":
        return 0
    if text.endswith("%") and text[:-1].isdecimal() and int(text[:-1]) < 100:
        return (cache.store.usage().size_bytes or 0) * int(text[:-1]) // 100
    return _size(text, "--min-free")


def _cache(directory: Path, *, make: bool = False) -> Cache:
    from lifecycle.stores.cache_dir import CacheDir

    if make and not directory.is_dir():
        try:
            directory.mkdir(mode=0o755)  # its parent must be there: it is what is mounted
        except OSError as e:
            raise ConfigInvalid(f"--dir: {str(directory)!a} cannot be made: {e.strerror}", code="usage") from e
    if not directory.is_dir():
        raise ConfigInvalid(f"--dir: {str(directory)!a} is not a directory", code="usage")
    return CacheDir(str(directory))


def _refuse_inside(source: Source, cache: Cache) -> None:
    """A source and a cache that lie in each other: the one would be taken for the other."""
    other = os.path.realpath(cache.path) + "/"
    for url in roots_of(source.store.url):
        if not url.startswith(("/", "file:")):
            continue
        one = os.path.realpath(f"{url.removeprefix('file://').rstrip('/')}/{source.stands.key}") + "/"
        if one.startswith(other) or other.startswith(one):
            hint = "give the cache its own directory"
            raise ConfigInvalid("SOURCE and --dir lie in each other", code="usage", hint=hint)


# -- the source


def _source(desk: Desk, text: str, keep: ExitStack) -> Source:
    local = text.startswith(("/", "./", "../", "~")) or ("/" in text and os.path.lexists(text))
    if "://" not in text and not local:
        return _known(desk, text, keep)
    from lifecycle.stores.open import StoreSpec, open_store

    url = os.path.abspath(os.path.expanduser(text)) if local else text
    ways = url_parts(url)
    if not ways or not ways[0][1]:
        raise ConfigInvalid(f"{text!a} names no checkpoint", code="usage", hint="s3://BUCKET/KEY or a path")
    return source_at([Ancestor(open_store(StoreSpec(name=":source", url=root)), key) for root, key in ways])


def _known(desk: Desk, text: str, keep: ExitStack) -> Source:
    """What a site knows as ``STORE:KEY``: the original where it stands, else a copy of it."""
    from lifecycle.cli.selecting import find, identity
    from lifecycle.flows.recall import Desk as Place
    from lifecycle.flows.recall import copies_of
    from lifecycle.flows.views import Views

    world = keep.enter_context(desk.world(write=False))
    conventions = world.settings.conventions
    home, _, key = identity(world, text).partition(":")
    views = Views(world.stores, world.index.reader, conventions, world.clock)
    unit = None
    with suppress(NotFound):  # the index may be new, or behind: the stores are asked anyway
        unit = find(world, f"{home}:{key}").checkpoint
    if home in world.stores:
        manifests = [m for store in world.stores.values() for m in published(store) if m.checkpoint.store == home]
        proofs = {m.checkpoint.fingerprint: m for m in manifests if m.key == key}
        with suppress(NotFound):
            return source_in(
                world.stores[home],
                key,
                lambda c: proofs.get(c.fingerprint),
                unit=unit if unit is not None and unit.here else None,
                conventions=conventions,
            )
    place = Place(world.stores, world.intakes, world.index.journal, views, world.clock, world.host, world.engine)
    found = copies_of(place, home, key)[0]
    return source_in(
        world.stores[found.stands.store], key, lambda _: found.manifest, unit=found.stands, conventions=conventions
    )


# -- the other commands


def evict_cache(desk: Desk, directory: Path, budget: str, min_free: str) -> int:
    """``lifecycle cache evict``"""
    cache = _cache(directory)
    done = evict(cache, _size(budget), _free_min(cache, min_free), desk.clock)
    code = PARTLY if done.short_bytes else 0
    value = {
        "evicted": [entry._asdict() for entry in done.entries],
        "freed_bytes": done.freed_bytes,
        "short_bytes": done.short_bytes,
        "exit_code": code,
    }

    def lines() -> Iterator[str]:
        for entry in done.entries:
            yield f"evicted  {entry.name}  {format_bytes(entry.bytes)}"
        if not done.entries:
            yield "Nothing had to go." if not done.short_bytes else "Nothing here is known to be idle."
        if done.short_bytes:
            yield f"{format_bytes(done.short_bytes)} too many are left: what is left may be in use."

    desk.answer(value, lines())
    return code


def show_cache(desk: Desk, directory: Path) -> int:
    """``lifecycle cache status``"""
    cache = _cache(directory)
    now_ns = desk.clock.now_ns()
    rows = [
        {
            **entry._asdict(),
            "fault": cache.fault(entry.id),
            **cache.about(entry.id)._asdict(),
            "leases": [lease._asdict() for lease in cache.leases(entry.id)],
        }
        for entry in sorted(cache.entries(now_ns), key=lambda entry: (-entry.used_at_ns, entry.id))
    ]
    total = sum(int(str(row["bytes"])) for row in rows)
    usage = cache.store.usage()

    def lines() -> Iterator[str]:
        for row in rows:
            age = format_age(now_ns - int(str(row["used_at_ns"])))
            yield f"{escape(str(row['name']))}  {format_bytes(int(str(row['bytes'])))}, used {age} ago"
            if row["source"]:
                yield f"    from {escape(str(row['source']))}, verified by {row['verified']}"
            if row["fault"]:
                yield desk.look.bad(f"    cannot be used: {escape(str(row['fault']))}")
            yield f"    {'in use: ' + escape(str(row['in_use'])) if row['in_use'] else 'idle'}"
        yield (
            f"{plural(len(rows), 'entry')}, {format_bytes(total)}; "
            f"{format_bytes(usage.free_bytes or 0)} are free on the disk."
        )

    desk.answer({"path": cache.path, "entries": rows, "bytes": total, "free_bytes": usage.free_bytes}, lines())
    return 0


def release_cache(desk: Desk, directory: Path, holder: str | None) -> int:
    """``lifecycle cache release``"""
    name = holder or socket.gethostname()
    count = _cache(directory).release(name)
    desk.answer({"holder": name, "released": count}, [f"{escape(name)} gave up {plural(count, 'lease')}."])
    return 0
