"""Vectors of texts by an encoder, for what the checks learn and for the cosine of two texts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np
import torch
from tqdm import tqdm

from ..models.devices import one_thread
from ..models.loading import load_tokenizer, without_notices
from ..models.pooling import padded_inputs, pooled
from ..weights.encoders import load_encoder

__all__ = ["MOST_TOKENS", "TextEncoder"]

MOST_TOKENS = 128
"""Texts are cut here, because the time grows with the tokens. Queries are shorter, unless they are
passages or articles; of a long lead, the checks see the beginning."""
_BATCH_TOKENS = 2048


class TextEncoder:
    """Embeds texts, each distinct text once.

    A text's vector is [CLS] and the mean of all tokens, of the middle layer and of the last one.
    Every batch is computed on the CPU by one thread, so that the numbers do not depend on how many
    batches are computed at the same time.

    Args:
        model: name of the encoder.
        quiet: show no progress bar.

    Attributes:
        quiet: as above.
        tokenizer: of the encoder.
        width: numbers of a token's state.

    Raises:
        HarpError: the model cannot be loaded, or is not an encoder.
    """

    def __init__(self, model: str, *, quiet: bool = True) -> None:
        self.quiet = quiet
        self.tokenizer = load_tokenizer(model)
        with without_notices():
            self._model = load_encoder(model, torch.device("cpu"), torch.float32).model
        self.width: int = self._model.config.hidden_size
        self._vectors: dict[str, np.ndarray] = {}

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of texts, float32 of shape (texts, 4 · width)."""
        if new := [text for text in dict.fromkeys(texts) if text not in self._vectors]:
            self._add(new)
        return np.stack([self._vectors[text] for text in texts])

    def _add(self, new: list[str]) -> None:
        """Compute the vectors of texts that have none yet."""
        most = min(MOST_TOKENS, self.tokenizer.model_max_length)
        ids = self.tokenizer(new, truncation=True, max_length=most)["input_ids"]
        batches = list(_by_length(ids))
        pool = ThreadPoolExecutor(os.cpu_count(), "", torch.set_num_threads, (1,))
        with (
            one_thread(),
            tqdm(total=len(new), desc="embed", unit="text", disable=self.quiet) as bar,
            pool,
        ):
            vectors = pool.map(self._forward, ([ids[n] for n in batch] for batch in batches))
            for batch, rows in zip(batches, vectors, strict=True):
                self._vectors |= {new[n]: row for n, row in zip(batch, rows, strict=True)}
                bar.update(len(batch))

    def cosine(self, query: str, document: str) -> float:
        """Return the cosine of two texts' mean token states in the last layer."""
        last = self.embed([query, document]).astype(np.float64)[:, -self.width :]
        norms = np.linalg.norm(last[0]) * np.linalg.norm(last[1])
        return float(last[0] @ last[1] / norms) if norms else 0.0

    @torch.inference_mode()
    def _forward(self, ids: list[list[int]]) -> np.ndarray:
        lengths = np.array([len(text) for text in ids])
        tokens = torch.tensor(list(chain.from_iterable(ids)))
        inputs, places = padded_inputs(tokens, lengths, None, self.tokenizer.pad_token_id or 0)
        states = self._model(**inputs, output_hidden_states=True).hidden_states
        parts = [
            pooled(layer.flatten(0, 1)[places], lengths, pooling)
            for layer in (states[len(states) // 2], states[-1])
            for pooling in ("cls", "mean")
        ]
        return torch.cat(parts, 1).numpy()


def _by_length(ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Gather the numbers of texts of similar length, so many that a batch fits into a cache."""
    batch: list[int] = []
    for number in sorted(range(len(ids)), key=lambda number: len(ids[number])):
        if batch and (len(batch) + 1) * len(ids[number]) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
