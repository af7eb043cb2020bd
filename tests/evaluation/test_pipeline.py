"""The pipeline that people write: BM25, texts, reranker, in `pt.Experiment`."""

import pyterrier as pt
import pytest
from ir_measures import RR, nDCG
from pyterrier_pisa import PisaIndex

import harp_plugin.evaluation
from harp_plugin import HarpReranker


@pytest.fixture(scope="module")
def dataset():
    assert harp_plugin.evaluation
    return pt.get_dataset("irds:harp-encyclopedia")


@pytest.fixture(scope="module")
def bm25(dataset, tmp_path_factory):
    index = PisaIndex(str(tmp_path_factory.mktemp("pisa") / "index"), text_field=["title", "text"])
    index.index(dataset.get_corpus_iter(verbose=False))
    return index.bm25(num_results=20)


def experiment(systems, dataset, **options):
    measures = [nDCG @ 10, RR]
    return pt.Experiment(systems, dataset.get_topics(), dataset.get_qrels(), measures, **options)


@pytest.mark.parametrize("fields", ["text", ("title", "text")])
def test_rerank_the_encyclopedia(bm25, dataset, tiny_bert, fields):
    reranker = HarpReranker(tiny_bert, text_field=fields, max_length=64)
    pipeline = bm25 >> dataset.text_loader() >> reranker
    table = experiment([bm25, pipeline], dataset, names=["BM25", "tiny"], validate="error")
    assert table["nDCG@10"][0] > 0.5, "BM25 finds what it should"
    assert table["nDCG@10"][0] > table["nDCG@10"][1] > 0, "a random reranker harms"


class CountingReranker(HarpReranker):
    """Counts the pairs that it is given."""

    pairs = 0

    def transform(self, inp):
        CountingReranker.pairs += len(inp)
        return super().transform(inp)


def test_equal_rerankers_are_run_once(bm25, dataset, tiny_bert):
    def reranker():
        return CountingReranker(tiny_bert, max_length=64)

    loader = dataset.text_loader()
    pipelines = [bm25 >> loader >> reranker() % cutoff for cutoff in (1, 5)]
    table = experiment(pipelines, dataset, plan="tree", verbose=False)
    assert table["RR"][1] > table["RR"][0] > 0
    assert CountingReranker.pairs == len(bm25(dataset.get_topics()))


def test_one_query(bm25, dataset, tiny_bert):
    found = (bm25 >> dataset.text_loader() >> HarpReranker(tiny_bert)).search("anchor text")
    assert list(found["rank"]) == list(range(len(found))) and len(found) > 3
    assert found["score"].is_monotonic_decreasing
