"""A node's cache on a local disk: whole read-only entries in a directory, and what we keep about them beside them."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b

from lifecycle.core.copies import CopyManifest
from lifecycle.errors import LeaseHeld, LifecycleError, Refused, StoreError
from lifecycle.ports import Freed, Intake
from lifecycle.ports.cache import About, Lease
from lifecycle.sizing.room import Entry, Room
from lifecycle.stores import beneath, posix_copy
from lifecycle.stores.cache_intake import CacheIntake
from lifecycle.stores.local import STATE_NAME, LocalStore
from lifecycle.stores.open_files import open_inodes
from lifecycle.stores.posix_copy import INCOMING, Found
from lifecycle.stores.posix_intake import LocalIntake
from lifecycle.stores.posix_purge import Purge
from lifecycle.stores.posix_walk import Walker

AREA = ".lifecycle-cache"
"""Not ``.lifecycle``: what a store holds can never be taken for entries of a cache."""
NAME = ":cache"
"""No configured store can be called that."""
LOCKS, LEASES, USED, ABOUT, COMING, GOING = "locks", "leases", "used", "about", "coming", "going"
LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
POLL_S = 0.1
HOLDERS_MAX = 3
"""As many are named; the rest is counted."""
BUDGET_WAIT_S = 600.0
"""How long a fill may wait for another one to make room, which is at most the time to remove its share of the disk."""
NOTE_MAX_BYTES = 64 * 1024


class CacheDir:
    """A cache in the directory ``path``; see the port.

    Locks are flocks on files of ours, which the kernel lets go when their process ends, however it does. They hold
    between all processes of one machine, whatever container they are in; across machines they are not relied upon.

    Raises:
        Refused: ``source_unavailable``: the directory is not there; ``cache_is_store``: a store keeps its own there.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.store = LocalStore(NAME, self.path, state=f"{self.path}/{AREA}")
        self.area = self.store.area
        self._intake = LocalIntake(self.store)
        root = self.store.root()
        if beneath.look(STATE_NAME, root) is not None:
            text = f"{self.path!r} is the root of a store: what it holds are checkpoints, and no entries of a cache"
            raise Refused(text, code="cache_is_store", hint="give the cache a directory of its own")
        self.device = os.fstat(root).st_dev

    def intake(self) -> Intake:
        """See the port."""
        return self._intake

    def intake_of(self, entry: str, top: str) -> Intake:
        """See the port."""
        return CacheIntake(self._intake, entry, top)

    # -- locks

    @contextmanager
    def filling(self, entry_id: str, wait_s: float) -> Iterator[None]:
        """See the port."""
        with self._locked(f"{entry_id}.fill", fcntl.LOCK_EX, wait_s):
            yield

    @contextmanager
    def using(self, entry_id: str) -> Iterator[None]:
        """See the port; only an eviction keeps us waiting, for as long as a rename takes."""
        with self._locked(f"{entry_id}.use", fcntl.LOCK_SH, BUDGET_WAIT_S):
            yield

    @contextmanager
    def budgeting(self) -> Iterator[None]:
        """See the port."""
        with self._locked("budget", fcntl.LOCK_EX, BUDGET_WAIT_S):
            yield

    @contextmanager
    def _locked(self, name: str, kind: int, wait_s: float) -> Iterator[None]:
        """Hold a lock. Raises LeaseHeld; Refused: ``cache_unlockable``: this file system has none."""
        end = time.monotonic() + wait_s
        with self.area.writing(LOCKS, self.device) as fd, beneath.telling(name, "lock"):
            file = os.open(name, LOCK_FLAGS, 0o600, dir_fd=fd)
            try:
                while not (taken := _take(file, kind)) or not os.fstat(file).st_nlink:
                    if taken:  # on a file that went with its entry: others meet at a new one
                        old, file = file, os.open(name, LOCK_FLAGS, 0o600, dir_fd=fd)
                        os.close(old)
                    elif time.monotonic() < end:
                        time.sleep(POLL_S)
                    else:
                        text = f"another process is at work in {self.path} and did not end within {wait_s:g} s"
                        raise LeaseHeld(text)
            except BaseException:
                os.close(file)
                raise
        try:
            yield
        finally:
            os.close(file)

    def _is_free(self, name: str) -> bool:
        try:
            with self._locked(name, fcntl.LOCK_EX, 0):
                return True
        except LeaseHeld:
            return False

    # -- entries

    def fault(self, entry_id: str) -> str:
        """See the port."""
        try:
            manifest = self._manifest(entry_id)
            if manifest is None:
                return "missing"
            found, _ = self._found(manifest)
        except FileNotFoundError:
            return "missing"
        except (OSError, LifecycleError) as error:
            return str(error)
        meant = {member.key: member for member in manifest.members}
        for one in found:
            if one.key not in meant or not one.is_like(meant.pop(one.key)):
                return f"{one.key!r} is not what was put there"
        return f"{min(meant)!r} is gone" if meant else ""

    def _manifest(self, entry_id: str) -> CopyManifest | None:
        copies = self.store.copies()
        return CopyManifest.decode(copies[entry_id], entry_id) if entry_id in copies else None

    def _found(self, manifest: CopyManifest) -> tuple[list[Found], dict[str, int]]:
        """Files of an entry, and its directories by inode. Raises FileNotFoundError, OSError, LifecycleError."""
        with beneath.opened(manifest.key, self.store.root()):
            pass  # a walk shows nothing, and no error, where nothing is
        folders = list(self.store.walk(manifest.key))
        found, _ = posix_copy.find_tree(folders, lambda key: beneath.opened(key, self.store.root()))
        return found, {folder.path: folder.stamp.inode for folder in folders if folder.stamp is not None}

    def entries(self, now_ns: int, *, closely: bool = True) -> list[Entry]:
        """See the port."""
        seen = open_inodes() if closely else frozenset()
        entries = []
        for entry_id in self.store.copies():
            try:
                manifest = self._manifest(entry_id)
            except StoreError as error:
                entries.append(Entry(entry_id, entry_id, 0, now_ns, str(error)))
                continue
            if manifest is None:
                continue
            why = self._use(entry_id, manifest, now_ns, seen)
            size_bytes, used_at_ns = manifest.size_bytes, self._used(entry_id, manifest)
            entries.append(Entry(entry_id, manifest.key, size_bytes, used_at_ns, why))
        return entries

    def _use(self, entry_id: str, manifest: CopyManifest, now_ns: int, seen: Collection[int]) -> str:
        """Why an entry may not go, by locks, leases and what is in it; empty when nothing speaks against it."""
        if not self._is_free(f"{entry_id}.use"):
            return "a process holds it"
        return self._leased(entry_id, now_ns) or self._strange(manifest, seen)

    def _leased(self, entry_id: str, now_ns: int) -> str:
        leases = [lease for lease in self.leases(entry_id) if lease.until_ns is None or lease.until_ns > now_ns]
        holders = sorted(lease.holder for lease in leases)
        more = f" and {len(holders) - HOLDERS_MAX} more" if len(holders) > HOLDERS_MAX else ""
        return f"leased to {', '.join(holders[:HOLDERS_MAX])}{more}" if holders else ""

    def _strange(self, manifest: CopyManifest, seen: Collection[int] = ()) -> str:
        """What of an entry is not ours, or open: it is left alone then. Of what is missing nothing can be lost."""
        meant = {member.key: member for member in manifest.members}
        try:
            found, directories = self._found(manifest)
        except FileNotFoundError:
            return ""
        except (OSError, LifecycleError) as error:
            return f"it cannot be looked at: {error}"
        for one in found:
            if one.key not in meant or not one.is_like(meant[one.key]):
                return f"{one.key!r} was not put there by us"
        strange = directories.keys() - {directory.key for directory in manifest.directories}
        if strange:
            return f"{min(strange)!r} was not put there by us"
        inodes = {one.status.st_ino for one in found}.union(directories.values())
        return "" if inodes.isdisjoint(seen) else "a process has it open"

    # -- what is kept about them

    def _read(self, folder: str, name: str) -> bytes | None:
        with self.area.reading(folder) as fd, beneath.telling(name, "read"):
            if fd is None or beneath.look(name, fd) is None:
                return None
            return beneath.read_regular(name, fd, 0, NOTE_MAX_BYTES)

    def _write(self, folder: str, name: str, content: bytes) -> None:
        with self.area.writing(folder, self.device) as fd, beneath.telling(name, "write"):
            beneath.write_file(name, fd, content, f"{name}.{os.getpid()}.new")

    def _drop(self, folder: str, name: str) -> None:
        with self.area.reading(folder) as fd, beneath.telling(name, "drop"):
            if fd is not None:
                with suppress(FileNotFoundError):
                    beneath.unlink(name, fd)

    def _names(self, folder: str, end: str = "") -> list[str]:
        with self.area.reading(folder) as fd, beneath.telling(folder, "list"):
            return [] if fd is None else sorted(name for name in os.listdir(fd) if name.endswith(end))

    def _used(self, entry_id: str, manifest: CopyManifest) -> int:
        text = self._read(USED, entry_id) or b""
        return int(text) if text.isdigit() else manifest.copied_at_ns

    def touch(self, entry_id: str, now_ns: int) -> None:
        """See the port."""
        self._write(USED, entry_id, str(now_ns).encode("ascii"))

    def about(self, entry_id: str) -> About:
        """See the port."""
        try:
            raw = json.loads(self._read(ABOUT, entry_id) or b"{}")
            return About(str(raw["source"]), str(raw["verified"]))
        except (ValueError, KeyError, TypeError):
            return About("", "")

    # -- leases

    def leases(self, entry_id: str) -> list[Lease]:
        """See the port. One that cannot be read is somebody's, without end."""
        found = []
        for name in self._names(LEASES):
            if not name.startswith(f"{entry_id}.") or name.endswith(".new"):
                continue
            content = self._read(LEASES, name)
            if content is not None:
                found.append(_lease(content))
        return found

    def lease(self, entry_id: str, lease: Lease) -> None:
        """See the port."""
        self._write(LEASES, f"{entry_id}.{_short(lease.holder)}", json.dumps(lease._asdict()).encode("ascii"))

    def release(self, holder: str) -> int:
        """See the port."""
        mine = self._names(LEASES, f".{_short(holder)}")
        for name in mine:
            self._drop(LEASES, name)
        return len(mine)

    # -- room

    def expect(self, entry_id: str, size_bytes: int, about: About) -> None:
        """See the port."""
        self._write(COMING, entry_id, str(size_bytes).encode("ascii"))
        self._write(ABOUT, entry_id, json.dumps(about._asdict()).encode("ascii"))

    def room(self, budget_bytes: int, free_min_bytes: int, mine: str = "") -> Room:
        """See the port."""
        coming = unwritten = 0
        published = self.store.copies()
        for entry_id in self._names(COMING):
            text = self._read(COMING, entry_id) or b""
            if entry_id == mine or entry_id in published or not text.isdigit() or self._is_free(f"{entry_id}.fill"):
                continue
            coming += int(text)
            unwritten += max(0, int(text) - self._staged_bytes(entry_id))
        return Room(budget_bytes, self.store.usage().free_bytes or 0, free_min_bytes, coming, unwritten)

    def _staged_bytes(self, entry_id: str) -> int:
        with self.area.reading(INCOMING) as incoming:
            size_bytes = 0
            with suppress(OSError):  # it is just being made, or published
                for folder in () if incoming is None else Walker(incoming, False).walk(entry_id):
                    size_bytes += sum(folder.sizes)
            return size_bytes

    def sweep(self, mine: str = "") -> None:
        """See the port."""
        for entry_id in self._names(INCOMING):
            if entry_id != mine:
                with suppress(LifecycleError), self.filling(entry_id, 0):
                    self._intake.abandon(entry_id)
        for entry_id in self._names(COMING):
            if entry_id != mine and self._is_free(f"{entry_id}.fill"):
                self._drop(COMING, entry_id)
        for name in self._names(GOING):
            self._purge(name)

    def evict(self, entry_id: str, now_ns: int) -> Freed | None:
        """See the port: one rename, after which it is no entry any more; only then is anything removed."""
        try:
            with self._locked(f"{entry_id}.use", fcntl.LOCK_EX, 0):
                manifest = self._manifest(entry_id)
                if manifest is None or self._leased(entry_id, now_ns) or self._strange(manifest):
                    return None
                going = f"{entry_id}-{secrets.token_hex(4)}"
                self._take_away(manifest, going)
                self._intake.forget(entry_id)
                for name in self._names(LEASES):
                    if name.startswith(f"{entry_id}."):
                        self._drop(LEASES, name)
                for folder in (USED, ABOUT, COMING):
                    self._drop(folder, entry_id)
                self._drop(LOCKS, f"{entry_id}.use")  # whoever waits for it sees that, and makes a new one
        except LeaseHeld:
            return None
        return self._purge(going)

    def _take_away(self, manifest: CopyManifest, going: str) -> None:
        root = self.store.root()
        with (
            self.area.writing(GOING, self.device) as place,
            beneath.telling(manifest.key, "evict"),
            suppress(FileNotFoundError),
            beneath.opened(manifest.key, root) as fd,
        ):
            # To move a directory its owner must be able to write to it.
            beneath.set_mode(fd, stat.S_IMODE(os.fstat(fd).st_mode) | stat.S_IRWXU)
            beneath.move(manifest.key, root, going, place)
            os.fsync(place)
            os.fsync(root)

    def _purge(self, name: str) -> Freed:
        """Free one evicted entry; what is left of it after a failure goes with the next sweep."""
        with self.area.reading(GOING) as place, beneath.telling(name, "free"):
            if place is None or beneath.look(name, place) is None:
                return Freed(0, 0)
            with beneath.opened(name, place) as fd:
                for folder in Walker(fd, False).walk(""):
                    with suppress(OSError), beneath.opened(folder.path, fd) as inside:
                        beneath.set_mode(inside, stat.S_IRWXU)
                purge = Purge(fd)
                purge.run()
                with suppress(OSError):
                    beneath.rmdir(name, place)
                if purge.stuck:
                    path, why = next(iter(purge.stuck.items()))
                    raise StoreError(f"{path!r} of an evicted entry cannot be removed: {why}", code="io_error")
                return Freed(purge.size_bytes, purge.files)


def _take(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        text = f"this file system knows no locks ({os.strerror(error.errno or 0)}): two fills would not see each other"
        raise Refused(text, code="cache_unlockable", hint="put the cache on a local disk of the node") from error
    return True


def _lease(content: bytes) -> Lease:
    try:
        raw = json.loads(content)
        until_ns = raw["until_ns"]
        return Lease(str(raw["holder"]), None if until_ns is None else int(until_ns))
    except (ValueError, KeyError, TypeError):
        return Lease("somebody (the lease cannot be read)", None)


def _short(holder: str) -> str:
    return blake2b(holder.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
