"""What a store says of the directories that it is, as people write it: several roots, mounts, the node it dies with."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, model_validator

from lifecycle.config import fields as f
from lifecycle.config.lists import Full
from lifecycle.config.problems import Bad, show
from lifecycle.config.roots import overlap
from lifecycle.layouts.unions import join_roots

ROOTS_MAX = 64


class DirectoryFile(BaseModel):
    """The part of a store that only a directory has a use for."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    url: str
    roots: Full[f.RootUrl] = []
    cross_mounts: bool = False
    workers: f.Workers = 1
    node_local: bool = False
    node: f.Expanded | None = None
    exposed_after: f.Duration = 3600

    @model_validator(mode="after")
    def _is_somewhere(self) -> DirectoryFile:
        if not self.roots:
            if not self.url:
                raise Bad(f"the key url is missing: write something like {getattr(self, 'example', '')}")
            return self
        if self.url:
            raise Bad("a store has either url or roots", at=("roots",))
        if len(self.roots) == 1 or len(self.roots) > ROOTS_MAX:
            raise Bad(f"needs two roots at least and {ROOTS_MAX} at most: with one, write url", at=("roots",))
        for i, root in enumerate(self.roots):
            if not root.startswith("file://"):
                text = f"{show(root)} is no directory, and only directories can be the roots of one store"
                raise Bad(f"{text}: give it a store of its own", at=("roots", i))
            if any(overlap((root, None), (other, None)) for other in self.roots[:i]):
                raise Bad(f"{show(root)} lies in another root, or is it: no file may be in two roots", at=("roots", i))
        if getattr(self, "state", None) is not None:
            raise Bad("state goes with url: each root has its own .lifecycle, on its own file system", at=("state",))
        return self

    @model_validator(mode="after")
    def _is_on_a_node(self) -> DirectoryFile:
        if self.node_local and not self.url.startswith("file://"):
            if self.roots:
                raise Bad("node_local goes with url: roots are of several disks, of which each may die by itself")
            raise Bad("only a directory can be node_local: what is in a bucket outlives every node")
        if not self.node_local and self.model_fields_set & {"node", "exposed_after"}:
            raise Bad("node and exposed_after go with node_local: true")
        return self

    @property
    def where(self) -> dict[str, object]:
        """Where it is, as settings hold it."""
        return {"url": join_roots(self.roots) if self.roots else self.url, "roots": tuple(self.roots)}
