"""Rows that fuse other rows: whose queries weights are learnt from, what is written and refused."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions, evaluate
from harp_plugin.evaluation.cross_validation import CrossValidationOptions
from harp_plugin.evaluation.folds import draw_parts
from harp_plugin.evaluation.runs import read_run
from harp_plugin.ranking.fusion import fuse
from harp_plugin.ranking.fusion_weights import learn_weights

QUERIES = 40
DOCUMENTS = {f"d{number}": f"document {number}" for number in range(12)}


def write_run(path, rng, qids, strength):
    """A run in which the relevant document, d7, is this many standard deviations up."""
    lines = []
    for qid in qids:
        scores = {docno: rng.normal() + strength * (docno == "d7") for docno in DOCUMENTS}
        best = sorted(scores, key=scores.get, reverse=True)
        lines += [f"{qid} Q0 {d} {rank} {scores[d]} x" for rank, d in enumerate(best)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def qrels_of(qids):
    return pd.DataFrame([(qid, "d7", 1) for qid in qids], columns=["qid", "docno", "label"])


def run_of(folder, row):
    return read_run(folder / f"{row.replace(' ', '-')}.run")


@pytest.fixture
def judged(make_dataset):
    """Make a dataset of queries that all find d7."""

    def make(prefix="q", more=()):
        qids = [f"{prefix}{number}" for number in range(QUERIES)]
        queries = {qid: f"words of {qid}" for qid in qids}
        return make_dataset(DOCUMENTS, queries, [*((qid, "d7", 1) for qid in qids), *more]), qids

    return make


@pytest.fixture
def experiment(judged, tmp_path):
    """Options of an experiment of three runs, the second one noise."""
    dataset, qids = judged()
    rng = np.random.default_rng(0)
    runs = {
        name: write_run(tmp_path / f"{name}.trec", rng, qids, strength)
        for name, strength in {"first": 1.5, "noise": 0, "good": 1.5}.items()
    }

    def make(**changes):
        given = {
            "dataset": dataset,
            "first_stage": runs["first"],
            "first_stages": {"noise": runs["noise"], "good": runs["good"]},
            "measures": ["RR@10", "nDCG@10"],
            "output_dir": str(tmp_path / "out"),
            "quiet": True,
        }
        return EvaluationOptions(**given | changes)

    make.qids = qids
    return make


def test_the_weights_of_a_fold_are_those_of_the_others(experiment, tmp_path):
    options = experiment(fusions={"fused": ["first stage", "good"]})
    results = evaluate(options)
    assert list(results.means) == ["first stage", "noise", "good", "fused"]
    assert results.baseline == "first stage"
    runs = {row: run_of(tmp_path / "out" / "runs", row) for row in ("first stage", "good", "fused")}
    written = json.loads(results.path.read_text())["fusions"]["fused"]
    qrels = qrels_of(experiment.qids)
    parts = draw_parts(experiment.qids, 5, 42)
    assert len(written["learnt"]) == 5
    for part, learnt in zip(parts, written["learnt"], strict=True):
        singles = {row: runs[row] for row in ("first stage", "good")}
        others = {row: run[~run["qid"].isin(part)] for row, run in singles.items()}
        expected = learn_weights(others, qrels[~qrels["qid"].isin(part)], measure="RR@10")
        assert learnt["weights"] == expected.weights and learnt["queries"] == QUERIES - len(part)
        fused = fuse(
            {r: run[run["qid"].isin(part)] for r, run in singles.items()}, learnt["weights"]
        )
        ours = runs["fused"][runs["fused"]["qid"].isin(part)]
        key = ["qid", "rank"]
        assert ours.sort_values(key)["docno"].tolist() == fused.sort_values(key)["docno"].tolist()
    assert not any(learnt["first_alone"] for learnt in written["learnt"])
    assert results.means["fused"]["RR@10"] > results.means["first stage"]["RR@10"] + 0.1


def test_noise_is_left_out_and_that_is_said(experiment):
    results = evaluate(experiment(fusions={"fused": ["first stage", "noise"]}))
    assert results.means["fused"] == results.means["first stage"]
    note = "fused: first stage ranks alone for 5 of 5 parts of the queries, as no gain was sure"
    assert note in " ".join(results.table.split()) and results.p_values["fused"]["RR@10"] is None


def test_weights_by_hand_and_reciprocal_ranks(experiment, tmp_path):
    of = ["first stage", "good"]
    weights = {"first stage": 1, "good": 2}
    fusions = {
        "by hand": {"of": of, "weights": weights, "normalization": "minmax"},
        "rrf": {"of": of, "weights": "rrf", "candidates": "union"},
    }
    results = evaluate(experiment(fusions=fusions, depth=5))
    folder = tmp_path / "out" / "runs"
    runs = {row: run_of(folder, row) for row in of}
    by_hand = fuse(runs, weights, normalization="minmax")
    rrf = fuse(runs, dict.fromkeys(of, 1), normalization="rrf", candidates="union")
    for name, expected in (("by-hand", by_hand), ("rrf", rrf[rrf["rank"] < 5])):
        ours = read_run(folder / f"{name}.run")
        assert ours["docno"].tolist() == expected["docno"].tolist()
        np.testing.assert_allclose(ours["score"], expected["score"])
    assert json.loads(results.path.read_text())["fusions"]["rrf"]["normalization"] == "rrf"


def test_a_union_has_the_queries_of_all_rows(experiment, tmp_path):
    """The first row finds nothing for half of them."""
    part = tmp_path / "part.trec"
    half = set(experiment.qids[::2])
    lines = (tmp_path / "first.trec").read_text().splitlines(keepends=True)
    part.write_text("".join(line for line in lines if line.split()[0] in half))
    of = ["first stage", "good"]
    fusions = {
        "by hand": {"of": of, "weights": dict.fromkeys(of, 1), "candidates": "union"},
        "rrf": {"of": of, "weights": "rrf", "candidates": "union"},
        "first": {"of": of, "weights": "rrf"},
    }
    evaluate(experiment(first_stage=str(part), fusions=fusions))
    folder = tmp_path / "out" / "runs"
    assert set(run_of(folder, "first")["qid"]) == half
    for row in ("by hand", "rrf"):
        assert set(run_of(folder, row)["qid"]) == set(experiment.qids)


def test_weights_from_another_dataset(experiment, judged, tmp_path):
    """Its queries stand in the same run files, as dev and test queries of one collection may."""
    other, qids = judged("dev", more=[("no-text", "d7", 1)])
    rng = np.random.default_rng(1)
    for name, strength in {"first": 1.5, "good": 1.5}.items():
        more = write_run(tmp_path / "more.trec", rng, qids, strength)
        path = tmp_path / f"{name}.trec"
        path.write_text(path.read_text() + Path(more).read_text())
    fusions = {
        "fused": {"of": ["first stage", "good"], "train_dataset": other, "measure": "nDCG@10"}
    }
    results = evaluate(experiment(fusions=fusions))
    written = json.loads(results.path.read_text())["fusions"]["fused"]
    assert written["measure"] == "nDCG@10" and [part["queries"] for part in written["learnt"]] == [
        40
    ]
    folder = tmp_path / "out" / "train-datasets" / other / "runs"
    assert sorted(path.stem for path in folder.glob("*.run")) == ["first-stage", "good"]
    singles = {row: run_of(folder, row) for row in ("first stage", "good")}
    expected = learn_weights(singles, qrels_of(qids), measure="nDCG@10")
    assert written["learnt"][0]["weights"] == expected.weights


def test_two_runs_give_the_same_bytes_and_what_changed_is_made_again(experiment, tmp_path):
    def everything():
        files = [*(tmp_path / "out").glob("runs/*.run"), tmp_path / "out" / "results.json"]
        return {file.name: file.read_bytes() for file in files}

    fusions = {"fused": ["first stage", "good"]}
    evaluate(experiment(fusions=fusions))
    before = everything()
    (tmp_path / "out" / "runs" / "fused.run").unlink()
    evaluate(experiment(fusions=fusions))
    assert everything() == before
    fusions["fused"] = {"of": ["first stage", "good"], "weights": "rrf"}
    with pytest.raises(HarpError, match=r"other settings \(fusions: "):
        evaluate(experiment(fusions=fusions))
    evaluate(experiment(fusions=fusions, overwrite=True))
    assert everything()["fused.run"] != before["fused.run"]
    assert everything()["good.run"] == before["good.run"]


def test_the_evaluated_queries_are_not_learnt_from(experiment):
    options = experiment()
    fusions = {"fused": {"of": ["first stage", "good"], "train_dataset": options.dataset}}
    with pytest.raises(HarpError, match=r"queries of train_dataset .* are evaluated as well"):
        evaluate(experiment(fusions=fusions))


def test_a_run_without_the_queries_to_learn_from_is_told(experiment, judged):
    other, _ = judged("dev")
    fusions = {"fused": {"of": ["first stage", "good"], "train_dataset": other}}
    message = f"nothing for the 40 queries of {other}: .* that a run has results of these queries"
    with pytest.raises(HarpError, match=message):
        evaluate(experiment(fusions=fusions))


OF = ["BM25", "other"]


@pytest.mark.parametrize(
    ("fusion", "message"),
    [
        (3, "fusion 'f' is 3: list the rows that it is made of"),
        ({"weights": "rrf"}, "fusion 'f' is of nothing: name two or more rows once"),
        (["BM25"], "fusion 'f' is of BM25: name two or more rows once"),
        (["BM25", "BM25"], "name two or more rows once"),
        (["BM25", "x"], "'x' is not a row: choose of BM25, other"),
        (["BM25", "f"], "'f' is not a row: choose of BM25, other"),
        ({"of": OF, "weight": 1}, "unknown key 'weight': did you mean weights"),
        (
            {"of": OF, "weights": "most"},
            "weights is 'most': it must be one of learn",
        ),
        (
            {"of": OF, "weights": {"BM25": True, "other": 1}},
            "one of learn, rrf or an object",
        ),
        ({"of": OF, "weights": {"BM25": 1}}, "fusion 'f': system 'other' has no weight"),
        ({"of": OF, "normalization": "softmax"}, "must be one of zscore, minmax, rrf"),
        ({"of": OF, "candidates": "all"}, "must be one of first, union"),
        ({"of": OF, "weights": "rrf", "normalization": "zscore"}, "rrf need no normalization"),
        (
            {"of": OF, "weights": "rrf", "train_dataset": "x"},
            "train_dataset is for weights that are learned",
        ),
        ({"of": OF, "measure": 3}, "measure is 3: it must be a text"),
        ({"of": OF, "measure": "MAPP"}, "unknown measure 'MAPP'"),
    ],
)
def test_options_that_make_no_sense_are_refused(fusion, message):
    with pytest.raises(HarpError, match=message):
        EvaluationOptions(dataset="d", first_stages={"other": "o.run"}, fusions={"f": fusion})


def test_first_stages_are_checked():
    with pytest.raises(HarpError, match=r"--first-stages is {'a': 3}: it must be an object"):
        EvaluationOptions(dataset="d", first_stages={"a": 3})
    with pytest.raises(HarpError, match="two rows would share a file name"):
        EvaluationOptions(dataset="d", first_stages={"BM25": "bm25"})
    options = EvaluationOptions(dataset="d", first_stage="a.run", first_stages={"BM25": "bm25"})
    assert options.rows == ["first stage", "BM25"]


def test_a_cross_validation_learns_on_its_folds():
    fusion = {"of": ["BM25", "model"], "train_dataset": "vaswani"}
    with pytest.raises(HarpError, match="a cross-validation learns weights on the training folds"):
        CrossValidationOptions(dataset="d", systems={"model": "m"}, fusions={"f": fusion})
