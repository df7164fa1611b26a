"""Which files of a run say what it was made from, under which keys, and where in the known stores that lies.

A run's own arguments and its newest checkpoint are read, nothing else: small files, each cut off at a megabyte. What
a text means is found in ``pointers``; what lies in another store is found when plans are made, for all stores are
known only then.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from lifecycle.core.model import OnDangle, Pointer, PointerRole
from lifecycle.layouts.peek import Look, parse_json
from lifecycle.layouts.pointers import SCHEME, scheme_url
from lifecycle.layouts.unions import roots_of

FILE_MAX_BYTES = 1024 * 1024
"""No configuration that a person reads is longer; of a longer one the beginning is read, and of JSON nothing."""
DEPTH_MAX, VALUES_MAX = 8, 20_000
"""How deep and how far a file is looked through."""


class Source(NamedTuple):
    """A file, and the keys under which it names a parent, at whatever depth; ``a.b`` is ``b`` right below ``a``."""

    file: str
    keys: frozenset[str]


_ARGUMENTS = frozenset({
    "resume_from_checkpoint", "ckpt_path",  # transformers, Lightning
    "restore_from_path", "init_from_nemo_model", "init_from_ptl_ckpt", "restore_config.path",  # NeMo
    "pretrained_checkpoint",  # Megatron
    "initial_load_path", "resume_checkpoint_path", "load_path",  # TorchTitan, nanotron, Composer
    "model_name_or_path", "adapter_name_or_path",  # scripts of transformers, LLaMA-Factory
})  # fmt: skip

OF_RUN = tuple(
    Source(file, _ARGUMENTS)
    for file in (
        ".hydra/config.yaml",
        "hparams.yaml",
        "hparams.json",
        "config.yaml",
        "args.json",
        "args.yaml",
        "training_args.json",
        "training_args.yaml",
        "run_config.yaml",
    )
)
"""In the run's directory."""
OF_UNIT = (
    Source("config.json", frozenset({"_name_or_path"})),  # transformers PretrainedConfig
    Source("config.yaml", frozenset({"resume_checkpoint_path"})),  # nanotron
    Source("run_config.yaml", frozenset({"load", "pretrained_checkpoint"})),  # Megatron Bridge
    Source("training_args.json", _ARGUMENTS),
    Source("training_args.yaml", _ARGUMENTS),
)
"""In the run's newest checkpoint."""

_HUB = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)
_LINE = re.compile(r"^([ \t]*(?:- )?)([\w.-]+):[ \t]*(?:[\"']?([^\"'\n#]+?)[\"']?[ \t]*)?(?:#.*)?\r?$", re.MULTILINE)
_NOTHING = frozenset({"null", "None", "~", "true", "false", "True", "False", "auto", "last", "latest", ""})


def is_hub_name(text: str) -> bool:
    """Whether a text that leads nowhere is likely the name of a model on a hub, and no path."""
    return _HUB.fullmatch(text) is not None


def said(data: bytes, name: str, keys: Collection[str]) -> list[str] | None:
    """Texts under those keys in a JSON or YAML file, in order; None where it has such keys and is no JSON object.

    Of YAML only plain ``key: value`` lines are read.
    """
    if name.endswith(".json"):
        document = parse_json(data)
        if document.look is not Look.SEEN:
            return None if any(key.rpartition(".")[2].encode() in data for key in keys) else []
        pairs = _json_pairs(document.data)
    else:
        pairs = _yaml_pairs(data)
    found = [value for path, value in pairs if value not in _NOTHING and _is_meant(path, keys)]
    return list(dict.fromkeys(found))


def _is_meant(path: str, keys: Collection[str]) -> bool:
    above, _, key = path.rpartition(".")
    return key in keys or f"{above.rpartition('.')[2]}.{key}" in keys


