"""A tree that is spread over several roots means what it means in one."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle.core.listing import Listing
from lifecycle.core.model import Run
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.registry import survey
from lifecycle.layouts.unions import join_roots
from lifecycle.ports import Store
from lifecycle.stores.local import LocalStore
from lifecycle.stores.union import UnionStore

TREES = ("torch_dcp", "deepspeed", "tensorflow", "fvcore_detectron2", "nanogpt", "sb3", "megatron")
"""Units of many files, groups and single files, pointers by text and by link."""


def claims(store: Store) -> list[Run]:
    """What layouts see, but for what tells one disk's file from another's, and when directories were changed."""
    folders = {folder.path: folder for folder in store.walk()}
    listing = Listing(store.flavour, folders, complete=not any(f.error for f in folders.values()))
    runs = survey("hot", listing, store.read, Conventions(), url=store.url)
    return [
        replace(
            run,
            checkpoints=tuple(replace(c, fingerprint="", inode=0, changed_at_ns=0) for c in run.checkpoints),
        )
        for run in runs
    ]


def spread(tree: Path, roots: list[Path], random: Random) -> None:
    """Copy each file and link into one of the roots, and each directory into one at least."""
    for top, dirs, files in os.walk(tree):
        inside = Path(top).relative_to(tree)
        for name in files + [name for name in dirs if Path(top, name).is_symlink()]:
            into = random.choice(roots) / inside
            into.mkdir(parents=True, exist_ok=True)
            shutil.copy2(Path(top, name), into / name, follow_symlinks=False)
        (random.choice(roots) / inside).mkdir(parents=True, exist_ok=True)


@pytest.fixture(scope="module")
def tree(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    for name in TREES:
        shutil.copytree(samples / name, root / name, symlinks=True)
    return root


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(2, 3))
def test_a_tree_over_several_roots_gives_the_claims_of_one(tree: Path, seed: int, count: int):
    with TemporaryDirectory() as home:
        roots = [Path(home, f"n{i}") for i in range(count)]
        spread(tree, roots, Random(seed))
        stores = [LocalStore("hot", root) for root in roots]
        union = UnionStore("hot", stores, join_roots([f"file://{root}" for root in roots]))
        together, apart = claims(union), claims(LocalStore("hot", tree))
        assert len([c for run in apart for c in run.checkpoints]) > 20
        assert together == apart


@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_unit_with_a_file_in_two_roots_is_never_whole(tree: Path, seed: int):
    """What is in two roots makes its run one that is not judged; all other runs are as before."""
    random = Random(seed)
    with TemporaryDirectory() as home:
        roots = [Path(home, f"n{i}") for i in range(2)]
        spread(tree, roots, random)
        files = [p.relative_to(root) for root in roots for p in root.rglob("*") if p.is_file() and not p.is_symlink()]
        twice = random.choice(sorted(files))
        for root in roots:
            (root / twice).parent.mkdir(parents=True, exist_ok=True)
            if not (root / twice).exists():
                (root / twice).write_bytes(b"another")
        union = UnionStore("hot", [LocalStore("hot", root) for root in roots], "")
        (broken,) = [folder for folder in union.walk() if folder.error]
        assert broken.path == str(twice.parent) and repr(twice.name) in broken.error
        before = {run.path: run for run in claims(LocalStore("hot", tree))}
        for run in claims(union):
            assert not run.complete or (run.path in before and not f"{broken.path}/".startswith(f"{run.path}/"))
            if run.complete:
                assert run == before[run.path]
