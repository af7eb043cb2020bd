"""The reranker as a PyTerrier transformer."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from ..errors import HarpError
from .scorer import Scorer


class HarpReranker(pt.Transformer):
    """Rerank results by a cross-encoder: ``bm25 >> dataset.text_loader() >> HarpReranker(path)``.

    Any Hugging Face sequence-classification checkpoint with one or two logits will do. Columns
    ``score`` and ``rank`` are replaced, all others kept. Equal scores keep the order of the first
    stage. Weights are loaded when the first pair is scored.

    Args:
        model: a folder, a hub name, or ``package:NAME``.
        text_field: the column that holds a document's text, or several, joined by a space.
        device: such as ``cpu`` or ``cuda:1``; by default CUDA where there is one, else the CPU.
        dtype: of the weights: ``float32``, ``bfloat16`` or ``float16``.
        batch_tokens: how many tokens, padding included, a batch may hold.
        max_length: tokens of a pair; by default as many as the model allows.
        verbose: show a progress bar.
        allow_untrained: score with random weights where the checkpoint has none.
        seed: draws those random weights.
    """

    schematic = {"label": "HarpReranker", "help_url": None}  # noqa: RUF012

    def __init__(
        self,
        model: str | PathLike[str],
        *,
        text_field: str | Sequence[str] = "text",
        device: str | None = None,
        dtype: str = "float32",
        batch_tokens: int = 8192,
        max_length: int | None = None,
        verbose: bool = False,
        allow_untrained: bool = False,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.text_field = text_field if isinstance(text_field, str) else tuple(text_field)
        self.device = device
        self.dtype = dtype
        self.batch_tokens = batch_tokens
        self.max_length = max_length
        self.verbose = verbose
        self.allow_untrained = allow_untrained
        self.seed = seed
        if not self._fields:
            raise HarpError("text_field is empty: name the column that holds the text")
        self._scorer = self._settings(), self._build()

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and rank each row's document for its query.

        Args:
            inp: rows of ``qid``, ``query``, ``docno`` and the text fields.

        Returns:
            The same rows in the same order with new ``score`` (float64) and ``rank`` (from 0).

        Raises:
            HarpError: a query or a text is no string; the message names its qid and docno.
        """
        pt.validate.result_frame(inp, extra_columns=["query", *self._fields], context=self)
        columns = [_strings(inp, field) for field in self._fields]
        documents = [" ".join(parts) for parts in zip(*columns, strict=True)]
        scores = self.scorer.score(
            _strings(inp, "query"), documents, verbose=self.verbose, progress=pt.tqdm
        )
        result = inp.drop(columns=["score", "rank"], errors="ignore").reset_index(drop=True)
        result["score"] = scores.astype(np.float64)
        return pt.model.add_ranks(result.iloc[_first_stage_order(inp)].copy()).sort_index()

    @property
    def scorer(self) -> Scorer:
        """The scorer of the present attributes; the same object until one of them is changed."""
        if self._scorer[0] != self._settings():
            self._scorer = self._settings(), self._build()
        return self._scorer[1]

    @property
    def _fields(self) -> tuple[str, ...]:
        return (self.text_field,) if isinstance(self.text_field, str) else self.text_field

    def _build(self) -> Scorer:
        return Scorer(
            self.model,
            device=self.device,
            dtype=self.dtype,
            batch_tokens=self.batch_tokens,
            max_length=self.max_length,
            allow_untrained=self.allow_untrained,
            seed=self.seed,
        )

    def _settings(self) -> tuple[Any, ...]:
        return (
            str(self.model),
            self._fields,
            self.device,
            self.dtype,
            self.batch_tokens,
            self.max_length,
            self.allow_untrained,
            self.seed,
        )

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
        return f"HarpReranker({', '.join([repr(str(self.model)), *named])})"


def _strings(frame: pd.DataFrame, column: str) -> list[str]:
    texts = frame[column].tolist()
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            qid, docno = frame["qid"].iloc[row], frame["docno"].iloc[row]
            raise HarpError(
                f"no text in column {column!r} of qid {qid}, docno {docno}: it holds {text!r:.40};"
                " load texts with dataset.text_loader()"
            )
    return texts


def _first_stage_order(frame: pd.DataFrame) -> np.ndarray:
    if "rank" in frame.columns:
        return np.argsort(frame["rank"].to_numpy(), kind="stable")
    if "score" in frame.columns:
        return np.argsort(-frame["score"].to_numpy(), kind="stable")
    return np.arange(len(frame))
