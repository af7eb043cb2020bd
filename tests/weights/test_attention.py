"""Attention weights against the model's own ``output_attentions`` and against its matrices."""

import warnings
from functools import cache

import numpy as np
import pytest
import torch
from by_text import weigh
from eager import agree, reference, spans_of
from random_models import save_encoder
from transformers import AutoModel, AutoTokenizer

from harp_plugin.errors import HarpError
from harp_plugin.weights.attention import AttentionWeigher
from harp_plugin.weights.encoders import PackedEncoder, PaddedEncoder

TEXTS = {
    # A text, and anchors at its start, at its end, across wordpieces, and of two words.
    "The old apple tree bears encyclopedic fruit": ["The", "fruit", "encyclopedic", "apple tree"],
    "naïveté’s hyperlinkage, apple-apple (été)": ["naïveté’s", "été", "hyperlinkage", "apple"],
    "  spaced\tout  😀 text. ": ["spaced", "text", "😀", "spaced\tout"],
    "fruit": ["fruit"],
    "+ - !": ["+", "!"],
}
LONG = " ".join(f"apple{n} tree" for n in range(90))


@cache
def weigher(folder, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return AttentionWeigher(str(folder), device="cpu", **options)


@pytest.mark.parametrize("unit", ["word", "wordpiece"])
@pytest.mark.parametrize("anchor_row", ["span", "first_piece"])
def test_agrees_with_output_attentions(encoder, unit, anchor_row):
    spans = [spans_of(text, anchors) for text, anchors in TEXTS.items()]
    found = weigh(weigher(encoder, unit=unit, anchor_row=anchor_row), list(TEXTS), spans)
    for text, asked, weighed in zip(TEXTS, spans, found, strict=True):
        agree(weighed, reference(encoder, text, asked, unit, anchor_row))
        assert not weighed.cut


def test_odd_anchors(encoder):
    """Empty, overlapping, within a word, over the whole text, and beyond its end."""
    text = "The old encyclopedia"
    asked = [(0, 0), (10, 10), (4, 12), (0, 20), (0, 20), (11, 13), (20, 20), (18, 40), (30, 40)]
    (weighed,) = weigh(weigher(encoder), [text], [asked])
    agree(weighed, reference(encoder, text, asked))
    assert np.isnan(weighed.anchors[[0, 6, 8]]).all() and np.isfinite(weighed.anchors[2]).all()


def test_a_text_that_spells_the_padding_token(tmp_path, byte_level):
    """RoBERTa does not count its position."""
    folder = str(save_encoder("Roberta", byte_level, tmp_path))
    encoders = [
        kind(folder, torch.device("cpu"), torch.float32) for kind in (PackedEncoder, PaddedEncoder)
    ]
    texts = ["an apple", "the <pad> old<pad><pad> tree bears fruit", "an <pad>"]
    found = [
        byte_level(text)["input_ids"]
        for text in sorted(texts, key=lambda t: len(byte_level(t)["input_ids"]))
    ]
    lengths = np.array([len(ids) for ids in found])
    rows = np.array([[0, 2]] * 3)
    one, other = (
        each.attention(np.concatenate(found), lengths, rows, before=True) for each in encoders
    )
    assert byte_level.pad_token_id in found[0] + found[1]
    for rows, others in zip(one, other, strict=True):
        np.testing.assert_allclose(rows, others, atol=1e-5)


def test_text_beyond_the_limit(encoder):
    near, far = spans_of(LONG, ["apple1 tree", "apple89"])
    (weighed,) = weigh(weigher(encoder), [LONG], [[near, far]])
    agree(weighed, reference(encoder, LONG, [near, far]))
    assert weighed.cut
    assert np.isfinite(weighed.anchors[0]).all() and np.isnan(weighed.anchors[1]).all()
    assert 0 < len(weighed.spans) < 66


def test_a_text_that_just_fits_is_not_cut(bert):
    (weighed,) = weigh(weigher(bert), [" ".join(["tree"] * 64) + " \n"])
    assert len(weighed.spans) == 64 and not weighed.cut
    (weighed,) = weigh(weigher(bert), [" ".join(["tree"] * 65)])
    assert len(weighed.spans) == 64 and weighed.cut


def test_independent_of_the_batch(encoder):
    texts = [*TEXTS, LONG, "a", ""]
    spans = [spans_of(text, anchors) for text, anchors in TEXTS.items()] + [[], [], []]
    together = weigh(weigher(encoder), texts, spans)
    narrow = weigher(encoder, batch_tokens=1)
    for text, asked, one in zip(texts, spans, together, strict=True):
        for other in (
            weigh(weigher(encoder), [text], [asked])[0],
            weigh(narrow, [text], [asked])[0],
        ):
            assert one.spans.tolist() == other.spans.tolist() and one.cut == other.cut
            np.testing.assert_allclose(one.cls, other.cls, atol=1e-6)
            np.testing.assert_allclose(one.anchors, other.anchors, atol=1e-6)


def test_equation_1_from_the_matrices(bert):
    """α = 1/D Σ softmax(W_Q h_a · W_K h_t / √(d/D)), worked from the last layer's input."""
    text = "The old apple tree"
    tokenizer = AutoTokenizer.from_pretrained(bert)
    model = AutoModel.from_pretrained(bert).eval()
    with torch.no_grad():
        states = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
    hidden = states.hidden_states[-2][0].double().numpy()  # [CLS] the old apple tree [SEP]
    layer = model.encoder.layer[-1].attention.self
    matrices = (layer.query, layer.key)
    query, key = (
        hidden @ m.weight.detach().double().numpy().T + m.bias.detach().double().numpy()
        for m in matrices
    )
    alpha = np.zeros((6, 6))
    for head in range(4):
        part = slice(8 * head, 8 * head + 8)
        scores = query[:, part] @ key[:, part].T / np.sqrt(32 / 4)
        weights = np.exp(scores)
        alpha += weights / weights.sum(axis=1, keepdims=True) / 4
    (weighed,) = weigh(weigher(bert), [text], [[(8, 18), (4, 7)]])
    np.testing.assert_allclose(weighed.cls, alpha[0, 1:5], atol=1e-5)
    np.testing.assert_allclose(weighed.anchors[0], alpha[[3, 4], 1:5].mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(weighed.anchors[1], alpha[2, 1:5], atol=1e-5)
    assert np.ptp(alpha) > 0.05  # far from uniform, so that a wrong row shows


def test_no_fast_path_is_said_once(albert):
    with pytest.warns(UserWarning, match="albert: no fast path") as caught:
        slow = AttentionWeigher(str(albert), device="cpu")
        weigh(slow, ["an apple", "a tree"])
        weigh(slow, ["an apple"])
    assert len([warning for warning in caught if "no fast path" in str(warning.message)]) == 1


def test_no_text_and_no_word(bert):
    assert list(weigh(weigher(bert), [])) == []
    (weighed,) = weigh(weigher(bert), [""], [[]])
    assert weighed.spans.shape == (0, 2) and weighed.anchors.shape == (0, 0)


@pytest.mark.parametrize("model", ["/nowhere/model", "package:no-such-package", "no-such/model"])
def test_missing_model(model):
    with pytest.raises(HarpError) as caught:
        AttentionWeigher(model, device="cpu")
    assert "\n" not in str(caught.value) and model.removeprefix("package:") in str(caught.value)


def test_batches_are_filled_by_tokens(bert, monkeypatch):
    narrow = AttentionWeigher(str(bert), device="cpu", batch_tokens=20)
    taken = []
    attention = narrow.encoder.attention

    def noted(ids, lengths, rows, before):
        taken.append(lengths.tolist())
        return attention(ids, lengths, rows, before=before)

    monkeypatch.setattr(narrow.encoder, "attention", noted)
    weigh(narrow, [" ".join(["tree"] * n) for n in (4, 30, 1, 9, 4, 2, 3, 1)])
    assert taken == [[3, 3, 4, 5], [6, 6], [11], [32]]
