"""Vectors of texts by an encoder, for what the checks learn and for the cosine of two texts."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..models.loading import load_tokenizer, without_notices
from ..weights.encoders import load_encoder
from ..weights.workers import one_thread

__all__ = ["MOST_TOKENS", "TextEncoder", "by_length", "mean_state", "padded", "tokenize"]

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
        name: name of the encoder.
        quiet: as above.
        tokenizer: of the encoder.
        width: numbers of a token's state.

    Raises:
        HarpError: the model cannot be loaded, or is no encoder.
    """

    def __init__(self, model: str, *, quiet: bool = True) -> None:
        self.name, self.quiet = model, quiet
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
        ids = tokenize(self.tokenizer, new)
        bar = tqdm(total=len(new), desc="embed", unit="text", disable=self.quiet)
        with one_thread(), bar, _threads() as pool:
            batches = list(by_length(ids))
            vectors = pool.map(self._forward, ([ids[n] for n in batch] for batch in batches))
            for batch, rows in zip(batches, vectors, strict=True):
                self._vectors |= {new[n]: row for n, row in zip(batch, rows, strict=True)}
                bar.update(len(batch))

    def cosine(self, query: str, document: str) -> float:
        """Return the cosine of two texts' mean token states in the last layer."""
        last = self.embed([query, document]).astype(np.float64)[:, -self.width :]
        norms = np.linalg.norm(last[0]) * np.linalg.norm(last[1])
        return float(last[0] @ last[1] / norms) if norms else 0.0

    def lower_half(self) -> PreTrainedModel:
        """Copy the lower half of the encoder's layers; all weights but the words' can learn."""
        model = copy.deepcopy(self._model)
        layers = model.config.num_hidden_layers
        for module in list(model.modules()):
            if isinstance(module, torch.nn.ModuleList) and len(module) == layers:
                del module[(layers + 1) // 2 :]
        model.get_input_embeddings().requires_grad_(False)
        return model

    @torch.inference_mode()
    def _forward(self, ids: list[list[int]]) -> np.ndarray:
        tokens, mask = padded(ids, self.tokenizer.pad_token_id)
        states = self._model(tokens, attention_mask=mask, output_hidden_states=True).hidden_states
        parts = [
            part
            for layer in (states[len(states) // 2], states[-1])
            for part in (layer[:, 0], mean_state(layer, mask))
        ]
        return torch.cat(parts, 1).numpy()


def _threads() -> ThreadPoolExecutor:
    """Return threads of which each computes alone."""
    return ThreadPoolExecutor(os.cpu_count(), initializer=torch.set_num_threads, initargs=(1,))


def tokenize(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[list[int]]:
    """Return the token ids of texts as the model reads them, cut at `MOST_TOKENS`."""
    most = min(MOST_TOKENS, tokenizer.model_max_length)
    return tokenizer(list(texts), truncation=True, max_length=most)["input_ids"]


def by_length(ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Gather the numbers of texts of similar length, so many that a batch fits into a cache."""
    batch: list[int] = []
    for number in sorted(range(len(ids)), key=lambda number: len(ids[number])):
        if batch and (len(batch) + 1) * len(ids[number]) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def padded(ids: Sequence[Sequence[int]], padding: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token ids of one length and the mask of those that are no padding."""
    longest = max(map(len, ids))
    tokens = torch.full((len(ids), longest), padding or 0)
    mask = torch.zeros(len(ids), longest, dtype=torch.int64)
    for row, text in enumerate(ids):
        tokens[row, : len(text)] = torch.tensor(text)
        mask[row, : len(text)] = 1
    return tokens, mask


def mean_state(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the mean state of the tokens that are no padding, of shape (texts, width)."""
    weights = mask[..., None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)
