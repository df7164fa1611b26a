"""What a store over several roots says to copies: that it takes none, for nothing tells which root they belong in.

What a root holds of copies since it was a store by itself can still be cleared away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NoReturn

from lifecycle.core.copies import CopyManifest, Member
from lifecycle.errors import Refused, StoreError
from lifecycle.sizing.waits import Speed
from lifecycle.stores.posix_intake import LocalIntake
from lifecycle.stores.union import UnionStore


class UnionIntake:
    """The intake of a `UnionStore`: all that would bring something there is refused (``takes_no_copies``)."""

    def __init__(self, store: UnionStore) -> None:
        self.store = store
        self.intakes = [LocalIntake(root) for root in store.roots]

    def _refuse(self) -> NoReturn:
        text = f"store {self.store.name} is spread over several roots and takes no copies"
        raise Refused(text, code="takes_no_copies", hint="name another store; recall --to DIR brings one elsewhere")

    def begin(self, manifest: CopyManifest) -> Mapping[str, str]:
        """Refuse it; see the port."""
        self._refuse()

    def put(
        self, copy_id: str, member: Member, pieces: Iterable[bytes], digest: Callable[[], str] | None = None
    ) -> None:
        """Refuse it; see the port."""
        self._refuse()

    def staged(self, copy_id: str, member: Member) -> Iterator[bytes]:
        """Refuse it; see the port."""
        self._refuse()

    def publish(self, manifest: CopyManifest) -> None:
        """Refuse it; see the port. Not as ``Refused``: one that was begun long ago stops nothing else."""
        raise StoreError(f"store {self.store.name} is spread over several roots", code="takes_no_copies")

    def abandon(self, copy_id: str) -> None:
        """Remove what was staged in a root; see the port."""
        for intake in self.intakes:
            intake.abandon(copy_id)

    def forget(self, copy_id: str) -> None:
        """Drop the manifest of a copy in any root; see the port."""
        for intake in self.intakes:
            intake.forget(copy_id)

    def change_class(self, manifest: CopyManifest, storage_class: str) -> str:
        """A file system has no storage classes."""
        raise Refused(f"store {self.store.name} has no storage classes", code="no_classes")

    def end_change(self, manifest: CopyManifest) -> None:
        """Nothing is ever left open here."""

    def ask_back(self, manifest: CopyManifest, speed: Speed, days: int) -> int:
        """Nothing is ever in an archive here."""
        return 0
