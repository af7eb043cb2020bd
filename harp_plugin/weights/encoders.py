"""Encoders that give rows of the last layers' attention, at little more cost than the others."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from transformers import AutoConfig, AutoModel, PreTrainedModel

from ..errors import HarpError
from ..models.loading import check_base, load_pretrained
from ..models.packing import Packing, can_pack, encode, prepare

__all__ = ["NO_FAST_PATH", "PackedEncoder", "PaddedEncoder", "load_encoder"]

NO_FAST_PATH = "no fast path, weights come from output_attentions"
_MOST_SCORES = 1 << 26

_Attention = tuple[np.ndarray, np.ndarray | None]
"""Rows of attention, averaged over heads, 0 beyond a text's end: the chosen rows by the last layer,
float32 of shape (texts, rows, longest), and the first chosen row by the layer before the last,
float32 of shape (texts, longest), or None where it was not asked for or the model has one layer."""


def load_encoder(
    model: str, device: torch.device, dtype: torch.dtype
) -> PackedEncoder | PaddedEncoder:
    """Load a model for packed texts if its architecture can pack, else for padded texts.

    Warns:
        UserWarning: it cannot pack; weights come from ``output_attentions``, slowly.

    Raises:
        HarpError: the model cannot be loaded, or is not an encoder.
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
    check_base(name, info["missing_keys"])
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
    def attention(
        self, ids: np.ndarray, lengths: np.ndarray, rows: np.ndarray, *, before: bool = False
    ) -> _Attention:
        """Compute the attention of chosen tokens to all tokens of their text, averaged over heads.

        Args:
            ids: tokens of the texts, one text after the other, of shape (tokens,).
            lengths: the number of tokens of each text, ascending, of shape (texts,).
            rows: the chosen tokens, counted within their text, of shape (texts, rows).
            before: whether the layer before the last is needed for the first of them.
        """
        packing = _UpToLastLayer.from_lengths(
            lengths, self.device, layers=self.layers, first_rows=rows[:, :1] if before else None
        )
        try:
            encode(self.model, packing, torch.from_numpy(ids).to(self.device))
        except _LastLayer as last:
            return last.rows(packing, rows), packing.before
        raise AssertionError("the last layer was not reached")


@dataclass(slots=True)
class _UpToLastLayer(Packing):
    """A packing that leaves the forward pass at the last layer.

    Attributes:
        layers: the number of layers that are still to come.
        first_rows: the rows that are needed of the layer before it, of shape (texts, 1), if any.
        before: these rows, of shape (texts, longest).
    """

    layers: int = 0
    first_rows: np.ndarray | None = None
    before: np.ndarray | None = None

    def attend(self, query, key, value, scale, window, dropout=0.0) -> torch.Tensor:
        self.layers -= 1
        if not self.layers:
            raise _LastLayer(query, key, scale, window)
        if self.layers == 1 and self.first_rows is not None:
            layer = _LastLayer(query, key, scale, window)
            self.before = layer.rows(self, self.first_rows)[:, 0]
        return Packing.attend(self, query, key, value, scale, window, dropout)


class _LastLayer(Exception):
    """Leaves the model's forward pass with a layer's queries and keys.

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
            indexes = np.arange(width)
            keys = self._gather(self.key, starts + np.minimum(indexes, lengths - 1))
            queries = self._gather(self.query, starts + rows[part])
            scores = queries @ keys.transpose(-1, -2) * self.scale
            hidden = indexes[None, None] >= lengths[..., None]
            if self.window is not None:
                hidden = hidden | (abs(indexes - rows[part, :, None]) >= self.window)
            unseen = torch.from_numpy(hidden).to(scores.device)[:, None]
            attention = scores.masked_fill_(unseen, float("-inf")).softmax(-1).mean(1)
            out[part, :, :width] = attention.cpu().numpy()
        return out

    def _gather(self, states: torch.Tensor, indexes: np.ndarray) -> torch.Tensor:
        """Return states at these indexes, of shape (texts, heads, indexes, width)."""
        index = torch.from_numpy(indexes).to(states.device)
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
            attention = self._layers(torch.ones(1, 3, dtype=torch.int64))[-1]
        except (IndexError, TypeError, ValueError) as error:
            kind = self.model.config.model_type
            raise HarpError(
                f"{model}: {kind} gives no attention of all tokens to all: name another encoder"
            ) from error
        self.heads: int = attention.shape[1]

    @torch.inference_mode()
    def attention(
        self, ids: np.ndarray, lengths: np.ndarray, rows: np.ndarray, *, before: bool = False
    ) -> _Attention:
        """See `PackedEncoder.attention`."""
        mask = np.arange(int(lengths[-1])) < lengths[:, None]
        padded = np.full(mask.shape, self.model.config.pad_token_id or 0, dtype=np.int64)
        padded[mask] = ids
        attended = torch.from_numpy(mask.astype(np.int64)).to(self.device)
        layers = self._layers(torch.from_numpy(padded), attended)

        def chosen(layer: torch.Tensor, rows: np.ndarray) -> np.ndarray:
            mean = layer.float().mean(dim=1)
            index = torch.from_numpy(rows).to(self.device)[..., None]
            attention = mean.gather(1, index.expand(-1, -1, mean.shape[-1]))
            return (attention * attended[:, None]).cpu().numpy()

        of_first = chosen(layers[-2], rows[:, :1])[:, 0] if before and len(layers) > 1 else None
        return chosen(layers[-1], rows), of_first

    @torch.inference_mode()
    def _layers(self, tokens: torch.Tensor, attended: torch.Tensor | None = None):
        """Compute each layer's attention, of shape (texts, heads, tokens, tokens)."""
        layers = self.model(
            tokens.to(self.device), attention_mask=attended, output_attentions=True
        ).attentions
        if layers[-1].shape[2:] != (tokens.shape[1], tokens.shape[1]):
            raise ValueError(f"attention of shape {tuple(layers[-1].shape)}")
        return layers
