"""A bucket's lifecycle rules and our policies: there and back, and never more in the bucket than a policy would do."""

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.config.load import parse
from lifecycle.config.policies import compile_policy
from lifecycle.core.policy import Policy
from lifecycle.core.select import glob
from lifecycle.review.borrowed import Unclear
from lifecycle.review.bucket_rules import Exported, Told, export, read_rules, runs_of

CLASSES = ("STANDARD_IA", "GLACIER_IR", "GLACIER", "DEEP_ARCHIVE")


def policy(body: dict[str, Any], name: str = "p") -> Policy:
    return compile_policy(parse(yaml.safe_dump({"policy": name, **body}).encode(), "p.yaml"))


def sent(body: dict[str, Any], **how: Any) -> Exported:
    return export([policy(body)], "warm", how.pop("prefix", ""), expire=how.pop("expire", True))


def rule(**parts: Any) -> dict[str, Any]:
    return {"Rules": [{"ID": "r", "Status": "Enabled", "Filter": {"Prefix": "a/"}, **parts}]}


def only(configuration: dict[str, Any]) -> Told | Unclear:
    (found,) = read_rules(configuration, "warm")
    return found


days = st.integers(1, 3650)
rules = st.builds(
    lambda prefix, expires, moves, abort: {
        "ID": "r",
        "Status": "Enabled",
        "Filter": {"Prefix": prefix},
        **({"Transitions": [{"Days": n, "StorageClass": w} for n, w in moves]} if moves else {}),
        **({"Expiration": {"Days": expires}} if expires else {}),
        **({"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": abort}} if abort else {}),
    },
    st.sampled_from(["", "a/", "a/b/", "team x/"]),
    st.none() | days,
    st.lists(
        st.tuples(st.integers(30, 3650), st.sampled_from(CLASSES)),
        max_size=3,
        unique_by=(lambda m: m[0], lambda m: m[1]),
    ).map(sorted),
    st.none() | days,
)  # fmt: skip


@given(rules, st.sampled_from(["", "ckpt/"]))
def test_there_and_back(one: dict[str, Any], below: str):
    """What a bucket's rule says comes out of the policy again, word for word, and the policy can be used."""
    inside = {**one, "Filter": {"Prefix": below + one["Filter"]["Prefix"]}}
    found = only({"Rules": [inside]})
    if isinstance(found, Unclear):
        assert one.keys() == {"ID", "Status", "Filter"}
        return
    body = {"match": {"runs": [runs_of(found.prefix, "warm", below)]}, **found.policy.body}
    assert export([policy(body, "r")], "warm", below, expire=True).configuration == {"Rules": [inside]}


@given(rules)
def test_nothing_is_deleted_by_a_bucket_unasked(one: dict[str, Any]):
    found = only({"Rules": [one]})
    if isinstance(found, Told):
        body = {"match": {"runs": ["warm:**"]}, **found.policy.body}
        configuration: Any = export([policy(body)], "warm", "", expire=False).configuration
        assert not any("Expiration" in each for each in configuration["Rules"])


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"Status": "Disabled"}, "switched off"),
        ({"Filter": {"Tag": {"Key": "a", "Value": "b"}}, "Expiration": {"Days": 1}}, "some objects only"),
        ({"Filter": {"And": {"Prefix": "a/", "ObjectSizeGreaterThan": 1}}, "Expiration": {"Days": 1}}, "objects only"),
        ({"Filter": {"Prefix": "a/step-"}, "Expiration": {"Days": 1}}, "within a name"),
        ({"Filter": {"Prefix": 3}, "Expiration": {"Days": 1}}, "no text"),
        ({"Filter": [], "Expiration": {"Days": 1}}, "cannot be read"),
        ({"Expiration": {"Date": "2030-01-01"}}, "at a date"),
        ({"Transitions": [{"Date": "2030-01-01", "StorageClass": "GLACIER"}]}, "at a date"),
        ({"Transitions": {"Days": 3}}, "no list"),
        ({"Expiration": {"Days": 0}}, "whole number"),
        ({"Expiration": {"Days": True}}, "whole number"),
        ({"Transitions": [{"StorageClass": "GLACIER"}]}, "whole number"),
        ({"NoncurrentVersionExpiration": {"NoncurrentDays": 3}}, "nothing of it"),
    ],
)
def test_rules_that_are_no_policy(parts: dict[str, Any], why: str):
    found = only(rule(**parts))
    assert isinstance(found, Unclear) and why in str(found)


