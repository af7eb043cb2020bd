"""Run a transformers encoder over packed texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import sdpa_mask
from transformers.modeling_layers import GradientCheckpointingLayer

from ...errors import HarpError
from ..devices import to_device
from .attention import Packing

__all__ = [
    "BERT_LIKE",
    "PACKED",
    "PackedOrder",
    "can_pack",
    "compiled_layers",
    "encode",
    "filler_tokens",
    "packed_states",
    "prepare",
    "undo_compiling",
    "with_filler",
]

PACKED = frozenset(
    {"bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "modernbert"}
)
"""Model types that take packed texts; the tests compare each of them with padded texts."""
BERT_LIKE = frozenset({"bert", "roberta", "xlm-roberta", "camembert", "electra"})
"""Model types whose layers are those of BERT."""
_POSITIONS_AFTER_PADDING = frozenset({"roberta", "xlm-roberta", "camembert"})
_ATTENTION_NAME = "harp_packed"


def can_pack(config) -> bool:
    """Return whether a model of this configuration can run over packed texts."""
    return config.model_type in PACKED and not getattr(config, "is_decoder", False)


def prepare(model: PreTrainedModel) -> None:
    """Switch a loaded model to packed attention; padded inputs still use SDPA.

    Raises:
        HarpError: its architecture is not in `PACKED`.
    """
    if not can_pack(model.config):
        kinds = ", ".join(sorted(PACKED))
        raise HarpError(
            f"{model.config.model_type} cannot be packed: pad its inputs, or choose one of {kinds}"
        )
    if model.config._attn_implementation != _ATTENTION_NAME:
        AttentionInterface.register(_ATTENTION_NAME, _attention)
        AttentionMaskInterface.register(_ATTENTION_NAME, sdpa_mask)
        model.set_attn_implementation(_ATTENTION_NAME)


def compiled_layers(encoder: nn.Module, *heads: nn.Module, **options: Any) -> list[nn.Module]:
    """Compile the layers of an encoder and its heads, in place, and return them.

    All layers share one graph, for texts of any number and length, so compiling takes as long as
    for one layer. Names and weights stay as they are. Under autocast, norms are computed in fp32,
    but what is between layers has the type of the products: half the bytes, read and written.

    Args:
        encoder: a model of transformers; one without such layers stays as it is.
        heads: modules that read its hidden states.
        options: ``backend``, ``mode`` and the like, as for `torch.compile`.
    """
    torch._dynamo.config.specialize_float = True  # a scale and a dropout are constants
    layers = [part for part in encoder.modules() if isinstance(part, GradientCheckpointingLayer)]
    if getattr(encoder.config, "model_type", None) in BERT_LIKE:
        layers += _parts(layers[-1])
    layers += heads
    for layer in layers:
        layer.compile(dynamic=True, **options)
    _exchange_classes(encoder, {nn.LayerNorm: _NarrowNorm})
    for head in heads:
        _exchange_classes(head, {nn.Linear: _WholeTiles})
    return layers


def _parts(layer: Any) -> tuple[nn.Module, ...]:
    """Return the parts of a layer of BERT, which a `PackedClassifier` calls one by one in the last
    layer."""
    return layer.attention.self, layer.attention.output, layer.intermediate, layer.output


def undo_compiling(encoder: nn.Module, layers: Iterable[nn.Module]) -> None:
    """Undo what `compiled_layers` has done to an encoder and to the layers that it returned."""
    for layer in layers:
        layer._compiled_call_impl = None
    for module in (encoder, *layers):
        _exchange_classes(module, {_NarrowNorm: nn.LayerNorm, _WholeTiles: nn.Linear})


def _exchange_classes(module: nn.Module, classes: dict[type, type]) -> None:
    """Give each part of a module the class that stands for its own."""
    for part in module.modules():
        part.__class__ = classes.get(type(part), type(part))


class _NarrowNorm(nn.LayerNorm):
    """A norm whose output has the type that autocast multiplies in, where torch's is fp32."""

    def forward(self, input: Tensor) -> Tensor:
        output, device = super().forward(input), input.device.type
        if not torch.is_autocast_enabled(device):
            return output
        return output.to(torch.get_autocast_dtype(device))


_TILE = 8
"""Numbers of 16 bits in the 16 bytes that a GPU reads at once."""


class _WholeTiles(nn.Linear):
    """A linear layer that a GPU multiplies with whole tiles, whatever the size of a vocabulary."""

    def forward(self, input: Tensor) -> Tensor:
        missing = -self.out_features % _TILE
        if not missing:
            return super().forward(input)
        weight = F.pad(self.weight, (0, 0, 0, missing))
        bias = None if self.bias is None else F.pad(self.bias, (0, missing))
        return F.linear(input, weight, bias)[..., : self.out_features]


