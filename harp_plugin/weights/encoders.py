"""Rows of the last layer's attention, for little more than the layers before it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from typing import Any, Protocol

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AutoConfig, AutoModel, PreTrainedModel

from ..errors import HarpError
from ..models import load_pretrained

PACKED = frozenset(
    {"bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "modernbert"}
)
"""Model types whose attention takes packed texts; the tests compare each with its matrices."""
NO_FAST_PATH = "no fast path, weights come from output_attentions"
_NAME = "harp_packed"
_MOST_SCORES = 1 << 26


class Encoder(Protocol):
    """Gives rows of the last layer's attention.

    Attributes:
        model: the model.
        heads: how many it has.
    """

    model: PreTrainedModel
    heads: int

    def attention(self, ids: np.ndarray, lengths: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Attention of some tokens to all tokens of their text, averaged over the heads.

        Args:
            ids: tokens of the texts, one text after the other, of shape (tokens,).
            lengths: tokens of each text, ascending, of shape (texts,).
            rows: which tokens, counted within their text, of shape (texts, rows).

        Returns:
            float32 of shape (texts, rows, longest); 0 beyond a text's end.
        """


def load_encoder(model: str, device: torch.device, dtype: torch.dtype) -> Encoder:
    """Load a model for packed texts where its architecture is known, for padded ones elsewhere.

    Warns:
        UserWarning: it is not known; weights come from ``output_attentions``, slowly.

    Raises:
        HarpError: the model cannot be loaded, or is no encoder.
    """
    config = load_pretrained(AutoConfig, model)
    if getattr(config, "is_encoder_decoder", False) or getattr(config, "is_decoder", False):
        raise HarpError(f"{model} is a decoder: name an encoder, such as bert-base-uncased")
    if config.model_type in PACKED:
        return PackedEncoder(model, device, dtype)
    warnings.warn(f"{config.model_type}: {NO_FAST_PATH} (slow)", stacklevel=3)
    return PaddedEncoder(model, device, dtype)


