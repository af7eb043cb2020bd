"""Exported pairs, read by those they are for."""

import json
from dataclasses import asdict
from functools import partial

import datasets
import pytest
from builds import read_table
from tevatron.arguments import DataArguments
from tevatron.datasets import HFTrainDataset

from harp_plugin.commands.export import ExportOptions, export
from harp_plugin.errors import HarpError
from harp_plugin.models.loading import load_tokenizer
from harp_plugin.tasks import HARP_TASKS, DrawOptions, PreTrainingData


@pytest.fixture(scope="module")
def export_as(encyclopedia_build, tmp_path_factory):
    """Exports the same 120 groups in a format."""
    folder = tmp_path_factory.mktemp("export")

    def written(format):
        options = ExportOptions(
            str(folder / format), groups_per_epoch=60, epochs=2, format=format, quiet=True
        )
        return export(encyclopedia_build, options)

    return written


@pytest.fixture(scope="module")
def exported(export_as):
    return export_as("pairs")


@pytest.fixture(scope="module")
def rows(exported):
    files = sorted((exported / "data").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.open(encoding="utf-8")]


def as_json(pair):
    return json.loads(json.dumps(asdict(pair)))


def test_every_row_is_the_group_drawn(rows, encyclopedia_build):
    data = PreTrainingData(
        encyclopedia_build, dict.fromkeys(HARP_TASKS, 1), groups_per_epoch=60, draw=DrawOptions()
    )
    assert len(rows) == 120
    for slot, row in enumerate(rows):
        group = data.group(*divmod(slot, 60))
        assert row["task"] == group.task
        assert row["positive"] == as_json(group.positive)
        assert row["negatives"] == [as_json(negative) for negative in group.negatives]


def test_rows_say_where_their_texts_come_from(rows, encyclopedia_build):
    """By ids of the build's tables."""
    pages, sentences, anchors = (
        {row["id"]: row for row in read_table(encyclopedia_build / name).to_pylist()}
        for name in ("corpus/pages", "corpus/sentences", "graph/anchors")
    )
    for row in rows:
        for pair in (row["positive"], *row["negatives"]):
            assert pages[pair["document_origin"]["page"]]["lead"] == pair["document"]
        query, origin = row["positive"]["query"], row["positive"]["query_origin"]
        sentence = sentences[origin["sentence"]]
        assert sentence["page"] == origin["page"]
        if row["task"] == "rdp":
            assert query == sentence["text"] and origin["anchor"] is None
        else:
            anchor = anchors[origin["anchor"]]
            text = sentence["text"][anchor["start"] : anchor["end"]]
            words = [text.lower(), *(drawn["word"].lower() for drawn in origin["sampled"])]
            assert query == " ".join(words)


def test_tevatron_fields_say_the_same_as_the_pairs(rows):
    for row in rows:
        query, passage = row["query"], row["positive_passages"][0]["text"]
        pair = (passage, query) if row["swapped"] else (query, passage)
        assert pair == (row["positive"]["query"], row["positive"]["document"])
        assert row["swapped"] == (row["task"] == "rqp")


def test_datasets_reads_it(exported, rows, tmp_path):
    loaded = datasets.load_dataset(str(exported), cache_dir=str(tmp_path))["train"]
    assert list(loaded["query_id"]) == [row["query_id"] for row in rows]
    assert loaded[0]["positive"] == rows[0]["positive"]


def test_stock_tevatron_reads_it(exported, rows, tiny_bert, tmp_path):
    tokenizer = load_tokenizer(str(tiny_bert))
    arguments = DataArguments(dataset_name=str(exported), dataset_proc_num=1)
    read = HFTrainDataset(tokenizer, arguments, cache_dir=str(tmp_path)).process()
    assert len(read) == len(rows)
    ids = tokenizer(rows[0]["query"], add_special_tokens=False)["input_ids"]
    assert read[0]["query"] == ids[: arguments.q_max_len]
    assert len(read[0]["positives"]) == len(read[0]["negatives"]) == 1


@pytest.fixture(scope="module")
def with_ids(export_as):
    """In six shards, which have documents in common."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("harp_plugin.commands.export._SHARD", 20)
        return export_as("tevatron")


def test_ids_name_the_texts_of_the_pairs(with_ids, rows, tmp_path):
    """The same groups, read as Tevatron's retriever reads them."""
    load = partial(datasets.load_dataset, str(with_ids), split="train", cache_dir=str(tmp_path))
    groups, corpus = load("default"), load("corpus")
    texts = {document["docid"]: document["text"] for document in corpus}
    assert len(texts) == len(corpus) and {d["title"] for d in corpus} == {""}
    assert len(groups) == len(rows)
    for group, row in zip(groups, rows, strict=True):
        assert (group["query_id"], group["query_text"]) == (row["query_id"], row["query"])
        for kind in ("positive", "negative"):
            passages = [passage["text"] for passage in row[f"{kind}_passages"]]
            assert [texts[id] for id in group[f"{kind}_document_ids"]] == passages
    assert not (with_ids / "drawn").exists()


def test_another_format_is_another_dataset(encyclopedia_build, with_ids):
    with pytest.raises(HarpError, match="format"):
        export(encyclopedia_build, ExportOptions(str(with_ids), groups_per_epoch=60, epochs=2))


@pytest.mark.slow
def test_same_bytes_for_any_number_of_workers(encyclopedia_build, tmp_path, monkeypatch):
    monkeypatch.setattr("harp_plugin.commands.export._SHARD", 10)
    folders = []
    for workers in (1, 2):
        options = ExportOptions(
            output_dir=str(tmp_path / str(workers)),
            groups_per_epoch=30,
            workers=workers,
            quiet=True,
        )
        folders.append(export(encyclopedia_build, options))
    names = [sorted(p.name for p in (folder / "data").iterdir()) for folder in folders]
    assert names[0] == names[1] == [f"train-{n:05d}.jsonl" for n in range(3)]
    for name in names[0]:
        first, second = ((folder / "data" / name).read_bytes() for folder in folders)
        assert first == second


def test_other_peoples_files_are_left_alone(encyclopedia_build, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(HarpError, match="files that harp did not write"):
        export(encyclopedia_build, ExportOptions(output_dir=str(tmp_path), quiet=True))
    assert (tmp_path / "thesis.tex").read_text() == "mine"
