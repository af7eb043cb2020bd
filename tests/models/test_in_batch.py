"""Negatives of a batch, against a definition in plain loops."""

import numpy as np
import pytest

from harp_plugin.models.in_batch import in_batch_negatives
from harp_plugin.models.trainable import GroupKeys


def drawn(rng):
    """The groups of a process: sizes, and keys from few numbers, so that many are equal."""
    sizes = rng.integers(2, 4, size=5).tolist()
    documents = np.stack([rng.integers(0, 30, sum(sizes)), rng.integers(100, 108, sum(sizes))], 1)
    starts = np.cumsum(sizes) - sizes
    of_positives = [(group, key) for group, at in enumerate(starts) for key in documents[at]]
    others = [(int(rng.integers(5)), int(rng.integers(100, 108))) for _ in range(4)]
    relevant = np.array([*of_positives, *others])
    keys = GroupKeys(rng.integers(0, 4, size=5), documents, relevant, np.array(sizes))
    return sizes, keys


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_they_are_those_of_the_definition(seed, processes):
    rng = np.random.default_rng([seed, processes])
    sizes, every = zip(*(drawn(rng) for _ in range(processes)), strict=True)
    process = int(rng.integers(processes))
    documents = [tuple(pair) for keys in every for pair in keys.documents.tolist()]
    found = in_batch_negatives(every, process)
    start = 0
    for group, size in enumerate(sizes[process]):
        query = every[process].queries[group]
        barred = {
            key for keys in every for place, key in keys.relevant if keys.queries[place] == query
        }
        own = {text for text, _ in every[process].documents[start : start + size].tolist()}
        seen = set()
        for place, (text, page) in enumerate(documents):
            is_new = text not in seen
            seen.add(text)
            expected = is_new and text not in own and not barred & {text, page}
            assert found[group, place] == expected
        start += size
