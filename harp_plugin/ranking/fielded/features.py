"""Lexical features of results: how the words of a query match each field of a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from ...errors import HarpError
from ..base import ComparedTransformer
from ..terms import content_terms
from ..texts import column_texts
from .bm25 import term_weight
from .index import FieldedIndex, Postings

__all__ = ["LexicalFeatures"]

_OF_FIELD = ("idf covered", "terms covered", "density", "log counts", "bigrams", "first position")
"""Features of each field."""
_OF_DOCUMENT = ("idf covered", "terms covered")
"""Features of all fields together."""
_FAR = 200
"""Words after which a first position makes no difference."""


@dataclass(eq=False, repr=False)
class LexicalFeatures(ComparedTransformer):
    """Add features of how a query's words match: ``first_stage >> LexicalFeatures(index)``.

    A query's words are its stemmed words without stop words. The features of each field are: the
    fraction of the query's words, weighed by idf or not, that the field has; the fraction of the
    field's words that are the query's; the mean of log(1 + count) over the query's words; the
    fraction of the pairs of neighbors of the query that are neighbors in the field; and where the
    first word of the query stands (0 for the beginning, 1 from word 200 on, or for none). Those of
    the document are the two fractions for all fields together. None is of the document alone: by
    its length, trees would know the relevant documents of the queries that they learn from.

    Args:
        index: of the documents; it is built when it is first read.
        fields: those of the index that have features; all by default.
        verbose: show a progress bar.

    Raises:
        HarpError: the index lacks a field.
    """

    index: FieldedIndex
    _: KW_ONLY
    fields: Sequence[str] | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        unknown = [name for name in self.fields or () if name not in self.index.fields]
        if unknown:
            known = ", ".join(self.index.fields)
            raise HarpError(f"the index has no field {unknown[0]!r}: choose of {known}")

    @property
    def names(self) -> list[str]:
        """The names of the features, in order."""
        return [f"{f}: {name}" for f in self._fields for name in _OF_FIELD] + [*_OF_DOCUMENT]

    @property
    def _fields(self) -> Sequence[str]:
        return self.index.fields if self.fields is None else self.fields

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the column ``features``.

        Args:
            inp: results, with ``qid``, ``query`` and ``docno``.

        Returns:
            The rows, each with (features,) float64 in the order of `names`.

        Raises:
            HarpError: a query or a docno is not a string, or the index lacks a document.
        """
        pt.validate.result_frame(inp, extra_columns=["query"], context=self)
        features = np.zeros((len(inp), len(self.names)))
        fields = np.array([self.index.fields.index(name) for name in self._fields])
        queries, docnos = (np.array(column_texts(inp, c), object) for c in ("query", "docno"))
        groups = inp.reset_index(drop=True).groupby(["qid", "query"], sort=False).indices.values()
        for rows in pt.tqdm(groups, desc="LexicalFeatures", unit="query", disable=not self.verbose):
            postings = self.index.postings
            documents = postings.documents(docnos[rows])
            features[rows] = _features(queries[rows[0]], documents, postings, fields)
        return inp.assign(features=pd.Series(list(features), inp.index, dtype=object))

    def _comparison_key(self) -> Any:
        return self.index, tuple(self._fields)


def _features(
    query: str, documents: np.ndarray, postings: Postings, fields: np.ndarray
) -> np.ndarray:
    """(documents, features) those of one query and of some fields, by their numbers."""
    words = content_terms(query)
    distinct = list(dict.fromkeys(words)) or [""]
    shape = len(documents), len(fields)
    texts = (documents[:, None] * postings.fields + fields).ravel()
    text, word, position = _matches(postings, texts, distinct)
    cells = np.bincount(text * len(distinct) + word, minlength=len(texts) * len(distinct))
    counts = cells.reshape(*shape, len(distinct)).astype(np.float64)
    idf = np.array([term_weight(len(postings.docnos), postings.frequency(w)) for w in distinct])
    pairs = {(distinct.index(first), distinct.index(second)) for first, second in pairwise(words)}
    follows = (np.diff(position) == 1) & (np.diff(text) == 0)
    bigrams = np.zeros(len(texts))
    for first, second in pairs:
        match = follows & (word[:-1] == first) & (word[1:] == second)
        bigrams[np.unique(text[:-1][match])] += 1
    first_position = np.full(len(texts), _FAR)
    np.minimum.at(first_position, text, position)
    lengths = postings.lengths[np.ix_(fields, documents)].T
    of_fields = [
        *_covered(counts, idf),
        counts.sum(axis=2) / np.maximum(lengths, 1),
        np.log1p(counts).sum(axis=2) / max(len(distinct), 1),
        bigrams.reshape(shape) / max(len(pairs), 1),
        first_position.reshape(shape) / _FAR,
    ]
    of_document = _covered(counts.sum(axis=1), idf)
    return np.column_stack([np.stack(of_fields, axis=2).reshape(len(documents), -1), *of_document])


def _matches(
    postings: Postings, texts: np.ndarray, words: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find words in the texts of these numbers: of each match the text, the word, the position."""
    starts = postings.ends[texts]
    lengths = postings.ends[texts + 1] - starts
    text = np.repeat(np.arange(len(texts)), lengths)
    position = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    sequence = postings.sequences[starts[text] + position]
    numbers = np.array([postings.number(word) for word in words])
    order = np.argsort(numbers)
    nearest = order[np.searchsorted(numbers[order], sequence).clip(max=len(order) - 1)]
    matching = np.flatnonzero(numbers[nearest] == sequence)
    return text[matching], nearest[matching], position[matching]


def _covered(counts: np.ndarray, idf: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The fractions of the query's words that are there, weighed by idf and not."""
    present = counts > 0
    return present @ idf / max(idf.sum(), 1e-9), present.sum(axis=-1) / max(len(idf), 1)
