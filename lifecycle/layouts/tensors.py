"""What tensors a checkpoint holds, by their names, and whether safetensors are as long as their own headers say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lifecycle.core.listing import join, split
from lifecycle.core.model import Evidence
from lifecycle.layouts.inside import Inside
from lifecycle.layouts.opcodes import plain_dicts
from lifecycle.layouts.peek import Look, Peek, parse_json, safetensors_end
from lifecycle.layouts.table import Verdict

END = ".safetensors"
OFFSETS = re.compile(rb'"data_offsets"\s*:\s*\[\s*\d{1,19}\s*,\s*(\d{1,19})\s*\]')
"""Of a tensor, and of nothing else: in a text of JSON the quotes would be escaped. Many times faster than parsing."""


NAMES_MAX_BYTES = 1024 * 1024
"""A header with the names of ten thousand tensors: an adapter has fewer, and of weights the names say nothing."""
LOW_RANK = re.compile(
    r"(?:.*[._])?(?:lora_(?:A|B|embedding_[AB]|magnitude_vector|up|down)|ia3_l|vera_lambda_[bd]|hada_w[12]_[ab]|"
    r"lokr_w[12](?:_[ab])?)(?:[._].*)?",
    re.DOTALL,
)
"""Names of what adapters add to a model (PEFT, diffusers, kohya); nothing of the model has one."""
TRAINING = re.compile(
    r"(?:.*[._/])?(?:opt|opts|optim\w*|adam\w*|lion|momentum\w*|exp_avg\w*|max_exp_avg\w*|square_avg|acc_delta|param_groups|"
    r"sched\w*|lr_sched\w*|train_state|train_progress|trainer|rng\w*|dataloader\w*|grad_scaler|scaler|loss_scaler|master\w*|"
    r"state(?!_)|shampoo\w*|soap|muon\w*|precond\w*|adafactor\w*|hessian\w*)"
    r"(?:[._/].*)?|(?:.*[._/])?(?:m|v|mu|nu|step|steps|lr|sum|prev|velocity|momentum)",
    re.DOTALL | re.IGNORECASE,
)
"""Names of what only training has, or may: a word of it anywhere, or the last one as optimizers call their state."""
MOMENTS = re.compile(r"(?:.*[._/])?exp_avg(?:_sq)?", re.DOTALL)
"""What only an optimizer's own state is called."""
WALKED_MAX_BYTES = 4 * 1024 * 1024
"""As much as the opcodes that are walked take; of what is longer the end would not be seen."""
TELLING = (b"optim", b"exp_avg", b"BytesStorageMetadata")
"""Of these any stands in the metadata of nearly all that can resume, which so need not be walked."""


def names_of(peek: Peek, key: str, size: int) -> frozenset[str]:
    """The names of all tensors in a safetensors file; none where its header is long, cut, or not understood."""
    found = peek.safetensors_header(key, size, NAMES_MAX_BYTES)
    if found is None or len(found.data) < found.end - 8:
        return frozenset()
    document = parse_json(found.data)
    return frozenset(document.data.keys() - {"__metadata__"}) if document.look is Look.SEEN else frozenset()


def is_adapter(inside: Inside, files: Sequence[str]) -> bool:
    """Whether the one file of weights, whatever it is called, holds nothing but what an adapter adds to a model."""
    if len(files) != 1 or not files[0].endswith(END):
        return False
    names = names_of(inside.peek, join(inside.path, files[0]), inside.size(files[0]) or 0)
    return bool(names) and all(map(LOW_RANK.fullmatch, names))


def has_optimizer(names: Iterable[str]) -> bool:
    """Whether an optimizer's state is surely there."""
    return any(map(MOMENTS.fullmatch, names))


def is_weights_alone(metadata: bytes) -> bool:
    """Whether a ``.metadata`` of torch DCP lists nothing but tensors of a model (``state_dict_metadata``).

    What is not understood to the end, holds more than tensors, or has a name that an optimizer may have, is not told:
    that it can resume training is then believed.
    """
    if b"TensorStorageMetadata" not in metadata or any(word in metadata for word in TELLING):
        return False
    if len(metadata) > WALKED_MAX_BYTES:
        return False
    listed = [found["state_dict_metadata"] for found in plain_dicts(metadata, "state_dict_metadata")]
    if len(listed) != 1 or not isinstance(listed[0], dict) or not listed[0]:
        return False
    return not any(map(TRAINING.fullmatch, listed[0]))


def promised_bytes(peek: Peek, key: str, size: int) -> int | None:
    """How large a file has to be by its header, where it ends within that: at least; None when it is no safetensors."""
    found = peek.safetensors_header(key, size)
    if found is None:
        return None
    end, header = found
    if end > size:
        return end
    if len(header) < end - 8 or not header.rstrip().endswith(b"}"):
        return None
    last = OFFSETS.search(header, max(0, header.rfind(b'"data_offsets"')))
    if last and end + int(last[1]) == size:  # written in the order in which they lie: as nearly always
        return size
    ends = OFFSETS.findall(header)
    return end + max(map(int, ends)) if ends else safetensors_end(header)


def misfit(inside: Inside, verdict: Verdict, names: Iterable[str], most: int | None = None) -> Verdict | None:
    """What it means that one of the files is not as long as it says; None where none is known to be.

    What is no safetensors file, in spite of its name, says nothing. ``most`` bounds the reads: the smallest files
    are looked at, for what was cut short is smaller than what was not. A file that is as long as its namesake in a
    unit beside it, which was found to be as long as it says, is not asked: what was cut short would be shorter.
    """
    beside = split(inside.path)[0]
    sized = inside.sizes(name for name in names if name.endswith(END))
    for name, size in sorted(sized.items(), key=lambda one: (one[1], one[0]))[:most]:
        if (beside, name, size) in inside.peek.fitting:
            continue
        said = promised_bytes(inside.peek, join(inside.path, name), size)
        if said == size:
            inside.peek.fitting.add((beside, name, size))
        if said is not None and said > size:
            return verdict.but(Evidence.PARTIAL, f"{name} is cut short")
        if said is not None and said < size:
            return verdict.but(Evidence.DOUBTFUL, f"{name} is longer than its header says")
    return None
