"""What right files mean: the example policies, a whole configuration, and which roots are let through."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lifecycle.config.compile import Settings, StoreSettings, default_settings, load_settings
from lifecycle.config.load import read_file
from lifecycle.config.policies import _canonical, load_policies, meaning_digest
from lifecycle.config.problems import Bad, InvalidFiles
from lifecycle.config.roots import canonical_root, overlap
from lifecycle.config.serving import Listen, Serving
from lifecycle.config.transfer import Transfer
from lifecycle.core.calendar import Window
from lifecycle.core.model import Kind, Shape
from lifecycle.core.policy import (
    Age,
    Anchor,
    Best,
    Bucket,
    Ended,
    Every,
    Final,
    First,
    Incomplete,
    Last,
    Limits,
    Match,
    Measure,
    Name,
    Period,
    Pick,
    Policy,
    Pressure,
    Steps,
    Tagged,
    Unit,
    Younger,
)
from lifecycle.core.policy import (
    Place as Lodging,
)
from lifecycle.errors import ConfigInvalid
from lifecycle.layouts.conventions import Conventions, Declared, MetricSource
from lifecycle.layouts.table import Rotation
from lifecycle.ports.secret import Reference
from lifecycle.sizing.presets import PRESETS
from lifecycle.sizing.prices import Restore, Tier
from lifecycle.world import _rules

EXAMPLES = Path(__file__).parents[2] / "policies"
H, D = 3600, 86_400

WHOLE = """\
stores:
  hot: file://${CKPT}
  warm:
    url: s3://bucket/prefix/
    endpoint_url: http://127.0.0.1:9000/
    region: eu-north-1
    profile: archive
    addressing_style: path
    sentinel: .ckpt-root
    state: /mnt/own/.lifecycle
    cross_mounts: true
    workers: 4
database: sqlite:///index.db
policies: [policies, more.yaml]
layouts:
  - {name: ep-ba, template: "ep{epoch}-ba{step}-rank0.pt", runs: ["composer/**"]}
  - {name: "step-{step}", proof: DONE, writing: manifest.copy, kind: weights, shape: dir, rotation: crash}
  - {stem: "ckpt-{step}"}
metrics: [{file: history.jsonl}, {file: logs/eval.jsonl, step: global_step}]
ignore: ["_todelete/**"]
hold_files: [HOLD]
leases: {suffix: .lease, ttl: 20m}
resume_keys: [ckpt_path]
references:
  prod/model/3: "hot:e1/step-1"
  file: registry.yaml