def _json_pairs(document: dict[str, object]) -> Iterator[tuple[str, str]]:
    """(path, text) of every text, breadth first."""
    queue: list[tuple[str, object, int]] = [("", document, 0)]
    for path, value, depth in queue:  # it grows while it is gone through
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, dict) and depth < DEPTH_MAX and len(queue) < VALUES_MAX:
            queue += [(f"{path}.{key}" if path else str(key), inner, depth + 1) for key, inner in value.items()]
        elif isinstance(value, list) and depth < DEPTH_MAX and len(queue) < VALUES_MAX:
            queue += [(path, inner, depth + 1) for inner in value[: VALUES_MAX - len(queue)]]


def _yaml_pairs(data: bytes) -> Iterator[tuple[str, str]]:
    """(path, text) of every line that has both key and value; the path by indentation."""
    above: list[tuple[int, str]] = []
    text = data[:FILE_MAX_BYTES].decode("utf-8", "surrogateescape")
    for line in _LINE.finditer(text):
        depth, key, value = len(line[1]), line[2], line[3]
        while above and above[-1][0] >= depth:
            above.pop()
        if value is not None:
            yield ".".join([*(name for _, name in above), key]), value
        elif len(above) < DEPTH_MAX:
            above.append((depth, key))


def is_own(run: str, key: str | None) -> bool:
    """Whether a key is the run's own directory or one above: a run that goes on from itself has no parent in it."""
    return key is not None and f"{run}/".startswith(f"{key}/")


# -- parents in other stores


def abroad(pointer: Pointer, urls: Mapping[str, str]) -> list[Pointer]:
    """The pointer as it is, or one for each known store in which lies what it names outside its own.

    One that may also mean something beside it, since both have the same name, goes on protecting that.

    Args:
        pointer: as a scan of its own store found it.
        urls: known stores with their URLs.
    """
    if "external_reference" not in pointer.flags:
        return [pointer]
    flags = tuple(flag for flag in pointer.flags if flag != "external_reference")
    targets = {
        f"{name}:{key}": None
        for place in _places(pointer, urls.get(pointer.store, ""))
        for name, url in sorted(urls.items())
        for root in roots_of(url)
        if (key := _below(scheme_url(root), place)) and (name != pointer.store or _is_whole(pointer.text))
    }
    found = [replace(pointer, target=target, flags=flags) for target in targets]
    return found if found and pointer.target is None else [pointer, *found]


def _places(pointer: Pointer, own: str) -> list[str]:
    """URLs for what a pointer's text names: as it stands, an absolute path, or relative ways out of its store.

    A link's way begins where it stands; a text's in the run, or in the directory above.
    """
    text = pointer.text
    if SCHEME.match(text):
        return [scheme_url(text)]
    if text.startswith("/"):
        return [_plain(text)]
    run = pointer.run
    starts = [pointer.key.rpartition("/")[0]] if pointer.form == "symlink" else [run, run.rpartition("/")[0]]
    tops = [root.removeprefix("file://") for root in roots_of(own) if root.startswith("file://")]
    return [_plain(f"{top}/{start}/{text}") for top in tops for start in dict.fromkeys(starts)]


def _is_whole(text: str) -> bool:
    """Whether a text is a place by itself; what a relative one means in its own store is known already."""
    return text.startswith("/") or SCHEME.match(text) is not None


def _plain(text: str) -> str:
    """The URL of an absolute path without ``.`` and ``..``."""
    parts: list[str] = []
    for part in text.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "file:///" + "/".join(parts)


def _below(root: str, place: str) -> str:
    """The key below a store's root, or empty."""
    return place[len(root) + 1 :] if root and place.startswith(f"{root}/") else ""


def declared(
    parents: Collection[tuple[str, str]], runs: Iterator[tuple[str, str]], matches: Mapping[str, re.Pattern[str]]
) -> Iterator[Pointer]:
    """Pointers for what a site declares: each run that a glob matches names its parents.

    Args:
        parents: (glob over ``store:path``, ``store:key`` of a checkpoint or a run).
        runs: (store, path) of every run there is.
        matches: the globs, compiled.
    """
    for store, path in runs:
        for pattern, target in parents:
            if matches[pattern].fullmatch(f"{store}:{path}") and target != f"{store}:{path}":
                yield Pointer(store, path, path, PointerRole.RESUME, target, target, "declared", OnDangle.CRASH)
