"""The command of the chart with its index on a real Postgres, copies in a real bucket, and all keys from Secrets."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from tests.deploy.image import Image
from tests.deploy.pod import Cluster
from tests.deploy.sandbox import Mount
from tests.deploy.scenes import ALL, AUTO, POLICY, SMALL, steps
from tests.servers import ACCESS_KEY, SECRET_KEY, Server

pytestmark = [pytest.mark.postgres, pytest.mark.seaweed, pytest.mark.timeout(400)]
SOCKET = "/run/postgres"
PASSWORD = "canary/K7MDENG+bPxRfiCY:LIFE"


class Role(NamedTuple):
    """Whom the server knows, where the pod finds it, and what has to be mounted for that."""

    url: str
    mounts: tuple[Mount, ...]


@pytest.fixture
def role(postgres: str) -> Iterator[Role]:
    """A role that owns a schema and nothing else. Whoever has its name still needs its password."""
    import psycopg

    name = f"pod_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres, autocommit=True) as server:

        def run(text: Any) -> Any:
            return server.execute(text)

        run(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
        run(f"CREATE SCHEMA {name} AUTHORIZATION {name}")
        rules = Path(run("SHOW hba_file").fetchone()[0])
        if not rules.exists():
            pytest.skip("the server is on another machine: its rules for passwords cannot be set")
        rules.write_text(f"local all {name} scram-sha-256\nhost all {name} all scram-sha-256\n{rules.read_text()}")
        run("SELECT pg_reload_conf()")
        where = server.info
        url = f"postgresql://{name}@/{where.dbname}?host={quote(SOCKET, '')}&port={where.port}"
        door = f".s.PGSQL.{where.port}"  # it alone: what it lies in is for nobody but the server
        yield Role(url, (Mount(Path(where.host, door), f"{SOCKET}/{door}"),))
        run(f"DROP SCHEMA {name} CASCADE")
        run(f"DROP ROLE {name}")


def test_a_night_on_a_server_and_a_bucket(
    image: Image, cluster: Callable[..., Cluster], claims: dict[str, Path], role: Role, seaweed: Server
):
    prefix = uuid.uuid4().hex
    settings = {"endpoint_url": seaweed.endpoint_url, "region": "us-east-1", "addressing_style": "path"}
    keys = {"id": ACCESS_KEY, "secret": SECRET_KEY}
    names = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
    made = cluster(
        stores=SMALL["stores"] | {"warm": {"url": f"s3://{seaweed.bucket}/{prefix}", "settings": settings}},
        policies={"pretrain.yaml": POLICY + "place:\n  - {kept_by: last, on: [hot, warm]}\n"},
        database={"sqlite": None, "postgres": {"url": role.url, "password": {"secret": "db", "key": "password"}}},
        tick=AUTO | {"verify": {"budget": "1GB", "older": "1s"}},
        secretEnv={name: {"secret": "s3", "key": key} for name, key in names.items()},
        env={"AWS_EC2_METADATA_DISABLED": "true"},
    )
    made.more = role.mounts
    made.secrets = {"s3": keys, "db": {"password": "not-it"}}
    barred = made.run("CronJob", image)
    assert barred.returncode == 1 and "password authentication failed" in barred.stderr, barred.stderr
    assert steps(claims) == ALL

    made.secrets = {"s3": keys, "db": {"password": PASSWORD}}
    first = made.run("CronJob", image)
    assert first.returncode == 0, first.stdout + first.stderr
    assert steps(claims) == {"400", "500"}
    listed = seaweed.client.list_objects_v2(Bucket=seaweed.bucket, Prefix=f"{prefix}/run/")["Contents"]
    assert {key["Key"].split("/")[-2] for key in listed} == {"checkpoint-400", "checkpoint-500"}

    # Another pod, with another /state, remembers what this one did.
    second = made.run("CronJob", image, "undo", "hot:run/checkpoint-300", "--config", "/config/lifecycle.yaml")
    assert second.returncode == 0, second.stdout + second.stderr
    assert steps(claims) == {"300", "400", "500"}
    assert list(claims["state"].iterdir()) == []
    said = [text for done in (barred, first, second) for text in (done.stdout, done.stderr)]
    assert not [text for text in said if PASSWORD in text or SECRET_KEY in text]
