"""Rows of the last layer's attention, for little more than the layers before it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from transformers import AutoConfig, AutoModel, PreTrainedModel

from ..errors import HarpError
from ..models.loading import load_pretrained
from ..models.packing import Packing, can_pack, encode, prepare

NO_FAST_PATH = "no fast path, weights come from output_attentions"
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
    if can_pack(config):
        return PackedEncoder(model, device, dtype)
    warnings.warn(f"{config.model_type}: {NO_FAST_PATH} (slow)", stacklevel=3)
    return PaddedEncoder(model, device, dtype)


def _load_complete(name: str, **options) -> PreTrainedModel:
    """Load a base model of which no weight but a pooler's had to be drawn at random."""
    model, info = load_pretrained(AutoModel, name, output_loading_info=True, **options)
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing:
        raise HarpError(
            f"model {name} lacks {len(missing)} weights, such as {missing[0]}: name a complete one"
        )
    return model


class PackedEncoder:
    """Runs texts one behind the other, without padding, up to the last layer's queries and keys.

    There it stops: of the last layer neither the values nor the feed-forward part are used, nor is
    a pooler. What the model does before, rotations and norms among them, is the model's own code.
    """

    def __init__(self, model: str, device: torch.device, dtype: torch.dtype) -> None:
        encoder = _load_complete(model, dtype=dtype)
        prepare(encoder)
        self.model = encoder.eval().to(device)
        self.device = device
        self.layers: int = encoder.config.num_hidden_layers
        self.heads: int = encoder.config.num_attention_heads

    @torch.inference_mode()
    def attention(self, ids: np.ndarray, lengths: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """See `Encoder`."""
        packing = _UpToLastLayer.of(lengths, self.device, layers=self.layers)
        try:
            encode(self.model, packing, torch.from_numpy(ids).to(self.device))
        except _LastLayer as last:
            return last.rows(packing, rows)
        raise AssertionError("the last layer was not reached")


@dataclass(slots=True)
class _UpToLastLayer(Packing):
    """Leaves at the last layer.

    Attributes:
        layers: that are still to come.
    """

    layers: int = 0

    def attend(self, query, key, value, scale, window, dropout=0.0) -> torch.Tensor:
        self.layers -= 1
        if not self.layers:
            raise _LastLayer(query, key, scale, window)
        return Packing.attend(self, query, key, value, scale, window, dropout)


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


class PaddedEncoder:
    """Any encoder, by its own ``output_attentions``: exact, and slow.

    Raises:
        HarpError: the model gives no attention of every token to every token.
    """

    def __init__(self, model: str, device: torch.device, dtype: torch.dtype) -> None:
        encoder = _load_complete(model, attn_implementation="eager", dtype=dtype)
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
