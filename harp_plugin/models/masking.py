"""Choose the tokens that a masked language model predicts, and what replaces them (eq. 15)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from ..errors import HarpError
from ..sampling import generator

__all__ = ["TokenMasker"]

_STARTS = ("Ġ", "▁")
"""Marks of a token that begins a word, in vocabularies of bytes and of SentencePiece."""
_RESERVED = re.compile(r"\[unused\d+\]|<unused\d+>|madeupword\d+|<extra_id_\d+>")


@dataclass(frozen=True, eq=False)
class TokenMasker:
    """Draws masks from a counter-based generator, so that the same key always gives the same masks.

    Of n ordinary tokens it chooses exactly max(1, round(probability · n)), without replacement.
    Whole words (Cui et al. 2021) are drawn in a random order, each with all its tokens: one that
    has more tokens than are left to choose is passed over, unless it is the first.
    A chosen token becomes ``[MASK]`` with probability 0.8, becomes a token that is drawn uniformly
    from the vocabulary with probability 0.1, and stays as it is with probability 0.1. Special and
    reserved tokens (``[unused1]``) are never masked and never drawn.

    Attributes:
        mask_token: id of ``[MASK]``.
        ordinary: True for each id that is neither special nor reserved, bool, (vocabulary,). Only
            these ids are masked, and only these are drawn.
        probability: fraction of the ordinary tokens that is chosen.
        seed: seed of all draws.
        continues: True for each id that goes on with a word, bool, (vocabulary,), where whole words
            are masked; None where tokens are.
    """

    mask_token: int
    ordinary: NDArray[np.bool_]
    probability: float = 0.15
    seed: int = 42
    continues: NDArray[np.bool_] | None = None

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: PreTrainedTokenizerBase,
        *,
        probability: float = 0.15,
        seed: int = 42,
        whole_words: bool = False,
    ) -> TokenMasker:
        """Make a masker for a tokenizer's vocabulary.

        Raises:
            HarpError: the tokenizer has no mask token, or its vocabulary does not say where words
                begin.
        """
        if tokenizer.mask_token_id is None:
            raise HarpError(
                f"{type(tokenizer).__name__} has no mask token: leave the mlm loss out, or choose "
                "a model that was trained as a masked language model"
            )
        vocabulary = tokenizer.get_vocab()
        ordinary = np.zeros(max(vocabulary.values()) + 1, dtype=np.bool_)
        for token, index in vocabulary.items():
            ordinary[index] = not _RESERVED.fullmatch(token)
        ordinary[tokenizer.all_special_ids] = False
        continues = _continues(vocabulary) if whole_words else None
        return cls(tokenizer.mask_token_id, ordinary, probability, seed, continues)

    @cached_property
    def replacements(self) -> NDArray[np.int64]:
        """The ids that a random replacement is drawn from."""
        return np.flatnonzero(self.ordinary)

    def draw(
        self, tokens: NDArray[np.int64], *key: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Choose tokens, and the ids that replace them.

        Args:
            tokens: a document's token ids, (tokens,).
            key: numbers that the draw depends on besides the seed: epoch, example and member.

        Returns:
            The chosen indices in ascending order, and the ids that replace them, both (budget,).
        """
        ordinary = np.flatnonzero(self.ordinary[tokens])
        count = len(ordinary)
        budget = max(1, round(self.probability * count)) if count else 0
        order, kind, replacement = generator(self.seed, "masks", *key).random((3, count))
        if self.continues is None:
            chosen = np.sort(np.argsort(order, kind="stable")[:budget])
        else:
            chosen = _whole_words(ordinary, ~self.continues[tokens[ordinary]], order, budget)
        kind, replacement, chosen = kind[chosen], replacement[chosen], ordinary[chosen]
        random_ids = self.replacements[(replacement * len(self.replacements)).astype(np.int64)]
        kept_or_random = np.where(kind < 0.9, random_ids, tokens[chosen])
        replaced = np.where(kind < 0.8, self.mask_token, kept_or_random)
        return chosen, replaced


def _continues(vocabulary: Mapping[str, int]) -> NDArray[np.bool_]:
    """Return which ids go on with a word, by the marks of WordPiece, of bytes or of SentencePiece.

    The mark that most tokens have counts: `##` is also the beginning of a heading in Markdown.

    Raises:
        HarpError: the vocabulary has no such marks.
    """
    counts = {mark: sum(t.startswith(mark) for t in vocabulary) for mark in ("##", *_STARTS)}
    mark = max(counts, key=lambda each: counts[each])
    if not counts[mark]:
        raise HarpError(
            "the vocabulary of this tokenizer does not say where words begin: leave "
            "mlm_whole_words out"
        )
    continues = np.zeros(max(vocabulary.values()) + 1, dtype=np.bool_)
    for token, index in vocabulary.items():
        continues[index] = token.startswith(mark) == (mark not in _STARTS)
    return continues


def _whole_words(
    places: NDArray[np.int64], begins: NDArray[np.bool_], order: NDArray[np.float64], budget: int
) -> NDArray[np.int64]:
    """Choose words until the budget of tokens is spent.

    Args:
        places: where ordinary tokens stand in a document, ascending, (ordinary,).
        begins: whether each begins a word; so does one that stands apart from the one before.
        order: a random number for each; words are taken in the order of that of their first token.
        budget: how many tokens are chosen at most, unless the first word has more.

    Returns:
        Indices of ``places``, ascending.
    """
    word_of = np.cumsum(begins | (np.diff(places, prepend=-2) > 1)) - 1
    sizes = np.bincount(word_of)
    firsts = np.flatnonzero(np.diff(word_of, prepend=-1))
    chosen: list[int] = []
    for word in np.argsort(order[firsts], kind="stable").tolist():
        if not chosen or sizes[word] <= budget:
            chosen.append(word)
            budget -= sizes[word]
        if budget <= 0:
            break
    return np.flatnonzero(np.isin(word_of, chosen))
