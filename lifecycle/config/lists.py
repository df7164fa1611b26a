"""The lists of our files: none is empty, and what that would mean is said in another way."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator

from lifecycle.config.problems import Bad, show

T = TypeVar("T")


def _full_list(value: object) -> object:
    if value == []:
        raise Bad("the list is empty: leave the key out")
    if isinstance(value, str | int | float):
        raise Bad(f"needs a list: write [{show(value)}]")
    return value


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, str | int | float) else _full_list(value)


def _one_at_least(value: object) -> object:
    if value == []:
        raise Bad("names nothing: at least one is needed")
    return _full_list(value)


def _no_repetition(values: list[T]) -> list[T]:
    for i, value in enumerate(values):
        if value in values[:i]:
            raise Bad(f"{show(value)} stands here twice: name each once", at=(i,))
    return values


def keep_list(value: object) -> object:
    """The list of keep rules; the word ``none`` stands for one without any."""
    if value == "none":
        return []
    if value == []:
        text = "the list is empty: leave keep out to keep everything, or write keep: none"
        raise Bad(text, code="policy_empty")
    if not isinstance(value, list):
        raise Bad(f"needs a list of rules, each with a dash such as - last: 3, not {show(value)}")
    return value


Full = Annotated[list[T], BeforeValidator(_full_list)]
"""A list with something in it."""
Names = Annotated[list[T], BeforeValidator(_one_at_least), AfterValidator(_no_repetition)]
"""The same under a key that cannot be left out, each name once."""
OneOrMore = Annotated[list[T], BeforeValidator(_one_or_more)]
"""The same, for which a single value may stand alone."""
