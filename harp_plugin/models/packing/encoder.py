"""Run a transformers encoder over packed texts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import sdpa_mask

from .attention import Packing

PACKED = frozenset(
    {"bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "modernbert"}
)
"""Model types whose attention takes packed texts; the tests compare each with padded ones."""
_SHIFTED = frozenset({"roberta", "xlm-roberta", "camembert"})
_NAME = "harp_packed"


def can_pack(config) -> bool:
    """Whether a model of this configuration can be run over packed texts."""
    return config.model_type in PACKED and not getattr(config, "is_decoder", False)


def prepare(model: PreTrainedModel) -> None:
    """Switch a loaded model to packed attention; padded inputs go through SDPA as before."""
    if model.config._attn_implementation != _NAME:
        AttentionInterface.register(_NAME, _attention)
        AttentionMaskInterface.register(_NAME, sdpa_mask)
        model.set_attn_implementation(_NAME)


@torch.compiler.disable(recursive=False)
def encode(
    encoder: PreTrainedModel, packing: Packing, ids: Tensor, token_types: Tensor | None = None
) -> Tensor:
    """Last hidden states of packed texts.

    Args:
        encoder: a base model that was given to `prepare`.
        packing: where the texts lie.
        ids: tokens of the texts, of shape (tokens,).
        token_types: of the same shape; not used by a model that has none.

    Returns:
        Of shape (tokens, width).
    """
    inputs: dict[str, object] = {"input_ids": ids[None], "harp_packing": packing}
    inputs["position_ids"] = _positions(encoder, packing, ids)[None]
    if token_types is not None and getattr(encoder.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = token_types[None]
    if encoder.config.model_type == "modernbert":
        # It would make a mask of all tokens by all tokens for its windows.
        inputs["attention_mask"] = dict.fromkeys(encoder.config.layer_types)
    return encoder(**inputs).last_hidden_state[0]


@torch.compiler.disable
def _positions(encoder: Any, packing: Packing, ids: Tensor) -> Tensor:
    """Of each token, as the model counts.

    RoBERTa and its kin count from behind the padding index, and leave a spelt-out padding token
    out.
    """
    if encoder.config.model_type not in _SHIFTED:
        return packing.positions
    padding = encoder.embeddings.position_embeddings.padding_idx
    counted = ids.ne(padding).long()
    so_far = counted.cumsum(0)
    before = (so_far - counted)[packing.bounds[:-1].long()]
    return (so_far - before[packing.text]) * counted + padding


def _attention(
    module, query, key, value, attention_mask, *, harp_packing=None, scaling=None, **kwargs
):
    """An attention function of transformers; queries, keys and values are of one row of tokens."""
    if harp_packing is None:
        padded = AttentionInterface()["sdpa"]
        return padded(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    window, dropout = kwargs.get("sliding_window"), kwargs.get("dropout", 0.0)
    query, key, value = (states[0].transpose(0, 1) for states in (query, key, value))
    return harp_packing.attend(query, key, value, scale, window, dropout)[None], None
