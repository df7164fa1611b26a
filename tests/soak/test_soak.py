"""A simulated cluster, seed by seed: whatever happens, V1 to V10 hold. How to repeat one: docs/soak.md."""

import pytest

from tests.soak.cluster import run_seed

pytestmark = pytest.mark.timeout(300)


def test_a_cluster(seed: int):
    run_seed(seed)


def test_a_seed_tells_the_same_story_twice():
    one, two = (run_seed(5).history for _ in range(2))
    assert one == two and len(one) > 100
