"""The Dockerfile: what it promises, and what comes of its steps."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from lifecycle import __version__
from tests.deploy.image import DOCKERFILE, ROOT, Image, stages
from tests.deploy.kube import CHART
from tests.deploy.sandbox import Mount, User, command

pytestmark = pytest.mark.timeout(400)  # whoever comes first makes the image
BUILD, LAST = stages(DOCKERFILE.read_text())


def test_the_base_is_pinned_and_the_same_twice():
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", LAST.base)
    assert BUILD.base == LAST.base, "an environment works only with the very Python that made it"


def test_it_is_nobody_who_is_root():
    values = yaml.safe_load((CHART / "values.yaml").read_text())["user"]
    assert LAST.all("USER") == [f"{values['uid']}:{values['gid']}"], "a number, or Kubernetes cannot tell"


def test_the_shipped_stage_runs_nothing_and_needs_no_shell():
    assert LAST.all("RUN") == [] and LAST.all("ADD") == []
    for name in ("ENTRYPOINT", "CMD"):
        [words] = LAST.all(name)
        assert words.startswith('["'), f"{name} would be run by a shell"
    assert LAST.all("COPY") == ["--from=build /opt/lifecycle /opt/lifecycle"]


def test_it_says_what_it_is():
    labels = set(LAST.pairs("LABEL"))
    wanted = ("title", "description", "licenses", "version", "revision")
    assert labels == {f"org.opencontainers.image.{name}" for name in wanted}
    secret = re.compile("password|secret|token", re.IGNORECASE)
    assert not [
        name for stage in (BUILD, LAST) for name in stage.pairs("ENV") | stage.pairs("ARG") if secret.search(name)
    ]


def test_all_that_is_installed_has_a_hash():
    installs = [line for line in BUILD.all("RUN") if " install " in line]
    assert len(installs) == 3
    for line in installs:
        assert "--require-hashes" in line or ("--offline" in line and "--no-deps" in line), line
    for name in ("requirements.txt", "requirements-build.txt"):
        lines = (ROOT / "deploy" / name).read_text().splitlines()
        packages = [line for line in lines if re.match(r"[a-z]", line)]
        assert packages and all(re.fullmatch(r"[a-z0-9._-]+==\S+ \\", line) for line in packages)
        assert not [line for line in lines if "://" in line]


def test_it_has_what_the_tests_ran_with():
    """The packages of the base, in the versions that every test of this run used."""

    def pins(path: Path) -> dict[str, str]:
        return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", path.read_text(), re.MULTILINE))

    shipped, tested = pins(ROOT / "deploy/requirements.txt"), pins(ROOT / "requirements-dev.txt")
    assert pins(ROOT / "requirements.txt").items() <= shipped.items()
    assert shipped.items() <= tested.items(), "run `make pins`"
    assert {"psycopg", "obstore", "google-auth", "azure-storage-blob"} <= set(shipped)


def test_only_what_it_is_made_of_is_sent_to_the_builder():
    lines = (ROOT / "deploy/Dockerfile.dockerignore").read_text().splitlines()
    lines = [line for line in lines if not line.startswith("#")]
    assert lines[0] == "*" and {line[1:] for line in lines if line.startswith("!")} == set(BUILD.sources)
    assert all((ROOT / source).exists() for source in BUILD.sources)


def test_what_its_steps_make_runs_by_itself(image: Image, tmp_path: Path):
    """Without this checkout, without pip, as nobody, on a root that cannot be written to."""
    [entry] = LAST.all("ENTRYPOINT")
    program = entry.strip('["]')
    writable = tmp_path / "tmp"
    writable.mkdir()
    writable.chmod(0o777)
    script = f"""
{program} --version
id -u; id -g; id -G
for place in / /etc /usr /opt/lifecycle /opt/lifecycle/lib /tmp; do
  touch $place/x 2>/dev/null && echo wrote $place
done
grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status
python -c 'import pip' 2>/dev/null && echo pip
find /opt/lifecycle -perm /022 ! -type l ! -name .lock | head -3
exec {program} policy check --help > /dev/null
"""
    (tmp_path / "root").mkdir()
    mounts = [*image.mounts, Mount(writable, "/tmp")]
    words = command(["sh", "-c", script], tmp_path / "root", mounts, image.env, user=User(10001, 10001, (3000,)))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout.splitlines()
    none = "0" * 16
    caps = [f"CapEff:\t{none}", f"CapBnd:\t{none}", "NoNewPrivs:\t1"]
    assert told == [f"lifecycle {__version__}", "10001", "10001", "10001 3000", "wrote /tmp", *caps]