class PackedEncoder:
    """Runs texts one behind the other, without padding, up to the last layer's queries and keys.

    There it stops: of the last layer neither the values nor the feed-forward part are used, nor is
    a pooler. What the model does before, rotations and norms among them, is the model's own code.
    """

    def __init__(self, model: str, device: torch.device, dtype: torch.dtype) -> None:
        AttentionInterface.register(_NAME, _packed_attention)
        encoder = load_pretrained(AutoModel, model, attn_implementation=_NAME, dtype=dtype)
        self.model = encoder.eval().to(device)
        self.device = device
        self.layers: int = encoder.config.num_hidden_layers
        self.heads: int = encoder.config.num_attention_heads
        # RoBERTa and its kin count positions from behind the padding index.
        table = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)
        is_shifted = encoder.config.model_type in ("roberta", "xlm-roberta", "camembert")
        self._first_position = padding + 1 if is_shifted and padding is not None else 0

    @torch.inference_mode()
    def attention(self, ids: np.ndarray, lengths: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """See `Encoder`."""
        packing = Packing.of(lengths, self.layers, self.device)
        positions = self._positions(packing, ids)
        tokens = torch.from_numpy(ids).to(self.device)
        try:
            self.model(input_ids=tokens[None], position_ids=positions[None], harp_packing=packing)
        except _LastLayer as last:
            return last.rows(packing, rows)
        raise AssertionError("the last layer was not reached")

    def _positions(self, packing: Packing, ids: np.ndarray) -> torch.Tensor:
        """Of each token, as the model counts: RoBERTa leaves a spelt-out padding token out."""
        padding = self._first_position - 1
        if padding < 0 or (ids != padding).all():
            return packing.positions + self._first_position
        counted = (ids != padding).astype(np.int64)
        so_far = np.cumsum(counted)
        before = np.repeat((so_far - counted)[packing.starts], packing.lengths)
        return torch.from_numpy((so_far - before) * counted + padding).to(self.device)


@dataclass(slots=True)
class Packing:
    """Where the texts lie in a row of tokens, and how many layers are still to come.

    Attributes:
        lengths: of the texts, ascending.
        starts: first token of each text.
        positions: of each token in its text.
        bounds: ``starts`` with the end, int32, on the device.
        layers: that are still to come.
        masks: of windows, by length.
    """

    lengths: np.ndarray
    starts: np.ndarray
    positions: torch.Tensor
    bounds: torch.Tensor
    layers: int
    masks: dict[tuple[int, int], torch.Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, lengths: np.ndarray, layers: int, device: torch.device) -> Packing:
        """Lay out texts of these lengths."""
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        positions = np.arange(bounds[-1]) - np.repeat(bounds[:-1], lengths)
        return cls(
            lengths,
            bounds[:-1],
            torch.from_numpy(positions).to(device),
            torch.from_numpy(bounds.astype(np.int32)).to(device),
            layers,
        )

    def attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale, window
    ) -> torch.Tensor:
        """Attention within each text; all of shape (tokens, heads, width)."""
        if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16) and _fused():
            return self.by_kernel(*_fused()[0], query, key, value, scale, window)
        return self.by_length(query, key, value, scale, window)

    def by_kernel(self, kernel, scale_name: str, query, key, value, scale, window) -> torch.Tensor:
        """All texts at once, by a kernel that takes bounds of texts."""
        longest = int(self.lengths[-1])
        return kernel(
            query.contiguous(),
            key.contiguous(),
            value.contiguous(),
            self.bounds,
            self.bounds,
            longest,
            longest,
            window_size=(-1, -1) if window is None else (window - 1, window - 1),
            **{scale_name: scale},
        )

    def by_length(self, query, key, value, scale, window) -> torch.Tensor:
        """Texts of the same length together, in any precision."""
        out = torch.empty_like(value, memory_format=torch.contiguous_format)
        for start, length, count in self._groups():
            place = slice(start, start + length * count)
            queries, keys, values = (
                part[place].reshape(count, length, *part.shape[1:]).transpose(1, 2)
                for part in (query, key, value)
            )
            mask = self.mask(length, window, query.device)
            found = scaled_dot_product_attention(queries, keys, values, mask, scale=scale)
            out[place] = found.transpose(1, 2).reshape(length * count, *value.shape[1:])
        return out

    def _groups(self) -> list[tuple[int, int, int]]:
        """Start, length and number of the texts of each length."""
        lengths, first, counts = np.unique(self.lengths, return_index=True, return_counts=True)
        groups = zip(self.starts[first].tolist(), lengths.tolist(), counts.tolist(), strict=True)
        return list(groups)

    def mask(self, length: int, window: int | None, device) -> torch.Tensor | None:
        """Which tokens see which, where that is not all: those less than ``window`` apart."""
        if window is None or length <= window:
            return None
        if (length, window) not in self.masks:
            places = torch.arange(length, device=device)
            self.masks[length, window] = (places[:, None] - places).abs() < window
        return self.masks[length, window]


@cache
def _fused() -> list[tuple[Callable[..., Any], str]]:
    """Kernels for packed texts, best first, each with its name of the scale: torch >= 2.11's own,
    and flash-attn's. Where there is none, texts of the same length go together.
    """
    found: list[tuple[Callable[..., Any], str]] = []
    with suppress(ImportError):
        from torch.nn.attention.varlen import varlen_attn

        if "window_size" in signature(varlen_attn).parameters:
            found.append((varlen_attn, "scale"))
    with suppress(ImportError):
        from flash_attn import flash_attn_varlen_func

        found.append((flash_attn_varlen_func, "softmax_scale"))
    return found