@pytest.mark.parametrize("wrong", [None, [], {}, {"Rules": {}}, {"Rules": [3]}])
def test_what_is_no_configuration(wrong: Any):
    with pytest.raises(Unclear):
        list(read_rules(wrong, "warm"))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"keep": [{"last": 3}]}, "cannot rank"),
        ({"keep": [{"last": 3}, {"younger": {"than": "7d", "of": "now"}}]}, "cannot rank"),
        ({"keep": [{"younger": {"than": "7d", "of": "newest"}}]}, "cannot rank"),
        ({"keep": "none"}, "cannot rank"),
        ({"keep": [{"younger": {"than": "7d", "of": "now"}}], "match": {"owners": [3]}}, "knows no owners"),
        ({"keep": [{"younger": {"than": "7d", "of": "now"}}], "match": {"runs": ["warm:a*"]}}, "no prefix"),
        ({"keep": [{"younger": {"than": "7d", "of": "now"}}], "match": {"runs": ["warm:a"]}}, "no prefix"),
        ({"place": [{"older": {"than": "7d", "of": "now"}, "on": ["cold"]}]}, "to cold"),
        ({"place": [{"older": {"than": "7d", "of": "run_end"}, "on": ["warm@GLACIER"]}]}, "age from now"),
        ({"place": [{"kind": "full", "older": {"than": "7d", "of": "now"}, "on": ["warm@GLACIER"]}]}, "age from now"),
        ({"place": [{"older": {"than": "7d", "of": "now"}, "on": ["warm@STANDARD_IA"]}]}, "refuses STANDARD_IA"),
        (
            {"place": [{"older": {"than": "40d", "of": "now"}, "on": ["warm@GLACIER"]},
                       {"older": {"than": "90d", "of": "now"}, "on": ["warm@DEEP_ARCHIVE"]}]},
            "for younger ones",
        ),
    ],
)  # fmt: skip
def test_what_a_bucket_cannot_do_is_left_out_and_said(body: dict[str, Any], why: str):
    found = sent(body)
    assert found.configuration == {"Rules": []}
    assert any(why in text for text in found.differences), found.differences


def test_policies_of_other_stores_are_not_said_to_this_one():
    keep = [{"younger": {"than": "7d", "of": "now"}}]
    assert sent({"keep": keep, "match": {"runs": ["hot:**"]}}).configuration == {"Rules": []}
    assert sent({"keep": keep, "match": {"stores": ["hot"]}}).configuration == {"Rules": []}
    both: Any = sent({"keep": keep, "match": {"runs": ["warm:a/**", "warm:b/**"]}}, prefix="x/").configuration
    assert [r["Filter"]["Prefix"] for r in both["Rules"]] == ["x/a/", "x/b/"]
    assert [r["ID"] for r in both["Rules"]] == ["p-1", "p-2"]


def test_days_are_rounded_up():
    found: Any = sent({"keep": [{"younger": {"than": "25h", "of": "now"}}]}).configuration
    assert found["Rules"][0]["Expiration"] == {"Days": 2}


AGED = {"keep": [{"younger": {"than": "30d", "of": "now"}}]}
LONGER = {"keep": [{"younger": {"than": "90d", "of": "now"}}]}
COLD = {"place": [{"older": {"than": "40d", "of": "now"}, "on": ["warm@GLACIER"]}]}


def done(*bodies: dict[str, Any]) -> list[dict[str, Any]]:
    """What is done to which prefix of the bucket, each policy of its own name."""
    policies = [policy(body, f"p{number}") for number, body in enumerate(bodies)]
    configuration: Any = export(policies, "warm", "", expire=True).configuration
    return [
        {key: value for key, value in each.items() if key not in ("ID", "Status", "Filter")}
        | {"at": each["Filter"]["Prefix"]}
        for each in configuration["Rules"]
    ]


@pytest.mark.parametrize("runs", ["warm:prod/**", "warm:prod", "*:prod/*", "**:prod", "w*:x"])
@pytest.mark.parametrize("keep", [{"keep": [{"last": 5}]}, {}, {"keep": "none"}])
def test_a_bucket_deletes_nothing_that_another_policy_may_keep(runs: str, keep: dict[str, Any]):
    """What one policy lets go and another one keeps stays; S3 takes the earliest of all rules."""
    assert done(AGED, {"match": {"runs": [runs]}, **keep}) == []
    assert done({"match": {"runs": [runs], "kinds": ["weights"]}, **keep}, AGED) == []


def test_the_longest_of_several_ages_holds():
    prod = {"match": {"runs": ["warm:prod/**"]}, **LONGER}
    assert done(AGED, prod) == [{"at": "", "Expiration": {"Days": 90}}, {"at": "prod/", "Expiration": {"Days": 90}}]
    apart = {"match": {"runs": ["warm:dev/**"]}, **AGED}
    assert done(apart, prod) == [
        {"at": "dev/", "Expiration": {"Days": 30}},
        {"at": "prod/", "Expiration": {"Days": 90}},
    ]
    assert done(AGED, {"match": {"stores": ["hot"]}}) == [{"at": "", "Expiration": {"Days": 30}}]


def test_a_bucket_moves_and_aborts_nothing_that_another_policy_leaves():
    assert done(COLD, {"match": {"runs": ["warm:prod/**"]}}) == []
    assert [one["at"] for one in done(COLD, {"match": {"runs": ["warm:prod/**"]}, **COLD})] == ["", "prod/"]
    assert done({"incomplete": {"delete_after": "7d"}}, {"match": {"runs": ["warm:prod/**"]}}) == []


@pytest.mark.parametrize("word", [{"apply": "approve"}, {"announce": "7d"}])
def test_a_bucket_deletes_nothing_that_somebody_is_asked_about(word: dict[str, Any]):
    assert done({**AGED, **word}) == []


def test_a_prefix_is_never_more_than_what_the_rule_was_about():
    """Letters that are globs here are letters there; what lies outside of the store is about none of its runs."""
    at = re.compile(glob(runs_of("a*b/[x]?/", "warm", "")))
    assert at.fullmatch("warm:a*b/[x]?/run")
    assert not at.fullmatch("warm:aXb/[x]?/run")
    assert not at.fullmatch("warm:a*b/x?/run")
    assert not at.fullmatch("warm:a*b/[x]y/run")
    with pytest.raises(Unclear, match="outside"):
        runs_of("logs/", "warm", "ckpts/")
    assert isinstance(only(rule(Filter={"Prefix": "a/", "Age": 3}, Expiration={"Days": 7})), Unclear)
