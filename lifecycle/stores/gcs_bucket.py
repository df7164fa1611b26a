"""One bucket in Google Cloud Storage, by its JSON API: what changes an object names the generation it may change."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import quote, urlencode

from lifecycle.errors import Changed, Denied, NotFound, Refused, StoreError
from lifecycle.stores.bucket_rules import of_google
from lifecycle.stores.cloud_bucket import CloudBucket, Part
from lifecycle.stores.objects import COPY_MARK, PUT_MARK, Head
from lifecycle.stores.s3_client import meant
from lifecycle.stores.s3_pages import Page, to_ns

if TYPE_CHECKING:
    import urllib3
    from urllib3.response import BaseHTTPResponse

    from lifecycle.ports.ruled import BucketRule

ADDRESS = "https://storage.googleapis.com"
SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
EMULATOR = "STORAGE_EMULATOR_HOST"
"""Where Google's own clients look for an emulator's address."""
PAGE_KEYS = 1000
_FIELDS = "kind,nextPageToken,items(name,size,generation,timeCreated,storageClass)"
_KEPT = {
    "ContentType": "contentType", "ContentEncoding": "contentEncoding", "ContentDisposition": "contentDisposition",
    "ContentLanguage": "contentLanguage", "CacheControl": "cacheControl", "Metadata": "metadata",
    "StorageClass": "storageClass",
}  # fmt: skip


class Failed(Exception):
    """An answer that is none of those that were waited for."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Signer(NamedTuple):
    """Who we are to the service; without credentials, nobody."""

    credentials: Any
    request: Any

    def headers(self, method: str, url: str) -> dict[str, str]:
        """What proves it."""
        found: dict[str, str] = {}
        if self.credentials is not None:
            self.credentials.before_request(self.request, method, url, found)
        return found