class _LastLayer(Exception):
    """Leaves the model's forward pass with the last layer's queries and keys.

    Attributes:
        query: of shape (tokens, heads, width).
        key: of the same shape.
        scale: of the scores.
        window: tokens this far apart or farther do not see each other; None for no such limit.
    """

    def __init__(self, query, key, scale: float, window: int | None) -> None:
        super().__init__()
        self.query, self.key, self.scale, self.window = query, key, scale, window

    def rows(self, packing: Packing, rows: np.ndarray) -> np.ndarray:
        """The asked rows' softmax, averaged over heads, in float32 (HARP, eq. 1)."""
        texts, longest = len(rows), int(packing.lengths[-1])
        out = np.zeros((texts, rows.shape[1], longest), dtype=np.float32)
        each = self.query.shape[1] * rows.shape[1] * longest
        step = max(1, _MOST_SCORES // each)
        for first in range(0, texts, step):
            part = slice(first, first + step)
            lengths, starts = packing.lengths[part, None], packing.starts[part, None]
            width = int(lengths[-1, 0])
            places = np.arange(width)
            keys = self._gather(self.key, starts + np.minimum(places, lengths - 1))
            queries = self._gather(self.query, starts + rows[part])
            scores = queries @ keys.transpose(-1, -2) * self.scale
            hidden = places[None, None] >= lengths[..., None]
            if self.window is not None:
                hidden = hidden | (abs(places - rows[part, :, None]) >= self.window)
            unseen = torch.from_numpy(hidden).to(scores.device)[:, None]
            found = scores.masked_fill_(unseen, float("-inf")).softmax(-1).mean(1)
            out[part, :, :width] = found.cpu().numpy()
        return out

    def _gather(self, states: torch.Tensor, places: np.ndarray) -> torch.Tensor:
        """Of shape (texts, heads, places, width)."""
        index = torch.from_numpy(places).to(states.device)
        return states[index].transpose(1, 2).float()


def _packed_attention(
    module, query, key, value, attention_mask, *, harp_packing, scaling=None, **kwargs
):
    """An attention function of transformers; queries, keys and values are of one row of tokens."""
    packing: Packing = harp_packing
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    window = kwargs.get("sliding_window")
    query, key, value = (states[0].transpose(0, 1) for states in (query, key, value))
    packing.layers -= 1
    if not packing.layers:
        raise _LastLayer(query, key, scale, window)
    return packing.attend(query, key, value, scale, window)[None], None


class PaddedEncoder:
    """Any encoder, by its own ``output_attentions``: exact, and slow.

    Raises:
        HarpError: the model gives no attention of every token to every token.
    """

    def __init__(self, model: str, device: torch.device, dtype: torch.dtype) -> None:
        encoder = load_pretrained(AutoModel, model, attn_implementation="eager", dtype=dtype)
        self.model = encoder.eval().to(device)
        self.device = device
        try:
            attention = self._last_layer(torch.ones(1, 3, dtype=torch.int64))
        except (IndexError, TypeError, ValueError) as error:
            kind = self.model.config.model_type
            raise HarpError(
                f"{model}: {kind} gives no attention of all tokens to all: name another encoder"
            ) from error
        self.heads: int = attention.shape[1]

    @torch.inference_mode()
    def attention(self, ids: np.ndarray, lengths: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """See `Encoder`."""
        mask = np.arange(int(lengths[-1])) < lengths[:, None]
        padded = np.full(mask.shape, self.model.config.pad_token_id or 0, dtype=np.int64)
        padded[mask] = ids
        attended = torch.from_numpy(mask.astype(np.int64)).to(self.device)
        mean = self._last_layer(torch.from_numpy(padded), attended).float().mean(dim=1)
        wanted = torch.from_numpy(rows).to(self.device)
        picked = mean.gather(1, wanted[..., None].expand(-1, -1, mean.shape[-1]))
        return (picked * attended[:, None]).cpu().numpy()

    @torch.inference_mode()
    def _last_layer(self, tokens: torch.Tensor, attended: torch.Tensor | None = None):
        """Attention of shape (texts, heads, tokens, tokens)."""
        found = self.model(
            tokens.to(self.device), attention_mask=attended, output_attentions=True
        ).attentions[-1]
        if found.shape[2:] != (tokens.shape[1], tokens.shape[1]):
            raise ValueError(f"attention of shape {tuple(found.shape)}")
        return found
