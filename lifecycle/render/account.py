"""Makes a report of an account: what matters most in a few sentences, then a section for each thing that is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lifecycle.ports.account import Account
from lifecycle.render.account_acts import done, done_text, going_text, upcoming, wanted
from lifecycle.render.account_bytes import dead, standing, stands_text, unmanaged
from lifecycle.render.account_cares import cares, findings, holds, short, uploads, verified
from lifecycle.render.account_stores import saved_text, savings, scans, stores
from lifecycle.render.account_words import owner_of
from lifecycle.render.document import Document, Section
from lifecycle.render.forecast import full_text
from lifecycle.render.plan import Typing

TITLE = "Lifecycle report"
"""Of every report: by this a file is known to be one."""

SECTIONS: tuple[Callable[[Account, Typing], Section | None], ...] = (
    stores,
    upcoming,
    done,
    wanted,
    savings,
    standing,
    unmanaged,
    dead,
    verified,
    short,
    uploads,
    holds,
    findings,
)
"""In the order in which they are read; one gives None where it has nothing to say of what was asked for."""


def document(account: Account, typing: Typing) -> Document:
    """The whole report.

    Args:
        account: what was found out.
        typing: how the reader calls us for the same site.
    """
    found = [section for make in SECTIONS if (section := make(account, typing)) is not None]
    return Document(
        title=TITLE,
        made_at_ns=account.now_ns,
        currency=account.currency,
        sentences=tuple(_summary(account, typing)),
        sections=tuple(found),
    )


def _summary(account: Account, typing: Typing) -> Iterator[str]:
    if not account.whole:
        whose = [f"what belongs to {owner_of(account, account.owner)}"] if account.owner is not None else []
        whose += [f"runs that match {account.run}"] if account.run is not None else []
        yield f"Only {' in '.join(whose)}: what is known of whole stores is left out."
    yield stands_text(account)
    known = account.whole or account.found.parts.all.checkpoints
    if not known:
        yield f"No scan saw a checkpoint of that: `{typing('ls')}` lists the runs that are known."
    if account.whole:
        yield from scans(account, typing)
        yield from _full(account)
    yield going_text(account)
    if account.owner is None:
        yield done_text(account)
    if account.whole:
        yield saved_text(account)
    needs = cares(account)
    if needs:
        yield f"Look at: {'; '.join(needs)}."
    elif known:
        yield "Nothing here needs a person."


def _full(account: Account) -> Iterator[str]:
    """Stores that may be full within the time that is looked at, and those of which that is not known."""
    shelves = account.forecast.shelves
    early = [shelf for shelf in shelves if shelf.full is not None and shelf.full.early is not None]
    for shelf in early:
        yield f"{' and '.join(shelf.stores)}: {full_text(shelf, account.forecast.ticks)}."
    unknown = [name for shelf in shelves if shelf.full is None for name in shelf.stores]
    if unknown:
        yield f"When {' and '.join(unknown)} will be full is not known, for nobody says how much it holds."
    if shelves and not early and not unknown:
        yield _calm(account)


def _calm(account: Account) -> str:
    """All stores that there are, in a sentence; those that share a file system are one shelf."""
    shelves = account.forecast.shelves
    text = full_text(shelves[0], account.forecast.ticks).partition(" (")[0]
    if len(shelves) > 1:
        return f"No store is {text.removeprefix('not ')}."
    stores = shelves[0].stores
    return f"{' and '.join(stores)} {'is' if len(stores) == 1 else 'are'} {text}."
