"""A run of the encyclopedia's queries, and the command that reranks it."""

import ir_datasets
import numpy as np
import pandas as pd
import pytest

import harp_plugin  # noqa: F401  registers harp-encyclopedia
from harp_plugin.cli import main
from harp_plugin.evaluation.runs import read_run

DATASET = "harp-encyclopedia"
QUERIES = 6
DEPTH = 5


@pytest.fixture(scope="session")
def first_stage():
    """(qid, docno, score) of a few queries; scores tie and stand in no order."""
    dataset = ir_datasets.load(DATASET)
    qids = [query.query_id for query in dataset.queries_iter()][:QUERIES]
    docnos = np.array([document.doc_id for document in dataset.docs_iter()])
    random = np.random.default_rng(0)
    return [
        (qid, docno, int(random.integers(0, 3)))
        for qid in qids
        for docno in random.choice(docnos, DEPTH, replace=False)
    ]


@pytest.fixture
def run_file(first_stage, tmp_path):
    """The same as a TREC run."""
    path = tmp_path / "bm25.run"
    path.write_text("".join(f"{q} Q0 {d} 0 {s} bm25\n" for q, d, s in first_stage))
    return path


@pytest.fixture
def rerank(tiny_bert):
    """``harp rerank`` on the encyclopedia; gives the exit status."""

    def command(run, *options, dataset=DATASET, model=tiny_bert):
        named = ["--dataset", dataset, "--model", model, "--quiet", "--max_length", 40]
        return main([str(argument) for argument in ("rerank", run, *named, *options)])

    return command


@pytest.fixture(scope="session")
def same_run():
    """Compare two runs: equal results, and scores up to rounding."""

    def compare(path, other):
        runs = [read_run(run).set_index(["qid", "docno"])["score"] for run in (path, other)]
        assert list(dict.fromkeys(runs[0].index.get_level_values(0))) == list(
            dict.fromkeys(runs[1].index.get_level_values(0))
        )
        pd.testing.assert_series_equal(*(run.sort_index() for run in runs), atol=1e-6, rtol=0)

    return compare
