"""The workflow and the job that comment on changes of policies: no right too many, and their lines run."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from lifecycle.render.change_markdown import MARKER
from tests.cli.harness import save_hf
from tests.cli.test_diff import NEW, OLD, git

CI = Path(__file__).parent.parent.parent / "deploy/ci"
REVIEW, EXPORT, GITLAB = (
    CI / name for name in ("github-policy-review.yaml", "github-index-export.yaml", "gitlab-policy-review.yml")
)
SHA = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}")


CASES = """\
policy: pretrain
run: hot:pretrain/x
cases:
  - case: the newest two stay
    saves: {every: 100, to: 900, gap: 6h, newest: 3d}
    keep: [800, 900]
    drop: [100]
"""


class _Loader(yaml.SafeLoader):
    """YAML as both read it: ``on`` is a word there."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in found if tag != "tag:yaml.org,2002:bool"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(path.read_text(), _Loader)
    return found


def steps(path: Path, job: str) -> dict[str, dict[str, Any]]:
    return {step.get("id", step.get("name", step.get("uses"))): step for step in read(path)["jobs"][job]["steps"]}


# -- rights


@pytest.mark.parametrize("path", [REVIEW, EXPORT], ids=lambda path: path.name)
def test_no_right_more_than_is_used_and_no_word_of_strangers_in_a_script(path: Path):
    flow = read(path)
    assert flow["permissions"] == {}, "no right but those that a job names"
    assert "pull_request_target" not in flow["on"]
    assert "secrets." not in path.read_text()
    for job in flow["jobs"].values():
        assert job["permissions"].keys() <= {"actions", "contents", "pull-requests"} if "permissions" in job else True
        for step in job["steps"]:
            assert SHA.fullmatch(step.get("uses", "a/b@" + "0" * 40)), "actions are pinned by a commit"
            assert "${{" not in step.get("run", ""), "what is written there is a script: values come by the environment"
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] == "false"
    for line in path.read_text().splitlines():
        assert "uses:" not in line or re.search(r"# v\d+\.\d+\.\d+$", line), "and say which version that is"


def test_forks_get_neither_the_index_nor_a_token_that_writes():
    jobs = read(REVIEW)["jobs"]
    assert jobs["check"]["permissions"] == {"contents": "read"}
    assert "GH_TOKEN" not in json.dumps(jobs["check"]) and "INDEX" not in json.dumps(jobs["check"])
    assert jobs["diff"]["if"] == "github.event.pull_request.head.repo.full_name == github.repository"
    assert jobs["diff"]["permissions"] == {"actions": "read", "contents": "read", "pull-requests": "write"}
    rules = read(GITLAB)["policy-diff"]["rules"]
    assert all("$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in rule["if"] for rule in rules)
    assert "TOKEN" not in json.dumps(read(GITLAB)["policy-check"])


# -- the lines themselves


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone at a merge of a change, with the index that a site exported."""
    home = tmp_path_factory.mktemp("site")
    for step in range(100, 800, 100):
        save_hf(home / "ckpt/pretrain/a", step, (8 - step // 100) * 86_400, now_s=int(time.time()))
    (home / "lifecycle.yaml").write_text(
        f"stores: {{hot: {{url: {home}/ckpt}}, warm: {{url: {home}/warm}}}}\npolicies: [policies]\n"
    )
    (home / "warm").mkdir()
    repo = home / "repo"
    for text in (OLD, NEW):
        (repo / "policies").mkdir(parents=True, exist_ok=True)
        (repo / "policies/pretrain.yaml").write_text(text.replace("limits: {", "limits: {grace: none, "))
        if text == OLD:
            (home / "policies").symlink_to(repo / "policies")
            (repo / "policies/tests").mkdir()
            (repo / "policies/tests/pretrain.yaml").write_text(CASES)
            git(home, "init", "repo")
            git(repo, "add", ".")
            git(repo, "commit", "-m", "old")
            git(repo, "checkout", "-b", "change")
        else:
            git(repo, "commit", "-am", "new")
    git(repo, "checkout", "main")
    git(repo, "merge", "--no-ff", "-m", "merged", "change")
    run(home, "lifecycle scan -c lifecycle.yaml", {})
    run(home, steps(EXPORT, "export")["export"]["run"], {})
    (home / "lifecycle-index.jsonl.gz").rename(repo / "lifecycle-index.jsonl.gz")
    return repo


def run(where: Path, script: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As runners of both do it, with our own command in the path."""
    tools = where / "tools"
    tools.mkdir(exist_ok=True)
    ours = f'#!/bin/sh\nexec {sys.executable} -m lifecycle "$@"\n'
    for name, text in {"lifecycle": ours, "gh": GH}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(stat.S_IRWXU)
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "LANG", "PYTHONPATH", "TMPDIR")}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=where, capture_output=True, text=True, check=False,
        env={**kept, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(CI.parent.parent), **env},
    )  # fmt: skip


