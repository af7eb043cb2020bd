"""Load a model with the weights that its checkpoint lacks, and read and write weights."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from ..errors import HarpError
from .loading import WEIGHTS, load_pretrained, without_notices

__all__ = ["load_with_new_weights", "read_weights", "tied_names", "write_weights"]


def load_with_new_weights(
    auto_class, name: str, seed: int, **options: Any
) -> tuple[PreTrainedModel, set[str]]:
    """Load a model in fp32, and return also the names of the weights that were drawn at random.

    Args:
        auto_class: a class of transformers such as ``AutoModel``.
        name: name of the model, as in `harp_plugin.models.loading.resolve_model`.
        seed: seed of the weights that the checkpoint lacks.
        options: further arguments of ``from_pretrained``.

    Raises:
        HarpError: the model cannot be loaded, or weights of its base are missing.
    """
    with torch.random.fork_rng(), without_notices():
        torch.manual_seed(seed)
        model, info = load_pretrained(
            auto_class,
            name,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            **options,
        )
    new_weights = set(info["missing_keys"]) | {key for key, *_ in info["mismatched_keys"]}
    is_base = model.base_model is model
    base = "" if is_base else f"{model.base_model_prefix}."
    lacking = sorted(key for key in new_weights if key.startswith(base) and "pooler" not in key)
    if lacking:
        raise HarpError(
            f"model {name} lacks {len(lacking)} weights of its base, such as {lacking[0]}: "
            "name a complete checkpoint"
        )
    return model, new_weights


def write_weights(
    folder: Path,
    weights: Mapping[str, Tensor],
    leave_out: Collection[str] = (),
    tied: Collection[str] = (),
) -> None:
    """Write weights without the first part of their names, which says whose they are.

    Args:
        folder: where to write ``model.safetensors``.
        weights: by their names in a trainable model.
        leave_out: names in the file of weights that are not written.
        tied: names of weights that stand under another name as well.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = {
        _name_in_file(name): weight.detach().contiguous()
        for name, weight in weights.items()
        if name not in tied and _name_in_file(name) not in leave_out
    }
    save_file(written, folder / WEIGHTS, metadata={"format": "pt"})


def read_weights(
    model: nn.Module,
    folder: Path,
    names: Iterable[str],
    left_out: Collection[str] = (),
    tied: Collection[str] = (),
) -> None:
    """Read what `write_weights` wrote into a model; weights that it left out stay.

    Raises:
        HarpError: the file is missing, damaged, or of another model.
    """
    path = folder / WEIGHTS
    try:
        stored = load_file(path)
        weights = {
            name: stored[_name_in_file(name)]
            for name in names
            if name not in tied and _name_in_file(name) not in left_out
        }
        model.load_state_dict(weights, strict=False)
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise HarpError(f"{path} cannot be loaded: {reason}") from error


def tied_names(model: nn.Module) -> frozenset[str]:
    """Return the names of weights that a module also has under an earlier name."""
    seen: set[int] = set()
    tied: set[str] = set()
    for name, weight in model.named_parameters(remove_duplicate=False):
        tied.update({name} if id(weight) in seen else ())
        seen.add(id(weight))
    return frozenset(tied)


def _name_in_file(name: str) -> str:
    """Return the name of a weight without ``scorer.`` or ``encoder.`` before it."""
    return name.partition(".")[2]
