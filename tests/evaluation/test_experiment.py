"""Whole evaluations: what is written, what is reused, what is refused."""

import gzip
import json
import sys

import ir_datasets
import pandas as pd
import pyterrier as pt
import pytest
import torch
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import TrecQrels, TrecScoredDocs, TsvDocs, TsvQueries
from ir_datasets.util import Download, LocalDownload, RequestsDownload
from ir_measures import AP, nDCG
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from harp_plugin import HarpReranker
from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions, Results, evaluate
from harp_plugin.evaluation.runs import read_run
from harp_plugin.ranking.bm25 import Bm25

REPORT = "report.html"
FIRST = "q1 Q0 d5 0 2.0 x\nq1 Q0 d1 1 1.0 x\nq2 Q0 d2 0 1.0 x\nq3 Q0 d1 0 1.5 x\nq3 Q0 d3 1 1.0 x\n"


def function_stage(options):
    """A first stage of the user's own."""
    assert options.depth == 2
    rows = [line.split() for line in FIRST.splitlines()]
    frame = pd.DataFrame(
        {
            "qid": [row[0] for row in rows],
            "docno": [row[2] for row in rows],
            "score": [float(row[4]) for row in rows],
        }
    )
    return pt.Transformer.from_df(frame)


def no_stage(options):
    return "bm25"


@pytest.fixture
def options(dataset, tiny_bert, tmp_path):
    def make(**changes) -> EvaluationOptions:
        given = {
            "dataset": dataset,
            "rerankers": {"tiny": str(tiny_bert)},
            "output_dir": str(tmp_path / "out"),
            "quiet": True,
        }
        return EvaluationOptions(**given | changes)

    return make


def test_the_results_that_a_dataset_brings_along(options, dataset, tmp_path):
    (tmp_path / "scored.run").write_text(FIRST)
    known = ir_datasets.load(dataset)
    handlers = known.docs_handler(), known.queries_handler(), known.qrels_handler()
    scored = Dataset(*handlers, TrecScoredDocs(LocalDownload(str(tmp_path / "scored.run"))))
    ir_datasets.registry.register(f"{dataset}-scored", scored)
    evaluate(options(dataset=f"{dataset}-scored", first_stage="scoreddocs", depth=1))
    run = read_run(tmp_path / "out" / "runs" / "scoreddocs.run")
    assert run[["qid", "docno"]].to_numpy().tolist() == [["q1", "d5"], ["q2", "d2"], ["q3", "d1"]]
    with pytest.raises(HarpError, match="has no scoreddocs: name one"):
        evaluate(options(first_stage="scoreddocs"))


def test_each_dataset_brings_its_own_results(options, dataset, tmp_path):
    """Weights are learned from those of the dataset to learn from."""
    known = ir_datasets.load(dataset)
    for name, qid in {"a": "q", "b": "p"}.items():
        texts = "".join(f"{qid}{number}\thyperlinks of {number}\n" for number in range(1, 6))
        (tmp_path / f"{name}.tsv").write_text(texts)
        for kind, line in {"qrels": "{} 0 d{} 1", "run": "{} Q0 d{} 1 2.0 x"}.items():
            lines = [line.format(f"{qid}{number}", number) for number in range(1, 6)]
            (tmp_path / f"{name}.{kind}").write_text("\n".join(lines) + "\n")
        files = (
            LocalDownload(str(tmp_path / f"{name}.{kind}")) for kind in ("tsv", "qrels", "run")
        )
        queries, qrels, run = files
        parts = TsvQueries(queries), TrecQrels(qrels, {}), TrecScoredDocs(run)
        made = Dataset(known.docs_handler(), *parts)
        ir_datasets.registry.register(f"{dataset}/{name}", made)
    fusion = {"of": ["scoreddocs", "tiny"], "train_dataset": f"{dataset}/b"}
    asked = {"first_stage": "scoreddocs", "fusions": {"both": fusion}, "depth": 3}
    evaluate(options(dataset=f"{dataset}/a", **asked))
    learnt = f"train-datasets/{dataset}-b/runs/scoreddocs.run"
    assert set(read_run(tmp_path / "out" / learnt)["qid"]) == {f"p{n}" for n in range(1, 6)}
    fusion = {"of": ["BM25", "tiny"], "train_dataset": dataset}  # which brings none
    asked = {"first_stages": {"beside": "scoreddocs"}, "fusions": {"both": fusion}, "depth": 3}
    folder = tmp_path / "beside"
    evaluate(options(dataset=f"{dataset}/a", output_dir=str(folder), **asked))
    assert (folder / "runs" / "both.run").is_file()


