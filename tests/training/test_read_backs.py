"""Nothing waits for a GPU between the forward pass and the optimizer, seen on a CPU."""

from contextlib import contextmanager
from unittest.mock import Mock

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import Trainer
from varlen import use_kernel

from harp_plugin.training.trainer import HarpTrainer

from .conftest import ManyNegatives
from .test_trainer import trainer_of

READ_BACKS = {
    *("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "unique"),
    *("_unique2", "unique_dim", "unique_consecutive", "bincount", "argwhere"),
}


class NoReadBack(TorchDispatchMode):
    """Raises at an operation for which a GPU's result has to be known by the CPU."""

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        name = function.overloadpacket.__name__
        by_mask = name == "index" and any(
            index is not None and index.dtype == torch.bool for index in arguments[1]
        )
        checked = name == "segment_reduce" and not (options or {}).get("unsafe")
        counted = name == "repeat_interleave" and (options or {}).get("output_size") is None
        if name in READ_BACKS or by_mask or checked or counted:
            raise AssertionError(f"{name} reads back")
        return function(*arguments, **(options or {}))


@contextmanager
def no_read_back(monkeypatch):
    """Raise also where a CPU's tensor is read without an operation."""
    with NoReadBack(), monkeypatch.context() as patched:
        for name in ("tolist", "numpy", "cpu"):
            patched.setattr(torch.Tensor, name, Mock(side_effect=AssertionError("reads back")))
        yield


@pytest.mark.parametrize(
    "read", [torch.Tensor.item, torch.nonzero, lambda t: t[t > 0], lambda t: t.tolist(), int]
)
def test_what_reads_back_is_seen(read, monkeypatch):
    with pytest.raises(AssertionError, match="reads back"), no_read_back(monkeypatch):
        read(torch.ones(1))


BI_ENCODER = {"model_kind": "bi-encoder", "losses": {"contrastive": 1}}
RUNS = {
    "hinge and mlm": {"losses": {"hinge": 1, "mlm": 1}},
    "every loss of scores": {"losses": dict.fromkeys(("hinge", "lce", "bce", "ranknet"), 1)},
    **{
        f"bi-encoder, {pooling}": BI_ENCODER | {"pooling": pooling}
        for pooling in ("mean", "cls", "last")
    },
    "bi-encoder, few texts at once": BI_ENCODER | {"texts_at_once": 4},
}


@pytest.mark.parametrize("name", RUNS)
def test_no_step_reads_back(name, options, monkeypatch):
    """By the way of a GPU: a kernel for packed texts, and none of a CPU's own modules."""
    use_kernel(monkeypatch)
    monkeypatch.setattr(HarpTrainer, "_use_cpu_modules", lambda *_: None)
    step, losses = Trainer.training_step, []

    def watched(*arguments):
        with no_read_back(monkeypatch):
            losses.append(step(*arguments))
        return losses[-1]

    monkeypatch.setattr(Trainer, "training_step", watched)
    monkeypatch.setattr(HarpTrainer, "training_step", watched)
    trainer_of(options, ManyNegatives(), max_steps=3, save_strategy="no", **RUNS[name]).train()
    assert len(losses) == 3 and all(loss.isfinite() for loss in losses)
