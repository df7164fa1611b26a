"""``tick`` and ``ticks`` as a user meets them, as transcripts that are read like documentation."""

import shutil

import pytest

from lifecycle.cli.desk import Desk
from lifecycle.errors import LifecycleError
from tests.cli.harness import DAY_S, Shell, save_hf, small_tree
from tests.cli.test_corridor import GOLD, Golden

CONFIG = "stores: {{hot: {{url: {home}/ckpt}}, warm: {{url: {home}/warm}}}}\n{tick}"
POLICY = "policy: scratch\nmatch: {runs: ['hot:**']}\nkeep:\n  - last: 2\nlimits: {grace: none, trash: 1d}\n"
AUTO = "tick: {apply: auto, purge: auto, verify: {budget: 1TB}, stop_after: 50m}\n"


@pytest.fixture
def site(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Two stores; how full a disk is differs from machine to machine."""
    monkeypatch.setattr("lifecycle.flows.tick._fullness", lambda _sample: "; 61.3% of 500 TB used")
    monkeypatch.setattr("socket.gethostname", lambda: "box")
    small_tree(shell.home / "ckpt")
    save_hf(shell.home / "warm" / "other", 7, 2 * DAY_S)
    (shell.home / "policies").mkdir()
    (shell.home / "policies/scratch.yaml").write_text(POLICY)
    allow(shell, "")
    return shell


def allow(shell: Shell, tick: str) -> None:
    (shell.home / "lifecycle.yaml").write_text(CONFIG.format(home=shell.home, tick=tick))


@pytest.mark.parametrize("width", [80, None], ids=["80", "piped"])
def test_the_whole_way(site: Shell, golden: Golden, width: int | None):
    site.width = width
    assert site("ticks").code == 4, "there is no index yet"
    assert site("tick").code == 0
    allow(site, AUTO)
    site.clock.now_s += 3600
    assert site("tick").code == 0
    assert not (site.home / "ckpt/pretrain/a/checkpoint-100").exists()
    site.clock.now_s += 2 * DAY_S
    assert site("tick").code == 0
    shutil.move(site.home / "warm" / "other", site.home / "aside")
    assert site("tick").code == 4, "a store that shows nothing is told of, and the other one is done"
    shutil.move(site.home / "aside", site.home / "warm" / "other")
    site.clock.now_s -= 3 * DAY_S
    assert site("tick").code == 0
    assert site("ticks").code == 0
    golden(GOLD / f"tick-{width or 'piped'}.txt", site.transcript)


def test_the_plan_of_a_dry_tick_can_be_applied(site: Shell):
    said = site("tick", "--json").json
    assert said["dry"] and said["file"] == str(site.home / "plans/tick.json") and said["exit_code"] == 0
    assert site("tick", "--json").json["file"] == said["file"], "one file, however many dry ticks there are"
    assert site("apply", said["file"], "--yes", "--json").json["counts"]["done"] == 5
    assert [p.name for p in (site.home / "plans").iterdir()] == ["tick.json"]


def test_the_plan_of_a_tick_that_applies_is_kept_by_its_name(site: Shell):
    allow(site, AUTO)
    said = site("tick", "--json").json
    assert said["file"].endswith(f"plans/{said['plan'][:12]}.json")
    assert len(site("undo", said["plan"], "--no-hold", "--json").json["restored"]) == 5
    rest = site("tick", "--json").json
    assert rest["file"] and rest["stages"][4]["counts"]["done"] == 5
    assert site("tick", "--json").json["file"] == "", "a plan that wants nothing is not kept"


def test_a_plan_over_its_limits_is_kept_by_one_name_and_not_recommended(site: Shell):
    allow(site, AUTO)
    (site.home / "policies/scratch.yaml").write_text(POLICY.replace("trash: 1d", "trash: 1d, deletes_max: 2"))
    for _ in range(2):
        said = site("tick")
        assert said.code == 4 and "guard_max_delete" in said.out and "lifecycle apply" not in said.out
    assert [p.name for p in (site.home / "plans").iterdir()] == ["tick.json"]


def test_ticks_for_programs(site: Shell):
    site("tick")
    (row,) = site("ticks", "--json").json["ticks"]
    assert row["id"] == 1 and row["exit_code"] == 0 and row["facts"]["dry"]
    assert [s["stage"] for s in row["facts"]["stages"]] == [
        "recover",
        "scan",
        "scan",
        "plan",
        "apply",
        "purge",
        "verify",
    ]
    site("tick")
    assert [r["id"] for r in site("ticks", "--limit", "1", "--json").json["ticks"]] == [2]


def test_a_tick_goes_on_though_nobody_listens(site: Shell, monkeypatch: pytest.MonkeyPatch):
    """A full disk under the log: the work is done and written down, and the end says that it could not be told."""
    allow(site, AUTO)

    def full(_desk: Desk, _text: str) -> None:
        raise LifecycleError("no space left", code="output_failed")

    with monkeypatch.context() as patch:
        patch.setattr(Desk, "_print", full)
        assert site("tick").code == 1
    (row,) = site("ticks", "--json").json["ticks"]
    assert row["exit_code"] == 0 and not (site.home / "ckpt/pretrain/a/checkpoint-100").exists()


def test_a_tick_that_was_cut_short_is_shown(site: Shell, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr("lifecycle.flows.tick.propose", _die)
        assert site("tick").code == 130
    assert "at work, or cut short" in site("ticks").out
    assert site("tick", "--json").code == 0, "its turn was given back"
    assert "cut short" in site("ticks").out and "at work" not in site("ticks").out


def _die(*_args: object, **_more: object) -> None:
    raise KeyboardInterrupt


def test_without_configuration_it_is_dry(shell: Shell):
    small_tree(shell.home / "ckpt")
    said = shell("tick", "--root", "ckpt", "--json").json
    assert said["dry"] and said["stages"][2]["counts"]["actions"] > 0
    assert len(list((shell.home / "ckpt/pretrain/a").iterdir())) == 7


def test_no_tick_where_our_own_directory_lies_in_a_run(site: Shell):
    allow(site, "")
    site("tick")
    config = (site.home / "lifecycle.yaml").read_text()
    state = f"hot: {{url: {site.home}/ckpt, state: {site.home}/ckpt/pretrain/a/.ours}}"
    (site.home / "lifecycle.yaml").write_text(config.replace(f"hot: {{url: {site.home}/ckpt}}", state))
    said = site("tick", "--json")
    assert said.code == 4 and said.json["error"]["code"] == "state_in_run"
    assert len(site("ticks", "--json").json["ticks"]) == 1


def test_serve_says_what_it_needs(site: Shell):
    said = site("serve", "--json")
    assert said.code == 2 and said.json["error"]["code"] == "no_schedule"
    assert "cron:" in said.json["error"]["hint"]
