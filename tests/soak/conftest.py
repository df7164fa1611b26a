"""Which seeds are driven: a slice that always is the same, or those that somebody asks for with `--seed`."""

import pytest

from tests.soak.cluster import seeds_of

SLICE = "0-11"
"""What every run of the tests drives; `make soak` drives a thousand."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", help="seeds to drive instead, such as 7, 0-99 or 3,5,10-12")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames and metafunc.definition.get_closest_marker("parametrize") is None:
        metafunc.parametrize("seed", seeds_of(metafunc.config.getoption("--seed", None) or SLICE))
