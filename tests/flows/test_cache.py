"""A cache that is filled and emptied in a real directory: what it holds, what it refuses, what it never touches."""

import errno
import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from lifecycle.core.copies import CopyManifest
from lifecycle.core.listing import Flavour
from lifecycle.errors import Changed, LeaseHeld, LifecycleError, NotFound, Occupied, Refused, StoreError
from lifecycle.flows.cache import Filled, Wish, evict, fill
from lifecycle.flows.cache_source import Ancestor, Source, source_at, source_in, url_parts
from lifecycle.flows.carry import Carrier, Unsaid
from lifecycle.flows.copies import published
from lifecycle.ports.cache import About, Lease
from lifecycle.stores import beneath
from lifecycle.stores.cache_dir import AREA, CacheDir
from lifecycle.stores.cache_link import point
from lifecycle.stores.local import LocalStore
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.open_files import open_inodes
from lifecycle.stores.posix_intake import LocalIntake
from tests.cli.harness import NOW_S, StillClock, save_hf
from tests.stores.places import NOBODY, as_user, memory_directory, mounted, picture

SECOND_NS = 1_000_000_000
KB = 1000
FREELY = Wish(budget_bytes=10**9, free_min_bytes=0, wait_s=0, holder="pod-a", lease_s=0)


class Node:
    """A source of models, and a cache that models are brought into."""

    def __init__(self, home: Path) -> None:
        self.home, self.models, self.path = home, home / "models", home / "cache"
        self.models.mkdir()
        self.path.mkdir()
        self.clock = StillClock()

    @property
    def cache(self) -> CacheDir:
        """As a process of its own would open it."""
        return CacheDir(str(self.path))

    def model(self, name: str, size_bytes: int = KB, content: bytes = b"w") -> Path:
        path = self.models / name
        (path / "tokens").mkdir(parents=True)
        (path / "weights.bin").write_bytes(content * (size_bytes - 2))
        (path / "tokens" / "config.json").write_text("{}")
        return path

    def source(self, name: str) -> Source:
        return source_in(LocalStore(":source", self.models), name)

    def fill(self, name: str, wish: Wish = FREELY, keep: ExitStack | None = None) -> Filled:
        """Filled by a process that ends; or that lives on, holding what is in `keep`."""
        self.clock.now_s += 10
        with ExitStack() as ends:
            return fill(self.cache, self.source(name), wish, self.clock, ends if keep is None else keep)

    def names(self) -> set[str]:
        return {path.name.partition("@")[0] for path in self.path.iterdir() if path.name != AREA}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_an_entry_is_the_model_read_only_under_a_name_of_its_content(node: Node):
    model = node.model("llama")
    os.chmod(model / "weights.bin", 0o750)
    done = node.fill("llama")
    path = Path(done.path)
    assert (done.how, done.verified, done.bytes) == ("filled", "transport", KB)
    assert path.parent == node.path and path.name.startswith("llama@")
    assert (path / "weights.bin").read_bytes() == (model / "weights.bin").read_bytes()
    assert (path / "tokens" / "config.json").read_text() == "{}"
    modes = {name: os.stat(path / name).st_mode & 0o7777 for name in (".", "tokens", "weights.bin")}
    assert modes == {".": 0o555, "tokens": 0o555, "weights.bin": 0o550}
    assert node.fill("llama") == done._replace(how="hit")
    (model / "weights.bin").write_bytes(b"new" * 100)
    other = node.fill("llama")
    assert other.path != done.path, "another content is another entry"
    assert (path / "weights.bin").stat().st_size == KB - 2, "who reads the old one goes on reading it"


def test_a_file_and_an_odd_name(node: Node):
    name = "-a b\n$(x)\udcff.ckpt"
    (node.models / name).write_bytes(b"1234")
    done = node.fill(name)
    entry = Path(done.path)
    assert entry.name.startswith("_-a_b___x__.ckpt@"), "plain enough for any shell"
    assert [file.name for file in entry.iterdir()] == [name]
    assert (entry / name).read_bytes() == b"1234"


def test_nothing_there_and_a_whole_store_are_no_models(node: Node):
    with pytest.raises(NotFound):
        node.source("nothing")
    with pytest.raises(NotFound, match="whole store"):
        node.source("")


