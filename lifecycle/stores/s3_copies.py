"""Where a bucket keeps the manifests of copies, and how they are read back."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from lifecycle.errors import NotFound
from lifecycle.ports import READ_MAX_BYTES
from lifecycle.stores.objects import Objects
from lifecycle.stores.s3_shelf import single

READS_AT_ONCE = 8
_SUFFIX, _BEGUN = ".json", "/manifest.json"


class CopyArea:
    """The objects below ``<state>copies/`` and ``<state>incoming/``."""

    def __init__(self, bucket: Objects, state: str) -> None:
        self.bucket = bucket
        self.copies = f"{state}copies/"
        self.incoming = f"{state}incoming/"

    def published_key(self, copy_id: str) -> str:
        """Where the manifest of a published copy lies. Raises Refused: no copy can be called that."""
        return f"{self.copies}{single(copy_id, 'a copy')}{_SUFFIX}"

    def incoming_area(self, copy_id: str) -> str:
        """Below which all lies that we note of a copy while it comes in. Raises Refused."""
        return f"{self.incoming}{single(copy_id, 'a copy')}/"

    def begun_key(self, copy_id: str) -> str:
        """Where the manifest of a copy lies that is coming in. Raises Refused."""
        return self.incoming_area(copy_id)[:-1] + _BEGUN

    def published(self) -> dict[str, bytes]:
        """Manifests of published copies, by copy id."""
        return self._read(self.copies, _SUFFIX)

    def begun(self) -> dict[str, bytes]:
        """Manifests of copies that came in as far as this, by copy id."""
        return self._read(self.incoming, _BEGUN)

    def _read(self, area: str, suffix: str) -> dict[str, bytes]:
        """One that goes meanwhile is passed over; any other failure is one."""

        def read(key: str) -> bytes | None:
            try:
                return self.bucket.read(key, 0, READ_MAX_BYTES)
            except NotFound:
                return None

        named = dict(_named([head.key for head in self.bucket.listed(area)], area, suffix))
        with ThreadPoolExecutor(READS_AT_ONCE) as pool:
            contents = list(pool.map(read, named.values()))
        return {name: found for name, found in zip(named, contents, strict=True) if found is not None}


def _named(keys: list[str], area: str, suffix: str) -> Iterator[tuple[str, str]]:
    for key in keys:
        name = key[len(area) :].removesuffix(suffix)
        if key.endswith(suffix) and name and "/" not in name:
            yield name, key
