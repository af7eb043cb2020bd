"""Learnt weights: the measures against ir_measures, the search, and when the first ranks alone."""

import pydoc
from functools import cache
from itertools import product

import ir_measures
import numpy as np
import pandas as pd
import pytest
from scipy.stats import sem, ttest_1samp

from harp_plugin import HarpFusion
from harp_plugin.errors import HarpError
from harp_plugin.ranking.candidates import read_candidates
from harp_plugin.ranking.fusion import fuse
from harp_plugin.ranking.fusion_weights import GRID, Gain, _Search
from harp_plugin.ranking.ranking_measures import MeasuredRankings, parse_measure
from harp_plugin.sampling import generator

DEPTH = 30


def simulated(rng, queries, strengths, start=0):
    """Runs and judgments of queries with one relevant document each.

    Args:
        rng: draws the scores.
        queries: how many.
        strengths: by the names of runs, by how many standard deviations the relevant document's
            score is above the others in the mean.
        start: number of the first query.
    """
    qids = [f"q{start + number}" for number in range(queries)]
    pairs = [(qid, f"d{number}") for qid in qids for number in range(DEPTH)]
    frame = pd.DataFrame(pairs, columns=["qid", "docno"])
    relevant = frame["docno"] == "d7"
    runs = {
        name: frame.assign(score=rng.normal(size=len(frame)) + strength * relevant)
        for name, strength in strengths.items()
    }
    return runs, frame[relevant].assign(label=1)


def mean(run, qrels, measure="RR@10"):
    names = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    parsed = ir_measures.parse_measure(measure)
    return ir_measures.calc_aggregate(
        [parsed], qrels.rename(columns=names), run.rename(columns=names)
    )[parsed]


@pytest.mark.parametrize(
    "name",
    [
        *("RR", "RR@10", "RR(rel=2)@5", "nDCG", "nDCG@10", "AP", "AP@5", "AP(rel=2)", "P@5"),
        *("R@10", "R(rel=3)@10", "Success@3", "Bpref"),
    ],
)
def test_measures_equal_those_of_ir_measures(name):
    """With several grades, queries without results or judgments, and few documents."""
    rng = np.random.default_rng(0)
    results = [
        (f"q{query}", f"d{document}", rng.normal())
        for query in range(20)
        for document in rng.permutation(60)[: rng.integers(1, 30)]
    ]
    run = pd.DataFrame(results, columns=["qid", "docno", "score"])
    judgments = [
        (f"q{query}", f"d{document}", int(rng.integers(-1, 4)))
        for query in range(2, 25)
        for document in rng.permutation(60)[:12]
    ]
    qrels = pd.DataFrame(judgments, columns=["qid", "docno", "label"])
    measure = parse_measure(name)
    candidates = read_candidates({"a": run}, normalization="zscore", candidates="first")
    measured = MeasuredRankings(candidates, qrels, measure)
    names = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    values = ir_measures.iter_calc(
        [measure], qrels.rename(columns=names), run.rename(columns=names)
    )
    expected = {value.query_id: value.value for value in values}
    np.testing.assert_allclose(
        measured.values(candidates.scores[0]), [expected.get(q, 0) for q in measured.qids]
    )


def test_an_equally_good_and_independent_system_is_fused():
    rng = np.random.default_rng(0)
    gains = []
    for number in range(3):
        runs, qrels = simulated(rng, 50, {"first": 2.0, "second": 2.0}, 1000 * number)
        learnt = HarpFusion.learn(runs, qrels, seed=number)
        assert not learnt.first_alone and 0.5 <= learnt.weights["second"] <= 2
        others, judged = simulated(rng, 200, {"first": 2.0, "second": 2.0}, 1000 * number + 500)
        fused = fuse(others, **learnt.arguments)
        gains.append(mean(fused, judged) - mean(others["first"], judged))
    assert min(gains) > 0.1


