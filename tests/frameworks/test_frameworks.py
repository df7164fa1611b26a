"""Real frameworks train, we retire, they resume: those named in LIFECYCLE_FRAMEWORKS, or the cheap ones."""

import os
from pathlib import Path

import pytest

from tests.frameworks.catalogue import BY_NAME, FRAMEWORKS, Framework
from tests.frameworks.environment import NotMade
from tests.frameworks.page import keep, path
from tests.frameworks.scenario import Result, play


def chosen() -> list[Framework]:
    words = os.environ.get("LIFECYCLE_FRAMEWORKS", "")
    if words == "all":
        return list(FRAMEWORKS)
    if not words:
        return [framework for framework in FRAMEWORKS if framework.cheap]
    named = words.split(",")
    if unknown := set(named) - set(BY_NAME):
        raise pytest.UsageError(f"no such framework: {', '.join(sorted(unknown))}; there are {', '.join(BY_NAME)}")
    return [BY_NAME[word] for word in named]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("framework", chosen(), ids=lambda framework: framework.name)
def test_it_resumes_and_ends_well(framework: Framework, tmp_path: Path, request: pytest.FixtureRequest):
    try:
        result = play(framework, tmp_path)
    except NotMade as why:
        if request.config.getoption("--regold") and not path(framework).exists():
            keep(Result(framework.name, "", "", not_run=str(why)))
        pytest.skip(f"{framework.title} cannot be installed here: {why}")
    if request.config.getoption("--regold"):
        keep(result)
