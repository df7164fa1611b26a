"""Storage classes in our files: the one a store has for copies, and the one a place may ask for."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ValidationInfo

from lifecycle.config.fields import known_store, plain_text
from lifecycle.config.lists import Names
from lifecycle.config.problems import Bad, nearest, show
from lifecycle.core.classes import WARMEST_FIRST
from lifecycle.core.listing import ARCHIVES

_AT_ONCE = (*(name for name in WARMEST_FIRST if name not in ARCHIVES), "EXPRESS_ONEZONE")
"""Storage classes of S3 that are read at once."""


def storage_class(value: object) -> str:
    """A class that a copy can be read back from: one that cannot proves nothing."""
    name = plain_text(value)
    if name in ARCHIVES:
        raise Bad(
            f"{name} cannot be read back, and so proves no copy; take GLACIER_IR, or let a policy bring copies there "
            f"once they are proven: on: [STORE@{name}]"
        )
    if name not in _AT_ONCE:
        raise Bad(f"{show(name)} is not known here{nearest(name, _AT_ONCE)}")
    return name


def known_place(value: object, info: ValidationInfo) -> str:
    """The name of a store that there is; in S3 a storage class may follow: ``warm@GLACIER_IR``."""
    store, at, name = plain_text(value).partition("@")
    known_store(store, info)
    if not at:
        return store
    classed = info.context["known"].classed if info.context else None
    if classed is not None and store not in classed:
        raise Bad(f"only stores at s3:// have storage classes, and {store} is none: write {store}")
    if name not in WARMEST_FIRST:
        raise Bad(
            f"{show(name)} is no storage class that a copy can be brought to{nearest(name.upper(), WARMEST_FIRST)}"
        )
    return f"{store}@{name}"


def _stores_once(places: list[str]) -> list[str]:
    stores = [place.partition("@")[0] for place in places]
    for i, store in enumerate(stores):
        if store in stores[:i]:
            raise Bad(f"{store} stands here twice: a copy has one storage class", at=(i,))
    return places


ClassWord = Annotated[str, BeforeValidator(storage_class)]
Places = Annotated[Names[Annotated[str, BeforeValidator(known_place)]], AfterValidator(_stores_once)]
