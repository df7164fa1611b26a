"""Whether a storage can take the checkpoints: how long a save takes, what it holds up, and how long loading takes."""

from __future__ import annotations

from typing import NamedTuple

from lifecycle.sizing.endurance import Redundancy
from lifecycle.sizing.mistakes import named

GB = 10**9
SHARE_MAX = 0.1
"""The usual rule: a storage takes a checkpoint in less than this part of the interval (Nexus Compute)."""
GPUS_A_NODE = 8


class Storage(NamedTuple):
    """One kind of storage, as a named assumption or as measured; bytes a second in 10^9."""

    name: str
    title: str
    write_bps: float
    """All writers together; where ``a_node`` is set, what the background upload does."""
    read_bps: float
    """All readers together, or each node's own disk where ``a_node`` is set."""
    redundancy: Redundancy
    source: str
    a_node: float = 0.0
    """What each node writes to its own disk; 0: there is none, saves go straight to the storage."""


_LAB = "GPU Checkpoint Lab: 1 TB in just over 8 minutes is 2 GB/s"

STORAGES: dict[str, Storage] = {
    storage.name: storage
    for storage in (
        Storage("nfs", "NFS filer", 2 * GB, 2 * GB, Redundancy("mirrored", 2.0), f"2 GB/s ({_LAB}); mirrored (RAID 1)"),
        Storage("object", "object storage", 10 * GB, 10 * GB, Redundancy("8+2", 1.25), "10 GB/s, 8+2: assumed"),
        Storage("pfs", "parallel file system", 25 * GB, 25 * GB, Redundancy("8+2", 1.25), "25 GB/s, 8+2: assumed"),
        Storage(
            "nvme",
            "local NVMe, uploading behind",
            10 * GB,
            10 * GB,
            Redundancy("none", 1.0),
            "4 GB/s written and 10 GB/s read on each node, then uploaded at 10 GB/s in all: assumed; "
            "what redundancy adds up there is not counted",
            a_node=4 * GB,
        ),
    )
}
"""By name. Only the filer's figure has a source; the others are round assumptions: give your own where it matters."""
NODE_READ_BPS = 50 * GB
"""What one node can take in: a network of 400 Gbit/s, assumed."""


def find_storage(name: str) -> Storage:
    """The storage of this name. Raises ConfigInvalid: there is none."""
    return named(name, STORAGES, "is no storage known here", "; or give --write RATE")


def own(write_bps: float, read_bps: float, redundancy: Redundancy, a_node: float = 0.0) -> Storage:
    """A storage by the user's own figures; with ``a_node`` disks of the nodes, uploaded at ``write_bps`` in all."""
    if a_node:
        kept = "no redundancy" if redundancy.factor == 1 else redundancy.name
        said = (
            f"{a_node / GB:g} GB/s written and {read_bps / GB:g} GB/s read on each node, {kept}, "
            f"then uploaded at {write_bps / GB:g} GB/s in all; what it takes there is not counted"
        )
        return Storage("yours", "your nodes' disks, uploading behind", write_bps, read_bps, redundancy, said, a_node)
    said = f"writes {write_bps / GB:g} GB/s, reads {read_bps / GB:g} GB/s, {redundancy.name}"
    return Storage("yours", "your storage", write_bps, read_bps, redundancy, said)


def write_s(size_bytes: float, write_bps: float) -> float:
    """How long it takes to write so much."""
    return size_bytes / write_bps


class Save(NamedTuple):
    """What one save takes."""

    stall_s: float
    """The training stands still for so long, if it waits for the save."""
    durable_s: float
    """Until it is safe from the loss of a node."""


def save(storage: Storage, size_bytes: int, nodes: int) -> Save:
    """What a save of this size takes that the training waits for; to disks of the nodes where there are some."""
    durable_s = write_s(size_bytes, storage.write_bps)
    if not storage.a_node:
        return Save(durable_s, durable_s)
    local_s = write_s(size_bytes, storage.a_node * nodes)
    return Save(local_s, local_s + durable_s)


def nodes_of(gpus: int) -> int:
    """Nodes for so many GPUs, eight to a node."""
    return -(-gpus // GPUS_A_NODE)


def share(save_s: float, every_s: float) -> float:
    """Which part of the interval a save takes."""
    return save_s / every_s


def meets_rule(save_s: float, every_s: float, most: float = SHARE_MAX) -> bool:
    """Whether it takes less than ``most`` of the interval."""
    return share(save_s, every_s) < most


def needed_bps(size_bytes: float, every_s: float, most: float = SHARE_MAX) -> float:
    """What a storage must write so that a save takes ``most`` of the interval."""
    return size_bytes / (most * every_s)


def upload_needed_bps(size_bytes: float, every_s: float, most: float, local_s: float) -> float | None:
    """The same for an upload after ``local_s`` on disks of the nodes; None: those are too slow for it."""
    left_s = most * every_s - local_s
    return size_bytes / left_s if left_s > 0 else None


def a_day(size_bytes: float, every_s: float) -> float:
    """Bytes that are written a day."""
    return size_bytes * 86_400 / every_s


def load_s(weights_bytes: float, storage: Storage, readers: int, node_bps: float = NODE_READ_BPS) -> float:
    """Until every one of so many nodes has the weights, all starting at once.

    ``weights / min(what a node takes in, storage / readers)``; a disk of its own a node shares with nobody.
    """
    each = storage.read_bps if storage.a_node else storage.read_bps / readers
    return weights_bytes / min(node_bps, each)
