"""Who may read: a token that is compared in constant time, and sessions of browsers that end by themselves."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from hashlib import blake2b

from lifecycle.errors import ConfigInvalid
from lifecycle.hooks.secrets import NoSecret, secret_of
from lifecycle.ports.secret import Reference

TOKEN_MIN, TOKEN_MAX = 16, 1024
"""Characters of a token: 16 drawn at random are out of reach of guessing over a network."""
SESSION_S = 12 * 3600
_HINT = "make one: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"


def read_token(source: Reference | None, env: Mapping[str, str]) -> str:
    """The token that stands there; empty where none is asked for.

    Raises:
        ConfigInvalid: ``no_token``: it is not there; ``weak_token``: it is too short, or no word of plain characters.
    """
    if source is None:
        return ""
    try:
        token = secret_of(source, env)
    except NoSecret as e:
        raise ConfigInvalid(f"http.token: {e}", code="no_token", hint=_HINT) from None
    if " " in token or not TOKEN_MIN <= len(token) <= TOKEN_MAX:
        text = f"http.token: what stands in {source} must be {TOKEN_MIN} to {TOKEN_MAX} characters and no blanks"
        raise ConfigInvalid(text, code="weak_token", hint=_HINT)
    return token


class Gate:
    """Knows the token, or that none is asked for.

    A session is a time at which it ends, and a mark that only this process can make: a cookie tells nothing of the
    token, and none outlives the process.

    Args:
        token: empty where everybody may read.
        now_ns: the clock.
    """

    def __init__(self, token: str, now_ns: Callable[[], int]) -> None:
        self._key = secrets.token_bytes(32)
        self._now_ns = now_ns
        self.locked = bool(token)
        """Whether a token is asked for."""
        self._mark = self._digest(b"token", token)

    def knows(self, given: str) -> bool:
        """Whether ``given`` is the token; how long it takes tells nothing of it, not even its length."""
        return hmac.compare_digest(self._mark, self._digest(b"token", given)) and self.locked

    def open(self) -> str:
        """A session from now on, as a cookie holds it."""
        until = str(self._now_ns() // 1_000_000_000 + SESSION_S)
        return f"{until}.{self._digest(b'session', until).hex()}"

    def admits(self, session: str) -> bool:
        """Whether ``session`` is one of ours and has not ended."""
        until, _, mark = session.partition(".")
        if not hmac.compare_digest(self._digest(b"session", until).hex().encode(), mark.encode("utf-8", "replace")):
            return False
        return self._now_ns() // 1_000_000_000 < int(until)

    def _digest(self, purpose: bytes, text: str) -> bytes:
        return blake2b(text.encode("utf-8", "surrogateescape"), key=self._key, person=purpose).digest()