plan_age_max: 12h
transfer: {bandwidth: 3Gbit/s, parallel: 8, window: "22:00-06:00", timezone: Europe/Berlin}
"""


def write(base: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (base / name).parent.mkdir(exist_ok=True, parents=True)
        (base / name).write_text(text)
    return base / "lifecycle.yaml"


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    files = {
        "lifecycle.yaml": WHOLE,
        "policies/b.yaml": 'policy: b\nmatch: {runs: ["hot:b/**"], stores: [hot, warm]}\n',
        "policies/a.yml": "policy: a\n",
        "policies/.hidden.yaml": "not a policy",
        "policies/README.md": "not a policy",
        "more.yaml": 'policy: c\nmatch: {runs: ["w*:c"]}\n',
        "registry.yaml": "prod/model/4: [warm:e2/step-2, 'hot:e2/step-2']\n",
    }
    return write(tmp_path, files)


def test_a_whole_configuration(whole: Path):
    settings = load_settings(whole, {"CKPT": "/mnt/own/ckpt"})
    hot, warm = settings.stores
    assert hot == StoreSettings("hot", "file:///mnt/own/ckpt")
    assert (hot.place.line, hot.place.column) == (2, 3)
    assert warm == StoreSettings(
        "warm",
        "s3://bucket/prefix",
        endpoint_url="http://127.0.0.1:9000",
        region="eu-north-1",
        profile="archive",
        addressing_style="path",
        sentinel=".ckpt-root",
        state="/mnt/own/.lifecycle",
        cross_mounts=True,
        workers=4,
    )
    assert settings.database == f"sqlite:///{whole.parent}/index.db"
    assert [(p.name, p.source) for p in settings.policies] == [
        ("a", f"{whole.parent}/policies/a.yml:1"),
        ("b", f"{whole.parent}/policies/b.yaml:1"),
        ("c", f"{whole.parent}/more.yaml:1"),
    ]
    assert settings.conventions == Conventions(
        declared=(
            Declared("ep-ba", "ep{epoch}-ba{step}-rank0.pt", runs=("composer/**",)),
            Declared(
                "step-{step}",
                "step-{step}",
                Shape.DIR,
                proof="DONE",
                writing="manifest.copy",
                kind=Kind.WEIGHTS,
                rotation=Rotation.CRASHES,
            ),
            Declared("ckpt-{step}", "ckpt-{step}", Shape.GROUP),
        ),
        ignore=("_todelete/**",),
        hold_files=frozenset({"HOLD"}),
        lease_suffix=".lease",
        resume_keys=("ckpt_path",),
        metric_sources=(MetricSource("history.jsonl"), MetricSource("logs/eval.jsonl", "global_step")),
    )
    assert settings.references == (
        ("prod/model/3", "hot:e1/step-1"),
        ("prod/model/4", "warm:e2/step-2"),
        ("prod/model/4", "hot:e2/step-2"),
    )
    assert (settings.lease_ttl_s, settings.plan_age_max_s) == (1200, 12 * H)
    assert settings.transfer == Transfer(375_000_000, 8, Window(22 * 60, 6 * 60, "Europe/Berlin"))


def test_what_a_declared_layout_s_trainer_stands_is_among_the_rules(whole: Path):
    settings = load_settings(whole, {"CKPT": "/mnt/own/ckpt"})
    assert _rules(settings).rotations == (("step-{step}", "crash"),)


def test_how_fast_bytes_move_makes_no_plan_stale(tmp_path: Path):
    found = {}
    for name, more in (("a", ""), ("b", "transfer: {bandwidth: 1.5GiB/s, parallel: 2}\n")):
        text = "stores: {hot: /mnt/own/ckpt}\n" + more
        (tmp_path / name).mkdir()
        found[name] = load_settings(
            write(tmp_path / name, {"lifecycle.yaml": text, "policies/a.yaml": "policy: a\n"}), {}
        )
    assert found["a"].digest == found["b"].digest
    assert (found["a"].transfer, found["b"].transfer) == (Transfer(), Transfer(1_610_612_736, 2))


def test_a_node_s_own_disk(tmp_path: Path):
    text = "stores: {nvme: {url: /mnt/own/nvme, node_local: true, node: '${NODE}', exposed_after: 20m}}\n"
    path = write(tmp_path, {"lifecycle.yaml": text, "policies/a.yaml": "policy: a\n"})
    [nvme] = load_settings(path, {"NODE": "node-7"}).stores
    assert nvme == StoreSettings("nvme", "file:///mnt/own/nvme", node_local=True, node="node-7", exposed_after=1200)


def test_the_least_configuration_has_careful_defaults(tmp_path: Path):
    path = write(tmp_path, {"lifecycle.yaml": "stores: {hot: /mnt/own/ckpt}\n", "policies/a.yaml": "policy: a\n"})
    settings = load_settings(path, {})
    assert settings.stores == (StoreSettings("hot", "file:///mnt/own/ckpt"),)
    assert settings.database == f"sqlite:///{tmp_path}/lifecycle.db"
    assert settings.conventions == Conventions()
    assert settings.policies[0].limits == Limits()
    assert (settings.lease_ttl_s, settings.plan_age_max_s, settings.references) == (1800, D, ())


def test_a_bucket_may_say_what_copies_are_stored_as(tmp_path: Path):
    text = "stores: {cold: {url: s3://b, storage_class: STANDARD_IA}, hot: s3://c}\n"
    path = write(tmp_path, {"lifecycle.yaml": text, "policies/a.yaml": "policy: a\n"})
    assert [store.storage_class for store in load_settings(path, {}).stores] == ["STANDARD_IA", None]


def test_the_settings_digest_is_of_the_meaning(whole: Path):
    env = {"CKPT": "/mnt/own/ckpt"}
    first = load_settings(whole, env).digest
    whole.write_text("# a comment\n" + WHOLE.replace("index.db", "other.db"))
    assert load_settings(whole, env).digest == first
    assert load_settings(whole, {"CKPT": "/mnt/own/other"}).digest != first
    whole.write_text(WHOLE.replace("proof: DONE", "proof: READY"))
    assert load_settings(whole, env).digest != first
    whole.write_text(WHOLE)
    (whole.parent / "more.yaml").write_text("policy: c\nkeep: none\n")
    assert load_settings(whole, env).digest != first


def test_a_password_from_the_environment_is_used_and_never_shown(tmp_path: Path):
    text = "stores: {hot: /mnt/own/ckpt}\ndatabase: postgresql://me:${PW}@db/lifecycle\n"
    path = write(tmp_path, {"lifecycle.yaml": text, "policies/a.yaml": "policy: a\n"})
    settings = load_settings(path, {"PW": "hunter2"})
    assert settings.database == "postgresql://me:hunter2@db/lifecycle"
    assert "hunter2" not in repr(settings)


def test_all_that_is_wrong_comes_at_once(whole: Path):
    whole.write_text(WHOLE.replace("hot:e1", "cold:e1").replace("ckpt-{step}", "step-{step}"))
    (whole.parent / "policies/b.yaml").write_text('policy: a\nmatch: {runs: ["hott:b"]}\nkeep: [last: 0]\n')
    (whole.parent / "more.yaml").write_text("policy: a\n")
    with pytest.raises(ConfigInvalid) as caught:
        load_settings(whole, {"CKPT": "/mnt/own/ckpt"})
    lines = str(caught.value).replace(f"{whole.parent}/", "").splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["lifecycle.yaml:18:5", "layouts"],
        ["lifecycle.yaml:25:17", "references.prod/model/3"],
        ["policies/b.yaml:2:16", "match.runs"],
        ["policies/b.yaml:3:14", "keep.last"],
        ["more.yaml:1:9", "policy"],
    ]
    assert caught.value.place is not None
    assert caught.value.place.line == 18
    assert "already the name of the one at" in lines[-1]


def test_a_policy_may_name_built_in_and_declared_layouts_and_no_other(whole: Path):
    text = 'policy: c\nmatch: {layouts: [megatron, ep-ba, "ckpt-{step}", megatrom]}\n'
    (whole.parent / "more.yaml").write_text(text)
    with pytest.raises(
        ConfigInvalid, match=r'2:51: match.layouts: there is no layout "megatrom"; did you mean megatron'
    ):
        load_settings(whole, {"CKPT": "/mnt/own/ckpt"})


def test_every_example_loads_under_the_name_of_its_file():
    policies = load_policies([EXAMPLES], {"hot", "warm", "cold", "node"})
    assert [p.name for p in policies] == sorted(p.stem for p in EXAMPLES.glob("*.yaml"))
    readme = (EXAMPLES / "README.md").read_text()
    assert [p.name for p in policies if f"`{p.name}.yaml`" not in readme] == []


def example(name: str) -> Policy:
    (policy,) = load_policies([EXAMPLES / f"{name}.yaml"])
    assert len(policy.digest) == 64
    return replace(policy, digest="", source="")


def test_the_pretraining_example_means_what_it_says():
    assert example("pretrain") == Policy(
        name="pretrain",
        match=Match(runs=("hot:pretrain/**",), kinds=frozenset({"full", "local"})),
        keep=(
            Last(3),
            First(1),
            Final(D),
            Every(Unit.STEPS, 10_000, Pick.CLOSEST),
            Best("eval/loss", "min", 2, (("eval/accuracy", "max"),), "keep"),
            Bucket(Period.DAILY, 7),
            Steps(frozenset({55_000})),
            Name("release-*"),
            Tagged("retain", "true"),
            Younger(D, Anchor.NOW),
        ),
        incomplete=Incomplete(2 * D),
        limits=Limits(1, 200, 50 * 10**12, 0.2, 20, 6 * H, 7 * D),
    )


def test_the_other_examples_mean_what_they_say():
    debug, research, finetune = example("debug"), example("research"), example("finetune")
    assert debug.keep == (Last(1),)
    assert debug.ended == Ended(D, runs=("hot:debug/**",), quiet_s=7 * D, step_max=5000, floor=False)
    assert research.timezone == "Europe/Berlin"
    assert research.keep is not None
    assert research.keep[1:5] == (
        Bucket(Period.HOURLY, 24),
        Bucket(Period.DAILY, 7),
        Bucket(Period.WEEKLY, 4),
        Bucket(Period.MONTHLY, 12),
    )
    assert finetune.keep is not None
    assert finetune.keep[2:] == (Every(Unit.EPOCHS, 1), Younger(12 * H, Anchor.NEWEST))


def test_the_scratch_example_means_what_it_says():
    assert example("scratch").pressure == (
        Pressure(("hot",), 8500, 7500, ("daily", "every")),
        Pressure(("hot",), 9000, 8000, ("daily",), Measure.INODES),
        Pressure(("hot",), 9500, 9000, ("daily",), quota_bytes=400 * 10**12),
    )


def test_marks_have_at_most_two_digits_and_several_stores_may_share_one(tmp_path: Path):
    path = tmp_path / "p.yaml"
    marks = "pressure: {on: [warm, hot], of: bytes, above: 92.5%, until: 92.05%, order: [daily]}"
    path.write_text(f"policy: p\nkeep: [daily: 7]\n{marks}\n")
    (policy,) = load_policies([path], ["hot", "warm"])
    assert policy.pressure == (Pressure(("warm", "hot"), 9250, 9205, ("daily",)),)
    (other,) = load_policies([_again(tmp_path, path.read_text().replace("92.5%", "92.50%"))], ["hot", "warm"])
    assert other.digest == policy.digest
    (less,) = load_policies([_again(tmp_path, path.read_text().replace("92.05%", "92%"))], ["hot", "warm"])
    assert less.digest != policy.digest


def test_what_a_policy_asks_for_before_it_takes_anything(tmp_path: Path):
    plain, *others = (
        load_policies([_again(tmp_path, f"policy: p\n{text}")])[0]
        for text in ("", "apply: auto\nannounce: none\n", "apply: approve\n", "announce: 3d\n")
    )
    assert (plain.approve, plain.announce_s) == (False, None)
    assert [(p.approve, p.announce_s) for p in others] == [(False, None), (True, None), (False, 3 * 86_400)]
    assert others[0].digest == plain.digest, "plans that were made before there was such a thing are not stale for it"
    assert len({p.digest for p in (plain, *others)}) == 3


def test_what_ticks_may_apply(tmp_path: Path):
    found = {}
    for name, text in (("a", "apply: auto"), ("b", "apply: approve, approved_for: 1d"), ("c", "apply: never")):
        (tmp_path / name).mkdir()
        files = {
            "lifecycle.yaml": f"stores: {{hot: /mnt/own/ckpt}}\ntick: {{{text}}}\n",
            "policies/a.yaml": "policy: a\n",
        }
        found[name] = load_settings(write(tmp_path / name, files), {})
    told = {name: (s.tick.applies, s.tick.approves, s.tick.approved_for_s) for name, s in found.items()}
    week = 7 * 86_400
    assert told == {"a": (True, False, week), "b": (True, True, 86_400), "c": (False, False, week)}
    assert len({s.digest for s in found.values()}) == 1, "it decides nothing of what stays"


def _again(folder: Path, text: str) -> Path:
    path = folder / "again.yaml"
    path.write_text(text)
    return path


def test_the_tiered_example_means_what_it_says():
    tiered = example("tiered")
    assert tiered.place == (
        Lodging(("hot",), kept_by=frozenset({"last"})),
        Lodging(("hot", "warm"), kept_by=frozenset({"best"})),
        Lodging(("warm",), older=Age(7 * D, Anchor.NOW)),
        Lodging(("hot",)),
    )


def test_rules_and_limits_that_the_examples_leave_out(tmp_path: Path):
    path = tmp_path / "p.yaml"
    path.write_text(
        "policy: p\n"
        "match: {owners: [1000, root], layouts: [megatron]}\n"
        "keep:\n"
        "  - every: {time: 6h, pick: exact}\n"
        "  - yearly: 3\n"
        "  - younger: {than: 30m, of: run_end}\n"
        "  - tagged: retain\n"
        "  - steps: [0]\n"
        "ended: {quiet: 7d, delete_after: 1d}\n"
        "limits: {deletes_max: none, delete_bytes_max: none, delete_fraction_max: none, grace: none, trash: none}\n"
    )
    (policy,) = load_policies([path])
    assert policy.match == Match(layouts=frozenset({"megatron"}), owners=frozenset({0, 1000}))
    assert policy.keep == (
        Every(Unit.TIME, 6 * H, Pick.EXACT),
        Bucket(Period.YEARLY, 3),
        Younger(1800, Anchor.RUN_END),
        Tagged("retain"),
        Steps(frozenset({0})),
    )
    assert policy.ended == Ended(D, quiet_s=7 * D, floor=True)
    assert policy.limits == Limits(1, 0, 0, 0.0, None, 0, None)


def test_a_place_has_every_condition_and_any_may_be_left_out(tmp_path: Path):
    path = tmp_path / "p.yaml"
    path.write_text(
        "policy: p\n"
        "keep: [last: 3, daily: 7]\n"
        "place:\n"
        "  - {kept_by: last, on: [hot]}\n"
        "  - on: [warm, cold]\n"
        "    kept_by: [last, daily]\n"
        "    older: {than: 7d, of: now}\n"
        "    younger: {than: 30d, of: run_end}\n"
        "    steps: {min: 0, max: 5000}\n"
        "    bytes: {min: 10GB, max: 2TiB}\n"
        "    kind: [full, local]\n"
        "    owner: [1000, root]\n"
        "    best: {metric: eval/loss, mode: min, count: 2}\n"
        "  - {kind: weights, owner: 1000, steps: {max: 3}, bytes: {min: 1MB}, on: [cold]}\n"
        "  - {older: {than: 1d, of: now}, younger: {than: 1h, of: newest}, on: [warm]}\n"
        "  - {older: {than: 2d, of: now}, on: [hot], parts: weights, full: none}\n"
        "  - {on: [hot], parts: weights}\n"
        "limits: {copies_min: 9}\n"
    )
    (policy,) = load_policies([path], ["hot", "warm", "cold"])
    assert policy.place == (
        Lodging(("hot",), kept_by=frozenset({"last"})),
        Lodging(
            ("warm", "cold"),
            kept_by=frozenset({"last", "daily"}),
            older=Age(7 * D, Anchor.NOW),
            younger=Age(30 * D, Anchor.RUN_END),
            steps_min=0,
            steps_max=5000,
            bytes_min=10**10,
            bytes_max=2 * 2**40,
            kinds=frozenset({"full", "local"}),
            owners=frozenset({0, 1000}),
            best=Best("eval/loss", "min", 2),
        ),
        Lodging(("cold",), steps_max=3, bytes_min=10**6, kinds=frozenset({"weights"}), owners=frozenset({1000})),
        Lodging(("warm",), older=Age(D, Anchor.NOW), younger=Age(H, Anchor.NEWEST)),
        Lodging(("hot",), older=Age(2 * D, Anchor.NOW), part="weights", gives_up_full=True),
        Lodging(("hot",), part="weights"),
    )
    assert policy.limits.copies_min == 9


STORES = "stores: {hot: /mnt/own/ckpt, deep: /mnt/own/ckpt/warm, warm: s3://b/x, cold: s3://b/x/y, far: s3://b}\n"


@pytest.mark.parametrize(
    ("place", "worst"),
    [
        ("", set()),
        ("place: [{on: [hot]}]", {"deep"}),
        ("place: [{older: {than: 7d, of: now}, on: [deep]}]", {"deep"}),
        ("place: [{older: {than: 7d, of: now}, on: [far]}]", {"far"}),
        ("place: [{older: {than: 7d, of: now}, on: [cold]}, {on: [hot]}]", {"deep", "cold", "far"}),
    ],
)
def test_a_store_that_takes_copies_lies_in_no_other(tmp_path: Path, place: str, worst: set[str]):
    path = write(tmp_path, {"lifecycle.yaml": STORES, "policies/a.yaml": f"policy: a\n{place}\n"})
    with pytest.raises(InvalidFiles) as caught:
        load_settings(path, {})
    problems = caught.value.problems
    pairs = {("deep", "hot"), ("cold", "warm"), ("far", "warm"), ("far", "cold")}
    assert {tuple(p.text.removeprefix("stores.").split(": ")[:2]) for p in problems} == {
        (store, f"overlaps the store {other}") for store, other in pairs
    }
    assert {p.text.split(":")[0].removeprefix("stores.") for p in problems if p.code == "tier_target_overlaps"} == worst
    said = {p.text.split(": ")[2] for p in problems if p.code == "tier_target_overlaps"}
    assert said <= {"what the policy a places there would be its own copy"}
    assert {p.place.line for p in problems} == {1}


def test_a_tier_that_links_to_what_it_is_to_relieve_is_refused(tmp_path: Path):
    (tmp_path / "own" / "data").mkdir(parents=True)
    (tmp_path / "own" / "cold").symlink_to("data")
    stores = f"stores: {{data: {tmp_path}/own/data, cold: {tmp_path}/own/cold}}\n"
    policy = "policy: a\nkeep: [last: 2]\nplace: [{older: {than: 7d, of: now}, on: [cold]}]\n"
    path = write(tmp_path, {"lifecycle.yaml": stores, "policies/a.yaml": policy})
    with pytest.raises(ConfigInvalid, match="its own copy") as caught:
        load_settings(path, {})
    assert caught.value.code == "tier_target_overlaps"


def test_the_default_policy_leans_towards_keeping(tmp_path: Path):
    settings = default_settings(str(tmp_path), "sqlite:///x.db")
    assert [(s.name, s.url) for s in settings.stores] == [("here", f"file://{tmp_path}")]
    (policy,) = settings.policies
    assert policy.keep is not None
    assert Last(3) in policy.keep
    assert [rule for rule in policy.keep if isinstance(rule, Best)] == [], "a metric that is not there would stop it"
    assert policy.limits.trash_s == 3 * D
    assert policy.limits.delete_fraction_max is None, "a first plan of many runs would be refused"
    assert policy.ended is None
    assert default_settings(str(tmp_path), "sqlite:///y.db").digest == settings.digest


@pytest.mark.parametrize(
    ("url", "storage_class", "price"),
    [
        ("s3://b/x", "GLACIER_IR", "s3-glacier-ir/us-east-1"),
        ("gs://b/x", "NEARLINE", "gcs-nearline/us"),
        ("gcs://b/x", "ARCHIVE", ""),
        ("az://c/x", "Cool", "azure-cool-lrs/eastus"),
        ("abfs://c@a.dfs.core.windows.net/x", "Cold", ""),
    ],
)
def test_copies_in_buckets_have_a_class_in_the_words_of_their_vendor(
    tmp_path: Path, url: str, storage_class: str, price: str
):
    more = f", price: {price}" if price in PRESETS else ""
    assert bool(more) is bool(price)
    text = f'stores: {{warm: {{url: "{url}", storage_class: {storage_class}{more}}}}}\npolicies: p.yaml\n'
    path = write(tmp_path, {"lifecycle.yaml": text, "p.yaml": "policy: p\n"})
    (store,) = load_settings(path, {}).stores
    assert store.storage_class == storage_class and not store.read_only


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("sftp://ann@host:22/data//ckpt/", "sftp://ann@host:22/data/ckpt"),
        ("hdfs:///user/ann", "hdfs:///user/ann"),
        ("dbfs:///ckpt", "dbfs:///ckpt"),
        ("hf://datasets/ann/ckpt", "hf://datasets/ann/ckpt"),
    ],
)
def test_what_can_only_be_read_is_told_by_its_url(url: str, canonical: str):
    assert canonical_root(url, url) == canonical
    assert StoreSettings("old", canonical).read_only and not StoreSettings("hot", "file:///mnt/x").read_only


def test_a_relative_root_starts_where_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert default_settings("runs", "sqlite://").stores[0].url == f"file://{tmp_path}/runs"
    assert default_settings("s3://bucket/x", "sqlite://").stores[0].url == "s3://bucket/x"


@pytest.mark.parametrize(
    "root", ["/", "//", "/home", "/home/someone", "/root", "/usr", "/tmp", "/mnt", "/var/lib", "~"]
)
def test_a_broad_root_is_refused_by_its_own_code_word(root: str):
    with pytest.raises(ConfigInvalid) as caught:
        default_settings(root, "sqlite://")
    assert caught.value.code == "root_too_broad"


def refused(url: str) -> str | None:
    try:
        canonical_root(url, url)
    except Bad as bad:
        return bad.code
    return None


def test_a_home_is_broad_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path / "people" / "me"))
    assert refused(str(tmp_path / "people" / "me")) == "root_too_broad"
    assert refused(str(tmp_path / "people")) == "root_too_broad"
    assert refused(str(tmp_path / "people" / "me" / "ckpt")) is None
    assert refused(str(tmp_path / "peopleX")) is None


def test_a_link_to_a_broad_place_is_broad(tmp_path: Path):
    (tmp_path / "ckpt").symlink_to("/usr")
    assert refused(f"file://{tmp_path}/ckpt") == "root_too_broad"


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("/mnt/ckpt/", "file:///mnt/ckpt"),
        ("FILE:///mnt//ckpt", "file:///mnt/ckpt"),
        ("file://localhost/mnt/ckpt", "file:///mnt/ckpt"),
        ("file:///mnt/a:b@c d", "file:///mnt/a:b@c d"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket//a//b/", "s3://bucket/a/b"),
        ("abfs://box@account.example/x", "abfs://box@account.example/x"),
        ("memory://", "memory://"),
    ],
)
def test_roots_have_one_spelling(url: str, canonical: str):
    assert canonical_root(url, url) == canonical
    assert canonical_root(canonical, canonical) == canonical


def test_overlap_goes_by_whole_names_and_real_places(tmp_path: Path):
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    assert overlap((f"file://{tmp_path}/real", None), (f"file://{tmp_path}/link/sub", None))
    assert not overlap((f"file://{tmp_path}/real", None), (f"file://{tmp_path}/realm", None))
    assert overlap(("s3://b/x/y", None), ("s3://b/x", None))
    assert not overlap(("s3://b/x", None), ("s3://b/xy", None))
    one, other = "abfs://c@one.dfs.core.windows.net/x", "abfss://c@two.dfs.core.windows.net/x"
    assert not overlap((one, None), (other, None))
    assert overlap((one, None), ("az://c/x/y", None)), "whose account that is, only the environment knows"
    assert not overlap((one, None), ("az://c/z", None))
    assert overlap(("gs://b/x", None), ("gcs://b/x/y", None))
    assert not overlap(("s3://b", "http://one"), ("s3://b", "http://other"))


def test_only_regular_files_are_read(tmp_path: Path):
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "big.yaml").write_bytes(b"#" * (1024 * 1024 + 1))
    (tmp_path / "empty").mkdir()
    for path, why in {
        tmp_path / "fifo.yaml": "is not a regular file",
        tmp_path / "big.yaml": "is larger than 1 MiB",
        tmp_path / "empty": "Is a directory",
        tmp_path / "gone.yaml": "cannot be read: No such file",
        tmp_path / "nul\0.yaml": "cannot be read",
        Path("/dev/null"): "is not a regular file",
    }.items():
        with pytest.raises(ConfigInvalid, match=why):
            read_file(path)
    with pytest.raises(ConfigInvalid, match="holds no policy"):
        load_policies([tmp_path / "empty"])


def test_a_config_map_is_read_through_its_links(tmp_path: Path):
    """Kubernetes mounts each file as a link into a hidden directory that it swaps at once."""
    write(tmp_path, {"..data/a.yaml": "policy: a\n"})
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    assert [p.name for p in load_policies([tmp_path])] == ["a"]


def test_policies_are_the_same_whatever_the_order_of_files(tmp_path: Path):
    write(tmp_path, {"x.yaml": "policy: b\n", "y.yaml": "policy: a\n"})
    assert load_policies([tmp_path / "x.yaml", tmp_path / "y.yaml"]) == load_policies([tmp_path])


def test_settings_are_values(whole: Path):
    one, other = (load_settings(whole, {"CKPT": "/mnt/own/ckpt"}) for _ in range(2))
    assert isinstance(one, Settings)
    assert one == other
    assert hash(one) == hash(other)


PRICED = """\
stores:
  hot: {url: file:///mnt/ckpt, price: {gb_month: 0.03, put_per_1000: none, min_days: 7}}
  warm: {url: s3://b/warm, storage_class: STANDARD_IA, price: s3-standard-ia/us-east-1}
  cold:
    url: s3://b/cold
    storage_class: GLACIER_IR
    price: {preset: s3-glacier-ir/us-east-1, gib_month: 0.0035, retrieval_gb: 0.09}
  free: {url: s3://b/free, price: {gib_month: none, min_object: 128KiB, get_per_1000: 0.0004, retrieval_gib: 0.01}}
  bare: {url: s3://b/bare}
policies: [a.yaml]
"""


def priced(base: Path, text: str = PRICED) -> Settings:
    (base / "a.yaml").write_text("policy: a\n")
    (base / "lifecycle.yaml").write_text(text)
    return load_settings(base / "lifecycle.yaml", {})


def test_prices_are_what_is_written_over_what_is_listed(tmp_path: Path):
    found = dict(priced(tmp_path).prices)
    stores = [place for place in found if "@" not in place]
    assert stores == ["cold", "free", "hot", "warm"], "what has no price is in no table"
    hot, cold, free = found["hot"], found["cold"], found["free"]
    assert (hot.name, hot.tiers, hot.gb_bytes) == ("own", (Tier(None, 30_000_000),), 10**9)
    assert (hot.put_nano, hot.get_nano, hot.min_days, hot.retrieval_nano) == (0, 0, 7, 0)
    assert found["warm"] == PRESETS["s3-standard-ia/us-east-1"]
    listed = PRESETS["s3-glacier-ir/us-east-1"]
    assert cold == replace(
        listed,
        name="s3-glacier-ir/us-east-1+own",
        tiers=(Tier(None, 3_500_000),),
        retrieval_nano=90_000_000,
        retrieval_gb_bytes=10**9,
    )
    assert (free.nano, free.gb_bytes, free.min_object_bytes, free.get_nano) == (0, 2**30, 131_072, 400_000)
    assert (free.retrieval_nano, free.retrieval_gb_bytes, free.currency) == (10_000_000, 2**30, "USD")


def test_a_list_prices_every_class_of_a_store(tmp_path: Path):
    """A name of one class says which list it is of; what is written of the whole store holds for each class."""
    found = dict(priced(tmp_path).prices)
    assert found["warm@GLACIER"] == PRESETS["s3-glacier/us-east-1"]
    assert found["cold@STANDARD"] == PRESETS["s3-standard/us-east-1"] and "warm@STANDARD_IA" not in found
    assert not any(place.startswith(("hot@", "free@")) for place in found), "own prices are of one class"
    assert (found["free"].storage_class, found["hot"].storage_class) == ("STANDARD", "")
    whole = priced(tmp_path, PRICED.replace("price: s3-standard-ia/us-east-1", "price: s3/us-east-1"))
    assert dict(whole.prices) == found
    text = "{preset: s3/us-east-1, egress_gib: 0.05, read_from: outside, classes: {GLACIER: {gib_month: 0.003}}}"
    found = dict(priced(tmp_path, f"stores:\n  s: {{url: s3://b/s, price: {text}}}\npolicies: [a.yaml]\n").prices)
    assert {(p.egress_nano, p.outside) for p in found.values()} == {(50_000_000, True)}
    listed = PRESETS["s3-glacier/us-east-1"]
    assert found["s@GLACIER"] == replace(
        listed,
        name="s3-glacier/us-east-1+own",
        tiers=(Tier(None, 3_000_000),),
        egress_nano=50_000_000,
        outside=True,
    )
    assert found["s"].name == "s3-standard/us-east-1+own", "what leaves is a term of it"


def test_classes_have_prices_of_ones_own(tmp_path: Path):
    text = """\
stores:
  tape:
    url: s3://b/tape
    price:
      gb_month: 0.02
      currency: EUR
      classes:
        GLACIER:
          gb_month: 0.002
          restores: {standard: {gib: 0.01, per_1000: 0.05}, bulk: {gib: none}}
          restored_gib_month: none
policies: [a.yaml]
"""
    found = dict(priced(tmp_path, text).prices)
    assert list(found) == ["tape", "tape@GLACIER"] and found["tape"].storage_class == "STANDARD"
    glacier = found["tape@GLACIER"]
    assert (glacier.name, glacier.storage_class, glacier.currency) == ("own", "GLACIER", "EUR")
    assert glacier.restores == (Restore("standard", 10_000_000, 50_000_000), Restore("bulk", 0, 0))
    assert glacier.restored_nano == 0


def test_prices_are_part_of_what_a_site_means(tmp_path: Path):
    """A plan weighs them: under other prices it is stale. Without any, nothing is said that was not said before."""
    bare = PRICED.replace(", price: s3-standard-ia/us-east-1", "")
    assert priced(tmp_path).digest != priced(tmp_path, bare).digest
    policies = priced(tmp_path).policies
    plain, weighed, forced = (
        replace(policies[0], place=(Lodging(("hot",), cost_ignored=ignored),)) for ignored in (False, False, True)
    )
    assert meaning_digest(plain) == meaning_digest(weighed) != meaning_digest(forced)
    assert "cost_ignored" not in str(_canonical(plain)) and "cost_ignored" in str(_canonical(forced))


def test_http_is_answered_only_where_it_is_asked_for(tmp_path: Path):
    """And plans are the same with it or without."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/a.yaml").write_text("policy: a\n")

    def load(http: str) -> Settings:
        (tmp_path / "lifecycle.yaml").write_text(f"stores: {{hot: /mnt/ckpt}}\n{http}")
        return load_settings(tmp_path / "lifecycle.yaml")

    assert load("").http is None
    assert load("http: {}").http == Serving() and Serving().listen.is_loopback
    given = load(
        "http: {listen: '0.0.0.0:0', hosts: [Me.Example:8443, '[fe80::1]'], token: file:secret, metrics_open: true}"
    )
    assert given.http == Serving(
        Listen("0.0.0.0", 0), Reference("file", f"{tmp_path}/secret"), ("me.example:8443", "[fe80::1]"), True
    )
    assert given.digest == load("").digest
    assert load("http: {listen: 'localhost:1'}").http == Serving(Listen("127.0.0.1", 1))
    assert str(Listen("::1", 80)) == "[::1]:80"


PARENTS = """\
stores: {hot: /mnt/own/ckpt, warm: /mnt/own/warm}
parents:
  "hot:sft/**": "warm:base/step-1"
  "*:dpo": ["hot:sft/a", "warm:reward"]
"""


def test_parents_are_globs_over_runs_and_what_those_were_made_from(tmp_path: Path):
    path = write(tmp_path, {"lifecycle.yaml": PARENTS, "policies/a.yaml": "policy: a\n"})
    settings = load_settings(path, {})
    assert settings.parents == (("hot:sft/**", "warm:base/step-1"), ("*:dpo", "hot:sft/a"), ("*:dpo", "warm:reward"))
    path.write_text(PARENTS.replace("hot:sft/a", "hot:sft/b"))
    assert load_settings(path, {}).digest != settings.digest, "it decides, so plans made before are stale"


def test_parents_that_are_wrong_are_named_with_their_place(tmp_path: Path):
    text = PARENTS.replace('"hot:sft/**"', '"hott:sft/**"').replace("hot:sft/a", "/mnt/own/x").replace("*:dpo", "dpo")
    path = write(tmp_path, {"lifecycle.yaml": text, "policies/a.yaml": "policy: a\n"})
    with pytest.raises(ConfigInvalid) as caught:
        load_settings(path, {})
    assert str(caught.value).replace(f"{tmp_path}/", "").splitlines() == [
        'lifecycle.yaml:3:3: parents: there is no store "hott"; did you mean hot?',
        'lifecycle.yaml:4:3: parents: "dpo" names no store: write store:path, such as "hot:pretrain/**"',
        'lifecycle.yaml:4:10: parents.dpo: needs store:key, such as "hot:e1/step-1", not "/mnt/own/x"',
    ]
