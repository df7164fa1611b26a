"""Reads what buckets tell of their own lifecycle rules: which delete or move objects that we think are ours to judge.

Forms: S3's GetBucketLifecycleConfiguration, and ``lifecycle.rule`` of a bucket in Google's JSON API.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lifecycle.ports.ruled import BucketRule

_OLD = ("daysSinceNoncurrentTime", "noncurrentTimeBefore", "numNewerVersions")
"""Conditions of Google's that only versions can meet that are no longer in use."""


def of_s3(rules: Iterable[Mapping[str, Any]]) -> Iterator[BucketRule]:
    """S3's rules that are on and act on current objects."""
    for rule in rules:
        if rule.get("Status") != "Enabled":
            continue
        scope = rule.get("Filter") or {}
        scope = scope.get("And", scope)
        prefix = str(scope.get("Prefix", rule.get("Prefix", "")) or "")
        some = " (some, by tag or size)" if set(scope) - {"Prefix"} else ""
        ends = rule.get("Expiration") or {}
        does = [f"deletes objects {_when(ends)}{some}"] if {"Days", "Date"} & set(ends) else []
        for move in rule.get("Transitions") or ():
            does.append(f"moves objects to {move.get('StorageClass', '?')} {_when(move)}{some}")
        for text in does:
            yield BucketRule(str(rule.get("ID", "")), prefix, text)


def _when(rule: Mapping[str, Any]) -> str:
    if "Days" in rule:
        return f"after {rule['Days']} days"
    return f"from {rule['Date']:%Y-%m-%d} on" if hasattr(rule.get("Date"), "year") else "by date"


def of_google(rules: Iterable[Mapping[str, Any]]) -> Iterator[BucketRule]:
    """Google's rules that act on live objects; one for each prefix they name."""
    for number, rule in enumerate(rules, 1):
        action, condition = rule.get("action") or {}, rule.get("condition") or {}
        if condition.get("isLive") is False or any(name in condition for name in _OLD):
            continue
        match action.get("type"):
            case "Delete":
                does = "deletes objects"
            case "SetStorageClass":
                does = f"moves objects to {action.get('storageClass', '?')}"
            case _:
                continue
        age = f" after {condition['age']} days" if "age" in condition else ""
        some = " (some, by other conditions)" if set(condition) - {"age", "isLive", "matchesPrefix"} else ""
        for prefix in condition.get("matchesPrefix") or [""]:
            yield BucketRule(f"rule {number}", str(prefix), f"{does}{age}{some}")


def reaching(rules: Iterable[BucketRule], *prefixes: str) -> tuple[BucketRule, ...]:
    """Those whose keys and one of ``prefixes`` can meet."""
    return tuple(r for r in rules if any(r.prefix.startswith(p) or p.startswith(r.prefix) for p in prefixes))
