"""The scorer against transformers, one pair at a time."""

import pickle

import numpy as np
import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
)

from harp_plugin import Scorer
from harp_plugin.errors import HarpError
from harp_plugin.models.pairs import PairTemplate, TokenPairs
from harp_plugin.models.pooling import padded_inputs
from harp_plugin.models.tokenizing import tokenize
from harp_plugin.ranking.tokens import LazyTokens

MAX_LENGTH = 48

QUERIES = ["what is a hyperlink", "", "a", "😀 who?", "مرحبا بالعالم", "nul \0 byte", "[SEP] </s>"]
DOCUMENTS = [
    "A hyperlink is a reference that a reader can follow.",
    "",
    "x",
    "long document " * 80,
    "emoji 👩‍👩‍👧‍👦 and 🏳️‍🌈 flags",
    "עברית, a right-to-left script \u200f with marks",
    "a NUL \0 inside",
    " \t\n ",
    "[CLS] <s> [MASK] special words",
    "\u0065\u0301 combining, ﬁ ligature, \u00a0 space, \ufffd",
]


def reference(folder, queries, documents, max_length=MAX_LENGTH) -> list[float]:
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    scores = []
    for query, document in zip(queries, documents, strict=True):
        inputs = tokenizer(
            [query],
            [document],
            truncation="longest_first",
            max_length=max_length,
            return_tensors="pt",
        )
        with torch.inference_mode():
            scores.append(model(**inputs).logits[0, 0].item())
    return scores


def every_pair():
    queries = [query for query in QUERIES for _ in DOCUMENTS]
    return queries, DOCUMENTS * len(QUERIES)


@pytest.mark.parametrize("batch_tokens", [1, 100, 8192])
def test_scores_equal_transformers_one_pair_at_a_time(reranker, batch_tokens):
    queries, documents = every_pair()
    scorer = Scorer(reranker, max_length=MAX_LENGTH, batch_tokens=batch_tokens)
    scores = scorer.score(queries, documents)
    assert scores.shape == (len(queries),) and scores.dtype == np.float32
    np.testing.assert_allclose(scores, reference(reranker, queries, documents), atol=1e-5)
    assert np.ptp(scores) > 0.01, "scores that hardly differ prove nothing"


def test_the_limit_is_what_the_model_has_positions_for(reranker, byte_level):
    document = "many words that go on and on " * 3000
    limit = 66 - (byte_level.pad_token_id + 1) * reranker.name.startswith("Roberta")
    scores = Scorer(reranker).score(["query"], [document])
    np.testing.assert_allclose(scores, reference(reranker, ["query"], [document], limit), atol=1e-5)


def test_order_of_the_input_is_kept(tiny_bert):
    queries, documents = every_pair()
    shuffled = np.random.default_rng(0).permutation(len(queries))
    scorer = Scorer(tiny_bert, batch_tokens=64, max_length=MAX_LENGTH)
    scores = scorer.score(queries, documents)
    again = scorer.score([queries[i] for i in shuffled], [documents[i] for i in shuffled])
    np.testing.assert_allclose(again, scores[shuffled], atol=1e-6)


def test_equal_pairs_have_equal_scores_wherever_they_stand(tiny_bert):
    queries, documents = every_pair()
    scores = Scorer(tiny_bert, batch_tokens=100).score(queries * 2, documents * 2)
    assert (scores[: len(queries)] == scores[len(queries) :]).all()


def test_an_overlong_query_leaves_half_of_the_room_to_the_document(wordpiece):
    sides = (list(tokenize([text * 90], wordpiece, 43)) for text in ("q ", "d "))
    pairs = TokenPairs(*sides, PairTemplate.from_tokenizer(wordpiece), 43)
    ids = pairs.packed(np.array([0])).ids
    assert wordpiece.decode(ids).split() == ["[CLS]", *"q" * 20, "[SEP]", *"d" * 20, "[SEP]"]


def test_an_overlong_query_without_document_is_scored(reranker):
    scores = Scorer(reranker, max_length=MAX_LENGTH).score(["long query " * 99] * 2, ["", "word"])
    assert np.isfinite(scores).all()


def test_no_batch_is_over_the_budget_and_every_pair_is_in_one(wordpiece):
    sides = (list(tokenize(texts, wordpiece, MAX_LENGTH)) for texts in every_pair())
    pairs = TokenPairs(*sides, PairTemplate.from_tokenizer(wordpiece), MAX_LENGTH)
    seen = []
    for places in pairs.batches(200):
        batch = pairs.packed(places)
        assert batch.lengths.max() * len(batch.lengths) <= 200
        assert len(batch.ids) == len(batch.types) == batch.lengths.sum()
        assert (np.diff(batch.lengths) >= 0).all()
        seen.extend(places)
    assert sorted(seen) == list(range(len(pairs))) and len(pairs) == len(QUERIES) * len(DOCUMENTS)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_batches_are_the_tokenizers(wordpiece, side):
    queries, documents = every_pair()
    tokens = (list(tokenize(texts, wordpiece, MAX_LENGTH)) for texts in (queries, documents))
    pairs = TokenPairs(*tokens, PairTemplate.from_tokenizer(wordpiece), MAX_LENGTH)
    for places in pairs.batches(300):
        expected = wordpiece(
            [queries[place] for place in places],
            [documents[place] for place in places],
            truncation="longest_first",
            max_length=MAX_LENGTH,
            padding=True,
            padding_side=side,
            return_tensors="np",
        )
        packed = pairs.packed(places)
        ids, types = torch.from_numpy(packed.ids), torch.from_numpy(packed.types)
        padding = wordpiece.pad_token_id
        found, _ = padded_inputs(ids, packed.lengths, types, padding, left=side == "left")
        assert found.keys() == expected.keys()
        for name, values in found.items():
            np.testing.assert_array_equal(values, expected[name])


