"""Fusion of systems as a PyTerrier transformer, against sums by hand."""

import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from harp_plugin import HarpFusion, HarpReranker
from harp_plugin.errors import HarpError
from harp_plugin.ranking.fusion import fuse

TOPICS = pd.DataFrame({"qid": ["1", "2"], "query": ["one", "two"]})


def results(scores, **columns):
    """Results of qid → docno → score; a transformer returns them for its queries."""
    rows = [(qid, docno, score) for qid, of in scores.items() for docno, score in of.items()]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"]).assign(**columns)


def retriever(scores, **columns):
    return pt.Transformer.from_df(results(scores, **columns))


def scores_of(frame, qid="1"):
    rows = frame[frame["qid"] == qid].sort_values("rank")
    return dict(zip(rows["docno"], rows["score"].round(6), strict=True))


FIRST = {"1": {"a": 3.0, "b": 2.0, "c": 1.0}, "2": {"x": 5.0, "y": 4.0}}
SECOND = {"1": {"c": 30.0, "d": 20.0, "a": 10.0}, "2": {"z": 1.0}}


class Counting(pt.Transformer):
    """Gives each row a score by its docno, and counts how often it runs."""

    schematic = {"label": "Counting", "help_url": None}  # noqa: RUF012

    def __init__(self, sign=1.0):
        self.sign = sign
        self.runs = 0

    def transform(self, inp):
        self.runs += 1
        return inp.assign(score=self.sign * inp["docno"].map(ord))


class Retriever(Counting):
    """Retrieves the first results."""

    def transform(self, inp):
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        self.runs += 1
        return retriever(FIRST, text="a text")(inp)


class TestContract(
    pt.testing.transformer_test_class(
        lambda: HarpFusion({"a": Retriever(), "b": Retriever() >> HarpReranker("no/weights")})
    )
):
    """Inspection and schematics of a fusion."""


class TestContractInAPipeline(
    pt.testing.transformer_test_class(
        lambda: HarpFusion.of_scores({"cross-encoder": HarpReranker("no/weights")})
    )
):
    """The same of a fusion of rerankers, without a model and without a network."""


def test_min_max_by_hand():
    """d is no candidate; b is not in the second run and gets its least score, 10."""
    fusion = HarpFusion(
        {"first": retriever(FIRST), "second": retriever(SECOND)},
        weights={"first": 1, "second": 0.5},
        normalization="minmax",
    )
    fused = fusion(TOPICS)
    assert scores_of(fused) == {"a": 1.0, "b": 0.5, "c": 0.5}
    assert scores_of(fused, "2") == {"x": 1.0, "y": 0.0}  # the second run has only z: all equal
    assert fused["rank"].tolist() == [0, 1, 2, 0, 1]


def test_z_scores_by_hand():
    """Over a, b, c the first run has 3, 2, 1 and the second 10, 10, 30."""
    fused = fuse({"one": results(FIRST), "two": results(SECOND)}, {"one": 1, "two": 1})
    unit = np.sqrt(3 / 2)
    low, high = (np.array([10, 30]) - 50 / 3) / np.std([10, 10, 30])
    expected = {"a": unit + low, "b": low, "c": -unit + high}
    assert scores_of(fused) == pytest.approx(expected, abs=1e-6)


def test_the_union_by_hand():
    """d gets the first run's least score, 1; the second run of query 2 leaves out x and y."""
    runs = {"first": results(FIRST), "second": results(SECOND)}
    fused = fuse(runs, {"first": 1, "second": 2}, normalization="minmax", candidates="union")
    assert scores_of(fused) == {"c": 2.0, "a": 1.0, "d": 1.0, "b": 0.5}
    assert scores_of(fused, "2") == {"x": 1.0, "y": 0.0, "z": 0.0}


def test_reciprocal_ranks_by_hand():
    runs = {"first": results(FIRST), "second": results(SECOND)}
    weights = {"first": 1, "second": 1}
    fused = fuse(runs, weights, normalization="rrf", candidates="union")
    expected = {"a": 1 / 61 + 1 / 63, "c": 1 / 63 + 1 / 61, "b": 1 / 62, "d": 1 / 62}
    assert scores_of(fused) == pytest.approx(expected, abs=1e-6)
    assert list(scores_of(fused)) == ["a", "c", "b", "d"]  # equal sums: in the first run's order


