"""Coverage is taken of the tests that hold the gate, and of no others: it makes a test half as slow again.

The gate asks that what may delete is run to its last branch by the tests of those very rooms. Others, such as those
that drive the whole program, would only hide that one of them is missing.
"""

import os
import pkgutil
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

import lifecycle

ROOT = Path(__file__).parent
GATED = (
    "core", "faults", "flows", "index/test_consents.py", "layouts/test_live.py", "layouts/test_slim.py",
    "sizing/test_room.py", "stores", "cli/test_corridor.py", "cli/test_metrics.py", "test_cases.py",
)  # fmt: skip
"""What the gate's files are measured by, below `tests/`."""
PASSED_OVER = ("stores/test_azure.py", "stores/test_pool.py")
"""What of that the gate does not rest on: azurite is not everywhere, and what walks a tree deletes nothing, while each
of its hundreds of helpers would take three times as long if it were measured.
"""
CHILDREN = "COVERAGE_PROCESS_CONFIG"
"""By this variable a child process knows that it is to be measured, too (coverage, `patch = subprocess`)."""


def measured(item: pytest.Item) -> bool:
    """Whether a test is one of those that hold the gate."""
    return _below(item.path, GATED) and not _below(item.path, PASSED_OVER)


def _below(path: Path, places: Iterable[str]) -> bool:
    return any(path.is_relative_to(ROOT / place) for place in places)


def load_all() -> None:
    """Import every module, so that none is first imported, and its own lines run, while nobody looks."""
    for module in pkgutil.walk_packages(lifecycle.__path__, "lifecycle."):
        if not module.name.endswith("__main__"):
            import_module(module.name)


@pytest.hookimpl(wrapper=True)
def pytest_collection_finish(session: pytest.Session) -> Iterator[None]:
    if session.config.pluginmanager.hasplugin("_cov"):
        load_all()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    plugin = item.config.pluginmanager.getplugin("_cov")
    if plugin is None or plugin.cov_controller is None or measured(item):
        return (yield)
    children = os.environ.pop(CHILDREN, None)
    plugin.cov_controller.pause()
    try:
        return (yield)
    finally:
        plugin.cov_controller.resume()
        if children is not None:
            os.environ[CHILDREN] = children
