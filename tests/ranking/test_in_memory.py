"""Models in memory: they score as the folders that they were loaded from."""

import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from harp_plugin import HarpPipeline, HarpReranker, Scorer
from harp_plugin.errors import HarpError
from harp_plugin.ranking.dense import DenseCosine

FRAME = pd.DataFrame(
    {
        "qid": ["1", "1", "2"],
        "query": ["web links", "web links", "cats"],
        "docno": ["a", "b", "a"],
        "text": ["a link leads on", "dogs bark", "a link leads on"],
    }
)


@pytest.fixture
def model(telling_bert):
    return AutoModelForSequenceClassification.from_pretrained(telling_bert)


@pytest.fixture
def tokenizer(telling_bert):
    return AutoTokenizer.from_pretrained(telling_bert)


@pytest.fixture
def cross_encoder(telling_bert):
    return CrossEncoder(str(telling_bert), device="cpu")


def test_a_model_with_its_tokenizer(telling_bert, model, tokenizer):
    reranker = HarpReranker(model, tokenizer=tokenizer)
    expected = HarpReranker(telling_bert, device="cpu")(FRAME)
    pd.testing.assert_frame_equal(reranker(FRAME), expected, atol=1e-5)
    kind = type(tokenizer).__name__
    assert repr(reranker) == f"HarpReranker(<{type(model).__name__}>, tokenizer=<{kind}>)"
    assert HarpReranker(model, tokenizer=tokenizer) == reranker != HarpReranker(telling_bert)
    assert (reranker**reranker).compile() != reranker


def test_another_tokenizer_is_another_reranker(model, tokenizer, telling_bert):
    other = AutoTokenizer.from_pretrained(telling_bert, do_lower_case=False)
    frame = FRAME.assign(query=FRAME["query"].str.upper())
    reranker, expected = (HarpReranker(model, tokenizer=each) for each in (tokenizer, other))
    assert reranker != expected
    assert not reranker(frame)["score"].equals(expected(frame)["score"])
    reranker.tokenizer = other
    assert reranker == expected
    pd.testing.assert_frame_equal(reranker(frame), expected(frame))


def test_a_cross_encoder_ranks_as_by_itself(cross_encoder):
    pairs = list(zip(FRAME["query"], FRAME["text"], strict=True))
    logits = cross_encoder.predict(pairs, activation_fn=lambda logits: logits)
    ranked = HarpReranker(cross_encoder, batch_size=2)(FRAME)
    np.testing.assert_allclose(ranked["score"], logits, atol=1e-5)
    assert repr(HarpReranker(cross_encoder)) == "HarpReranker(<CrossEncoder>)"


def test_a_default_prompt_is_refused(telling_bert, tmp_path):
    """Its scores are of other texts."""
    prompts = {"prompts": {"query": "search for: "}, "default_prompt_name": "query"}
    prompted = CrossEncoder(str(telling_bert), device="cpu", **prompts)
    with pytest.raises(
        HarpError, match="the default prompt of the model is not read: write it into"
    ):
        HarpReranker(prompted)(FRAME)
    prompted.save_pretrained(str(tmp_path))
    with pytest.raises(HarpError, match="take default_prompt_name out of config_sentence_tr"):
        HarpReranker(tmp_path)(FRAME)


def test_a_device_may_be_torchs_own(telling_bert):
    expected = HarpReranker(telling_bert, device="cpu")(FRAME)
    pd.testing.assert_frame_equal(
        HarpReranker(telling_bert, device=torch.device("cpu"))(FRAME), expected
    )
    several = HarpReranker(telling_bert, device=[torch.device("cpu"), "cpu"])
    assert several.device == ("cpu", "cpu")
    with pytest.raises(HarpError, match="device '0' cannot be used"):
        HarpReranker(telling_bert, device=0)(FRAME)


def test_a_batch_size_may_be_set_later(telling_bert):
    reranker = HarpReranker(telling_bert, device="cpu", max_length=20)
    reranker.batch_size = 3
    assert reranker.scorer.batch_tokens == 60
    reranker.batch_size = 2
    assert reranker.scorer.batch_tokens == 40


def test_a_cross_encoder_keeps_its_longest_input(telling_bert):
    long = FRAME.assign(text=FRAME["text"] * 9)
    short = CrossEncoder(str(telling_bert), device="cpu", max_length=12)
    expected = HarpReranker(telling_bert, device="cpu", max_length=12)(long)
    pd.testing.assert_frame_equal(HarpReranker(short)(long), expected, atol=1e-5)


def test_pickled_models_hold_their_weights(telling_bert, model, tokenizer):
    """Other weights than those of the folder whose name the model has."""
    model.classifier.weight.data.neg_()
    for made in (
        HarpReranker(model, tokenizer=tokenizer).scorer,
        Scorer(telling_bert, device="cpu"),
    ):
        again = pickle.loads(pickle.dumps(made))
        texts = FRAME["query"].tolist(), FRAME["text"].tolist()
        np.testing.assert_allclose(again.score(*texts), made.score(*texts), rtol=1e-4)