def test_reciprocal_ranks_equal_those_of_pyterrier_alpha():
    """Its constant is 61 where ours is 60, because its ranks begin with 0."""
    fusion = pytest.importorskip("pyterrier_alpha").fusion
    rng = np.random.default_rng(0)
    documents = [f"d{number}" for number in range(40)]
    frames = [
        results(
            {
                qid: dict(zip(rng.permutation(documents)[:30], rng.normal(size=30), strict=True))
                for qid in "123"
            },
            query="words",
        )
        for _ in range(3)
    ]
    theirs = fusion.rr_fusion(*[frame.copy() for frame in frames], k=61)
    runs = dict(zip("abc", frames, strict=True))
    ours = fuse(runs, dict.fromkeys("abc", 1), normalization="rrf", candidates="union")
    key = ["qid", "docno"]
    merged = theirs.merge(ours, on=key, suffixes=("_theirs", "_ours"), validate="1:1")
    assert len(merged) == len(theirs) == len(ours)
    np.testing.assert_allclose(merged["score_theirs"], merged["score_ours"])


@pytest.mark.parametrize("normalization", ["zscore", "minmax"])
def test_equal_scores_become_nought(normalization):
    constant = {"1": dict.fromkeys("abc", 0.1)}
    runs = {"first": results(constant), "second": results(SECOND)}
    fused = fuse(runs, {"first": 1, "second": 0}, normalization=normalization)
    assert scores_of(fused) == {"a": 0.0, "b": 0.0, "c": 0.0}


@pytest.mark.parametrize("normalization", ["zscore", "minmax"])
def test_the_largest_scores_that_there_are_can_be_added(normalization):
    huge = {"1": {"a": 1.7e308, "b": -1.7e308, "c": 0.0}}
    runs = {"first": results(huge), "second": results(SECOND)}
    fused = fuse(runs, {"first": 1, "second": 0}, normalization=normalization)
    assert np.isfinite(fused["score"]).all() and list(scores_of(fused)) == ["a", "c", "b"]


@pytest.mark.parametrize("normalization", ["zscore", "minmax", "rrf"])
def test_the_first_system_alone_keeps_its_ranking(normalization):
    rng = np.random.default_rng(1)
    run = results({"1": {f"d{n}": round(s, 1) for n, s in enumerate(rng.normal(size=200))}})
    alone = fuse({"first": run, "b": run}, {"first": 1, "b": 0}, normalization=normalization)
    assert (
        alone["docno"].tolist()
        == run.sort_values("score", ascending=False, kind="stable")["docno"].tolist()
    )


def test_rerankers_in_a_pipeline_take_the_results_before_them():
    first = retriever(FIRST, text="a text", own="kept")
    fusion = HarpFusion.of_scores({"letters": Counting()}, weights={"first stage": 0, "letters": 1})
    fused = (first >> fusion)(TOPICS)
    assert list(scores_of(fused)) == ["c", "b", "a"]
    assert sorted(fused.columns) == ["docno", "own", "qid", "query", "rank", "score", "text"]


def test_the_first_system_of_pipelines_runs_once():
    first, second, third = Retriever(), Counting(), Counting(-1)
    fusion = HarpFusion({"first": first, "second": first >> second, "third": first >> third})
    fused = fusion(TOPICS)
    assert (first.runs, second.runs, third.runs) == (1, 1, 1)
    assert list(scores_of(fused)) == ["a", "b", "c"]


def test_a_system_of_weight_nought_is_not_run():
    second = Counting()
    first = retriever(FIRST)
    fusion = HarpFusion({"a": first, "b": first >> second}, weights={"a": 1, "b": 0})
    fusion(TOPICS)
    assert second.runs == 0


def test_a_first_system_of_weight_nought_gives_the_candidates_alone():
    runs = {"first": results(FIRST), "second": results(SECOND)}
    weights = {"first": 0, "second": 1}
    assert list(scores_of(fuse(runs, weights))) == ["c", "a", "b"]
    assert list(scores_of(fuse(runs, weights, candidates="union"))) == ["c", "d", "a"]


