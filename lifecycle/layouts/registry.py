"""The one registry of layouts, and the survey that turns a listing into runs.

To add a framework, write one file with its rows and name it below. The order is the precedence: outer
units before what may stand inside them, names with evidence before names alone, any name last.
"""

from __future__ import annotations

from lifecycle.core.listing import Listing
from lifecycle.core.model import Run
from lifecycle.layouts import (
    automodel,
    composer,
    dcp,
    deepspeed,
    fairseq,
    gpt,
    hf,
    jax,
    keras,
    lightning,
    megatron,
    nemo,
    nemo_ranks,
    olmo,
    orbax,
    ray,
    rl,
    sb3,
    snapshots,
    speech,
    tensorflow,
    vision,
)
from lifecycle.layouts.conventions import Conventions
from lifecycle.layouts.gather import Gathering
from lifecycle.layouts.peek import Peek, Read
from lifecycle.layouts.walk import Catalogue, Walk

CATALOGUE = Catalogue(
    directories=(
        *ray.ROWS,
        *lightning.ROWS,
        *nemo.ROWS,
        *megatron.ROWS,
        *hf.ROWS,
        *dcp.STEPS,
        *deepspeed.ROWS,
        *composer.ROWS,
        *orbax.ROWS,
        *rl.ROWS,
        *automodel.ROWS,
        *olmo.ROWS,
        *gpt.ROWS,
        *snapshots.STEPS,
        *speech.ROWS,
        *jax.ROWS,
        *snapshots.REST,
        *tensorflow.ROWS,
        *dcp.REST,
    ),
    files=(
        *lightning.FILES,
        *composer.FILES,
        *tensorflow.FILES,
        *fairseq.FILES,
        *vision.FILES,
        *speech.FILES,
        *gpt.FILES,
        *sb3.FILES,
        *keras.FILES,
        *jax.FILES,
    ),
    spread=nemo_ranks.SPREAD,
)


def survey(
    store: str,
    listing: Listing,
    read: Read | None,
    conventions: Conventions,
    start: str = "",
    url: str = "",
) -> list[Run]:
    """All runs at and below ``start``, sorted by path, with their checkpoints, pointers, holds and leases.

    Pure but for ``read``, and total: odd names and odd content yield doubtful checkpoints, never an
    exception. The order of folders and names does not matter. ``read`` None judges by names and sizes.

    Args:
        store: name of the store, for ids.
        listing: what the store shows; a directory that could not be listed makes its run incomplete.
        read: bounded reads; a failing one makes evidence doubtful or a metric absent.
        conventions: what the site tells about its trees.
        start: where to begin; hold files above it count where the listing shows them.
        url: the store's URL, so that texts with URLs can be told to be in it.
    """
    peek = Peek(read)
    trail = Walk(listing, peek, conventions, CATALOGUE).run(start)
    return Gathering(store, listing, peek, conventions, CATALOGUE, url).runs(trail, start)
