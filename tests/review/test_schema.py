"""The schemas for editors: they accept what the loader accepts, and refuse what a schema can know to be wrong."""

import re
from pathlib import Path
from typing import Any, ClassVar, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from pydantic import BaseModel

from lifecycle.cli.schemas import SCHEMAS, schema_text
from lifecycle.cli.setup import LIFECYCLE_YAML, POLICY_YAML
from lifecycle.config import fields
from lifecycle.config.cases import CasesRead
from lifecycle.config.fields import Context
from lifecycle.config.json_schema import describe, json_schema
from lifecycle.config.load import parse, read_file
from lifecycle.config.policies import compile_policy
from lifecycle.config.pressure import _percent
from lifecycle.config.problems import Bad
from lifecycle.config.schema import SettingsFile
from lifecycle.config.shapes import shape_of
from lifecycle.config.transfer import rate, span
from lifecycle.errors import ConfigInvalid
from tests.config.test_wrong import cases
from tests.test_docs import PAGES, blocks

ROOT = Path(__file__).parent.parent.parent
POLICIES = ROOT / "policies"
VALIDATORS = {kind: Draft7Validator(json_schema(*SCHEMAS[kind])) for kind in SCHEMAS}
SHOWN = [block for page in PAGES for block in blocks(page, "yaml")]


def accepts(kind: str, value: object) -> bool:
    return VALIDATORS[kind].is_valid(value)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_what_is_committed_is_what_the_models_say(kind: str, request: pytest.FixtureRequest):
    path, text = POLICIES / f"{kind}.schema.json", schema_text(kind)
    if request.config.getoption("--regold"):
        path.write_text(text)
    assert path.read_text() == text, "pytest tests/review/test_schema.py --regold"
    Draft7Validator.check_schema(json_schema(*SCHEMAS[kind]))


def test_shipped_files_are_accepted_and_lead_an_editor_to_their_schema():
    shipped = [
        *((path, "policy") for path in POLICIES.glob("*.yaml")),
        *((p, "cases") for p in POLICIES.glob("*/*.yaml")),
    ]
    assert len(shipped) > 20
    for path, kind in shipped:
        assert [error.message for error in VALIDATORS[kind].iter_errors(read_file(path).value)] == [], path
        told = re.match(r"# yaml-language-server: \$schema=(\S+)\n", path.read_text())
        assert told and (path.parent / told[1]).resolve() == POLICIES / f"{kind}.schema.json"


def test_what_the_documents_show_is_accepted():
    policies = [parse(block.encode(), "p").value for block in SHOWN if block.startswith("policy:")]
    assert len(policies) > 3
    assert [value for value in policies if not accepts("policy", value)] == []
    site = parse(LIFECYCLE_YAML.encode(), "lifecycle.yaml").value
    assert accepts("site", site) and accepts("policy", parse(POLICY_YAML.encode(), "p").value)


def _parsed(text: str) -> Any:
    try:
        return parse(text.encode(), "p.yaml").value
    except ConfigInvalid:
        return None  # no YAML, or none that two readers read alike: an editor says so by itself


def test_wrong_policies_are_refused_but_for_what_only_the_loader_can_know(request: pytest.FixtureRequest):
    wrong = [(value, answer) for text, answer in cases("wrong_policies.txt") if (value := _parsed(text)) is not None]
    assert len(wrong) > 200
    passed = [answer.strip().partition("\n")[0] for value, answer in wrong if accepts("policy", value)]
    told = Path(__file__).parent / "beyond.txt"
    if request.config.getoption("--regold"):
        told.write_text("\n".join(passed) + "\n")
    assert passed == told.read_text().splitlines(), "--regold, and look whether a schema could know them"


def test_most_wrong_settings_are_refused():
    wrong = [value for text, _ in cases("wrong_settings.txt") if (value := _parsed(text)) is not None]
    assert sum(accepts("site", value) for value in wrong) < 0.6 * len(wrong)


