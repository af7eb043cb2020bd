"""Indexes of one collection: shared by its splits, kept when all is moved, by content only."""

import json
import re

import pandas as pd
import pytest

from harp_plugin import HarpFusion, HarpPipeline
from harp_plugin.ranking.bm25 import Bm25
from harp_plugin.ranking.dense import DenseCosine
from harp_plugin.ranking.fielded import FieldedBm25, FieldedIndex

SPLITS = ("train", "dev", "test")
KINDS = ("bm25", "fielded-bm25", "dense")
PAGES = {"a": "a page of links", "b": "a text", "c": "other pages"}
TOPICS = pd.DataFrame({"qid": ["1"], "query": ["links between pages"]})


def write_documents(folder, texts):
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "documents.jsonl").open("w") as file:
        for name, text in texts.items():
            page = {"doc_id": name, "title": name, "text": text, "anchor_text": ""}
            file.write(json.dumps(page) + "\n")


@pytest.fixture
def here(tmp_path):
    """A folder with a collection."""
    folder = tmp_path / "here" / "collection"
    write_documents(folder, PAGES)
    for split in SPLITS:
        (folder / split).mkdir()
        (folder / split / "queries.tsv").write_text(f"{split}-1\tlinks\n")
        (folder / split / "qrels.txt").write_text(f"{split}-1 0 a 1\n")
    return tmp_path / "here"


@pytest.fixture
def first_stage(tiny_bert):
    """Make a first stage that searches the collection in a folder."""

    def make(kind, folder, split="test"):
        dataset, indexes = f"harp:{folder}/collection/{split}", folder / "indexes"
        if kind == "bm25":
            return Bm25(dataset, indexes)
        if kind == "dense":
            return DenseCosine(tiny_bert, dataset=dataset, index_dir=indexes, device="cpu")
        return FieldedBm25(FieldedIndex(dataset, indexes))

    return make


def stamps(folder):
    """When each file of the indexes was written, but for the log of PISA."""
    files = (path for path in (folder / "indexes").rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns
        for path in files
        if path.suffix not in (".log", ".lock")
    }


def indexes(folder):
    return sorted(path.name for path in (folder / "indexes").iterdir() if path.is_dir())


@pytest.mark.parametrize("kind", KINDS)
def test_all_splits_share_one_index(kind, here, first_stage):
    expected = first_stage(kind, here, "train")(TOPICS)
    built = stamps(here)
    assert len(expected) and built
    for split in SPLITS:
        pd.testing.assert_frame_equal(first_stage(kind, here, split)(TOPICS), expected)
    assert stamps(here) == built
    (name,) = indexes(here)
    assert re.fullmatch(rf"{kind}-[0-9a-f]{{12}}", name)


@pytest.mark.parametrize("kind", KINDS)
def test_other_documents_under_the_same_name_have_another_index(kind, here, first_stage):
    before = first_stage(kind, here)(TOPICS)
    built = stamps(here)
    write_documents(here / "collection", {"d": "links between other pages", "e": ""})
    assert first_stage(kind, here)(TOPICS)["docno"][0] == "d"
    assert len(indexes(here)) == 2
    write_documents(here / "collection", PAGES)
    pd.testing.assert_frame_equal(first_stage(kind, here)(TOPICS), before)
    assert built.items() <= stamps(here).items() and len(indexes(here)) == 2


def test_a_moved_pipeline_builds_nothing_anew(here, first_stage, tmp_path):
    systems = {kind: first_stage(kind, here) for kind in KINDS}
    pipeline = HarpPipeline(HarpFusion(systems, weights=dict.fromkeys(KINDS, 1)))
    expected = pipeline(TOPICS)
    built = stamps(here)
    assert len(indexes(here)) == 3
    pipeline.save(here)
    there = here.rename(tmp_path / "there")
    pd.testing.assert_frame_equal(HarpPipeline.load(there)(TOPICS), expected)
    assert stamps(there) == built