def test_each_distinct_text_is_tokenized_once_and_forgotten(wordpiece, monkeypatch):
    tokenized = []

    def counting(texts, *options):
        tokenized.extend(texts)
        return tokenize(texts, *options)

    monkeypatch.setattr("harp_plugin.ranking.tokens.tokenize", counting)
    places = np.array([0, 1, 1, 2, 0, 3, 1])
    tokens = LazyTokens(DOCUMENTS, np.bincount(places), wordpiece, MAX_LENGTH)
    for part in np.split(places, [3, 5]):
        expected = wordpiece([DOCUMENTS[place] for place in part], add_special_tokens=False)
        for ids, whole in zip(tokens.read(part), expected["input_ids"], strict=True):
            np.testing.assert_array_equal(ids, whole[:MAX_LENGTH])
    assert tokenized == DOCUMENTS[:4]
    assert not tokens._ids


def test_weights_are_lazy(tiny_bert):
    scorer = Scorer(tiny_bert)
    assert scorer.score([], []).shape == (0,)
    assert "_forward" not in vars(scorer)
    score = scorer.score(["a"], ["b"])
    assert "_forward" in vars(scorer)
    copied = pickle.loads(pickle.dumps(scorer))
    assert "_forward" not in vars(copied)
    np.testing.assert_array_equal(copied.score(["a"], ["b"]), score)


def test_two_logits_are_one_score(tmp_path, wordpiece):
    model = BertForSequenceClassification(BertConfig(**small_bert(wordpiece), num_labels=2))
    model.eval().save_pretrained(tmp_path)
    wordpiece.save_pretrained(tmp_path)
    with torch.inference_mode():
        logits = model(**wordpiece(["a"], ["b"], return_tensors="pt")).logits[0]
    np.testing.assert_allclose(
        Scorer(tmp_path).score(["a"], ["b"]), [(logits[1] - logits[0]).item()], atol=1e-6
    )


def test_three_labels_are_refused(tmp_path, wordpiece):
    BertForSequenceClassification(
        BertConfig(**small_bert(wordpiece), num_labels=3)
    ).save_pretrained(tmp_path)
    wordpiece.save_pretrained(tmp_path)
    with pytest.raises(HarpError, match="has 3 labels"):
        Scorer(tmp_path).score(["a"], ["b"])


@pytest.mark.parametrize("auto_class", [AutoModel, AutoModelForMaskedLM])
def test_a_checkpoint_without_head_is_refused_unless_allowed(
    tmp_path, wordpiece, tiny_bert, auto_class
):
    auto_class.from_pretrained(tiny_bert).save_pretrained(tmp_path)
    wordpiece.save_pretrained(tmp_path)
    with pytest.raises(HarpError, match=r"no trained weights for .*classifier\.bias"):
        Scorer(tmp_path).score(["a"], ["b"])
    before = torch.get_rng_state()
    untrained = [
        Scorer(tmp_path, allow_untrained=True, seed=seed).score(["a"], ["b"])[0]
        for seed in (0, 0, 1)
    ]
    assert untrained[0] == untrained[1] != untrained[2]
    assert torch.equal(before, torch.get_rng_state())


def test_scores_that_are_no_numbers_are_refused(tmp_path, tiny_bert, wordpiece):
    model = BertForSequenceClassification.from_pretrained(tiny_bert).eval()
    model.classifier.bias.data.fill_(float("nan"))
    with pytest.raises(HarpError, match=r"gives nan for 2 of 2 pairs.*'a'.*'b'"):
        Scorer.from_model(model, wordpiece).score(["a", "c"], ["b", "d"])
    model.save_pretrained(tmp_path)
    wordpiece.save_pretrained(tmp_path)
    with pytest.raises(HarpError, match="gives nan for 2 of 2 pairs"):
        Scorer(tmp_path).score(["a", "c"], ["b", "d"])


def test_low_precision_is_close(tiny_bert):
    queries, documents = every_pair()
    exact = Scorer(tiny_bert).score(queries, documents)
    half = Scorer(tiny_bert, dtype="bfloat16").score(queries, documents)
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, exact, atol=0.02)
    assert (half != exact).any()


@pytest.mark.parametrize(
    ("queries", "documents", "options", "message"),
    [
        (["a"], [], {}, "1 queries but 0 documents"),
        (["a"], [None], {}, "document 0 is None"),
        ([["a"]], ["b"], {}, r"query 0 is \['a'\]"),
        (["a"], ["b"], {"max_length": 3}, "max_length is 3: .* takes 5 to 512"),
        (["a"], ["b"], {"max_length": 999}, "max_length is 999"),
        (["a"], ["b"], {"device": "abacus"}, "device 'abacus' cannot be used"),
    ],
)
def test_bad_input_is_named(tiny_bert, queries, documents, options, message):
    with pytest.raises(HarpError, match=message):
        Scorer(tiny_bert, **options).score(queries, documents)


@pytest.mark.parametrize("options", [{"dtype": "int3"}, {"batch_tokens": 0}])
def test_bad_options_are_refused_at_once(tiny_bert, options):
    with pytest.raises(HarpError, match=next(iter(options))):
        Scorer(tiny_bert, **options)


def test_a_missing_or_pickled_model_is_one_line(tmp_path, tiny_bert, wordpiece):
    with pytest.raises(HarpError, match="no model at"):
        Scorer(tmp_path / "nothing").score(["a"], ["b"])
    model = BertForSequenceClassification.from_pretrained(tiny_bert)
    model.config.save_pretrained(tmp_path)
    wordpiece.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(HarpError, match="safetensors"):
        Scorer(tmp_path).score(["a"], ["b"])


def small_bert(tokenizer) -> dict:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
