"""Makes the S3 client, teaches it our page parser, and says what its errors mean, without their text."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from lifecycle.errors import Changed, Denied, NotFound, Refused, StoreError
from lifecycle.stores.s3_pages import Unreadable, parse

if TYPE_CHECKING:
    from botocore.awsrequest import AWSRequest
    from botocore.loaders import Loader
    from botocore.model import OperationModel
    from botocore.session import Session
    from mypy_boto3_s3 import S3Client

PAGE = "LifecyclePage"
"""Where an answer to ListObjectsV2 carries its objects."""

CONNECTIONS = 64
"""That are kept for the next request; those of all parts and small files that are on their way at once."""
SENT_AT_ONCE_BYTES = 2 * 1024 * 1024
"""Up to here a body goes without being announced, as other clients do."""

_Meaning = tuple[type[StoreError], str, str]
_MEANINGS: dict[str, _Meaning] = {
    **dict.fromkeys(
        ("404", "NoSuchKey", "NoSuchVersion", "NoSuchUpload", "NotFound"), (NotFound, "not_found", "")
    ),
    **dict.fromkeys(
        ("NoSuchBucket", "301", "PermanentRedirect", "AuthorizationHeaderMalformed"),
        (StoreError, "source_unavailable", "check bucket, region and endpoint"),
    ),
    **dict.fromkeys(
        (
            "403", "401", "AccessDenied", "AllAccessDisabled", "AccountProblem", "Forbidden", "Unauthorized",
            "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
            "NoCredentialsError", "PartialCredentialsError",
        ),
        (Denied, "permission", ""),
    ),
    **dict.fromkeys(
        ("412", "PreconditionFailed", "ConditionalRequestConflict"), (Changed, "changed_since_plan", "")
    ),
    **dict.fromkeys(("InvalidRange", "416"), (StoreError, "range_empty", "")),
    **dict.fromkeys(
        ("501", "NotImplemented", "405", "MethodNotAllowed"), (StoreError, "unsupported", "")
    ),
    **dict.fromkeys(
        ("InvalidObjectState", "ObjectNotInActiveTierError"), (StoreError, "storage_archived", "recall asks for it")
    ),
    "RestoreAlreadyInProgress": (StoreError, "restoring", ""),
    "ObjectAlreadyInActiveTierError": (StoreError, "not_archived", ""),
    "GlacierExpeditedRetrievalNotAvailable": (StoreError, "too_busy", "ask with --tier standard"),
    "InvalidRequest": (StoreError, "invalid_request", ""),
    "UnicodeEncodeError": (StoreError, "name_unusual", ""),
}  # fmt: skip


class Endpoint(NamedTuple):
    """Where a bucket is and how to sign for it; credentials come from the usual chain only."""

    url: str | None = None
    region: str | None = None
    profile: str | None = None
    addressing_style: str | None = None
    attempts: int = 5
    """How often a request is sent in all, with the client's own back-off between."""


class Connection(NamedTuple):
    """A client, and the session that its credentials come from."""

    client: S3Client
    session: Session


def connect(endpoint: Endpoint) -> Connection:
    """A client whose ListObjectsV2 comes through our own page parser.

    Raises:
        Refused: ``source_unavailable``: no such profile, no region, an endpoint that is no URL.
    """
    import boto3
    import botocore.exceptions
    import botocore.session
    from botocore.config import Config

    options: dict[str, Any] = {}
    if endpoint.addressing_style is not None:
        options["s3"] = {"addressing_style": endpoint.addressing_style}
    if endpoint.url is not None:
        # Compatible stores refuse checksum trailers that nobody asked for.
        options["request_checksum_calculation"] = "when_required"
        options["response_checksum_validation"] = "when_required"
    config = Config(
        connect_timeout=10,
        max_pool_connections=CONNECTIONS,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": endpoint.attempts},
        user_agent_extra="checkpoint-lifecycle",
        **options,
    )
    try:
        core = botocore.session.get_session()
        core.register_component("data_loader", _models())
        session = boto3.session.Session(botocore_session=core, profile_name=endpoint.profile)
        client = session.client("s3", endpoint_url=endpoint.url, region_name=endpoint.region, config=config)
    except (botocore.exceptions.BotoCoreError, ValueError) as error:
        raise Refused(
            f"no S3 client can be made: {type(error).__name__}",
            code="source_unavailable",
            hint="check profile, region and endpoint",
        ) from None
    _read_pages_ourselves(client)
    client.meta.events.register("before-sign.s3.PutObject", _ask_no_leave)
    return Connection(client, core)


def _ask_no_leave(request: AWSRequest, **_: object) -> None:
    """Send a small body at once: to ask first whether it may come takes as long as to send it."""
    from botocore.utils import determine_content_length

    if (determine_content_length(request.data) or 0) <= SENT_AT_ONCE_BYTES:
        del request.headers["Expect"]


@cache
def _models() -> Loader:
    """Descriptions of the services: reading them is most of what a client costs, so stores share them."""
    import botocore.loaders

    return botocore.loaders.create_loader()


def _read_pages_ourselves(client: S3Client) -> None:
    """Take the objects out of every listing page before botocore's slow parser sees them.

    Botocore's own look for errors in disguise parses each body in full as well; for listings ours replaces it.
    """
    import botocore.handlers

    def take(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object) -> None:
        if response_dict["status_code"] != 200:
            return
        try:
            page, response_dict["body"] = parse(response_dict["body"])
        except Unreadable:
            response_dict["status_code"] = 500  # as botocore does with cut bodies: it is asked for again
            return
        customized_response_dict[PAGE] = page

    events = client.meta.events
    events.register("before-parse.s3.ListObjectsV2", take)
    disguised = getattr(botocore.handlers, "_handle_200_error", None)
    if disguised is None:
        return

    def look(operation_model: OperationModel, **kwargs: Any) -> None:
        if operation_model.name != "ListObjectsV2":
            disguised(operation_model=operation_model, **kwargs)

    events.unregister("before-parse.s3.*", disguised)
    events.register_first("before-parse.s3.*", look)


def word(error: Exception) -> str:
    """The code word of a client error or the kind of any other; never its text, which may name credentials."""
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):
        code = str(answer.get("Error", {}).get("Code", ""))
        return code or str(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", ""))
    return type(error).__name__


def failures() -> tuple[type[Exception], ...]:
    """What a request may raise; a key that is not UTF-8 cannot even be asked for."""
    import botocore.exceptions
    import urllib3.exceptions

    return (
        botocore.exceptions.ClientError,
        botocore.exceptions.BotoCoreError,
        urllib3.exceptions.HTTPError,
        UnicodeEncodeError,
        OSError,
    )


def meant(code: str, text: str, told: str = "") -> StoreError:
    """The error that a store's code word means; ``told`` stands in the message where the store has another word."""
    kind, ours, hint = _MEANINGS.get(code, (StoreError, "store_failed", ""))
    return kind(f"{text}: {told or code}", code=ours, hint=hint)
