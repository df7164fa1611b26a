"""From lifecycle.yaml to the settings of one installation: stores, database, policies and conventions."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import lifecycle
from lifecycle.config import fields, schema
from lifecycle.config.check import check
from lifecycle.config.fields import Context
from lifecycle.config.load import Document, Loc, read_file
from lifecycle.config.log import Logging
from lifecycle.config.monitoring import Monitoring
from lifecycle.config.notifying import Notify
from lifecycle.config.policies import load_policies, meaning_digest
from lifecycle.config.pricing import prices_of
from lifecycle.config.problems import Bad, InvalidFiles, Problem, gather, nearest, show
from lifecycle.config.roots import canonical_root, is_read_only, overlap
from lifecycle.config.serving import Serving
from lifecycle.config.ticking import Ticking
from lifecycle.config.transfer import Transfer
from lifecycle.core.classes import parted
from lifecycle.core.model import Shape
from lifecycle.core.policy import Policy
from lifecycle.core.units import escape
from lifecycle.errors import Place
from lifecycle.layouts.conventions import Conventions, Declared, MetricSource
from lifecycle.layouts.registry import CATALOGUE
from lifecycle.sizing.prices import Price

__all__ = ["Settings", "StoreSettings", "default_settings", "load_policies", "load_settings"]

LEASE_TTL_S = 1800
PLAN_AGE_MAX_S = 86_400
APART = {"price", "capacity"}
"""Of a store, but no part of how it is reached: the settings hold them by themselves."""

BUILT_IN = frozenset(row.name for row in CATALOGUE.directories) | {row.name for row in CATALOGUE.files}
"""Names of the layouts that we know without being told."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """One store as configured; ``url`` is canonical, variables are filled in, secrets are never in it."""

    name: str
    url: str
    """``file:///absolute/path`` or ``scheme://host/prefix``, no slash at the end."""
    endpoint_url: str | None = None
    region: str | None = None
    profile: str | None = None
    addressing_style: str = "auto"
    """``auto``, ``path`` or ``virtual``."""
    storage_class: str | None = None
    """What copies are stored as in a bucket; its usual class when not given."""
    sentinel: str | None = None
    """Key of a file that is there only when the real store is."""
    state: str | None = None
    """Where we keep our own files, if not in ``.lifecycle`` below the root."""
    cross_mounts: bool = False
    workers: int = 1
    """Processes that walk a large tree."""
    node_local: bool = False
    """Whether it dies with its node: nothing there counts as durable."""
    node: str | None = None
    """Which node that is; this machine's name when not given."""
    exposed_after: int = 3600
    """Seconds after which what only it holds is a warning."""
    roots: tuple[str, ...] = ()
    """Canonical URLs of the directories that it consists of, where it is spread over several; ``url`` joins them."""
    place: Place = field(default=Place(""), compare=False)

    @property
    def read_only(self) -> bool:
        """Whether nothing can be changed there, so that nothing is ever dropped there or brought there."""
        return any(is_read_only(part.url) for part in self.parts)

    @property
    def parts(self) -> tuple[StoreSettings, ...]:
        """Itself, or each of its roots as if it were a store by itself."""
        return tuple(replace(self, url=root, roots=()) for root in self.roots) or (self,)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything one installation is told, checked as a whole."""

    stores: tuple[StoreSettings, ...]
    database: str = field(repr=False)
    """SQLAlchemy URL; it may hold a password that came from the environment, so it is never shown."""
    policies: tuple[Policy, ...]
    conventions: Conventions
    lease_ttl_s: int = LEASE_TTL_S
    references: tuple[tuple[str, str], ...] = ()
    """(name outside, ``store:key`` of the checkpoint it needs)."""
    parents: tuple[tuple[str, str], ...] = ()
    """(glob over runs, ``store:key`` of the checkpoint or run that they were made from)."""
    plan_age_max_s: int = PLAN_AGE_MAX_S
    prices: tuple[tuple[str, Price], ...] = ()
    """(place, price) of stores that have one and of their other classes: what has none costs nobody knows what."""
    capacities: tuple[tuple[str, int], ...] = ()
    """(store, bytes) of those of which it is said how much they hold; only forecasts ask."""
    digest: str = ""
    """Of what decides (not database, transfer, tick, notify, http, monitoring, log): else plans are stale."""
    source: str = ""
    transfer: Transfer = Transfer()  # noqa: RUF009  # an immutable value
    tick: Ticking = Ticking()  # noqa: RUF009  # an immutable value
    notify: tuple[Notify, ...] = ()
    http: Serving | None = None
    """None: nobody is answered over HTTP."""
    monitoring: Monitoring = Monitoring()  # noqa: RUF009  # an immutable value
    log: Logging = Logging()  # noqa: RUF009  # an immutable value


def load_settings(path: Path, env: Mapping[str, str] | None = None) -> Settings:
    """The settings in ``path`` with the policies and references that it names.

    Args:
        path: lifecycle.yaml; relative paths in it start at its directory.
        env: variables for ``${NAME}`` in URLs and paths; the process environment when not given.

    Raises:
        ConfigInvalid: with all that is wrong, in this file and in those it names.
    """
    document = read_file(path)
    problems: list[Problem] = []
    context = Context(os.environ if env is None else env, os.path.abspath(path.parent))
    file = check(schema.SettingsFile, document, problems, context)
    if file is None:
        raise InvalidFiles(problems)
    stores = tuple(_stores(file, document))
    declared = _declared(file, document, problems)
    references: list[tuple[str, str]] = []
    policies: tuple[Policy, ...] = ()
    parents: list[tuple[str, str]] = []
    with gather(problems):
        parents = _parents(file, document)
    with gather(problems):
        references = _references(file, document, path)
    with gather(problems):
        paths = [path.parent / name for name in file.policies]
        layouts = BUILT_IN | {layout.name for layout in declared}
        policies = load_policies(paths, file.stores.keys(), layouts, {store.name: store.url for store in stores})
    problems += _overlaps(stores, policies)
    prices = _prices(file, document, problems)
    if problems:
        raise InvalidFiles(problems)
    conventions = _conventions(file, declared)
    ttl_s = file.leases.ttl if file.leases else LEASE_TTL_S
    more = tuple(one for one in (prices, tuple(parents)) if one)
    meant = (stores, policies, conventions, ttl_s, tuple(references), file.plan_age_max, *more)
    return Settings(
        stores=stores,
        database=file.database,
        policies=policies,
        conventions=conventions,
        lease_ttl_s=ttl_s,
        references=tuple(references),
        parents=tuple(parents),
        plan_age_max_s=file.plan_age_max,
        prices=prices,
        capacities=tuple((name, store.capacity) for name, store in file.stores.items() if store.capacity is not None),
        digest=meaning_digest(*meant),
        source=document.file,
        transfer=file.transfer.meant,
        tick=file.tick.meant,
        notify=tuple(item.meant for item in file.notify),
        http=file.http.meant if file.http else None,
        monitoring=file.monitoring.meant,
        log=file.logging(os.path.abspath(path.parent)),
    )


def _stores(file: schema.SettingsFile, document: Document) -> Iterator[StoreSettings]:
    for name, written in file.stores.items():
        known = written.model_dump(exclude=APART) | written.where
        yield StoreSettings(name, place=document.place(("stores", name), key=True), **known)


def _conventions(file: schema.SettingsFile, declared: tuple[Declared, ...]) -> Conventions:
    """What the site tells about its trees."""
    return Conventions(
        declared=declared,
        ignore=tuple(file.ignore),
        hold_files=frozenset(file.hold_files),
        lease_suffix=file.leases.suffix if file.leases else None,
        resume_keys=Conventions().resume_keys if file.resume_keys is None else tuple(file.resume_keys),
        metric_sources=tuple(MetricSource(item.file, item.step) for item in file.metrics),
    )


def default_settings(root: str, database: str) -> Settings:
    """What ``plan --root`` uses: one store called ``here`` and the policy that comes with the package.

    Args:
        root: a directory, relative to where we are if it is not absolute, or a URL.
        database: SQLAlchemy URL.

    Raises:
        ConfigInvalid: ``root_too_broad`` and the like.
    """
    url = root if "://" in root or root.startswith("~") else os.path.abspath(root)
    try:
        store = StoreSettings("here", canonical_root(url, root))
    except Bad as bad:
        raise InvalidFiles([Problem(Place("--root"), str(bad), bad.code)]) from bad
    policies = load_policies([_packaged("default.yaml")])
    conventions = Conventions()
    return Settings(
        stores=(store,),
        database=database,
        policies=policies,
        conventions=conventions,
        digest=meaning_digest((store,), policies, conventions, LEASE_TTL_S, (), PLAN_AGE_MAX_S),
        source="built in",
    )


def _packaged(name: str) -> Path:
    """A policy that comes with us: inside the installed package, or beside it in a checkout."""
    inside = Path(lifecycle.__file__).parent / "policies" / name
    return inside if inside.exists() else Path(lifecycle.__file__).parent.parent / "policies" / name


def _store(place: str) -> str:
    return parted(place)[0]


def _overlaps(stores: Sequence[StoreSettings], policies: Iterable[Policy]) -> Iterator[Problem]:
    """Stores that lie in each other; worst where one of them takes copies, for a copy may be its own original then."""
    takers = {name: policy for policy in policies for place in policy.place for name in map(_store, place.on)}
    for i, store in enumerate(stores):
        for other in stores[:i]:
            pairs = ((mine, theirs) for mine in store.parts for theirs in other.parts)
            if not any(overlap((a.url, a.endpoint_url), (b.url, b.endpoint_url)) for a, b in pairs):
                continue
            text = f"stores.{store.name}: overlaps the store {other.name}: "
            policy = takers.get(store.name) or takers.get(other.name)
            if policy is None:
                yield Problem(store.place, f"{text}no checkpoint may be in two stores")
            else:
                text += f"what the policy {policy.name} places there would be its own copy"
                yield Problem(store.place, text, "tier_target_overlaps")


def _prices(file: schema.SettingsFile, document: Document, problems: list[Problem]) -> tuple[tuple[str, Price], ...]:
    def wrong(store: str, text: str) -> None:
        problems.append(Problem(document.place(("stores", store, "price")), f"stores.{store}.price: {text}"))

    files = {name: store.price for name, store in file.stores.items()}
    usual = {name: "STANDARD" if store.url.startswith("s3://") else "" for name, store in file.stores.items()}
    return prices_of(files, {name: store.storage_class or usual[name] for name, store in file.stores.items()}, wrong)


def _declared(file: schema.SettingsFile, document: Document, problems: list[Problem]) -> tuple[Declared, ...]:
    found: dict[str, Declared] = {}
    for i, layout in enumerate(file.layouts):
        if layout.label in found:
            text = f"layouts: {show(layout.label)} is declared above: give this one another name"
            problems.append(Problem(document.place(("layouts", i)), text))
        found[layout.label] = Declared(
            name=layout.label,
            template=layout.pattern,
            shape=Shape.GROUP if layout.stem is not None else layout.shape,
            runs=tuple(layout.runs),
            proof=layout.proof,
            writing=layout.writing,
            kind=layout.kind,
            rotation=layout.rotation,
        )
    return tuple(found.values())


def _references(file: schema.SettingsFile, document: Document, path: Path) -> list[tuple[str, str]]:
    """Names outside and what they need; the key ``file`` names a further file of them."""
    stores = file.stores.keys()
    written = dict(file.references)
    found: list[tuple[str, str]] = []
    problems: list[Problem] = []
    more = written.pop("file", None)
    for name, target in written.items():
        found += _targets(name, target, document, ("references", name), stores, problems)
    if more is not None:
        place = document.place(("references", "file"))
        try:
            name = fields.plain_text(more)
        except Bad as bad:
            problems.append(Problem(place, f"references.file: {bad}"))
        else:
            with gather(problems):
                other = read_file(path.parent / name)
                for name, target in other.value.items():
                    found += _targets(name, target, other, (name,), stores, problems)
    if problems:
        raise InvalidFiles(problems)
    return found


def _parents(file: schema.SettingsFile, document: Document) -> list[tuple[str, str]]:
    """Globs over runs and what those were made from."""
    found: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for pattern, target in file.parents.items():
        try:
            fields.run_pattern(pattern, frozenset(file.stores))
        except Bad as bad:
            problems.append(Problem(document.place(("parents", pattern), key=True), f"parents: {bad}"))
        found += _targets(pattern, target, document, ("parents", pattern), file.stores.keys(), problems)
    if problems:
        raise InvalidFiles(problems)
    return found


def _targets(
    name: str, target: object, document: Document, loc: Loc, stores: Collection[str], problems: list[Problem]
) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for one in target if isinstance(target, list) else [target]:
        store, colon, key = one.partition(":") if isinstance(one, str) else ("", "", "")
        text = ""
        if not colon:
            text = f'needs store:key, such as "{min(stores)}:e1/step-1", not {show(one)}'
        elif store not in stores:
            text = f"there is no store {show(store)}{nearest(store, stores)}"
        else:
            try:
                fields.relative(key)
            except Bad as bad:
                text = str(bad)
        if text:
            way = ".".join(escape(str(part)) for part in loc)
            problems.append(Problem(document.place(loc), f"{way}: {text}"))
        found.append((name, str(one)))
    return found
