"""Attention as term weight: HARP, equations 1, 5, 10 and 13.

One forward pass per distinct text. Of the last layer only the rows that are asked for are computed:
those of the anchors' wordpieces and of [CLS].
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..models import load_pretrained, load_tokenizer, longest_input
from ..text import WORD

Span = tuple[int, int]
_NO_LIMIT = 8192
_SAME_LAYOUT = frozenset({"bert", "roberta", "xlm-roberta", "camembert", "electra"})


@dataclass(frozen=True, slots=True)
class TextWeights:
    """Weights of one text's words.

    Attributes:
        spans: character offsets of the words, int of shape (words, 2).
        cls: attention of [CLS] to each word, float32 of shape (words,).
        anchors: attention of each anchor to each word, float32 of shape (anchors, words); a row of
            NaN where the anchor lies beyond the model's limit.
        cut: whether the text was longer than the model's limit.
    """

    spans: np.ndarray
    cls: np.ndarray
    anchors: np.ndarray
    cut: bool


class AttentionWeigher:
    """Weighs the words of texts by the attention of a Transformer's last layer.

    A word is found by its character offsets; its weight is the sum over its wordpieces, and an
    anchor's row is the mean over the rows of its wordpieces. Heads are averaged.

    Args:
        model: checkpoint of an encoder, as in `harp_plugin.models.resolve_model`.
        device: such as ``cpu`` or ``cuda``; None takes a GPU where there is one.
        batch_tokens: padded tokens per batch.
        unit: ``word``, or ``wordpiece`` as in the HARP authors' released code.
        anchor_row: ``span`` for the mean over the anchor's wordpieces, ``first_piece`` for the
            row of its first (released).

    Raises:
        HarpError: the model cannot be loaded.
    """

    def __init__(
        self,
        model: str,
        *,
        device: str | None = None,
        batch_tokens: int = 8192,
        unit: str = "word",
        anchor_row: str = "span",
    ) -> None:
        from transformers import AutoConfig, AutoModel

        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.tokenizer = load_tokenizer(model)
        self.tokenizer.padding_side = "right"
        self.batch_tokens = batch_tokens
        self.unit = unit
        self.anchor_row = anchor_row
        config = load_pretrained(AutoConfig, model)
        self.heads: int = config.num_attention_heads
        fused = config.model_type in _SAME_LAYOUT
        if not fused:
            warnings.warn(
                f"{config.model_type}: no fast path, weights come from output_attentions (slow)",
                stacklevel=2,
            )
        implementation = "sdpa" if fused else "eager"
        encoder = load_pretrained(AutoModel, model, attn_implementation=implementation)
        self.encoder = encoder.eval().to(self.device)
        limits = (self.tokenizer.model_max_length, longest_input(encoder) or _NO_LIMIT, _NO_LIMIT)
        self.max_length = min(limits)
        self._last = None
        if fused:
            layers = self.encoder.encoder.layer
            self._last = layers[-1].attention.self
            self.encoder.encoder.layer = layers[:-1]

    def weigh(
        self, texts: Sequence[str], anchors: Sequence[Sequence[Span]] | None = None
    ) -> list[TextWeights]:
        """Weigh texts; the result does not depend on what else is in the call beyond rounding.

        Args:
            texts: sentences or documents.
            anchors: for each text the character spans whose rows are wanted (eq. 1).

        Returns:
            One `TextWeights` per text, in order.
        """
        anchors = anchors or [()] * len(texts)
        encoded = self.tokenizer(
            list(texts),
            truncation=True,
            max_length=self.max_length,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
        )
        results: list[TextWeights | None] = [None] * len(texts)
        for batch in self._batches([len(ids) for ids in encoded["input_ids"]]):
            for index, weights in zip(
                batch, self._weigh_batch(encoded, batch, texts, anchors), strict=True
            ):
                results[index] = weights
        return [weights for weights in results if weights is not None]

    def _batches(self, lengths: list[int]) -> Iterator[list[int]]:
        order = sorted(range(len(lengths)), key=lambda index: (lengths[index], index))
        batch: list[int] = []
        for index in order:
            if batch and (len(batch) + 1) * lengths[index] > self.batch_tokens:
                yield batch
                batch = []
            batch.append(index)
        if batch:
            yield batch

    def _weigh_batch(self, encoded, batch, texts, anchors) -> Iterator[TextWeights]:
        rows = []
        for index in batch:
            offsets = np.asarray(encoded["offset_mapping"][index]).reshape(-1, 2)
            inside = np.asarray(encoded["special_tokens_mask"][index]) == 0
            pieces = [self._pieces(offsets, inside, span) for span in anchors[index]]
            rows.append((offsets, inside, pieces))
        wanted = [[0, *sorted({p for pieces in group for p in pieces})] for _, _, group in rows]
        names = [name for name in self.tokenizer.model_input_names if name in encoded]
        inputs = self.tokenizer.pad(
            {name: [encoded[name][index] for index in batch] for name in names},
            return_tensors="pt",
        ).to(self.device)
        attention = self._attention(inputs, wanted)
        for place, (index, (offsets, inside, pieces)) in enumerate(zip(batch, rows, strict=True)):
            count = len(offsets)
            got = {piece: attention[place, row, :count] for row, piece in enumerate(wanted[place])}
            spans, owner = self._words(texts[index], offsets, inside)
            anchor_rows = np.full((len(pieces), len(spans)), np.nan, dtype=np.float32)
            for row, group in enumerate(pieces):
                if group:
                    mean = np.mean([got[piece] for piece in group], axis=0)
                    anchor_rows[row] = _by_word(mean, owner, len(spans))
            cut = count == self.max_length and offsets[inside].max(initial=0) < len(
                texts[index].rstrip()
            )
            yield TextWeights(spans, _by_word(got[0], owner, len(spans)), anchor_rows, bool(cut))

    def _pieces(self, offsets: np.ndarray, inside: np.ndarray, span: Span) -> list[int]:
        start, end = span
        found = np.flatnonzero(inside & (offsets[:, 0] < end) & (offsets[:, 1] > start)).tolist()
        return found[:1] if self.anchor_row == "first_piece" else found

    def _words(
        self, text: str, offsets: np.ndarray, inside: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Word spans, and for every token the word that owns it (-1 for none)."""
        if self.unit == "wordpiece":
            owner = np.where(inside, np.cumsum(inside) - 1, -1)
            return offsets[inside].astype(np.int64), owner
        end = int(offsets[inside, 1].max(initial=0))
        spans = [match.span() for match in WORD.finditer(text) if match.end() <= end]
        starts = np.array([start for start, _ in spans], dtype=np.int64)
        ends = np.array([end for _, end in spans], dtype=np.int64)
        if not spans:
            return np.zeros((0, 2), dtype=np.int64), np.full(len(offsets), -1)
        # The first word that ends beyond the token's start: a token may begin with its space.
        owner = np.searchsorted(ends, offsets[:, 0], side="right")
        owned = inside & (owner < len(spans))
        owned &= starts[np.minimum(owner, len(spans) - 1)] < offsets[:, 1]
        return np.stack([starts, ends], axis=1), np.where(owned, owner, -1)

    @torch.inference_mode()
    def _attention(self, inputs, wanted: list[list[int]]) -> np.ndarray:
        """Mean over heads of the wanted rows, float32 of shape (batch, rows, tokens)."""
        width = max(map(len, wanted))
        rows = torch.tensor([row + [0] * (width - len(row)) for row in wanted], device=self.device)
        if self._last is None:
            outputs = self.encoder(**inputs, output_attentions=True)
            mean = outputs.attentions[-1].float().mean(dim=1)
            picked = mean.gather(1, rows.unsqueeze(-1).expand(-1, -1, mean.shape[-1]))
            return picked.cpu().numpy()
        hidden = self.encoder(**inputs).last_hidden_state
        asked = hidden.gather(1, rows.unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))
        query = self._split_heads(self._last.query(asked))
        key = self._split_heads(self._last.key(hidden))
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        padding = inputs["attention_mask"][:, None, None, :] == 0
        attention = scores.float().masked_fill(padding, float("-inf")).softmax(dim=-1)
        return attention.mean(dim=1).cpu().numpy()

    def _split_heads(self, hidden: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = hidden.shape
        return hidden.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)


def _by_word(row: np.ndarray, owner: np.ndarray, words: int) -> np.ndarray:
    """Sum a row over each word's tokens."""
    owned = owner >= 0
    return np.bincount(owner[owned], row[owned], minlength=words).astype(np.float32)