def test_a_checkpoint_that_is_being_written_is_not_cached(node: Node):
    save_hf(node.models / "run", 100, 3600)
    node.source("run/checkpoint-100")
    (node.models / "run/checkpoint-100/model.safetensors").write_bytes(b"")
    with pytest.raises(Refused) as caught:
        node.source("run/checkpoint-100")
    assert caught.value.code == "not_whole"


def test_links_stay_inside(node: Node):
    model = node.model("links")
    (model / "tokens" / "weights").symlink_to("../weights.bin")
    entry = Path(node.fill("links").path)
    assert os.readlink(entry / "tokens" / "weights") == "../weights.bin"
    for text in ("/etc/passwd", "../../models", "./a/../../../b"):
        (model / "tokens" / "out").unlink(missing_ok=True)
        (model / "tokens" / "out").symlink_to(text)
        with pytest.raises(Refused) as caught:
            node.fill("links")
        assert caught.value.code == "not_copyable"
    assert node.names() == {"links"}


# -- proof


def copied(node: Node, name: str) -> CopyManifest:
    """Have a copy of a model on a store `warm`, with its manifest."""
    (node.home / "warm").mkdir(exist_ok=True)
    warm, home = LocalStore("warm", node.home / "warm"), LocalStore("hot", node.models)
    c = source_in(home, name).stands
    carrier = Carrier(home, warm, LocalIntake(warm))
    return carrier.carry(name.replace("/", "-"), c, c, plan="p", now_ns=NOW_S * SECOND_NS)


def at(path: Path) -> Source:
    return source_at([Ancestor(LocalStore(":source", root), key) for root, key in url_parts(str(path))])


def test_a_copy_is_held_against_its_manifest_wherever_above_it_the_store_begins(node: Node):
    node.model("deep/run/llama")
    manifest = copied(node, "deep/run/llama")
    source = at(node.home / "warm/deep/run/llama")
    assert source.origin == manifest and source.store.url.endswith("/warm")
    with ExitStack() as keep:
        done = fill(node.cache, source, FREELY, node.clock, keep)
    assert done.verified == "manifest"
    assert node.cache.about(done.entry_id) == About(source.url, "manifest")
    assert at(node.models / "deep/run/llama").origin is None, "the manifest is of the copy, on another store"


def test_a_copy_that_has_rotted_is_not_cached(node: Node):
    node.model("llama")
    copied(node, "llama")
    rotten = node.home / "warm/llama/weights.bin"
    times = rotten.stat()
    rotten.write_bytes(b"v" * (KB - 2))
    os.utime(rotten, ns=(times.st_atime_ns, times.st_mtime_ns))
    with ExitStack() as keep, pytest.raises(StoreError) as caught:
        fill(node.cache, at(node.home / "warm/llama"), FREELY, node.clock, keep)
    assert caught.value.code == "copy_damaged"
    assert not node.names()


def test_manifests_that_cannot_be_asked_for_are_told_of_and_broken_ones_tell_nothing(node: Node):
    node.model("llama")
    copied(node, "llama")
    copies = node.home / "warm/.lifecycle/copies"
    (copies / "other.json").write_text("{")
    assert len(published(LocalStore("warm", node.home / "warm"))) == 1
    copies.rename(copies.with_name("moved"))
    copies.write_text("no directory")
    source = at(node.home / "warm/llama")
    assert source.origin is None and str(node.home / "warm") in source.note


def test_ways_to_cut_a_url():
    assert url_parts("s3://b/p/r/s") == [("s3://b/p/r", "s"), ("s3://b/p", "r/s"), ("s3://b", "p/r/s")]
    assert url_parts("/a/b/") == [("/a", "b"), ("/", "a/b")]
    assert url_parts("file:///a") == [("/", "a")]
    assert url_parts("s3://b") == []


def test_a_source_that_changes_meanwhile_is_not_cached(node: Node):
    model = node.model("llama")
    source = node.source("llama")
    with (model / "weights.bin").open("ab") as file:
        file.write(b"more")
    with ExitStack() as keep, pytest.raises(Changed):
        fill(node.cache, source, FREELY, node.clock, keep)

    def changing(_bytes: int) -> None:
        (model / "late").write_text("x")

    with ExitStack() as keep, pytest.raises(Changed) as caught:
        fill(node.cache, node.source("llama"), FREELY, node.clock, keep, tick=changing)
    assert caught.value.code == "changed_during_copy"
    assert not node.names() and not list((node.path / AREA / "incoming").iterdir())


