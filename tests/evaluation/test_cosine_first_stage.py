"""The cosine of an encoder as the first stage of an evaluation."""

import json

import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions, evaluate
from harp_plugin.evaluation.runs import read_run
from harp_plugin.ranking.dense import DenseCosine


@pytest.fixture
def options(dataset, tiny_bert, tmp_path):
    def make(**changes):
        given = {
            "dataset": dataset,
            "first_stage": f"cosine:{tiny_bert}",
            "depth": 4,
            "device": "cpu",
            "output_dir": str(tmp_path / "out"),
            "quiet": True,
        }
        return EvaluationOptions(**given | changes)

    return make


def test_a_cosine_as_first_stage(options, dataset, tiny_bert, tmp_path):
    results = evaluate(options())
    expected = DenseCosine(
        tiny_bert, dataset=dataset, index_dir=tmp_path / "other", num_results=4, device="cpu"
    )(JudgedDataset(dataset).topics)
    run = read_run(tmp_path / "out" / "runs" / "cosine.run")
    assert list(run["docno"]) == list(expected["docno"])
    assert run["score"].tolist() == pytest.approx(expected["score"].tolist(), abs=1e-6)
    assert list(results.means) == ["cosine"]


def test_a_cosine_as_reranker_and_the_report(options, dataset, tiny_bert, tmp_path):
    """All documents are candidates, so it ranks as the first stage does but for ties."""
    given = {"first_stage": "bm25", "rerankers": {"encoder": f"cosine:{tiny_bert}"}}
    results = evaluate(options(**given, report=True))
    collection = JudgedDataset(dataset)
    reranker = DenseCosine(tiny_bert, dataset=dataset, index_dir=tmp_path / "other", device="cpu")
    first = read_run(tmp_path / "out" / "runs" / "bm25.run")
    expected = reranker(collection.with_texts(first)).set_index(["qid", "docno"])["score"]
    run = read_run(tmp_path / "out" / "runs" / "encoder.run").set_index(["qid", "docno"])["score"]
    assert run.to_dict() == pytest.approx(expected.to_dict(), abs=1e-6)
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"{results.means['encoder']['nDCG@10']:.4f}" in page


def test_a_cosine_of_other_numbers_is_another_run(options, tiny_bert, tmp_path):
    given = {"first_stage": "bm25", "rerankers": {"encoder": f"cosine:{tiny_bert}"}}
    evaluate(options(**given))
    narrow = given | {"dtype": "bfloat16"}
    evaluate(options(**narrow, overwrite=True))
    evaluate(options(**narrow, output_dir=str(tmp_path / "fresh")))
    again, fresh = (tmp_path / name / "runs" / "encoder.run" for name in ("out", "fresh"))
    assert again.read_bytes() == fresh.read_bytes()


@pytest.mark.parametrize("role", ["first_stage", "rerankers"])
def test_another_encoder_at_the_same_path_makes_another_run(options, tiny_bert, tmp_path, role):
    """Its pooling alone is another."""
    modules = [Transformer(str(tiny_bert)), Pooling(32, pooling_mode="mean")]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "encoder"))
    name = f"cosine:{tmp_path / 'encoder'}"
    given = {"first_stage": name, "rerankers": {}}
    if role == "rerankers":
        given = {"first_stage": "bm25", "rerankers": {"cosine": name}}
    evaluate(options(**given))
    config = tmp_path / "encoder" / "1_Pooling" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "pooling_mode": "cls"}))
    with pytest.raises(HarpError, match=r"made from other settings \(.*--overwrite"):
        evaluate(options(**given))
    evaluate(options(**given, overwrite=True))
    evaluate(options(**given, output_dir=str(tmp_path / "fresh")))
    again, fresh = (tmp_path / name / "runs" / "cosine.run" for name in ("out", "fresh"))
    assert again.read_bytes() == fresh.read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first_stage": "cosine:no/such/model/at"}, "no model at no/such/model/at"),
        ({"tuning_dataset": "vaswani"}, "--tuning-dataset needs --first-stage fielded-bm25"),
        ({"tuning_queries": 9}, "--tuning-queries needs --tuning-dataset"),
    ],
)
def test_what_makes_no_sense(options, changes, message):
    with pytest.raises(HarpError, match=message):
        evaluate(options(**changes))