def encode(
    encoder: PreTrainedModel, packing: Packing, ids: Tensor, token_types: Tensor | None = None
) -> Tensor:
    """Return the last hidden states of packed texts.

    Args:
        encoder: a base model that `prepare` has switched to packed attention.
        packing: the positions of the texts.
        ids: token ids of the texts, (tokens,).
        token_types: type of each token, (tokens,); a model without token types ignores them.

    Returns:
        The hidden states, (tokens, width).
    """
    inputs: dict[str, object] = {"input_ids": ids[None], "harp_packing": packing}
    inputs["position_ids"] = _positions(encoder, packing, ids)[None]
    if token_types is not None and getattr(encoder.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = token_types[None]
    if encoder.config.model_type == "modernbert":
        # Without this, the model makes a mask of all tokens by all tokens for its windows.
        inputs["attention_mask"] = dict.fromkeys(encoder.config.layer_types)
    return encoder(**inputs).last_hidden_state.squeeze(0)


def packed_states(
    encoder: PreTrainedModel, ids: Tensor, lengths: np.ndarray | Sequence[int] | Tensor
) -> Tensor:
    """Return the last hidden states of texts in any order, (tokens, width).

    Args:
        encoder: a BERT-like base model. It is switched to packed attention.
        ids: token ids of the texts, special tokens included, one text after the other, (tokens,).
        lengths: number of tokens of each text, at least 1, on the CPU, (texts,).

    Raises:
        HarpError: its architecture is not in `PACKED`.
        ValueError: the lengths do not add up to the tokens, or there is an empty text.
    """
    prepare(encoder)
    order = PackedOrder.from_lengths(ids, lengths, encoder.device)
    packed_ids = to_device(ids, encoder.device)[order.source]
    return encode(encoder, order.packing, packed_ids)[order.moved]


def _positions(encoder: Any, packing: Packing, ids: Tensor) -> Tensor:
    """Return the position of each token, as the model counts positions.

    RoBERTa and similar models begin after the padding index, and do not count a padding token in
    the text.
    """
    if encoder.config.model_type not in _POSITIONS_AFTER_PADDING:
        return packing.positions
    padding = encoder.embeddings.position_embeddings.padding_idx
    counted = ids.ne(padding).long()
    so_far = counted.cumsum(0)
    before = (so_far - counted)[packing.bounds[:-1].long()]
    return (so_far - before[packing.text]) * counted + padding


def _attention(
    module, query, key, value, attention_mask, *, harp_packing=None, scaling=None, **kwargs
):
    """Compute attention as an attention function of transformers, over one row of tokens."""
    if harp_packing is None:
        padded = AttentionInterface()["sdpa"]
        return padded(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    window, dropout = kwargs.get("sliding_window"), kwargs.get("dropout", 0.0)
    query, key, value = (states.squeeze(0).transpose(0, 1) for states in (query, key, value))
    return harp_packing.attend(query, key, value, scale, window, dropout)[None], None


class PackedOrder(NamedTuple):
    """The order in which texts are packed, the shortest first.

    Attributes:
        packing: of the texts in this order.
        source: where each token was before, (tokens,).
        rank: the index of each text, (texts,).
    """

    packing: Packing
    source: Tensor
    rank: Tensor

    @classmethod
    def from_lengths(
        cls, ids: Tensor, lengths: np.ndarray | Sequence[int] | Tensor, device: torch.device
    ) -> PackedOrder:
        """Put texts in this order.

        Args:
            ids: token ids of the texts, one text after the other, (tokens,).
            lengths: number of tokens of each text, at least 1, on the CPU, (texts,).
            device: where the order is used.

        Raises:
            ValueError: the lengths do not add up to the tokens, or there is an empty text.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        if not len(sizes) or sizes.min() < 1 or sizes.sum() != len(ids):
            raise ValueError(
                f"{len(sizes)} texts of {sizes.sum()} tokens, but there are {len(ids)} token ids"
            )
        order = np.argsort(sizes, kind="stable")
        packing = Packing.from_lengths(sizes[order], device)
        first = to_device((np.cumsum(sizes) - sizes)[order], device)
        source = first[packing.text] + packing.positions
        return cls(packing, source, to_device(np.argsort(order), device))

    @property
    def moved(self) -> Tensor:
        """The index of each token in this order, (tokens,)."""
        indices = torch.arange(len(self.source), device=self.source.device)
        return torch.empty_like(self.source).scatter_(0, self.source, indices)


_LARGE_BATCH_TOKENS = 512
_STEPS_IN_TRAINING = {"cpu": 128, "cuda": 64}


def filler_tokens(tokens: int, step: int, longest: int | None) -> int:
    """Return how many tokens fill a batch up to a multiple of ``step``.

    On a CPU, oneDNN keeps compiled code for each number of tokens: hundreds of megabytes for
    thousands of them in ranking, and gigabytes in training. A GPU multiplies whole tiles.

    Args:
        tokens: of the batch.
        step: numbers of tokens are multiples of it.
        longest: the most tokens of a text; None if there is no limit.

    Returns:
        0 for a small batch, or where one text cannot have so many tokens.
    """
    count = -tokens % step
    is_too_long = longest is not None and count > longest
    return 0 if tokens < _LARGE_BATCH_TOKENS or is_too_long else count


def with_filler(
    ids: Tensor, lengths: np.ndarray, types: Tensor | None, *, longest: int | None, step: int = 0
) -> tuple[Tensor, np.ndarray, Tensor | None]:
    """Add the text of padding to a batch, so that few numbers of tokens occur.

    Args:
        ids: token ids of the texts, one text after the other, (tokens,).
        lengths: number of tokens of each text, on the CPU, (texts,).
        types: the type of each token, or None, (tokens,).
        longest: as in `filler_tokens`.
        step: as in `filler_tokens`; 0 for that of a training.
    """
    count = filler_tokens(len(ids), step or _STEPS_IN_TRAINING.get(ids.device.type, 1), longest)
    if not count:
        return ids, lengths, types
    zeros = ids.new_zeros(count)
    filled = None if types is None else torch.cat([types, types.new_zeros(count)])
    return torch.cat([ids, zeros]), np.append(lengths, count), filled
