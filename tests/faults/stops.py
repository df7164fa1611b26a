"""Makes a process stop itself, as SIGSTOP from outside would, at a chosen call of a store, a trash or the journal."""

import os
import signal
from typing import Any

from lifecycle.index.journal import IndexJournal
from lifecycle.stores import beneath
from lifecycle.stores.local import LocalStore
from lifecycle.stores.posix_trash import LocalTrash

PLACES: dict[str, tuple[Any, str]] = {
    "renew": (IndexJournal, "renew"),
    "identity": (LocalStore, "identity"),
    "sight": (LocalStore, "sight"),
    "start": (IndexJournal, "start"),
    "retire": (LocalTrash, "retire"),
    "move": (beneath, "move"),
    "end": (IndexJournal, "end"),
}


def stop_at(call: str, k: int) -> None:
    """Stop just before the k-th `call`, until somebody sends SIGCONT."""
    owner, name = PLACES[call]
    real, left = getattr(owner, name), k

    def stopping(*args: Any, **more: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        return real(*args, **more)

    setattr(owner, name, stopping)
