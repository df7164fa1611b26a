"""By which setting a framework removes checkpoints by itself: what it deletes, no policy keeps.

The number it is set to stands in the memory of the trainer and not on the disk (docs/live.md), so that only what has
gone tells of it. Names are those of the frameworks' own documentation.
"""

from __future__ import annotations

from collections.abc import Mapping

OWN_LIMITS: Mapping[str, str] = {
    "accelerate": "total_limit of accelerate's ProjectConfiguration",
    "composer": "save_num_checkpoints_to_keep of Composer",
    "composer_sharded": "save_num_checkpoints_to_keep of Composer",
    "diffusers": "--checkpoints_total_limit of diffusers' scripts",
    "espnet": "keep_nbest_models of ESPnet",
    "fairseq": "--keep-last-epochs and --keep-interval-updates of fairseq",
    "flax": "keep of flax.training.checkpoints",
    "fvcore": "max_to_keep of fvcore's PeriodicCheckpointer",
    "hf_trainer": "save_total_limit of TrainingArguments",
    "lightning": "save_top_k of ModelCheckpoint",
    "lightning_sharded": "save_top_k of ModelCheckpoint",
    "llm_foundry": "save_num_checkpoints_to_keep of Composer",
    "mmengine": "max_keep_ckpts of mmengine's CheckpointHook",
    "nemo1": "save_top_k of exp_manager",
    "nemo2": "save_top_k of ModelCheckpoint",
    "orbax": "max_to_keep of Orbax' CheckpointManagerOptions",
    "ray_train": "num_to_keep of Ray's CheckpointConfig",
    "speechbrain": "num_to_keep of SpeechBrain's Checkpointer",
    "tensorflow": "max_to_keep of CheckpointManager",
    "timm": "--checkpoint-hist of timm",
    "torchtitan": "keep_latest_k of TorchTitan",
    "verl": "max_actor_ckpt_to_keep of verl",
}


def own_limit(layout: str) -> str:
    """The setting of the framework that writes ``layout``, or empty where none is known."""
    return OWN_LIMITS.get(layout, "")