# -- room


def test_the_least_recently_used_makes_room(node: Node):
    for name in ("a", "b", "c"):
        node.model(name, 100 * KB, name.encode())
    small = FREELY._replace(budget_bytes=250 * KB)
    node.fill("a", small)
    node.fill("b", small)
    node.fill("a", small)
    assert node.fill("c", small).evicted == (Path(node.source("b").entry).name,)
    assert node.names() == {"a", "c"}
    assert not list((node.path / AREA / "going").iterdir())


def test_what_cannot_fit_is_refused_before_anything_goes(node: Node):
    node.model("a", 100 * KB)
    node.model("big", 300 * KB)
    node.fill("a")
    with pytest.raises(Refused, match="50 kB are lacking") as caught:
        node.fill("big", FREELY._replace(budget_bytes=250 * KB))
    assert caught.value.code == "cache_full"
    free = node.cache.store.usage().free_bytes
    assert free is not None
    with pytest.raises(Refused) as caught:
        node.fill("big", FREELY._replace(free_min_bytes=2 * free))
    assert caught.value.code == "cache_full"
    assert node.names() == {"a"}


def in_use_by_lock(node: Node, stack: ExitStack) -> str:
    node.fill("a", keep=stack)
    return "a process holds it"


def in_use_by_lease(node: Node, _stack: ExitStack) -> str:
    node.fill("a", FREELY._replace(lease_s=None))
    return "leased to pod-a"


def in_use_by_timed_lease(node: Node, _stack: ExitStack) -> str:
    node.fill("a", FREELY._replace(lease_s=60))
    return "leased to pod-a"


def in_use_by_unreadable_lease(node: Node, _stack: ExitStack) -> str:
    node.fill("a", FREELY._replace(lease_s=60))
    next((node.path / AREA / "leases").iterdir()).write_text('{"holder": 1')
    return "leased to somebody"


def in_use_by_open_file(node: Node, stack: ExitStack) -> str:
    path = Path(node.fill("a").path)
    file = os.open(path / "weights.bin", os.O_RDONLY)
    stack.callback(os.close, file)
    return "a process has it open"


def foreign(node: Node, _stack: ExitStack) -> str:
    path = Path(node.fill("a").path)
    path.chmod(0o755)
    (path / "mine").write_text("not yours")
    return "was not put there by us"


def foreign_directory(node: Node, _stack: ExitStack) -> str:
    path = Path(node.fill("a").path)
    path.chmod(0o755)
    (path / "mine").mkdir()
    return "was not put there by us"


def replaced(node: Node, _stack: ExitStack) -> str:
    path = Path(node.fill("a").path)
    path.rename(node.home / "away")
    path.mkdir()
    (path / "weights.bin").write_text("mine")
    return "was not put there by us"


def unlistable(node: Node, _stack: ExitStack) -> str:
    path = Path(node.fill("a").path)
    path.chmod(0o755)
    os.mkfifo(path / "pipe")
    return "it cannot be looked at"


def linked(node: Node, _stack: ExitStack) -> str:
    path = Path(node.fill("a").path)
    path.rename(node.home / "away")
    path.symlink_to(node.home / "away")
    return "it cannot be looked at"


def unreadable_manifest(node: Node, _stack: ExitStack) -> str:
    node.fill("a")
    next((node.path / AREA / "copies").iterdir()).write_text("{}")
    return "cannot be read"


@pytest.mark.parametrize(
    "use",
    [
        in_use_by_lock, in_use_by_lease, in_use_by_timed_lease, in_use_by_unreadable_lease, in_use_by_open_file,
        foreign, foreign_directory, replaced, unlistable, linked, unreadable_manifest,
    ],
)  # fmt: skip
def test_what_may_be_in_use_or_is_not_ours_never_goes(node: Node, use: Callable[[Node, ExitStack], str]):
    node.model("a", 100 * KB)
    node.model("b", 100 * KB)
    with ExitStack() as stack:
        why = use(node, stack)
        before = picture(node.home)
        [entry] = node.cache.entries(node.clock.now_ns())
        assert why in entry.in_use
        done = evict(node.cache, 1, 0, node.clock)
        assert not done.entries
        # One whose manifest cannot be read has a size that nobody knows.
        assert done.short_bytes == max(entry.bytes - 1, 0)
        if use is not unreadable_manifest:
            with pytest.raises(Refused) as caught:
                node.fill("b", FREELY._replace(budget_bytes=150 * KB))
            assert caught.value.code == "cache_full"
        after = {name: seen for name, seen in picture(node.home).items() if AREA not in name}
        assert after.items() <= before.items()


