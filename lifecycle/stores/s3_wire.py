"""The fast way for bytes into a bucket and out of it, where it is installed and may speak for boto3's client."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Mapping
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.request import getproxies
from uuid import uuid4

from lifecycle.stores.objects import Piece, marks
from lifecycle.stores.s3_client import failures, word
from lifecycle.stores.s3_pages import SECOND_NS

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest
    from botocore.credentials import Credentials
    from botocore.session import Session
    from mypy_boto3_s3 import S3Client
    from obstore.store import S3Credential, S3Store

LOG = logging.getLogger(__name__)
PUT_MAX_BYTES = 8 * 1024 * 1024
"""What is larger boto3 puts: its patience is with each block and not with the whole, and its cost hardly shows."""
GET_MAX_BYTES = 1024 * 1024
"""Of longer ranges obstore gathers what came, twice: at 2 MiB it takes 0.6 of boto3's processor time, at 8 MiB 2.3."""
MISSES_MAX = 3
"""Requests in a row that failed without an answer about the object: from then on all are left to boto3."""
SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/,\s]+)/\d{8}/(?P<region>[a-z0-9-]+)/s3/aws4_request,")
HEADERS = frozenset(
    {
        "user-agent", "host", "authorization", "content-length", "content-type", "accept-encoding", "x-amz-date",
        "x-amz-content-sha256", "x-amz-security-token", "x-amz-checksum-mode", "amz-sdk-invocation-id",
        "amz-sdk-request", "x-amzn-trace-id",
    }
)  # fmt: skip
"""What boto3 sends without being told to. Whoever sends more was told something that obstore was not."""
SETTINGS = re.compile(
    r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|SECURITY_TOKEN|CREDENTIAL_EXPIRATION|(DEFAULT_)?REGION"
    r"|(DEFAULT_)?PROFILE|CONFIG_FILE|SHARED_CREDENTIALS_FILE|CA_BUNDLE|ENDPOINT_URL(_S3|_STS)?|IGNORE_CONFIGURED_\w+"
    r"|EC2_METADATA_\w+|METADATA_SERVICE_\w+|CONTAINER_\w+|WEB_IDENTITY_TOKEN_FILE|ROLE_ARN|ROLE_SESSION_NAME"
    r"|STS_REGIONAL_ENDPOINTS|USE_(FIPS|DUALSTACK)_ENDPOINT|(REQUEST|RESPONSE)_CHECKSUM_(CALCULATION|VALIDATION)"
    r"|MAX_ATTEMPTS|RETRY_MODE|DEFAULTS_MODE|DATA_PATH|EXECUTION_ENV|PAGER|DEFAULT_OUTPUT|SDK_\w+|VAULT)"
)
"""Variables that stand for nothing else to obstore than they do to boto3, or are overruled here. It reads others too,
and would send what they say."""
SEGMENT = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9_.=+@,:;()!$&' -]+")
"""What stands between two slashes of a key that obstore sends as it is."""


class Wire(Protocol):
    """Does a request in full, or says that it did not: then the caller sends it by boto3, which knows why.

    So whatever went wrong is told by one client, is tried again by one client, and is slept on by one client; and a
    request whose answer was lost is sent twice, as when boto3 itself tries again.
    """

    def put_new(self, key: str, body: BytesIO, options: Mapping[str, Any]) -> bool:
        """Put an object where nothing is; whether it was done. Otherwise it may have been done all the same."""

    def piece(self, key: str, start: int, end: int, size_bytes: int, etag: str) -> Piece | None:
        """The bytes from ``start`` to before ``end`` of an object of that size, which ``etag`` names, if it names any.

        None where it could not be read, or is anything else than that.
        """


def sent_as_is(key: str) -> bool:
    """Whether obstore puts an object of this key at this key; of others it takes slashes off, or refuses them."""
    return all(map(SEGMENT.fullmatch, key.split("/")))


class Address(NamedTuple):
    """Where boto3 sends what it signs for a bucket."""

    url: str
    """Of the bucket, without a slash at the end."""
    region: str
    """That it signs for."""
    access_key_id: str
    """That it signs with."""


