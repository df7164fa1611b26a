"""The command line with its index on a server: the same plan to the last byte, applied, undone; no secret is shown."""

from pathlib import Path

import pytest

from tests.cli.harness import Shell, small_tree

pytestmark = pytest.mark.postgres
POLICY = "policy: all\nkeep:\n  - last: 6\nlimits: {grace: none, trash: 72h}\n"


def settings(shell: Shell, name: str, database: str) -> str:
    folder = shell.home / name
    (folder / "policies").mkdir(parents=True)
    (folder / "policies" / "all.yaml").write_text(POLICY)
    path = folder / "lifecycle.yaml"
    path.write_text(f"stores:\n  hot: file://{shell.home}/ckpt\ndatabase: {database}\npolicies: policies\n")
    return str(path)


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if ".lifecycle" not in path.parts)


def test_the_whole_way_over_a_server(shell: Shell, server_url: str):
    root = small_tree(shell.home / "ckpt")
    before = names(root)
    file = settings(shell, "file", "sqlite:///state/index.db")
    shell.env["INDEX"] = server_url
    server = settings(shell, "server", "${INDEX}")
    plans = []
    for site in (file, server):
        assert shell("scan", "-c", site).code == 0
        planned = shell("plan", "-c", site)
        assert planned.code == 0, planned
        (plan,) = (Path(site).parent / "state" / "plans").iterdir()
        plans.append(plan)
    assert plans[0].read_bytes() == plans[1].read_bytes() and b"retire" in plans[0].read_bytes()
    assert shell("apply", str(plans[1]), "-c", server, "--yes").code == 0
    assert len(names(root)) < len(before)
    assert shell("undo", plans[1].stem, "-c", server).code == 0
    assert names(root) == before
    assert shell("db", "upgrade", "-c", server).out == "The index is up to date.\n"


def test_a_server_that_is_not_there_stops_everything_and_keeps_the_secret(shell: Shell, tmp_path: Path):
    small_tree(shell.home / "ckpt")
    # The password stands in a variable: in the file it would be refused.
    site = settings(shell, "server", f"postgresql://ada@/life?host={tmp_path}/none")
    text = Path(site).read_text().replace("ada@", "ada:${PW}@")
    Path(site).write_text(text)
    shell.env["PW"] = "canary"
    for words in (("scan",), ("plan",), ("ls", "hot"), ("db", "upgrade")):
        said = shell(*words, "-c", site)
        assert said.code == 1 and "cannot be reached" in said.err, said
        assert "canary" not in said.out + said.err
