"""Reads copies again, those longest unread first, and writes down what was found; changes nothing in any store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from lifecycle.core.copies import CopyManifest
from lifecycle.core.protect import SECOND_NS
from lifecycle.core.units import SIZE_MAX_BYTES
from lifecycle.errors import LifecycleError, NotFound
from lifecycle.flows.carry import verify
from lifecycle.flows.copies import held
from lifecycle.flows.pace import UNHURRIED, Pace, Tick
from lifecycle.ports import Check, Reader, Store, Writer


@dataclass(slots=True)
class Verified:
    """What was read, and what is still due."""

    checks: list[Check] = field(default_factory=list)
    bytes: int = 0
    left: int = 0
    """Copies that are due and did not fit into the budget, or were not begun since it was to stop."""
    archived: int = 0
    """Copies that are due and in an archive: nothing can be said of them without a restore."""

    @property
    def exit_code(self) -> int:
        """0 when everything read is as it was copied, else 3."""
        return 3 if any(check.outcome != "whole" for check in self.checks) else 0


@dataclass(frozen=True, slots=True)
class Wish:
    """Which copies, how long unread, and how much of them."""

    wanted: Callable[[CopyManifest], bool] = lambda _manifest: True
    older_s: int = 0
    budget_bytes: int | None = None


def verify_copies(
    stores: Mapping[str, Store],
    reader: Reader,
    writer: Writer,
    wish: Wish,
    *,
    now_ns: int,
    pace: Pace = UNHURRIED,
    stop: Callable[[], bool] = lambda: False,
) -> Verified:
    """Read due copies whole and hold each file's checksum against the manifest's.

    The first copy is read whatever its size, so that a copy larger than the budget is not passed over for ever.

    Raises:
        StoreError: a store does not say which copies it holds.
    """
    done = Verified()
    found = list(_due(stores, reader, wish, now_ns))
    pace.due(min(sum(m.size_bytes for _, m in found), wish.budget_bytes or SIZE_MAX_BYTES))
    for store, manifest in found:
        over = wish.budget_bytes is not None and done.bytes + manifest.size_bytes > wish.budget_bytes
        if stop() or (over and done.checks):
            done.left += 1
            continue
        check = _check(store, manifest, now_ns, pace.tick)
        if check is None:
            done.archived += 1
            continue
        writer.add_check(check)
        done.checks.append(check)
        done.bytes += manifest.size_bytes
    return done


def _due(stores: Mapping[str, Store], reader: Reader, wish: Wish, now_ns: int) -> Iterator[tuple[Store, CopyManifest]]:
    checks = reader.checks()
    found: list[tuple[int, str, CopyManifest]] = []
    for name in sorted(stores):
        for manifest in held(stores[name], checks).manifests:
            last = checks.get(manifest.copy_id)
            read_ns = max(manifest.copied_at_ns, last.at_ns if last and last.outcome != "unread" else 0)
            if wish.wanted(manifest) and now_ns - read_ns >= wish.older_s * SECOND_NS:
                found.append((read_ns, name, manifest))
    for _, name, manifest in sorted(found, key=lambda row: (row[0], row[1], row[2].key)):
        yield stores[name], manifest


def _check(store: Store, manifest: CopyManifest, now_ns: int, tick: Tick) -> Check | None:
    """What reading it gave; None where it is in an archive."""
    outcome, note = "whole", ""
    try:
        if differs := verify(store, manifest, tick):
            outcome, note = "rotten", f"{differs} is not what was copied"
    except NotFound as e:
        outcome, note = "rotten", str(e)
    except LifecycleError as e:
        if e.code == "storage_archived":
            return None
        outcome, note = "unread", str(e)
    return Check(store.name, manifest.key, manifest.copy_id, now_ns, outcome, note)
