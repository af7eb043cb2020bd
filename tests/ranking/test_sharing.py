"""Equality, hashing and fusion, proven by counting forward passes and tokenized texts."""

import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
import torch
from ir_measures import nDCG

from harp_plugin import HarpReranker, Scorer
from harp_plugin.errors import HarpError
from harp_plugin.ranking.combined import HarpEnsemble, HarpFeatures

TEXTS = ["a link leads on", "dogs bark", "the web is a graph", "a page about nothing"]
QUERIES = {"1": "web links", "2": "cats and dogs"}


@pytest.fixture
def passes():
    """A list that grows by one at each forward pass of a BERT."""
    seen = []

    def count(module, inputs):
        if type(module).__name__ == "BertEmbeddings":
            seen.append(module)

    hook = torch.nn.modules.module.register_module_forward_pre_hook(count)
    yield seen
    hook.remove()


@pytest.fixture
def tokenized(monkeypatch):
    """A list of all texts that are tokenized."""
    seen = []
    tokenize = Scorer.tokenize

    def counting(self, texts, **options):
        seen.extend(texts)
        return tokenize(self, texts, **options)

    monkeypatch.setattr(Scorer, "tokenize", counting)
    return seen


@pytest.fixture
def results():
    rows = [
        {"qid": qid, "query": query, "docno": f"d{place}", "text": text}
        for qid, query in QUERIES.items()
        for place, text in enumerate(TEXTS)
    ]
    frame = pd.DataFrame(rows)
    return frame.assign(score=-frame.index.to_numpy(float), rank=frame.index % len(TEXTS))


def experiment(systems, results, **options):
    topics = pd.DataFrame(QUERIES.items(), columns=["qid", "query"])
    qrels = pd.DataFrame({"qid": ["1", "2"], "docno": ["d2", "d1"], "label": [1, 1]})
    return pt.Experiment(systems, topics, qrels, [nDCG @ 10], **options)


def first_stage(results):
    return pt.Transformer.from_df(results.drop(columns="query"))


@pytest.mark.parametrize("how", [{"plan": "tree"}, {"precompute_prefix": True}])
@pytest.mark.filterwarnings("ignore:precompute_prefix:DeprecationWarning")
def test_an_experiment_runs_equal_rerankers_once(telling_bert, results, passes, how):
    stage = first_stage(results)
    systems = [
        stage >> HarpReranker(telling_bert, batch_tokens=1),
        stage >> HarpReranker(str(telling_bert), batch_tokens=1, text_field="text") % 2,
    ]
    apart = experiment(systems, results)
    assert len(passes) == 2 * len(results)
    passes.clear()
    shared = experiment(systems, results, **how)
    assert len(passes) == len(results)
    np.testing.assert_allclose(shared["nDCG@10"], apart["nDCG@10"])


def test_an_experiment_runs_different_rerankers_each(telling_bert, results, passes):
    stage = first_stage(results)
    rerankers = [HarpReranker(telling_bert, batch_tokens=1, max_length=n) for n in (6, 12)]
    experiment([stage >> reranker for reranker in rerankers], results, plan="tree")
    assert len(passes) == 2 * len(results)


def test_equal_pairs_take_one_forward_pass(telling_bert, results, passes):
    twice = pd.concat([results, results.assign(qid=results["qid"] + "b")])
    HarpReranker(telling_bert, batch_tokens=1)(twice)
    assert len(passes) == len(results)


def test_fused_features_equal_the_unfused_and_tokenize_once(
    telling_bert, another_bert, results, tokenized
):
    union = HarpReranker(telling_bert) ** HarpReranker(another_bert)
    expected = union(results)
    tokenized.clear()
    fused = union.compile()
    assert isinstance(fused, HarpFeatures)
    assert_equal_features(fused(results), expected)
    assert sorted(tokenized) == sorted([*TEXTS, *QUERIES.values()])


def test_three_are_fused_and_models_with_tiny_robertas_too(
    telling_bert, another_bert, tiny_roberta, results, tokenized
):
    models = [telling_bert, tiny_roberta, another_bert]
    one, two, three = (HarpReranker(model) for model in models)
    fused = (one ** (two**three)).compile()
    assert fused == HarpFeatures([one, two, three])
    assert_equal_features(fused(results), (one**two**three)(results))
    assert len(tokenized) == 2 * (len(TEXTS) + len(QUERIES))


def test_fused_features_are_fused_on_either_side():
    one, two, three = map(HarpReranker, "abc")
    left, right = HarpFeatures([one, two]), HarpFeatures([two, three])
    assert (left**three).compile() == (one**right).compile() == HarpFeatures([one, two, three])


def test_ensembles_and_features_pickle(telling_bert, another_bert, results):
    one, two = HarpReranker(telling_bert), HarpReranker(another_bert)
    for transformer in (
        HarpReranker.ensemble([one, two], weights=[1, 2]),
        HarpFeatures([one, two]),
    ):
        copy = pickle.loads(pickle.dumps(transformer))
        assert copy == transformer and hash(copy) == hash(transformer)
        pd.testing.assert_frame_equal(copy(results), transformer(results))


