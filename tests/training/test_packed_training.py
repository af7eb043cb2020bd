"""Training on packed pairs is training on padded ones."""

import pytest
import torch
from transformers.trainer_utils import set_seed

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


@pytest.mark.slow
def test_compiled_and_eager_losses_are_equal(options):
    """By a backend that needs no compiler."""
    compiled = {"torch_compile": True, "torch_compile_backend": "aot_eager"}
    of_eager, eager = trained(options, True, max_steps=3)
    found, model = trained(options, True, max_steps=3, overwrite=True, **compiled)
    torch.testing.assert_close(found, of_eager, atol=1e-4, rtol=0)
    assert model.state_dict().keys() == eager.state_dict().keys()


def test_checkpointed_activations_give_the_same_losses(options):
    found, _ = trained(options, True, max_steps=3, gradient_checkpointing=True)
    expected, _ = trained(options, True, max_steps=3, overwrite=True)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
