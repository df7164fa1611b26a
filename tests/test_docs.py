"""The documents are true: transcripts come from real runs, YAML loads, rules and links exist."""

import re
from pathlib import Path

import pytest

from lifecycle.config.notifying import NotifyFile
from lifecycle.config.policies import load_policies
from lifecycle.config.pressure import PressureFile
from lifecycle.config.schema import PlaceFile
from lifecycle.config.ticking import TickFile
from lifecycle.core import policy
from lifecycle.hooks.deliver import SIGNATURE
from lifecycle.ports.news import Event
from lifecycle.service.service import LOUD

ROOT = Path(__file__).parent.parent
OUTSIDE = [ROOT / "policies/README.md", ROOT / "deploy/README.md"]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *OUTSIDE]
TRANSCRIPT = re.compile(r"<!-- transcript: (\S+) -->\n```console\n(.*?)```", re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def test_transcripts_are_lines_of_real_runs_in_their_order():
    told = [(page, *found) for page in PAGES for found in TRANSCRIPT.findall(page.read_text())]
    assert told, "the README shows no transcript"
    for page, golden, text in told:
        real = iter((ROOT / golden).read_text().splitlines())
        for line in text.splitlines():
            assert line in real, f"{page.name}: {golden} has no such line here: {line}"


QUESTION = re.compile(r"^\| [^|]+\? \|([^|]+)\|", re.MULTILINE)


def test_every_question_of_a_planner_is_a_command_that_was_run_and_is_shown():
    asked = (ROOT / "docs/sizing.md").read_text().partition("## What a planner asks")[2].partition("\n## ")[0]
    rows = QUESTION.findall(asked)
    assert len(rows) == 7
    shown = "\n".join(text for page in PAGES for _, text in TRANSCRIPT.findall(page.read_text()))
    run = {line for path in (ROOT / "tests/cli/golden").glob("*-80.txt") for line in path.read_text().splitlines()}
    for row in rows:
        command = re.findall(r"`(lifecycle [^`]+)`", row)[0]
        assert any(line.startswith(f"$ {command}") for line in run), f"{command} is in no golden transcript"
        assert f"$ {command}" in shown, f"{command} is shown on no page"


def test_policies_shown_can_be_loaded(tmp_path: Path):
    shown = [block for page in PAGES for block in blocks(page, "yaml") if block.startswith("policy:")]
    assert shown
    for n, block in enumerate(shown):
        path = tmp_path / f"{n}.yaml"
        path.write_text(block)
        load_policies([path])


def test_every_rule_and_limit_is_on_the_page():
    page = (ROOT / "docs/policies.md").read_text()
    rules = {"last", "first", "final", "every", "best", "steps", "younger", "name", "tagged"}
    assert len(rules) == len(policy.Rule.__args__) - 1, "a rule is new: describe it (buckets are five words for one)"
    words = rules | {period.value for period in policy.Period} | {pick.value for pick in policy.Pick}
    words |= {anchor.value for anchor in policy.Anchor} | {unit.value for unit in policy.Unit}
    words |= {name.removesuffix("_s") for name in policy.Limits.__slots__}
    words |= set(PlaceFile.model_fields) | set(PressureFile.model_fields) | {of.value for of in policy.Measure}
    missing = {word for word in words if not re.search(rf"\b{word}\b", page)}
    assert not missing


def test_every_key_of_notify_and_every_code_of_its_stage_is_on_the_page():
    page = (ROOT / "docs/webhooks.md").read_text()
    codes = re.findall(r'3, "([a-z_]+)"', (ROOT / "lifecycle/flows/telling.py").read_text())
    assert len(codes) > 3
    assert {word for word in (*codes, *NotifyFile.model_fields, *Event, SIGNATURE) if word not in page} == set()


def test_every_stage_of_a_tick_and_every_word_of_the_service_is_on_the_page():
    page = (ROOT / "docs/service.md").read_text()
    flow, service = ((ROOT / "lifecycle" / name).read_text() for name in ("flows/tick.py", "service/service.py"))
    flow += (ROOT / "lifecycle/flows/telling.py").read_text()
    words = {*re.findall(r'Stage\("([a-z_]+)"', flow + service), *re.findall(r'code="([a-z_]+)"', flow)}
    words |= {*re.findall(r'self\._tell\(\s*"([a-z_]+)"', service), *LOUD, *TickFile.model_fields}
    assert len(words) > 25
    assert {word for word in words if f"{word}" not in page} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target


def test_every_example_policy_is_listed_once():
    listed = re.findall(r"^\| `(\S+\.yaml)`", (ROOT / "policies/README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in (ROOT / "policies").glob("*.yaml"))
