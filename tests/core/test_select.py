"""Which policies apply to which runs, and which runs are judged as one."""

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.core.model import Kind
from lifecycle.core.policy import Match, Policy
from lifecycle.core.select import applies, clusters, covers, glob, group_key, groups
from tests.core.worlds import checkpoint, run_of


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("hot:a/*", ["hot:a/b", "hot:a/"], ["hot:a", "hot:a/b/c", "hot:ab"]),
        ("hot:a/**", ["hot:a", "hot:a/", "hot:a/b", "hot:a/b/c"], ["hot:ab", "hot:b/a"]),
        ("hot:**", ["hot:", "hot:a", "hot:a/b"], ["cold:a"]),
        ("**", ["", "hot:a/b"], []),
        ("hot:**/r", ["hot:r", "hot:a/r", "hot:a/b/r"], ["hot:ar", "hot:r/a"]),
        ("hot:a/**/r", ["hot:a/r", "hot:a/b/c/r"], ["hot:ar", "hot:a/br"]),
        ("hot:r?", ["hot:r1", "hot:r?"], ["hot:r", "hot:r/", "hot:r12"]),
        ("hot:[ab]/r", ["hot:a/r"], ["hot:c/r", "hot:ab/r"]),
        ("hot:[!a]x", ["hot:bx"], ["hot:ax", "hot:/x"]),
        ("hot:[^a]x", ["hot:^x", "hot:ax"], ["hot:bx"]),
        ("hot:[a-c]", ["hot:b"], ["hot:d", "hot:-"]),
        ("hot:[]a]", ["hot:]", "hot:a"], ["hot:b"]),
        ("hot:[[]", ["hot:["], ["hot:]"]),
        (r"hot:[\]", ["hot:\\"], ["hot:]"]),
        ("hot:[a", ["hot:[a"], ["hot:a"]),
        ("hot:a.b+(c)$", ["hot:a.b+(c)$"], ["hot:axb+(c)$", "hot:a.b"]),
        ("hot:a\n*", ["hot:a\nb\nc"], ["hot:a"]),
        ("hot:\udcff*", ["hot:\udcffx"], ["hot:x"]),
    ],
)
def test_globs(pattern: str, yes: list[str], no: list[str]):
    assert [t for t in yes if not glob(pattern).fullmatch(t)] == []
    assert [t for t in no if glob(pattern).fullmatch(t)] == []


@given(st.text("ab*?[]!-^", max_size=8), st.text("ab[]!-^", max_size=8))
def test_without_slashes_it_is_the_shells_glob(pattern: str, text: str):
    try:
        matches = bool(glob(pattern).fullmatch(text))
    except re.error:  # told when the policy is read
        assert "[" in pattern
        return
    assert matches == fnmatchcase(text, pattern)


def test_applies_by_store_and_glob():
    run = run_of("a/r")
    assert applies(Policy("p", Match(), None), run)
    assert applies(Policy("p", Match(runs=("cold:**", "hot:a/*")), None), run)
    assert not applies(Policy("p", Match(runs=("cold:**",)), None), run)
    assert not applies(Policy("p", Match(stores=frozenset({"cold"})), None), run)


def test_covers_by_layout_kind_and_owner():
    c = checkpoint("a/r/s", kind=Kind.ADAPTER, owner=7)
    for part, mine, other in (("layouts", "generic", "hf"), ("kinds", "adapter", "full"), ("owners", 7, 8)):
        assert covers(Policy("p", Match(**{part: frozenset({mine, other})}), None), c)  # type: ignore[arg-type]  # by name
        assert not covers(Policy("p", Match(**{part: frozenset({other})}), None), c)  # type: ignore[arg-type]  # by name
    assert covers(Policy("p", Match(), None), c)
    assert not covers(Policy("p", Match(owners=frozenset({7})), None), checkpoint("a/r/s"))  # owner not known


def test_group_keys():
    keyed = [group_key(Policy("p", Match(), None, group_by=by), run_of("exp1-a/x")) for by in (
        None, r"^(exp\d+)-", r"(exp)(\d)", r"exp\d", r"(q)?exp", "nowhere")]  # fmt: skip
    run = ("run", "hot", "exp1-a/x")
    assert keyed == [run, ("by", "exp1"), ("by", "exp", "1"), ("by", "exp1"), ("by", ""), run]


def test_groups_come_in_order_of_their_first_run():
    runs = [run_of(path) for path in ("a1", "b1", "a2")]
    found = groups(Policy("p", Match(), None, group_by=r"^\w"), runs)
    assert [[run.path for run in group] for group in found] == [["a1", "a2"], ["b1"]]


def test_clusters_stream_what_nothing_joins():
    by_letter = Policy("letter", Match(runs=("hot:?[12]",)), None, group_by=r"^\w")
    by_digit = Policy("digit", Match(runs=("hot:[bc]?",)), None, group_by=r"\d$")
    alone = Policy("alone", Match(runs=("hot:x",)), None)
    runs = [run_of(path) for path in ("x", "a1", "a2", "b2", "c2", "c7", "free")]
    found = [
        ([r.path for r in c], [p.name for p in ps]) for c, ps in clusters(iter(runs), [by_letter, by_digit, alone])
    ]
    assert found == [
        (["x"], ["alone"]),
        (["free"], []),
        (["a1", "a2"], ["letter"]),
        (["b2", "c2"], ["letter", "digit"]),
        (["c7"], ["digit"]),
    ]


@given(st.lists(st.sampled_from(["a1", "a2", "b1", "b2", "c3"]), unique=True))
def test_every_run_is_in_one_cluster_with_all_that_are_judged_with_it(paths: list[str]):
    policies = [
        Policy("l", Match(), None, group_by=r"^[ab]"),
        Policy("d", Match(runs=("hot:*1",)), None, group_by=r"\d"),
    ]
    found = list(clusters([run_of(path) for path in paths], policies))
    assert sorted(run.path for cluster, _ in found for run in cluster) == sorted(paths)
    for policy in policies:
        mine = [run_of(path) for path in paths if applies(policy, run_of(path))]
        for group in groups(policy, mine):
            assert sum(set(group) <= set(cluster) for cluster, _ in found) == 1
