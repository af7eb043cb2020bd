"""BERTs with random weights, and how many operations it takes to train them.

A training step multiplies, in the forward pass, each token by the weights of the layers, each token
by those of its text, and each masked token by the head that predicts it. An addition and a
multiplication are two operations, and the backward pass takes twice as many as the forward pass:

    6 · layers · (4 · width² + 2 · width · inner) · tokens
    + 12 · layers · width · sum of the squares of the lengths
    + 6 · (width² + width · vocabulary) · masked tokens
    + 6 · width² · pairs, for the pooler

So padding does not count, nor what is computed twice, nor embeddings, which are looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from transformers import BertConfig, BertForSequenceClassification

from harp_plugin.models.loading import load_tokenizer

MOST_TOKENS = 512
SHAPES = {"MiniLM": (6, 384, 12, 1536), "BERT-base": (12, 768, 12, 3072)}
"""Layers, width, heads and inner width by name."""
SMALL_SHAPES = {"tiny": (2, 32, 2, 64)}


class Model(NamedTuple):
    """A model with random weights.

    Attributes:
        name: of its shape.
        folder: of its files.
        layers: their number.
        width: of the hidden states.
        inner: width between the two products of a layer's feed-forward part.
        vocabulary: number of tokens.
    """

    name: str
    folder: Path
    layers: int
    width: int
    inner: int
    vocabulary: int

    def operations(self, counts: dict[str, float]) -> float:
        """Return the operations of training on so many tokens (see the top of this file)."""
        of_layers = self.layers * (4 * self.width**2 + 2 * self.width * self.inner)
        of_head = self.width**2 + self.width * self.vocabulary
        attention = 2 * self.layers * self.width * counts["squares"]
        head = of_head * counts["masked"] + self.width**2 * counts["rate"]
        return 6 * (of_layers * counts["tokens"] + attention + head)


def random_models(folder: Path, tokenizer_name: str, *, small: bool) -> Iterator[Model]:
    """Make models with random weights."""
    tokenizer = load_tokenizer(tokenizer_name)
    tokenizer.model_max_length = MOST_TOKENS
    for name, (layers, width, heads, inner) in (SMALL_SHAPES if small else SHAPES).items():
        config = BertConfig(
            vocab_size=len(tokenizer),
            num_hidden_layers=layers,
            hidden_size=width,
            num_attention_heads=heads,
            intermediate_size=inner,
            num_labels=1,
        )
        model = Model(name, folder / name, layers, width, inner, len(tokenizer))
        torch.manual_seed(0)
        BertForSequenceClassification(config).save_pretrained(model.folder)
        tokenizer.save_pretrained(model.folder)
        yield model
