"""A node's own disk as the first place of checkpoints: what goes up first, what waits for it, and the node's death."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lifecycle.core.policy import Age, Anchor, Incomplete, Last, Limits, Match, Policy, Rules
from lifecycle.core.policy import Place as Where
from lifecycle.errors import Refused
from lifecycle.flows.propose import exposed_now
from lifecycle.stores.local import LocalStore
from tests.flows.place import HOUR, Place, place
from tests.flows.test_tiers import acts, on

STAGED = Policy(
    "stage",
    Match(stores=frozenset({"nvme"})),
    (Last(2),),
    incomplete=Incomplete(60),
    limits=Limits(trash_s=3600, grace_s=1800),
    place=(
        Where(on=("nvme", "bucket"), younger=Age(2 * 3600, Anchor.NOW)),
        Where(on=("bucket",)),
    ),
    digest="s1",
)


class Node(Place):
    """One whose store `nvme` dies with its node."""

    @property
    def rules(self) -> Rules:
        return replace(super().rules, node_local=(("nvme", 3600),))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    plain = place(tmp_path, ("nvme", "bucket"))
    made = Node(plain.index, plain.stores, STAGED)
    for step, hours in ((1, 20), (2, 15), (3, 10), (4, 1)):
        made.save("nvme", "r", step, hours * HOUR)
    yield made
    made.index.close()


def test_the_newest_goes_up_first_and_nothing_goes_or_leaves_before(node: Node):
    plan = node.plan()
    assert acts(plan) == [
        ("copy", "nvme:r/step-4", "bucket"),
        ("copy", "nvme:r/step-3", "bucket"),
    ]
    assert node.apply(plan).exit_code == 0
    plan = node.plan()
    # 1 and 2 are beyond `last`, and 3 has aged: by now all three have something newer that is durable.
    assert acts(plan) == [
        ("retire", "nvme:r/step-1", ""),
        ("retire", "nvme:r/step-2", ""),
        ("retire", "nvme:r/step-3", ""),
    ]
    assert {anchor.id for anchor in plan.anchors} == {"bucket:r/step-4"}, "a node's disk is no anchor"
    assert node.apply(plan).counts == {"done": 3}
    assert (on(node, "nvme"), on(node, "bucket")) == (["r/step-4"], ["r/step-3", "r/step-4"])
    assert acts(node.plan()) == []


def test_a_checkpoint_with_a_proof_is_copied_at_once(node: Node):
    node.apply(node.plan())
    node.save("nvme", "r", 5, 0)
    assert acts(node.plan())[:1] == [("copy", "nvme:r/step-5", "bucket")], "no grace but for what has no proof"


def test_exposure_is_in_the_plan_and_ends_with_the_copy(node: Node):
    plan = node.plan()
    told = {f.subject: f for f in plan.findings if f.code == "exposed"}
    assert told["nvme:r"].severity == "warning" and "4 in all, 40 B, the first 20h ago" in told["nvme:r"].text
    assert (plan.totals["exposed_runs"], plan.totals["exposed_bytes"]) == (1, 40)
    assert plan.totals["exposed_s"] == 20 * 3600
    assert not exposed_now(node.index.reader, replace(node.rules, node_local=()), ("nvme",), 0).risks
    node.apply(plan)
    plan = node.plan()
    assert not {f.code for f in plan.findings} & {"exposed"} and "exposed_runs" not in plan.totals
    node.save("nvme", "r", 5, 60 * 10**9)
    [finding] = [f for f in node.plan().findings if f.code == "exposed"]
    assert finding.severity == "note"


def test_a_policy_without_a_durable_place_is_told_of(node: Node):
    node.policy = replace(STAGED, place=())
    assert ("nvme:r", "never_durable") in {(f.subject, f.code) for f in node.plan().findings}


def test_a_disk_that_is_lost_between_copy_and_release_takes_nothing_with_it(node: Node):
    node.apply(node.plan())
    release = node.plan()
    node.stores["nvme"].files.clear()
    outcome = node.apply(release)
    assert outcome.counts["done"] == 0 and outcome.counts["gone"] + outcome.counts["kept"] == 3, outcome.notes
    assert on(node, "bucket") == ["r/step-3", "r/step-4"]


def test_a_durable_copy_that_is_lost_before_the_release_stops_all_that_rests_on_it(node: Node):
    node.apply(node.plan())
    release = node.plan()
    del node.stores["bucket"].files["r/step-4/w"]
    outcome = node.apply(release)
    assert {"r/step-1", "r/step-2", "r/step-4"} <= set(on(node, "nvme"))
    assert {code for _, code, _ in outcome.notes} == {"floor_gone"}, outcome.notes


def test_a_durable_copy_that_rots_before_the_release_stops_it(node: Node):
    node.apply(node.plan())
    release = node.plan()
    file = node.stores["bucket"].files["r/step-3/w"]
    node.stores["bucket"].put("r/step-3/w", b"W" * len(file.content), file.mtime_ns)
    outcome = node.apply(release)
    assert "r/step-3" in on(node, "nvme")
    assert {code for _, code, _ in outcome.notes} == {"copy_unproven"}, outcome.notes


def test_nothing_that_is_durable_goes_for_what_only_the_node_has(node: Node):
    node.apply(node.plan())
    for step in (5, 6, 7):
        node.save("nvme", "r", step, (10 - step) * 600 * 10**9)
    plan = node.plan()
    assert not [a for a in plan.actions if a.store == "bucket"]
    assert [a.key for a in plan.actions if a.to] == ["r/step-7", "r/step-6"]
    node.apply(plan)
    again = node.plan()
    assert {a.id for a in again.actions if a.store == "bucket"} == {"bucket:r/step-3", "bucket:r/step-4"}


def test_two_nodes_with_equal_disks_are_two_stores(tmp_path: Path):
    """XFS makes its id of the device's number: the same path on equal nodes would bear the same identity."""
    a, again, b = (LocalStore("nvme", tmp_path, node=name) for name in ("node-a", "node-a", "node-b"))
    assert a.identity() == again.identity() != b.identity()
    assert LocalStore("nvme", tmp_path).identity() == a.identity().removesuffix("@node-a")


def test_a_plan_of_one_node_is_refused_on_another(node: Node, monkeypatch: pytest.MonkeyPatch):
    plan = node.plan()
    monkeypatch.setattr(node.stores["nvme"], "identity", lambda: "posix-1-2@node-b")
    with pytest.raises(Refused) as caught:
        node.apply(plan)
    assert caught.value.code == "root_changed"
