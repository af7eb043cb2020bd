"""What makes the scorer fast changes no score: packing, precision, threads, memory, processes."""

import os
import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
)

from harp_plugin import HarpReranker, Scorer
from harp_plugin.errors import HarpError
from harp_plugin.models import devices
from harp_plugin.ranking.batches import BatchRunner
from harp_plugin.ranking.forward import Forward
from harp_plugin.ranking.options import chosen_dtype
from harp_plugin.ranking.pipeline import PIPELINE, HarpPipeline

pytestmark = pytest.mark.integration

WORDS = [*"abcdefgh", "the", "web", "link", "page", "rank", "text", "query", "anchor"]


def some_pairs(count: int) -> tuple[list[str], list[str]]:
    draw = np.random.default_rng(0)
    texts = [
        [" ".join(draw.choice(WORDS, draw.integers(0, longest))) for _ in range(count)]
        for longest in (6, 40)
    ]
    return texts[0], texts[1]


def alone(scorer: Scorer, queries: list[str], documents: list[str]) -> np.ndarray:
    pairs = zip(queries, documents, strict=True)
    return np.concatenate([scorer.score([query], [document]) for query, document in pairs])


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("float32", 1e-5), ("bfloat16", 0.05), ("float16", 0.01)],
)
def test_a_score_does_not_depend_on_the_pairs_beside_it(reranker, dtype, tolerance):
    queries, documents = some_pairs(30)
    scorer = Scorer(reranker, dtype=dtype, max_length=48)
    together = scorer.score(queries, documents)
    np.testing.assert_allclose(together, alone(scorer, queries, documents), atol=tolerance)
    np.testing.assert_array_equal(together, scorer.score(queries, documents))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_low_precision_ranks_almost_alike(reranker, dtype):
    queries, documents = some_pairs(60)
    exact = Scorer(reranker, max_length=48).score(queries, documents)
    rough = Scorer(reranker, max_length=48, dtype=dtype).score(queries, documents)
    assert rough.dtype == np.float32 and (rough != exact).any()
    assert np.corrcoef(exact, rough)[0, 1] > 0.98
    assert len(np.unique(rough)) > 0.9 * len(np.unique(exact)), "the head is applied in float32"


def test_a_model_in_memory_is_read_anew_and_left_as_it_was(reranker):
    model = AutoModelForSequenceClassification.from_pretrained(reranker).train()
    scorer = Scorer.from_model(model, AutoTokenizer.from_pretrained(reranker), max_length=48)
    before = model.config._attn_implementation
    queries, documents = some_pairs(8)
    first = scorer.score(queries, documents)
    np.testing.assert_allclose(
        first, Scorer(reranker, max_length=48).score(queries, documents), atol=1e-5
    )
    assert model.training and model.config._attn_implementation == before
    assert not any(module._forward_pre_hooks for module in model.modules())
    assert not any("forward" in vars(module) for module in model.modules())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    assert not np.allclose(scorer.score(queries, documents), first, atol=1e-3)


def test_several_threads_give_the_scores_of_one(tiny_bert):
    queries, documents = some_pairs(40)
    scorer = Scorer(tiny_bert, batch_tokens=64)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = scorer.score(queries, documents)
        torch.set_num_threads(3)
        several = scorer.score(queries, documents)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(one, several)


def test_batches_are_halved_when_memory_runs_out_and_stay_so(tiny_bert, monkeypatch, caplog):
    queries, documents = some_pairs(40)
    expected = Scorer(tiny_bert).score(queries, documents)
    run = Forward._outputs
    refused = []

    def scarce(self, batch):
        if len(batch.ids) > 150:
            refused.append(len(batch.ids))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(self, batch)

    monkeypatch.setattr(Forward, "_outputs", scarce)
    scorer = Scorer(tiny_bert)
    np.testing.assert_allclose(scorer.score(queries, documents), expected, atol=1e-6)
    assert refused and "out of memory" in caplog.text
    for _ in range(3):
        scorer.score(queries, documents)
    assert sorted(set(refused), reverse=True) == refused, "a size that failed is not tried again"