def test_queries_without_results_and_empty_frames():
    runs = {"first": results(FIRST), "second": results(SECOND)}
    fusion = HarpFusion({name: pt.Transformer.from_df(run) for name, run in runs.items()})
    assert fusion(pd.DataFrame({"qid": ["9"], "query": ["nothing"]})).empty
    empty = fusion(TOPICS.head(0))
    assert empty.empty and {"qid", "docno", "score", "rank"} <= set(empty.columns)


def test_inspection_asks_for_the_fewest_columns():
    """A system that searches or reranks needs queries alone."""

    def needs(*inputs):
        system = pt.Transformer.from_df(results(FIRST))
        system.transform_inputs = lambda: [list(columns) for columns in inputs]
        return system

    both = ("qid", "query", "docno"), ("qid", "query")
    fusion = HarpFusion({"a": needs(("qid", "query")), "b": needs(*both)}, candidates="union")
    assert pt.inspect.transformer_inputs(fusion) == [["qid", "query"]]


def test_equality_hash_and_pickle():
    first = HarpReranker("a")
    weights = {"first stage": 1, "model": 2}
    one = HarpFusion.of_scores({"model": first}, weights=weights)
    same = HarpFusion.of_scores(
        {"model": HarpReranker("a")}, weights=dict([*weights.items()][::-1])
    )
    assert one == same and hash(one) == hash(same)
    assert pickle.loads(pickle.dumps(one)) == one
    for other in (
        HarpFusion.of_scores({"model": first}),
        HarpFusion.of_scores({"model": HarpReranker("b")}, weights=one.weights),
        HarpFusion.of_scores({"model": first}, weights=one.weights, normalization="minmax"),
        HarpFusion(one.systems, weights=one.weights, candidates="union"),
    ):
        assert one != other


@pytest.mark.parametrize(
    ("value", "written"), [(float("nan"), "nan"), (float("inf"), "inf"), (float("-inf"), "-inf")]
)
def test_a_score_that_is_no_finite_number_is_named(value, written):
    bad = {"1": {"a": 1.0, "b": value}}
    message = f"system 'second' gives document b of qid 1 the score {written}: "
    with pytest.raises(HarpError, match=message):
        fuse({"first": results(FIRST), "second": results(bad)}, {"first": 1, "second": 1})


def test_a_document_that_stands_twice_is_named():
    twice = pd.concat([results(FIRST), results({"2": {"y": 1.0}})])
    with pytest.raises(HarpError, match="system 'first' lists document y twice for qid 2"):
        fuse({"first": twice, "second": results(SECOND)}, {"first": 1, "second": 1})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": {"first": 1}}, "system 'second' has no weight"),
        ({"weights": {"first": 1, "second": 1, "x": 1}}, "no system 'x' for its weight"),
        ({"weights": {"first": 1, "second": -1}}, "finite number and not negative"),
        ({"weights": {"first": 1, "second": float("nan")}}, "finite number and not negative"),
        ({"weights": {"first": 0, "second": 0}}, "all weights are 0"),
        ({"normalization": "softmax"}, "it must be one of zscore, minmax, rrf"),
        ({"candidates": "all"}, "it must be one of first, union"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    systems = {"first": retriever(FIRST), "second": retriever(SECOND)}
    with pytest.raises(HarpError, match=message):
        HarpFusion(systems, **arguments)
    fusion = HarpFusion(systems)  # as a grid search sets what it tries
    for name, value in arguments.items():
        setattr(fusion, name, value)
    with pytest.raises(HarpError, match=message):
        fusion(TOPICS)


def test_what_cannot_be_fused_is_refused():
    with pytest.raises(HarpError, match="1 systems cannot be fused"):
        HarpFusion({"first": retriever(FIRST)})
    with pytest.raises(HarpError, match="system 'b' is 'bm25': name a transformer"):
        HarpFusion({"a": retriever(FIRST), "b": "bm25"})
    with pytest.raises(HarpError, match="'first stage' is the name of a reranker"):
        HarpFusion.of_scores({"first stage": retriever(FIRST)})
    no_score = results(FIRST).drop(columns="score")
    with pytest.raises(HarpError, match="system 'a' gives no column score"):
        fuse({"a": no_score, "b": results(SECOND)}, {"a": 1, "b": 1})
