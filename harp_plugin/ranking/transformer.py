"""The reranker as a PyTerrier transformer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyterrier as pt

from ..errors import HarpError
from ..models.loading import model_fingerprint
from .cache import ScoreCache
from .frames import reranked
from .passages import Passages
from .rows import score_rows
from .scorer import Scorer
from .texts import DatasetTexts, FrameTexts, TextSource
from .versions import scoring_versions

if TYPE_CHECKING:
    from .combined import HarpEnsemble

SCORER_OPTIONS = (
    *("model", "device", "dtype", "batch_tokens", "max_length", "allow_untrained", "seed"),
)


class HarpReranker(pt.Transformer):
    """Rerank results by a cross-encoder: ``bm25 >> HarpReranker(path, dataset="irds:vaswani")``.

    Any Hugging Face sequence-classification checkpoint with one or two logits will do. Columns
    ``score`` and ``rank`` are replaced, all others kept. Equal scores keep the order of the first
    stage. Weights are loaded when the first pair is scored. One reranker may be used from several
    threads.

    Two rerankers are equal if they give equal scores, so that an experiment with ``plan="tree"``
    runs them once. ``(a ** b).compile()`` tokenises once where both have one tokenizer.

    Args:
        model: a folder, a hub name, or ``package:NAME``.
        text_field: the column that holds a document's text, or several, joined by a space;
            ``text`` by default. With ``dataset``: fields of its documents; by default the text that
            the dataset recommends.
        dataset: where texts are looked up by ``docno``: an ir_datasets id such as
            ``irds:vaswani``, or a PyTerrier or ir_datasets dataset. By default they stand in the
            frame.
        passages: how a document that is longer than the model's input is scored. ``first``: by its
            beginning. ``max``, ``mean``: by the best or the mean of its windows' scores. ``top2``:
            by the mean of the two best.
        passage_length: tokens of a window; by default, and at most, what fits beside the query.
        passage_stride: tokens from one window's start to the next one's; by default half a window.
        cache: a folder in which scores are kept across runs, by the model's files, the options, the
            query and the text (needs pyterrier-caching).
        device: such as ``cpu`` or ``cuda:1``; by default CUDA where there is one, else the CPU. Of
            several, each gets a process of its own.
        dtype: ``float32``, ``bfloat16``, ``float16``, or ``int8`` on a CPU; see `Scorer`.
        batch_tokens: how many tokens a batch may hold; found from the free memory by default.
        max_length: tokens of a pair; by default as many as the model allows.
        verbose: show a progress bar.
        allow_untrained: score with random weights where the checkpoint has none.
        seed: draws those random weights.

    Raises:
        HarpError: an argument has no sense. A missing or unfit model or dataset is told when it is
            read.
    """

    schematic = {"label": "HarpReranker", "help_url": None}  # noqa: RUF012

    def __init__(
        self,
        model: str | PathLike[str],
        *,
        text_field: str | Sequence[str] | None = None,
        dataset: Any = None,
        passages: str = "first",
        passage_length: int | None = None,
        passage_stride: int | None = None,
        cache: str | PathLike[str] | None = None,
        device: str | Sequence[str] | None = None,
        dtype: str = "float32",
        batch_tokens: int | None = None,
        max_length: int | None = None,
        verbose: bool = False,
        allow_untrained: bool = False,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.text_field = text_field if isinstance(text_field, str | None) else tuple(text_field)
        self.dataset = dataset
        self.passages = passages
        self.passage_length = passage_length
        self.passage_stride = passage_stride
        self.cache = cache
        self.device = device if isinstance(device, str | None) else tuple(device)
        self.dtype = dtype
        self.batch_tokens = batch_tokens
        self.max_length = max_length
        self.verbose = verbose
        self.allow_untrained = allow_untrained
        self.seed = seed
        if self.text_field is not None and not self.text_field:
            raise HarpError("text_field is empty: name the column that holds the text")
        self._kept: dict[str, tuple[Any, Any]] = {}
        self._lock = threading.RLock()
        _ = self.windows, self.texts, self.scorer  # refuse what has no sense at once

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and rank each row's document for its query.

        Args:
            inp: rows of ``qid``, ``query``, ``docno`` and, without a dataset, the text fields.

        Returns:
            The same rows in the same order with new ``score`` (float64) and ``rank`` (from 0).

        Raises:
            HarpError: a query or a text is no string, or the dataset lacks a document; the message
                names its qid and docno.
        """
        self.validate(inp)
        return reranked(inp, score_rows([self], inp)[:, 0])

    @classmethod
    def ensemble(
        cls,
        models: Sequence[str | PathLike[str] | HarpReranker],
        *,
        weights: Sequence[float] | None = None,
        normalisation: str | None = None,
        **options: Any,
    ) -> HarpEnsemble:
        """Rerank by the weighted mean of several models' scores.

        Texts are read once, and tokenised once where tokenizers are equal.

        Args:
            models: as the first argument of `HarpReranker`, or rerankers.
            weights: one per model; equal ones by default.
            normalisation: of each model's scores within each query before they are added:
                ``minmax`` (to 0 … 1), ``zscore`` (to mean 0 and standard deviation 1), or None.
            options: further arguments of each `HarpReranker`.

        Raises:
            HarpError: an argument has no sense.
        """
        from .combined import HarpEnsemble

        rerankers = [
            one if isinstance(one, HarpReranker) else cls(one, **options) for one in models
        ]
        return HarpEnsemble(rerankers, weights=weights, normalisation=normalisation)

    def fuse_feature_union(self, other: pt.Transformer, is_left: bool) -> pt.Transformer | None:
        """``self ** other`` as one transformer that reads and tokenises texts once."""
        from .combined import HarpFeatures

        return HarpFeatures([self]).fuse_feature_union(other, is_left)

    def validate(self, inp: pd.DataFrame, context: pt.Transformer | None = None) -> None:
        """Check that a frame has the columns that are read.

        Raises:
            pyterrier.validate.InputValidationError: it lacks one.
        """
        columns = ["query", *self.texts.columns]
        pt.validate.result_frame(inp, extra_columns=columns, context=context or self)

    @property
    def scorer(self) -> Scorer:
        """The scorer of the present attributes; the same object until one of them is changed."""
        options = self._scoring()
        return self._keep("scorer", options, lambda: Scorer(**dict(options)))

    @property
    def texts(self) -> TextSource:
        """Where texts come from, by the present attributes."""
        fields = (self.text_field,) if isinstance(self.text_field, str) else self.text_field
        if self.dataset is None:
            return FrameTexts(fields or ("text",))
        key = id(self.dataset), fields
        return self._keep("texts", key, lambda: DatasetTexts(self.dataset, fields))

    @property
    def windows(self) -> Passages:
        """How long documents are cut, by the present attributes."""
        return Passages(self.passages, self.passage_length, self.passage_stride)

    def score_cache(self) -> ScoreCache | None:
        """The cache of the present attributes and of the model's files as they were loaded."""
        if self.cache is None:
            return None
        with self._lock:
            scorer = self.scorer
            if not scorer.loaded:
                self._kept.pop("fingerprint", None)
            fingerprint = self._keep("fingerprint", scorer, lambda: model_fingerprint(scorer.model))
        settings = {
            "model": fingerprint,
            "scorer": [str(value) for value in scorer.settings[1:]],
            "passages": [self.windows.name, self.windows.length, self.windows.stride],
            "versions": scoring_versions(),
        }
        return ScoreCache(self.cache, settings)

    def _keep(self, name: str, key: Any, make: Callable[[], Any]) -> Any:
        """The object made under this key, made anew when the key is another."""
        with self._lock:
            if name not in self._kept or self._kept[name][0] != key:
                self._kept[name] = key, make()
            return self._kept[name][1]

    def _scoring(self) -> tuple[tuple[str, Any], ...]:
        return tuple((name, getattr(self, name)) for name in SCORER_OPTIONS)

    def _settings(self) -> tuple[Any, ...]:
        return (
            fspath(self.model),
            self.texts.name,
            self.texts.fields,
            self.windows,
            *(value for _, value in self._scoring()[1:]),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_lock": threading.RLock()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HarpReranker) and self._settings() == other._settings()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._settings()))

    def __repr__(self) -> str:
        defaults = {a.name: a.init_default_value for a in pt.inspect.transformer_attributes(self)}
        named = [
            f"{name}={getattr(self, name)!r}"
            for name, default in defaults.items()
            if name != "model" and getattr(self, name) != default
        ]
        return f"HarpReranker({', '.join([repr(fspath(self.model)), *named])})"
