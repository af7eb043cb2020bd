"""The dataset ``harp-encyclopedia``."""

import subprocess
import sys

import ir_datasets
import pyterrier as pt
import pytest

from harp_plugin.collections import registration


@pytest.fixture(scope="module")
def dataset():
    return ir_datasets.load("harp-encyclopedia")


def test_registering_twice_changes_nothing(dataset):
    registration.register()
    assert ir_datasets.load("harp-encyclopedia") is dataset


def test_pages_are_whole(dataset):
    pages = list(dataset.docs_iter())
    assert len(pages) == dataset.docs_count() >= 80
    assert len({page.doc_id for page in pages}) == len({page.title for page in pages}) == len(pages)
    for page in pages:
        assert page.title and len(page.text.split()) >= 100
        assert page.default_text() == f"{page.title} {page.text}"
        assert not any(debris in page.text for debris in ("[[", "]]", "{{", "}}", "'''", "<ref"))


def test_judgments_cover_queries_and_name_pages(dataset):
    qrels = list(dataset.qrels_iter())
    pages = {page.doc_id for page in dataset.docs_iter()}
    queries = {query.query_id: query.text for query in dataset.queries_iter()}
    assert len(queries) >= 40 and all(text.strip() for text in queries.values())
    assert {qrel.doc_id for qrel in qrels} <= pages
    assert {qrel.relevance for qrel in qrels} <= set(dataset.qrels_defs())
    assert {qrel.query_id for qrel in qrels if qrel.relevance >= 2} == set(queries)
    assert len({(qrel.query_id, qrel.doc_id) for qrel in qrels}) == len(qrels)


def test_pages_are_looked_up_by_id(dataset):
    store = dataset.docs_store()
    page = list(dataset.docs_iter())[7]
    assert store.get(page.doc_id) == page
    assert store.get_many([page.doc_id, "no such page"]) == {page.doc_id: page}
    with pytest.raises(KeyError):
        store.get("no such page")


def test_it_is_a_pyterrier_dataset(dataset):
    reached = pt.get_dataset("irds:harp-encyclopedia")
    topics, qrels = reached.get_topics(), reached.get_qrels()
    assert list(topics.columns) == ["qid", "query"]
    assert set(qrels["qid"]) == set(topics["qid"])
    first = qrels.head(3)[["qid", "docno"]]
    loaded = reached.text_loader()(first)
    pages = dataset.docs_store()
    assert list(loaded["title"]) == [pages.get(docno).title for docno in first["docno"]]
    assert list(loaded["text"]) == [pages.get(docno).text for docno in first["docno"]]
    assert len(list(reached.get_corpus_iter(verbose=False))) == dataset.docs_count()


def test_loading_it_needs_neither_torch_nor_a_parser():
    code = """
import sys, ir_datasets, harp_plugin.evaluation
dataset = ir_datasets.load("harp-encyclopedia")
next(dataset.docs_iter()), next(dataset.queries_iter()), next(dataset.qrels_iter())
heavy = {"torch", "transformers", "mwparserfromhell", "pyarrow", "tevatron", "harp_plugin.corpus"}
sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
