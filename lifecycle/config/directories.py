"""What a store says of the directory that it is, as people write it: mounts below it, and the node it dies with."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, model_validator

from lifecycle.config import fields as f
from lifecycle.config.problems import Bad


class DirectoryFile(BaseModel):
    """The part of a store that only a directory has a use for."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    url: str
    cross_mounts: bool = False
    workers: f.Workers = 1
    node_local: bool = False
    node: f.Expanded | None = None
    exposed_after: f.Duration = 3600

    @model_validator(mode="after")
    def _is_on_a_node(self) -> DirectoryFile:
        if self.node_local and not self.url.startswith("file://"):
            raise Bad("only a directory can be node_local: what is in a bucket outlives every node")
        if not self.node_local and self.model_fields_set & {"node", "exposed_after"}:
            raise Bad("node and exposed_after go with node_local: true")
        return self
