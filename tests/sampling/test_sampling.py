"""Draws against their distributions (χ², fixed seeds) and formulas by hand."""

import math
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from chi_square import agrees
from scipy.stats import chisquare

from harp_plugin.sampling import (
    generator,
    linear,
    sample,
    softmax,
    stable_id,
    zero_truncated_poisson,
)

DRAWS = 30_000


@pytest.mark.parametrize("rate", [0.5, 3.0, 7.0])
def test_zero_truncated_poisson(rate):
    """P(x) = λ^x e^-λ / (x! (1 - e^-λ)), x ≥ 1."""
    rng = generator("poisson", str(rate))
    counts = Counter(zero_truncated_poisson(rng, rate) for _ in range(DRAWS))
    chances = {
        x: rate**x * math.exp(-rate) / math.factorial(x) / (1 - math.exp(-rate))
        for x in range(1, 60)
    }
    assert agrees(counts, chances)
    mean = sum(x * n for x, n in counts.items()) / DRAWS
    assert mean == pytest.approx(rate / (1 - math.exp(-rate)), abs=4 * math.sqrt(rate / DRAWS))


@pytest.mark.parametrize(
    ("weights", "temperature", "expected"),
    [
        ([0, 0], 1, [0.5, 0.5]),
        ([0, math.log(3)], 1, [0.25, 0.75]),
        ([0, math.log(3)], 0.5, [0.1, 0.9]),
        ([1000, 1000 + math.log(4)], 2, [1 / 3, 2 / 3]),
    ],
)
def test_softmax(weights, temperature, expected):
    np.testing.assert_allclose(softmax(np.array(weights), temperature), expected, rtol=1e-9)


def test_linear():
    assert linear(np.array([1, 3])).tolist() == [0.25, 0.75]
    assert linear(np.array([0.0, 0.0])).tolist() == [0.5, 0.5]


def test_sample_with_replacement():
    rng = generator("with")
    drawn = sample(rng, ["a", "b", "c"], np.array([0.2, 0.5, 0.3]), DRAWS)
    assert agrees(Counter(drawn), {"a": 0.2, "b": 0.5, "c": 0.3})


def test_sample_without_replacement():
    rng = generator("without")
    chances = np.array([0.2, 0.5, 0.3, 0.0])
    ordered = Counter(
        tuple(sample(rng, ["a", "b", "c", "d"], chances, 2, replacement=False))
        for _ in range(DRAWS // 2)
    )
    single = {"a": 0.2, "b": 0.5, "c": 0.3}
    # Unordered: NumPy gives the pair of a draw without replacement in any order.
    pairs = Counter(frozenset(pair) for pair in ordered.elements())
    expected = {
        frozenset(x + y): single[x] * single[y] * (1 / (1 - single[x]) + 1 / (1 - single[y]))
        for x, y in ("ab", "ac", "bc")
    }
    assert agrees(pairs, expected)
    assert sorted(sample(rng, ["a", "b", "c", "d"], chances, 9, replacement=False)) == list("abc")


def test_generators_are_independent_of_each_other_and_of_the_process():
    keys = [(42, "rqp", epoch, example) for epoch in range(20) for example in range(50)]
    first = [generator(*key).random(2).tolist() for key in keys]
    assert len({tuple(pair) for pair in first}) == len(keys)
    flat = np.array(first).ravel()
    assert chisquare(np.histogram(flat, 20, (0, 1))[0]).pvalue > 1e-4
    code = (
        "from harp_plugin.sampling import generator, stable_id\n"
        "print(generator(42, 'rqp', 0, 1).random(), stable_id('é', 3))"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.split() == [
        str(generator(42, "rqp", 0, 1).random()),
        str(stable_id("é", 3)),
    ]
    # Published once and stored in every build: a change of these breaks finished builds.
    assert generator("a", 1).random() != generator("a1").random() != generator("1", "a").random()


def test_stable_ids():
    ids = {stable_id("page", f"Title {n}") for n in range(20_000)}
    assert len(ids) == 20_000 and min(ids) >= 0 and max(ids) < 2**63
    assert stable_id("a", "b") != stable_id("ab") != stable_id("b", "a")
    high_bits = Counter(id >> 59 for id in ids)
    assert chisquare([high_bits[n] for n in range(16)]).pvalue > 1e-4
