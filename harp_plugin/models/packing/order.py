"""The order in which texts are packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .attention import Packing

__all__ = ["PackedOrder"]


class PackedOrder(NamedTuple):
    """The order in which texts are packed, the shortest first.

    Attributes:
        packing: of the texts in this order.
        source: where each token was before, (tokens,).
        rank: the place of each text, (texts,).
    """

    packing: Packing
    source: Tensor
    rank: Tensor

    @classmethod
    def of(
        cls, ids: Tensor, lengths: np.ndarray | Sequence[int] | Tensor, device: torch.device
    ) -> PackedOrder:
        """Put texts in this order.

        Args:
            ids: token ids of the texts, one text after the other, (tokens,).
            lengths: number of tokens of each text, at least 1, on the CPU, (texts,).
            device: where the order is used.

        Raises:
            ValueError: the lengths do not add up to the tokens, or there is an empty text.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        if not len(sizes) or sizes.min() < 1 or sizes.sum() != len(ids):
            raise ValueError(
                f"{len(sizes)} texts of {sizes.sum()} tokens, but there are {len(ids)} token ids"
            )
        order = np.argsort(sizes, kind="stable")
        packing = Packing.of(sizes[order], device)
        first = torch.from_numpy((np.cumsum(sizes) - sizes)[order]).to(device)
        source = first[packing.text] + packing.positions
        return cls(packing, source, torch.from_numpy(np.argsort(order)).to(device))

    @property
    def moved(self) -> Tensor:
        """The place of each token in this order, (tokens,)."""
        places = torch.arange(len(self.source), device=self.source.device)
        return torch.empty_like(self.source).scatter_(0, self.source, places)
