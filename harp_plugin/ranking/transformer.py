"""The reranker as a PyTerrier transformer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import pandas as pd
import pyterrier as pt

from ..errors import HarpError
from ..models.loading import trained_with
from ..options import Count, checked
from .base import ModelTransformer
from .combined import HarpEnsemble, HarpFeatures
from .frames import rerank_frame
from .options import ScorerSettings
from .rows import score_rows
from .scorer import Scorer
from .windows import DocumentWindows

__all__ = ["HarpReranker"]

_TOKENS_OF_A_PAIR = 512


@dataclass(eq=False, repr=False, kw_only=True)
class HarpReranker(ModelTransformer, ScorerSettings):
    """Rerank results by a cross-encoder: ``bm25 >> HarpReranker(path, dataset="irds:vaswani")``.

    It takes any Hugging Face sequence-classification checkpoint with one or two logits. The columns
    ``score`` and ``rank`` are replaced, and all others are kept. Equal scores keep the order of the
    first stage, and rows stay where they are, unless ``pt.model.STRICT_SORT`` is set. Weights are
    loaded when the first pair is scored. One reranker may be used from several threads.

    Two rerankers are equal if they give equal scores, so that an experiment with ``plan="tree"``
    runs them once. ``(a ** b).compile()`` tokenizes texts once where both have one tokenizer.

    Args:
        model: a folder, a hub name, or ``package:NAME``; or in memory, a ``CrossEncoder`` of
            sentence-transformers, or a model of transformers with its ``tokenizer``.
        tokenizer: of a model of transformers in memory.
        text_field: the column that holds a document's text, or several, joined by a space;
            ``text`` by default. With ``dataset``: fields of its documents; by default those that
            the model was trained on, or the text that the dataset recommends.
        dataset: where texts are looked up by ``docno``: an ir_datasets id such as
            ``irds:vaswani``, or a PyTerrier or ir_datasets dataset. By default they stand in the
            frame.
        passages: how a document that is longer than the model's input is scored. ``first``: by its
            beginning. ``max``, ``mean``: by the best or the mean of its windows' scores. ``top2``:
            by the mean of the two best. ``matching``: by its first words and the passage that
            shares most words with the query (`query_passage`), in one pair of texts. By default as
            in the training of a model of harp, and ``first`` for others.
        passage_length: tokens of a window; by default, and at most, what fits next to the query.
        passage_stride: tokens from one window's start to the next one's; by default half a window.
        device: such as ``cpu`` or ``cuda:1``; by default CUDA where there is one, else the CPU. Of
            several, each gets a process of its own.
        dtype: ``float32``, ``bfloat16``, ``float16`` or ``auto``; see `Scorer`. Also ``bf16`` and
            the like, or a type of torch.
        batch_tokens: how many tokens a batch may hold; found from the free memory by default.
        batch_size: so many of the longest pairs in place of ``batch_tokens``, as other rerankers
            have it.
        max_length: tokens of a pair; by default as many as in the training of a model of harp, and
            as many as others allow.
        verbose: show a progress bar.
        allow_untrained: score with random weights where the checkpoint has none.
        seed: draws those random weights.

    Raises:
        HarpError: an argument makes no sense. A missing or unfit model or dataset is an error only
            when it is read.
    """

    tokenizer: Any = None
    passages: str | None = None
    passage_length: int | None = None
    passage_stride: int | None = None
    batch_size: int | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checked("batch_size", Count | None, self.batch_size)
        self.check_settings()
        is_wrapped = hasattr(self.model, "tokenizer") and hasattr(self.model, "model")
        has_own = isinstance(self.model, str) or is_wrapped
        if self.tokenizer is not None and has_own:
            raise HarpError("the model has a tokenizer of its own: leave tokenizer out")
        if not isinstance(self.model, str):
            is_fit = self.tokenizer is not None or hasattr(self.model, "model")
            kind = "a CrossEncoder, or a model with its tokenizer"
            self._check_in_memory(is_fit, kind, ("device", "dtype"))
        _ = self.windows, self.texts  # so that wrong arguments are refused here

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and rank each row's document for its query.

        Args:
            inp: rows of ``qid``, ``query``, ``docno`` and, without a dataset, the text fields.

        Returns:
            The same rows in the same order with new ``score`` (float64) and ``rank`` (from 0).

        Raises:
            HarpError: a query or a text is not a string, or the dataset lacks a document; the
                message names its qid and docno.
        """
        self.validate(inp)
        return rerank_frame(inp, score_rows([self], inp)[:, 0])

    @classmethod
    def ensemble(
        cls,
        models: Sequence[str | PathLike[str] | HarpReranker],
        *,
        weights: Sequence[float] | None = None,
        score_normalization: str | None = None,
        **options: Any,
    ) -> HarpEnsemble:
        """Rerank by the weighted mean of several models' scores.

        Texts are read once, and tokenized once where tokenizers are equal.

        Args:
            models: as the first argument of `HarpReranker`, or rerankers.
            weights: one per model; equal ones by default.
            score_normalization: how each model's scores of a query are scaled before they are
                added: ``minmax`` (to 0 … 1), ``zscore`` (to mean 0 and standard deviation 1), or
                None.
            options: further arguments of each `HarpReranker`.

        Raises:
            HarpError: an argument makes no sense.
        """
        models = [models] if isinstance(models, str | PathLike) else list(models)
        if options and any(isinstance(model, HarpReranker) for model in models):
            raise HarpError(f"give {next(iter(options))} to each reranker in memory, not to all")
        rerankers = [
            model if isinstance(model, HarpReranker) else cls(model, **options) for model in models
        ]
        return HarpEnsemble(rerankers, weights=weights, score_normalization=score_normalization)

    def fuse_feature_union(self, other: pt.Transformer, is_left: bool) -> pt.Transformer | None:
        """Make one transformer of ``self ** other``; see `HarpFeatures.fuse_feature_union`."""
        if isinstance(other, HarpReranker):
            other = HarpFeatures([other])
        return HarpFeatures([self]).fuse_feature_union(other, is_left)

    def validate(self, inp: pd.DataFrame, context: pt.Transformer | None = None) -> None:
        """Check that a frame has the columns that are read.

        Raises:
            pyterrier.validate.InputValidationError: the frame lacks a column.
        """
        columns = ["query", *self.texts.columns]
        pt.validate.result_frame(inp, extra_columns=columns, context=context or self)

    @property
    def scorer(self) -> Scorer:
        """The scorer of the present attributes; the same object until an attribute is changed."""
        settings = self._settings
        key = self.model, self.tokenizer, *settings.values()
        return self._make_once("scorer", key, lambda: self._new_scorer(settings))

    def _new_scorer(self, settings: dict[str, Any]) -> Scorer:
        if isinstance(self.model, str):
            return Scorer(self.model, **settings)
        model, tokenizer = self.model, self.tokenizer
        options = {name: settings[name] for name in ("batch_tokens", "max_length")}
        if tokenizer is None:  # a CrossEncoder, which wraps both
            options["max_length"] = options["max_length"] or model.max_seq_length
            if getattr(model, "default_prompt_name", None):
                raise HarpError(
                    "the default prompt of the model is not read: write it into the queries"
                )
            model, tokenizer = model.model, model.tokenizer
        return Scorer.from_model(model, tokenizer, **options)

    @property
    def windows(self) -> DocumentWindows:
        """How long documents are cut, by the present attributes."""
        passages = self.passages or self._trained.get("passages", "first")
        return DocumentWindows(passages, self.passage_length, self.passage_stride)

    @property
    def _trained(self) -> dict[str, Any]:
        """How the model of harp read texts in its training; empty for another model."""
        if not isinstance(self.model, str):
            return {}
        return self._make_once("trained", self.model, lambda: _reading(trained_with(self.model)))

    @property
    def _settings(self) -> dict[str, Any]:
        tokens = self.batch_tokens
        if self.batch_size is not None and tokens is None:
            tokens = self.batch_size * (self.max_length or _TOKENS_OF_A_PAIR)
        max_length = self.max_length or self._trained.get("max_length")
        return {**self.scorer_settings, "batch_tokens": tokens, "max_length": max_length}

    @property
    def _fields(self) -> str | Sequence[str] | None:
        is_named = self.text_field is not None or self.dataset is None
        return self.text_field if is_named else self._trained.get("fields")

    def _comparison_key(self) -> tuple[Any, ...]:
        texts, settings = self.texts, self._settings.values()
        return self.model, self.tokenizer, texts.name, texts.fields, self.windows, *settings


def _reading(trained: Mapping[str, Any]) -> dict[str, Any]:
    """Return passages, max_length and fields from the options of a training."""
    reading = {name: trained[name] for name in ("passages", "max_length") if trained.get(name)}
    if "passage" in trained.get("document_fields", ()):
        reading["passages"] = "matching"
    if trained.get("fields"):
        reading["fields"] = tuple(trained["fields"])
    return reading
