"""Lexical features: by a loop over the words of each text, and in a pipeline that learns."""

import itertools
import math

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from sklearn.tree import DecisionTreeRegressor

from harp_plugin.errors import HarpError
from harp_plugin.ranking.fielded import FieldedIndex, LexicalFeatures
from harp_plugin.ranking.fusion import StageBefore
from harp_plugin.ranking.terms import content_terms, terms

PAGES = {
    "c": ("Apple", "pear pear plum", "apple apple"),
    "a": ("Pear tree", "an apple is no pear", ""),
    "b": ("Plum", " ".join(["filler"] * 250 + ["plum cake with plum cake"]), "cake"),
    "d": ("", "", ""),
}
FIELDS = ["title", "text", "anchor_text"]
QUERIES = ["the apple pear", "plum cake", "plum cake plum cake", "zebra apple", "the of"]


@pytest.fixture
def index(make_pages, tmp_path):
    pages = make_pages([(docno, *texts) for docno, texts in PAGES.items()])
    return FieldedIndex(pages, tmp_path / "index", FIELDS)


def every_result(*queries):
    rows = [(str(n), query, docno) for n, query in enumerate(queries) for docno in "cabd"]
    return pd.DataFrame(rows, columns=["qid", "query", "docno"])


def idf(word):
    frequency = sum(any(word in terms(text) for text in page) for page in PAGES.values())
    return max(1e-6, math.log((len(PAGES) - frequency + 0.5) / (frequency + 0.5)))


def of_field(query, docno, field):
    """The features of one field, from the words of its text."""
    words, text = content_terms(query), terms(PAGES[docno][field])
    distinct, pairs = set(words), set(itertools.pairwise(words))
    matching = [position for position, word in enumerate(text) if word in distinct]
    neighbors = pairs & set(itertools.pairwise(text))
    return [
        sum(idf(word) for word in distinct & set(text)) / (sum(map(idf, distinct)) or 1),
        len(distinct & set(text)) / (len(distinct) or 1),
        len(matching) / (len(text) or 1),
        sum(math.log1p(text.count(word)) for word in distinct) / (len(distinct) or 1),
        len(neighbors) / (len(pairs) or 1),
        min([*(position / 200 for position in matching), 1]),
    ]


def of_document(query, docno):
    distinct = set(content_terms(query))
    present = distinct & {word for text in PAGES[docno] for word in terms(text)}
    whole = sum(map(idf, distinct)) or 1
    return [sum(map(idf, present)) / whole, len(present) / (len(distinct) or 1)]


def test_features_are_those_of_a_loop_over_the_words(index):
    results = LexicalFeatures(index)(every_result(*QUERIES))
    for row in results.itertuples():
        expected = [of_field(row.query, row.docno, field) for field in range(3)]
        expected = [*np.concatenate(expected), *of_document(row.query, row.docno)]
        assert row.features == pytest.approx(expected, abs=1e-12), (row.query, row.docno)


def test_their_names(index):
    names = LexicalFeatures(index).names
    assert len(names) == 3 * 6 + 2 and names[:2] == ["title: idf covered", "title: terms covered"]
    assert names[6] == "text: idf covered" and names[-1] == "terms covered"


def test_none_is_of_the_document_alone(index):
    """Documents without a word of the query all have the same features."""
    results = LexicalFeatures(index)(every_result("zebra"))
    assert len(set(map(tuple, results["features"]))) == 1


def test_they_are_learned_from_next_to_other_features(index):
    results = every_result("apple", "plum").assign(score=1.0, rank=0)
    features = StageBefore() ** LexicalFeatures(index)
    learned = features >> pt.ltr.apply_learned_model(DecisionTreeRegressor(random_state=0))
    qrels = pd.DataFrame({"qid": ["0", "1"], "docno": ["c", "b"], "label": [1, 1]})
    learned.fit(results, qrels)
    best = learned(results).sort_values(["qid", "rank"]).groupby("qid").first()
    assert best["docno"].tolist() == ["c", "b"]
    assert len(features(results)["features"][0]) == 21


def test_no_results_and_unknown_documents(index):
    features = LexicalFeatures(index)
    assert features(every_result("apple")[:0]).columns.tolist()[-1] == "features"
    assert not index.folder.exists()  # a pipeline is inspected with empty frames
    with pytest.raises(HarpError, match="no document 'x'"):
        features(every_result("apple").assign(docno="x"))
    with pytest.raises(HarpError, match="no text in column 'docno' of qid"):
        features(every_result("apple").assign(docno=7))


def test_documents_without_any_word(make_pages, tmp_path):
    pages = make_pages([("c", "", "日本語", ""), ("a", "", "", "")])
    features = LexicalFeatures(FieldedIndex(pages, tmp_path / "index", FIELDS))
    results = features(every_result("apple").query("docno in ['c', 'a']"))
    assert np.isfinite(np.stack(results["features"])).all()


class TestContract(
    pt.testing.transformer_test_class(
        lambda: LexicalFeatures(FieldedIndex("harp-encyclopedia", "no/such/folder"))
    )
):
    """Inspection and schematics, without an index."""


def test_features_of_some_fields(index):
    """They are those columns of all, but for the features of all fields together."""
    every, of_text = LexicalFeatures(index), LexicalFeatures(index, fields=["text"])
    results = every_result(*QUERIES)
    columns = [name.startswith("text: ") for name in every.names]
    expected = np.stack(every(results)["features"].to_list())[:, columns]
    found = np.stack(of_text(results)["features"].to_list())
    own = 2  # of all fields together
    np.testing.assert_array_equal(found[:, :-own], expected)
    covered = of_text.names.index("text: idf covered")
    np.testing.assert_array_equal(found[:, -own], found[:, covered])
    assert of_text != every and of_text == LexicalFeatures(index, fields=("text",))
    with pytest.raises(HarpError, match="no field 'body': choose of"):
        LexicalFeatures(index, fields=["body"])
