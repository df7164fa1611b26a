"""Storage classes in our files: the one a store has for copies, and the one a place may ask for."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ValidationInfo

from lifecycle.config.fields import known_store, plain_text
from lifecycle.config.lists import Names
from lifecycle.config.problems import Bad, nearest, show
from lifecycle.core.classes import GOOGLE_CLASSES, WARMEST_FIRST
from lifecycle.core.listing import ARCHIVES

_S3 = ("STANDARD", *(name for name in WARMEST_FIRST if name not in GOOGLE_CLASSES))
"""Storage classes of S3 that a copy can be brought to."""
_AT_ONCE = (*(name for name in _S3 if name not in ARCHIVES), "EXPRESS_ONEZONE")
"""Those that are read at once."""
_AZURE = ("Hot", "Cool", "Cold")
"""Tiers of Azure that are read at once."""
_GOOGLE = dict.fromkeys(("gs", "gcs"), GOOGLE_CLASSES)
_BY_SCHEME = {"s3": _AT_ONCE, **_GOOGLE, **dict.fromkeys(("az", "abfs", "abfss"), _AZURE)}
_CHANGED = {"s3": _S3, **_GOOGLE, **dict.fromkeys(("az", "abfs", "abfss"), ())}


def changed(url: str) -> tuple[str, ...] | None:
    """The classes that copies in a store can be brought to; none at Azure, None where a store has no classes."""
    return _CHANGED.get(url.partition(":")[0].lower())


def check_class(name: str, url: str) -> None:
    """See that copies in a bucket can be stored as a class, and be read back from it: else they would prove nothing.

    Raises:
        Bad: they cannot.
    """
    known = _BY_SCHEME.get(url.partition(":")[0])
    if known is None:
        return
    if name in ARCHIVES:
        takes = "take Cold"
        if known is _AT_ONCE:
            takes = f"take GLACIER_IR, or let a policy bring copies there once they are proven: on: [STORE@{name}]"
        raise Bad(f"{name} cannot be read back, and so proves no copy; {takes}", at=("storage_class",))
    if name not in known:
        raise Bad(f"{show(name)} is not known here{nearest(name, known)}", at=("storage_class",))


def known_place(value: object, info: ValidationInfo) -> str:
    """The name of a store that there is; in S3 and at Google a storage class may follow: ``warm@GLACIER_IR``."""
    store, at, name = plain_text(value).partition("@")
    known_store(store, info)
    if not at:
        return store
    urls = info.context["known"].urls if info.context else None
    known = WARMEST_FIRST if urls is None else changed(urls.get(store, ""))
    if not known:
        why = f"only in stores at s3:// and gs:// the class of a copy can be changed, and {store} is none"
        if known is not None:
            why = (
                f"{store} is at Azure, which sets a tier under no condition, so that another blob that is put there in "
                "the same moment would be changed in the copy's stead"
            )
        raise Bad(f"{why}: write {store}; what copies are stored as is a setting of their store, storage_class")
    if name not in known:
        raise Bad(f"{show(name)} is no storage class that a copy can be brought to{nearest(name.upper(), known)}")
    return f"{store}@{name}"


def _stores_once(places: list[str]) -> list[str]:
    stores = [place.partition("@")[0] for place in places]
    for i, store in enumerate(stores):
        if store in stores[:i]:
            raise Bad(f"{store} stands here twice: a copy has one storage class", at=(i,))
    return places


Places = Annotated[Names[Annotated[str, BeforeValidator(known_place)]], AfterValidator(_stores_once)]
