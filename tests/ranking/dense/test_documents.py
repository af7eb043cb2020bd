"""The search in the vectors of documents, beside one that compares them one by one."""

import numpy as np
import pandas as pd
import pytest

from harp_plugin.ranking.dense import documents as module
from harp_plugin.ranking.dense.documents import DocumentVectors

COUNT = 30


@pytest.fixture
def drawn():
    """Documents of one to four vectors, with many equal scores, and the docno of each vector."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 5, COUNT)
    docnos = rng.permutation([f"d{number}" for number in range(COUNT)]).astype(object)
    vectors = rng.integers(-2, 3, (lengths.sum(), 3)).astype(np.float32)
    starts = np.cumsum([0, *lengths[:-1]])
    queries = rng.integers(-2, 3, (5, 3)).astype(np.float32)
    return DocumentVectors(vectors, starts, pd.Index(docnos)), queries, np.repeat(docnos, lengths)


@pytest.mark.parametrize("products_at_once", [1, 25, 2**24])
@pytest.mark.parametrize("count", [1, 7, COUNT, 1000])
def test_the_best_documents_are_found_in_blocks_of_any_size(
    drawn, products_at_once, count, monkeypatch
):
    documents, queries, of_vectors = drawn
    monkeypatch.setattr(module, "_PRODUCTS_AT_ONCE", products_at_once)
    monkeypatch.setattr(module, "_QUERIES_AT_ONCE", 2)
    found = documents.search(queries, count)
    assert len(found) == len(queries)
    for query, (docnos, scores) in zip(queries, found, strict=True):
        best = pd.Series(documents.vectors @ query).groupby(of_vectors).max()  # sorted by docno
        expected = best.sort_values(ascending=False, kind="stable")[:count]
        assert docnos.tolist() == expected.index.tolist()
        assert scores.tolist() == expected.tolist() and scores.dtype == np.float64


def test_each_result_has_the_score_of_its_best_vector(drawn):
    documents, queries, of_vectors = drawn
    query_of, document_of = np.divmod(np.arange(len(queries) * COUNT), COUNT)
    scores = documents.scores(queries, query_of, document_of).reshape(len(queries), COUNT)
    products = pd.DataFrame(documents.vectors @ queries.T).groupby(of_vectors).max()
    assert scores.tolist() == products.loc[documents.docnos].to_numpy().T.tolist()
    assert documents.scores(queries, np.zeros(0, int), np.zeros(0, int)).shape == (0,)


def test_a_vector_that_is_no_number_hides_no_other_document(drawn):
    documents, queries, of_vectors = drawn
    before = documents.search(queries, COUNT)
    documents.vectors[0] = np.nan
    after = documents.search(queries, COUNT)
    for (docnos, _), (changed, scores) in zip(before, after, strict=True):
        others = [docno for docno in docnos if docno != of_vectors[0]]
        assert changed.tolist() == [*others, of_vectors[0]] and scores[-1] == -np.inf


def test_no_queries_find_nothing(drawn):
    documents, queries, _ = drawn
    assert documents.search(queries[:0], 5) == []