@pytest.fixture
def run_file(tmp_path):
    path = tmp_path / "first.run"
    path.write_text(FIRST)
    return path


def test_what_is_written(options, tmp_path, capfd):
    results = evaluate(options())
    assert capfd.readouterr().out == ""
    assert isinstance(results, Results)
    runs = tmp_path / "out" / "runs"
    assert sorted(path.name for path in runs.iterdir()) == [
        *("bm25.run", "bm25.run.json", "tiny.run", "tiny.run.json")
    ]
    for file in runs.glob("*.run"):
        lines = [line.split() for line in file.read_text().splitlines()]
        ranks = pd.DataFrame(lines).groupby(0, sort=False)[3].agg(list)
        assert all(rank == [str(n) for n in range(len(rank))] for rank in ranks)
    written = json.loads(results.path.read_text())
    assert written["means"] == results.means and written["per_query"] == results.per_query
    assert written["queries"] == 3 and written["baseline"] == "BM25"
    assert written["options"]["rerankers"]["tiny"]["model"]
    assert written["versions"]["transformers"] and len(written["models"]["tiny"]) == 64
    assert list(results.means) == ["BM25", "tiny"]
    assert list(results.means["tiny"]) == ["nDCG@10", "RR@10", "AP"]
    assert "BM25" in results.table and "3 queries" in results.table


def test_it_equals_an_experiment_in_pyterrier(options, dataset, tiny_bert, tmp_path):
    results = evaluate(options(depth=3, measures=["AP", "nDCG@10"]))
    collection = JudgedDataset(dataset)
    bm25 = Bm25(collection, tmp_path / "i", k1=0.9, b=0.4, num_results=3, quiet=True)
    loader = pt.get_dataset(f"irds:{dataset}").text_loader()
    table = pt.Experiment(
        [bm25, bm25 >> loader >> HarpReranker(tiny_bert)],
        collection.topics,
        collection.qrels,
        [AP, nDCG @ 10],
        names=["BM25", "tiny"],
    ).set_index("name")
    for row, means in results.means.items():
        for measure, mean in means.items():
            assert mean == pytest.approx(table.loc[row, measure], abs=1e-9)


def test_two_runs_give_the_same_bytes(options, tmp_path):
    def everything():
        folder = tmp_path / "out"
        files = [*folder.glob("runs/*"), folder / "results.json"]
        return {file.name: file.read_bytes() for file in files}

    evaluate(options())
    first = everything()
    evaluate(options())
    assert everything() == first
    for file in (tmp_path / "out").glob("runs/*"):
        file.unlink()
    evaluate(options())
    assert everything() == first


def test_only_what_changed_is_made_again(options, tiny_bert, tmp_path):
    def stamps():
        files = (tmp_path / "out" / "runs").glob("*.run")
        return {file.stem: file.stat().st_mtime_ns for file in files}

    model = AutoModelForSequenceClassification.from_pretrained(tiny_bert)
    model.save_pretrained(tmp_path / "model")
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path / "model")
    rerankers = {"tiny": str(tiny_bert), "other": str(tmp_path / "model")}
    evaluate(options(rerankers=rerankers))
    before = stamps()
    evaluate(options(rerankers=rerankers, batch_tokens=64))
    with pytest.raises(HarpError, match=r"other settings \(measures: .*--overwrite"):
        evaluate(options(rerankers=rerankers, measures=["P@1"]))
    evaluate(options(rerankers=rerankers, measures=["P@1"], overwrite=True))
    assert stamps() == before

    model.classifier.weight.data.neg_()
    model.save_pretrained(tmp_path / "model")
    with pytest.raises(HarpError, match=r"other settings \(.*models: "):
        evaluate(options(rerankers=rerankers))
    changed = evaluate(options(rerankers=rerankers, overwrite=True))
    after = stamps()
    assert [name for name in after if after[name] != before[name]] == ["other"]
    assert changed.per_query["other"] != changed.per_query["tiny"]

    half = tmp_path / "out" / "runs" / "tiny.run"
    half.write_text(half.read_text()[:40])
    with pytest.raises(HarpError, match="has changed since it was written"):
        evaluate(options(rerankers=rerankers))
    assert evaluate(options(rerankers=rerankers, overwrite=True)).means == changed.means


def test_results_of_other_judgments_are_not_lost(options, dataset, tmp_path):
    (path,) = tmp_path.glob("dataset-*/qrels.txt")
    evaluate(options(report=True))
    written = {name: (tmp_path / "out" / name).read_bytes() for name in ("results.json", REPORT)}
    path.write_text(path.read_text().replace("q3 0 d1 0", "q3 0 d1 2"))
    with pytest.raises(HarpError, match=r"other settings \(judgments: .*--overwrite"):
        evaluate(options())
    for name, content in written.items():
        assert (tmp_path / "out" / name).read_bytes() == content
    evaluate(options(overwrite=True))
    assert (tmp_path / "out" / "results.json").read_bytes() != written["results.json"]
    assert not (tmp_path / "out" / REPORT).exists()  # it showed other judgments


