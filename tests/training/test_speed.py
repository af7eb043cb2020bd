"""Tokens and pairs a second, and the work of a step."""

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.models.training_cost import BatchSize, TrainingCost
from harp_plugin.training.speed import SPEEDS, Speed, peak_of

from .test_trainer import trainer_of


@pytest.fixture(scope="module")
def model(tiny_bert):
    return TrainableCrossEncoder.load(str(tiny_bert))


def test_weights_of_the_tiny_bert_by_hand(model):
    vocabulary = model.config.vocab_size
    # Hidden 32, two layers: four square matrices and two of 32 × 64 in each.
    assert model.training_cost() == TrainingCost(
        encoder=2 * (4 * 32 * 32 + 2 * 32 * 64),
        scoring_head=32 * 32 + 32,
        language_head=32 * 32 + 32 * vocabulary,
        attention=2 * 32,
    )


def test_flops_are_those_that_torch_counts(model):
    from torch.utils.flop_counter import FlopCounterMode

    pairs, length, masked = 3, 16, 7
    ids = torch.randint(5, 100, (pairs, length))
    counter = FlopCounterMode(display=False)
    with counter:
        lengths = np.full(pairs, length)
        output = model(
            ids.flatten(),
            lengths,
            torch.zeros(pairs * length, dtype=torch.long),
            torch.arange(masked),
        )
        (output.scores.sum() + output.mlm_logits.sum()).backward()
    size = BatchSize(pairs * length, pairs * length**2, pairs, masked)
    expected = model.training_cost().flops(size)
    assert counter.get_total_flops() == pytest.approx(expected, rel=0.03)


def test_real_tokens_count_and_padding_does_not(model, monkeypatch):
    clock = iter([0.0, 4.0, 4.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    speed = Speed(model.training_cost(), torch.device("cpu"))
    speed.peak = 1e9
    speed.add(model.size_of({"lengths": np.array([3, 4]), "mlm_labels": torch.zeros(5)}))
    speed.add(model.size_of({"lengths": np.array([3])}))
    work = speed.cost.flops(BatchSize(10, 9 + 16 + 9, 3, 5))
    assert speed.drain(Accelerator(cpu=True)) == {
        "tokens_per_second": 2.5,
        "pairs_per_second": 0.75,
        "model_flops_utilisation": pytest.approx(work / 4e9),
    }


def test_time_of_evaluations_does_not_count(model, monkeypatch):
    clock = iter([0.0, 1.0, 101.0, 102.0, 102.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    speed = Speed(model.training_cost(), torch.device("cpu"))
    speed.add(model.size_of({"lengths": np.array([6])}))
    with speed.stopped():
        pass
    assert speed.drain(Accelerator(cpu=True)) == {"tokens_per_second": 3, "pairs_per_second": 0.5}


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA A10G", 70e12),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA L4", 121e12),
        ("Tesla T4", None),
    ],
)
def test_peaks(name, peak, monkeypatch):
    monkeypatch.setattr("torch.cuda.get_device_name", lambda _: name)
    assert peak_of(torch.device("cuda")) == peak
    assert peak_of(torch.device("cpu")) is None


def test_each_log_line_has_the_speed(options):
    trainer = trainer_of(options, max_steps=3)
    trainer.train()
    lines = [line for line in trainer.state.log_history if "loss" in line]
    assert len(lines) == 3
    for line in lines:
        assert line["tokens_per_second"] > line["pairs_per_second"] > 0
        assert SPEEDS[2] not in line
