"""Texts as flat arrays of tokens, of words, and of anchors' wordpieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from ..errors import HarpError
from ..processes import start_worker
from ..text import WORD

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TokenisedTexts:
    """Arrays over all texts, one text after the other; ``x_starts`` has a last entry for the end.

    Attributes:
        ids: of the tokens, int64 of shape (tokens,).
        starts: the first token of each text, shape (texts + 1,).
        spans: character offsets of the words, int64 of shape (words, 2).
        word_starts: the first word of each text, shape (texts + 1,).
        owner: for each token its word, counted within its text; -1 for none.
        anchor_starts: the first anchor of each text, shape (texts + 1,).
        pieces: tokens of the anchors, counted within their text.
        piece_starts: the first piece of each anchor, shape (anchors + 1,).
        cut: whether a text is longer than the model's limit, bool of shape (texts,).
    """

    ids: np.ndarray
    starts: np.ndarray
    spans: np.ndarray
    word_starts: np.ndarray
    owner: np.ndarray
    anchor_starts: np.ndarray
    pieces: np.ndarray
    piece_starts: np.ndarray
    cut: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each text."""
        return np.diff(self.starts)


class Tokeniser:
    """Makes `TokenisedTexts`.

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
    ) -> TokenisedTexts:
        """Tokenise texts, and find the wordpieces of each text's anchors by character offsets."""
        found = self.backend.encode_batch(list(texts))
        starts = _starts(len(encoding.ids) for encoding in found)
        ids = _flat(encoding.ids for encoding in found)
        offsets = _flat(chain.from_iterable(e.offsets for e in found)).reshape(-1, 2)
        inside = _flat(encoding.special_tokens_mask for encoding in found) == 0
        text = np.repeat(np.arange(len(texts)), np.diff(starts))
        ends = np.zeros(len(texts), dtype=np.int64)
        np.maximum.at(ends, text, np.where(inside, offsets[:, 1], 0))
        if self.unit == "wordpiece":
            spans, words = offsets[inside], np.bincount(text[inside], minlength=len(texts))
            owner = np.cumsum(inside) - 1
            owner = np.where(inside, owner - _starts(words)[text], -1)
        else:
            spans, words, owner = _words(texts, ends, text, offsets, inside)
        sizes = np.array([len(string.rstrip()) for string in texts], dtype=np.int64)
        anchors = [()] * len(texts) if anchors is None else anchors
        pieces = list(self._pieces(anchors, starts, offsets, inside))
        return TokenisedTexts(
            ids,
            starts,
            spans,
            _starts(words),
            owner,
            _starts(map(len, anchors)),
            _flat(pieces),
            _starts(map(len, pieces)),
            (np.diff(starts) >= self.max_length) & (ends < sizes),
        )

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


_kept: list[Tokeniser] = []


def keep_tokeniser(tokeniser: Tokeniser) -> None:
    """Begin a process that tokenises."""
    start_worker()
    _kept.append(tokeniser)


def tokenise_kept(texts: Sequence[str], anchors: Sequence[Sequence[Span]] | None) -> TokenisedTexts:
    """Tokenise in such a process."""
    return _kept[0](texts, anchors)


def _words(
    texts: Sequence[str],
    limits: np.ndarray,
    text: np.ndarray,
    offsets: np.ndarray,
    inside: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words before each text's limit, their number in each, and the word that owns each token."""
    found: list[list[Span]] = []
    for string, limit in zip(texts, limits.tolist(), strict=True):
        found.append([match.span() for match in WORD.finditer(string) if match.end() <= limit])
    counts = np.array([len(spans) for spans in found], dtype=np.int64)
    spans = _flat(chain.from_iterable(found)).reshape(-1, 2)
    if not len(spans):
        return spans, counts, np.full(len(text), -1)
    # One line of numbers for all texts, so that a word is found among all in one search.
    stride = 1 + max(int(spans.max()), int(offsets.max()))
    word_text = np.repeat(np.arange(len(texts)), counts)
    # The first word that ends beyond the token's start: a token may begin with its space.
    owner = np.searchsorted(
        word_text * stride + spans[:, 1], text * stride + offsets[:, 0], "right"
    )
    known = np.minimum(owner, len(spans) - 1)
    owned = inside & (owner < len(spans)) & (word_text[known] == text)
    owned &= spans[known, 0] < offsets[:, 1]
    return spans, counts, np.where(owned, owner - _starts(counts)[text], -1)


def _flat(parts) -> np.ndarray:
    """All integers in the parts, one part after the other."""
    return np.fromiter(chain.from_iterable(parts), dtype=np.int64)


def _starts(counts) -> np.ndarray:
    """Where each of consecutive parts starts, and where the last ends."""
    return np.concatenate([[0], np.cumsum(np.fromiter(counts, dtype=np.int64))]).astype(np.int64)


def ragged(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers ``start, ..., start + length - 1`` of each part, one part after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
