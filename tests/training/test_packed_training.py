"""Training on packed pairs is training on padded ones."""

from shutil import which

import pytest
import torch
from transformers.trainer_utils import set_seed

from harp_plugin.errors import HarpError
from harp_plugin.training.trainer import _take_compiling

from .test_trainer import trainer_of, without_dropout
from .tiny_models import KINDS, save_tiny_model

pytestmark = pytest.mark.integration


def trained(options, is_packed, **changes):
    """The losses of some steps and the weights after them."""
    set_seed(1)
    trainer = without_dropout(trainer_of(options, **changes))
    assert trainer.model.is_packed
    trainer.model.is_packed = is_packed
    trainer.train()
    lines = [line for line in trainer.state.log_history if "loss" in line]
    names = ("loss", "loss/hinge", "loss/mlm")
    return torch.tensor([[line[name] for name in names] for line in lines]), trainer.model


@pytest.mark.parametrize("kind", KINDS)
def test_packed_and_padded_losses_are_equal(kind, options, wordy_bert, tmp_path):
    """Over eight optimizer steps with joint masked language modeling, fp32, no dropout."""
    model = str(save_tiny_model(kind, wordy_bert, tmp_path / "base"))
    more = {"model": model, "max_steps": 8, "learning_rate": 1e-4, "save_strategy": "no"}
    of_packed, packed = trained(options, True, **more)
    of_padded, padded = trained(options, False, **more)
    assert of_packed.shape == (8, 3)
    assert (of_packed[:, 1].max() - of_packed[:, 1].min()) > 1e-3
    torch.testing.assert_close(of_packed, of_padded, atol=1e-4, rtol=0)
    weights = dict(padded.named_parameters())
    for name, weight in packed.named_parameters():
        torch.testing.assert_close(weight, weights[name], atol=2e-4, rtol=0)


NEEDS_COMPILER = pytest.mark.skipif(which("g++") is None, reason="no compiler of C++ here")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=NEEDS_COMPILER)])
def test_compiled_and_eager_losses_are_equal(backend, options):
    compiled = {"torch_compile": True, "torch_compile_backend": backend}
    of_eager, eager = trained(options, True, max_steps=3)
    found, model = trained(options, True, max_steps=3, overwrite=True, **compiled)
    torch.testing.assert_close(found, of_eager, atol=1e-4, rtol=0)
    assert model.state_dict().keys() == eager.state_dict().keys()


@pytest.mark.slow
@NEEDS_COMPILER
def test_what_is_compiled_draws_the_dropout_that_it_draws_without(options):
    """And its gradients are the same, with the options of the trainer for inductor's kernels."""

    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)

        def forward(self, values):
            return self.norm(torch.nn.functional.dropout(self.linear(values), 0.5))

    def outputs_and_gradients(part):
        values = torch.ones(5, 8, requires_grad=True)
        torch.manual_seed(1)
        output = part(values)
        output.square().sum().backward()
        return output, values.grad

    args = trainer_of(options).args
    args.torch_compile, args.torch_compile_backend = True, "inductor"
    compiling = _take_compiling(args)
    part = Part()
    expected = outputs_and_gradients(part)
    part.compile(dynamic=True, **compiling)
    torch._dynamo.reset()
    torch.testing.assert_close(outputs_and_gradients(part), expected)


def test_modes_of_the_compiler_are_checked(options):
    args = trainer_of(options).args
    args.torch_compile, args.torch_compile_backend = True, "inductor"
    args.torch_compile_mode = "fastest"
    with pytest.raises(HarpError, match=r"it must be one of default, .*max-autotune"):
        _take_compiling(args)


def test_checkpointed_activations_give_the_same_losses(options):
    found, _ = trained(options, True, max_steps=3, gradient_checkpointing=True)
    expected, _ = trained(options, True, max_steps=3, overwrite=True)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
