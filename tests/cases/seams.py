"""What stands between the engine and its stores in a case: a clock that stands, true ages, and things that go wrong."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from lifecycle.core.copies import CopyManifest, Member
from lifecycle.core.listing import Folder
from lifecycle.core.warrant import Warrant
from lifecycle.errors import Denied, StoreError
from lifecycle.ports import Freed, Memory, Sighting, Store, Target, Usage
from lifecycle.stores import beneath
from tests.cases.box import rotten
from tests.cases.grammar import Unsupported
from tests.cases.happen import Deed


class FrozenClock:
    """A clock that shows what it is told."""

    def __init__(self, at_ns: int) -> None:
        self.at_ns = at_ns

    def now_ns(self) -> int:
        return self.at_ns


class Killed(BaseException):
    """The process ends here; nothing of ours may catch it."""


def aged(folder: Folder) -> Folder:
    """Without change times: those of the disk are of the test run, not of the case."""
    folder.ctime_ns = 0
    if folder.stamp is not None:
        folder.stamp = folder.stamp._replace(ctime_ns=folder.stamp.mtime_ns)
    return folder


@dataclass
class Watch:
    """The hooks of one case, shared by all its stores."""

    on_walk: Callable[[], None] = lambda: None
    on_retire: Callable[[str], None] = lambda _key: None
    """Told ``store:key`` between the last look and the act."""
    after_retire: Callable[[str], None] = lambda _key: None
    on_piece: Callable[[str], None] = lambda _path: None
    """Told the path of a file that is being copied, after each piece of it was sent."""
    on_publish: Callable[[], None] = lambda: None
    """Told between the proof of a copy and its appearance at its place."""
    after_publish: Callable[[], None] = lambda: None
    rots: str | None = None
    """Path, at home or at the place, of a file that arrives there with a bit changed; empty for any."""
    tags_fail: str | None = None
    """Path below which tags cannot be read."""
    unlistable: str | None = None
    stale: bool = False

    def reset(self) -> None:
        """Take all hooks off."""
        fresh = Watch()
        for name in vars(fresh):
            setattr(self, name, getattr(fresh, name))


class CaseStore:
    """A store as it is, but for what the case says of it. Everything not named here is the store's own."""

    def __init__(
        self, inner: Store, watch: Watch, path_of: Callable[[str], str], capacity: Mapping[str, int] | None = None
    ) -> None:
        self.inner, self.watch, self.path_of, self.capacity = inner, watch, path_of, capacity
        self.walks: dict[str, list[Folder]] = {}
        self.sights: dict[Target, Sighting] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def walk(self, start: str = "", passing: Collection[str] = ()) -> Iterator[Folder]:
        if self.watch.stale and start in self.walks:
            yield from self.walks[start]
            return
        broken: list[str] = []
        for folder in self.inner.walk(start, passing):
            if any(folder.path.startswith(path + "/") for path in broken):
                continue
            if self.watch.unlistable is not None and self.path_of(folder.path) == self.watch.unlistable:
                broken.append(folder.path)
                folder = Folder(folder.path, error="EIO")  # noqa: PLW2901  # what the store would have shown
            yield aged(folder)
            self.watch.on_walk()

    def usage(self) -> Usage:
        """As the case says: what lies in the trash still takes its space."""
        if self.capacity is None:
            return self.inner.usage()
        return Usage(self.capacity["size"], self.capacity["free"], None, None)

    def same(self, run: str, memory: Memory) -> bool:
        return self.watch.unlistable is None and self.inner.same(run, memory)

    def tags(self, key: str) -> Mapping[str, str]:
        fails = self.watch.tags_fail
        path = self.path_of(key)
        if fails is not None and (path == fails or path.startswith(fails + "/") or not fails):
            raise StoreError(f"the tags of {key} could not be read", code="store_failed")
        return self.inner.tags(key)

    def sight(self, target: Target) -> Sighting:
        if self.watch.stale and target in self.sights:
            return self.sights[target]
        return self.inner.sight(target)

    def stream(self, key: str, size_bytes: int) -> Iterator[bytes]:
        for piece in self.inner.stream(key, size_bytes):
            yield piece
            self.watch.on_piece(self.path_of(key))

    def freeze(self, runs: set[str], targets: list[Target]) -> None:
        """Remember what is shown now, as a client with a cache of listings does."""
        for run in runs:
            self.walks[run] = list(self.walk(run))
        for target in targets:
            self.sights[target] = self.inner.sight(target)
        self.watch.stale = True