def test_a_system_without_a_weight_adds_no_documents():
    """The first finds nothing for half of the queries, for which the union has the second's."""
    qids = [f"q{number}" for number in range(40)]
    right = pd.DataFrame({"qid": qids, "docno": qids, "score": 1.0})
    qrels = right[["qid", "docno"]].assign(label=1)
    runs = {"first": right[:20], "second": right}
    learnt = HarpFusion.learn(runs, qrels, candidates="union")
    assert learnt.gain == pytest.approx(0.5) and not learnt.first_alone
    assert len(fuse(runs, learnt.weights, candidates="union")) == 40
    assert HarpFusion.learn(runs, qrels, candidates="first").first_alone


def test_ids_may_be_numbers():
    """`pd.read_csv` makes numbers of them; a run with both says so."""
    runs, qrels = simulated(np.random.default_rng(0), 50, {"first": 2.0, "second": 2.0})
    names = {name: number for number, name in enumerate(qrels["qid"].unique())}
    numbered = {name: run.assign(qid=run["qid"].map(names)) for name, run in runs.items()}
    judged = qrels.assign(qid=qrels["qid"].map(names))
    expected = HarpFusion.learn(numbered, judged).record
    assert not expected["first_alone"]
    texts = {name: run.astype({"qid": str}) for name, run in numbered.items()}
    assert HarpFusion.learn(texts, judged).record == expected
    assert HarpFusion.learn(texts, judged.astype({"qid": str})).record == expected
    with pytest.raises(HarpError, match="column 'qid' has texts and numbers"):
        HarpFusion.learn({"first": texts["first"], "second": numbered["second"]}, judged)


@pytest.mark.parametrize(("queries", "times"), [(5, 5), (50, 2)])
def test_noise_is_left_out(queries, times):
    rng = np.random.default_rng(queries)
    alone = []
    for number in range(times):
        strengths = {"first": 2.0, "noise": 0.0, "more": 0.0}
        runs, qrels = simulated(rng, queries, strengths)
        alone.append(HarpFusion.learn(runs, qrels, seed=number).first_alone)
    assert all(alone)


def test_noise_beside_a_good_system_gets_little_weight():
    rng = np.random.default_rng(3)
    runs, qrels = simulated(rng, 200, {"first": 2.0, "noise": 0.0, "good": 2.0})
    weights = HarpFusion.learn(runs, qrels).weights
    assert weights["noise"] <= 0.1 and weights["good"] >= 0.5


def search_of(runs, qrels, measure):
    @cache
    def measured(*names):
        used = {name: runs[name] for name in names}
        candidates = read_candidates(used, normalization="zscore", candidates="first")
        return candidates.scores, MeasuredRankings(candidates, qrels, parse_measure(measure))

    return _Search(list(runs), measured, seed=42)


def test_the_search_is_as_good_as_trying_every_weight():
    rng = np.random.default_rng(4)
    runs, qrels = simulated(rng, 60, {"a": 1.5, "b": 1.0, "c": 2.0})
    search = search_of(runs, qrels, "nDCG")
    values = {weights: search.values((1.0, *weights)) for weights in product(GRID, repeat=2)}
    for places in (np.arange(60), *rng.choice(60, (5, 60))):
        means = {weights: values[weights][places].mean() for weights in values}
        chosen = means[search.best(places)[1:]]
        assert chosen == pytest.approx(max(means.values()), abs=2e-3)


def test_weights_are_the_mean_over_resamples():
    rng = np.random.default_rng(4)
    runs, qrels = simulated(rng, 60, {"a": 1.5, "b": 1.0, "c": 2.0})
    learnt = HarpFusion.learn(runs, qrels, measure="nDCG", level=1)
    search = search_of(runs, qrels, "nDCG")
    draws = generator(42, "resamples").choice(60, (30, 60))
    expected = np.mean([search.best(places) for places in draws], axis=0)
    assert list(learnt.weights.values()) == pytest.approx(list(expected), abs=1e-4)
    assert learnt.weights["a"] == 1


