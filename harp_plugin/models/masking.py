"""Choose the tokens that a masked language model predicts, and what replaces them (eq. 15)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from ..errors import HarpError
from ..sampling import generator

__all__ = ["TokenMasker"]

_RESERVED = re.compile(r"\[unused\d+\]|<unused\d+>|madeupword\d+|<extra_id_\d+>")


@dataclass(frozen=True, eq=False)
class TokenMasker:
    """Draws masks from a counter-based generator, so that the same key always gives the same masks.

    Of n ordinary tokens it chooses exactly max(1, round(probability · n)), without replacement.
    A chosen token becomes ``[MASK]`` with probability 0.8, becomes a token that is drawn uniformly
    from the vocabulary with probability 0.1, and stays as it is with probability 0.1. Special and
    reserved tokens (``[unused1]``) are never masked and never drawn.

    Attributes:
        mask_token: id of ``[MASK]``.
        ordinary: True for each id that is neither special nor reserved, bool, (vocabulary,). Only
            these ids are masked, and only these are drawn.
        probability: fraction of the ordinary tokens that is chosen.
        seed: seed of all draws.
    """

    mask_token: int
    ordinary: NDArray[np.bool_]
    probability: float = 0.15
    seed: int = 42

    @classmethod
    def from_tokenizer(
        cls, tokenizer: PreTrainedTokenizerBase, *, probability: float = 0.15, seed: int = 42
    ) -> TokenMasker:
        """Make a masker for a tokenizer's vocabulary.

        Raises:
            HarpError: the tokenizer has no mask token.
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
        return cls(tokenizer.mask_token_id, ordinary, probability, seed)

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
        chosen = np.sort(np.argsort(order, kind="stable")[:budget])
        kind, replacement, chosen = kind[chosen], replacement[chosen], ordinary[chosen]
        random_ids = self.replacements[(replacement * len(self.replacements)).astype(np.int64)]
        kept_or_random = np.where(kind < 0.9, random_ids, tokens[chosen])
        replaced = np.where(kind < 0.8, self.mask_token, kept_or_random)
        return chosen, replaced
