"""A small judged collection that ir_datasets knows."""

import itertools

import ir_datasets
import pytest

DOCUMENTS = {
    "d1": "An inverted index maps each term to the documents that contain it.",
    "d2": "Spärck Jones introduced inverse document frequency in 1972.",
    "d3": "Web crawlers follow hyperlinks from page to page.",
    "d4": "A café in Zürich serves naïve search engineers.",
    "d5": "Stop words are frequent terms that an index may leave out.",
    "d6": "",
}
QUERIES = {"q1": "inverted index", "q2": 'who is "Sparck" (Jones)?', "q3": "hyperlinks & pages"}
QRELS = [("q1", "d1", 2), ("q1", "d5", 1), ("q2", "d2", 1), ("q3", "d3", 1), ("q3", "d1", 0)]
NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def tiny_bert(bert_of_few_words):
    return bert_of_few_words


@pytest.fixture
def make_dataset(tmp_path):
    """Register a dataset of the given documents, queries and judgments; give its id."""

    def make(documents=DOCUMENTS, queries=QUERIES, qrels=QRELS) -> str:
        number = next(NUMBERS)
        folder = tmp_path / f"dataset-{number}"
        folder.mkdir()
        tables = {"docs": documents, "queries": queries}
        for name, table in tables.items():
            lines = "".join(f"{key}\t{text}\n" for key, text in table.items())
            (folder / f"{name}.tsv").write_text(lines)
        lines = "".join(f"{qid} 0 {docno} {grade}\n" for qid, docno, grade in qrels)
        (folder / "qrels.txt").write_text(lines)
        dataset = ir_datasets.create_dataset(
            docs_tsv=str(folder / "docs.tsv"),
            queries_tsv=str(folder / "queries.tsv"),
            qrels_trec=str(folder / "qrels.txt"),
        )
        ir_datasets.registry.register(f"test-{number}", dataset)
        return f"test-{number}"

    return make


@pytest.fixture
def dataset(make_dataset) -> str:
    """The id of the small collection."""
    return make_dataset()
