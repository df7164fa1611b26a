"""From a case's policy to our own files: the whole table of what its words are called here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.cases.box import Box
from tests.cases.grammar import Case, NeedsMore, Raw, Unsupported, age_ns
from tests.cases.tiers import Tier, tiers

STORE = "here"
PERIODS = ("hourly", "daily", "weekly", "monthly", "yearly")
LATER = {"schedule", "copies", "place", "verify", "archive", "slim", "cron", "tiers", "copy"}
PROOFLESS = {"flat", "lightning", "deepspeed", "accelerate", "tf", "nemo"}
"""Layouts whose units in a bucket have no object that goes first: there a delete is at once."""

Doc = dict[str, Any]


@dataclass(slots=True)
class Site:
    """Our files for one case, and what must be done besides."""

    settings: Doc
    policy: Doc
    names: dict[str, str]
    """Store name to the case's root."""
    tiers: list[Tier] = field(default_factory=list)
    purge: bool = False
    sentinel: str | None = None
    literal_roots: list[str] = field(default_factory=list)
    """Roots as the case spells them, where the loader is to be asked about the spelling itself."""

    def write(self, home: Path) -> Path:
        """Write lifecycle.yaml and the policy; the path of the former."""
        (home / "policies").mkdir(parents=True, exist_ok=True)
        (home / "policies" / "case.yaml").write_text(dump(self.policy), encoding="utf-8")
        path = home / "lifecycle.yaml"
        path.write_text(dump(self.settings), encoding="utf-8")
        return path


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def _plain(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """A scalar written without quotes: implicit resolution must give the node's own tag."""
    tag = dumper.resolve(yaml.ScalarNode, str(text), (True, False))
    return dumper.represent_scalar(tag, str(text))


_Dumper.add_representer(Raw, _plain)


def dump(document: Doc) -> str:
    """YAML, nothing shared, keys in the order given."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
    return text


def translate(case: Case, box: Box) -> Site:
    """Our files for ``case``. Raises Unsupported, NeedsMore."""
    if needed := sorted(LATER & set(case.policy)):
        raise NeedsMore(f"needs {', '.join(needed)}")
    return _Translation(case, box).site()


class _Translation:
    def __init__(self, case: Case, box: Box) -> None:
        self.case, self.box = case, box
        self.given = dict(case.policy)
        self.names = self._stores()
        self.settings: Doc = {"stores": {}, "database": "sqlite:///index.db", "policies": ["policies"]}
        self.policy: Doc = {"policy": "case"}
        self.keep: list[Doc] = []
        self.limits: Doc = {}
        self.layout: Doc = {}
        self.references: Doc = {}
        self.ended: Doc = {}
        self.out = Site(self.settings, self.policy, self.names)

    def _stores(self) -> dict[str, str]:
        roots = self.case.roots or ("",)
        if len(roots) == 1:
            return {STORE: roots[0]}
        return {re.sub(r"[^a-z0-9_-]", "-", root.lower()): root for root in roots}

    def id(self, path: str) -> str:
        """``store:key`` of a path of the case."""
        for name, root in self.names.items():
            if not root or path == root or path.startswith(root + "/"):
                return f"{name}:{path[len(root) :].strip('/')}"
        return f"{next(iter(self.names))}:{path}"

    def site(self) -> Site:
        for key, value in self.case.policy.items():
            self._take(key, value)
        self._roots()
        self._tiers()
        self._rows()
        self._layouts()
        self._requested()
        if self.keep:
            self.policy["keep"] = self.keep
        elif not (self.ended or {"tier", "incomplete", "staging", "orphans", "remove_empty_dirs"} & set(self.given)):
            self.policy["keep"] = []
        if self.ended:
            self.policy["ended"] = self.ended
        if self.case.store != "posix" and self._is_proofless():
            self.limits["trash"] = "none"
        if self.limits:
            self.policy["limits"] = self.limits
        if self.references:
            self.settings["references"] = self.references
        return self.out

    def _is_proofless(self) -> bool:
        return self.case.layout in PROOFLESS or "stem" in self.given

    def _take(self, key: str, value: Any) -> None:
        if key in RULES:
            self.keep += RULES[key](value)
        elif hasattr(self, "on_" + key):
            getattr(self, "on_" + key)(value)
        elif key not in SILENT:
            raise Unsupported(f"policy key {key}")

    # -- keep

    def on_keep_best(self, value: Any) -> None:
        if not isinstance(value, dict):
            self.keep.append({"best": value})
            return
        source = value.get("source")
        if source is not None:
            self.settings["metrics"] = [{"file": self._in_run(str(source))}]
        names = {"n": "count", "count": "count", "metric": "metric", "mode": "mode", "missing": "missing"}
        if unknown := set(value) - set(names) - {"source"}:
            raise Unsupported(f"keep_best key {', '.join(sorted(unknown))}")
        best = {names[k]: v for k, v in value.items() if k in names}
        self.keep.append({"best": {"count": 1, **best}})

    def _in_run(self, source: str) -> str:
        """The path of a file of metrics, from the run's directory on."""
        folders = {e.path.rpartition("/")[0] for e in self.case.tree}
        runs = {folder.rpartition("/")[0] for folder in folders} | folders
        inside = [run for run in runs if run and source.startswith(run + "/")]
        return source[len(max(inside, key=len)) + 1 :] if inside else source

    # -- ends of runs

    def on_delete_finished_runs_after(self, value: Any) -> None:
        runs = self.given.get("runs") or {}
        over = [
            run for run, state in runs.items() if str(state) in ("finished", "ended", "completed", "failed", "done")
        ]
        if over:
            self.ended = {"runs": [self.id(str(run)) + "/**" for run in over], "delete_after": value, **self._floor()}

    def on_runs(self, value: Any) -> None:
        if not isinstance(value, dict):
            raise Unsupported("policy key runs that is no mapping")

    def on_dead_run(self, value: Any) -> None:
        quiet = value.get("quiet")
        self.ended = {"quiet": quiet, "step_max": value.get("max_step"), "delete_after": quiet, "floor": "none"}
        self.ended = {k: v for k, v in self.ended.items() if v is not None}

    def _floor(self) -> Doc:
        return {"floor": "none"} if self.given.get("floor") == 0 else {}

    def on_floor(self, value: Any) -> None:
        if isinstance(value, int) and value > 1:
            self.keep.append({"last": value})

    def on_apply_delete_requests(self, value: Any) -> None:
        if value is not True:
            raise Unsupported("apply_delete_requests that is not true")

    def _requested(self) -> None:
        """Requests to delete entries of a registry: nothing is wanted of those runs any more."""
        if not self.given.get("apply_delete_requests"):
            return
        rows = [row for row in self.case.rows or [] if row.get("delete_requested")]
        paths = {str(row.get("path", row.get("id"))) for row in rows}
        runs = sorted({path.rpartition("/")[0] for path in paths})
        if runs:
            self.ended = {"runs": [self.id(run) for run in runs], "delete_after": "1h", **self._floor()}

    # -- what is not complete

    def on_incomplete(self, value: Any) -> None:
        after = value.get("delete_after") if isinstance(value, dict) else value
        self.policy["incomplete"] = {**self.policy.get("incomplete", {}), "delete_after": after}

    def on_staging(self, value: Any) -> None:
        after = value.get("delete_after") if isinstance(value, dict) else value
        self.policy["incomplete"] = {"delete_after": after, **self.policy.get("incomplete", {}), "staging_after": after}

    def on_remove_empty_dirs(self, value: Any) -> None:
        if value is True:
            self.policy.setdefault("incomplete", {"delete_after": "1h"})

    # -- limits and trash

    def on_guard(self, value: Any) -> None:
        for key, number in (value if isinstance(value, dict) else {"max_delete_fraction": value}).items():
            if key not in GUARDS:
                raise Unsupported(f"guard key {key}")
            zero = number == 0 and not isinstance(number, bool | str)
            self.limits[GUARDS[key]] = "none" if zero else _fraction(GUARDS[key], number)

    def on_grace(self, value: Any) -> None:
        self.limits["grace"] = "none" if value in (0, "0") else value

    def on_trash(self, value: Any) -> None:
        self.out.purge = True
        after = value.get("purge_after") if isinstance(value, dict) else value
        self.limits["trash"] = "none" if after in (0, "0", False) else after

    def on_mode(self, value: Any) -> None:
        if value not in ("quarantine", "delete", "trash"):
            raise Unsupported(f"mode {value}")

    # -- capacity

    def on_free_space(self, value: Any) -> None:
        """So much is to be free; whatever is not protected may go for it, the oldest first."""
        if unknown := set(value) - {"min_free", "order", "until_free"} or value.get("order") != "oldest_first":
            raise Unsupported(f"free_space key {', '.join(sorted(unknown or {'order'}))}")
        size = (self.case.capacity or {"size": 0})["size"]
        above, until = (
            100 * (size - value[key]) / size
            for key in ("min_free", "until_free" if "until_free" in value else "min_free")
        )
        self.policy["pressure"] = {"on": STORE, "above": f"{above:g}%", "until": f"{until:g}%", "order": ["name"]}
        self.keep.append({"name": "*"})

    # -- groups, names, places

    def on_group_by(self, value: Any) -> None:
        self.policy["group_by"] = value

    def on_group(self, value: Any) -> None:
        self.policy["group_by"] = f"(?:^|/)({re.escape(str(value))})(?:/|$)"

    def on_name(self, value: Any) -> None:
        self.layout["template"] = value

    def on_stem(self, value: Any) -> None:
        self.layout["stem"] = value

    def on_in_progress_marker(self, value: Any) -> None:
        self.layout["writing"] = value

    def on_ignore(self, value: Any) -> None:
        self.settings["ignore"] = value if isinstance(value, list) else [value]

    on_exclude = on_ignore

    def on_include(self, value: Any) -> None:
        globs = value if isinstance(value, list) else [value]
        self.policy.setdefault("match", {})["runs"] = [f"{next(iter(self.names))}:{glob}" for glob in globs]

    on_match = on_select = on_paths = on_path = on_glob = on_only = on_scope = on_include

    def on_timezone(self, value: Any) -> None:
        self.policy["timezone"] = value

    on_tz = on_timezone

    # -- conventions

    def on_lease(self, value: Any) -> None:
        self.settings["leases"] = dict(value)

    def on_hold_file(self, value: Any) -> None:
        self.settings["hold_files"] = value if isinstance(value, list) else [value]

    on_hold_files = on_hold_file

    def on_keep_pointer(self, value: Any) -> None:
        keys = value if isinstance(value, list) else [value]
        self.settings["resume_keys"] = list(dict.fromkeys(["ckpt_path", "resume_from_checkpoint", *map(str, keys)]))

    on_keep_pointers = on_keep_pointer

    def on_registry(self, value: Any) -> None:
        pairs = value.items() if isinstance(value, dict) else ((f"registry/{n}", v) for n, v in enumerate(value, 1))
        for name, target in pairs:
            self.references[str(name)] = self.id(str(target))

    on_references = on_registry

    def on_depends(self, value: Any) -> None:
        for dependent, base in value.items():
            for one in base if isinstance(base, list) else [base]:
                self.references.setdefault(self.id(str(dependent)), []).append(self.id(str(one)))

    on_depends_on = on_dependencies = on_needs = on_depends

    def _rows(self) -> None:
        """Index rows that are entries of a registry, or tell what a checkpoint needs."""
        for row in self.case.rows or []:
            if "path" in row:
                self.references[str(row["id"])] = self.id(str(row["path"]))
            for key in NEEDS & set(row):
                if row[key] is not None:
                    self.on_depends({row["id"]: row[key]})

    # -- roots

    def on_root(self, value: Any) -> None:
        text = str(value)
        found = re.sub(r"\$\{?([A-Za-z_]\w*)\}?", lambda m: self.case.env.get(m[1], m[0]), text)
        if "$" in found or not found.strip("/") or found.startswith(("/", "~")) or ".." in found:
            self.out.literal_roots.append(text if "$" in found else found)
        self.names.clear()
        self.names[STORE] = "" if "$" in found or "~" in found else found.strip("/")

    def on_roots(self, value: Any) -> None:
        raise Unsupported("policy key roots")

    def on_root_sentinel(self, value: Any) -> None:
        self.out.sentinel = str(value)

    def _roots(self) -> None:
        for name, root in self.names.items():
            store: Doc = {"url": self.box.url(root)}
            if self.out.sentinel:
                store["sentinel"] = self.out.sentinel
            self.settings["stores"][name] = store
            if root.split("/")[0] in ("home", "root", "Users"):
                self.out.literal_roots.append("/" + root)

    # -- tiers

    def on_tier(self, value: Any) -> None:
        del value  # they come after the roots, whatever the order of the file

    def _tiers(self) -> None:
        homes = list(self.names)
        self.out.tiers = tiers(self.case)
        if not self.out.tiers:
            return
        places: list[Doc] = []
        for tier in sorted(self.out.tiers, key=lambda t: age_ns(t.after), reverse=True):
            store: Doc = {"url": self.box.url(tier.root)}
            if tier.storage_class:
                store["storage_class"] = tier.storage_class
            self.settings["stores"][tier.name] = store
            self.names[tier.name] = tier.root
            places.append({"older": {"than": tier.after, "of": "now"}, "on": [tier.name]})
        if len(homes) == 1:  # with several, what is young stays on its own
            places.append({"on": homes})
        self.policy["place"] = places
        self.policy.setdefault("match", {}).setdefault("stores", homes)

    # -- layouts

    def _layouts(self) -> None:
        layout = self.layout
        if self.case.layout == "generic":
            declared = {"name": "generic", "template": "step-{step}", "proof": "DONE", "shape": "dir", **layout}
            if "stem" in declared:
                declared.pop("template"), declared.pop("shape"), declared.pop("proof")
            self.settings["layouts"] = [declared]
        elif self.case.layout == "flat" and not layout:
            self.settings["layouts"] = [
                {"name": f"flat-{n}", "template": template} for n, template in enumerate(self._guessed(), 1)
            ]
        elif layout.keys() & {"template", "stem"}:
            self.settings["layouts"] = [{"name": self.case.layout or "named", **layout}]
        elif "writing" in layout:
            raise Unsupported(f"in_progress_marker with layout {self.case.layout}")

    def _guessed(self) -> list[str]:
        """Templates for files without any: the last number in a name is its step."""
        names = {e.path.rpartition("/")[2] for e in self.case.tree}
        found = (re.fullmatch(r"(.*?)(\d+)(\D*\.\w+)", name) for name in sorted(names))
        return list(dict.fromkeys(m[1] + "{step}" + m[3] for m in found if m and m[1]))


def _one(rule: str) -> Callable[[Any], list[Doc]]:
    return lambda value: [{rule: value}]


def _each(rule: str) -> Callable[[Any], list[Doc]]:
    return lambda value: [{rule: v} for v in (value if isinstance(value, list) else [value])]


def _every(value: Any) -> list[Doc]:
    if isinstance(value, dict):
        names = {"step": "steps", "epoch": "epochs", "n": "steps", "interval": "steps", "every": "steps"}
        return [{"every": {names.get(k, k): v for k, v in value.items()}}]
    return [{"every": {"steps": value}}]


def _fraction(name: str, value: Any) -> Any:
    return float(value) if name == "delete_fraction_max" and type(value) is int else value


RULES: dict[str, Callable[[Any], list[Doc]]] = {
    "keep_last": _one("last"),
    "keep_first": _one("first"),
    "keep_every": _every,
    "keep_steps": lambda value: [{"steps": value if isinstance(value, list) else [value]}],
    "max_age": lambda value: [{"younger": {"than": value, "of": "now"}}],
    "keep_within": lambda value: [{"younger": {"than": value, "of": "newest"}}],
    "keep_younger": lambda value: [{"younger": {"than": value, "of": "now"}}],
    "min_age": lambda value: [{"younger": {"than": value, "of": "now"}}],
    "keep_tag": _each("tagged"),
    "keep_tags": _each("tagged"),
    "keep_name": _each("name"),
    "keep_names": _each("name"),
    "keep_final": lambda value: ["final"] if value is True else [{"final": value}],  # type: ignore[list-item]
    **{f"keep_{period}": _one(period) for period in PERIODS},
}
GUARDS = {
    "max_delete_fraction": "delete_fraction_max",
    "max_delete_count": "deletes_max",
    "max_deletes": "deletes_max",
    "max_delete": "deletes_max",
    "max_delete_bytes": "delete_bytes_max",
    "max_delete_per_run": "run_deletes_max",
}
NEEDS = {"base", "depends_on", "needs", "delta_of", "parent", "requires"}
SILENT = {"orphans", "mpu", "layout"}
"""Words that ask for what we never do unasked: orphans are no kind of thing here, uploads are their owners'."""
