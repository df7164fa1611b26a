"""Which store a URL opens, and how it is refused."""

from pathlib import Path

import pytest

from lifecycle.config.roots import WRITABLE
from lifecycle.errors import ConfigInvalid, Place
from lifecycle.stores.cloud import CloudStore
from lifecycle.stores.local import LocalStore
from lifecycle.stores.memory import MemoryStore
from lifecycle.stores.memory_trash import MemoryTrash
from lifecycle.stores.open import StoreSpec, open_intake, open_store, open_trash
from lifecycle.stores.posix_trash import LocalTrash
from lifecycle.stores.s3 import S3Store


@pytest.mark.parametrize("form", ["{}", "file://{}", "FILE://{}", "file:{}", "file://localhost{}"])
def test_paths_and_file_urls_open_a_directory(tmp_path: Path, form: str):
    root = tmp_path / "a b%20c:d"
    root.mkdir()
    (root / "x").write_bytes(b"1")
    store = open_store(StoreSpec("hot", form.format(root), state=str(tmp_path / "state")))
    assert isinstance(store, LocalStore) and isinstance(open_trash(store), LocalTrash)
    assert store.read("x") == b"1" and store.name == "hot"


def test_a_percent_sign_is_no_way_round_a_check(tmp_path: Path):
    (tmp_path / "secret").mkdir()
    store = open_store(StoreSpec("hot", f"file://{tmp_path}/%73ecret"))
    assert isinstance(store, LocalStore) and store.path.endswith("/%73ecret")


def test_s3_urls_open_a_bucket_without_contacting_it():
    store = open_store(StoreSpec("warm", "s3://bucket/prefix", "http://127.0.0.1:1", storage_class="STANDARD_IA"))
    assert isinstance(store, S3Store) and store.storage_class == "STANDARD_IA"
    assert type(open_trash(store)).__name__ == "S3Trash" and type(open_intake(store)).__name__ == "S3Intake"


def test_memory():
    store = open_store(StoreSpec("m", "memory:"))
    assert isinstance(store, MemoryStore) and isinstance(open_trash(store), MemoryTrash)


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("nosuch://host/x", "no kind of store is called 'nosuch'"),
        ("local://host/x", "'local'"),
        ("file://host/x", "no absolute path"),
        ("file:x", "no absolute path"),
        ("x/y", "no absolute path"),
        ("", "no absolute path"),
        ("/a\0b", "no absolute path"),
    ],
)
def test_what_cannot_be_opened_is_named_with_its_place(url: str, word: str):
    with pytest.raises(ConfigInvalid, match=word) as caught:
        open_store(StoreSpec("odd", url, place=Place("lifecycle.yaml", 3, 5)))
    assert str(caught.value).startswith("lifecycle.yaml:3:5: store odd")


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [("gs://bucket/x", "google.auth", "gcs"), ("abfs://c@a.dfs.core.windows.net/x", "azure.storage.blob", "azure")],
)
@pytest.mark.parametrize("around", [True, False], ids=["parent there", "nothing there"])
def test_what_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, url: str, module: str, extra: str, around: bool
):
    def find_spec(name: str) -> None:
        assert name == module
        if not around:
            raise ModuleNotFoundError(name)

    monkeypatch.setattr("lifecycle.stores.cloud.find_spec", find_spec)
    with pytest.raises(ConfigInvalid, match=f"lifecycle.yaml:3:5: store cold: .* extra `{extra}`") as caught:
        open_store(StoreSpec("cold", url, place=Place("lifecycle.yaml", 3, 5)))
    assert f"checkpoint-lifecycle[{extra}]" in caught.value.hint


@pytest.mark.parametrize(
    ("url", "bucket", "account", "prefix"),
    [
        ("gs://b/p/q", "b", "", "p/q/"),
        ("gcs://b", "b", "", ""),
        ("az://c/p", "c", "", "p/"),
        ("abfs://c@acc.dfs.core.windows.net/p", "c", "acc.blob.core.windows.net", "p/"),
        ("abfss://c@acc", "c", "acc", ""),
    ],
)
def test_cloud_urls_open_a_bucket_without_contacting_it(
    monkeypatch: pytest.MonkeyPatch, url: str, bucket: str, account: str, prefix: str
):
    monkeypatch.setattr("lifecycle.stores.cloud.find_spec", lambda name: name)
    store = open_store(StoreSpec("cold", url, state="own/place"))
    assert isinstance(store, CloudStore) and (store.prefix, store.state) == (prefix, "own/place/")
    assert (store._bucket_name, store._account) == (bucket, account)
    assert type(open_trash(store)).__name__ == "S3Trash" and type(open_intake(store)).__name__ == "CloudIntake"


@pytest.mark.parametrize("url", ["gs://", "gs:///p", "gs://key@b/p", "gs://k:secret@b/p", "abfs://c@a:secret@b/p"])
def test_cloud_urls_that_cannot_be_meant(monkeypatch: pytest.MonkeyPatch, url: str):
    monkeypatch.setattr("lifecycle.stores.cloud.find_spec", lambda name: name)
    with pytest.raises(ConfigInvalid) as caught:
        open_store(StoreSpec("cold", url))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("scheme", sorted(WRITABLE))
def test_the_settings_know_which_schemes_can_be_changed(scheme: str, monkeypatch: pytest.MonkeyPatch):
    """Else a store would get a trash that is none, or none where it has one."""
    monkeypatch.setattr("lifecycle.stores.cloud.find_spec", lambda name: name)
    store = open_store(StoreSpec("s", f"{scheme}://{'' if scheme == 'file' else 'b'}/x"))
    assert open_trash(store) is not None and open_intake(store) is not None


def test_a_store_without_trash_can_only_be_read():
    class Foreign(MemoryStore):
        pass

    other = type("Other", (), {"name": "x"})()
    with pytest.raises(ConfigInvalid, match="only be read"):
        open_trash(other)
    assert isinstance(open_trash(Foreign("f")), MemoryTrash)
