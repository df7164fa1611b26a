"""Tiers in the buckets of Google and Azure as a user meets them: copied there, proven, recalled; retired and undone."""

import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.cli.harness import DAY_S, Shell, small_tree
from tests.cli.test_corridor import plan_id
from tests.cli.test_tiers import A300, POLICY, sums
from tests.clouds import AZURE_KEY, Gcs, Strict

A200 = "hot:pretrain/a/checkpoint-200"
SITE = """\
stores:
  hot: {url: HOME/ckpt}
  warm: {url: "PLACE/ckpt", endpoint_url: "ENDPOINT"}
policies: [policies]
"""


class Cloud(NamedTuple):
    url: str
    endpoint_url: str
    lying: Callable[[], list[str]]
    """Everything that lies there, told behind the store's back."""


@pytest.fixture
def gcs(fake_gcs: Gcs, strict_gcs: Strict) -> Cloud:
    prefix = uuid.uuid4().hex[:12]

    def keys() -> list[str]:
        listed = fake_gcs.ask("GET", f"/storage/v1/b/{fake_gcs.bucket}/o?prefix={prefix}").json()
        return [item["name"] for item in listed["items"]]

    return Cloud(f"gs://{fake_gcs.bucket}/{prefix}", strict_gcs.url, keys)


@pytest.fixture
def azure(azurite: str) -> Cloud:
    from azure.storage.blob import BlobServiceClient

    service: Any = BlobServiceClient(azurite, AZURE_KEY)
    name = f"c-{uuid.uuid4().hex[:16]}"
    container = service.create_container(name)
    url = f"abfs://{name}@devstoreaccount1.dfs.core.windows.net"
    return Cloud(url, azurite, lambda: [blob.name for blob in container.list_blobs()])


@pytest.fixture(
    params=[
        pytest.param("gcs", marks=pytest.mark.gcs),
        pytest.param("azure", marks=pytest.mark.azurite),
    ]
)
def cloud(request: pytest.FixtureRequest) -> Cloud:
    found: Cloud = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def site(shell: Shell, cloud: Cloud) -> Shell:
    small_tree(shell.home / "ckpt")
    (shell.home / "policies").mkdir()
    (shell.home / "policies/tiers.yaml").write_text(POLICY)
    text = SITE.replace("HOME", str(shell.home)).replace("PLACE", cloud.url).replace("ENDPOINT", cloud.endpoint_url)
    (shell.home / "lifecycle.yaml").write_text(text)
    return shell


def test_there_and_back(site: Shell):
    home = site.home / "ckpt/pretrain/a/checkpoint-300"
    before = sums(home)
    assert site("apply", plan_id(site("plan")), "--yes").code == 0
    assert not home.exists()
    assert site("explain", A300, "--json").json["on"] == ["warm"]
    verified = site("verify", "--json")
    assert verified.code == 0 and {c["outcome"] for c in verified.json["checks"]} == {"whole"}
    (site.home / "scratch").mkdir()
    assert site("drill", "--scratch", "scratch").code == 0
    assert site("plan", "--json").json["actions"] == [], "what is placed stays"
    assert site("recall", A300).code == 0
    back = sums(home)
    # A bucket keeps neither modes nor times; the manifest does.
    assert back == before
    for path in site.home.glob("lifecycle.db*"):
        path.unlink()
    assert site("scan").code == 0
    assert "warm" in site("explain", "hot:pretrain/a/checkpoint-400", "--json").json["on"]


def test_what_expires_in_the_bucket_is_retired_undone_and_purged(site: Shell, cloud: Cloud):
    assert site("apply", plan_id(site("plan")), "--yes").code == 0
    (site.home / "policies/tiers.yaml").write_text(POLICY.replace("last: 6", "last: 4"))
    gone = site("plan", "--json").json
    assert {(a["verb"], a["checkpoint"]) for a in gone["actions"]} == {("retire", A200), ("retire", A300)}
    assert site("apply", gone["plan"][:12], "--yes").code == 0
    assert site("recall", A300).code != 0, "what lies in the trash is no copy"
    assert site("undo", gone["plan"][:12], "--no-hold").code == 0
    again = site("plan", "--json").json
    assert again["actions"] == gone["actions"]
    assert site("apply", again["plan"][:12], "--yes").code == 0
    site.clock.now_s += 40 * DAY_S
    assert [key for key in cloud.lying() if "checkpoint-300/" in key], "only its proof has gone"
    assert site("purge", "--yes").code == 0
    left = cloud.lying()
    assert not [key for key in left if "checkpoint-300/" in key or "/trash/" in key]
    assert [key for key in left if "checkpoint-400/model.safetensors" in key]