TEXTS = st.one_of(
    st.from_regex(r"\A([0-9]{1,3}[wdhms]){1,3}\Z"),
    st.from_regex(r"\A[0-9]{1,3}(\.[0-9]{1,2})? ?[kKMGT]?i?B(/s)?\Z"),
    st.from_regex(r"\A[0-9]{1,3}(\.[0-9]{0,3})?%\Z"),
    st.from_regex(r"\A[0-9]{1,2}:[0-9]{2}-[0-9]{2}:[0-9]{2}\Z"),
    st.from_regex(r"\A[a-z*]{1,4}:?([a-z*.~]{0,3}/){0,3}[a-z*.]{0,3}\Z"),
    st.text(max_size=12),
    st.sampled_from(["none", "${X}", "a=b", "=b", " a", "a ", "..", "0s", "0.0 GB", "100%", "100.00%", "099%"]),
)
NUMBERS = st.one_of(st.integers(-2, 10**16), st.floats(-1, 2, allow_nan=False), st.booleans())
SETTINGS = """
stores:
  hot: {url: "${ROOT}/x", price: {preset: s3/us-east-1, classes: {GLACIER: {gb_month: 0.01}}}, capacity: 5TB}
  warm: s3://bucket/prefix
policies: [a, b]
transfer: {bandwidth: 3Gbit/s, window: "22:00-06:00", timezone: UTC}
tick: {apply: approve, purge: auto, verify: {budget: 2TB}, schedule: {cron: "30 2 * * *"}}
notify: [{to: env:URL, format: slack, on: [failed]}]
http: {listen: "[::1]:80", token: file:x}
monitoring: {textfile: /a/b.prom, pushgateway: "https://x", grouping: {a: b}}
"""


def test_settings_with_a_bit_of_everything_are_accepted():
    value = parse(SETTINGS.encode(), "s").value
    SettingsFile.model_validate(value, context={"known": Context(env={"ROOT": "/mnt/ckpt"})})
    assert accepts("site", value)


CHECKS = [
    fields.text, fields.plain_text, fields.policy_name, fields.store_name, fields.run_glob, fields.key_glob,
    fields.relative, fields.base_name, fields.regex, fields.tag, fields.template, fields._duration, fields._size,
    fields._fraction, fields._root, _percent, rate, span,
    *(get_args(alias)[1].func for alias in (fields.Count, fields.Step, fields.LimitBytes, fields.Grace)),
]  # fmt: skip


class _Info:
    context: ClassVar = {"known": Context()}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__qualname__)
@given(value=st.one_of(TEXTS, NUMBERS))
def test_no_value_that_the_loader_takes_is_refused(check: Any, value: object):
    try:
        check(value, _Info()) if "info" in check.__code__.co_varnames[:2] else check(value)
    except (Bad, ValueError):
        return
    shape = shape_of(check)
    assert shape is not None
    assert Draft7Validator(shape).is_valid(value)


def test_every_key_says_what_it_means():
    seen: set[type[BaseModel]] = set()
    for model, _ in SCHEMAS.values():
        for found in _models(model, seen):
            for key in found.model_fields:
                assert 5 < len(describe(found, key)) <= 120


def _models(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[type[BaseModel]]:
    from lifecycle.config.check import _models as inside

    if model not in seen:
        seen.add(model)
        for field in model.model_fields.values():
            for sub in inside(field.annotation):
                _models(sub, seen)
    return seen


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("cases", "cases: []"),
        ("cases", "cases: [{case: a, saves: {every: 1000, to: 9000}}]"),
        ("cases", "cases: [{case: a, keep: [1]}]"),
        ("cases", "run: hot\ncases: [{case: a, saves: {every: 1, to: 9, gap: 1h}, keep: [1]}]"),
        ("cases", "cases: [{case: a, checkpoints: [{name: b}], keep: [1]}]"),
        ("policy", "policy: p\nkeep: [last: 3, first: 1, {last: 1, first: 2}]"),
        ("policy", "policy: p\nkeep: [last]"),
        ("policy", "policy: p\nkeep: [every: {steps: 5, epochs: 1}]"),
        ("policy", "policy: p\nkeep: [younger: {than: 24, of: now}]"),
    ],
)
def test_these_are_refused(kind: str, text: str):
    assert not accepts(kind, parse(text.encode(), "x").value)


def test_nothing_is_null():
    assert accepts("policy", {"policy": "p"}) and not accepts("policy", {"policy": "p", "group_by": None})


def test_a_case_file_that_is_read_is_accepted(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text(
        "run: hot:a/b\ncases:\n  - {case: a, saves: [{every: 1, to: 9, gap: 1h, metrics: {x: 1, y: [1, nan]}}], "
        "full: {hot: 90%}, moves: {9: none, 8: warm, 7: [hot, warm]}, why: {9: last}, refused: false}\n"
    )
    CasesRead(path)
    assert accepts("cases", read_file(path).value)


def test_a_policy_that_is_compiled_is_accepted():
    text = b"policy: p\nkeep: [final]\npressure: {on: hot, above: 85.5%, until: 70%, order: [final]}\nannounce: none\n"
    compile_policy(parse(text, "p"))
    assert accepts("policy", parse(text, "p").value)