@pytest.mark.slow
def test_the_mean_over_resamples_ranks_other_queries_better_than_the_best_point():
    differences = []
    for number in range(30):
        rng = np.random.default_rng(number)
        runs, qrels = simulated(rng, 60, {"a": 2.0, "b": 1.0, "c": 1.5})
        search = search_of(runs, qrels, "nDCG@10")
        few, others = np.split(rng.permutation(60), [10])
        mean, point = (search.values(find(few))[others] for find in (search.learn, search.best))
        differences.append(mean.mean() - point.mean())
    assert ttest_1samp(differences, 0, alternative="greater").pvalue < 0.05


def test_the_same_weights_for_any_order_of_rows():
    rng = np.random.default_rng(5)
    runs, qrels = simulated(rng, 30, {"a": 1.0, "b": 1.5})
    learnt = HarpFusion.learn(runs, qrels)
    shuffled = {name: run.sample(frac=1, random_state=1) for name, run in runs.items()}
    assert HarpFusion.learn(shuffled, qrels.sample(frac=1, random_state=2)) == learnt


def test_what_it_says(caplog):
    caplog.set_level("INFO", logger="harp_plugin")
    rng = np.random.default_rng(6)
    runs, qrels = simulated(rng, 40, {"BM25": 2.0, "model": 2.0})
    learnt = HarpFusion.learn(runs, qrels)
    assert str(learnt).startswith("weights are BM25 1, model ") and str(learnt) in caplog.text
    assert learnt.record["weights"] == learnt.weights and not learnt.record["first_alone"]
    few = HarpFusion.learn(runs, qrels.head(4))
    assert few.first_alone and few.weights == {"BM25": 1, "model": 0}
    assert "BM25 ranks alone: 4 judged queries are too few to learn weights from" in caplog.text
    runs["model"] = runs["model"].assign(score=rng.normal(size=len(runs["model"])))
    assert "BM25 ranks alone: on held-out parts of 40 judged" in str(HarpFusion.learn(runs, qrels))


def test_help_names_and_explains_each_argument():
    text = pydoc.render_doc(HarpFusion.learn, renderer=pydoc.plaintext)
    for name in ("runs", "qrels", "measure", "normalization", "candidates", "seed", "level"):
        assert f"{name}: '" in text and f"\n        {name}: " in text


def test_what_cannot_be_learnt_from_is_refused():
    runs, qrels = simulated(np.random.default_rng(8), 5, {"a": 1.0, "b": 1.0})
    with pytest.raises(HarpError, match="there are no judgments to learn from"):
        HarpFusion.learn(runs, qrels.head(0))
    with pytest.raises(HarpError, match="the judgments have no column label"):
        HarpFusion.learn(runs, qrels.drop(columns="label"))
    with pytest.raises(HarpError, match="unknown measure 'nonsense'"):
        HarpFusion.learn(runs, qrels, measure="nonsense")
    with pytest.raises(HarpError, match="level is 0: it must be above 0"):
        HarpFusion.learn(runs, qrels, level=0)
    with pytest.raises(HarpError, match="1 systems cannot be fused"):
        HarpFusion.learn({"a": runs["a"]}, qrels)


@pytest.mark.parametrize("level", [0.01, 0.05, 0.16, 0.6])
@pytest.mark.parametrize("mean", [-0.02, -0.005, 0.001, 0.02, 0.04, 0.06, 0.1])
def test_a_gain_is_sure_by_a_paired_t_test(level, mean):
    gains = np.random.default_rng(3).normal(0.02, 0.1, size=12)
    gains += mean - gains.mean()
    gain = Gain.from_queries(gains, level)
    assert gain.mean == pytest.approx(mean, abs=1e-12)
    assert gain.standard_error == pytest.approx(sem(gains))
    p = ttest_1samp(gains, 0, alternative="greater").pvalue
    assert gain.is_sure == (p < level and mean > 0)


def test_few_queries_or_equal_rankings_show_no_gain():
    assert not Gain.from_queries(np.zeros(9)).is_sure
    assert Gain.from_queries(np.full(4, 0.5)) == Gain(0.5, 0.0, is_sure=False)
    assert Gain.from_queries(np.full(5, 0.5)) == Gain(0.5, 0.0, is_sure=True)
    assert Gain.from_queries(np.array([0.5])) == Gain(0.5, 0.0, is_sure=False)