def test_a_lease_that_is_over_or_given_up_protects_no_more(node: Node):
    node.model("a", 100 * KB)
    node.fill("a", FREELY._replace(lease_s=60))
    node.clock.now_s += 61
    assert [e.name for e in evict(node.cache, 1, 0, node.clock).entries] == [node.source("a").entry]
    node.fill("a", FREELY._replace(lease_s=None))
    node.fill("a", FREELY._replace(lease_s=None, holder="pod-b"))
    assert node.cache.release("pod-a") == 1
    assert not evict(node.cache, 1, 0, node.clock).entries
    assert node.cache.release("pod-b") == 1
    assert evict(node.cache, 1, 0, node.clock).freed_bytes >= 100 * KB
    assert not node.names() and not list((node.path / AREA / "leases").iterdir())


def test_an_entry_that_comes_into_use_at_the_last_moment_stays(node: Node):
    node.model("a", 100 * KB)
    done = node.fill("a")
    now_ns = node.clock.now_ns()
    with node.cache.using(done.entry_id):
        assert node.cache.evict(done.entry_id, now_ns) is None
    node.cache.lease(done.entry_id, Lease("pod-b", None))
    assert node.cache.evict(done.entry_id, now_ns) is None
    assert node.cache.evict("unknown", now_ns) is None

    class Racing(CacheDir):
        def evict(self, entry_id: str, now_ns: int) -> None:
            self.lease(entry_id, Lease("pod-c", None))
            return super().evict(entry_id, now_ns)  # type: ignore[return-value]  # it returns None

    node.cache.release("pod-b")
    lost = evict(Racing(str(node.path)), 1, 0, node.clock)
    assert (lost.entries, lost.short_bytes) == ((), 100 * KB)
    with ExitStack() as keep, pytest.raises(Refused):
        node.model("b", 100 * KB)
        node.cache.release("pod-c")
        fill(Racing(str(node.path)), node.source("b"), FREELY._replace(budget_bytes=150 * KB), node.clock, keep)


def test_what_others_are_bringing_counts(node: Node):
    node.model("a", 100 * KB)
    with node.cache.filling("other", 0):
        node.cache.expect("other", 900 * KB, About("u", "transport"))
        room = node.cache.room(10**6, 0)
        assert (room.coming_bytes, room.unwritten_bytes) == (900 * KB, 900 * KB)
        assert node.cache.room(10**6, 0, "other").coming_bytes == 0
        with pytest.raises(Refused, match="900 kB are coming in"):
            node.fill("a", FREELY._replace(budget_bytes=950 * KB))
        (node.path / AREA / "incoming" / "other").mkdir(parents=True)
        (node.path / AREA / "incoming" / "other" / "half").write_bytes(bytes(300 * KB))
        assert node.cache.room(10**6, 0).unwritten_bytes == 600 * KB
        node.cache.sweep()
        assert (node.path / AREA / "incoming" / "other" / "half").exists(), "it is still being filled"
    assert node.cache.room(10**6, 0).coming_bytes == 0, "who promised it is gone"
    node.fill("a", FREELY._replace(budget_bytes=950 * KB))
    assert not (node.path / AREA / "coming" / "other").exists()


# -- damage


def lost(path: Path) -> None:
    path.rename(path.parent.parent / "gone")


def lost_file(path: Path) -> None:
    path.chmod(0o755)
    (path / "weights.bin").unlink()


@pytest.mark.parametrize("damage", [lost, lost_file])
def test_what_is_damaged_is_filled_again(node: Node, damage: Callable[[Path], None]):
    node.model("a")
    done = node.fill("a")
    damage(Path(done.path))
    assert node.cache.fault(done.entry_id)
    assert node.fill("a").how == "filled"
    assert not node.cache.fault(done.entry_id)


