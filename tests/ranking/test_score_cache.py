"""Scores that are kept across runs: what meets them, what does not, and what a kill leaves."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import BertForSequenceClassification

from harp_plugin import HarpReranker, Scorer
from harp_plugin.errors import HarpError
from harp_plugin.ranking.cache import ScoreCache

TEXTS = ["a link leads on", "dogs bark", "nul \0 byte", "", "1", "01"]


@pytest.fixture
def results():
    rows = [("1", "web links"), ("2", "1"), ("3", "1.0"), ("4", "web links")]
    return pd.DataFrame(
        [
            {"qid": qid, "query": query, "docno": f"d{place}", "text": text}
            for qid, query in rows
            for place, text in enumerate(TEXTS)
        ]
    )


@pytest.fixture
def model(telling_bert, tmp_path):
    """A checkpoint that a test may change."""
    return shutil.copytree(telling_bert, tmp_path / "model")


@pytest.fixture
def no_scoring(monkeypatch):
    """Call it to make every scorer raise from then on."""

    def refuse(*arguments, **options):
        raise AssertionError("a score was not in the cache")

    def stop():
        monkeypatch.setattr(Scorer, "score", refuse)
        monkeypatch.setattr(Scorer, "score_tokens", refuse)

    return stop


def test_kept_scores_are_those_of_the_model_and_need_no_model(model, results, tmp_path, no_scoring):
    plain = HarpReranker(model)(results)
    cache = tmp_path / "cache"
    pd.testing.assert_frame_equal(HarpReranker(model, cache=cache)(results), plain, atol=1e-6)
    no_scoring()
    again = HarpReranker(model, cache=cache)(results.sample(frac=1, random_state=0))
    pd.testing.assert_series_equal(
        again.set_index(["qid", "docno"])["score"].sort_index(),
        plain.set_index(["qid", "docno"])["score"].sort_index(),
        atol=1e-6,
    )


def test_only_what_is_missing_is_scored(model, results, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    HarpReranker(model, cache=cache)(results.iloc[:9])
    scored = []
    score = Scorer.score

    def spy(self, queries, documents, **options):
        scored.extend(zip(queries, documents, strict=True))
        return score(self, queries, documents, **options)

    monkeypatch.setattr(Scorer, "score", spy)
    HarpReranker(model, cache=cache)(results)
    pairs = set(results[["query", "text"]].itertuples(index=False, name=None))
    kept = set(results[["query", "text"]].iloc[:9].itertuples(index=False, name=None))
    assert sorted(scored) == sorted(pairs - kept)


@pytest.mark.parametrize(
    "options",
    [
        {"max_length": 6},
        {"dtype": "bfloat16"},
        {"passages": "max", "passage_length": 2},
        {"passages": "mean", "passage_length": 2},
        {"passages": "mean", "passage_length": 2, "passage_stride": 2},
        {"seed": 1, "allow_untrained": True},
    ],
)
def test_other_options_meet_no_old_scores(model, results, tmp_path, no_scoring, options):
    cache = tmp_path / "cache"
    before = {"passages": "max", "passage_length": 3} if "passages" in options else {}
    HarpReranker(model, cache=cache, **before)(results)
    expected = HarpReranker(model, **options)(results)
    kept = HarpReranker(model, cache=cache, **options)(results)
    pd.testing.assert_frame_equal(kept, expected, atol=1e-6)
    no_scoring()
    pd.testing.assert_frame_equal(
        HarpReranker(model, cache=cache, **options)(results), expected, atol=1e-6
    )


@pytest.mark.parametrize("column", ["query", "text"])
def test_another_query_or_text_meets_no_old_score(model, results, tmp_path, no_scoring, column):
    cache = tmp_path / "cache"
    HarpReranker(model, cache=cache)(results)
    no_scoring()
    results.loc[4, column] += " "
    with pytest.raises(AssertionError, match="not in the cache"):
        HarpReranker(model, cache=cache)(results)


def test_names_of_rows_and_fields_do_not_matter(model, results, tmp_path, no_scoring):
    cache = tmp_path / "cache"
    expected = HarpReranker(model, cache=cache)(results)["score"]
    no_scoring()
    renamed = results.rename(columns={"text": "body"}).assign(qid="q", docno=results.index)
    renamed["docno"] = renamed["docno"].map("x{}".format)
    ours = HarpReranker(model, cache=cache, text_field="body", batch_tokens=64)(renamed)
    np.testing.assert_array_equal(ours["score"], expected)


def test_a_changed_model_meets_no_old_scores(model, results, tmp_path):
    cache = tmp_path / "cache"
    unused = HarpReranker(model, cache=cache)
    first = HarpReranker(model, cache=cache)
    old = first(results)["score"]
    np.testing.assert_array_equal(unused(results)["score"], old)
    weights = BertForSequenceClassification.from_pretrained(model)
    with torch.no_grad():
        weights.classifier.bias += 1
    weights.save_pretrained(model)
    for reranker in (HarpReranker(model, cache=cache), unused):
        np.testing.assert_allclose(reranker(results)["score"], old + 1, atol=1e-5)
    np.testing.assert_array_equal(first(results)["score"], old)


def test_an_ensemble_and_features_use_the_cache(model, another_bert, results, tmp_path, no_scoring):
    models = [model, another_bert]
    options = {"cache": tmp_path / "cache"}
    expected = HarpReranker.ensemble(models)(results)
    HarpReranker.ensemble(models, **options)(results)
    no_scoring()
    ensemble = HarpReranker.ensemble(models, **options)
    pd.testing.assert_frame_equal(ensemble(results), expected, atol=1e-6)
    one, two = ensemble.rerankers
    features = np.stack((one**two).compile()(results)["features"])
    np.testing.assert_allclose(features.mean(axis=1), expected["score"], atol=1e-6)


def test_the_cache_does_not_change_what_is_equal(tmp_path):
    assert HarpReranker("m", cache=tmp_path) == HarpReranker("m")


@pytest.mark.integration
def test_what_a_call_has_returned_outlives_a_kill(
    model, results, tmp_path, no_scoring, monkeypatch
):
    cache = tmp_path / "cache"
    results.to_json(tmp_path / "results.json")
    code = f"""
