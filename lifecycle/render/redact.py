"""Takes secrets out of what is told, by their shape and, where we were given them, by their value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote

HIDDEN = "***"

LENGTH_MIN = 6
"""Shorter values are not looked for: a password of three letters would be found in every other word."""

NAMED = frozenset({
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_CLIENT_SECRET", "GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN", "HF_TOKEN",
    "PGPASSWORD",
})  # fmt: skip
"""Variables of the environment that hold secrets for the clients that we use. Others are not guessed at by their
names: what one of those holds may be a word that stands in every report."""

SENTENCES = frozenset({"text", "reason", "message", "hint"})
"""Facts of an event that people's words, or libraries', may stand in."""

_PARTS = frozenset({"accountkey", "sharedaccesssignature", "sig"})
"""Of a connection string or a query: what of it is secret."""

_SHAPES = (
    # user:password@ of any URL; a password may hold slashes, and an odd one blanks or quotes that are no end of it
    (re.compile(r"(?P<keep>[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@'\"]*:)[^@\s'\"]+(?=@)"), r"\g<keep>" + HIDDEN),
    # options of a URL, headers, connection strings and keywords of libpq
    (
        re.compile(
            r"""(?ix)(?P<keep>\b(?:password|passwd|passfile|sslpassword|pwd|secret(?:_?access)?_?key|secret|
            aws_?secret_?access_?key|session_?token|security_?token|access_?token|refresh_?token|id_?token|
            x-amz-security-token|x-amz-signature|x-amz-credential|x-goog-signature|x-goog-credential|signature|
            account_?key|sharedaccesssignature|shared_access_signature|sas_?token|client_?secret|api_?key|
            awsaccesskeyid|sig|token)['"]?\s*(?:=|:|%3D)\s*['"]?)(?!\*\*\*)[^\s'"&;,<>)}\]]+"""
        ),
        r"\g<keep>" + HIDDEN,
    ),
    (
        re.compile(r"(?i)\b(?P<keep>(?:bearer|authorization:\s*basic|sharedkey|aws4-hmac-sha256)\s+)[^\s'\",<>]{6,}"),
        r"\g<keep>" + HIDDEN,
    ),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), HIDDEN),
)


class Secrets:
    """What must never be told; it grows as more of it is met, and knows no way to give any of it back."""

    def __init__(self) -> None:
        self._values: set[str] = set()

    def __repr__(self) -> str:
        return f"Secrets({len(self._values)})"

    def learn(self, values: Iterable[str]) -> None:
        """Take these out as well, in every spelling that a URL, a Python string or JSON may give them."""
        for value in values:
            if len(value) >= LENGTH_MIN:
                spelt = {value, quote(value, safe=""), quote(value), quote_plus(value), json.dumps(value)[1:-1]}
                self._values |= spelt | {repr(value)[1:-1]}

    def learn_env(self, env: Mapping[str, str]) -> None:
        """Take out what the environment has for the clients that we use."""
        for name in NAMED & env.keys():
            self.learn(_within(env[name]))

    def learn_url(self, url: str) -> None:
        """Take out the password of a database's URL."""
        self.learn(_passwords(url))

    def hide(self, text: str) -> str:
        """The text without them."""
        for value in sorted(self._values, key=len, reverse=True):  # a part of another one comes after it
            if value in text:
                text = text.replace(value, HIDDEN)
        for shape, instead in _SHAPES:
            text = shape.sub(instead, text)
        return text

    def hide_in(self, facts: Mapping[str, object]) -> dict[str, object]:
        """Facts whose sentences are without them; names are what they are, however much they look like a secret.

        This comes before they are written as JSON, for a quote that was escaped there belongs to no secret.
        """
        return {
            name: self.hide(value) if name in SENTENCES and isinstance(value, str) else value
            for name, value in facts.items()
        }


def _within(value: str) -> Iterator[str]:
    """The value, and what of it is secret by itself, as clients take connection strings apart before they fail."""
    yield value
    for part in re.split(r"[;&?]", value):
        name, _, rest = part.partition("=")
        if name.strip().lower() in _PARTS:
            yield from {rest, unquote(rest)}
            yield from (inner for inner in _within(rest) if inner != rest)


def _passwords(url: str) -> Iterator[str]:
    """Passwords that a URL of libpq carries: before the host, and among its options."""
    rest = url.partition("://")[2]
    login, at, _ = rest.partition("?")[0].rpartition("@")
    if at and ":" in login:
        word = login.partition(":")[2]
        yield from {word, unquote(word)}
    for option in rest.partition("?")[2].split("&"):
        name, _, word = option.partition("=")
        if name in ("password", "sslpassword"):
            yield from {word, unquote(word)}
