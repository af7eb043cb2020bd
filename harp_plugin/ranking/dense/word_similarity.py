"""How close the words of documents are to those of a query, by the word embeddings of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
from transformers import AutoModel, PreTrainedTokenizerBase

from ...models.loading import load_pretrained, load_tokenizer, without_notices
from ...models.tokenizing import tokenize
from ...options import Count, checked
from ..base import ModelTransformer
from ..frames import rerank_frame
from ..texts import column_texts
from ..tokens import distinct
from .documents import DECIMALS

__all__ = ["WordSimilarity"]

_TEXTS_AT_ONCE = 1024
"""Documents whose texts are in memory at once; of the others there are the tokens alone."""


@dataclass(eq=False, repr=False, kw_only=True)
class WordSimilarity(ModelTransformer):
    """Rerank by the words closest to those of a query: ``WordSimilarity(model, dataset="irds:x")``.

    The score is the mean, over the tokens of the query, of the greatest cosine with a token of the
    document (MaxSim of ColBERT; Khattab and Zaharia, SIGIR 2020). The vectors of tokens are the
    input embeddings of the model, no layer of which is run, and nothing is stored. 50 long
    documents take 40 ms on a CPU, nearly all of it to tokenize them. It is meant as a feature of a
    learned ranking.

    Args:
        model: a folder, a hub name, or ``package:NAME``.
        text_field: as in `HarpReranker`.
        dataset: where texts are looked up, as in `HarpReranker`.
        max_length: most tokens of a query or of a document. Longer documents are cut.

    Raises:
        HarpError: an argument makes no sense. A missing or unfit model or dataset is an error only
            when it is read.
    """

    max_length: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        checked("model", str, self.model)
        checked("max_length", Count, self.max_length)
        _ = self.texts  # so that wrong arguments are refused here

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rerank results.

        Args:
            inp: results with ``query`` and, without a dataset, the text fields.

        Returns:
            The rows with new ``score`` (float64, from -1 to 1) and ``rank`` (from 0). A document or
            a query without a word has the score 0.

        Raises:
            HarpError: a query or a text is not a string, or the dataset lacks a document.
        """
        pt.validate.result_frame(inp, extra_columns=["query", *self.texts.columns], context=self)
        return rerank_frame(inp, self._score(inp) if len(inp) else np.zeros(0))

    def _score(self, frame: pd.DataFrame) -> np.ndarray:
        """(rows,) the score of each row."""
        tokenizer, vectors = self._make_once("words", self.model, self._load)
        query_of, queries = distinct(column_texts(frame, "query"))
        document_of, keys = self.texts.documents(frame)
        query_ids = [*tokenize(queries, tokenizer, self.max_length)]
        document_ids = list[np.ndarray]()
        for start in range(0, len(keys), _TEXTS_AT_ONCE):
            texts = self.texts.read(keys[start : start + _TEXTS_AT_ONCE], frame)
            document_ids += tokenize(texts, tokenizer, self.max_length)
        scores = np.empty(len(frame))
        order = np.argsort(query_of, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(query_of[order])) + 1):
            found = [document_ids[number] for number in document_of[rows]]
            scores[rows] = _closest(query_ids[query_of[rows[0]]], found, vectors)
        return scores

    def _load(self) -> tuple[PreTrainedTokenizerBase, np.ndarray]:
        """Load the tokenizer and (tokens, dimensions) vectors of length 1."""
        with without_notices():
            embeddings = load_pretrained(AutoModel, self.model).get_input_embeddings()
        vectors = embeddings.weight.detach().float().numpy()
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return load_tokenizer(self.model), vectors / np.maximum(lengths, np.finfo(np.float32).tiny)

    def _comparison_key(self) -> tuple[Any, ...]:
        return self.model, self.texts.name, self.texts.fields, self.max_length


def _closest(query: np.ndarray, documents: Sequence[np.ndarray], vectors: np.ndarray) -> np.ndarray:
    """(documents,) the mean over a query's tokens of the greatest cosine with one of a document."""
    lengths = np.array([len(ids) for ids in documents])
    scores = np.zeros(len(documents))
    if len(query) and lengths.any():
        tokens, places = np.unique(np.concatenate(documents), return_inverse=True)
        cosines = vectors[query] @ vectors[tokens].T
        starts = (np.cumsum(lengths) - lengths)[lengths > 0]
        greatest = np.maximum.reduceat(cosines[:, places], starts, axis=1)
        scores[lengths > 0] = greatest.mean(axis=0, dtype=np.float64).round(DECIMALS)
    return scores
