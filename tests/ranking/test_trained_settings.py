"""A reranker reads texts as its model did in training, unless it is told otherwise."""

import shutil

import pandas as pd
import pytest

from harp_plugin import HarpPipeline, HarpReranker
from harp_plugin.work.records import write_record

FRAME = pd.DataFrame(
    {
        "qid": ["q"] * 2,
        "query": ["a web page"] * 2,
        "docno": ["a", "b"],
        "text": ["link " * 80 + "a web page", "web " * 9],
    }
)
DATASET = "irds:harp-encyclopedia"


@pytest.fixture
def trained(telling_bert, tmp_path):
    """Write what a model was trained with."""

    def make(**settings):
        folder = tmp_path / "model"
        shutil.copytree(telling_bert, folder, dirs_exist_ok=True)
        write_record(folder / "manifest.json", {"settings": settings, "files": {}})
        return folder

    return make


def test_passages_max_length_and_fields_are_restored(trained, telling_bert):
    model = trained(passages="matching", max_length=20, fields=["title"])
    restored = HarpReranker(model)
    explicit = HarpReranker(telling_bert, passages="matching", max_length=20)
    assert restored(FRAME)["score"].tolist() == explicit(FRAME)["score"].tolist()
    assert restored(FRAME)["score"].tolist() != HarpReranker(telling_bert)(FRAME)["score"].tolist()
    assert HarpReranker(model, dataset=DATASET).texts.fields == ("title",)
    assert restored.texts.fields == ("text",)


def test_the_passage_of_pre_training(trained):
    assert HarpReranker(trained(document_fields=["passage"])).windows.passages == "matching"
    assert HarpReranker(trained(document_fields=["title", "text"])).windows.passages == "first"


def test_arguments_come_first(trained):
    model = trained(passages="matching", max_length=20, fields=["title"])
    named = HarpReranker(model, passages="first", max_length=30, dataset=DATASET, text_field="text")
    assert named.windows.passages == "first" and named.texts.fields == ("text",)
    assert named.scorer.max_length == 30
    assert named != HarpReranker(model, dataset=DATASET)


def test_a_saved_pipeline_keeps_it(trained, tmp_path):
    made = HarpPipeline(HarpReranker(trained(passages="matching", max_length=20)))
    made.save(tmp_path)
    loaded = HarpPipeline.load(tmp_path)
    assert loaded == made and loaded.pipeline.windows.passages == "matching"


@pytest.mark.parametrize("text", ["{}", '{"settings": {"max_length": 9}}', "no JSON"])
def test_a_manifest_of_another_program_says_nothing(text, trained):
    model = trained()
    (model / "manifest.json").write_text(text)
    assert HarpReranker(model).windows.passages == "first"
    assert HarpReranker(model)._settings["max_length"] is None