class Unspoken(Exception):
    """Why obstore cannot speak for a client."""


class _Prepared(Exception):
    """Carries a request away from where it would be sent."""

    def __init__(self, request: AWSPreparedRequest) -> None:
        super().__init__()
        self.request = request


def address_of(client: S3Client, bucket: str) -> Address:
    """Have boto3 prepare a request, and look at that; it is not sent.

    So the endpoint, the way of addressing, the region and the kind of signature are boto3's own.

    Raises:
        Unspoken: it is signed or sent in a way that obstore does not know.
    """
    key = f"lifecycle-{uuid4().hex}"

    def take(request: AWSPreparedRequest, **_: object) -> None:
        if str(request.url).endswith("/" + key):
            raise _Prepared(request)

    events = client.meta.events
    events.register("before-send.s3.HeadObject", take)
    try:
        client.head_object(Bucket=bucket, Key=key)
        raise Unspoken("a request cannot be seen before it is sent")
    except _Prepared as prepared:
        request = prepared.request
    except failures() as error:
        raise Unspoken(f"a request cannot be prepared: {word(error)}") from None
    finally:
        events.unregister("before-send.s3.HeadObject", take)
    headers = {name.lower(): _text(value) for name, value in request.headers.items()}
    signed = SIGNED.match(headers.get("authorization", ""))
    if signed is None:
        raise Unspoken("requests are signed in another way")
    if strange := headers.keys() - HEADERS:
        raise Unspoken(f"requests carry {min(strange)}")
    return Address(str(request.url)[: -len(key) - 1], signed["region"], signed["key"])


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def check_speakable(address: Address, environment: Collection[str], own_certificates: bool) -> None:
    """That nothing is set which obstore would heed and boto3 would not, or the other way round.

    Args:
        address: of the bucket.
        environment: names of variables.
        own_certificates: whether boto3 trusts others than those it comes with.

    Raises:
        Unspoken: and what it is.
    """
    strange = sorted(n for n in environment if n.upper().startswith("AWS_") and not SETTINGS.fullmatch(n))
    if strange:
        raise Unspoken(f"{strange[0]} is set")
    if getproxies().keys() - {"no"}:
        raise Unspoken("a proxy is set")
    if own_certificates and not address.url.startswith("http://"):
        raise Unspoken("obstore trusts others beside a bundle of certificates of one's own")