class CaseTrash:
    """A trash as it is, with a hook directly before and after each retiring."""

    def __init__(self, inner: Any, watch: Watch) -> None:
        self.inner, self.watch = inner, watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def retire(self, warrant: Warrant, now_ns: int) -> Freed:
        self.watch.on_retire(warrant.action.id)
        freed: Freed = self.inner.retire(warrant, now_ns)
        self.watch.after_retire(warrant.action.id)
        return freed


class CaseIntake:
    """An intake as it is, with hooks around the moment in which a copy appears, and bits that change on the way."""

    def __init__(self, inner: Any, watch: Watch) -> None:
        self.inner, self.watch = inner, watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def put(
        self, copy_id: str, member: Member, pieces: Iterable[bytes], digest: Callable[[], str] | None = None
    ) -> None:
        rots = self.watch.rots
        if rots is not None and f"/{rots}".endswith(f"/{member.key}" if rots else "") and member.size_bytes:
            pieces = map(rotten, pieces)
        self.inner.put(copy_id, member, pieces, digest)

    def publish(self, manifest: CopyManifest) -> None:
        self.watch.on_publish()
        self.inner.publish(manifest)
        self.watch.after_publish()


@contextmanager
def copy_faults(deeds: list[Deed], world: Any, watch: Watch) -> Iterator[None]:
    """The same for what goes wrong while a copy is being made: writes fail, or arrive as something else."""
    with ExitStack() as stack:
        for deed in deeds:
            match deed.verb:
                case "errno":
                    number = getattr(errno, deed.text or "EIO")
                    failing = mock.Mock(side_effect=OSError(number, os.strerror(number)))
                    stack.enter_context(mock.patch.object(beneath, "write", failing))
                    _fail_keys(stack, world, deed.path, 503, WRITES)
                case "http":
                    _fail_keys(stack, world, deed.path, deed.size or 500, WRITES)
                case "rot":
                    watch.rots = deed.path
                    stack.callback(setattr, watch, "rots", None)
                case _:
                    raise Unsupported(f"fault {deed.verb} of a copy")
        yield


WRITES = ("put_object", "upload_part")


@contextmanager
def faults(deeds: list[Deed], world: Any, watch: Watch) -> Iterator[None]:
    """Make system calls and requests fail as the deeds say, as long as this lasts."""
    with ExitStack() as stack:
        for deed in deeds:
            match deed.verb:
                case "errno":
                    _fail_names(stack, deed)
                    _fail_keys(stack, world, deed.path, 403)
                case "db_locked":
                    stack.enter_context(_locked(world.index.database.name))
                case "http":
                    _fail_keys(stack, world, deed.path, deed.size or 500)
                case "silly_rename":
                    _silly(stack, deed)
                case "listing_cut":
                    _cut(stack, world, watch, deed)
                case "tags_fail":
                    watch.tags_fail = deed.path
                    stack.callback(setattr, watch, "tags_fail", None)
                case _:
                    raise Unsupported(f"fault {deed.verb}")
        yield


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Another process is writing to the index and does not come to an end."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")


def _fail_names(stack: ExitStack, deed: Deed) -> None:
    """Moving, unlinking or removing the named thing, or the unit that it is in, fails: told by path, not by name."""
    number = getattr(errno, deed.text or "EPERM")
    for call in ("mkdir", "write_file") if deed.text == "ENOSPC" else ("move", "unlink", "rmdir"):
        real = getattr(beneath, call)

        def fails(name: str, fd: int, *more: Any, _real: Callable[..., Any] = real) -> Any:
            path = f"{os.readlink(f'/proc/self/fd/{fd}')}/{name}"
            if not deed.path or path.endswith("/" + deed.path) or f"/{deed.path}/" in path or _holds(path, deed.path):
                raise OSError(number, os.strerror(number))
            return _real(name, fd, *more)

        stack.enter_context(mock.patch.object(beneath, call, fails))


def _holds(path: str, inner: str) -> bool:
    """Whether ``inner``, a path of the case, lies in the unit at ``path``."""
    return any(path.endswith("/" + inner[:i]) and "/" in inner[:i] for i, c in enumerate(inner) if c == "/")