def test_fused_features_without_a_first_stages_rank_equal_the_unfused(
    telling_bert, another_bert, results
):
    union = HarpReranker(telling_bert, passages="max", passage_length=2) ** HarpReranker(
        another_bert
    )
    unranked = results.drop(columns=["score", "rank"])
    assert_equal_features(union.compile()(unranked), union(unranked))


def test_rerankers_of_different_texts_are_not_fused(telling_bert, results):
    union = HarpReranker(telling_bert) ** HarpReranker(telling_bert, text_field="docno")
    assert union.compile() == union
    constant = pt.apply.doc_score(lambda row: 1.0)
    assert len((HarpReranker(telling_bert) ** constant).compile()) == 2


def assert_equal_features(ours, expected):
    features = np.stack(ours.pop("features")), np.stack(expected.pop("features"))
    np.testing.assert_allclose(*features, atol=1e-6)
    assert np.ptp(features[1], axis=0).min() > 0.01
    pd.testing.assert_frame_equal(ours, expected, check_dtype=False)


class TestEnsembleContract(
    pt.testing.transformer_test_class(lambda: HarpReranker.ensemble(["no/weights", "needed"]))
):
    """Inspection and schematics of an ensemble, without a model and without a network."""


class TestFeaturesContract(
    pt.testing.transformer_test_class(
        lambda: HarpFeatures([HarpReranker("no/weights"), HarpReranker("needed")])
    )
):
    """The same of fused features."""


@pytest.mark.parametrize("normalization", [None, "minmax", "zscore"])
@pytest.mark.parametrize("weights", [None, [3, 1]])
def test_an_ensemble_is_the_weighted_mean(
    telling_bert, another_bert, results, tokenized, weights, normalization
):
    models = [telling_bert, another_bert]
    each = [HarpReranker(model)(results).set_index(["qid", "docno"])["score"] for model in models]
    if normalization == "minmax":
        each = [s.groupby("qid").transform(lambda x: (x - x.min()) / np.ptp(x)) for s in each]
    if normalization == "zscore":
        each = [s.groupby("qid").transform(lambda x: (x - x.mean()) / x.std(ddof=0)) for s in each]
    by_hand = (3 * each[0] + each[1]) / 4 if weights else (each[0] + each[1]) / 2
    tokenized.clear()
    ensemble = HarpReranker.ensemble(models, weights=weights, score_normalization=normalization)
    ranked = ensemble(results)
    np.testing.assert_allclose(ranked["score"], by_hand, atol=1e-5)
    assert sorted(tokenized) == sorted([*TEXTS, *QUERIES.values()])
    for _, rows in ranked.groupby("qid"):
        assert rows.sort_values("rank")["score"].is_monotonic_decreasing


@pytest.mark.parametrize("normalization", ["minmax", "zscore"])
def test_equal_scores_are_normalized_to_nought(telling_bert, results, normalization):
    ensemble = HarpReranker.ensemble([telling_bert], score_normalization=normalization)
    ranked = ensemble(results.assign(text="the same"))
    assert ranked["score"].tolist() == [0] * len(results)
    assert ranked["rank"].tolist() == results["rank"].tolist()


def test_ensembles_are_equal_by_members_weights_and_normalization(telling_bert, results):
    one = HarpReranker.ensemble(["a", "b"], max_length=9)
    assert one == HarpEnsemble([HarpReranker(m, max_length=9) for m in "ab"], weights=[1, 1])
    assert hash(one) == hash(eval(repr(one))) and one == eval(repr(one))
    for other in (
        HarpReranker.ensemble(["b", "a"], max_length=9),
        HarpReranker.ensemble(["a", "b"], max_length=9, weights=[1, 2]),
        HarpReranker.ensemble(["a", "b"], max_length=9, score_normalization="minmax"),
        HarpFeatures(one.rerankers),
    ):
        assert one != other


def test_empty_frames_load_no_weights(results):
    empty = results.head(0)
    for transformer in (HarpReranker.ensemble(["no/weights"]), HarpFeatures([HarpReranker("no")])):
        assert len(transformer(empty)) == 0
    assert HarpReranker.ensemble(["no/weights"])(empty)["score"].dtype == np.float64


def test_a_bad_row_of_an_ensemble_is_named(results):
    results.loc[5, "text"] = None
    with pytest.raises(HarpError, match="of qid 2, docno d1"):
        HarpReranker.ensemble(["no/weights"])(results)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": []}, "no reranker to combine"),
        ({"models": ["a"], "weights": [1, 2]}, "2 weights for 1 models"),
        ({"models": ["a", "b"], "weights": [1, -1]}, "none may be negative"),
        ({"models": ["a"], "weights": [0]}, "none may be negative or infinite, not all zero"),
        ({"models": ["a", "b"], "weights": [1, float("inf")]}, "none may be negative or infinite"),
        ({"models": ["a"], "weights": [float("nan")]}, "weights are"),
        ({"models": ["a"], "score_normalization": "softmax"}, "it must be one of minmax, zscore"),
        ({"models": [HarpReranker("a", text_field="b"), "a"]}, "different text fields"),
    ],
)
def test_bad_options_of_an_ensemble_are_refused(arguments, message):
    with pytest.raises(HarpError, match=message):
        HarpReranker.ensemble(**arguments)