class ObstoreWire:
    """Obstore, as far as it can be told to do exactly what boto3's client would.

    It is opened at the first request, and its runtime belongs to the process that sent one: a child that was forked
    after that would wait for threads which it does not have, and so leaves all to boto3.
    """

    _runtime_of: int = 0
    """The process whose threads serve every store; the first that asks."""

    def __init__(self, client: S3Client, session: Session, bucket: str) -> None:
        self._client, self._session, self._bucket = client, session, bucket
        self._opening = Lock()
        self._store: S3Store | None = None
        self.why_not = ""
        """Why all is left to boto3; empty while it is not."""
        self._misses = 0

    def put_new(self, key: str, body: BytesIO, options: Mapping[str, Any]) -> bool:
        """Put an object where nothing is; whether it was done. Otherwise it may have been done all the same."""
        content = body.getvalue()
        if options.keys() - {"Metadata", "StorageClass"} or len(content) > PUT_MAX_BYTES:
            return False
        if (store := self._opened(key)) is None:
            return False
        from obstore import put

        attributes = dict(options.get("Metadata", {}))
        if "StorageClass" in options:
            attributes["Storage-Class"] = options["StorageClass"]
        try:
            made = put(store, key, content, attributes=attributes, mode="create", use_multipart=False)
        except Exception as error:  # of whatever kind: boto3 will meet it again
            self._missed(error)
            return False
        self._misses = 0
        return bool(made["e_tag"])

    def piece(self, key: str, start: int, end: int, size_bytes: int, etag: str) -> Piece | None:
        """The bytes from ``start`` to before ``end`` of an object of that size, which ``etag`` names, if any.

        None where it could not be read, or is anything else than that.
        """
        if end - start > GET_MAX_BYTES or (store := self._opened(key)) is None:
            return None
        from obstore import get

        asked: Any = {"range": (start, end), **({"if_match": f'"{etag}"'} if etag else {})}
        try:
            answer = get(store, key, options=asked)
            meta, span, named = answer.meta, answer.range, answer.attributes
            data = answer.bytes().to_bytes()
        except Exception as error:  # of whatever kind: boto3 will meet it again
            self._missed(error)
            return None
        self._misses = 0
        found = (meta["e_tag"] or "").strip('"')
        whole = span == (start, end) and meta["size"] == size_bytes and len(data) == end - start
        if not whole or not found or (etag and found != etag):
            return None
        return Piece(data, found, marks(named)[0], int(meta["last_modified"].timestamp()) * SECOND_NS)

    def _opened(self, key: str) -> S3Store | None:
        """What may ask for this key in this process."""
        if self.why_not or not sent_as_is(key):
            return None
        process = os.getpid()
        ObstoreWire._runtime_of = ObstoreWire._runtime_of or process
        if ObstoreWire._runtime_of != process:
            return None
        with self._opening:
            if self._store is None and not self.why_not:
                try:
                    self._store = self._open()
                except Unspoken as why:
                    self._leave(str(why))
            return self._store

    def _open(self) -> S3Store:
        try:
            from obstore.store import S3Store
        except ImportError:
            raise Unspoken("it is not installed") from None

        address = address_of(self._client, self._bucket)
        bundle = self._session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE")
        check_speakable(address, os.environ, bool(bundle))
        credentials = self._session.get_credentials()
        if credentials is None or credentials.get_frozen_credentials().access_key != address.access_key_id:
            raise Unspoken("requests are signed with other credentials than the session's")
        told: Any = self._client.meta.config
        config: Any = {
            "bucket": self._bucket,
            "endpoint": address.url,
            "aws_endpoint_url_s3": address.url,  # else a variable would overrule the other
            "region": address.region,
            "virtual_hosted_style_request": True,  # which means: the endpoint names the bucket
            "conditional_put": "etag",
            "skip_signature": False,
            "unsigned_payload": False,
            "s3_express": False,
        }
        if getattr(told, "request_checksum_calculation", "") == "when_supported":
            config["checksum_algorithm"] = "SHA256"  # boto3 sends a sum then, too: buckets with retention want one
        patience = f"{told.read_timeout * 1000:.0f}ms"
        try:
            return S3Store(
                config=config,
                client_options={
                    "allow_http": True,
                    "connect_timeout": f"{told.connect_timeout * 1000:.0f}ms",
                    "read_timeout": patience,
                    "timeout": patience,
                    "user_agent": "checkpoint-lifecycle",
                },
                retry_config={"max_retries": 0},
                credential_provider=Provider(credentials),
            )
        except Exception as error:
            raise Unspoken(f"it refuses its settings: {type(error).__name__}") from None

    def _missed(self, error: Exception) -> None:
        """Count what says nothing about the object; the text of errors is shown nowhere, it may name credentials."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        if isinstance(error, (AlreadyExistsError, PreconditionError, FileNotFoundError)):
            self._misses = 0
            return
        self._misses += 1
        if self._misses >= MISSES_MAX:
            self._leave(f"{MISSES_MAX} requests in a row failed, the last with {type(error).__name__}")

    def _leave(self, why: str) -> None:
        self.why_not = why
        LOG.debug("objects of %s go by boto3 alone: %s", self._bucket, why)


class Provider:
    """Gives obstore, for each request anew, the credentials that boto3 would sign with; refreshing them is boto3's."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def __call__(self) -> S3Credential:
        """As they are now; they count as over at once, so that nothing but boto3 remembers them."""
        from datetime import UTC, datetime

        now = self._credentials.get_frozen_credentials()
        return {
            "access_key_id": now.access_key or "",
            "secret_access_key": now.secret_key or "",
            "token": now.token,
            "expires_at": datetime.now(UTC),
        }