def test_no_memory_for_one_pair_is_one_line_and_other_errors_pass(tiny_bert, monkeypatch):
    def refuse(self, batch):
        raise error

    monkeypatch.setattr(Forward, "_outputs", refuse)
    error = torch.OutOfMemoryError("CUDA out of memory")
    with pytest.raises(HarpError, match="does not take one text of 5 tokens: lower max_length"):
        Scorer(tiny_bert).score(["a"], ["b"])
    error = RuntimeError("something else")
    with pytest.raises(RuntimeError, match="something else"):
        Scorer(tiny_bert).score(["a", "b"], ["b", "c"])


def test_an_architecture_that_cannot_be_packed_is_padded(tmp_path, wordpiece):
    config = DebertaV2Config(
        vocab_size=len(wordpiece),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=1,
    )
    torch.manual_seed(0)
    DebertaV2ForSequenceClassification(config).save_pretrained(tmp_path)
    wordpiece.save_pretrained(tmp_path)
    queries, documents = some_pairs(12)
    scorer = Scorer(tmp_path, max_length=48)
    scores = scorer.score(queries, documents)
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    for query, document, score in zip(queries, documents, scores, strict=True):
        inputs = wordpiece([query], [document], truncation=True, return_tensors="pt")
        with torch.inference_mode():
            assert abs(model(**inputs).logits.item() - score) < 1e-5


def test_tokens_give_the_scores_of_texts(reranker):
    queries, documents = some_pairs(12)
    documents[3] *= 30
    scorer = Scorer(reranker, max_length=48)
    expected = scorer.score(queries, documents)
    pairs = np.stack([np.arange(12)] * 2, axis=1)[::-1]
    found = scorer.score_tokens(scorer.tokenize(queries), scorer.tokenize(documents), pairs)
    np.testing.assert_allclose(found, expected[::-1], atol=1e-6)
    assert scorer.score_tokens([], [], np.zeros((0, 2), dtype=np.int64)).shape == (0,)
    assert scorer.encoder.most_document_tokens(4) == 48 - scorer.encoder.template.length - 4
    room = 48 - scorer.encoder.template.length
    assert scorer.encoder.most_document_tokens(99) == room - room // 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": []}, "device is empty"),
        ({"device": "meta"}, "device 'meta' cannot be used"),
    ],
)
def test_devices_without_sense_are_refused(tiny_bert, options, message):
    with pytest.raises(HarpError, match=message):
        Scorer(tiny_bert, **options).score(["a"], ["b"])


@pytest.mark.slow
def test_several_processes_give_the_same_scores_and_end(tiny_bert):
    queries, documents = some_pairs(40)
    expected = Scorer(tiny_bert, batch_tokens=64).score(queries, documents)
    scorer = Scorer(tiny_bert, device=["cpu", "cpu"], batch_tokens=64)
    found = scorer.score(queries, documents)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    children = scoring_children(os.getpid())
    assert len(children) == 2
    children[0].kill()
    with pytest.raises(HarpError, match="a scoring process ended"):
        for _ in range(50):
            scorer.score(queries, documents)
    np.testing.assert_array_equal(scorer.score(queries, documents), found)
    scorer.close()
    assert not scoring_children(os.getpid())


