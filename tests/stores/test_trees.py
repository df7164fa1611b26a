"""Laws over random trees: what is retired comes back as it was, and no change escapes the fingerprint."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifecycle.core.model import Shape
from lifecycle.errors import NotFound
from lifecycle.ports import Target
from tests.stores.contract import act_on, purge_warrant, retire, scan
from tests.stores.places import memory_directory, picture, without
from tests.stores.test_local import LocalBench

NAMES = st.binary(min_size=1, max_size=12).filter(lambda raw: not {0, 47} & set(raw) and raw not in (b".", b".."))
TIMES = st.integers(0, 4_000_000_000_000_000_000)
CONTENT = st.binary(max_size=40)
UNIT = "run/step-1"

# A node: ("file", content, mtime, mode), ("link", text), ("fifo",), ("hard",) to the file made before it, or a
# directory: (children by name, mtime, mode).
FILES = st.tuples(st.just("file"), CONTENT, TIMES, st.sampled_from([0o644, 0o600, 0o444, 0o755]))
LINKS = st.tuples(st.just("link"), st.sampled_from([b"../x", b"/etc", b".", b"no\xffwhere"]))
LEAVES = st.one_of(FILES, FILES, LINKS, st.just(("fifo",)), st.just(("hard",)))


def directories(children):
    return st.tuples(
        st.just("dir"), st.dictionaries(NAMES, children, max_size=4), TIMES, st.sampled_from([0o755, 0o700])
    )


TREES = directories(st.recursive(LEAVES, directories, max_leaves=12))
BRIEF = settings(max_examples=40, suppress_health_check=list(HealthCheck))


def grow(path: bytes, node: tuple, made: list[bytes]) -> None:
    match node:
        case ("file", content, mtime_ns, mode):
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, mode)
            os.utime(path, ns=(mtime_ns, mtime_ns))
            made.append(path)
        case ("link", text):
            os.symlink(text, path)
        case ("hard",) if made:
            os.link(made[-1], path)
        case ("dir", children, mtime_ns, mode):
            os.mkdir(path)
            for name, child in children.items():
                grow(os.path.join(path, name), child, made)
            os.chmod(path, mode)
            os.utime(path, ns=(mtime_ns, mtime_ns))
        case _:
            os.mkfifo(path)


def planted(place: Path, tree: tuple) -> LocalBench:
    bench = LocalBench(place / "root")
    bench.put("run/beside", b"stays")
    bench.put("outside/file", b"stays")
    grow(os.fsencode(bench.root / UNIT), tree, [])
    return bench


@BRIEF
@given(tree=TREES)
def test_retire_then_restore_changes_nothing(tree: tuple):
    with memory_directory() as place:
        bench = planted(place, tree)
        before = picture(bench.root)
        action = act_on(bench.store, UNIT)
        moved = retire(bench, action)
        assert without(picture(bench.root), ".lifecycle") == without(before, UNIT)
        inside = picture(bench.root / ".lifecycle/trash/t1/payload/0")
        assert inside == {k.removeprefix(UNIT + "/"): v for k, v in before.items() if k.startswith(UNIT + "/")}
        assert bench.reopen()[1].restore("t1") == moved
        assert without(picture(bench.root), ".lifecycle") == before
        assert act_on(bench.store, UNIT) == action


@BRIEF
@given(tree=TREES)
def test_retire_then_purge_changes_nothing_else(tree: tuple):
    with memory_directory() as place:
        bench = planted(place, tree)
        before = picture(bench.root)
        action = act_on(bench.store, UNIT)
        retire(bench, action)
        freed = bench.trash.purge(purge_warrant())
        assert without(picture(bench.root), ".lifecycle") == without(before, UNIT)
        assert freed.files == action.files and freed.bytes >= 0 and bench.trash.trash() == []
        with pytest.raises(NotFound):
            bench.trash.restore("t1")


@BRIEF
@given(tree=TREES)
def test_a_scan_and_a_fresh_look_agree(tree: tuple):
    with memory_directory() as place:
        bench = planted(place, tree)
        listing = scan(bench.store)
        assert bench.store.sight(Target(UNIT, Shape.DIR, ())).totals == listing.total(UNIT)
        for folder in list(listing.below(UNIT)):
            for name in folder.names:
                key = f"{folder.path}/{name}"
                seen = bench.store.sight(Target(key, Shape.FILE, (key,)))
                assert seen.totals == listing.unit(key, (key,))
                assert seen.inode == os.lstat(os.fsencode(bench.root / key)).st_ino


@BRIEF
@given(tree=TREES, data=st.data())
def test_every_change_shows_in_the_fingerprint(tree: tuple, data: st.DataObject):
    with memory_directory() as place:
        bench = planted(place, tree)
        bench.put(UNIT + "/always", b"here")
        files = sorted(k for k, v in picture(bench.root / UNIT).items() if stat.S_ISREG(v[0]))  # type: ignore[arg-type]  # a mode
        path = bench.root / UNIT / data.draw(st.sampled_from(files), label="file")
        found = path.stat()
        before = act_on(bench.store, UNIT).fingerprint
        change = data.draw(st.sampled_from(["length", "mtime", "name", "inode", "gone", "linked"]), label="change")
        match change:
            case "length":
                os.truncate(path, found.st_size + 1)
                os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
            case "mtime":
                os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1))
            case "name":
                path.rename(path.with_name(path.name[:8] + "~renamed"))
            case "inode":
                other = path.with_name("~other")
                other.write_bytes(path.read_bytes())
                os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
                other.rename(path)
            case "gone":
                path.unlink()
            case _:
                path.unlink()
                path.symlink_to("always")
        assert act_on(bench.store, UNIT).fingerprint != before
