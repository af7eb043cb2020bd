"""Score pairs of texts with a cross-encoder."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike, fspath
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import HarpError
from ..models.loading import choose_device, load_tokenizer
from ..models.pairs import PairEncoder, PairTemplate, TokenPairs
from ..models.tokenizing import tokenize
from ..work.thread_lock import thread_lock
from .batches import scoring_lock
from .forward import Forward
from .loading import check_logits, load_cross_encoder
from .options import ScorerSettings, chosen_dtype
from .sharing import Shareable
from .tokens import LazyTokens, distinct, distinct_pairs, prefetch, tokenizer_key
from .workers import Workers

__all__ = ["Scorer"]

_LONGEST_PAIR = 65536
"""Most tokens of a pair if neither model nor tokenizer sets a limit."""
_SORTED_PAIRS = 16384
_FIRST_PAIRS = 1024
"""Pairs that are tokenized before a GPU begins; each later block has twice as many."""
_PREFETCHED_BATCHES = 4


_ReadTokens = Callable[[np.ndarray], list[np.ndarray]]
"""Returns the token ids of the texts at these indices."""


@dataclass(eq=False, repr=False)
class Scorer(Shareable, ScorerSettings):
    """Scores queries against documents with a Hugging Face sequence-classification checkpoint.

    If the model has one logit, this logit is the score. If it has two, the score is the logit of
    the relevant label (see `relevant_label`) minus the other. Weights are loaded when the first
    pair is scored.

    A score does not depend on the other pairs, except for rounding: in float32 it differs by less
    than 1e-5, in bfloat16 by less than 0.05 and in float16 by less than 0.01, for logits
    within ±10. The same pairs in the same order have exactly the same scores. Several threads may
    call a scorer; they wait for each other.

    Args:
        model: a folder, a hub name, or ``package:NAME`` (see `resolve_model`).
        device: a device such as ``cpu`` or ``cuda:1``, or several such as ``["cuda:0", "cuda:1"]``,
            each with a process of its own. Default: CUDA if there is a GPU, else the CPU.
        dtype: ``float32``, ``bfloat16`` or ``float16``, which is slow on most CPUs; ``auto`` is
            bfloat16 on a GPU that has it, else float32. The head is always applied in float32.
        batch_tokens: most tokens of a batch. Default: as many as free memory allows. It is halved
            when memory runs out.
        max_length: most tokens of a pair. Default: as many as model and tokenizer allow.
        allow_untrained: whether weights that the checkpoint lacks are drawn at random, such as the
            classification head of a language model.
        seed: seed of these random weights.

    Raises:
        HarpError: an option makes no sense. An error of the model is raised at the first pair.
    """

    model: str | PathLike[str]

    def __post_init__(self) -> None:
        self.check_settings()  # what max_length may be depends on the model: see `limit`
        self.model = fspath(self.model)
        self._workers: Workers | None = None
        self._in_memory: tuple[PreTrainedModel, PreTrainedTokenizerBase] | None = None
        self._lock = thread_lock()

    @classmethod
    def from_model(
        cls, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, **options: Any
    ) -> Scorer:
        """Make a scorer from a model in memory, such as a model in training.

        The model is not copied: each call uses its present device, dtype and weights. It scores in
        evaluation mode, and afterwards it has the mode that it had before. A pickled scorer holds
        the weights.

        Args:
            model: a model with one logit or two.
            tokenizer: a fast tokenizer.
            options: ``batch_tokens`` and ``max_length``, as for `Scorer`.

        Raises:
            HarpError: the model is no cross-encoder, or an option makes no sense.
        """
        scorer = cls(model.name_or_path or type(model).__name__, **options)
        check_logits(model, str(scorer.model))
        scorer._in_memory = model, tokenizer
        return scorer

    def score(
        self,
        queries: Sequence[str],
        documents: Sequence[str],
        *,
        verbose: bool = False,
        progress: Callable[..., Any] = tqdm,
    ) -> np.ndarray:
        """Score ``queries[i]`` against ``documents[i]``.

        Each distinct text is tokenized once and each distinct pair is scored once, so equal pairs
        have equal scores.

        Args:
            queries: n texts.
            documents: n texts.
            verbose: whether a progress bar counts the pairs.
            progress: the class of that bar.

        Returns:
            Scores in the order of the pairs, float32, (n,); higher is more relevant.

        Raises:
            HarpError: there are not as many queries as documents, a text is not a string, the model
                cannot be loaded, or a score is not a finite number.
        """
        _check_texts(queries, documents)
        query_indices, distinct_queries = distinct(queries)
        document_indices, distinct_documents = distinct(documents)
        pairs, inverse = distinct_pairs(np.stack([query_indices, document_indices], axis=1))
        if not len(pairs):
            return np.zeros(0, dtype=np.float32)
        bar = partial(progress, disable=not verbose)
        with self._lock:
            lazy = partial(LazyTokens, tokenizer=self._tokenizer, max_length=self.limit)
            read_queries = lazy(distinct_queries, np.bincount(pairs[:, 0])).read
            read_documents = lazy(distinct_documents, np.bincount(pairs[:, 1])).read
            return self._scores(pairs, bar, read_queries, read_documents)[inverse]

    def tokenize(self, texts: Sequence[str], *, max_length: int | None = None) -> list[np.ndarray]:
        """Return the token ids of each text, (length,) int32, without special tokens.

        Args:
            texts: n texts.
            max_length: most tokens of a text; longer texts are cut. None cuts no text.
        """
        with self._lock:
            return list(tokenize(texts, self._tokenizer, max_length))

    def score_tokens(
        self,
        queries: Sequence[np.ndarray],
        documents: Sequence[np.ndarray],
        pairs: np.ndarray,
        *,
        verbose: bool = False,
        progress: Callable[..., Any] = tqdm,
    ) -> np.ndarray:
        """Score texts that are already tokenized; pairs are cut as `score` cuts them.

        Args:
            queries: token ids of texts, as `tokenize` returns them.
            documents: token ids of texts or of parts of texts.
            pairs: indices of query and document, (n, 2) int64.
            verbose: whether a progress bar counts the pairs.
            progress: the class of that bar.

        Returns:
            Scores in the order of the pairs, float32, (n,).

        Raises:
            HarpError: the model cannot be loaded, or a score is not a finite number.
        """
        if not len(pairs):
            return np.zeros(0, dtype=np.float32)
        scored, inverse = distinct_pairs(pairs)

        def read(ids: Sequence[np.ndarray], indices: np.ndarray) -> list[np.ndarray]:
            return [ids[index] for index in indices.tolist()]

        bar = partial(progress, disable=not verbose)
        with self._lock:
            return self._scores(scored, bar, partial(read, queries), partial(read, documents))[
                inverse
            ]

    @cached_property
    def limit(self) -> int:
        """The most tokens of a pair, special tokens included."""
        with self._lock:
            limits = [self._tokenizer.model_max_length, self._runner.max_length, _LONGEST_PAIR]
        longest = min(limit for limit in limits if limit is not None)
        if self.max_length is None:
            return longest
        shortest = PairTemplate.from_tokenizer(self._tokenizer).length + 2
        if not shortest <= self.max_length <= longest:
            raise HarpError(
                f"max_length is {self.max_length}: {self.model} takes {shortest} to {longest}"
            )
        return self.max_length

    @cached_property
    def encoder(self) -> PairEncoder:
        """Makes the token ids of pairs."""
        with self._lock:
            return PairEncoder(self._tokenizer, self.limit)

    @cached_property
    def tokenizer_key(self) -> str:
        """A key that is equal for scorers whose tokenizers make equal token ids."""
        with self._lock:
            return tokenizer_key(self._tokenizer)

    def close(self) -> None:
        """End the processes of several devices; they start again when they are needed."""
        with self._lock:
            if self._workers:
                self._workers.close()
                self._workers = None

    def _scores(
        self, pairs: np.ndarray, progress: Callable[..., Any], *sides: _ReadTokens
    ) -> np.ndarray:
        """Score distinct pairs; ``sides`` read the token ids of queries and of documents."""
        runner = self._runner
        _ = self.encoder  # so that the prefetching thread need not wait for this thread
        scores = np.empty(len(pairs), dtype=np.float32)
        on_gpu = self._is_on_gpu
        with (
            closing(self._blocks(pairs, *sides, first=_FIRST_PAIRS if on_gpu else None)) as read,
            closing(prefetch(read, 2) if on_gpu else read) as blocks,
            closing(
                (start + indices, part.packed(indices))
                for start, part in blocks
                for indices in part.batches(runner.batch_tokens)
            ) as source,
            closing(prefetch(source, _PREFETCHED_BATCHES)) as batches,
            closing(runner.run(batches)) as results,
            progress(total=len(pairs), desc="score", unit="pair") as bar,
        ):
            for indices, batch_scores in results:
                scores[indices] = batch_scores
                bar.update(len(indices))
        wrong = np.flatnonzero(~np.isfinite(scores))
        if len(wrong):
            first = pairs[wrong[:1]].T
            self._refuse(scores, wrong, *(read(n) for read, n in zip(sides, first, strict=True)))
        return scores

    def _blocks(
        self, pairs: np.ndarray, *sides: _ReadTokens, first: int | None
    ) -> Generator[tuple[int, TokenPairs], None, None]:
        """Yield tokenized pairs, and the index of the first of them.

        Args:
            pairs: indices of query and document, (n, 2).
            sides: read the token ids of queries and of documents.
            first: pairs of the first block; None for as many as each block has at most.
        """
        start, size = 0, first or _SORTED_PAIRS
        while start < len(pairs):
            columns = pairs[start : start + size].T
            queries, documents = (read(n) for read, n in zip(sides, columns, strict=True))
            yield start, self.encoder.pairs(queries, documents)
            start, size = start + size, min(2 * size, _SORTED_PAIRS)

    @property
    def _is_on_gpu(self) -> bool:
        if isinstance(self.device, str | None):
            return self._forward.model.device.type == "cuda"
        return self.device[0].startswith("cuda")

    @property
    def _runner(self) -> Forward | Workers:
        if self.device is None or isinstance(self.device, str):
            return self._forward
        if self._workers is None or not self._workers.alive:
            self._workers = Workers(self._loader, self.device)
        return self._workers

    @cached_property
    def _forward(self) -> Forward:
        assert self.device is None or isinstance(self.device, str)
        if self._in_memory:
            return Forward(*self._in_memory, batch_tokens=self.batch_tokens)
        return self._loader(self.device, self._tokenizer)

    @property
    def _loader(self) -> Callable[..., Forward]:
        """Loads the model in this process or in another one, on the device that it gets."""
        return partial(_load, fspath(self.model), self.scorer_settings)

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        return self._in_memory[1] if self._in_memory else load_tokenizer(fspath(self.model))

    def _refuse(self, scores: np.ndarray, wrong: np.ndarray, *first: list[np.ndarray]) -> None:
        """Refuse scores that are no finite numbers; ``first`` has token ids of the first pair."""
        query, document = (str(self._tokenizer.decode(ids[:40]))[:40] for [ids] in first)
        raise HarpError(
            f"model {self.model} gives {scores[wrong[0]]} for {len(wrong)} of {len(scores)}"
            f" pairs: first for query {query!r} and document {document!r}:"
            " try dtype float32, or another checkpoint"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_workers": None}

    def __repr__(self) -> str:
        return f"Scorer({self.model!r}, dtype={self.dtype!r}, max_length={self.max_length})"


def _load(name: str, options: dict[str, Any], device: str | None, tokenizer: Any = None) -> Forward:
    chosen = choose_device(device)
    with scoring_lock(chosen):
        dtype = chosen_dtype(options["dtype"], device)
        drawn = {each: options[each] for each in ("allow_untrained", "seed")}
        model = load_cross_encoder(name, device=chosen, dtype=dtype, **drawn)
        tokenizer = tokenizer or load_tokenizer(name)
        exact = model.dtype != torch.float32
        return Forward(model, tokenizer, batch_tokens=options["batch_tokens"], exact_head=exact)


def _check_texts(queries: Sequence[str], documents: Sequence[str]) -> None:
    if len(queries) != len(documents):
        raise HarpError(
            f"{len(queries)} queries but {len(documents)} documents: pair them one by one"
        )
    for kind, texts in (("query", queries), ("document", documents)):
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                raise HarpError(f"{kind} {index} is {text!r:.40}: a text must be a string")