@pytest.mark.slow
def test_no_process_is_left_behind(tiny_bert, tmp_path):
    """After a SIGKILL; an interrupt is tested with the commands."""
    script = tmp_path / "script.py"
    script.write_text(
        "from harp_plugin import Scorer\n"
        "if __name__ == '__main__':\n"
        f"    scorer = Scorer({str(tiny_bert)!r}, device=['cpu', 'cpu'], batch_tokens=64)\n"
        "    texts = [f'{number} words' for number in range(3000)]\n"
        "    while True:\n"
        "        scorer.score(texts, texts)\n"
        "        print('scored', flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout and process.stdout.readline() == "scored\n"
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(scoring_children(process.pid)) == 2
    process.kill()
    process.wait(60)
    _, left = psutil.wait_procs(children, timeout=60)
    assert not left
    process.stdout.close()


def scoring_children(parent: int) -> list[psutil.Process]:
    children = psutil.Process(parent).children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


@pytest.mark.slow
def test_memory_stays_flat_over_50_000_pairs(tiny_bert):
    code = (
        "import psutil\n"
        "from itertools import islice\n"
        "from harp_plugin import Scorer\n"
        "pairs = ((f'query {n // 100}', f'document {n} ' + 'word ' * (n % 20)) "
        "for n in range(50_000))\n"
        f"scorer = Scorer({str(tiny_bert)!r})\n"
        "while part := list(islice(pairs, 5_000)):\n"
        "    scorer.score(*zip(*part))\n"
        "    print(psutil.Process().memory_info().rss, flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    sizes = [int(line) for line in done.stdout.split()]
    assert len(sizes) == 10
    assert max(sizes[2:]) < sizes[1] * 1.1


class Event:
    """Stands for an event of CUDA: what was queued before it is computed when it is waited for."""

    def __init__(self, log):
        self.log = log
        log.append("queued")

    def synchronize(self):
        self.log.append("read")


def run_ahead(self, batches):
    with self._evaluation_mode():
        yield from self._run_ahead(batches)


def test_a_gpu_has_its_next_batches_before_scores_are_read(reranker, monkeypatch):
    """The steps of a GPU, on a CPU: blocks that grow, and reading behind computing."""
    queries, documents = some_pairs(90)
    expected = Scorer(reranker).score(queries, documents)
    log, sizes = [], []
    stream = SimpleNamespace(record_event=lambda: Event(log))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    monkeypatch.setattr(BatchRunner, "run", run_ahead)
    monkeypatch.setattr(Scorer, "_is_on_gpu", True)
    monkeypatch.setattr("harp_plugin.ranking.scorer._FIRST_PAIRS", 10)
    blocks = Scorer._blocks

    def counted(self, *arguments, **options):
        for start, part in blocks(self, *arguments, **options):
            sizes.append(len(part))
            yield start, part

    monkeypatch.setattr(Scorer, "_blocks", counted)
    found = Scorer(reranker, batch_tokens=200).score(queries, documents)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert sizes[:3] == [10, 20, 40] and sum(sizes) == len(
        set(zip(queries, documents, strict=True))
    )
    assert log[:4] == ["queued"] * 3 + ["read"] and log.count("read") == log.count("queued") > 4


@pytest.mark.parametrize(
    ("device", "has_gpu", "expected"),
    [
        (None, True, "bfloat16"),
        ("cuda:1", True, "bfloat16"),
        (["cuda:0", "cuda:1"], True, "bfloat16"),
        ("cpu", True, "float32"),
        (None, False, "float32"),
    ],
)
def test_the_type_of_numbers_is_that_of_the_device(device, has_gpu, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)
    assert chosen_dtype("auto", device) == expected
    assert chosen_dtype("float16", device) == "float16"


def test_what_is_saved_on_a_gpu_computes_as_the_next_machine_does(reranker, monkeypatch, tmp_path):
    """The type of numbers is chosen where the model is loaded, not where the scorer is made."""
    with monkeypatch.context() as on_gpu:
        on_gpu.setattr(torch.cuda, "is_available", lambda: True)
        on_gpu.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)
        made = Scorer(reranker), HarpReranker(reranker)
        HarpPipeline(made[1]).save(tmp_path)
        pickled = pickle.dumps(made)
    assert "bfloat16" not in f"{made} {(tmp_path / PIPELINE).read_text()}"
    assert HarpPipeline.load(tmp_path).pipeline == made[1]
    scorer, ranker = pickle.loads(pickled)
    for each in (scorer, ranker.scorer):
        each.score(["query"], ["document"])
        assert each.dtype == "auto" and each._forward.model.dtype == torch.float32
    monkeypatch.setattr(devices, "default_dtype", lambda device: "bfloat16")
    again = Scorer(reranker)
    again.score(["query"], ["document"])
    assert again._forward.model.dtype == torch.bfloat16
