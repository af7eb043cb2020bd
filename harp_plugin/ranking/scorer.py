"""Score text pairs with a cross-encoder."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from os import PathLike, fspath
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import HarpError
from ..models import load_tokenizer, longest_input
from .loading import DTYPES, choose_device, load_cross_encoder
from .pairs import PairTemplate, TextPairs

UNLIMITED = 65536  # tokens of a pair, where neither model nor tokenizer sets a limit


class Scorer:
    """A Hugging Face sequence-classification checkpoint that scores queries against documents.

    One logit is the score; of two logits, the score is the second less the first. Weights are
    loaded when the first pair is scored.

    Args:
        model: a folder, a hub name, or ``package:NAME`` (see `harp_plugin.models.resolve_model`).
        device: such as ``cpu`` or ``cuda:1``; by default CUDA where there is one, else the CPU.
        dtype: of the weights: ``float32``, ``bfloat16`` or ``float16``.
        batch_tokens: how many tokens, padding included, a batch may hold.
        max_length: tokens of a pair; by default as many as model and tokenizer allow.
        allow_untrained: score with random weights where the checkpoint has none, such as a
            language model without a classification head.
        seed: draws those random weights.

    Raises:
        HarpError: an argument has no sense. A missing or unfit model is told when it is loaded.
    """

    def __init__(
        self,
        model: str | PathLike[str],
        *,
        device: str | None = None,
        dtype: str = "float32",
        batch_tokens: int = 8192,
        max_length: int | None = None,
        allow_untrained: bool = False,
        seed: int = 0,
    ) -> None:
        if dtype not in DTYPES:
            raise HarpError(f"unknown dtype {dtype!r}: choose one of {', '.join(DTYPES)}")
        if batch_tokens < 1:
            raise HarpError(f"batch_tokens is {batch_tokens}: it must be at least 1")
        self.model = fspath(model)
        self.device = device
        self.dtype = dtype
        self.batch_tokens = batch_tokens
        self.max_length = max_length
        self.allow_untrained = allow_untrained
        self.seed = seed

    def score(
        self,
        queries: Sequence[str],
        documents: Sequence[str],
        *,
        verbose: bool = False,
        progress: Callable[..., Any] = tqdm,
    ) -> np.ndarray:
        """Score ``queries[i]`` against ``documents[i]``.

        Every distinct text is tokenised once and every distinct pair is scored once, so equal
        pairs have equal scores.

        Args:
            queries: n texts.
            documents: n texts.
            verbose: show a progress bar, counted in pairs.
            progress: the class of that bar.

        Returns:
            (n,) float32 scores in the order given; higher is more relevant.

        Raises:
            HarpError: the lengths differ, a text is no string, the model cannot be loaded, or it
                gives a score that is not a number.
        """
        _check_texts(queries, documents)
        if not len(queries):
            return np.zeros(0, dtype=np.float32)
        pairs = TextPairs(queries, documents, self._tokenizer, self._template, self._limit)
        scores = np.empty(len(pairs), dtype=np.float32)
        with progress(total=len(pairs), desc="score", unit="pair", disable=not verbose) as bar:
            for places in pairs.batches(self.batch_tokens):
                scores[places] = self._forward(pairs.inputs(places))
                bar.update(len(places))
        scores = scores[pairs.inverse]
        self._check_scores(scores, queries, documents)
        return scores

    @torch.inference_mode()
    def _forward(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        model = self._weights
        tensors = {
            name: torch.from_numpy(inputs[name]).to(model.device) for name in self._input_names
        }
        logits = model(**tensors).logits.float()
        scores = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
        return scores.cpu().numpy()

    @cached_property
    def _weights(self) -> PreTrainedModel:
        return load_cross_encoder(
            self.model,
            device=choose_device(self.device),
            dtype=self.dtype,
            allow_untrained=self.allow_untrained,
            seed=self.seed,
        )

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        return load_tokenizer(self.model)

    @cached_property
    def _template(self) -> PairTemplate:
        return PairTemplate.of(self._tokenizer)

    @cached_property
    def _input_names(self) -> list[str]:
        accepted = inspect.signature(self._weights.forward).parameters
        names = ["input_ids", "attention_mask"]
        if "token_type_ids" in self._tokenizer.model_input_names and "token_type_ids" in accepted:
            names.append("token_type_ids")
        return names

    @cached_property
    def _limit(self) -> int:
        limits = [self._tokenizer.model_max_length, longest_input(self._weights), UNLIMITED]
        longest = min(limit for limit in limits if limit is not None)
        if self.max_length is None:
            return longest
        shortest = self._template.length + 2
        if not shortest <= self.max_length <= longest:
            raise HarpError(
                f"max_length is {self.max_length}: {self.model} takes {shortest} to {longest}"
            )
        return self.max_length

    def _check_scores(
        self, scores: np.ndarray, queries: Sequence[str], documents: Sequence[str]
    ) -> None:
        wrong = np.flatnonzero(~np.isfinite(scores))
        if len(wrong):
            first = int(wrong[0])
            raise HarpError(
                f"model {self.model} gives {scores[first]} for {len(wrong)} of {len(scores)} pairs:"
                f" first for query {queries[first][:40]!r} and document {documents[first][:40]!r}:"
                " try dtype float32, or another checkpoint"
            )

    def __getstate__(self) -> dict[str, Any]:
        lazy = ("_weights", "_tokenizer", "_template", "_input_names", "_limit")
        return {name: value for name, value in self.__dict__.items() if name not in lazy}

    def __repr__(self) -> str:
        return f"Scorer({self.model!r}, dtype={self.dtype!r}, max_length={self.max_length})"


def _check_texts(queries: Sequence[str], documents: Sequence[str]) -> None:
    if len(queries) != len(documents):
        raise HarpError(
            f"{len(queries)} queries but {len(documents)} documents: pair them one by one"
        )
    for kind, texts in (("query", queries), ("document", documents)):
        for place, text in enumerate(texts):
            if not isinstance(text, str):
                raise HarpError(f"{kind} {place} is {text!r:.40}: a text must be a string")
