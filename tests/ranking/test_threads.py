"""One reranker, or several, used from several threads at once."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from harp_plugin import HarpReranker, Scorer
from harp_plugin.collections.dataset import Dataset
from harp_plugin.errors import HarpError
from harp_plugin.ranking.forward import Forward

pytestmark = pytest.mark.integration

ROUNDS = 4
WORDS = [*"abcdefgh", "the", "web", "link", "page", "rank", "text", "query", "anchor"]


def results(seed: int = 0, queries: int = 3, documents: int = 8) -> pd.DataFrame:
    """Rows of a first stage, other ones for another seed."""
    draw = np.random.default_rng(seed)

    def text(longest):
        return " ".join(draw.choice(WORDS, draw.integers(1, longest)))

    rows = [
        {"qid": f"q{query}", "query": f"web {query} {seed}", "docno": f"d{place}", "text": text(30)}
        for query in range(queries)
        for place in range(documents)
    ]
    return pd.DataFrame(rows)


def at_once(threads: int, work, arguments=None):
    """Call ``work`` in several threads at the same moment, each with an argument of its own."""
    start = Barrier(threads)

    def run(argument):
        start.wait()
        return work(argument)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, arguments or range(threads)))


@pytest.fixture(params=["float32", "bfloat16", "windows"])
def options(request):
    if request.param == "windows":
        return {"passages": "max", "passage_length": 6, "batch_tokens": 64}
    return {"dtype": request.param, "batch_tokens": 64}


def test_one_reranker_gives_each_thread_the_scores_of_one(telling_bert, options):
    threads = 4
    frames = [results(seed) for seed in range(threads)]
    alone = HarpReranker(telling_bert, **options)
    expected = [alone(frame)["score"].to_numpy() for frame in frames]
    shared = HarpReranker(telling_bert, **options)
    for _ in range(ROUNDS):
        found = at_once(threads, shared, frames)
        for frame, scores in zip(found, expected, strict=True):
            np.testing.assert_array_equal(frame["score"].to_numpy(), scores)


def test_every_kind_of_call_at_once(reranker):
    queries, documents = (results()[name].tolist() for name in ("query", "text"))
    scorer, alone = (Scorer(reranker, max_length=48, batch_tokens=64) for _ in range(2))
    expected = alone.score(queries, documents)
    pairs = np.stack([np.arange(len(queries))] * 2, axis=1)

    def call(kind):
        if kind == 0:
            return scorer.score(queries, documents)
        texts = scorer.tokenize(queries), scorer.tokenize(documents)
        return scorer.score_tokens(*texts, pairs)

    for _ in range(ROUNDS):
        for scores in at_once(4, call):
            np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_a_model_is_loaded_once(telling_bert, monkeypatch):
    loaded = []
    make = Forward.__init__

    def counted(self, *arguments, **options):
        loaded.append(self)
        make(self, *arguments, **options)

    monkeypatch.setattr(Forward, "__init__", counted)
    reranker = HarpReranker(telling_bert)
    scorers = at_once(4, lambda _: (reranker(results()), reranker.scorer)[1])
    assert len(loaded) == 1 and len(set(map(id, scorers))) == 1


def test_different_rerankers_ensembles_and_features_at_once(telling_bert, another_bert, options):
    frame = results()
    one, two = (HarpReranker(model, **options) for model in (telling_bert, another_bert))
    systems = [one, two, HarpReranker.ensemble([one, two]), (one**two).compile()]
    expected = [system(frame) for system in systems]
    for _ in range(ROUNDS):
        found = at_once(len(systems), lambda system: system(frame), systems)
        for given, wanted in zip(found, expected, strict=True):
            pd.testing.assert_frame_equal(given, wanted, check_exact=True)


def test_one_dataset(tiny_bert):
    dataset = Dataset("harp-encyclopedia")
    docnos = pd.DataFrame({"docno": [docno for docno, _ in dataset.documents()][:40]})
    topics = pd.DataFrame({"qid": ["1", "2"], "query": ["web links", "page ranks"]})
    frame = topics.merge(docnos, how="cross")
    options = {"dataset": "irds:harp-encyclopedia", "max_length": 40}
    expected = HarpReranker(tiny_bert, **options)(frame)["score"]
    reranker = HarpReranker(tiny_bert, **options)
    for _ in range(3):
        for found in at_once(4, lambda _: reranker(frame)["score"]):
            pd.testing.assert_series_equal(found, expected, check_exact=True)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_error_in_one_thread_breaks_nothing(telling_bert, monkeypatch, error):
    frame = results()
    reranker = HarpReranker(telling_bert, batch_tokens=64)
    expected = reranker(frame)["score"].to_numpy()
    scores, calls = Forward._outputs, []

    def failing(self, batch):
        calls.append(batch)
        if len(calls) % 7 == 3:
            raise error("on purpose")
        return scores(self, batch)

    def attempt(_):
        try:
            return reranker(frame)["score"].to_numpy()
        except error:
            return None

    monkeypatch.setattr(Forward, "_outputs", failing)
    found = [one for _ in range(3) for one in at_once(2, attempt)]
    assert any(one is None for one in found)
    monkeypatch.undo()
    for one in [*at_once(2, attempt), *(one for one in found if one is not None)]:
        np.testing.assert_array_equal(one, expected)


def test_an_error_of_the_progress_bar_or_of_a_text_breaks_nothing(telling_bert):
    frame = results()
    scorer = Scorer(telling_bert, batch_tokens=64)
    texts = frame["query"].tolist(), frame["text"].tolist()
    expected = scorer.score(*texts)

    class Failing:
        def __init__(self, **_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self, count):
            raise ValueError("no screen")

    def attempt(number):
        if number % 2:
            with pytest.raises(ValueError, match="no screen"):
                scorer.score(*texts, progress=Failing)
        else:
            with pytest.raises(HarpError, match="must be a string"):
                scorer.score(["q"], [None])
        return scorer.score(*texts)

    for found in at_once(4, attempt):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_copies_have_locks_of_their_own(telling_bert, copied):
    frame = results()
    reranker = HarpReranker(telling_bert)
    expected = reranker(frame)["score"].to_numpy()
    twin = copied(reranker)
    assert twin == reranker and twin._lock is not reranker._lock
    for found in at_once(2, lambda one: one(frame), [twin, reranker]):
        np.testing.assert_array_equal(found["score"].to_numpy(), expected)
    scorer = copied(reranker.scorer)
    found = scorer.score(frame["query"].tolist(), frame["text"].tolist())
    np.testing.assert_array_equal(found.astype(np.float64), expected)


def test_all_cores_are_left_to_others(telling_bert):
    frame, before = results(), torch.get_num_threads()
    reranker = HarpReranker(telling_bert, batch_tokens=64)
    try:
        torch.set_num_threads(3)
        numbers = at_once(4, lambda _: (reranker(frame), torch.get_num_threads())[1])
        assert numbers == [3] * 4 and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_scoring_between_training_steps_changes_no_bit(telling_bert):
    def trained(score: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_pretrained(telling_bert).train()
        tokenizer = AutoTokenizer.from_pretrained(telling_bert)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        inputs = tokenizer(["web"], ["a link leads on"], return_tensors="pt")
        for _ in range(3):
            model(**inputs).logits.sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            if score:
                Scorer.from_model(model, tokenizer, max_length=48).score(["web"], ["a page"])
        return [weight.detach() for weight in model.parameters()]

    for with_scores, without in zip(trained(True), trained(False), strict=True):
        assert torch.equal(with_scores, without)


@pytest.mark.slow
def test_several_devices(telling_bert):
    frame = results()
    texts = frame["query"].tolist(), frame["text"].tolist()
    expected = Scorer(telling_bert, batch_tokens=64).score(*texts)
    scorer = Scorer(telling_bert, device=["cpu", "cpu"], batch_tokens=64)
    try:
        for _ in range(ROUNDS):
            for found in at_once(4, lambda _: scorer.score(*texts)):
                np.testing.assert_allclose(found, expected, atol=1e-6)
    finally:
        scorer.close()
