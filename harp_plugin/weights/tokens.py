"""Texts as flat arrays of tokens, with the words and the anchors that the tokens belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from ..errors import HarpError
from ..text import WORD
from ..work.processes import start_worker
from .words import Span, TextWords, flat, starts_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["TokenizedTexts", "Tokenizer", "keep_tokenizer", "tokenize_kept"]


@dataclass(frozen=True, slots=True)
class TokenizedTexts:
    """Tokens of texts, one text after the other.

    Attributes:
        words: where the words and anchors of the texts stand.
        ids: of the tokens, int64 of shape (tokens,).
        starts: the first token of each text and the end, shape (texts + 1,).
        owner: for each token its word, counted within its text; -1 for none.
        pieces: tokens of the anchors, counted within their text.
        piece_starts: the first piece of each anchor and the end, shape (anchors + 1,).
    """

    words: TextWords
    ids: np.ndarray
    starts: np.ndarray
    owner: np.ndarray
    pieces: np.ndarray
    piece_starts: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """The number of tokens of each text."""
        return np.diff(self.starts)


class Tokenizer:
    """Tokenizes texts, and finds which word each token belongs to.

    Args:
        tokenizer: a fast tokenizer of Hugging Face; its settings of truncation and padding change.
        max_length: tokens at which a text is cut, special ones among them.
        unit: ``word``, or ``wordpiece`` as in the HARP authors' released code.
        anchor_row: ``span`` for all wordpieces of an anchor, ``first_piece`` for its first.

    Raises:
        HarpError: the tokenizer tells no character offsets, or begins no text with [CLS].
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, max_length: int, unit: str, anchor_row: str
    ) -> None:
        self.backend = _backend(tokenizer)
        self.cut_at(max_length)
        self.unit = unit
        self.anchor_row = anchor_row

    def cut_at(self, max_length: int) -> None:
        """Cut texts at so many tokens, special ones among them."""
        self.backend.enable_truncation(max_length)
        self.max_length = max_length

    def __call__(
        self, texts: Sequence[str], anchors: Sequence[Sequence[Span]] | None = None
    ) -> TokenizedTexts:
        """Tokenize texts, and find the wordpieces of each text's anchors by character offsets."""
        encodings = self.backend.encode_batch(list(texts))
        starts = starts_of(len(encoding.ids) for encoding in encodings)
        ids = flat(encoding.ids for encoding in encodings)
        offsets = flat(chain.from_iterable(e.offsets for e in encodings)).reshape(-1, 2)
        inside = flat(encoding.special_tokens_mask for encoding in encodings) == 0
        text = np.repeat(np.arange(len(texts)), np.diff(starts))
        ends = np.zeros(len(texts), dtype=np.int64)
        np.maximum.at(ends, text, np.where(inside, offsets[:, 1], 0))
        if self.unit == "wordpiece":
            spans, counts = offsets[inside], np.bincount(text[inside], minlength=len(texts))
            owner = np.cumsum(inside) - 1
            owner = np.where(inside, owner - starts_of(counts)[text], -1)
        else:
            spans, counts, owner = _words(texts, ends, text, offsets, inside)
        sizes = np.array([len(string.rstrip()) for string in texts], dtype=np.int64)
        cut = (np.diff(starts) >= self.max_length) & (ends < sizes)
        anchors = [()] * len(texts) if anchors is None else anchors
        pieces = list(self._pieces(anchors, starts, offsets, inside))
        piece_starts = starts_of(map(len, pieces))
        words = TextWords(
            spans,
            starts_of(counts),
            flat(chain.from_iterable(anchors)).reshape(-1, 2),
            starts_of(map(len, anchors)),
            np.diff(piece_starts) > 0,
            cut,
        )
        return TokenizedTexts(words, ids, starts, owner, flat(pieces), piece_starts)

    def _pieces(self, anchors, starts, offsets, inside) -> Iterator[np.ndarray]:
        most = 1 if self.anchor_row == "first_piece" else None
        for spans, first, after in zip(anchors, starts[:-1], starts[1:], strict=True):
            begins, ends = offsets[first:after].T
            for start, end in spans:
                touched = inside[first:after] & (begins < end) & (ends > start)
                yield np.flatnonzero(touched)[:most]


def _backend(tokenizer: PreTrainedTokenizerBase):
    """The tokenizer of the library ``tokenizers``, if texts can be weighed by what it gives."""
    name = tokenizer.name_or_path
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise HarpError(
            f"{name}: its tokenizer tells no character offsets: name a model with a fast tokenizer"
        )
    backend.no_padding()
    if backend.encode("a").ids[:1] != [tokenizer.cls_token_id]:
        raise HarpError(
            f"{name}: its tokenizer begins no text with [CLS], whose attention is needed: "
            "name an encoder, such as bert-base-uncased"
        )
    return backend


_kept: list[Tokenizer] = []


def keep_tokenizer(tokenizer: Tokenizer) -> None:
    """Begin a process that tokenizes, and keep its tokenizer for `tokenize_kept`."""
    start_worker()
    _kept.append(tokenizer)


def tokenize_kept(texts: Sequence[str], anchors: Sequence[Sequence[Span]] | None) -> TokenizedTexts:
    """Tokenize texts by the tokenizer that `keep_tokenizer` kept in this process."""
    return _kept[0](texts, anchors)


def _words(
    texts: Sequence[str],
    limits: np.ndarray,
    text: np.ndarray,
    offsets: np.ndarray,
    inside: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words before each text's limit, their number in each, and the word that owns each token."""
    each = [
        [match.span() for match in WORD.finditer(string) if match.end() <= limit]
        for string, limit in zip(texts, limits.tolist(), strict=True)
    ]
    counts = np.array([len(spans) for spans in each], dtype=np.int64)
    spans = flat(chain.from_iterable(each)).reshape(-1, 2)
    if not len(spans):
        return spans, counts, np.full(len(text), -1)
    # All texts share one range of offsets, so that one search finds the words of all tokens.
    stride = 1 + max(int(spans.max()), int(offsets.max()))
    word_text = np.repeat(np.arange(len(texts)), counts)
    # The first word that ends beyond the token's start: a token may begin with its space.
    owner = np.searchsorted(
        word_text * stride + spans[:, 1], text * stride + offsets[:, 0], "right"
    )
    word = np.minimum(owner, len(spans) - 1)
    owned = inside & (owner < len(spans)) & (word_text[word] == text)
    owned &= spans[word, 0] < offsets[:, 1]
    return spans, counts, np.where(owned, owner - starts_of(counts)[text], -1)
