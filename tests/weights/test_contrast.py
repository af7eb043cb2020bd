"""Contrastive attention against numbers worked by hand and against loops."""

from collections import defaultdict

import numpy as np
import pytest
from by_text import weigh

from harp_plugin.weights.attention import AttentionWeigher
from harp_plugin.weights.contrast import (
    Contrast,
    attention_to_words,
    saturated,
    shares_in_texts,
)
from harp_plugin.weights.words import find_distinct_words, find_words

BITS = {"apple": 3.0, "tree": 1.0, "the": 0.25}


def contrast_by_loops(words, attention, bits, k=0.01):
    """-P(w|D) log2 P(w|R) of each distinct word."""
    summed = defaultdict(float)
    for word, value in zip(words, attention, strict=True):
        summed[word.lower()] += float(value)
    saturated = {word: value / (value + k) for word, value in summed.items()}
    total = sum(saturated.values())
    return {word: value / total * bits(word) for word, value in saturated.items()}


def test_shares_of_attention_by_hand():
    texts = ["a b A", "b"]
    words = find_distinct_words(texts, find_words(texts))
    assert words.vocabulary == ["a", "b"]
    attention = attention_to_words(np.array([0.01, 0.01, 0.02, 0.04]), words)
    np.testing.assert_allclose(attention, [0.03, 0.01, 0.04])
    # Summed 0.03 and 0.01; saturated 3/4 and 1/2; normalized 3/5 and 2/5. The other text: 4/5.
    values = saturated(attention, 0.01)
    np.testing.assert_allclose(values, [0.75, 0.5, 0.8])
    np.testing.assert_allclose(shares_in_texts(values, words), [0.6, 0.4, 1])


@pytest.mark.parametrize("saturation", [0.01, 0.5])
def test_sentences_and_anchors(bert, saturation):
    attention = AttentionWeigher(str(bert), device="cpu")
    contrast = Contrast(
        attention, saturation, lambda words: np.array([BITS.get(word, 9.0) for word in words])
    )
    texts = ["The apple tree: an Apple bears the fruit", "", "Tree", "a " * 90]
    spans = [[(4, 14), (19, 24)], [], [(0, 4)], [(0, 1), (170, 171)]]
    plain = weigh(attention, texts, spans)
    found = weigh(contrast, texts, spans)
    assert contrast.attention.heads == 4 and found.words.anchor_inside.tolist() == [True] * 4 + [
        False
    ]
    for text, before, after in zip(texts, plain, found, strict=True):
        assert before.spans.tolist() == after.spans.tolist()
        words = [text[start:end].lower() for start, end in before.spans]
        rows = [(before.cls, after.cls), *zip(before.anchors, after.anchors, strict=True)]
        for attended, weights in rows:
            if np.isnan(attended).any():
                assert np.isnan(weights).all()
                continue
            expected = contrast_by_loops(words, attended, lambda w: BITS.get(w, 9.0), saturation)
            for word, value in expected.items():
                places = [i for i, other in enumerate(words) if other == word]
                assert weights[places].sum() == pytest.approx(value, rel=1e-4)
                # Among its places a word's weight is shared as attention is.
                share = attended[places] / attended[places].sum()
                np.testing.assert_allclose(weights[places], value * share, rtol=1e-4)


def test_no_attention_at_all_gives_no_weight(bert):
    attention = AttentionWeigher(str(bert), device="cpu")
    contrast = Contrast(attention, 0.01, lambda words: np.full(len(words), 5.0))
    tokens, words = contrast.tokenize(["apple tree"])
    weighed = attention.weigh_tokenized(tokens)
    weighed.cls[:] = 0
    assert contrast.contrast(weighed, words).cls.tolist() == [0, 0]