def test_an_untrained_reranker_is_measured_when_asked(options, tmp_path, tiny_bert):
    from transformers import AutoModel

    AutoModel.from_pretrained(tiny_bert).save_pretrained(tmp_path / "base")
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path / "base")
    base = str(tmp_path / "base")
    with pytest.raises(HarpError, match="no trained weights"):
        evaluate(options(rerankers={"base": base}))
    rerankers = {"base": {"model": base, "allow_untrained": True}, "tiny": str(tiny_bert)}
    before = torch.get_rng_state()
    results = evaluate(options(rerankers=rerankers))
    assert torch.equal(before, torch.get_rng_state())
    assert results.baseline == "base" and set(results.p_values) == {"BM25", "tiny"}


def test_an_ensemble_ranks_by_the_mean_score(options, tiny_bert, tmp_path):
    model = AutoModelForSequenceClassification.from_pretrained(tiny_bert)
    model.classifier.weight.data.mul_(-3)
    other = str(tmp_path / "other")
    model.save_pretrained(other)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(other)
    both = [str(tiny_bert), other]
    rerankers = {
        "one": both[0],
        "two": both[1],
        "both": both,
        "mostly two": {"model": both, "weights": [1, 3]},
    }
    results = evaluate(options(rerankers=rerankers))
    one, two, mean, weighted = (
        read_run(tmp_path / "out" / "runs" / f"{name}.run")
        .set_index(["qid", "docno"])["score"]
        .sort_index()
        for name in ("one", "two", "both", "mostly-two")
    )
    assert mean.to_numpy() == pytest.approx((one + two).to_numpy() / 2, abs=1e-6)
    assert weighted.to_numpy() == pytest.approx((one + 3 * two).to_numpy() / 4, abs=1e-6)
    written = json.loads(results.path.read_text())
    models = written["models"]
    assert models["both"] == [models["one"], models["two"]] == models["mostly two"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_run_as_first_stage(options, run_file, packed):
    if packed:
        packed_file = run_file.with_suffix(".run.gz")
        packed_file.write_bytes(gzip.compress(run_file.read_bytes()))
        run_file = packed_file
    results = evaluate(options(first_stage=str(run_file), measures=["RR"]))
    assert results.per_query["first stage"]["RR"] == {"q1": 1.0, "q2": 1.0, "q3": 0.5}


def test_a_function_as_first_stage(options):
    given = f"{function_stage.__module__}:function_stage"
    results = evaluate(options(first_stage=given, depth=2, measures=["RR"], allow_functions=True))
    assert results.per_query["first stage"]["RR"] == {"q1": 1.0, "q2": 1.0, "q3": 0.5}


@pytest.mark.parametrize("function", ["os:abort", "this:c", "no_such_module:f"])
@pytest.mark.parametrize("how", ["first_stage", "first_stages"])
def test_no_function_is_called_unless_a_person_says_so(function, how, options):
    given = function if how == "first_stage" else {"other": function}
    with pytest.raises(HarpError, match=f"first stage {function} is a function, which may do any"):
        evaluate(options(**{how: given}))
    assert function.partition(":")[0] not in sys.modules.keys() - {"os"}


def test_depth_cuts_every_row(options, run_file, tmp_path):
    evaluate(options(first_stage=str(run_file), depth=1))
    for name in ("first-stage", "tiny"):
        lines = (tmp_path / "out" / "runs" / f"{name}.run").read_text().splitlines()
        assert [line.split()[2] for line in lines] == ["d5", "d2", "d1"]


def test_fields_choose_the_text(options, tmp_path):
    evaluate(options(fields=["text"]))
    with pytest.raises(HarpError, match="have no text field 'body': they have doc_id, text"):
        evaluate(options(fields=["body"]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": "vaswahni"}, "unknown dataset 'vaswahni'"),
        ({"dataset": "msmarco-passage/eval"}, "has no qrels"),
        ({"measures": ["AP", "MAPP"]}, "unknown measure 'MAPP'"),
        ({"first_stage": "nothing.run"}, "unknown first stage 'nothing.run'"),
        ({"first_stage": "no.such.module:f"}, "no.such.module:f cannot be imported"),
        ({"first_stage": f"{__name__}:nothing"}, "cannot be imported"),
        ({"first_stage": f"{__name__}:no_stage"}, "return a transformer"),
        ({"first_stage": "os:sep"}, "os:sep is '/': name a function or a class"),
        ({"rerankers": {"x": "./nowhere"}}, "no model at ./nowhere"),
        ({"dtype": "int3"}, "--dtype is 'int3': it must be one of float32"),
    ],
)
def test_what_cannot_be_evaluated_is_one_line(options, tmp_path, changes, message):
    with pytest.raises(HarpError, match=message) as raised:
        evaluate(options(**changes, allow_functions=True))
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out" / "results.json").exists()


def test_a_first_stage_that_finds_nothing(options, make_dataset, tmp_path):
    with pytest.raises(HarpError, match="retrieved nothing for the 3 queries"):
        evaluate(options(dataset=make_dataset({"d1": "other words"})))
    foreign = tmp_path / "foreign.run"
    foreign.write_text("99 Q0 d1 0 1.0 x\n")
    with pytest.raises(HarpError, match="retrieved nothing for the 3 queries"):
        evaluate(options(first_stage=str(foreign)))
    assert not (tmp_path / "out" / "runs").exists()


def test_a_run_of_another_collection(options, tmp_path):
    foreign = tmp_path / "foreign.run"
    foreign.write_text("q1 Q0 LA-1 0 1.0 x\nq1 Q0 d1 1 0.5 x\n")
    with pytest.raises(HarpError, match=r"document 'LA-1' is not in dataset .* first stage"):
        evaluate(options(first_stage=str(foreign)))


def test_a_run_that_lacks_queries_or_judged_documents_is_told(options, tmp_path, caplog):
    foreign = tmp_path / "foreign.run"
    foreign.write_text("q1 Q0 LA-1 0 1.0 x\n")
    evaluate(options(first_stage=str(foreign), rerankers={}))
    assert "the first stage has no result for 2 of 3 queries" in caplog.text
    assert "no document that the first stage retrieved is judged in " in caplog.text


def test_a_dataset_without_judged_queries(options, make_dataset):
    with pytest.raises(HarpError, match="none of its 3 queries has a judgment"):
        evaluate(options(dataset=make_dataset(qrels=[("q9", "d1", 1)])))


def test_a_judgment_that_stands_twice_counts_once(options, make_dataset, tmp_path):
    """One provider of ir_measures counts lines."""
    given = {"measures": ["nDCG(dcg='exp-log2')@10", "AP"], "rerankers": {}}
    queries = {"1": "inverted index", "2": "hyperlinks"}  # numbers, as that provider needs them
    qrels = [("1", "d1", 2), ("1", "d5", 1), ("2", "d3", 1), ("2", "d1", 0)]
    names = [make_dataset(queries=queries, qrels=lines) for lines in (qrels, qrels + qrels)]
    once, twice = (
        evaluate(options(dataset=name, output_dir=str(tmp_path / name), **given)) for name in names
    )
    assert twice.per_query == once.per_query


def test_judgments_that_differ_are_told_before_anything_is_ranked(options, make_dataset, tmp_path):
    with pytest.raises(HarpError, match="query q1: document d1 is judged 2 and 0: keep one"):
        evaluate(options(dataset=make_dataset(qrels=[("q1", "d1", 2), ("q1", "d1", 0)])))
    assert not (tmp_path / "out" / "runs").exists()


def test_a_download_that_fails(options, tmp_path):
    def unreachable(name):
        mirror = RequestsDownload("http://127.0.0.1:9/nothing", tries=1)
        return Download([mirror], cache_path=tmp_path / name)

    if "test-unreachable" not in ir_datasets.registry:
        dataset = Dataset(
            TsvDocs(unreachable("docs"), namespace="x"),
            TsvQueries(unreachable("queries")),
            TrecQrels(unreachable("qrels"), {}),
        )
        ir_datasets.registry.register("test-unreachable", dataset)
    with pytest.raises(HarpError, match="cannot read dataset test-unreachable: Conn") as raised:
        evaluate(options(dataset="test-unreachable"))
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_vaswani_and_cranfield_are_reranked(irds_home, tiny_bert, tmp_path):
    for name, queries in (("vaswani", 93), ("cranfield", 225)):
        results = evaluate(
            EvaluationOptions(
                dataset=f"irds:{name}",
                rerankers={"tiny": str(tiny_bert)},
                depth=50,
                max_length=64,
                measures=["AP", "RR", "P@10"],
                output_dir=str(tmp_path / name),
                quiet=True,
            )
        )
        assert len(results.per_query["tiny"]["AP"]) == queries
        assert results.means["BM25"]["AP"] > 1.3 * results.means["tiny"]["AP"]
        assert results.p_values["tiny"]["AP"] < 0.001