GH = r"""#!/bin/sh
echo "$@" >> gh.log
case "$*" in
  "run list"*) echo 4711 ;;
  *--paginate*) cat comments 2> /dev/null || true ;;
esac
"""


def github(repo: Path, step: str, **env: str) -> subprocess.CompletedProcess[str]:
    flow = read(REVIEW)
    given = {"RUNNER_TEMP": str(repo), "GITHUB_STEP_SUMMARY": str(repo / "summary"), "GITHUB_OUTPUT": str(repo / "out")}
    job = "check" if step == "check" else "diff"
    return run(repo, steps(REVIEW, job)[step]["run"], {**flow["env"], **given, **env})


def test_github_compares_and_comments_once(repo: Path):
    checked = github(repo, "check")
    assert checked.returncode == 0 and "1 case, all as expected" in checked.stdout
    assert github(repo, "fetch", REPO="o/r").returncode == 0
    assert "run download 4711 --repo o/r --name lifecycle-index" in (repo / "gh.log").read_text()
    done = github(repo, "compare")
    assert done.returncode == 0, done.stderr
    comment = (repo / "comment.md").read_text()
    assert comment.startswith(f"{MARKER}\n### This policy change newly deletes 3 checkpoints")
    assert "the exported index lifecycle" in comment
    assert (repo / "summary").read_text() == comment
    assert (repo / "out").read_text().splitlines()[-1] == "code=0"
    assert github(repo, "refuse", CODE="0").returncode == 0
    for comments, said in (
        ("", "--method POST repos/o/r/issues/7/comments"),
        ("12\n13\n", "--method PATCH repos/o/r/issues/comments/12"),
    ):
        (repo / "comments").write_text(comments)
        assert github(repo, "comment", REPO="o/r", NUMBER="7").returncode == 0
        assert (repo / "gh.log").read_text().splitlines()[-1] == f"api --silent {said} --field body=@comment.md"


def test_github_comments_and_then_refuses_what_deletes_too_much(repo: Path):
    done = github(repo, "compare", LIMIT="1kB")
    assert done.returncode == 0, done.stderr
    assert (repo / "out").read_text().splitlines()[-1] == "code=4"
    assert github(repo, "refuse", CODE="4").returncode == 4
    assert github(repo, "compare", POLICIES="elsewhere").returncode == 2, "no answer is no comment"


class Api(BaseHTTPRequestHandler):
    """As much of the notes of a merge request as the job asks for."""

    notes: ClassVar[list[dict[str, Any]]] = []
    asked: ClassVar[list[str]] = []

    def _answer(self, value: object, page: str = "") -> None:
        assert self.headers["PRIVATE-TOKEN"] == "glpat"
        self.asked.append(f"{self.command} {self.path}")
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("x-next-page", page)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        if self.path == "/api/user":
            return self._answer({"id": 5})
        last = self.path.endswith("page=2")
        return self._answer(
            self.notes if last else [{"id": 1, "author": {"id": 9}, "body": MARKER}], "" if last else "2"
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        self.notes[:] = [{"id": 77, "author": {"id": 5}, "body": body}]
        self._answer({})

    do_PUT = do_POST  # noqa: N815 - as the server calls it

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the server calls it
        pass


@pytest.fixture
def api() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/api"
        server.shutdown()
        thread.join()


def test_gitlab_compares_and_comments_once(repo: Path, api: str):
    jobs = read(GITLAB)
    env = {
        **jobs[".policy-review"]["variables"], "CI_API_V4_URL": api, "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "8",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "HEAD^1", "CI_COMMIT_SHA": "HEAD", "LIFECYCLE_COMMENT_TOKEN": "glpat",
    }  # fmt: skip
    checked = run(repo, "\n".join(jobs["policy-check"]["script"]), env)
    assert checked.returncode == 0 and "1 case, all as expected" in checked.stdout
    script = "\n".join(jobs["policy-diff"]["script"])
    for method in ("POST", "PUT"):
        done = run(repo, script, env)
        assert done.returncode == 0, done.stderr
        where = "/api/projects/3/merge_requests/8/notes" + ("/77" if method == "PUT" else "")
        assert Api.asked[-1] == f"{method} {where}"
    assert Api.notes[0]["body"].startswith(f"{MARKER}\n### This policy change newly deletes 3 checkpoints")
    count = len(Api.asked)
    assert run(repo, script, {**env, "LIFECYCLE_COMMENT_TOKEN": "", "LIMIT": "1kB"}).returncode == 4
    assert len(Api.asked) == count, "without a token nobody is asked"