def test_what_is_damaged_and_in_use_is_left_alone(node: Node):
    node.model("a")
    done = node.fill("a", FREELY._replace(lease_s=None))
    lost_file(Path(done.path))
    with pytest.raises(Refused) as caught:
        node.fill("a")
    assert caught.value.code == "cache_damaged"
    path = Path(done.path)
    (path / "tokens").chmod(0o755)
    (path / "tokens" / "config.json").chmod(0o644)
    (path / "tokens" / "config.json").write_text("[1]")
    assert "is not what was put there" in node.cache.fault(done.entry_id)


def test_what_stands_in_the_way_stays(node: Node):
    node.model("a")
    way = node.path / node.source("a").entry
    way.mkdir()
    (way / "mine").write_text("mine")
    with pytest.raises(Occupied):
        node.fill("a")
    assert (way / "mine").read_text() == "mine"


def test_one_that_vanishes_each_time_is_not_filled_for_ever(node: Node):
    class Hungry(CacheDir):
        def fault(self, entry_id: str) -> str:
            return "missing"

    node.model("a")
    cache = Hungry(str(node.path))
    cache.evict = lambda *_: None  # type: ignore[method-assign]  # a test's own
    with ExitStack() as keep, pytest.raises(LifecycleError) as caught:
        fill(cache, node.source("a"), FREELY, node.clock, keep)
    assert caught.value.code == "cache_damaged"
    del cache.evict
    with ExitStack() as keep, pytest.raises(StoreError, match="gone again"):
        fill(cache, node.source("a"), FREELY, node.clock, keep)


def test_what_was_proven_when_its_process_died_is_only_put_in_its_place(node: Node, monkeypatch: pytest.MonkeyPatch):
    def dying(*_: object) -> None:
        raise OSError(errno.EIO, "a test's own")

    node.model("a")
    real = LocalIntake._place
    monkeypatch.setattr(LocalIntake, "_place", dying)
    with pytest.raises(Unsaid):
        node.fill("a")
    assert not node.names()
    monkeypatch.setattr(LocalIntake, "_place", real)
    monkeypatch.setattr(Carrier, "carry", dying)
    assert node.fill("a").how == "filled", "and nothing was carried again"


def test_who_finds_it_whole_after_waiting_has_waited(node: Node):
    class Late(CacheDir):
        seen = 0

        def fault(self, entry_id: str) -> str:
            self.seen += 1
            return "missing" if self.seen == 1 else super().fault(entry_id)

    node.model("a")
    node.fill("a")
    with ExitStack() as keep:
        assert fill(Late(str(node.path)), node.source("a"), FREELY, node.clock, keep).how == "waited"


