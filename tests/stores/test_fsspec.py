"""Stores that can only be read: the read half of the contract over SFTP, a directory and memory; then their own."""

import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from lifecycle.core.listing import Flavour
from lifecycle.core.model import Shape
from lifecycle.errors import Changed, ConfigInvalid, Denied, NotFound, Place, Refused, StoreError
from lifecycle.ports import Powers, Store, Target, Usage
from lifecycle.stores.fsspec_facts import facts_of, to_ns
from lifecycle.stores.fsspec_open import NEVER, class_of, connect, listing_options
from lifecycle.stores.fsspec_store import FsspecStore
from lifecycle.stores.open import StoreSpec, open_intake, open_store, open_trash
from tests.sftp import Sftp, options, serving
from tests.stores.contract import SECOND, T0, UNITS, ReadContract, fill, remember, scan, shown


class DirectoryBench:
    """Files are made by plain calls in a directory; the store sees it through fsspec."""

    keeps_times = False  # no time comes to the nanosecond
    trash: Any = None

    def __init__(self, root: Path, opened: Callable[[], FsspecStore]):
        root.mkdir(parents=True, exist_ok=True)
        self.root, self.opened, self.store = root, opened, opened()

    def path(self, key: str) -> Path:
        return self.root / key

    def put(self, key: str, content: bytes, mtime_ns: int = T0) -> None:
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, ns=(mtime_ns, mtime_ns))

    def replace(self, key: str) -> None:
        raise NotImplementedError

    def remove(self, key: str) -> None:
        path = self.path(key)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    def tag(self, key: str, tags: dict[str, str]) -> None:
        raise NotImplementedError

    def reopen(self) -> tuple[Store, Any]:
        return self.opened(), None

    def cut(self, k: int) -> Any:
        raise NotImplementedError


class MemoryBench(DirectoryBench):
    """The same in fsspec's memory, which is as flat as a bucket."""

    def __init__(self):
        own = type("Own", (MemoryFileSystem,), {"store": {}, "pseudo_dirs": [""]})
        self.files = own(skip_instance_cache=True)
        self.files.mkdir("/top")
        self.opened = lambda: FsspecStore("old", "mem://top", open_files=lambda: self.files, root="/top")
        self.store = self.opened()

    def put(self, key: str, content: bytes, mtime_ns: int = T0) -> None:
        self.files.pipe_file(f"/top/{key}", content)
        self.files.store[f"/top/{key}"].created = datetime.fromtimestamp(mtime_ns / SECOND, UTC)

    def remove(self, key: str) -> None:
        self.files.rm(f"/top/{key}", recursive=True)


def through_fsspec(root: Path) -> FsspecStore:
    files = lambda: LocalFileSystem(skip_instance_cache=True)  # noqa: E731 - short
    return FsspecStore("old", "dir://here", open_files=files, root=str(root), flavour=Flavour.POSIX)


@pytest.fixture(scope="session")
def sftp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sftp]:
    with serving(tmp_path_factory.mktemp("sftp")) as server, options(server):
        yield server


@pytest.fixture
def sftp(sftp_server: Sftp, tmp_path: Path) -> Iterator[DirectoryBench]:
    root = sftp_server.root / tmp_path.name
    bench = DirectoryBench(root, lambda: FsspecStore("old", f"{sftp_server.url}/{tmp_path.name}"))
    yield bench
    shutil.rmtree(root)
    sftp_server.drop()


@pytest.fixture
def here(tmp_path: Path) -> DirectoryBench:
    return DirectoryBench(tmp_path / "root", lambda: through_fsspec(tmp_path / "root"))


@pytest.fixture
def memory() -> MemoryBench:
    return MemoryBench()


@pytest.fixture(params=["memory", "here", "sftp"])
def bench(request: pytest.FixtureRequest) -> DirectoryBench:
    found: DirectoryBench = request.getfixturevalue(request.param)
    return found