class GcsBucket(CloudBucket):
    """One bucket. What our code calls an ETag is the generation here: it alone names one upload for ever.

    Args:
        name: the bucket's.
        store: what messages call it.
        endpoint_url: where it answers, if not at Google or at the emulator that the environment names. Nobody
            signs for an address without TLS.
        attempts: how often a request is sent in all before it counts as failed.
    """

    wrong_etag: ClassVar[str] = "1"

    def __init__(self, name: str, store: str, endpoint_url: str | None = None, attempts: int = 5) -> None:
        super().__init__(name, store)
        given = endpoint_url or os.environ.get(EMULATOR) or ADDRESS
        self.url = (given if "://" in given else f"http://{given}").rstrip("/")
        self.pool = _pool(attempts)
        self.signer = _signer(self.url, self.pool)

    # -- requests

    @contextmanager
    def asking(self, what: str, key: str = "") -> Iterator[None]:
        """Turn what goes wrong inside into our errors, without the original's text."""
        import google.auth.exceptions
        import urllib3.exceptions

        text = f"{what} {self.store}:{key}"
        try:
            yield
        except Failed as error:
            raise meant(str(error.status), text) from None
        except google.auth.exceptions.GoogleAuthError as error:
            raise Denied(f"{text}: {type(error).__name__}", code="permission") from None
        except (urllib3.exceptions.HTTPError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"{text}: {type(error).__name__}", code="store_failed") from None

    def _ask(
        self,
        method: str,
        url: str,
        params: Mapping[str, str | None] = MappingProxyType({}),
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        wanted: tuple[int, ...] = (200,),
    ) -> BaseHTTPResponse:
        """One request, its answer read whole. Raises Failed: its status is none of ``wanted``."""
        given = {name: text for name, text in params.items() if text is not None}
        url = (url if "://" in url else self.url + url) + ("?" + urlencode(given) if given else "")
        # Compressed objects come as they are stored, or their size would be another one.
        head = {"Accept-Encoding": "gzip", **self.signer.headers(method, url), **(headers or {})}
        answer = self.pool.request(method, url, headers=head, body=body, redirect=False, decode_content=False)
        if answer.status not in wanted:
            raise Failed(answer.status)
        return answer

    def _object(self, key: str) -> str:
        if key in (".", ".."):
            raise self.unusual(key)
        return f"/storage/v1/b/{quote(self.name, safe='')}/o/{quote(self.check_name(key), safe='')}"

    # -- what the base asks for

    def told(self) -> list[str]:
        """The bucket's address and, where we may know them, its place and its day of creation."""
        with self.asking("list"):
            self._ask("GET", f"/storage/v1/b/{quote(self.name, safe='')}/o", {"maxResults": "1", "fields": "kind"})
        raw = self._about()
        place = "google" if self.url == ADDRESS else self.url
        return [
            f"gs:{place}",
            self.name,
            f"location={raw.get('location', '')}",
            f"created={raw.get('timeCreated', '')}",
        ]

    def rules(self) -> Iterator[BucketRule]:
        """Lifecycle rules of the bucket that act on live objects."""
        raw = self._about()
        if not raw:
            text = f"the bucket of {self.store} does not tell of its rules: storage.buckets.get is missing"
            raise Denied(text, code="permission")
        with self.asking("read the lifecycle rules of"):
            found = list(of_google(raw.get("lifecycle", {}).get("rule", ())))
        yield from found

    def date(self) -> str:
        """That of the shortest listing."""
        with self.asking("ask the time of"):
            url = f"/storage/v1/b/{quote(self.name, safe='')}/o"
            answer = self._ask("GET", url, {"maxResults": "1", "fields": "kind"})
        return str(answer.headers.get("Date", ""))

    def _about(self) -> dict[str, Any]:
        """What the bucket says of itself; nothing where we may not know."""
        try:
            with self.asking("look at the bucket of"):
                raw: dict[str, Any] = _json(self._ask("GET", f"/storage/v1/b/{quote(self.name, safe='')}"))
        except Denied:
            return {}
        return raw

    def keeps_versions(self) -> bool:
        """Whether it has versions or soft delete, which new buckets have."""
        raw = self._about()
        soft = int(raw.get("softDeletePolicy", {}).get("retentionDurationSeconds", 0))
        return not raw or bool(raw.get("versioning", {}).get("enabled")) or soft > 0

    def tags(self, key: str) -> Mapping[str, str]:
        """Custom metadata but our own marks: the service has no tags."""
        head = self.head(key)
        if head is None:
            raise self.missing(key)
        return {name: text for name, text in head.meta.get("Metadata", {}).items() if name not in (COPY_MARK, PUT_MARK)}

    def _page(self, prefix: str, token: str | None) -> tuple[Page, str | None]:
        with self.asking("list", prefix):
            url = f"/storage/v1/b/{quote(self.name, safe='')}/o"
            asked = {"prefix": self.check_name(prefix), "maxResults": str(PAGE_KEYS), "fields": _FIELDS}
            raw = _json(self._ask("GET", url, {**asked, "pageToken": token}))
            if raw.get("kind") != "storage#objects":
                raise ValueError("no listing")  # an empty answer must not look like an empty bucket
            items = raw.get("items", [])
            columns = [
                (i["name"], int(i["size"]), to_ns(i["timeCreated"]), str(i["generation"]), i.get("storageClass", ""))
                for i in items
            ]
        classes = {c[0]: c[4] for c in columns if c[4] not in ("", "STANDARD")}
        keys, sizes, times, generations = ([c[n] for c in columns] for n in range(4))
        return Page(keys, sizes, times, generations, classes), raw.get("nextPageToken")  # type: ignore[arg-type]  # columns keep their types

    def head(self, key: str) -> Head | None:
        """The object at ``key``, or None where there is none."""
        try:
            with self.asking("look at", key):
                answer = self._ask("GET", self._object(key))
                raw = _json(answer)
                meta = {ours: raw[theirs] for ours, theirs in _KEPT.items() if raw.get(theirs)}
                mtime_ns, size = to_ns(raw["timeCreated"]), int(raw["size"])
                return Head(
                    key, size, str(raw["generation"]), mtime_ns, meta, _locked(raw, answer), raw.get("crc32c", "")
                )
        except NotFound:
            return None

    def _fetch(self, key: str, start: int, length: int, etag: str) -> bytes:
        span = {"Range": f"bytes={start}-{start + length - 1}"}
        with self.asking("read", key):
            found = (200, 206, 416)
            asked = {"alt": "media", "ifGenerationMatch": etag or None}
            answer = self._ask("GET", self._object(key), asked, headers=span, wanted=found)
        if answer.status == 416:
            return b""
        if etag and answer.headers.get("x-goog-generation", etag) != etag:
            raise Changed(f"{self.store}:{key} was replaced while it was read")
        whole = answer.status == 200
        return answer.data[start : start + length] if whole else answer.data

    def _put(self, key: str, content: bytes, **more: Any) -> str:
        about = {"name": self.check_name(key), **{_KEPT[name]: more[name] for name in _KEPT if name in more}}
        mark = uuid.uuid4().hex
        lead = f"--{mark}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(about)}\r\n--{mark}\r\n"
        kind = f"Content-Type: {more.get('ContentType', 'application/octet-stream')}\r\n\r\n"
        body = b"".join([(lead + kind).encode(), content, f"\r\n--{mark}--\r\n".encode()])
        headers = {"Content-Type": f"multipart/related; boundary={mark}"}
        with self.asking("write", key):
            asked = {"uploadType": "multipart", **_condition(more)}
            answer = self._ask("POST", self._uploads, asked, headers=headers, body=body)
            return str(_json(answer)["generation"])

    @property
    def _uploads(self) -> str:
        return f"/upload/storage/v1/b/{quote(self.name, safe='')}/o"

    def upload(self, key: str, size_bytes: int, parts: Iterator[Part], **more: Any) -> None:
        """By one request where it is small, else by a session that the service forgets when it is not ended."""
        if size_bytes <= self.part_bytes:
            bodies = [part.body for part in parts]
            self._put(key, b"".join(bodies), IfNoneMatch="*", **more)
            return
        about = {"name": self.check_name(key), **{_KEPT[name]: more[name] for name in _KEPT if name in more}}
        headers = {"Content-Type": "application/json; charset=UTF-8", "X-Upload-Content-Length": str(size_bytes)}
        with self.asking("write", key):
            asked = {"uploadType": "resumable", **_condition({"IfNoneMatch": "*"})}
            begun = self._ask("POST", self._uploads, asked, headers=headers, body=json.dumps(about).encode())
            session = begun.headers["Location"]
        for part in parts:
            end = part.start + len(part.body)
            span = {"Content-Range": f"bytes {part.start}-{end - 1}/{size_bytes}"}
            wanted = (200, 201) if part.last else (308,)
            # The service holds the condition against the end of the session; what passes over it has this look.
            if part.last and self.head(key) is not None:
                raise Changed(f"something stands at {self.store}:{key}")
            with self.asking("write", key):
                answer = self._ask("PUT", session, headers=span, body=part.body, wanted=wanted)
            if not part.last and answer.headers.get("Range", "") != f"bytes=0-{end - 1}":
                raise StoreError(f"{self.store} did not take all of a part of {key!r}", code="store_failed")

    def _copy(self, source: Head, key: str) -> None:
        with self.asking("copy", source.key):
            self._rewritten(source.key, key, {"ifSourceGenerationMatch": source.etag})

    def rewrite(self, head: Head, storage_class: str) -> None:
        """Bring an object to another class where it is: the same bytes and metadata, a new generation and time.

        All that can be said of an object is sent along: what is left out would be taken off it.

        Raises:
            Changed: it is not the one that ``head`` tells of, or its metadata was changed meanwhile.
        """
        key = head.key
        with self.asking("change the class of", key):
            raw = _json(self._ask("GET", self._object(key), {"ifGenerationMatch": head.etag}))
            about = {name: raw[name] for name in (*_KEPT.values(), "customTime", "contexts") if raw.get(name)}
            asked = {"ifGenerationMatch": head.etag, "ifSourceGenerationMatch": head.etag}
            asked["ifSourceMetagenerationMatch"] = str(raw["metageneration"])
            if raw.get("kmsKeyName"):  # or it would be the bucket's usual one
                asked["destinationKmsKeyName"] = raw["kmsKeyName"].partition("/cryptoKeyVersions/")[0]
            more = {
                "headers": {"Content-Type": "application/json; charset=UTF-8"},
                "body": json.dumps({**about, "storageClass": storage_class}).encode(),
            }
            made = self._rewritten(key, key, asked, **more)
        if made.get("crc32c", head.digest) != head.digest:
            raise StoreError(f"{self.store}:{key} has another checksum in {storage_class}", code="store_failed")

    def _rewritten(self, source: str, key: str, asked: Mapping[str, str], **more: Any) -> dict[str, Any]:
        """One rewrite, asked for until it is done; what the service then says of the object."""
        url = f"{self._object(source)}/rewriteTo{self._object(key).removeprefix('/storage/v1')}"
        token: str | None = None
        while True:
            raw = _json(self._ask("POST", url, {**asked, "rewriteToken": token}, **more))
            if raw.get("done", True):
                found: dict[str, Any] = raw.get("resource", {})
                return found
            token = raw["rewriteToken"]

    def remove(self, key: str, etag: str = "") -> None:
        """Delete an object, with a generation only while it has that one."""
        with self.asking("delete", key):
            self._ask("DELETE", self._object(key), {"ifGenerationMatch": etag or None}, wanted=(200, 204))


