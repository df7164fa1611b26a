"""The core against a second planner that was written from the design alone."""

from hypothesis import given, settings

from tests.core.oracle import keeps
from tests.core.worlds import World, kept, worlds


@settings(max_examples=200)
@given(worlds(rules=True, most=2) | worlds(most=3) | worlds(rising=True, most=2))
def test_both_keep_the_same(world: World):
    assert kept(world.judge()) == keeps(world.runs, world.policies, world.around)
