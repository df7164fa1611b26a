"""Folders and their sums: the same bytes have the same fingerprint, and any change has another."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.listing import Flavour, Folder, Listing, Stamp, Totals, join, pick, split, total


def folder(path: str, *files: tuple[str, int], **fields: object) -> Folder:
    names = [name for name, _ in files]
    return Folder(
        path,
        names=names,
        sizes=[size for _, size in files],
        mtimes_ns=[10 * size for _, size in files],
        tokens=[hash_of(path + name) for name in names],
        **fields,  # type: ignore[arg-type]  # fields of one dataclass
    )


def hash_of(text: str) -> int:
    return int.from_bytes(text.encode("utf-8", "surrogatepass"), "big") % 10_007


def listing(*folders: Folder) -> Listing:
    return Listing(Flavour.POSIX, {f.path: f for f in folders})


TREE = listing(
    folder("", dirs=["r"]),
    folder("r", ("latest", 3), dirs=["s1", "s2", "gone"]),
    folder("r/s1", ("w", 5), ("opt", 7), dirs=["deep"], owner=7, owners=frozenset({8}), shared={"w": 2}),
    folder("r/s1/deep", ("x", 2), stamp=Stamp(1, 2, 900, 901), ctime_ns=800),
    folder("r/s2", ("w", 5)),
)


def test_answers():
    assert TREE.get("r/gone") is None
    assert TREE.has("r/s1", "w")
    assert not TREE.has("r/s1", "deep")
    assert not TREE.has("r/gone", "w")
    assert (TREE.size("r/s1/opt"), TREE.size("r/s1/none"), TREE.size("x/y")) == (7, None, None)
    assert [f.path for f in TREE.below("r")] == ["r", "r/s1", "r/s1/deep", "r/s2"]
    assert list(TREE.below("nowhere")) == []


def test_sums():
    found = TREE.total("r/s1")
    assert found == Totals(14, 3, 70, 900, found.fingerprint, frozenset({7, 8}), 5)
    assert TREE.total("nowhere")[:5] == Totals(0, 0, 0, 0, total([], "").fingerprint, frozenset(), 0)[:5]
    assert TREE.total("").files == 5


def test_a_unit_of_named_members():
    found = TREE.unit("r/s1/stem", ("r/s1/w", "r/s1/deep/x", "r/none/y"))
    assert (found.bytes, found.files, found.shared_bytes) == (7, 2, 5)
    assert TREE.unit("r/s1", ()) == TREE.total("r/s1")


def test_a_rename_keeps_the_fingerprint_and_a_move_inside_does_not():
    moved = {
        f.path.replace("r/s1", "q/new"): replace(f, path=f.path.replace("r/s1", "q/new")) for f in TREE.below("r/s1")
    }
    assert Listing(Flavour.POSIX, moved).total("q/new").fingerprint == TREE.total("r/s1").fingerprint
    inside = {**TREE.folders, "r/s1/other": replace(TREE.folders["r/s1/deep"], path="r/s1/other")}
    inside["r/s1"] = replace(inside["r/s1"], dirs=["other"])
    assert Listing(Flavour.POSIX, inside).total("r/s1").fingerprint != TREE.total("r/s1").fingerprint


def test_inode_numbers_of_64_bits_tell_files_apart_too():
    def fingerprint(token: int) -> str:
        return total([replace(folder("d", ("w", 5), ("x", 6)), tokens=[token, 2**64 - 1])], "d").fingerprint

    assert fingerprint(2**63) == fingerprint(2**63)
    assert len({fingerprint(token) for token in (2**63, 2**63 + 1, 2**63 - 1, 0)}) == 4


CHANGES = [
    {"names": ["w", "opT"]}, {"sizes": [5, 8]}, {"mtimes_ns": [50, 71]}, {"tokens": [1, 2]},
    {"links": {"l": "x"}}, {"others": {"f": "fifo"}}, {"dirs": ["deep", "empty"]},
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES[:-1], ids=lambda change: next(iter(change)))
def test_any_change_changes_the_fingerprint(change: dict[str, object]):
    other = {**TREE.folders, "r/s1": replace(TREE.folders["r/s1"], **change)}  # type: ignore[arg-type]  # by name
    assert Listing(Flavour.POSIX, other).total("r/s1").fingerprint != TREE.total("r/s1").fingerprint


@given(st.permutations(range(4)))
def test_order_of_names_means_nothing(order: list[int]):
    files = [("a", 1), ("b", 2), ("\udcff", 3), ("c", 4)]
    shuffled = folder("r", *(files[i] for i in order))
    assert shuffled.digest() == folder("r", *files).digest()
    assert pick(shuffled, frozenset("ab")).digest() == folder("r", *files[:2]).digest()


def test_a_part_keeps_what_is_known_of_it():
    whole = folder("r", ("a", 1), ("b", 2), shared={"a": 2, "b": 3}, classes={"b": "GLACIER"}, owner=7)
    part = pick(whole, frozenset("b"))
    assert (part.shared, part.classes, part.owner, part.names) == ({"b": 3}, {"b": "GLACIER"}, 7, ["b"])


@given(st.text("ab/", max_size=6))
def test_join_undoes_split(key: str):
    assert join(*split(key)) == key


def test_split():
    assert [split(key) for key in ("a", "a/b/c", "/x", "")] == [("", "a"), ("a/b", "c"), ("", "/x"), ("", "")]


def test_what_is_left_of_a_folder():
    whole = folder("r", ("a", 1), ("b", 2), links={"l": "x"}, others={"f": "fifo"})
    assert folder("r", ("b", 2), links={"l": "x"}).is_left_of(whole)
    assert folder("r").is_left_of(whole)
    assert whole.is_left_of(whole)
    for other in (
        folder("r", ("b", 3)),
        folder("r", ("c", 2)),
        folder("r", links={"l": "y"}),
        folder("r", others={"f": "socket"}),
        folder("r", error="permission denied"),
    ):
        assert not other.is_left_of(whole)
