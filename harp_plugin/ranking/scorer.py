"""Score text pairs with a cross-encoder."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from os import PathLike, fspath
from typing import Any, Protocol

import numpy as np
import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import HarpError
from ..models.devices import choose_device
from ..models.loading import load_tokenizer
from ..models.pairs import PackedPairs, PairEncoder, PairTemplate, tokenise
from .forward import Forward, one_at_a_time
from .loading import load_cross_encoder
from .options import check_scoring_options, default_of, names_of_part
from .pairs import distinct, distinct_pairs
from .tokens import LazyTokens, ahead, tokenizer_key
from .workers import Workers

UNLIMITED = 65536  # tokens of a pair, where neither model nor tokenizer sets a limit
SORTED_AT_ONCE = 16384
STREAMED_AT_ONCE = 65536
BATCHES_AHEAD = 4
MANY_TIES = 0.01

logger = logging.getLogger(__name__)


class _Texts(Protocol):
    """Token ids of texts, by their places."""

    def read(self, places: np.ndarray) -> list[np.ndarray]: ...


class Scorer:
    """A Hugging Face sequence-classification checkpoint that scores queries against documents.

    One logit is the score; of two logits, the score is the second less the first. Weights are
    loaded when the first pair is scored.

    A score does not depend on the pairs beside it, up to rounding: in float32 by less than 1e-5, in
    bfloat16 and int8 by less than 0.05 and in float16 by less than 0.01, for logits within ±10. The
    same pairs in the same order have the same scores to the bit. It may be called from several
    threads, which wait for each other.

    Args:
        model: a folder, a hub name, or ``package:NAME`` (see `resolve_model`).
        device: such as ``cpu`` or ``cuda:1``; by default CUDA where there is one, else the CPU. Of
            several, each gets a process of its own, such as ``["cuda:0", "cuda:1"]``.
        dtype: ``float32``, ``bfloat16``, ``float16``, or ``int8`` on a CPU: its linear layers
            rounded to 8 bits. The head is applied in float32 in any case. On a CPU that multiplies
            bfloat16 itself (AVX512-BF16, AMX), int8 is for feed-forward layers alone, the attention
            is in bfloat16; it is a little faster than bfloat16, which is truer. float16 is slow on
            most CPUs.
        batch_tokens: how many tokens a batch may hold; found from the free memory by default, and
            halved when memory runs out.
        max_length: tokens of a pair; by default as many as model and tokenizer allow.
        allow_untrained: score with random weights where the checkpoint has none, such as a
            language model without a classification head.
        seed: draws those random weights.

    Raises:
        HarpError: an option has no sense. A missing or unfit model is told at the first pair.
    """

    def __init__(
        self,
        model: str | PathLike[str],
        *,
        device: str | Sequence[str] | None = None,
        dtype: str = default_of("dtype"),
        batch_tokens: int | None = None,
        max_length: int | None = None,
        allow_untrained: bool = default_of("allow_untrained"),
        seed: int = default_of("seed"),
    ) -> None:
        # What max_length may be depends on the model, and is checked in `limit`.
        check_scoring_options({"dtype": dtype, "batch_tokens": batch_tokens, "seed": seed})
        self.model = fspath(model)
        self.device = device if device is None or isinstance(device, str) else tuple(device)
        if self.device is not None and not self.device:
            raise HarpError("device is empty: name one, such as cpu")
        self.dtype = dtype
        self.batch_tokens = batch_tokens
        self.max_length = max_length
        self.allow_untrained = allow_untrained
        self.seed = seed
        self._workers: Workers | None = None
        self._lock = threading.RLock()

    @classmethod
    def of(
        cls, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, **options: Any
    ) -> Scorer:
        """A scorer over a model in memory, such as one in training.

        The model is read where it lies, at each call: its device, its dtype and its present
        weights. It scores in evaluation mode, and is as it was afterwards.

        Args:
            model: gives one logit, or two.
            tokenizer: a fast one.
            options: `batch_tokens` and `max_length`, as above.
        """
        scorer = cls(model.name_or_path or type(model).__name__, **options)
        scorer._tokenizer = tokenizer
        scorer._forward = Forward(model, tokenizer, batch_tokens=scorer.batch_tokens)
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
        with self._lock:
            return self._score(queries, documents, progress, verbose)

    def _score(
        self,
        queries: Sequence[str],
        documents: Sequence[str],
        progress: Callable[..., Any],
        verbose: bool,
    ) -> np.ndarray:
        of_query, some_queries = distinct(queries)
        of_document, some_documents = distinct(documents)
        pairs, inverse = distinct_pairs(np.stack([of_query, of_document], axis=1))
        if not len(pairs):
            return np.zeros(0, dtype=np.float32)
        uses = np.bincount(pairs[:, 0]), np.bincount(pairs[:, 1])
        sides = (
            LazyTokens(some_queries, uses[0], self._tokenizer, self.limit),
            LazyTokens(some_documents, uses[1], self._tokenizer, self.limit),
        )

        def named(place: int) -> tuple[str, str]:
            query, document = pairs[place]
            return some_queries[query], some_documents[document]

        return self._scores(*sides, pairs, named, progress, verbose)[inverse]

    def score_stream(
        self, pairs: Iterable[tuple[str, str]], *, at_once: int = STREAMED_AT_ONCE
    ) -> Iterator[np.ndarray]:
        """Score (query, document) pairs of any number, a part in memory at a time.

        Args:
            pairs: read as they are needed.
            at_once: pairs of a part.

        Yields:
            (at_once,) float32 scores of each part, in the order given; the last may be shorter.

        Raises:
            HarpError: as `score` does.
        """
        source = iter(pairs)
        while part := list(islice(source, at_once)):
            yield self.score(*zip(*part, strict=True))

    def tokenise(self, texts: Sequence[str], *, max_length: int | None = None) -> list[np.ndarray]:
        """The token ids of each text, (length,) int32, without special tokens.

        Args:
            texts: n texts.
            max_length: tokens of a text, which is cut there; by default whole texts.
        """
        with self._lock:
            return list(tokenise(texts, self._tokenizer, max_length))

    def score_tokens(
        self,
        queries: Sequence[np.ndarray],
        documents: Sequence[np.ndarray],
        pairs: np.ndarray,
        *,
        verbose: bool = False,
        progress: Callable[..., Any] = tqdm,
    ) -> np.ndarray:
        """Score texts that are tokenised already, cut to the limit as `score` cuts them.

        Args:
            queries: texts as `tokenise` gives them.
            documents: the same, or parts (views) of them.
            pairs: (n, 2) int64 places of query and document.
            verbose: show a progress bar, counted in pairs.
            progress: the class of that bar.

        Returns:
            (n,) float32 scores in the order given.

        Raises:
            HarpError: the model cannot be loaded, or it gives a score that is not a number.
        """
        if not len(pairs):
            return np.zeros(0, dtype=np.float32)
        some, inverse = distinct_pairs(pairs)

        def named(place: int) -> tuple[str, str]:
            query, document = some[place]
            decode = self._tokenizer.decode
            return str(decode(queries[query][:40])), str(decode(documents[document][:40]))

        sides = _Given(queries), _Given(documents)
        with self._lock:
            return self._scores(*sides, some, named, progress, verbose)[inverse]

    @cached_property
    def template(self) -> PairTemplate:
        """The special tokens around a pair."""
        with self._lock:
            return PairTemplate.of(self._tokenizer)

    @cached_property
    def limit(self) -> int:
        """Tokens of a pair, special ones included."""
        with self._lock:
            limits = [self._tokenizer.model_max_length, self._runner.longest, UNLIMITED]
        longest = min(limit for limit in limits if limit is not None)
        if self.max_length is None:
            return longest
        shortest = self.template.length + 2
        if not shortest <= self.max_length <= longest:
            raise HarpError(
                f"max_length is {self.max_length}: {self.model} takes {shortest} to {longest}"
            )
        return self.max_length

    def room_beside(self, query_tokens: int) -> int:
        """Return how many tokens of a long document fit beside a query of so many tokens."""
        return self._encoder.room_beside(query_tokens)

    @cached_property
    def _encoder(self) -> PairEncoder:
        with self._lock:
            return PairEncoder(self._tokenizer, self.limit)

    @cached_property
    def tokenizer_key(self) -> str:
        """Equal for two scorers whose tokenizers give equal ids."""
        with self._lock:
            return tokenizer_key(self._tokenizer)

    @property
    def loaded(self) -> bool:
        """Whether the weights are in memory."""
        return "_forward" in vars(self) or self._workers is not None

    @property
    def settings(self) -> tuple[Any, ...]:
        """All options that can change a score."""
        names = names_of_part("scorer", only_if_changes_scores=True)
        return (self.model, *(getattr(self, name) for name in names))

    def close(self) -> None:
        """End the processes of several devices; they start anew when they are needed."""
        with self._lock:
            if self._workers:
                self._workers.close()
                self._workers = None

    def _scores(
        self,
        queries: _Texts,
        documents: _Texts,
        pairs: np.ndarray,
        named: Callable[[int], tuple[str, str]],
        progress: Callable[..., Any],
        verbose: bool,
    ) -> np.ndarray:
        """Scores of distinct pairs; ``named`` gives the texts of one of them for a message."""
        runner = self._runner
        _ = self._encoder  # so that the thread ahead need not wait for this one
        scores = np.empty(len(pairs), dtype=np.float32)
        with (
            closing(self._batches(queries, documents, pairs, runner)) as source,
            closing(ahead(source, BATCHES_AHEAD)) as batches,
            closing(runner.run(batches)) as results,
            progress(total=len(pairs), desc="score", unit="pair", disable=not verbose) as bar,
        ):
            for places, found in results:
                scores[places] = found
                bar.update(len(places))
        self._check(scores, named)
        self._tell_ties(scores, pairs[:, 0])
        return scores

    def _batches(
        self, queries: _Texts, documents: _Texts, pairs: np.ndarray, runner: Forward | Workers
    ) -> Generator[tuple[np.ndarray, PackedPairs], None, None]:
        for start in range(0, len(pairs), SORTED_AT_ONCE):
            of_query, of_document = pairs[start : start + SORTED_AT_ONCE].T
            part = self._encoder.pairs(queries.read(of_query), documents.read(of_document))
            for places in part.batches(runner.batch_tokens):
                yield start + places, part.packed(places)

    @property
    def _runner(self) -> Forward | Workers:
        if self.device is None or isinstance(self.device, str):
            return self._forward
        if self._workers is None or not self._workers.alive:
            self._workers = Workers(_Loading(**self._loading), self.device)
        return self._workers

    @cached_property
    def _forward(self) -> Forward:
        assert self.device is None or isinstance(self.device, str)
        return _Loading(**self._loading)(self.device, self._tokenizer)

    @property
    def _loading(self) -> dict[str, Any]:
        names = ("model", "dtype", "batch_tokens", "allow_untrained", "seed")
        return {name: getattr(self, name) for name in names}

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        return load_tokenizer(self.model)

    def _check(self, scores: np.ndarray, named: Callable[[int], tuple[str, str]]) -> None:
        wrong = np.flatnonzero(~np.isfinite(scores))
        if len(wrong):
            query, document = named(int(wrong[0]))
            raise HarpError(
                f"model {self.model} gives {scores[wrong[0]]} for {len(wrong)} of {len(scores)}"
                f" pairs: first for query {query[:40]!r} and document {document[:40]!r}:"
                " try dtype float32, or another checkpoint"
            )

    def _tell_ties(self, scores: np.ndarray, queries: np.ndarray) -> None:
        order = np.lexsort((scores, queries))
        equal = (np.diff(scores[order]) == 0) & (np.diff(queries[order]) == 0)
        ties = int(equal.sum())
        if self.dtype != "float32" and ties > MANY_TIES * len(scores):
            logger.warning(
                "%d of %d pairs have the score of another of their query in %s: the first stage"
                " breaks such ties; float32 makes fewer",
                *(ties, len(scores), self.dtype),
            )

    def __getstate__(self) -> dict[str, Any]:
        lazy = ("_forward", "_tokenizer", "_encoder", "tokenizer_key", "template", "limit")
        state = {name: value for name, value in self.__dict__.items() if name not in lazy}
        return {**state, "_workers": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_lock": threading.RLock()})

    def __repr__(self) -> str:
        return f"Scorer({self.model!r}, dtype={self.dtype!r}, max_length={self.max_length})"


@dataclass(frozen=True)
class _Loading:
    """How a checkpoint is loaded, here or in another process."""

    model: str
    dtype: str
    batch_tokens: int | None
    allow_untrained: bool
    seed: int

    def __call__(
        self, device: str | None, tokenizer: PreTrainedTokenizerBase | None = None
    ) -> Forward:
        chosen = choose_device(device)
        with one_at_a_time(chosen):
            model = load_cross_encoder(
                self.model,
                device=chosen,
                dtype=self.dtype,
                allow_untrained=self.allow_untrained,
                seed=self.seed,
            )
            tokenizer = tokenizer or load_tokenizer(self.model)
            exact = model.dtype != torch.float32
            return Forward(model, tokenizer, batch_tokens=self.batch_tokens, exact_head=exact)


@dataclass(frozen=True)
class _Given:
    """Token ids that are in memory."""

    ids: Sequence[np.ndarray]

    def read(self, places: np.ndarray) -> list[np.ndarray]:
        return [self.ids[place] for place in places.tolist()]


def _check_texts(queries: Sequence[str], documents: Sequence[str]) -> None:
    if len(queries) != len(documents):
        raise HarpError(
            f"{len(queries)} queries but {len(documents)} documents: pair them one by one"
        )
    for kind, texts in (("query", queries), ("document", documents)):
        for place, text in enumerate(texts):
            if not isinstance(text, str):
                raise HarpError(f"{kind} {place} is {text!r:.40}: a text must be a string")
