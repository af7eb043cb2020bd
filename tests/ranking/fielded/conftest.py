"""Small datasets with several fields."""

import json

import pytest

from harp_plugin.collections.dataset import JudgedDataset

FIELDS = ["doc_id", "title", "text", "anchor_text"]


@pytest.fixture
def make_pages(tmp_path_factory):
    """Write a collection of pages, (docno, title, text, anchor texts), and open it."""

    def make(pages, queries=(("q", "apple"),), qrels=(("q", "x", 1),)):
        folder = tmp_path_factory.mktemp("pages")
        (folder / "test").mkdir()
        rows = (json.dumps(dict(zip(FIELDS, page, strict=True))) + "\n" for page in pages)
        (folder / "documents.jsonl").write_text("".join(rows))
        rows = (f"{qid}\t{query}\n" for qid, query in dict(queries).items())
        (folder / "test" / "queries.tsv").write_text("".join(rows))
        rows = (f"{qid} 0 {docno} {label}\n" for qid, docno, label in qrels)
        (folder / "test" / "qrels.txt").write_text("".join(rows))
        return JudgedDataset(f"harp:{folder}/test")

    return make
