"""What stands in a checkpoint and is no file: nothing is opened, nothing waits, nothing outside is read or touched."""

import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from tests.cli.harness import DAY_S, NOW_S, Shell, save_hf
from tests.stores.places import picture, without


@pytest.fixture
def trapped(shell: Shell) -> Shell:
    """Three checkpoints; the oldest has traps in it, and so has the run in the places of files that are read."""
    (shell.home / "lifecycle.yaml").write_text(
        "stores:\n  hot: {url: HOME/ckpt}\npolicies: [policies]\n".replace("HOME", str(shell.home))
    )
    (shell.home / "policies").mkdir()
    (shell.home / "policies/one.yaml").write_text(
        "policy: one\nkeep: [{last: 1}]\nlimits: {delete_fraction_max: 1.0}\n"
    )
    run = shell.home / "ckpt" / "run"
    for n, step in enumerate((100, 200, 300)):
        save_hf(run, step, (9 - n) * DAY_S)
    unit, outside = run / "checkpoint-100", shell.home / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"p" * 100)
    os.mkfifo(unit / "optimizer_1.bin")
    os.mkfifo(run / "hparams.json")
    os.mkfifo(run / "metrics.csv")
    (unit / "model_1.safetensors").symlink_to("/dev/zero")
    (unit / "rng_state_0.pth").symlink_to(outside / "precious")
    (unit / "global_step100").symlink_to(outside)
    (unit / "loop").symlink_to(".")
    (run / "config.json").symlink_to("/dev/zero")
    (run / "latest").symlink_to("/dev/stdin")
    (run / "checkpoint-250").symlink_to(outside)
    at = Path.cwd()
    os.chdir(unit)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
    os.chdir(at)
    if os.geteuid() == 0:
        os.mknod(unit / "zero", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    for path in (unit, run):
        os.utime(path, (NOW_S - 9 * DAY_S, NOW_S - 9 * DAY_S))
    return shell


class Ear:
    """Hears what this process opens, while it listens: an audit hook cannot be taken away again."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.listening = False
        sys.addaudithook(self.hear)

    def hear(self, event: str, args: tuple[object, ...]) -> None:
        if event == "open" and self.listening and isinstance(args[0], str | bytes):
            self.opened.append(Path(os.fsdecode(args[0])).name)


def test_a_checkpoint_with_traps_is_listed_planned_dropped_and_brought_back(trapped: Shell):
    ear = Ear()
    outside, store = picture(trapped.home / "outside"), picture(trapped.home / "ckpt")
    ear.listening = True
    assert trapped("scan").code == 0
    listed = trapped("ls", "hot:run", "--json").json["checkpoints"]
    assert [c["name"] for c in listed] == ["checkpoint-100", "checkpoint-200", "checkpoint-300"]
    assert trapped("explain", "hot:run/checkpoint-100").code == 0
    plan = trapped("plan", "--json").json
    assert [a["id"] for a in plan["actions"]] == ["hot:run/checkpoint-100", "hot:run/checkpoint-200"]
    done = trapped("apply", plan["file"], "--yes", "--json").json
    assert done["counts"]["done"] == 2 and not (trapped.home / "ckpt/run/checkpoint-100").exists()
    assert trapped("undo", plan["plan"][:12]).code == 0
    ear.listening = False
    assert without(picture(trapped.home / "ckpt"), ".lifecycle") == store
    assert "trainer_state.json" in ear.opened, "else nothing was heard"
    assert not {"precious", "zero", "sock", "stdin"} & set(ear.opened)
    assert picture(trapped.home / "outside") == outside
