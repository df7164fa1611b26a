"""``policy import`` and ``policy export``: other tools' retention as a policy, and policies as a bucket's rules."""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple
from urllib.parse import urlsplit

import yaml

from lifecycle.cli.desk import Desk, writing
from lifecycle.core.units import escape
from lifecycle.errors import ConfigInvalid, LifecycleError
from lifecycle.review import bucket_rules
from lifecycle.review.borrowed import Borrowed, Call, Options, Unclear, lightning, orbax, restic, trainer
from lifecycle.review.bucket_rules import Told

WIDTH = 100
READ_MAX_BYTES = 1024 * 1024
WORDS = {
    "trainer": ("save_total_limit", "load_best_model_at_end", "metric_for_best_model", "greater_is_better"),
    "lightning": ("save_top_k", "monitor", "mode", "save_last"),
    "orbax": (
        "max_to_keep", "keep_period", "keep_time_interval", "best_metric", "best_mode", "preservation_policy",
    ),
}  # fmt: skip
"""Settings that say what is kept; a file may hold any others, a command line may not."""


class Asked(NamedTuple):
    """What is to be translated."""

    tool: str
    words: Sequence[str]
    name: str | None
    runs: str | None
    store: str
    below: str | None
    rule: str | None


def borrow(desk: Desk, asked: Asked) -> int:
    """``lifecycle policy import``"""
    try:
        found, name, runs = _translated(desk, asked)
    except Unclear as e:
        raise ConfigInvalid(str(e), code="usage", hint="lifecycle policy import --help") from e
    body = {"policy": asked.name or name, **({"match": {"runs": [runs]}} if runs else {}), **found.body}
    text = _file(body, found.notes, f"From {asked.tool}: {shlex.join(asked.words)}")
    _check(text)
    desk.answer({"policy": body, "text": text, "notes": list(found.notes)}, ())
    if not desk.as_json:
        with writing():
            sys.stdout.write(text)
    return 0


def export(desk: Desk, files: list[Path], store: str, below: str | None, *, expire: bool) -> int:
    """``lifecycle policy export``"""
    from lifecycle.config.policies import load_policies

    policies = load_policies(files) if files else desk.settings.policies
    told = bucket_rules.export(policies, store, _begins(desk, store, below), expire=expire)
    rules = told.configuration["Rules"]
    if not rules:
        lines = "\n".join(told.differences)
        raise LifecycleError(
            f"nothing of these policies can be said to a bucket{':' if lines else ''}\n{lines}".rstrip(),
            code="not_expressible",
            hint="S3 moves and deletes by age and prefix alone; leave the rest to lifecycle",
        )
    if files:
        desk.warn("only the named policies were asked: what others keep, the bucket does not know")
    for text in told.differences:
        desk.warn(f"differs: {text}")
    if desk.as_json:
        desk.answer({"configuration": told.configuration, "differences": list(told.differences)}, ())
    else:
        with writing():
            print(json.dumps(told.configuration, indent=2))
    return 0


def _begins(desk: Desk, store: str, below: str | None) -> str:
    """Where in its bucket a store begins: as the settings say, if they know it, else as asked.

    Rules of a bucket are about prefixes of all of it, so that a wrong beginning is about what others keep there.

    Raises:
        ConfigInvalid: the settings say otherwise, or that it is no bucket of S3.
    """
    try:
        url = next((each.url for each in desk.settings.stores if each.name == store), None)
    except ConfigInvalid as e:
        if e.code != "no_config":
            raise
        url = None
    if url is None:
        return _slashed(below or "")
    told = urlsplit(url)
    known = _slashed(told.path)
    if told.scheme != "s3":
        raise ConfigInvalid(f"by the settings {escape(store)} is no bucket of S3", code="usage", hint="--store NAME")
    if below is not None and _slashed(below) != known:
        text = f"by the settings {escape(store)} begins at {escape(known) or 'the root of its bucket'}"
        raise ConfigInvalid(text, code="usage", hint="leave --below out")
    return known


def _translated(desk: Desk, asked: Asked) -> tuple[Borrowed, str, str | None]:
    """The policy's body, a name for it, and which runs it is for."""
    if asked.tool == "s3":
        rule = _rule_of(asked)
        return (
            rule.policy,
            _slug(rule.name),
            asked.runs or bucket_rules.runs_of(rule.prefix, asked.store, _begins(desk, asked.store, asked.below)),
        )
    if asked.tool == "restic":
        return restic(_flags(asked.words)), "restic", asked.runs
    given = _settings(asked)
    if asked.tool == "orbax":
        calls = list(_calls(str(given["preservation_policy"]))) if given.get("preservation_policy") else []
        return orbax(Options(given), calls), "orbax", asked.runs
    return {"trainer": trainer, "lightning": lightning}[asked.tool](Options(given)), asked.tool, asked.runs


def _settings(asked: Asked) -> Mapping[str, object]:
    """Settings from words or from one file."""
    known = WORDS[asked.tool]
    if len(asked.words) == 1 and "=" not in asked.words[0]:
        given = _document(asked.words[0])
        if not isinstance(given, dict):
            raise Unclear(f"{escape(asked.words[0])} holds no settings by name")
        if not any(key in given for key in known):
            raise Unclear(f"{escape(asked.words[0])} says nothing at its top level of {', '.join(known)}")
        return {str(key): value for key, value in given.items()}
    found: dict[str, object] = {}
    for word in asked.words:
        key, sign, value = word.partition("=")
        if not sign or key not in known:
            from lifecycle.config.problems import nearest

            text = f"{escape(word)} is no setting of {asked.tool} that says what is kept{nearest(key, known)}"
            raise ConfigInvalid(
                text, code="usage", hint=f"known are {', '.join(known)}, as key=value; or give one file"
            )
        if key in found:
            raise Unclear(f"{key} is given twice")
        found[key] = value
    return found


