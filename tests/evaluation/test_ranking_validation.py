"""What training is told of its ranking is what an evaluation finds."""

import pytest
from transformers import AutoModelForSequenceClassification

from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions, evaluate
from harp_plugin.evaluation.validation import RankingValidation
from harp_plugin.models.bi_encoder import TrainableBiEncoder
from harp_plugin.models.loading import load_tokenizer
from harp_plugin.training.validation import ValidationOptions

MEASURES = ["nDCG@10", "RR@10", "NDCG@3"]


@pytest.fixture
def bert(tiny_bert):
    """The tiny BERT in memory, and its tokenizer."""
    model = AutoModelForSequenceClassification.from_pretrained(tiny_bert)
    return model.eval(), load_tokenizer(str(tiny_bert))


def validation_of(tmp_path, query_ids=None, seed=42, quiet=True, **changes):
    options = {
        "validation_dataset": "harp-encyclopedia",
        "validation_queries": 8,
        "validation_depth": 5,
        "validation_measures": MEASURES,
    }
    return RankingValidation(
        ValidationOptions(**options | changes),
        query_ids=query_ids,
        seed=seed,
        max_length=48,
        index_dir=tmp_path / "index",
        quiet=quiet,
    )


@pytest.mark.parametrize("quiet", [True, False])
def test_a_bar_shows_what_a_validation_scores(bert, tmp_path, capsys, quiet):
    validation = validation_of(tmp_path, quiet=quiet)
    capsys.readouterr()
    validation(*bert)
    assert ("validate" in capsys.readouterr().err) == (not quiet)


@pytest.mark.parametrize("first_stage", ["bm25", "run"])
def test_measures_are_those_of_an_evaluation(first_stage, bert, tiny_bert, tmp_path):
    evaluation = EvaluationOptions(
        dataset="harp-encyclopedia",
        rerankers={"tiny": str(tiny_bert)},
        depth=5,
        measures=["nDCG@10", "RR@10", "nDCG@3"],
        max_length=48,
        output_dir=str(tmp_path / "evaluation"),
        quiet=True,
    )
    results = evaluate(evaluation)
    run = str(tmp_path / "evaluation" / "runs" / "bm25.run") if first_stage == "run" else None
    validation = validation_of(tmp_path, validation_run=run)
    found = validation(*bert)
    assert list(found) == MEASURES and len(validation.queries) == 8
    for name, measure in zip(MEASURES, evaluation.measures, strict=True):
        values = results.per_query["tiny"][measure]
        expected = sum(values[query] for query in validation.queries) / 8
        assert found[name] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("is_packed", [True, False])
def test_an_encoder_reranks_by_its_vectors(is_packed, tiny_bert, tmp_path, monkeypatch):
    name, tokenizer = str(tiny_bert), load_tokenizer(str(tiny_bert))
    evaluation = EvaluationOptions(
        dataset="harp-encyclopedia",
        rerankers={"tiny": f"cosine:{name}"},
        depth=5,
        measures=["nDCG@10"],
        output_dir=str(tmp_path / "evaluation"),
        quiet=True,
    )
    values = evaluate(evaluation).per_query["tiny"]["nDCG@10"]
    if not is_packed:
        monkeypatch.setattr("harp_plugin.ranking.batches.can_pack", lambda config: False)
    model = TrainableBiEncoder.load(name).eval()
    validation = validation_of(tmp_path, validation_measures=["nDCG@10"])
    found = validation(model.ranking_model(), tokenizer, model.files)
    expected = sum(values[query] for query in validation.queries) / 8
    assert found == {"nDCG@10": pytest.approx(expected, abs=1e-9)}


def test_queries_are_drawn_by_the_seed_and_nest(tmp_path):
    eight, again = validation_of(tmp_path), validation_of(tmp_path)
    four = validation_of(tmp_path, validation_queries=4)
    assert eight.queries == again.queries and set(four.queries) < set(eight.queries)
    assert set(validation_of(tmp_path, seed=1).queries) != set(eight.queries)


def test_queries_from_a_file(tmp_path):
    files = [tmp_path / "theirs.txt", tmp_path / "ours.txt"]
    ids = validation_of(tmp_path).queries
    for file, part in zip(files, (ids[:2], ids[3:6]), strict=True):
        file.write_text("\n".join(part))
    theirs, ours = map(str, files)
    assert validation_of(tmp_path, query_ids=theirs).queries == ids[:2]
    named = validation_of(tmp_path, query_ids=theirs, validation_query_ids=ours)
    assert named.queries == ids[3:6]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"validation_dataset": "vaswany"}, "unknown dataset 'vaswany'"),
        ({"validation_measures": ["nDGC@10"]}, "unknown measure 'nDGC@10'"),
        ({"validation_run": "no.run"}, r"validation_run no\.run: there is no such file"),
        ({"validation_query_ids": "no.txt"}, r"cannot read query_ids no\.txt"),
    ],
)
def test_wrong_options(changes, message, tmp_path):
    with pytest.raises(HarpError, match=message):
        validation_of(tmp_path, **changes)


def test_the_datasets_own_run(make_dataset, bert, tmp_path):
    import ir_datasets

    name = make_dataset()
    run = tmp_path / "scored.run"
    lines = ["q1 Q0 d5 1 9.0 t", "q1 Q0 d1 2 8.0 t", "q1 Q0 d3 3 7.0 t", "q2 Q0 d4 1 2.0 t"]
    run.write_text("\n".join(lines) + "\n")
    plain = ir_datasets.load(name)
    scored = ir_datasets.formats.TrecScoredDocs(ir_datasets.util.Cache(None, run))
    dataset = ir_datasets.Dataset(
        *(plain.docs_handler(), plain.queries_handler(), plain.qrels_handler()), scored
    )
    ir_datasets.registry.register(f"{name}-scored", dataset)
    validation = validation_of(
        tmp_path,
        validation_dataset=f"{name}-scored",
        validation_depth=2,
        validation_measures=["R@2"],
    )
    # q1's top two are its relevant two; q2's only result is not relevant; q3 has none.
    assert validation(*bert) == {"R@2": pytest.approx(1 / 3)}
    assert not (tmp_path / "index").exists()