def test_what_always_comes_into_use_makes_no_room_for_ever(node: Node, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lifecycle.flows.cache.ROUNDS_MAX", 3)
    node.model("a", 100 * KB)
    node.model("b", 100 * KB)
    node.fill("a")
    cache = node.cache
    cache.evict = lambda *_: None  # type: ignore[method-assign]  # a test's own
    with ExitStack() as keep, pytest.raises(StoreError) as caught:
        fill(cache, node.source("b"), FREELY._replace(budget_bytes=150 * KB), node.clock, keep)
    assert caught.value.code == "busy"


def test_a_bucket_has_no_directories_and_an_entry_has(node: Node):
    bucket = MemoryStore(":source", Flavour.OBJECT)
    for key in ("run/llama/w.bin", "run/llama/a/b/c.json", "run/llama/a/d.json"):
        bucket.put(key, key.encode(), NOW_S * SECOND_NS)
    with ExitStack() as keep:
        done = fill(node.cache, source_in(bucket, "run/llama"), FREELY, node.clock, keep)
    path = Path(done.path)
    assert (path / "a/b/c.json").read_text() == "run/llama/a/b/c.json"
    assert {os.stat(path / name).st_mode & 0o777 for name in (".", "a", "a/b")} == {0o555}
    assert {os.stat(path / name).st_mode & 0o777 for name in ("w.bin", "a/d.json")} == {0o444}
    assert not node.cache.fault(done.entry_id)


# -- locks and what is ours


def test_waiting_ends(node: Node):
    node.model("a")
    with node.cache.filling(node.source("a").entry_id, 0), pytest.raises(LeaseHeld) as caught:
        node.fill("a", FREELY._replace(wait_s=0.2))
    assert caught.value.exit_code == 6


def test_a_lock_that_was_removed_while_it_was_waited_for_is_made_anew(node: Node, monkeypatch: pytest.MonkeyPatch):
    import fcntl

    real, lock = fcntl.flock, node.path / AREA / "locks" / "x.fill"

    def removing(file: int, kind: int) -> None:
        real(file, kind)
        if lock.exists() and not monkeypatch_done:
            monkeypatch_done.append(1)
            lock.unlink()

    monkeypatch_done: list[int] = []
    monkeypatch.setattr(fcntl, "flock", removing)
    with node.cache.filling("x", 0.5):
        monkeypatch.setattr(fcntl, "flock", real)
        assert lock.exists(), "others meet us at this one"
        with pytest.raises(LeaseHeld), node.cache.filling("x", 0):
            pass


def test_a_file_system_without_locks_is_refused(node: Node, monkeypatch: pytest.MonkeyPatch):
    import fcntl

    def none(_file: int, _kind: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(Refused) as caught, node.cache.filling("x", 0):
        pass
    assert caught.value.code == "cache_unlockable"


def test_a_store_is_no_cache(node: Node):
    (node.path / ".lifecycle").mkdir()
    with pytest.raises(Refused) as caught:
        _ = node.cache
    assert caught.value.code == "cache_is_store"


@pytest.mark.root
def test_a_user_without_rights_fills_and_evicts_what_is_read_only():
    with memory_directory() as home:
        os.chown(home, NOBODY, NOBODY)
        with as_user(NOBODY):
            node = Node(home)
            node.model("a", 100 * KB)
            done = node.fill("a")
            with pytest.raises(PermissionError):
                (Path(done.path) / "weights.bin").write_bytes(b"x")
            with pytest.raises(PermissionError):
                (Path(done.path) / "weights.bin").unlink()
            assert evict(node.cache, 1, 0, node.clock).freed_bytes >= 100 * KB
            assert not node.names() and not list((node.path / AREA / "going").iterdir())


@pytest.mark.root
def test_a_full_disk_leaves_nothing_half(tmp_path: Path):
    (tmp_path / "cache").mkdir()
    with mounted(tmp_path / "cache", "-t", "tmpfs", "-o", "size=1m", "tmpfs"):
        node = Node.__new__(Node)
        node.home, node.models, node.path, node.clock = tmp_path, tmp_path / "models", tmp_path / "cache", StillClock()
        node.model("a", 600 * KB)
        node.model("b", 600 * KB, b"v")
        node.fill("a", FREELY._replace(lease_s=None))
        with pytest.raises(Refused) as refused:
            node.fill("b")
        assert refused.value.code == "cache_full"

        def eating(_text: str) -> None:
            (node.path / "foreign").write_bytes(bytes(300 * KB))

        node.cache.release("pod-a")
        with ExitStack() as keep, pytest.raises(StoreError) as caught:
            fill(
                node.cache,
                node.source("b"),
                FREELY._replace(budget_bytes=900 * KB),
                node.clock,
                keep,
                say=lambda t: ((node.path / "foreign").write_bytes(bytes(700 * KB)), None)[1],
            )
        assert caught.value.code == "no_space"
        assert node.names() == {"foreign"} and not list((node.path / AREA / "incoming").iterdir())
        (node.path / "foreign").unlink()
        assert node.fill("b").how == "filled"


# -- the link and what is open


def test_a_link_leads_to_the_newest_and_replaces_links_only(tmp_path: Path):
    link = tmp_path / "model"
    for target in ("/cache/a", "/cache/b"):
        point(str(link), target)
        assert os.readlink(link) == target
    (tmp_path / ".model.0.new").write_text("")
    link.unlink()
    link.write_text("mine")
    with pytest.raises(Occupied):
        point(str(link), "/cache/c")
    assert link.read_text() == "mine"
    with pytest.raises(NotFound):
        point(str(tmp_path / "no" / "model"), "/cache/c")


def test_open_mapped_and_entered_files_are_seen(tmp_path: Path):
    import mmap

    (tmp_path / "mapped").write_bytes(bytes(4096))
    (tmp_path / "open").write_bytes(b"x")
    with (tmp_path / "open").open("rb") as file:
        with (tmp_path / "mapped").open("rb") as other:
            mapped = mmap.mmap(other.fileno(), 0, prot=mmap.PROT_READ)
        seen = open_inodes()
        assert {file.fileno() and os.fstat(file.fileno()).st_ino, (tmp_path / "mapped").stat().st_ino} <= seen
        assert os.stat(".").st_ino in seen
        mapped.close()
    fake = tmp_path / "proc" / "12"
    (fake / "fd").mkdir(parents=True)
    (fake / "fd" / "0").symlink_to("nowhere")
    (fake / "maps").write_text("00-01 r--p 0 08:01 777 /x\nodd\n")
    assert open_inodes(str(tmp_path / "proc")) == {777}
    assert open_inodes(str(tmp_path / "nothing")) == frozenset()


def test_what_is_told_of_an_entry_may_be_unreadable(node: Node):
    node.model("a")
    done = node.fill("a")
    (node.path / AREA / "about" / done.entry_id).write_text(json.dumps([]))
    (node.path / AREA / "used" / done.entry_id).write_text("x")
    assert node.cache.about(done.entry_id) == About("", "")
    [entry] = node.cache.entries(node.clock.now_ns())
    assert entry.used_at_ns == NOW_S * SECOND_NS + 10 * SECOND_NS, "when it was filled"


def test_what_another_process_is_at_is_passed_over(node: Node, monkeypatch: pytest.MonkeyPatch):
    node.model("a")
    done = node.fill("a", FREELY._replace(lease_s=60))
    area = node.path / AREA
    with node.cache.filling("other", 0):
        node.cache.expect("other", 5, About("u", "transport"))
        node.cache.sweep()
        assert (area / "coming" / "other").exists()
    [lease] = (area / "leases").iterdir()
    lease.with_name(f"{lease.name}.7.new").write_text("{")
    lease.with_name("other.1").write_text("{}")
    assert node.cache.leases(done.entry_id) == [Lease("pod-a", node.clock.now_ns() + 60 * SECOND_NS)]
    monkeypatch.setattr(CacheDir, "_read", lambda *_: None)
    assert node.cache.leases(done.entry_id) == [], "it was given up in this moment"
    monkeypatch.undo()
    monkeypatch.setattr(CacheDir, "_manifest", lambda *_: None)
    assert node.cache.entries(0) == [], "it was evicted in this moment"


def test_leases_of_others_stay_when_an_entry_goes(node: Node):
    for name in ("a", "b"):
        node.model(name, 100 * KB)
        node.fill(name, FREELY._replace(lease_s=60 if name == "a" else None))
    node.clock.now_s += 61
    assert len(evict(node.cache, 1, 0, node.clock).entries) == 1
    assert len(list((node.path / AREA / "leases").iterdir())) == 1


def test_what_cannot_be_freed_is_told_of_and_freed_later(node: Node, monkeypatch: pytest.MonkeyPatch):
    node.model("a", 100 * KB)
    node.fill("a")
    real = beneath.unlink

    def stuck(name: str, fd: int) -> None:
        if name == "weights.bin":
            raise OSError(errno.EIO, "a test's own")
        real(name, fd)

    monkeypatch.setattr(beneath, "unlink", stuck)
    with pytest.raises(StoreError, match="cannot be removed: EIO"):
        evict(node.cache, 1, 0, node.clock)
    assert not node.names() and not node.cache.entries(0), "it is no entry any more"
    monkeypatch.undo()
    assert evict(node.cache, 1, 0, node.clock).entries == ()
    assert not list((node.path / AREA / "going").iterdir())


def test_a_manifest_that_cannot_be_read_is_a_fault(node: Node):
    node.model("a")
    done = node.fill("a")
    next((node.path / AREA / "copies").iterdir()).write_text("{}")
    assert "cannot be read" in node.cache.fault(done.entry_id)
    with pytest.raises(LifecycleError):
        node.fill("a")


def test_what_our_own_earlier_try_left_is_not_swept_but_used(node: Node):
    left = node.path / AREA / "incoming" / "mine"
    with node.cache.filling("x", 0):
        left.mkdir(parents=True)
    node.cache.sweep("mine")
    assert left.exists()
    assert node.cache.room(1, 0).coming_bytes == 0
    node.cache.intake_of("entry", "top").abandon("mine")
    node.cache.intake_of("entry", "top").forget("mine")  # fine where there is none
    assert not left.exists()


def test_a_cache_that_nothing_was_ever_put_into_says_so(node: Node):
    cache = node.cache
    assert (cache.entries(0), cache.leases("x"), cache.about("x"), cache.release("x")) == ([], [], About("", ""), 0)
    assert list(node.path.iterdir()) == [], "looking makes nothing"