def _silly(stack: ExitStack, deed: Deed) -> None:
    """An NFS client keeps a file that somebody has open: it is renamed and its directory cannot go."""
    real, wanted = beneath.unlink, deed.path.rpartition("/")[2]
    done: set[str] = set()

    def unlink(name: str, fd: int) -> None:
        if name.startswith(".nfs"):
            raise OSError(errno.EBUSY, "busy")
        if (name == wanted or not wanted) and not done:
            done.add(name)
            os.rename(name, ".nfs000000000001", src_dir_fd=fd, dst_dir_fd=fd)
            return
        real(name, fd)

    stack.enter_context(mock.patch.object(beneath, "unlink", unlink))


@contextmanager
def dying_at(count: int) -> Iterator[None]:
    """The process ends at its ``count``-th unlink, before it is done."""
    real, left = beneath.unlink, count

    def unlink(name: str, fd: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Killed
        real(name, fd)

    with mock.patch.object(beneath, "unlink", unlink):
        yield


def _fail_keys(
    stack: ExitStack, world: Any, path: str, status: int, calls: tuple[str, ...] = ("delete_object", "head_object")
) -> None:
    """Requests about the named object are answered with an error: its deletes, if no other are named."""
    for store in world.stores.values():
        bucket = getattr(store.inner, "bucket", None)
        if bucket is None:
            continue
        if "put_object" in calls and hasattr(bucket, "wire"):
            stack.enter_context(mock.patch.object(bucket, "wire", None))  # what is left are the client's own requests
        root = store.path_of("")
        prefix = store.inner.prefix + (path[len(root) + 1 :] if root and path.startswith(root + "/") else path)
        for call in calls:
            real = getattr(bucket.client, call)

            def fails(
                *,
                Key: str,  # noqa: N803
                _real: Callable[..., Any] = real,
                _prefix: str = prefix,
                **more: Any,
            ) -> Any:
                if Key.startswith(_prefix) and "/.lifecycle" not in f"/{Key}":
                    raise _client_error(status)
                return _real(Key=Key, **more)

            if call != "head_object" or status >= 500:
                stack.enter_context(mock.patch.object(bucket.client, call, fails))


def _metadata(status: int) -> Any:
    return {"HTTPStatusCode": status, "HTTPHeaders": {}, "RequestId": "", "HostId": "", "RetryAttempts": 0}


def _client_error(status: int) -> Exception:
    from botocore.exceptions import ClientError

    code = {403: "AccessDenied", 404: "NoSuchKey", 503: "SlowDown"}.get(status, "InternalError")
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": _metadata(status)}, "DeleteObject")


def _cut(stack: ExitStack, world: Any, watch: Watch, deed: Deed) -> None:
    """The listing ends early: a page fails, or its continuation is lost."""
    for store in world.stores.values():
        bucket = getattr(store.inner, "bucket", None)
        if bucket is None:
            paths = [deed.path] if deed.path else [store.path_of(f.path) for f in store.inner.walk() if f.names][:1]
            watch.unlistable = paths[0] if paths else ""
            stack.callback(setattr, watch, "unlistable", None)
            continue
        stack.enter_context(mock.patch.object(bucket, "_page", _half(bucket, deed)))


def _half(bucket: Any, deed: Deed) -> Callable[..., Any]:
    from lifecycle.stores.s3_client import PAGE
    from lifecycle.stores.s3_pages import Page

    real = bucket._page
    silent = any(word in deed.text for word in ("lost", "IsTruncated", "missing", "ignored"))

    def page(prefix: str, token: str | None, after: str = "") -> dict[str, Any]:
        if token is not None:
            kind = Denied if "403" in deed.text else StoreError
            raise kind("the page did not come", code="store_failed")
        answer: dict[str, Any] = real(prefix, token, after)
        whole: Page = answer.get(PAGE, Page([], [], [], [], {}))
        half = len(whole.keys) // 2
        if not half:
            return answer
        answer[PAGE] = whole._replace(
            keys=whole.keys[:half],
            sizes=whole.sizes[:half],
            mtimes_ns=whole.mtimes_ns[:half],
            etags=whole.etags[:half],
        )
        answer |= {"KeyCount": half, "IsTruncated": True}
        if not silent:
            answer["NextContinuationToken"] = "next"
        return answer

    return page
