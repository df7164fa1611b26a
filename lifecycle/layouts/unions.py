"""How the URL of a store is written that is spread over several roots, and how it is taken apart again.

A canonical path has no ``//`` in it, so that no name can be taken for the joint.
"""

from __future__ import annotations

from collections.abc import Sequence

SCHEME = "roots:"
_JOINT = "+file://"


def join_roots(urls: Sequence[str]) -> str:
    """``roots:file:///a+file:///b`` for canonical URLs of directories, in their order."""
    return SCHEME + "+".join(urls)


def roots_of(url: str) -> tuple[str, ...]:
    """The URLs of a store's roots, in their order; of any other store its own."""
    if not url.startswith(SCHEME):
        return (url,)
    return tuple(f"file://{path}" for path in f"+{url.removeprefix(SCHEME)}".split(_JOINT)[1:])
