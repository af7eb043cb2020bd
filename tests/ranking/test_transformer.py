"""`HarpReranker` as a PyTerrier transformer."""

import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
import torch
from pyterrier_caching import ScorerCache

from harp_plugin import HarpFusion, HarpReranker
from harp_plugin.errors import HarpError
from harp_plugin.ranking import Scorer


@pytest.fixture
def results():
    return pd.DataFrame(
        {
            "qid": ["1", "1", "2", "1"],
            "query": ["web links", "web links", "cats", "web links"],
            "docno": ["a", "b", "a", "c"],
            "title": ["Link", "Dog", "Link", "Link"],
            "text": ["a link leads on", "dogs bark", "a link leads on", "a link leads on"],
            "score": [3.0, 2.0, 9.0, 1.0],
            "rank": [0, 1, 0, 2],
            "origin": ["x", "y", "z", "w"],
        }
    )


@pytest.fixture(scope="module")
def rerank(tiny_bert):
    return HarpReranker(tiny_bert, max_length=64)


class TestPyTerrierContract(
    pt.testing.transformer_test_class(
        lambda: HarpReranker("no/weights/needed", text_field=("title", "text"))
    )
):
    """Inspection and schematics, without a model and without a network."""


def test_inspection_names_inputs_and_outputs(rerank):
    inputs = pt.inspect.transformer_inputs(rerank)
    assert inputs == [["qid", "docno", "query", "text"]]
    columns = ["qid", "query", "docno", "text", "score", "rank", "extra"]
    assert pt.inspect.transformer_outputs(rerank, columns) == [
        *["qid", "query", "docno", "text", "extra", "score", "rank"]
    ]


def test_every_argument_is_an_attribute(rerank):
    changed = pt.inspect.transformer_apply_attributes(rerank, max_length=32)
    assert (changed.model, changed.max_length, rerank.max_length) == (rerank.model, 32, 64)


def test_the_schematic_asks_no_network(rerank):
    schematic = pt.schematic.transformer_schematic(rerank)
    assert schematic["label"] == "HarpReranker" and schematic["help_url"] is None
    assert "HarpReranker" in pt.schematic.draw(rerank)


def test_scores_replace_the_old_and_all_else_survives(rerank, results, tiny_bert):
    before = results.copy(deep=True)
    ranked = rerank(results)
    pd.testing.assert_frame_equal(results, before)
    kept = ["qid", "query", "docno", "title", "text", "origin"]
    assert list(ranked.columns) == [*kept, "score", "rank"]
    pd.testing.assert_frame_equal(ranked[kept], results[kept])
    expected = Scorer(tiny_bert, max_length=64).score(list(results["query"]), list(results["text"]))
    np.testing.assert_array_equal(ranked["score"], expected.astype(np.float64))
    for _, rows in ranked.groupby("qid"):
        assert list(rows["rank"].sort_values()) == list(range(len(rows)))
        assert rows.sort_values("rank")["score"].is_monotonic_decreasing


@pytest.mark.parametrize("order", [["a", "c"], ["c", "a"]])
@pytest.mark.parametrize("order_by", ["rank", "score", "row"])
def test_ties_keep_the_order_of_the_first_stage(rerank, results, order, order_by):
    tied = results[results["qid"].eq("1") & results["docno"].isin(["a", "c"])]
    if order_by == "row":
        tied = tied.set_index("docno", drop=False).loc[order].drop(columns=["score", "rank"])
    else:
        tied = tied.drop(columns=["score", "rank"])
        place = tied["docno"].map(order.index)
        tied[order_by] = place if order_by == "rank" else -place
    ranked = rerank(tied.reset_index(drop=True))
    assert ranked["score"].nunique() == 1
    assert list(ranked.sort_values("rank")["docno"]) == order


def test_text_fields_are_joined_by_a_space(results, rerank, tiny_bert):
    joined = results.assign(text=results["title"] + " " + results["text"])
    several = HarpReranker(tiny_bert, text_field=["title", "text"], max_length=64)
    np.testing.assert_array_equal(several(results)["score"], rerank(joined)["score"])


def test_an_index_with_gaps_and_repeats_is_no_matter(rerank, results):
    ranked = rerank(results.set_axis([7, 7, 0, 3]))
    pd.testing.assert_frame_equal(ranked, rerank(results))


def test_an_empty_frame_stays_empty_and_loads_no_weights(results):
    ranked = HarpReranker("no/weights/needed")(results.head(0))
    assert len(ranked) == 0
    assert list(ranked.columns)[-2:] == ["score", "rank"]
    assert ranked["score"].dtype == np.float64 and ranked["rank"].dtype == np.int64


@pytest.mark.parametrize("column", ["qid", "query", "docno", "text"])
def test_a_missing_column_is_told_by_pyterrier(rerank, results, column):
    with pytest.raises(pt.validate.InputValidationError, match=rf"missing_columns=\['{column}'\]"):
        rerank(results.drop(columns=column))


@pytest.mark.parametrize("value", [None, float("nan"), 7, ["a", "list"]])
@pytest.mark.parametrize("column", ["text", "query"])
def test_a_value_that_is_no_text_names_its_row(rerank, results, column, value):
    bad = results.astype({column: object})
    bad.at[1, column] = value
    with pytest.raises(HarpError, match=f"column '{column}' of qid 1, docno b"):
        rerank(bad)


def test_equal_settings_make_equal_rerankers(tiny_bert):
    one = HarpReranker(tiny_bert, text_field="text")
    same = HarpReranker(str(tiny_bert), text_field=["text"], verbose=True)
    assert one == same and hash(one) == hash(same)
    assert one != HarpReranker(tiny_bert, max_length=9)
    assert one != Scorer(tiny_bert)
    two = HarpReranker(tiny_bert, device=["cpu", "cpu"], batch_tokens=64)
    assert hash(two) == hash(eval(repr(two))) and two == eval(repr(two)) != one
    assert eval(repr(one)) == one
    assert repr(HarpReranker("m", dtype="bf16")) == "HarpReranker('m', dtype='bfloat16')"


