"""The document language model against numbers worked by hand and against loops."""

import numpy as np
import pytest
from by_text import weigh

from harp_plugin.sampling import linear
from harp_plugin.tasks.terms import merge_repeats
from harp_plugin.text import words as words_of
from harp_plugin.weights.language_model import LanguageModelWeigher


def model(mu, counts):
    total = sum(counts.values())
    return LanguageModelWeigher(
        mu, lambda words: np.array([counts.get(w, 0) / total for w in words])
    )


def by_loops(text, mu, counts):
    """P(w|D) of each distinct word of a text."""
    words = [word.lower() for word in words_of(text)]
    total = sum(counts.values())
    return {w: (words.count(w) + mu * counts.get(w, 0) / total) / (len(words) + mu) for w in words}


def test_equation_3_by_hand():
    # P(a|C) = 0.4, P(b|C) = 0.4. P(a|D) = (2 + 2.5 * 0.4) / (3 + 2.5) = 3 / 5.5, P(b|D) = 2 / 5.5.
    (weighed,) = weigh(model(2.5, {"a": 2, "b": 2, "c": 1}), ["A b, a!"])
    assert weighed.spans.tolist() == [[0, 1], [2, 3], [5, 6]]
    np.testing.assert_allclose(weighed.cls, [0.6 / 2, 0.4, 0.6 / 2], rtol=1e-6)
    assert not weighed.cut


def test_a_word_that_the_collection_lacks():
    # P(x|D) = (1 + 0) / (2 + 3), P(a|D) = (1 + 3 * 1) / (2 + 3).
    (weighed,) = weigh(model(3, {"a": 7}), ["x a"])
    np.testing.assert_allclose(weighed.cls, [0.2, 0.8], rtol=1e-6)


def test_without_smoothing_it_is_the_share_of_a_word():
    (weighed,) = weigh(model(0, {"a": 7}), ["x a x x"])
    np.testing.assert_allclose(weighed.cls, [0.25] * 4, rtol=1e-6)


@pytest.mark.parametrize("mu", [0.5, 100, 2000])
def test_drawn_by_plain_normalization_it_is_the_model(mu):
    """Summed over repeats and normalized, as terms are; with and without other texts."""
    rng = np.random.default_rng(0)
    vocabulary = [f"w{n}" for n in range(50)]
    counts = {word: int(10_000 / (n + 1)) for n, word in enumerate(vocabulary[:40])}
    chances = 1 / np.arange(1, 51)
    texts = [
        " ".join(rng.choice(vocabulary, size, p=chances / chances.sum()))
        for size in (1, 7, 40, 300)
    ]
    weigher = model(mu, counts)
    for text, weighed in zip(texts, weigh(weigher, texts), strict=True):
        assert weighed.cls.tolist() == weigh(weigher, [text])[0].cls.tolist()
        words = [text[start:end] for start, end in weighed.spans]
        stored = weighed.cls.astype(np.float16).astype(np.float64)
        terms = merge_repeats(words, stored, frozenset())
        expected = by_loops(text, mu, counts)
        total = sum(expected.values())
        found = dict(zip(terms.words, linear(terms.weights), strict=True))
        assert found == pytest.approx({w: p / total for w, p in expected.items()}, rel=3e-3)


def test_rows_of_anchors_are_the_sentence():
    texts = ["a b a", "", "c a"]
    found = weigh(model(1, {"a": 3, "c": 1}), texts, [[(0, 1), (2, 5)], [], [(0, 3)]])
    for weighed, anchors in zip(found, (2, 0, 1), strict=True):
        assert weighed.anchors.shape == (anchors, len(weighed.spans))
        for row in weighed.anchors:
            assert row.tolist() == weighed.cls.tolist()
    assert found.words.anchor_inside.tolist() == [True] * 3
    assert len(weigh(model(1, {"a": 3}), [])) == 0


def test_small_weights_do_not_vanish():
    """P(w|D) / tf of a long lead lies where float16 has few digits or none."""
    words = ["the"] * 6000 + [f"w{n}" for n in range(4000)]
    counts = {"the": 6_000_000, **{f"w{n}": 1 for n in range(4000)}}
    for mu in (2_000, 1e12):
        for size in (10_000, 2):
            text = " ".join(words[-size:] if size > 2 else ["the", "w1"])
            (weighed,) = weigh(model(mu, counts), [text])
            stored = weighed.cls.astype(np.float16)
            assert (stored > 0).all()
            if mu == 2_000:
                np.testing.assert_allclose(stored.astype(float), weighed.cls, rtol=2e-3)
                expected = by_loops("the w1", mu, counts) if size == 2 else None
                if expected:
                    assert stored[0] / stored[1] == pytest.approx(
                        expected["the"] / expected["w1"], rel=2e-3
                    )


def test_a_text_too_long_to_store_is_cut():
    text = "a " * 40_000
    (weighed,) = weigh(model(1, {"a": 1}), [text], [[(0, 1), (70_000, 70_001)]])
    assert weighed.cut and weighed.spans[-1].tolist() == [65_534, 65_535]
    weighed = weigh(model(1, {"a": 1}), [text], [[(0, 1), (70_000, 70_001)]])
    assert weighed.words.anchor_inside.tolist() == [True, False]
