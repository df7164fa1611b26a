"""Laws of reading files: nothing but ConfigInvalid comes out, and the same meaning has the same digest."""

import random
import time
from itertools import permutations

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lifecycle.config.check import check
from lifecycle.config.fields import Context
from lifecycle.config.load import DEPTH_MAX, FILE_MAX_BYTES, parse, plain_value
from lifecycle.config.policies import compile_policy
from lifecycle.config.problems import Problem
from lifecycle.config.schema import PolicyFile, SettingsFile
from lifecycle.core.policy import Policy
from lifecycle.errors import ConfigInvalid


def read(text: str | bytes) -> Policy:
    return compile_policy(parse(text.encode() if isinstance(text, str) else text, "p.yaml"))


def refusal(data: bytes) -> ConfigInvalid | None:
    try:
        read(data)
    except ConfigInvalid as error:
        return error
    return None


WORDS = sorted(
    {*PolicyFile.model_fields, *SettingsFile.model_fields}
    | {"runs", "stores", "kinds", "owners", "last", "final", "every", "best", "steps", "younger", "than", "of", "now"}
    | {"on", "kept_by", "older", "kind", "owner", "bytes", "max", "7d", "place"}
    | {"above", "until", "order", "85%", "75%", "inodes", "quota"}
    | {"metric", "mode", "min", "count", "ties", "newest", "delete_after", "quiet", "trash", "grace", "none", "name"}
    | {
        "hot",
        "hot:a/**",
        "24h",
        "0h",
        "10GB",
        "1mo",
        "${HOME}",
        "s3://b",
        "file:///",
        "url",
        "template",
        "a-{step}",
        "",
    }
)
leaves = st.sampled_from(WORDS) | st.integers() | st.floats() | st.booleans() | st.none() | st.text(max_size=8)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b"a: \xc3\x28")
@example(b"%YAML 9.9\n---\na: 1\n")
@example(b"%TAG ! tag:x,2000:\n---\n!x a\n")
@example(b'"\\ud800"')
@example(b'policy: "\\ud800"')
@example(b"\xef\xbb\xbfpolicy: p\n")
@example(b"a: |\n  \x00")
def test_any_bytes_are_a_policy_or_told_what_is_wrong(data: bytes):
    error = refusal(data)
    assert error is None or (error.exit_code == 2 and str(error).startswith("p.yaml"))


@given(st.text(alphabet="{}[]:,-?!&*|>'\"%@` \n\tab01~#<", max_size=60))
def test_any_punctuation_is_told_what_is_wrong(text: str):
    error = refusal(text.encode())
    assert error is not None
    assert str(error).isprintable() or "\n" in str(error)


@settings(max_examples=200)
@given(trees, st.sampled_from([PolicyFile, SettingsFile]))
def test_any_tree_of_our_own_words_is_accepted_or_told_what_is_wrong(tree: object, model: type[PolicyFile]):
    data = yaml.safe_dump(tree, allow_unicode=True).encode()
    try:
        document = parse(data, "f.yaml")
    except ConfigInvalid as error:
        assert str(error).startswith("f.yaml")
        return
    problems: list[Problem] = []
    found = check(model, document, problems, Context({"HOME": "/x"}, "/y", frozenset({"hot"})))
    assert (found is None) == bool(problems)
    assert all(1 <= p.place.line <= data.count(b"\n") + 1 and p.place.column >= 1 for p in problems)


@given(trees)
def test_any_keep_list_compiles_or_is_told_what_is_wrong(tree: object):
    data = yaml.safe_dump({"policy": "p", "keep": tree}).encode()
    error = refusal(data)
    assert error is None or error.code in ("policy_invalid", "policy_empty")


@given(trees)
def test_any_list_of_places_compiles_or_is_told_what_is_wrong(tree: object):
    error = refusal(yaml.safe_dump({"policy": "p", "keep": [{"last": 3}], "place": tree}).encode())
    assert error is None or error.code == "policy_invalid"


@given(st.text(max_size=12) | st.text(alphabet="0123456789abcdefxoXEe.+-_:~nyYNOTRUELSF", max_size=7))
def test_a_plain_scalar_is_never_another_number_than_its_digits(text: str):
    try:
        value = plain_value(text)
    except ValueError:
        return
    if isinstance(value, bool):
        assert text in ("true", "false")
    elif isinstance(value, int):
        assert str(value) == text or (text == "-0" and value == 0)
    elif isinstance(value, str):
        assert value == text
        # A YAML 1.1 reader takes it for text as well, or for a date, which no key of ours holds.
        tag = yaml.SafeLoader("").resolve(yaml.ScalarNode, text, (True, False))
        assert tag.rpartition(":")[2] in (
            "str",
            "timestamp",
            "merge",
            "value",
            "yaml",
        )  # the last is for & * !, which start no plain text


