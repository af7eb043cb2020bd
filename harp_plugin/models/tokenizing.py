"""Make token ids of texts, of their first words alone where that changes no token."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from transformers import PreTrainedTokenizerBase
from transformers.tokenization_utils_base import PaddingStrategy, TruncationStrategy

__all__ = ["first_words", "tokenize"]

_TEXTS_AT_ONCE = 4096
_CHARACTERS_PER_WORD = 4
"""A text with fewer for each word that may be kept is not cut before it is tokenized."""


def tokenize(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int | None
) -> Iterator[np.ndarray]:
    """Yield the token ids of each text, (length,) int32, without special tokens.

    Args:
        texts: n texts.
        tokenizer: a fast tokenizer.
        max_length: most tokens of a text; longer texts are cut. None cuts no text.
    """
    words = max_length if _tokenizes_word_by_word(tokenizer) else None
    cutting = TruncationStrategy.LONGEST_FIRST
    if max_length is None:
        cutting = TruncationStrategy.DO_NOT_TRUNCATE
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        part = list(texts[start : start + _TEXTS_AT_ONCE])
        if words is not None:
            part = [first_words(text, words) for text in part]
        tokenizer.set_truncation_and_padding(
            PaddingStrategy.DO_NOT_PAD,
            cutting,
            max_length=max_length or 0,
            stride=0,
            pad_to_multiple_of=None,
            padding_side=None,
        )
        encodings = tokenizer.backend_tokenizer.encode_batch_fast(part, add_special_tokens=False)
        yield from (np.array(encoding.ids, dtype=np.int32) for encoding in encodings)


def first_words(text: str, count: int) -> str:
    """Return the beginning of a text that has ``count`` words, or a few more.

    A word ends before a space, a tab or the end of a line. Only a word with an ASCII letter or
    digit is counted, because the normalizer of BERT may remove every character of another word.
    """
    if len(text) < _CHARACTERS_PER_WORD * count:
        return text
    begin = _words(count).match(text)
    return text if begin is None else begin.group()


@cache
def _words(count: int) -> re.Pattern[str]:
    return re.compile(rf"(?:[^a-zA-Z0-9]*+[a-zA-Z0-9][^ \t\n\r]*+){{{count}}}+")


def _tokenizes_word_by_word(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether the first words of a text have the same tokens without the rest of it.

    This is so for BERT's WordPiece, which makes at least one token of each word.
    """
    rules = tokenizer.backend_tokenizer
    return (
        isinstance(rules.model, WordPiece)
        and isinstance(rules.normalizer, BertNormalizer)
        and isinstance(rules.pre_tokenizer, BertPreTokenizer)
        and tokenizer.truncation_side == "right"
        and not any(re.search(r"\s", token) for token in tokenizer.get_added_vocab())
    )