class TestContract(ReadContract):
    """Where the contract asks for what such a store does not know, it has to say so."""

    def test_a_memory_never_hides_a_change(self, bench: Any):
        fill(bench)
        assert not bench.store.same("runs/a", remember(bench.store, "runs/a")), "nobody can tell"

    def test_tags(self, bench: Any):
        fill(bench)
        with pytest.raises(StoreError) as caught:
            bench.store.tags("runs/b/step=2.ckpt")
        assert caught.value.code == "unsupported"
        with pytest.raises(NotFound):
            bench.store.tags("runs/nothing")

    def test_usage_and_probe_change_nothing(self, bench: Any):
        fill(bench)
        before = shown(bench)
        assert bench.store.usage() == Usage(None, None, None, None)
        assert bench.store.probe() == Powers(False, False, False)
        assert bench.store.notes() == bench.store.copies() == bench.store.incoming() == bench.store.states(["x"]) == {}
        assert shown(bench) == before

    @pytest.mark.parametrize("shape", list(Shape))
    def test_a_copy_reads_all_of_it(self, bench: Any, shape: Shape):
        fill(bench)
        key, members, _ = UNITS[shape]
        found = bench.store.contents(Target(key, shape, members))
        assert {m.key: m.size_bytes for m in found.members} == {
            k: len(content) for k, (content, _) in shown(bench).files.items() if k in members or k.startswith(f"{key}/")
        }
        for m in found.members:
            assert b"".join(bench.store.stream(m.key, m.size_bytes)) == bench.store.read(m.key)
            for wrong in (m.size_bytes + 1, m.size_bytes - 1):
                with pytest.raises(Changed):
                    list(bench.store.stream(m.key, wrong))
        times = {m.mtime_ns // SECOND for m in found.members}
        assert times == {T0 // SECOND}
        tree = bench.store.flavour is Flavour.POSIX and shape is Shape.DIR
        assert [d.key for d in found.directories] == ([key, f"{key}/w"] if tree else [])
        for gone in members or (key,):
            bench.remove(gone)
        with pytest.raises(NotFound):
            bench.store.contents(Target(key, shape, members))

    def test_our_own_directory_is_never_shown(self, bench: Any):
        bench.put(".lifecycle/notes/hold-1.json", b"of another installation")
        bench.put("r/.lifecycle/x", b"somebody's own")
        assert set(scan(bench.store).folders) == {"", "r", "r/.lifecycle"}
        assert [m.key for m in bench.store.contents(Target("", Shape.DIR, ())).members] == ["r/.lifecycle/x"]

    def test_a_root_that_is_not_there(self, bench: Any):
        bench.put("file", b"x")
        for name in ("root", "sentinel"):
            store, _ = bench.reopen()
            if name == "root":
                store.root += "/nothing"
            else:
                assert store.identity()
                store.sentinel = "nothing"
            with pytest.raises(Refused) as caught:
                store.identity()
            assert caught.value.code == "source_unavailable" and "store old" in str(caught.value)
        store, _ = bench.reopen()
        store.root += "/nothing"
        with pytest.raises(Refused):
            list(store.walk())
        store.root = store.root.removesuffix("nothing") + "file"
        with pytest.raises(Refused):
            list(store.walk())


@pytest.fixture(params=["here", "sftp"])
def tree(request: pytest.FixtureRequest) -> DirectoryBench:
    found: DirectoryBench = request.getfixturevalue(request.param)
    return found


def test_links_and_special_files_are_told_and_never_followed(tree: DirectoryBench):
    tree.put("r/step-1/w", b"weights")
    tree.put("elsewhere/secret", b"not ours")
    (tree.path("r/step-1/link")).symlink_to("w")
    (tree.path("r/step-2")).symlink_to("../elsewhere")
    os.mkfifo(tree.path("r/pipe"))
    folders = scan(tree.store).folders
    assert set(folders) == {"", "r", "r/step-1", "elsewhere"}
    assert folders["r"].links == {"step-2": "../elsewhere"} and folders["r"].others == {"pipe": "unknown"}
    assert folders["r/step-1"].links == {"link": "w"} and folders["r/step-1"].names == ["w"]
    for key in ("r/step-1/link", "r/pipe"):
        with pytest.raises(Changed):
            tree.store.read(key)
        with pytest.raises(Changed):
            list(tree.store.stream(key, 7))
        with pytest.raises(Changed):
            tree.store.sight(Target(key, Shape.FILE, (key,)))
    with pytest.raises(Changed):
        tree.store.sight(Target("r/step-2", Shape.DIR, ()))
    with pytest.raises(Changed):
        tree.store.contents(Target("r/step-2", Shape.DIR, ()))
    linked = tree.store.contents(Target("r/step-1", Shape.DIR, ())).members
    assert [(m.key, m.link) for m in linked] == [("r/step-1/link", "w"), ("r/step-1/w", None)]
    with pytest.raises(Refused, match="no copy can hold"):
        tree.store.contents(Target("r", Shape.DIR, ()))


def test_modes_and_times_of_a_tree_come_along(tree: DirectoryBench):
    tree.put("r/step-1/w", b"weights", T0)
    tree.path("r/step-1/w").chmod(0o640)
    tree.path("r/step-1").chmod(0o750)
    os.utime(tree.path("r/step-1"), ns=(T0, T0))
    found = tree.store.contents(Target("r/step-1", Shape.DIR, ()))
    (file,), (directory,) = found.members, found.directories
    assert file.mode == 0o640 and directory.mode == 0o750
    assert file.mtime_ns // SECOND == directory.mtime_ns // SECOND == T0 // SECOND


def test_a_further_name_is_told_where_it_can_be(here: DirectoryBench):
    here.put("r/step-1/w", b"weights")
    os.link(here.path("r/step-1/w"), here.path("r/other"))
    assert scan(here.store).folders["r/step-1"].shared == {"w": 2}
    with pytest.raises(Refused, match="further names"):
        here.store.contents(Target("r/step-1", Shape.DIR, ()))


def test_a_directory_that_cannot_be_listed_is_not_empty(here: DirectoryBench):
    here.put("r/step-1/w", b"x")
    here.put("r/step-2/w", b"x")
    real = here.store._listed

    def listed(key: str) -> Any:
        if key == "r/step-2":
            raise Denied("no", code="permission")
        if key == "r/gone":
            raise NotFound("gone while we looked", code="not_found")
        return real(key)

    here.store._listed = listed  # type: ignore[method-assign]
    here.put("r/gone/w", b"x")
    folders = {f.path: f.error for f in here.store.walk()}
    assert folders["r/step-2"] and folders["r/gone"] and not folders["r/step-1"]
    with pytest.raises(StoreError) as caught:
        here.store.sight(Target("r", Shape.DIR, ()))
    assert caught.value.code == "listing_incomplete"


class Sick(LocalFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """Fails as told, remembers listings if it is let, and lets nothing be changed."""

    def __init__(self, **more: Any):
        super().__init__(**more)
        self.failure: Exception | None = None
        self.told: list[Any] | None = None
        self.bare = False
        self.closed = False

    def ls(self, path: str, detail: bool = False, **more: Any) -> Any:
        if self.failure:
            raise self.failure
        if self.told is not None:
            return self.told
        if self.bare:
            times = {"mtime", "created"}
            found = super().ls(path, detail=True)
            return [{k: v for k, v in one.items() if k not in times} for one in found]
        try:
            return self.dircache[path]
        except KeyError:
            self.dircache[path] = super().ls(path, detail=detail)
        return super().ls(path, detail=detail)

    def close(self) -> None:
        self.closed = True

    @classmethod
    def _get_kwargs_from_urls(cls, path: str) -> dict[str, Any]:
        return {}


def sick_store(root: Path) -> tuple[FsspecStore, list[Sick]]:
    made: list[Sick] = []

    def opened() -> Sick:
        made.append(connect(Sick, "sick://here"))
        return made[-1]

    return FsspecStore("old", "sick://here", open_files=opened, root=str(root), flavour=Flavour.POSIX), made


def test_no_listing_is_remembered(here: DirectoryBench):
    store, made = sick_store(here.root)
    here.put("r/one", b"1")
    assert scan(store).folders["r"].names == ["one"]
    here.put("r/two", b"2")
    assert sorted(scan(store).folders["r"].names) == ["one", "two"] and len(made) == 1
    assert made[0].dircache.use_listings_cache is False


@pytest.mark.parametrize(
    ("failure", "kind", "code"),
    [
        (FileNotFoundError(2, "x"), NotFound, "not_found"),
        (NotADirectoryError(20, "x"), NotFound, "not_found"),
        (PermissionError(13, "x"), Denied, "permission"),
        (OSError(5, "token=hunter2"), StoreError, "store_failed"),
        (RuntimeError("token=hunter2"), StoreError, "store_failed"),
        (EOFError(), StoreError, "store_failed"),
    ],
)
def test_what_goes_wrong_is_told_by_our_names(here: DirectoryBench, failure: Exception, kind: type, code: str):
    here.put("r/one", b"1")
    store, made = sick_store(here.root)
    assert store.identity()
    made[0].failure = failure
    with pytest.raises(StoreError) as caught:
        store._listed("r")
    assert type(caught.value) is kind and caught.value.code == code
    assert "old:r" in str(caught.value) and "hunter2" not in str(caught.value)
    broken = code == "store_failed"
    assert made[0].closed is broken
    if broken:
        assert store._listed("r") and len(made) == 2, "the next request has a connection of its own"


def test_what_cannot_be_opened_is_not_what_is_gone(tmp_path: Path):
    """A key file that is missing must never look like a checkpoint that is."""

    class Closed:
        @staticmethod
        def _get_kwargs_from_urls(url: str) -> dict[str, Any]:
            return {}

        def __init__(self, **_: Any):
            raise FileNotFoundError(2, "id_rsa")

    store = FsspecStore("old", "sftp://host/x", open_files=lambda: connect(Closed, "sftp://host/x"), root="/x")
    for act in (
        lambda: store.read("a"),
        lambda: store.sight(Target("a", Shape.DIR, ())),
        lambda: store.contents(Target("a", Shape.DIR, ())),
    ):
        with pytest.raises(StoreError) as caught:
            act()
        assert not isinstance(caught.value, NotFound) and caught.value.code == "source_unavailable"
    with pytest.raises(Refused) as refused:
        store.identity()
    assert "ssh" in refused.value.hint and "FileNotFoundError" in str(refused.value)


def test_what_is_told_twice_or_climbs_is_no_listing(here: DirectoryBench):
    here.put("r/one", b"1")
    store, made = sick_store(here.root)
    store.identity()
    for name in ("r/one", "r/..", "r/."):
        told = [*LocalFileSystem().ls(str(here.root / "r"), detail=True)]
        told.append({**told[0], "name": f"{here.root}/{name}"})
        made[0].told = told
        with pytest.raises(StoreError) as caught:
            store._listed("r")
        assert caught.value.code == "listing_incomplete"


def test_a_store_that_does_not_say_when_is_not_judged(here: DirectoryBench):
    here.put("r/one", b"1")
    store, made = sick_store(here.root)
    store.identity()
    made[0].bare = True
    errors = {f.path: f.error for f in store.walk()}
    assert not errors[""] and "does not tell" in errors["r"]


@pytest.mark.parametrize("key", ["/r", "r//x", "../x", "r/./x", "r/"])
def test_keys_that_are_none(here: DirectoryBench, key: str):
    here.put("r/x", b"1")
    with pytest.raises(NotFound):
        here.store.read(key)


def test_a_file_that_shrinks_or_grows_while_it_is_read(here: DirectoryBench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lifecycle.stores.fsspec_store.PIECE_BYTES", 100_000)
    for size in (150_000, 250_000):
        here.put("r/x", bytes(200_000))
        pieces = here.store.stream("r/x", 200_000)
        assert len(next(pieces)) == 100_000
        os.truncate(here.path("r/x"), size)
        with pytest.raises(Changed):
            list(pieces)


# -- SFTP


def test_a_connection_that_was_cut_is_made_anew(sftp: DirectoryBench, sftp_server: Sftp):
    sftp.put("r/x", b"0123")
    assert sftp.store.read("r/x") == b"0123"
    sftp_server.drop()
    with pytest.raises(StoreError) as caught:
        sftp.store.read("r/x")
    assert caught.value.code == "store_failed" and not isinstance(caught.value, NotFound)
    assert sftp.store.read("r/x") == b"0123"


def test_a_host_that_nobody_knows_is_not_spoken_to(sftp: DirectoryBench, sftp_server: Sftp, tmp_path: Path):
    from fsspec.config import conf

    with pytest.MonkeyPatch.context() as patch:
        (tmp_path / "nobody").write_text("")
        patch.setitem(conf, "sftp", {**conf["sftp"], "known_hosts": str(tmp_path / "nobody")})
        with pytest.raises(Refused, match="not found in known_hosts") as caught:
            sftp.reopen()[0].identity()
    assert "log in with ssh once" in caught.value.hint


def test_a_file_in_many_pieces_comes_whole(sftp: DirectoryBench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lifecycle.stores.fsspec_store.PIECE_BYTES", 100_000)
    content = os.urandom(250_000)
    sftp.put("r/x", content)
    assert [len(p) for p in sftp.store.stream("r/x", 250_000)] == [100_000, 100_000, 50_000]
    assert b"".join(sftp.store.stream("r/x", 250_000)) == content
    assert sftp.store.read("r/x", -70_000, 10**6) == content[-70_000:]
    files: Any = sftp.store._files
    with files.open(f"{sftp.store.root}/r/x", "rb") as file:
        assert file.seek(-5, 2) == 249_995 == file.tell() and file.read() == content[-5:] and file.read(4) == b""
        assert file.seek(0) == 0 and file.seek(3, 1) == 3 and file.read(2) == content[3:5]
    assert sorted(files.ls(f"{sftp.store.root}/r", detail=False)) == [f"{sftp.store.root}/r/x"]
    with pytest.raises(PermissionError):
        files.open(f"{sftp.store.root}/r/y", "wb")


# -- which one a URL means


def test_a_url_opens_it_to_read_alone():
    pytest.importorskip("paramiko", reason="the extra test has it")
    store = open_store(StoreSpec("old", "sftp://ann@host:22/data/ckpt", sentinel="ROOT"))
    assert isinstance(store, FsspecStore) and (store.root, store.sentinel) == ("/data/ckpt", "ROOT")
    for half in (open_trash, open_intake):
        with pytest.raises(ConfigInvalid) as caught:
            half(store)
        assert caught.value.code == "read_only_store"


def test_who_reads_makes_it_no_other_store(here: DirectoryBench):
    urls = ("sftp://ann@host/x", "sftp://host/x", "sftp://host:22/x", "sftp://host/y")
    files = lambda: LocalFileSystem(skip_instance_cache=True)  # noqa: E731 - short
    names = [FsspecStore("old", url, open_files=files, root=str(here.root)).identity() for url in urls]
    assert names[0] == names[1] and len(set(names)) == 3


@pytest.mark.parametrize("scheme", [*sorted(s for s in NEVER - {"file", "memory"} if s.isalnum()), "nosuch"])
def test_what_is_no_store_is_refused(scheme: str):
    with pytest.raises(ConfigInvalid) as caught:
        open_store(StoreSpec("odd", f"{scheme}://host/x", place=Place("lifecycle.yaml", 3, 5)))
    assert caught.value.code == "unknown_scheme" and str(caught.value).startswith("lifecycle.yaml:3:5: store odd")


@pytest.mark.parametrize(("scheme", "hint"), [("smb", "checkpoint-lifecycle[fsspec]"), ("oss", "ossfs")])
def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, scheme: str, hint: str):
    def missing(name: str) -> None:
        raise ImportError(f"Install {name}fs to have it")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    with pytest.raises(ConfigInvalid) as caught:
        class_of("old", f"{scheme}://host/x")
    assert caught.value.code == "extra_missing" and hint in caught.value.hint


def test_listings_are_asked_for_anew_where_that_can_be_said():
    def hub(path: str, detail: bool = True, refresh: bool = False, expand_info: bool = False) -> None: ...
    def plain(path: str, detail: bool = False) -> None: ...
    def passing_on(path: str, **more: Any) -> None: ...

    assert listing_options(hub) == {"refresh": True, "expand_info": True}
    assert listing_options(plain) == listing_options(passing_on) == {}


# -- what each kind tells

DAY_TWO = 1_767_312_000
DAY_TWO_NS = DAY_TWO * SECOND
FILE = {"type": "file", "size": 3}


class Commit:
    date = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("info", "told"),
    [
        ({**FILE, "mtime": datetime.fromtimestamp(7, UTC)}, ("file", 3, 7 * SECOND, "")),
        (
            {**FILE, "modificationTime": DAY_TWO * 1000 + 5, "fileId": 7},
            ("file", 3, DAY_TWO_NS + 5000000, "fileId=7"),
        ),
        ({**FILE, "modify": "20260102000000.123"}, ("file", 3, DAY_TWO_NS, "")),
        ({**FILE, "blob_id": "ab", "last_commit": Commit()}, ("file", 3, DAY_TWO_NS, "blob_id=ab")),
        ({**FILE, "LastModified": "2026-01-02T00:00:00Z", "ETag": '"e"'}, ("file", 3, DAY_TWO_NS, 'ETag="e"')),
        ({**FILE, "last_modified": "Fri, 02 Jan 2026 00:00:00 GMT"}, ("file", 3, DAY_TWO_NS, "")),
        ({"type": "directory", "size": 0}, ("dir", 0, 0, "")),
        ({"type": "link", "size": 9, "destination": b"w"}, ("link", 0, 0, "")),
        ({"type": "other", "islink": True}, ("link", 0, 0, "")),
        ({"type": "other"}, ("unknown", 0, 0, "")),
        ({"type": "socket"}, ("socket", 0, 0, "")),
        ({}, ("unknown", 0, 0, "")),
    ],
)
def test_facts(info: dict[str, Any], told: tuple[object, ...]):
    assert facts_of(info)[:4] == told


@pytest.mark.parametrize(
    "info",
    [
        {"type": "file", "size": 3},
        {"type": "file", "size": 3, "modify": "Jan 01 12:00"},
        {"type": "file", "size": 3, "mtime": True},
        {"type": "file", "size": 3, "mtime": float("nan")},
        {"type": "file", "size": 3, "last_commit": object()},
        {"type": "file", "size": None, "mtime": 7},
        {"type": "file", "size": -1, "mtime": 7},
        {"type": "file", "size": True, "mtime": 7},
    ],
)
def test_facts_that_are_missing_are_never_made_up(info: dict[str, Any]):
    with pytest.raises(StoreError) as caught:
        facts_of(info)
    assert caught.value.code == "facts_unknown"


def test_a_time_without_a_zone_is_meant_as_utc():
    assert to_ns(datetime(1970, 1, 1, 0, 0, 7)) == to_ns(7) == to_ns(7.0) == to_ns("1970-01-01T00:00:07+00:00")