@pytest.mark.parametrize(
    "text", ["010", "0x1F", "0b1", "1_000", "1:30", "yes", "No", "ON", "off", "y", ".nan", "-.inf"]
)
@pytest.mark.parametrize("loader", [yaml.SafeLoader])
def test_what_yaml_11_reads_its_own_way_is_refused(text: str, loader: type):
    with pytest.raises(ValueError, match="YAML"):
        plain_value(text)


RULES = ["last: 3", "final", "every: {steps: 1000}", "daily: 7", "steps: [3, 1, 2]", "name: 'a-*'"]


def test_the_digest_is_of_the_meaning():
    keys = ["policy: p", 'match: {runs: ["hot:a", "hot:b"], kinds: [full, local]}', "limits: {trash: 72h, grace: 1h}"]
    keep = "keep:\n" + "".join(f"  - {rule}\n" for rule in RULES)
    texts = ["\n".join(order) + "\n" + keep for order in permutations(keys)]
    texts.append(
        "# why\n"
        + texts[0]
        .replace("policy: p", "policy: p  # because")
        .replace("72h", "3d")
        .replace("[3, 1, 2]", "[1, 2, 3, 3]")
    )
    texts.append(texts[0].replace("[full, local]", "[local, full]").replace("final", "final: {quiet: 24h}"))
    texts.append(texts[0].replace('["hot:a", "hot:b"]', '["hot:b", "hot:a"]').replace(", grace: 1h", ""))
    for seed in range(5):
        shuffled = random.Random(seed).sample(RULES, len(RULES))
        texts.append("\n".join(keys) + "\nkeep:\n" + "".join(f"- {rule}\n" for rule in shuffled))
    assert len({read(text).digest for text in texts}) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("last: 3", "last: 4"),
        ("policy: p", "policy: q"),
        ("pick: first", "pick: closest"),
        ("trash: 72h", "trash: none"),
        ("mode: min", "mode: max"),
        ("daily: 7", "weekly: 7"),
        ("[{metric: b, mode: max}, {metric: c, mode: max}]", "[{metric: c, mode: max}, {metric: b, mode: max}]"),
        ("\nincomplete: {delete_after: 1d}", ""),
        ("kept_by: last", "kept_by: daily"),
        ("on: [warm, cold]", "on: [warm]"),
        ("than: 7d", "than: 8d"),
        (
            "{kept_by: last, on: [hot]}, {older: {than: 7d, of: now}, on: [warm, cold]}",
            "{older: {than: 7d, of: now}, on: [warm, cold]}, {kept_by: last, on: [hot]}",
        ),
    ],
)
def test_another_meaning_has_another_digest(before: str, after: str):
    text = """policy: p
keep:
  - last: 3
  - daily: 7
  - every: {steps: 10, pick: first}
  - best: {metric: a, mode: min, count: 1, ties: [{metric: b, mode: max}, {metric: c, mode: max}]}
place: [{kept_by: last, on: [hot]}, {older: {than: 7d, of: now}, on: [warm, cold]}]
incomplete: {delete_after: 1d}
limits: {trash: 72h}
"""
    assert before in text
    assert read(text).digest != read(text.replace(before, after)).digest


def test_the_order_of_the_stores_at_one_place_means_nothing():
    one, other = (read(f"policy: p\nplace: [{{on: {on}}}]\n") for on in ("[hot, warm]", "[warm, hot]"))
    assert one.digest == other.digest


def test_no_keep_and_keep_none_are_opposites():
    assert read("policy: p\n").keep is None
    assert read("policy: p\nkeep: none\n").keep == ()
    assert read("policy: p\n").digest != read("policy: p\nkeep: none\n").digest


BOMBS = {
    "aliases": b"a: &a [1,1]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]\n",
    "flow": b"[" * 500_000,
    "flow mappings": b"{a: " * 200_000,
    "blocks": b"".join(b" " * n + b"a:\n" for n in range(DEPTH_MAX + 500)),
    "sequences": b"- " * 300_000,
    "digits": b"policy: " + b"9" * 500_000,
    "values": b"[" + b"1," * 300_000 + b"]",
    "bytes": b"#" * (FILE_MAX_BYTES + 1),
    "unknown keys": b"".join(b"k%d: 1\n" % n for n in range(40_000)),
    "one key again": b"policy: p\n" * 40_000,
    "anchors": b"&a " * 300_000,
    "quotes": b"'" * 500_000,
    "keys": b"? " * 200_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_quickly_and_briefly(name: str):
    start = time.process_time()
    error = refusal(BOMBS[name])
    assert error is not None
    assert time.process_time() - start < 5
    assert len(str(error)) < 10_000