def _document(name: str) -> object:
    """What a JSON or YAML file holds; nothing in it is run."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(READ_MAX_BYTES + 1)
        else:
            with open(name, "rb") as stream:
                data = stream.read(READ_MAX_BYTES + 1)
    except OSError as e:
        raise ConfigInvalid(f"{escape(name)} cannot be read: {e.strerror}", code="usage") from e
    if len(data) > READ_MAX_BYTES:
        raise Unclear(f"{escape(name)} is larger than 1 MiB")
    try:
        return yaml.safe_load(data)  # JSON is YAML
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise Unclear(f"{escape(name)} is neither JSON nor YAML: {escape(str(e).splitlines()[0])}") from e


def _flags(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """``--keep-last 3`` and ``--keep-last=3`` as (flag, value)."""
    rest = iter(words)
    for word in rest:
        flag, sign, value = word.partition("=")
        if not flag.startswith("--keep-"):
            raise Unclear(f"{escape(word)} is no flag of restic that says what is kept")
        yield flag, value if sign else next(rest, "")


def _calls(text: str) -> Iterator[Call]:
    """Preservation policies as Python writes them, parsed and never run: their names and their plain arguments."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        raise Unclear(f"preservation_policy cannot be read: {escape(str(e))}") from e
    stack = [tree]
    while stack:
        node = stack.pop(0)
        if isinstance(node, (ast.List, ast.Tuple)):
            stack = [*node.elts, *stack]
            continue
        if not isinstance(node, ast.Call):
            raise Unclear(f"preservation_policy: {escape(ast.unparse(node))} is no policy")
        name = ast.unparse(node.func).rpartition(".")[2]
        if name == "AnyPreservationPolicy":
            stack = [*node.args, *(k.value for k in node.keywords), *stack]
            continue
        places = POSITIONS.get(name, ())
        arguments = dict(zip(places, map(_plain, node.args), strict=False))
        arguments |= {k.arg: _plain(k.value) for k in node.keywords if k.arg is not None}
        yield name, arguments


POSITIONS = {
    "LatestN": ("n",),
    "LatestDuration": ("duration",),
    "EveryNSteps": ("interval_steps", "exact_interval", "max_to_keep"),
    "EveryNStepsClosest": ("interval_steps", "max_to_keep"),
    "EveryNSeconds": ("interval_secs",),
    "CustomSteps": ("steps",),
}
"""Arguments that may be given without their names (orbax-checkpoint 0.12)."""


def _plain(node: ast.expr) -> object:
    """A literal; the seconds of a ``timedelta``; None for code."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "timedelta":
        units = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1, "weeks": 604_800}
        parts = [(units.get(k.arg or "", 0), _plain(k.value)) for k in node.keywords]
        parts += [(86_400, _plain(arg)) for arg in node.args[:1]]
        return sum(unit * int(n) for unit, n in parts if isinstance(n, (int, float)))
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return None
    return value


def _rule_of(asked: Asked) -> Told:
    if len(asked.words) != 1:
        raise Unclear("s3 takes one file, or - for standard input")
    found = list(bucket_rules.read_rules(_document(asked.words[0]), asked.store))
    told = [one for one in found if isinstance(one, Told)]
    why = "\n".join(str(one) for one in found if isinstance(one, Unclear))
    if asked.rule is not None:
        told = [one for one in told if one.name == asked.rule]
    if len(told) == 1:
        return told[0]
    if not told:
        raise Unclear(f"no rule of it can be said in a policy{':' if why else ''}\n{why}".rstrip())
    names = ", ".join(escape(one.name) for one in told)
    raise Unclear(f"it has {len(told)} rules that can be said ({names}); a file holds one policy: choose by --rule ID")


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "imported"


def _slashed(prefix: str) -> str:
    return prefix.strip("/") + "/" if prefix.strip("/") else ""


def _file(body: Mapping[str, object], notes: Iterable[str], origin: str) -> str:
    """A policy file with what cannot be said in it as comments."""
    lines = wrap(escape(origin), WIDTH - 2, break_on_hyphens=False)
    if notes := list(notes):
        lines.append("What means something else here, or cannot be said:")
        for note in notes:
            lines += wrap(note, WIDTH - 4, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
    comments = "".join(f"# {line}\n" for line in lines)
    return comments + yaml.dump(dict(body), Dumper=_Plain, sort_keys=False, default_flow_style=None, width=WIDTH)


class _Plain(yaml.SafeDumper):
    """Writes ``on`` without quotes: only YAML 1.1 takes it for true, and policies are read as YAML 1.2."""


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:bool" or first in "yYnNtTfF"]
    for first, found in yaml.SafeDumper.yaml_implicit_resolvers.items()
}


def _check(text: str) -> None:
    """What is printed can be used as it stands. Raises ConfigInvalid."""
    from lifecycle.config.load import parse
    from lifecycle.config.policies import compile_policy

    compile_policy(parse(text.encode("utf-8"), "the policy"))
