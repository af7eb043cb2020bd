"""What is tokenized ahead."""

from functools import partial

import numpy as np
import pytest
import torch
from eager import spans_of

from harp_plugin.models.devices import device_queue, own_device, take_device, worker_devices
from harp_plugin.weights.attention import AttentionWeigher
from harp_plugin.weights.chunks import Chunk, weigh_chunks
from harp_plugin.work.map_shards import map_shards

TEXTS = [f"The old tree {number} bears fruit" for number in range(40)]


def test_processes_that_tokenize_change_nothing(bert):
    weigher = AttentionWeigher(str(bert), device="cpu")
    spans = [spans_of(text, ["tree"]) for text in TEXTS]
    ids = np.arange(4)
    chunks = [
        Chunk(ids + n, TEXTS[n : n + 4], ids, spans[n : n + 4]) for n in range(0, len(TEXTS), 4)
    ]
    found = [list(weigh_chunks(weigher, chunks))]
    weigher.tokenizers = 2
    found.append(list(weigh_chunks(weigher, chunks)))
    assert [chunk for chunk, _ in found[0]] == [chunk for chunk, _ in found[1]] == chunks
    for (_, one), (_, other) in zip(*found, strict=True):
        np.testing.assert_array_equal(one.cls, other.cls)
        np.testing.assert_array_equal(one.rows, other.rows)
        assert len(one.rows) and np.isfinite(one.rows).all()


def used_device(_):
    return own_device


@pytest.mark.slow
def test_every_worker_has_a_device_of_its_own():
    free = device_queue(["cuda:0", "cuda:1"])
    used = list(map_shards(used_device, range(20), None, 2, partial(take_device, free)))
    assert {tuple(devices) for devices in used} <= {("cuda:0",), ("cuda:1",)}
    assert not own_device


def test_devices_of_the_workers():
    assert worker_devices(torch.device("cpu"), 3) == ["cpu"] * 3
    assert worker_devices(torch.device("cuda:1"), 3) == ["cuda:1"]