def test_a_subclass_may_score_otherwise_and_is_never_equal(tiny_bert):
    class Other(HarpReranker):
        pass

    assert Other(tiny_bert) == Other(tiny_bert)
    assert Other(tiny_bert) != HarpReranker(tiny_bert) != Other(tiny_bert)


def test_a_changed_attribute_changes_the_scores(tiny_bert, results):
    rerank = HarpReranker(tiny_bert, text_field="text")
    assert rerank.scorer is rerank.scorer
    text = rerank(results)["score"]
    rerank.set_parameter("text_field", "title")
    assert not np.allclose(rerank(results)["score"], text)


def test_it_pickles(rerank, results):
    copy = pickle.loads(pickle.dumps(rerank))
    pd.testing.assert_frame_equal(copy(results), rerank(results))


def test_progress_is_shown_when_asked(tiny_bert, results, capsys):
    HarpReranker(tiny_bert)(results)
    assert "pair" not in capsys.readouterr().err
    HarpReranker(tiny_bert, verbose=True)(results)
    assert "pair" in capsys.readouterr().err


def test_fit_in_a_pipeline_of_records(rerank, results):
    records = list(rerank(results.to_dict(orient="records")))
    assert [record["score"] for record in records] == list(rerank(results)["score"])


@pytest.mark.parametrize("dtype", ["bf16", "bfloat16", torch.bfloat16])
def test_a_dtype_has_its_short_name_and_that_of_torch(tiny_bert, dtype):
    reranker = HarpReranker(tiny_bert, dtype=dtype, allow_untrained=True)
    assert reranker.dtype == reranker.scorer.dtype == "bfloat16"
    assert Scorer(tiny_bert, dtype=dtype).dtype == "bfloat16"
    assert reranker == HarpReranker(tiny_bert, dtype="bfloat16", allow_untrained=True)


def test_batch_size_is_a_number_of_tokens(tiny_bert, results):
    named = HarpReranker(tiny_bert, batch_size=4, max_length=64, allow_untrained=True)
    plain = HarpReranker(tiny_bert, batch_tokens=256, max_length=64, allow_untrained=True)
    assert named == plain and named.scorer.batch_tokens == plain.scorer.batch_tokens == 256
    for more, tokens in (({}, 1024), ({"batch_tokens": 99}, 99)):
        reranker = HarpReranker(tiny_bert, batch_size=2, allow_untrained=True, **more)
        assert reranker.scorer.batch_tokens == tokens
    assert named.transform(results).equals(plain.transform(results))
    with pytest.raises(HarpError, match="batch_size"):
        HarpReranker(tiny_bert, batch_size=0)


def test_grid_search_chooses_the_weights_of_a_fusion():
    """PyTerrier's GridSearch and KFoldGridSearch find the weights that a plain loop finds."""
    topics = pd.DataFrame({"qid": ["1", "2", "3", "4"], "query": ["a", "b", "c", "d"]})
    qrels = pd.DataFrame({"qid": topics["qid"], "docno": ["x", "y", "x", "y"], "label": 1})

    def system(scores):
        rows = [(q, d, s) for q, of in scores.items() for d, s in of.items()]
        run = pd.DataFrame(rows, columns=["qid", "docno", "score"])
        return pt.Transformer.from_df(pt.model.add_ranks(run.merge(topics, on="qid")))

    wrong = {"x": 1.0, "y": 2.0, "z": 0.0}
    first = system({"1": wrong, "2": wrong, "3": wrong, "4": wrong})
    right = {"x": 3.0, "y": 0.0, "z": 0.0}
    second = system({"1": right, "2": right, "3": right, "4": right})
    fusion = HarpFusion({"first": first, "second": second})
    grid = [{"first": 1, "second": weight} for weight in (0, 0.5, 3)]

    def value(weights, part):
        table = pt.Experiment(
            [HarpFusion({"first": first, "second": second}, weights=weights)],
            topics[topics["qid"].isin(part)],
            qrels,
            ["recip_rank"],
        )
        return table["recip_rank"][0]

    part = topics[topics["qid"].isin(["1", "3"])]
    tuned = pt.GridSearch(fusion, {fusion: {"weights": grid}}, part, qrels, "recip_rank")
    assert tuned.weights == max(grid, key=lambda weights: value(weights, ["1", "3"]))
    folds = [topics[topics["qid"].isin(["1", "3"])], topics[topics["qid"].isin(["2", "4"])]]
    _, chosen = pt.KFoldGridSearch(fusion, {fusion: {"weights": grid}}, folds, qrels, "recip_rank")
    assert [setting[0][2] for setting in chosen] == [
        max(grid, key=lambda weights: value(weights, ["2", "4"])),
        max(grid, key=lambda weights: value(weights, ["1", "3"])),
    ]


class Raising(pt.Transformer):
    """A scorer that is never asked."""

    def transform(self, inp):
        raise AssertionError("a score was not kept")


def test_pyterrier_caching_keeps_the_scores(rerank, results, tmp_path):
    expected = rerank(results)
    with ScorerCache(tmp_path / "scores", rerank) as cache:
        pd.testing.assert_series_equal(cache(results)["score"], expected["score"])
    with ScorerCache(tmp_path / "scores", Raising()) as cache:
        again = cache(results)
        with pytest.raises(AssertionError, match="was not kept"):
            cache(results.assign(query="another"))
    pd.testing.assert_frame_equal(again[["score", "rank"]], expected[["score", "rank"]])
