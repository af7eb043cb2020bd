"""Encoders that give rows of the last layer's attention, at little more cost than the others."""

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

__all__ = ["NO_FAST_PATH", "Encoder", "PackedEncoder", "PaddedEncoder", "load_encoder"]

NO_FAST_PATH = "no fast path, weights come from output_attentions"
_MOST_SCORES = 1 << 26


class Encoder(Protocol):
    """Gives rows of the last layer's attention.

    Attributes:
        model: the model of transformers.
        heads: its number of attention heads.
    """

    model: PreTrainedModel
    heads: int

    def attention(self, ids: np.ndarray, lengths: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Compute the attention of chosen tokens to all tokens of their text, averaged over heads.

        Args:
            ids: tokens of the texts, one text after the other, of shape (tokens,).
            lengths: the number of tokens of each text, ascending, of shape (texts,).
            rows: the chosen tokens, counted within their text, of shape (texts, rows).

        Returns:
            float32 of shape (texts, rows, longest); 0 beyond a text's end.
        """


def load_encoder(model: str, device: torch.device, dtype: torch.dtype) -> Encoder:
    """Load a model for packed texts if its architecture can pack, else for padded texts.

    Warns:
        UserWarning: it cannot pack; weights come from ``output_attentions``, slowly.

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
    """Load a base model, and check that only weights of a pooler are missing."""
    model, info = load_pretrained(AutoModel, name, output_loading_info=True, **options)
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing:
        raise HarpError(
            f"model {name} lacks {len(missing)} weights, such as {missing[0]}: name a complete one"
        )
    return model


class PackedEncoder:
    """Runs texts one after the other, without padding, up to the last layer's queries and keys.

    It stops there, because neither the values nor the feed-forward part of the last layer are
    needed, nor is a pooler. All that comes before is computed by the model's own code.
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
    """A packing that leaves the forward pass at the last layer.

    Attributes:
        layers: the number of layers that are still to come.
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
        window: tokens at this distance or farther do not see each other; None sets no limit.
    """

    def __init__(self, query, key, scale: float, window: int | None) -> None:
        super().__init__()
        self.query, self.key, self.scale, self.window = query, key, scale, window

    def rows(self, packing: Packing, rows: np.ndarray) -> np.ndarray:
        """Compute the softmax of chosen rows, averaged over heads, in float32 (HARP, eq. 1)."""
        texts, longest = len(rows), int(packing.lengths[-1])
        out = np.zeros((texts, rows.shape[1], longest), dtype=np.float32)
        scores_per_text = self.query.shape[1] * rows.shape[1] * longest
        step = max(1, _MOST_SCORES // scores_per_text)
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
            attention = scores.masked_fill_(unseen, float("-inf")).softmax(-1).mean(1)
            out[part, :, :width] = attention.cpu().numpy()
        return out

    def _gather(self, states: torch.Tensor, places: np.ndarray) -> torch.Tensor:
        """Return states at these places, of shape (texts, heads, places, width)."""
        index = torch.from_numpy(places).to(states.device)
        return states[index].transpose(1, 2).float()


class PaddedEncoder:
    """Runs any encoder by its own ``output_attentions``, which is exact and slow.

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
        chosen = torch.from_numpy(rows).to(self.device)
        attention = mean.gather(1, chosen[..., None].expand(-1, -1, mean.shape[-1]))
        return (attention * attended[:, None]).cpu().numpy()

    @torch.inference_mode()
    def _last_layer(self, tokens: torch.Tensor, attended: torch.Tensor | None = None):
        """Compute attention of shape (texts, heads, tokens, tokens)."""
        attention = self.model(
            tokens.to(self.device), attention_mask=attended, output_attentions=True
        ).attentions[-1]
        if attention.shape[2:] != (tokens.shape[1], tokens.shape[1]):
            raise ValueError(f"attention of shape {tuple(attention.shape)}")
        return attention