def _condition(more: Mapping[str, Any]) -> dict[str, str]:
    if more.get("IfNoneMatch") == "*":
        return {"ifGenerationMatch": "0"}
    return {"ifGenerationMatch": str(more["IfMatch"]).strip('"')} if "IfMatch" in more else {}


def _json(answer: BaseHTTPResponse) -> dict[str, Any]:
    body = answer.data
    if answer.headers.get("Content-Encoding") == "gzip":
        import gzip

        body = gzip.decompress(body)
    raw = json.loads(body)
    if not isinstance(raw, dict):
        raise ValueError("no object")
    return raw


def _locked(raw: Mapping[str, Any], answer: BaseHTTPResponse) -> str:
    """Why the object cannot be deleted; a retention is over when it is by the service's own clock."""
    if raw.get("temporaryHold") or raw.get("eventBasedHold"):
        return "hold"
    until = raw.get("retentionExpirationTime")
    if until is None:
        return ""
    from email.utils import parsedate_to_datetime

    date = answer.headers.get("Date")
    over = date is not None and datetime.fromisoformat(until) <= parsedate_to_datetime(date)
    return "" if over else f"retained until {until}"


def _pool(attempts: int) -> urllib3.PoolManager:
    """Connections that threads may share; what may pass is asked for again, with a pause between."""
    import urllib3

    # A deed whose answer was lost is asked for again as well: each of ours has a condition, or is settled by a look.
    again = urllib3.Retry(
        attempts - 1,
        redirect=False,
        allowed_methods=None,
        status_forcelist=(408, 429, 500, 502, 503, 504),
        backoff_factor=0.3,
        backoff_jitter=0.3,
        raise_on_status=False,
    )
    return urllib3.PoolManager(
        maxsize=32, retries=again, timeout=urllib3.Timeout(connect=10, read=60), headers={"User-Agent": "lifecycle"}
    )


def _signer(url: str, pool: urllib3.PoolManager) -> Signer:
    """Credentials of the usual chain. Raises Refused: there are none."""
    if not url.startswith("https://"):
        return Signer(None, None)
    import google.auth
    import google.auth.exceptions
    import google.auth.transport.urllib3

    made: Any = google.auth.transport.urllib3.Request  # it ships half of its types
    request = made(pool)
    try:
        credentials, _ = google.auth.default(scopes=[SCOPE], request=request)
    except (google.auth.exceptions.GoogleAuthError, OSError, ValueError) as error:
        raise Refused(
            f"no credentials for Google Cloud Storage: {type(error).__name__}",
            code="source_unavailable",
            hint="run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS",
        ) from None
    return Signer(credentials, request)
