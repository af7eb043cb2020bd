"""How much a training step computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import nn
from transformers import PreTrainedModel

__all__ = ["BatchSize", "TrainingCost", "product_weights"]


class BatchSize(NamedTuple):
    """The size of a batch.

    Attributes:
        tokens: number of tokens, without padding.
        squares: sum over texts of the square of their number of tokens.
        pairs: number of pairs.
        masked: number of masked tokens.
    """

    tokens: int
    squares: int
    pairs: int
    masked: int


@dataclass(frozen=True)
class TrainingCost:
    """How much a training step computes, by the PaLM paper (Chowdhery et al. 2022, app. B).

    A step costs 6 flops for each weight of a matrix product and each row that it multiplies: two in
    the forward pass and four in the backward pass. Embeddings are looked up and cost nothing. The
    rows are the tokens for the encoder, the pairs for the pooler and the scoring head, and the
    masked tokens for the language model's head. Attention adds 12 · layers · hidden · T for each
    token of a text of T tokens. Padding does not count, nor does what gradient checkpointing
    computes again. Local attention is counted as if it were global.

    Attributes:
        encoder: number of weights that multiply every token.
        attention: layers · hidden size.
        scoring_head: number of weights that multiply every pair.
        language_head: number of weights that multiply every masked token.
    """

    encoder: int
    attention: int
    scoring_head: int = 0
    language_head: int = 0

    @classmethod
    def of(
        cls, encoder: PreTrainedModel, *, scoring_head: int = 0, language_head: int = 0
    ) -> TrainingCost:
        """Count what a base model costs, with heads whose weights are already counted."""
        config = encoder.config
        attention = getattr(config, "num_hidden_layers", 0) * getattr(config, "hidden_size", 0)
        weights = product_weights(encoder, leave_out="pooler")
        return cls(weights, attention, scoring_head, language_head)

    def flops(self, size: BatchSize) -> float:
        """Return the floating-point operations of a step over a batch of this size."""
        rows = self.encoder * size.tokens + self.scoring_head * size.pairs
        rows += self.language_head * size.masked
        return 6 * rows + 12 * self.attention * size.squares


def product_weights(module: nn.Module, leave_out: str = "\n") -> int:
    """Count the weights of a module's matrix products.

    Args:
        module: a model or a part of one.
        leave_out: modules with this text in their names are not counted.
    """
    return sum(
        part.weight.numel()
        for name, part in module.named_modules()
        if isinstance(part, nn.Linear) and leave_out not in name
    )