def test_the_cosine_of_a_sentence_transformer(telling_bert):
    encoder = SentenceTransformer(str(telling_bert), device="cpu")
    ranked = DenseCosine(encoder)(FRAME)
    pd.testing.assert_frame_equal(ranked, DenseCosine(telling_bert, device="cpu")(FRAME), atol=1e-5)
    assert repr(DenseCosine(encoder)) == "DenseCosine(<SentenceTransformer>)"
    with pytest.raises(HarpError, match="max_length is that of the model in memory"):
        DenseCosine(encoder, max_length=9)
    with pytest.raises(HarpError, match="which needs no index_dir"):
        DenseCosine(encoder, dataset="irds:vaswani", index_dir="x")


def test_models_that_do_not_score(model, cross_encoder, telling_bert, tmp_path):
    with pytest.raises(HarpError, match="package:NAME, or a CrossEncoder, or a model with"):
        HarpReranker(model)
    with pytest.raises(HarpError, match=r"model is <CrossEncoder>: name .*, or a SentenceTran"):
        DenseCosine(cross_encoder)
    with pytest.raises(HarpError, match="dtype is that of the model in memory: set it there"):
        HarpReranker(cross_encoder, dtype="bfloat16")
    with pytest.raises(HarpError, match="the model CrossEncoder is in memory: save it, and name"):
        HarpPipeline(HarpReranker(cross_encoder)).save(tmp_path)


def test_a_language_model_is_no_cross_encoder(wordpiece, tmp_path):
    """Qwen3-Reranker's form: a decoder that answers yes or no."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 16}
    heads = {"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 16}
    config = transformers.Qwen3Config(vocab_size=len(wordpiece), **sizes, **heads)
    decoder = transformers.Qwen3ForCausalLM(config)
    with pytest.raises(HarpError, match="is a language model, which gives logits for words"):
        HarpReranker(decoder, tokenizer=wordpiece)(FRAME)
    decoder.save_pretrained(tmp_path)
    wordpiece.save_pretrained(tmp_path)
    with pytest.raises(HarpError, match=r"has no trained weights for score\.weight"):
        HarpReranker(tmp_path)(FRAME)


def test_a_model_of_three_labels(telling_bert, tokenizer):
    model = AutoModelForSequenceClassification.from_pretrained(
        telling_bert, num_labels=3, ignore_mismatched_sizes=True
    )
    with pytest.raises(HarpError, match="has 3 labels: name a reranker with 1 or 2"):
        HarpReranker(model, tokenizer=tokenizer)(FRAME)


@pytest.mark.parametrize("make", [HarpReranker, DenseCosine])
def test_a_dataset_is_pickled_by_its_id(make, telling_bert):
    dataset = pt.get_dataset("irds:harp-encyclopedia")
    pipeline = make(telling_bert, dataset=dataset) % 5
    again = pickle.loads(pickle.dumps(pipeline))
    assert again == pipeline and again[0].dataset == "harp-encyclopedia"
    assert pipeline[0].dataset is dataset
    results = dataset.get_topics().head(1).assign(docno=dataset.get_qrels()["docno"].head(1))
    pd.testing.assert_frame_equal(again(results), pipeline(results))


def test_strict_sort_orders_rows_by_rank(telling_bert, monkeypatch):
    loose = HarpReranker(telling_bert, device="cpu")(FRAME.iloc[::-1])
    assert loose["qid"].tolist() == ["2", "1", "1"]
    monkeypatch.setattr(pt.model, "STRICT_SORT", True)
    strict = HarpReranker(telling_bert, device="cpu")(FRAME.iloc[::-1])
    assert strict[["qid", "rank"]].values.tolist() == [["1", 0], ["1", 1], ["2", 0]]
    expected = loose.sort_values(["qid", "rank"], ignore_index=True)
    pd.testing.assert_frame_equal(strict, expected)


def test_features_have_the_ranks_of_pyterrier_in_any_order_of_rows(telling_bert, monkeypatch):
    rows = FRAME.iloc[[2, 0, 1]]
    union = HarpReranker(telling_bert, device="cpu") ** HarpReranker(telling_bert, max_length=9)
    expected = union.compile()(rows)["rank"].tolist()
    assert expected == union(rows)["rank"].tolist()
    monkeypatch.setattr(pt.model, "STRICT_SORT", True)
    assert union.compile()(rows)["rank"].tolist() == expected


def test_arguments_that_a_model_does_not_read_are_refused(telling_bert, tokenizer, cross_encoder):
    rerankers = [HarpReranker(telling_bert, device="cpu"), cross_encoder]
    with pytest.raises(HarpError, match="give passages to each reranker in memory, not to all"):
        HarpReranker.ensemble(rerankers, passages="max")
    several = HarpReranker.ensemble(iter([telling_bert] * 2), device="cpu")
    assert several(FRAME)["score"].tolist() == rerankers[0](FRAME)["score"].tolist()
    alone = HarpReranker.ensemble(telling_bert, device="cpu")
    assert alone(FRAME)["score"].tolist() == rerankers[0](FRAME)["score"].tolist()
    for model in (telling_bert, cross_encoder):
        with pytest.raises(HarpError, match="has a tokenizer of its own: leave tokenizer out"):
            HarpReranker(model, tokenizer=tokenizer)
