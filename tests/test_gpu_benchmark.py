"""The arithmetic of ``benchmarks/gpu.py``."""

from pathlib import Path

import torch
from benchmark_modules import load
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertForMaskedLM

Model = load("model_shapes").Model
covered = load("step_clock").covered


def test_operations_are_those_that_torch_counts():
    config = BertConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
        attn_implementation="eager",
    )
    bert = BertForMaskedLM(config)
    with FlopCounterMode(display=False) as counter:
        bert(torch.arange(30).view(3, 10)).logits.sum().backward()
    counts = {"tokens": 30, "squares": 3 * 10**2, "masked": 30, "rate": 0}
    model = Model("tiny", Path(), layers=2, width=32, inner=48, vocabulary=100)
    assert model.operations(counts) == counter.get_total_flops()


def test_time_in_which_two_kernels_run_counts_once():
    assert covered([(0, 2), (1, 3), (5, 6), (5, 5.5)]) == 4
