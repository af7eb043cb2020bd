"""Packed pairs against the same model, one pair at a time, without padding."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from harp_plugin.errors import HarpError
from harp_plugin.models.packing import PACKED, PackedClassifier

PADDING = 1
SMALL = {
    "vocab_size": 90,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 66,
    "pad_token_id": PADDING,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
DISTIL = {"vocab_size": 90, "dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48}
MODERN = SMALL | {
    "cls_token_id": 2,
    "sep_token_id": 3,
    "local_attention": 6,
    "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
}
KINDS = {
    "bert": SMALL,
    "roberta": SMALL,
    "xlm-roberta": SMALL,
    "camembert": SMALL | {"num_labels": 2},
    "electra": SMALL | {"embedding_size": 16},
    "distilbert": DISTIL | {"pad_token_id": PADDING},
    "modernbert": MODERN,
}
VARIANTS = KINDS | {
    "modernbert, mean": MODERN | {"classifier_pooling": "mean"},
    "roberta, two types": SMALL | {"type_vocab_size": 2},
}
LENGTHS = [7, 1, 40, 2, 7, 23, 40, 3, 64]


def random_model(variant, **more):
    torch.manual_seed(2)
    options = {"num_labels": 1} | VARIANTS[variant] | more
    config = AutoConfig.for_model(variant.partition(",")[0], **options)
    model = AutoModelForSequenceClassification.from_config(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.2 * torch.randn_like(weight)
    return model.eval()


@pytest.fixture(params=VARIANTS)
def model(request):
    return random_model(request.param)


def tokens(seed=5):
    """Ids, a spelt-out padding token among them, and token types."""
    chance = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, 90, (sum(LENGTHS),), generator=chance)
    ids[[20, 30, 60]] = PADDING
    types = torch.cat([torch.arange(n) >= n // 2 for n in LENGTHS]).long()
    return ids, types


def accepts_types(model):
    return getattr(model.config, "type_vocab_size", 0) > 1


def one_by_one(model, ids, types):
    """Logits, and last hidden states of all tokens."""
    logits, hidden = [], []
    for part, of_part in zip(ids.split(LENGTHS), types.split(LENGTHS), strict=True):
        inputs = {"token_type_ids": of_part[None]} if accepts_types(model) else {}
        mask = torch.ones_like(part)[None]
        found = model(part[None], attention_mask=mask, output_hidden_states=True, **inputs)
        logits.append(found.logits)
        hidden.append(model.base_model(part[None], attention_mask=mask, **inputs)[0][0])
    return torch.cat(logits), torch.cat(hidden)


def packed(model, ids, types, places=None):
    return PackedClassifier(model)(ids, LENGTHS, types if accepts_types(model) else None, places)


def test_every_known_kind_is_here():
    assert set(KINDS) == PACKED


def test_logits_and_hidden_states(model):
    ids, types = tokens()
    places = torch.tensor([80, 3, 3, 186, 0])
    with torch.no_grad():
        logits, hidden = one_by_one(model, ids, types)
        found = packed(model, ids, types, places)
    assert found.logits.shape == (len(LENGTHS), model.config.num_labels)
    assert logits.std() > 0.02
    torch.testing.assert_close(found.logits, logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(found.hidden, hidden[places], atol=1e-5, rtol=1e-5)


def test_token_types_are_read():
    model, (ids, types) = random_model("bert"), tokens()
    with torch.no_grad():
        assert not torch.allclose(*(packed(model, ids, t).logits for t in (types, 1 - types)))


@pytest.mark.parametrize("checkpointing", [False, True])
def test_gradients(model, checkpointing):
    ids, types = tokens()
    places = torch.arange(0, len(ids), 4)
    padded = deepcopy(model)
    logits, hidden = one_by_one(padded, ids, types)
    (logits.square().sum() + hidden[places].square().mean()).backward()
    for module in model.train().modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    if checkpointing:
        model.gradient_checkpointing_enable()
    found = packed(model, ids, types, places)
    (found.logits.square().sum() + found.hidden.square().mean()).backward()
    expected = dict(padded.named_parameters())
    for name, weight in model.named_parameters():
        wanted = expected[name].grad
        assert (weight.grad is None) == (wanted is None), name
        if wanted is not None:
            torch.testing.assert_close(weight.grad, wanted, atol=1e-4, rtol=1e-4)


def test_a_packed_model_still_takes_padded_inputs(model):
    ids, types = tokens()
    with torch.no_grad():
        logits, _ = one_by_one(model, ids, types)
        packed(model, ids, types)
        width = max(LENGTHS)
        mask = torch.arange(width) < torch.tensor(LENGTHS)[:, None]
        inputs = {"input_ids": torch.full(mask.shape, PADDING), "attention_mask": mask.long()}
        inputs["input_ids"][mask] = ids
        if accepts_types(model):
            inputs["token_type_ids"] = torch.zeros(mask.shape, dtype=torch.long)
            inputs["token_type_ids"][mask] = types
        torch.testing.assert_close(model(**inputs).logits, logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("loaded_with", ["eager", "sdpa"])
def test_a_model_is_switched_and_saved_as_it_was(loaded_with, tmp_path):
    model, (ids, types) = random_model("bert"), tokens()
    model.save_pretrained(tmp_path / "before")
    loaded = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "before", attn_implementation=loaded_with
    )
    with torch.no_grad():
        expected, _ = one_by_one(model, ids, types)
        found = packed(loaded.eval(), ids, types).logits
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    loaded.save_pretrained(tmp_path / "after")
    configs = [(tmp_path / folder / "config.json").read_text() for folder in ("before", "after")]
    assert configs[0] == configs[1]


@pytest.mark.integration
def test_dropout_is_the_models_own():
    """Of attention too: with no other dropout, one seed gives one result, two give two."""
    model, (ids, types) = random_model("bert", hidden_dropout_prob=0.0), tokens()

    def logits(seed):
        torch.manual_seed(seed)
        return packed(model, ids, types).logits

    with torch.no_grad():
        without = logits(0)
        model.train()
        assert torch.equal(logits(0), logits(0))
        assert not torch.allclose(logits(0), logits(1))
        many = torch.stack([logits(seed) for seed in range(300)])
    assert (many.mean(0) - without).abs().mean() < 0.3 * many.std(0).mean()


def test_a_text_counts_alone(model):
    """The same bits, whatever else lies in the row."""
    ids, types = tokens()
    with torch.no_grad():
        logits = packed(model, ids, types).logits
        start = sum(LENGTHS[:5])
        part = slice(start, start + LENGTHS[5])
        alone = PackedClassifier(model)(
            ids[part], LENGTHS[5:6], types[part] if accepts_types(model) else None
        ).logits
    torch.testing.assert_close(alone, logits[5:6], atol=1e-6, rtol=1e-6)


def test_lengths_may_be_given_in_several_ways():
    model, (ids, types) = random_model("electra"), tokens()
    classify = PackedClassifier(model)
    with torch.no_grad():
        found = [
            classify(ids, lengths, types).logits
            for lengths in (LENGTHS, np.array(LENGTHS, dtype=np.int32), torch.tensor(LENGTHS))
        ]
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


@pytest.mark.parametrize("lengths", [[], [3], [3, 3], [5, 0], [6, -1]])
def test_wrong_lengths(lengths):
    with pytest.raises(ValueError, match="texts of"):
        PackedClassifier(random_model("bert"))(torch.full((5,), 7), lengths)


def test_the_last_layer_ends_with_what_is_read():
    """First tokens and the requested positions alone go through what follows its attention."""
    model, rows = random_model("bert"), []
    for layer in model.bert.encoder.layer:
        layer.intermediate.register_forward_hook(lambda *parts: rows.append(parts[2].shape[-2]))
    ids, types = tokens()
    packed(model, ids, types)
    packed(model, ids, types, torch.tensor([8, 3]))
    everything, texts = sum(LENGTHS), len(LENGTHS)
    assert rows == [everything, everything, texts, everything, everything, texts + 2]


def test_unknown_architecture():
    config = AutoConfig.for_model("albert", vocab_size=50, hidden_size=8, num_attention_heads=2)
    model = AutoModelForSequenceClassification.from_config(config)
    with pytest.raises(
        HarpError, match="albert cannot be packed: pad its inputs, or choose one of"
    ):
        PackedClassifier(model)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("dtype, most", [(torch.float32, 1e-3), (torch.bfloat16, 0.2)])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_on_a_gpu(model, dtype, most, dropout):
    """Logits of each way of attention, and gradients that are finite."""
    ids, types = tokens()
    with torch.no_grad():
        logits, _ = one_by_one(model, ids, types)
    model.to("cuda", dtype)
    with torch.no_grad():
        found = packed(model, ids, types).logits.float().cpu()
    torch.testing.assert_close(found, logits, atol=most, rtol=0)
    for module in model.train().modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
    packed(model, ids, types).logits.square().sum().backward()
    grads = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert len(grads) > 20 and all(bool(grad.isfinite().all()) for grad in grads)