import pandas as pd, os, signal
from harp_plugin import HarpReranker, Scorer
results = pd.read_json({str(tmp_path / "results.json")!r}, dtype=str)
reranker = HarpReranker({str(model)!r}, cache={str(cache)!r})
reranker(results.iloc[:9])
Scorer.score = lambda *a, **o: os.kill(os.getpid(), signal.SIGKILL)
reranker(results)
"""
    killed = subprocess.run([sys.executable, "-c", code])
    assert killed.returncode == -signal.SIGKILL
    no_scoring()
    kept = HarpReranker(model, cache=cache)(results.iloc[:9])
    monkeypatch.undo()
    expected = HarpReranker(model)(results.iloc[:9])
    pd.testing.assert_frame_equal(kept, expected, atol=1e-6)


def test_a_long_call_keeps_its_scores_part_by_part(model, results, tmp_path, monkeypatch):
    monkeypatch.setattr("harp_plugin.ranking.rows._FEW_ROWS", 4)
    expected = HarpReranker(model)(results)
    score = Scorer.score
    scored = []

    def interrupted(self, queries, documents, **options):
        if len(scored) == 2:
            raise KeyboardInterrupt
        scored.append(len(queries))
        return score(self, queries, documents, **options)

    reranker = HarpReranker(model, cache=tmp_path / "cache")
    monkeypatch.setattr(Scorer, "score", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reranker(results)
    kept = sum(scored)
    monkeypatch.setattr(
        Scorer,
        "score",
        lambda self, queries, documents, **options: (
            scored.append(len(queries)) or score(self, queries, documents, **options)
        ),
    )
    pd.testing.assert_frame_equal(reranker(results), expected, atol=1e-6)
    pairs = len(results[["query", "text"]].drop_duplicates())
    assert 0 < kept < pairs == sum(scored)


def keep_many(folder, seed):
    rng = np.random.default_rng(seed)
    for _ in range(8):
        pairs = np.unique(rng.integers(0, 8, (20, 2)), axis=0)
        cache = ScoreCache(folder, {"model": "one"})
        names = [str(number) for number in range(8)]
        scores = cache.scores(names, names, pairs, lambda lacking, p=pairs: p[lacking] @ [8.0, 1])
        np.testing.assert_array_equal(scores, pairs @ [8, 1])


@pytest.mark.integration
def test_several_processes_may_write_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=keep_many, args=(tmp_path, seed)) for seed in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_told(model, results, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HarpError, match=r"cannot use cache .*file"):
        HarpReranker(model, cache=tmp_path / "file")(results)


def test_a_damaged_cache_is_told(model, results, tmp_path):
    HarpReranker(model, cache=tmp_path / "cache")(results)
    (database,) = (tmp_path / "cache").glob("*/db.sqlite3")
    database.write_bytes(b"no database" * 1000)
    with pytest.raises(HarpError, match=r"cache .* is damaged .*not a database.*delete"):
        HarpReranker(model, cache=tmp_path / "cache")(results)


def test_an_interrupted_creation_is_no_hindrance(model, results, tmp_path):
    cache = tmp_path / "cache"
    HarpReranker(model, cache=cache)(results)
    (folder,) = cache.iterdir()
    shutil.rmtree(folder)
    left = folder.with_name(f"{folder.name}.{os.getpid()}.harp-tmp")
    left.mkdir()
    HarpReranker(model, cache=cache)(results)
    assert [entry.name for entry in cache.iterdir()] == [folder.name]


def test_a_cache_says_what_to_install(model, results, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyterrier_caching", None)
    with pytest.raises(HarpError, match=r"pip install 'harp-plugin\[cache\]'"):
        HarpReranker(model, cache=tmp_path)(results)
    assert len(HarpReranker(model)(results)) == len(results)
