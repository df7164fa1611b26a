"""Pushes metrics to a pushgateway: one request that replaces what the group held before."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from lifecycle.core.units import escape
from lifecycle.errors import LifecycleError
from lifecycle.hooks.secrets import NoSecret, secret_of

if TYPE_CHECKING:
    from lifecycle.config.monitoring import Gateway

TIMEOUT_S = 10.0
ANSWER_MAX_BYTES = 2000


def push(gateway: Gateway, body: bytes, env: Mapping[str, str]) -> None:
    """Replace the group's metrics by ``body``, in Prometheus' text format.

    Redirects are not followed, for the credentials are meant for one host.

    Raises:
        LifecycleError: ``push_failed``: it cannot be reached or does not take them; ``secret_missing``.
    """
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8", **_credentials(gateway, env)}
    # The settings let only http and https through, so no file can be meant.
    request = Request(address(gateway), data=body, headers=headers, method="PUT")
    where = f"the pushgateway at {gateway.url}"
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:
            answer.read(ANSWER_MAX_BYTES)
    except HTTPError as e:
        with e:
            said = escape(e.read(ANSWER_MAX_BYTES).decode("utf-8", "replace").strip())
        text = f"{where} does not take the metrics: {e.code} {said[:300]}".rstrip()
        hint = "is the token right?" if e.code in (401, 403) else ""
        raise LifecycleError(text, code="push_failed", hint=hint) from None
    except (URLError, OSError, ValueError) as e:
        reason = e.reason if isinstance(e, URLError) else e
        raise LifecycleError(f"{where} cannot be reached: {reason}", code="push_failed") from None


def address(gateway: Gateway) -> str:
    """The address of its group, as the pushgateway reads it."""
    pairs = (("job", gateway.job), *gateway.grouping)
    return f"{gateway.url}/metrics/" + "/".join(part for name, value in pairs for part in _pair(name, value))


def _pair(name: str, value: str) -> tuple[str, str]:
    """A slash cannot be escaped in the path, as the pushgateway says."""
    if "/" in value:
        return f"{name}@base64", urlsafe_b64encode(value.encode()).decode("ascii")
    return name, quote(value, safe="")


def _credentials(gateway: Gateway, env: Mapping[str, str]) -> dict[str, str]:
    if gateway.token is None:
        return {}
    try:
        secret = secret_of(gateway.token, env)
    except NoSecret as e:
        raise LifecycleError(f"no token for the pushgateway: {e}", code="secret_missing") from None
    if gateway.user:
        return {"Authorization": f"Basic {b64encode(f'{gateway.user}:{secret}'.encode()).decode('ascii')}"}
    return {"Authorization": f"Bearer {secret}"}
