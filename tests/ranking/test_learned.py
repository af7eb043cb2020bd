"""Learning to rank, compared with logistic regression and with what must be learned."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from lightgbm import Booster
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from harp_plugin import HarpPipeline
from harp_plugin.errors import HarpError
from harp_plugin.ranking import learned
from harp_plugin.ranking.fusion import StageBefore
from harp_plugin.ranking.learned import LearnedRanker

FEATURES = 4


def judged(queries, results, relevance, seed=0):
    """Random features of results, and judgments by which the result of most relevance is right."""
    draw = np.random.default_rng(seed)
    rows, labels = [], []
    for query in range(queries):
        features = draw.normal(size=(results, FEATURES))
        best = int(np.argmax(relevance(features)))
        for number, of_result in enumerate(features):
            docno = f"d{query}-{number}"
            rows.append((f"q{query}", f"query {query}", docno, -float(number), number, of_result))
            labels.append((f"q{query}", docno, int(number == best)))
    frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "score", "rank", "features"])
    return frame, pd.DataFrame(labels, columns=["qid", "docno", "label"])


def reciprocal_rank(results: pd.DataFrame, qrels: pd.DataFrame) -> float:
    merged = results.merge(qrels[qrels["label"] > 0], on=["qid", "docno"])
    return float((1 / (1 + merged["rank"])).mean())


def third(features):
    return features[:, 2]


def both_or_none(features):
    """A product, which no weighted sum of features orders."""
    return features[:, 0] * features[:, 1]


def test_pairs_of_results_are_logistic_regression():
    """With two results, the softmax is the logistic function of the difference of their scores."""
    frame, qrels = judged(60, 2, third)
    ranker = LearnedRanker().fit(frame, qrels)
    draw = np.stack(frame["features"].to_list()).reshape(60, 2, FEATURES)
    differences = np.sign(draw[:, 0] - draw[:, 1]) * 2  # of features with mean 0 and deviation 1
    first_is_right = qrels["label"].to_numpy().reshape(60, 2)[:, 0]
    reference = LogisticRegression(C=1 / (60 * learned._L2), fit_intercept=False, tol=1e-10)
    reference.fit(differences, first_is_right)
    assert ranker.learned["trees"] == []
    assert ranker.learned["linear"] == pytest.approx(reference.coef_[0].tolist(), abs=1e-3)


def test_few_queries_teach_a_linear_ranker():
    frame, qrels = judged(50, 10, third)
    ranker = LearnedRanker().fit(frame, qrels)
    unseen, unseen_qrels = judged(50, 10, third, seed=1)
    ranked = ranker.transform(unseen)
    assert (
        reciprocal_rank(unseen, unseen_qrels) < 0.5 < 0.95 < reciprocal_rank(ranked, unseen_qrels)
    )
    assert ranked["docno"].tolist() == unseen["docno"].tolist()


def test_trees_learn_what_no_sum_orders():
    frame, qrels = judged(400, 10, both_or_none)
    test = judged(100, 10, both_or_none, seed=2)
    linear = LearnedRanker(learned={"trees": [], "linear": [1, 1, 0, 0], "parts": [1, 0]})
    ranker = LearnedRanker().fit(frame, qrels)
    trees = ranker.learned["trees"]
    assert len(set(trees)) == 3
    assert all(Booster(model_str=text).num_feature() == 3 * FEATURES for text in trees)
    assert LearnedRanker(seed=7).fit(frame, qrels).learned["trees"] != trees
    ranker.learned = {**ranker.learned, "parts": [0, 1]}
    assert reciprocal_rank(ranker.transform(test[0]), test[1]) > 0.8
    assert reciprocal_rank(linear.transform(test[0]), test[1]) < 0.6


def test_importances_are_shares_of_features():
    linear = LearnedRanker().fit(*judged(50, 10, third)).importances
    ranker = LearnedRanker().fit(*judged(400, 10, both_or_none))
    trees = ranker.importances
    gains = [Booster(model_str=text).feature_importance("gain") for text in ranker.learned["trees"]]
    # Trees read each feature three times, FEATURES columns apart.
    of_feature = [sum(gain[n::FEATURES].sum() for gain in gains) for n in range(FEATURES)]
    assert trees.to_numpy() == pytest.approx(np.array(of_feature) / np.sum(gains))
    assert len(linear) == len(trees) == FEATURES
    assert linear.sum() == pytest.approx(1) and trees.sum() == pytest.approx(1)
    assert linear[2] > 0.7 and trees.iloc[:2].sum() > 0.7
    with pytest.raises(HarpError, match="has not learned yet"):
        _ = LearnedRanker().importances


def test_ids_may_be_numbers():
    frame, qrels = judged(50, 10, third)
    numbered = qrels.assign(qid=qrels["qid"].str[1:].astype(int))
    texts = frame.assign(qid=frame["qid"].str[1:])
    assert LearnedRanker().fit(texts, numbered).learned == LearnedRanker().fit(frame, qrels).learned


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_feature_that_is_no_finite_number_is_named(value):
    frame, qrels = judged(50, 10, third)
    frame.at[13, "features"] = np.array([0, 1, value, 3])
    said = rf"feature 2 of query 'q1' and document 'd1-3' is {value}: give finite features"
    with pytest.raises(HarpError, match=said):
        LearnedRanker().fit(frame, qrels)
    ranker = LearnedRanker().fit(*judged(50, 10, third))
    with pytest.raises(HarpError, match=said):
        ranker.transform(frame)


def test_features_have_names(tmp_path):
    """A saved pipeline keeps them; they change nothing else."""
    frame, qrels = judged(50, 10, third)
    names = ["BM25", "cosine", "title", "length"]
    ranker = LearnedRanker(feature_names=names).fit(frame, qrels)
    HarpPipeline(StageBefore() >> ranker).save(tmp_path)
    loaded = HarpPipeline.load(tmp_path)
    assert loaded.importances.index.tolist() == names
    assert loaded.importances.idxmax() == "title"
    plain = LearnedRanker().fit(frame, qrels)
    assert plain.learned == ranker.learned
    assert HarpPipeline(plain).importances.index.tolist() == [0, 1, 2, 3]
    assert HarpPipeline(StageBefore()).importances is None
    with pytest.raises(HarpError, match="4 features have 2 feature_names"):
        LearnedRanker(feature_names=["BM25", "cosine"]).fit(frame, qrels)


def test_trees_learn_what_depends_on_the_query():
    """A feature that all results of a query share says which other one counts."""

    def first_or_second(features):
        features[:, 3] = features[0, 3]
        return features[:, 0 if features[0, 3] > 0 else 1]

    ranker = LearnedRanker().fit(*judged(400, 10, first_or_second))
    ranker.learned = {**ranker.learned, "parts": [0, 1]}
    unseen, qrels = judged(200, 10, first_or_second, seed=1)
    assert reciprocal_rank(ranker.transform(unseen), qrels) > 0.8


def test_the_scores_of_both_rankers_are_added():
    """Each with mean 0 and deviation 1 within a query."""
    frame, qrels = judged(150, 10, both_or_none)
    ranker = LearnedRanker().fit(frame, qrels)
    sums = np.zeros(len(frame))
    for parts in ([1, 0], [0, 1]):
        of_part = LearnedRanker({**ranker.learned, "parts": parts}).transform(frame)
        scores = of_part["score"].to_numpy().reshape(150, 10)
        sums += ((scores - scores.mean(1)[:, None]) / scores.std(1)[:, None]).ravel()
    assert ranker.transform(frame)["score"].to_numpy() == pytest.approx(sums)


def test_dev_queries_change_nothing():
    frame, qrels = judged(150, 10, third)
    alone = LearnedRanker().fit(frame, qrels)
    assert LearnedRanker().fit(frame, qrels, *judged(50, 10, third, seed=1)) == alone


def test_shuffled_judgments_teach_nothing():
    frame, qrels = judged(200, 10, third)
    of_query = qrels.groupby("qid", sort=False)["label"]
    draw = np.random.default_rng(5)
    shuffled = qrels.assign(label=of_query.transform(lambda labels: draw.permutation(labels)))
    unseen, unseen_qrels = judged(300, 10, third, seed=1)
    ranked = LearnedRanker().fit(frame, shuffled).transform(unseen)
    by_chance = sum(1 / rank for rank in range(1, 11)) / 10
    assert reciprocal_rank(ranked, unseen_qrels) == pytest.approx(by_chance, abs=0.06)


def test_the_same_is_learned_by_any_number_of_threads():
    frame, qrels = judged(200, 20, third)
    with threadpool_limits(1):
        one = LearnedRanker().fit(frame, qrels).learned
    with threadpool_limits(2):
        assert LearnedRanker().fit(frame, qrels).learned == one


def test_the_order_of_rows_makes_no_difference():
    frame, qrels = judged(50, 10, third)
    ranker = LearnedRanker().fit(frame, qrels)
    shuffled = frame.sample(frac=1, random_state=0)
    weights = LearnedRanker().fit(shuffled, qrels).learned["linear"]
    assert weights == pytest.approx(ranker.learned["linear"], abs=1e-4)
    again = ranker.transform(shuffled).set_index(["qid", "docno"])["score"]
    expected = ranker.transform(frame).set_index(["qid", "docno"])["score"]
    pd.testing.assert_series_equal(again.sort_index(), expected.sort_index())


def test_a_pipeline_learns_and_is_saved(tmp_path):
    frame, qrels = judged(120, 10, third)
    results = frame.drop(columns="features")
    by_docno = dict(zip(frame["docno"], frame["features"], strict=True))
    scores = pt.apply.doc_score(lambda row: float(by_docno[row["docno"]][2]))
    pipeline = StageBefore() >> (scores ** StageBefore()) >> LearnedRanker()
    pipeline.fit(results, qrels, results, qrels)
    expected = pipeline.transform(results)
    assert reciprocal_rank(expected, qrels) > 0.9
    ranker = list(pipeline)[-1]
    kept = StageBefore() >> (StageBefore() ** StageBefore()) >> ranker
    HarpPipeline(kept).save(tmp_path)
    loaded = HarpPipeline.load(tmp_path)
    pd.testing.assert_frame_equal(loaded.transform(results), kept.transform(results))
    assert loaded.pipeline == kept
    assert repr(ranker) == "LearnedRanker(trained, seed=42)"


def test_what_is_learned_again_replaces_what_was_learned():
    """A ranker is asked between two lessons, or not; what it learned first is forgotten."""
    unseen, unseen_qrels = judged(50, 10, third, seed=1)
    ranker = LearnedRanker()
    for _ in range(3):
        ranker.fit(*judged(50, 10, lambda features: features[:, 0]))
        ranker.transform(unseen)
        ranker.fit(*judged(50, 10, lambda features: features[:, 1]))
        ranker.fit(*judged(50, 10, third))
        assert reciprocal_rank(ranker.transform(unseen), unseen_qrels) > 0.95


def test_a_saved_pipeline_learns(tmp_path):
    frame, qrels = judged(120, 10, third)
    HarpPipeline(StageBefore() >> LearnedRanker()).save(tmp_path)
    loaded = HarpPipeline.load(tmp_path)
    assert loaded.fit(frame, qrels) is loaded
    expected = (StageBefore() >> LearnedRanker().fit(frame, qrels)).transform(frame)
    pd.testing.assert_frame_equal(loaded.transform(frame), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f, q: (f, q.drop(columns="label")), "the judgments have no column label"),
        (lambda f, q: (f, q.assign(label=40 * q["label"])), "LightGBM cannot learn .*Label 40"),
        (
            lambda f, q: (f.assign(features=[*f["features"][:-1], np.ones(3)]), q),
            "results have 4 and 3 features: give each as many",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_one_line(change, message):
    frame, qrels = judged(120, 5, third)
    with pytest.raises(HarpError, match=message) as caught:
        LearnedRanker().fit(*change(frame, qrels))
    assert "\n" not in str(caught.value)


def test_judgments_may_be_texts_and_features_numbers():
    frame, qrels = judged(20, 5, third)
    numbers = frame.assign(features=[float(row[2]) for row in frame["features"]])
    ranker = LearnedRanker().fit(numbers, qrels.assign(label=qrels["label"].astype(str)))
    lists = frame.assign(features=[row[2:3] for row in frame["features"]])
    expected = LearnedRanker().fit(lists, qrels).transform(lists)
    assert ranker.transform(numbers)["score"].tolist() == expected["score"].tolist()


def test_what_cannot_be_ranked_is_refused():
    frame, qrels = judged(20, 5, third)
    with pytest.raises(HarpError, match="has not learned yet"):
        LearnedRanker().transform(frame)
    with pytest.raises(HarpError, match="no query has a relevant result"):
        LearnedRanker().fit(frame, qrels.assign(label=0))
    with pytest.raises(HarpError, match="no query has a relevant result"):
        LearnedRanker().fit(frame.iloc[:0], qrels)
    ranker = LearnedRanker().fit(frame, qrels)
    fewer = frame.assign(features=[row[:2] for row in frame["features"]])
    with pytest.raises(HarpError, match="learned from 4 features, and results have 2"):
        ranker.transform(fewer)
    assert ranker.transform(frame.iloc[:0]).empty
