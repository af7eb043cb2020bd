"""A process that is forked after ranking, or while another thread ranks, ranks as its parent."""

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SCRIPT = """
import multiprocessing, os, sys, threading
import pandas as pd
import torch
from harp_plugin import HarpReranker
from harp_plugin.ranking import batches
from harp_plugin.ranking.dense import DenseCosine
from harp_plugin.ranking.learned import LearnedRanker, _trees, _Results
import numpy as np

torch.set_num_threads(3)
rows = 200
frame = pd.DataFrame({
    "qid": ["q"] * rows, "query": ["a link"] * rows, "docno": [f"d{n}" for n in range(rows)],
    "text": [f"page {n} of a web " * (n % 7 + 1) for n in range(rows)],
    "features": [np.array([n % 13, n / rows]) for n in range(rows)],
})
results = _Results.from_frame(frame)
trees = _trees(results, np.arange(rows) % 5 // 4, 1)
learned = LearnedRanker({"trees": trees, "linear": [1.0, 2.0], "parts": [1.0, 1.0]})
rankers = [HarpReranker(sys.argv[1], batch_tokens=64), DenseCosine(sys.argv[1]), learned]
expected = [ranker(frame)["score"] for ranker in rankers]

def rank(number):
    return rankers[number](frame)["score"]

def check(after):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        for number, scores in enumerate(expected):
            given = pool.apply_async(rank, (number,)).get(60)
            assert np.allclose(given, scores, atol=1e-5), (after, number)

check("after use")
held, end = threading.Event(), threading.Event()

def hold():
    with batches.scoring_lock(torch.device("cpu")), rankers[0]._lock, rankers[1].encoder._lock:
        held.set()
        end.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
check("while a thread scores")
end.set()
thread.join()
assert torch.get_num_threads() == 3
print("equal")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_ranks_as_its_parent(telling_bert):
    environment = {**os.environ, "OMP_NUM_THREADS": "3", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(telling_bert)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert done.stdout == "equal\n", done.stderr[-2000:]
