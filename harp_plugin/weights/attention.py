"""Attention as term weight: HARP, equations 1, 5, 10 and 13.

There is one forward pass per distinct text. Of the last layer only the rows that are needed are
computed: those of the anchors' wordpieces and of [CLS]. Of the layer before it, which RDP compares
the weights of anchors with, it is the row of [CLS], where a text has anchors.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator

import numpy as np
import torch

from ..errors import HarpError
from ..models.devices import default_dtype
from ..models.loading import choose_device, load_tokenizer, longest_input
from .encoders import load_encoder
from .tokens import TokenizedTexts, Tokenizer
from .weighed_texts import WeighedTexts
from .words import ragged

__all__ = ["AttentionWeigher"]

_NO_LIMIT = 8192
_TRIM_EVERY = 4
_TOKENISERS = 4
_BATCH_TOKENS = {"cpu": 2048, "cuda": 65536}


class AttentionWeigher:
    """Weighs the words of texts by the attention of a Transformer's last layer.

    A word is located by its character offsets. Its weight is the sum over its wordpieces, and an
    anchor's row is the mean over the rows of its wordpieces. Heads are averaged. A wordpiece that
    covers several words, as an unknown one may, belongs to the first of them.

    Args:
        model: checkpoint of an encoder, as in `harp_plugin.models.loading.resolve_model`.
        device: a name such as ``cpu`` or ``cuda``; None takes a GPU where there is one.
        batch_tokens: tokens per forward pass; None takes 2,048 on a CPU and 65,536 on a GPU.
        unit: ``word``, or ``wordpiece`` as in the HARP authors' released code.
        anchor_row: ``span`` for the mean over the anchor's wordpieces, ``first_piece`` for the
            row of its first (released).
        dtype: ``float32``, or ``bfloat16``; None takes bfloat16 on a GPU that has it.

    Attributes:
        tokenizers: the number of processes that should tokenize ahead; 0 stands for a thread of
            this process, which is enough for a CPU.

    Warns:
        UserWarning: the model's architecture has no fast path.

    Raises:
        HarpError: the device cannot be used, the model cannot be loaded, or it is not an encoder
            whose tokenizer begins a text with [CLS] and tells character offsets.
    """

    def __init__(
        self,
        model: str,
        *,
        device: str | None = None,
        batch_tokens: int | None = None,
        unit: str = "word",
        anchor_row: str = "span",
        dtype: str | None = None,
    ) -> None:
        self.device = choose_device(device)
        self.dtype = dtype or default_dtype(self.device)
        self.tokenizers = _TOKENISERS if self.device.type == "cuda" else 0
        self.batch_tokens = batch_tokens or _BATCH_TOKENS.get(self.device.type, 8192)
        tokenizer = load_tokenizer(model)
        longest = min(tokenizer.model_max_length, _NO_LIMIT)
        self.tokenize = Tokenizer(tokenizer, longest, unit, anchor_row)
        self.encoder = load_encoder(model, self.device, getattr(torch, self.dtype))
        self.heads = self.encoder.heads
        self.tokenize.cut_at(min(longest, longest_input(self.encoder.model) or _NO_LIMIT))

    def weigh_tokenized(self, texts: TokenizedTexts) -> WeighedTexts:
        """Weigh texts that were tokenized ahead, by ``self.tokenize``.

        The other texts of the call change a text's weights by rounding at most.

        Raises:
            HarpError: the GPU has too little memory for a batch.
        """
        weighed = WeighedTexts.zeros(texts.words)
        for number, batch in enumerate(self._batches(texts.lengths), 1):
            try:
                self._weigh_batch(texts, batch, weighed)
            except torch.OutOfMemoryError as error:
                raise HarpError(
                    f"{self.device} is out of memory: give fewer --batch-tokens, "
                    f"below {self.batch_tokens}"
                ) from error
            if self.device.type == "cpu" and number % _TRIM_EVERY == 0:
                _give_back_memory()
        return weighed

    def _batches(self, lengths: np.ndarray) -> Iterator[np.ndarray]:
        order = np.argsort(lengths, kind="stable")
        first = tokens = 0
        for index, length in enumerate(lengths[order].tolist()):
            if tokens and tokens + length > self.batch_tokens:
                yield order[first:index]
                first, tokens = index, 0
            tokens += length
        if first < len(order):
            yield order[first:]

    def _weigh_batch(self, texts: TokenizedTexts, batch: np.ndarray, weighed: WeighedTexts) -> None:
        lengths = texts.lengths[batch]
        tokens = ragged(texts.starts[batch], lengths)
        rows, pieces = _needed_rows(texts, batch)
        has_anchors = rows.shape[1] > 1
        attention, before = self.encoder.attention(
            texts.ids[tokens], lengths, rows, before=has_anchors
        )
        owner = np.full((len(batch), attention.shape[2]), -1)
        owner[np.arange(attention.shape[2]) < lengths[:, None]] = texts.owner[tokens]
        weighed.add_cls(batch, owner, attention[:, 0])
        weighed.add_anchors(batch, owner, attention[pieces], np.diff(texts.piece_starts))
        if before is not None:
            weighed.add_layer_before(batch, owner, before)


def _needed_rows(
    texts: TokenizedTexts, batch: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """The rows that each text needs, [CLS] first; and where the anchors' pieces are in them."""
    anchor_starts = texts.words.anchor_starts
    first = texts.piece_starts[anchor_starts[batch]]
    counts = texts.piece_starts[anchor_starts[batch + 1]] - first
    rows = np.zeros((len(batch), 1 + int(counts.max(initial=0))), dtype=np.int64)
    text = np.repeat(np.arange(len(batch)), counts)
    row = 1 + ragged(np.zeros_like(counts), counts)
    rows[text, row] = texts.pieces[ragged(first, counts)]
    return rows, (text, row)


def _give_back_memory() -> None:
    """Return freed memory to the system: glibc keeps the memory of tensors of changing sizes."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
