"""Which of fsspec's file systems a URL means, and how it is opened: without any cache, to be read alone."""

from __future__ import annotations

import inspect
from typing import Any

from lifecycle.core.listing import Flavour
from lifecycle.errors import ConfigInvalid, Place, StoreError

NEVER = frozenset({
    "asynclocal", "asyncwrapper", "async_wrapper", "blockcache", "cached", "data", "dir", "file", "filecache",
    "generic", "http", "https", "libarchive", "local", "memory", "pyscript", "reference", "simplecache", "tar", "zip",
})  # fmt: skip
"""What fsspec knows and is no store: caches, wrappers, single files, and what is a store of our own kind already."""

TREES = frozenset({"arrow_hdfs", "ftp", "hdfs", "sftp", "smb", "ssh", "webhdfs"})
"""Where directories are real and a rename commits: a framework that relies on that has done so there."""

SSH = frozenset({"sftp", "ssh"})

_HINTS = {
    "sftp": "log in with ssh once, so that its host key is known; a key or an agent has to be enough to get in",
}


def scheme_of(url: str) -> str:
    """What stands before ``://``."""
    return url.partition("://")[0].lower()


def flavour_of(url: str) -> Flavour:
    """How stores of this scheme behave."""
    return Flavour.POSIX if scheme_of(url) in TREES else Flavour.OBJECT


def class_of(store: str, url: str, place: Place | None = None) -> Any:  # noqa: ANN401 - fsspec ships no types
    """The class of the file system at a URL; nothing is contacted.

    Raises:
        ConfigInvalid: ``unknown_scheme``: there is none; ``extra_missing``: it needs a package that is not there.
    """
    import fsspec

    scheme = scheme_of(url)
    if scheme in NEVER or scheme not in {*fsspec.available_protocols(), *fsspec.registry}:
        text = f"store {store}: no kind of store is called {scheme!r}"
        hint = "file:///path, a plain path, s3://bucket/prefix, gs://bucket/prefix, abfs://container@account/prefix; "
        hint += "to read only: sftp://host/path, webhdfs://host:port/path and others that fsspec knows"
        raise ConfigInvalid(text, place=place, code="unknown_scheme", hint=hint)
    try:
        if scheme in SSH:
            from lifecycle.stores.fsspec_sftp import Sftp

            return Sftp
        return fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        text = f"store {store}: {scheme} stores need a package that is not installed"
        hint = "pip install 'checkpoint-lifecycle[fsspec]'" if scheme in SSH | {"smb"} else str(error)
        raise ConfigInvalid(text, place=place, code="extra_missing", hint=hint) from None


def connect(kind: Any, url: str) -> Any:  # noqa: ANN401 - fsspec ships no types
    """A file system of our own, with no memory of listings. Its further options are fsspec's own configuration.

    Raises:
        StoreError: ``source_unavailable``, never NotFound: a missing key file says nothing of what it opens.
    """
    from fsspec.dircache import DirCache

    scheme = scheme_of(url)
    try:
        # By keyword it could not be said: some hand all keywords on to what they connect with.
        made = kind(**kind._get_kwargs_from_urls(url), skip_instance_cache=True)
        made.dircache = DirCache(use_listings_cache=False)
        return made
    except Exception as error:
        name = type(error)
        told = str(error) if name.__module__.startswith("paramiko") else name.__name__
        hint = _HINTS.get(
            "sftp" if scheme in SSH else scheme, "look at its address, and at the options of fsspec for it"
        )
        raise StoreError(f"{scheme} does not let us in: {told}", code="source_unavailable", hint=hint) from None


def listing_options(ls: Any) -> dict[str, bool]:  # noqa: ANN401 - any callable
    """What to say so that a listing is asked for anew, and with times, where that can be said."""
    named = inspect.signature(ls).parameters
    return {name: True for name in ("refresh", "expand_info") if name in named}
