"""One vector of each text, of the states of its tokens."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModel, AutoModelForTextEncoding, PreTrainedConfig, PreTrainedModel

from ..errors import HarpError
from .devices import to_device

__all__ = ["DECODER", "POOLINGS", "encoder_class", "padded_inputs", "padded_vectors", "pooled"]

DECODER = "decoder"
"""The state of a decoder at its first token, which attends to the whole text (Anchor-DR's T5)."""

POOLINGS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "last": "pooling_mode_lasttoken",
}
"""How a vector is made of a text's tokens, with sentence-transformers' names."""


def encoder_class(config: PreTrainedConfig, pooling: str):
    """Return the class of transformers that loads a model for a pooling.

    Args:
        config: of the model.
        pooling: one of `POOLINGS`, or `DECODER`.

    Raises:
        HarpError: the pooling needs a decoder, and the model has none.
    """
    has_decoder = getattr(config, "is_encoder_decoder", False)
    if pooling == DECODER and not has_decoder:
        raise HarpError(
            f"pooling decoder needs a model with an encoder and a decoder, such as T5: "
            f"{config.model_type} has no decoder; take cls, mean or last"
        )
    return AutoModelForTextEncoding if has_decoder and pooling != DECODER else AutoModel


def padded_vectors(
    model: PreTrainedModel, ids: Tensor, lengths: np.ndarray, pooling: str
) -> Tensor:
    """Make one vector of each text by a forward pass over padded texts, fp32, (texts, width).

    Args:
        model: of the class that `encoder_class` names.
        ids: token ids of the texts, one text after the other, (tokens,).
        lengths: number of tokens of each text, on the CPU, (texts,).
        pooling: one of `POOLINGS`, or `DECODER`.
    """
    padding = model.config.pad_token_id or 0
    inputs, positions = padded_inputs(ids, lengths, None, padding)
    if pooling == DECODER:
        start = getattr(model.config, "decoder_start_token_id", None)
        first = ids.new_full((len(lengths), 1), padding if start is None else start)
        return model(**inputs, decoder_input_ids=first).last_hidden_state[:, 0].float()
    states = model(**inputs).last_hidden_state.flatten(0, 1)[positions]
    return pooled(states.float(), lengths, pooling)


def pooled(states: Tensor, lengths: np.ndarray, pooling: str) -> Tensor:
    """Make one vector of the states of each text, (texts, width).

    Args:
        states: hidden states of the texts, one text after the other, (tokens, width).
        lengths: number of tokens of each text, on the CPU, (texts,).
        pooling: one of `POOLINGS`.
    """
    ends, sizes = (to_device(n, states.device) for n in (np.cumsum(lengths), lengths))
    if pooling == "mean":  # checking the lengths would wait for a GPU
        return torch.segment_reduce(states, "mean", lengths=sizes, axis=0, unsafe=True)
    return states[ends - sizes if pooling == "cls" else ends - 1]


def padded_inputs(
    ids: Tensor,
    lengths: np.ndarray,
    types: Tensor | None,
    padding_id: int,
    *,
    padding_type: int = 0,
    left: bool = False,
) -> tuple[dict[str, Tensor], Tensor]:
    """Return the inputs of a padded pass, and where each token is in it.

    Args:
        ids: token ids of the texts, one text after the other, (tokens,).
        lengths: number of tokens of each text, on the CPU, (texts,).
        types: the type of each token, or None, (tokens,).
        padding_id: id of a padding token.
        padding_type: type of a padding token.
        left: whether padding comes before a text.

    Returns:
        The model's inputs by name, each (texts, longest), and the index of each token in the
        flattened ``input_ids``, (tokens,).
    """
    sizes = torch.as_tensor(lengths, device=ids.device)[:, None]
    columns = torch.arange(int(lengths.max()), device=ids.device)
    attended = columns >= len(columns) - sizes if left else columns < sizes

    def padded(values: Tensor, padding: int) -> Tensor:
        return values.new_full(attended.shape, padding).masked_scatter(attended, values)

    inputs = {"input_ids": padded(ids, padding_id), "attention_mask": attended.long()}
    if types is not None:
        inputs["token_type_ids"] = padded(types, padding_type)
    return inputs, attended.flatten().nonzero()[:, 0]
