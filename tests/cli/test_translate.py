"""Importing other tools' retention and exporting a policy, as a person sees it."""

import json
from pathlib import Path

import pytest

from tests.cli.harness import Shell
from tests.cli.test_corridor import GOLD, Golden

RULES = {
    "Rules": [
        {
            "ID": "tier all",
            "Status": "Enabled",
            "Filter": {"Prefix": "ckpt/archive/"},
            "Transitions": [
                {"Days": 30, "StorageClass": "STANDARD_IA"},
                {"Days": 90, "StorageClass": "DEEP_ARCHIVE"},
            ],
            "Expiration": {"Days": 365},
            "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
        }
    ]
}
PRESERVE = (
    "preservation_policy=AnyPreservationPolicy([p.LatestN(3), EveryNSteps(1000, exact_interval=False),"
    "LatestDuration(timedelta(days=1, hours=12)), CustomSteps([5]), BestN(lambda m: m['l'], n=2, reverse=True)])"
)


def test_import_and_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden):
    monkeypatch.chdir(tmp_path)
    Path("rules.json").write_text(json.dumps(RULES))
    Path("args.yaml").write_text("learning_rate: 1e-4\nsave_total_limit: 2\n")
    shell = Shell(tmp_path)
    shell("policy", "import", "trainer", "save_total_limit=3", "load_best_model_at_end=true", "--runs", "hot:ft/**")
    shell("policy", "import", "trainer", "args.yaml")
    shell("policy", "import", "lightning", "save_top_k=3", "monitor=val_loss", "save_last=link", "--name", "mine")
    shell("policy", "import", "orbax", "best_metric=loss", PRESERVE)
    shell("policy", "import", "restic", "--keep-last", "3", "--keep-daily=7", "--keep-within", "1m3h")
    tiers = shell("policy", "import", "s3", "rules.json", "--below", "ckpt")
    Path("tiers.yaml").write_text(tiers.out)
    shell("policy", "export", "s3", "tiers.yaml", "--below", "ckpt")
    back = shell("policy", "export", "s3", "tiers.yaml", "--below", "ckpt", "--expire", "--json")
    assert shell("policy", "check", "tiers.yaml").code == 0
    golden(GOLD / "translate.txt", shell.transcript)
    expected = RULES["Rules"][0] | {"ID": "tier-all"}
    del expected["NoncurrentVersionExpiration"]
    assert json.loads(back.out)["configuration"] == {"Rules": [expected]}


def test_errors_name_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden):
    monkeypatch.chdir(tmp_path)
    Path("two.json").write_text(json.dumps({"Rules": [r | {"ID": n} for r in RULES["Rules"] for n in ("a", "b")]}))
    Path("off.json").write_text(json.dumps({"Rules": [RULES["Rules"][0] | {"Status": "Disabled"}]}))
    Path("list.json").write_text("[1]")
    Path("last.yaml").write_text("policy: last\nkeep:\n  - last: 3\n")
    Path("bad.yaml").write_text("a: [")
    Path("nested.yaml").write_text("trainer:\n  callbacks:\n  - init_args: {save_top_k: -1}\n")
    Path("large.json").write_bytes(b" " * (1024 * 1024 + 1))
    shell = Shell(tmp_path)
    wrong = [
        ("trainer", "save_total_limt=3"),
        ("trainer", "save_total_limit=3", "save_total_limit=4"),
        ("trainer", "save_total_limit=x"),
        ("trainer", "list.json"),
        ("trainer", "bad.yaml"),
        ("trainer", "missing.json"),
        ("trainer", "large.json"),
        ("lightning", "save_top_k=3"),
        ("lightning", "nested.yaml"),
        ("orbax", "preservation_policy=LatestN(3"),
        ("orbax", "preservation_policy=3"),
        ("orbax", "preservation_policy=__import__('os').system('touch here')"),
        ("restic", "--keep-last"),
        ("restic", "--host", "a"),
        ("s3", "two.json"),
        ("s3", "off.json"),
        ("s3", "two.json", "off.json"),
        ("s3", "list.json"),
        ("s3", "two.json", "--rule", "b", "--below", "elsewhere"),
    ]
    codes = {words: shell("policy", "import", *words).code for words in wrong}
    assert set(codes.values()) == {2}, codes
    assert shell("policy", "export", "s3", "last.yaml").code == 1
    assert shell("policy", "import", "s3", "two.json", "--rule", "b").code == 0
    assert not Path("here").exists()
    golden(GOLD / "translate-errors.txt", shell.transcript)


def test_where_a_store_begins_is_what_the_settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Rules from the bucket's root would be about what others keep there."""
    monkeypatch.chdir(tmp_path)
    Path("policies").mkdir()
    Path("policies/aged.yaml").write_text("policy: aged\nkeep:\n  - younger: {than: 30d, of: now}\n")
    Path("rules.json").write_text(json.dumps(RULES))
    stores = "{warm: {url: s3://bucket/ckpt}, hot: {url: 'file:///mnt/ckpt'}}"
    Path("lifecycle.yaml").write_text(f"stores: {stores}\n")
    shell = Shell(tmp_path)
    for below in ((), ("--below", "/ckpt/")):
        found = shell("policy", "export", "s3", "policies/aged.yaml", "--expire", "--json", *below)
        assert found.code == 0, found
        (one,) = json.loads(found.out)["configuration"]["Rules"]
        assert one["Filter"] == {"Prefix": "ckpt/"}
    found = shell("policy", "import", "s3", "rules.json", "--json")
    assert json.loads(found.out)["policy"]["match"] == {"runs": ["warm:archive/**"]}
    other = shell("policy", "export", "s3", "policies/aged.yaml", "--below", "")
    assert (other.code, "begins at ckpt/" in other.err) == (2, True)
    posix = shell("policy", "export", "s3", "policies/aged.yaml", "--store", "hot")
    assert (posix.code, "no bucket of S3" in posix.err) == (2, True)
    Path("lifecycle.yaml").write_text("version: [")
    assert shell("policy", "export", "s3", "policies/aged.yaml").code == 2
