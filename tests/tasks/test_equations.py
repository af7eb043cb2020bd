"""Equations 2, 3, 5, 10, 11 and 13 worked by hand on the attention of `conftest.py`."""

import math

import numpy as np
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from harp_plugin.tasks import DrawOptions
from harp_plugin.tasks.anchors import anchor_importance
from harp_plugin.tasks.terms import Terms, distribution, merge_repeats, stop_words, without

DEFAULT = DrawOptions()
SOFTMAX = {"normalization": "softmax"}


def test_equation_2_sums_equal_words(source, hand_build):
    """β of the anchor Apple: the two apples are one, in lower case; ``the`` is a stop word."""
    terms = source.sentence_terms(source.anchor(hand_build.anchors[0, 0]), DEFAULT)
    in_64ths = {"old": 4, "apple": 8 + 4, "tree": 16, "bears": 2, "red": 1, "fruit": 12}
    expected = {word: n / 64 for word, n in {**in_64ths, "quickly": 1}.items()}
    assert dict(zip(terms.words, terms.weights, strict=True)) == expected
    kept = source.sentence_terms(
        source.anchor(hand_build.anchors[0, 0]), DrawOptions(stop_words="none")
    )
    assert dict(zip(kept.words, kept.weights, strict=True)) == {**expected, "the": 8 / 64}


@pytest.mark.parametrize(
    ("options", "factor"),
    [({}, 4), ({"temperature": "1"}, 1), ({"temperature": "0.5"}, 2)],
)
def test_equation_3(options, factor):
    """p ∝ exp(β / T); T = 1/heads by default, 1 in the paper."""
    beta = np.array([0.5, 0.25, 0.125])
    powers = [math.exp(factor * b) for b in beta]
    expected = [power / sum(powers) for power in powers]
    np.testing.assert_allclose(distribution(beta, DrawOptions(**SOFTMAX, **options), 4), expected)


def test_equation_3_linear():
    """The default."""
    assert distribution(np.array([0.5, 0.25, 0.25]), DEFAULT, 4).tolist() == [0.5, 0.25, 0.25]


def test_equation_5_takes_the_anchor_out(source, hand_build):
    """[CLS]'s weights of the page, merged; the anchor's words gone, at 0, or kept."""
    terms = source.page_terms(hand_build.pages["APPLE"], DEFAULT)
    assert dict(zip(terms.words, terms.weights * 64, strict=True)) == {
        "apple": 8 + 16,
        "sweet": 16,
        "fruit": 4,
        "tree": 6,
    }
    removed = without(terms, ["Apple"], "removed")
    assert removed.words == ["sweet", "fruit", "tree"]
    assert (removed.weights * 64).tolist() == [16, 4, 6]
    zero = without(terms, ["Apple", "tree"], "zero_weight")
    assert zero.words == terms.words and (zero.weights * 64).tolist() == [0, 16, 4, 0]
    left = distribution(zero.weights, DrawOptions(**SOFTMAX), 4)
    assert left[0] > 0  # exp(0): why the default takes it out before
    assert without(terms, ["Apple"], "kept") is terms


def test_equations_10_and_11(source, hand_build):
    """An anchor's weight is [CLS]'s weight of its words; equal anchors are added up."""
    anchors, weights, before = anchor_importance(hand_build.sentence(0), source, DEFAULT)
    assert [source.anchor_text(anchor) for anchor in anchors] == ["Apple", "tree", "fruit"]
    assert (weights * 64).tolist() == [16, 8, 12] and (before * 64).tolist() == [16, 14, 12]
    anchors, weights, before = anchor_importance(hand_build.sentence(1), source, DEFAULT)
    assert [source.anchor_text(anchor) for anchor in anchors] == ["Apple", "pages"]
    assert (weights * 64).tolist() == (before * 64).tolist() == [8 + 16, 16]
    powers = np.exp(4 * np.array([24, 16]) / 64)
    np.testing.assert_allclose(
        distribution(weights, DrawOptions(**SOFTMAX), 4), powers / powers.sum()
    )


def test_equation_13_is_equation_5_without_an_anchor(source, hand_build):
    terms = source.page_terms(hand_build.pages["CIDER"], DEFAULT)
    assert dict(zip(terms.words, terms.weights * 64, strict=True)) == {
        "cider": 24,
        "ferments": 8,
        "juice": 16,
    }


def test_merge_repeats_keeps_the_order_of_first_places():
    merged = merge_repeats(["B", "a", "b", "The"], np.array([1.0, 2, 4, 8]), frozenset({"the"}))
    assert merged.words == ["b", "a"] and merged.weights.tolist() == [5, 2]
    assert merged.written == ["B", "a"]
    assert isinstance(merged, Terms)


def test_stop_words(shared_data, tmp_path):
    published = set((shared_data / "inquery-stopwords.txt").read_text().split())
    assert (
        stop_words(str(shared_data / "inquery-stopwords.txt")) == published
        and len(published) == 418
    )
    assert stop_words("none") == frozenset()
    assert stop_words("scikit-learn") == ENGLISH_STOP_WORDS < stop_words("english")
    more = stop_words("english") - ENGLISH_STOP_WORDS
    assert {"used", "like", "does"} < more and len(more) < 40
    (tmp_path / "mine.txt").write_text("Alpha\nbeta\n")
    assert stop_words(str(tmp_path / "mine.txt")) == {"alpha", "beta"}
