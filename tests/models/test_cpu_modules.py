"""Modules for training on a CPU, against torch's own."""

import pytest
import torch
import torch.nn.functional as F
from scipy.stats import chisquare
from torch import nn
from torch.utils.checkpoint import checkpoint

from harp_plugin.models import cpu_modules
from harp_plugin.models.cpu_modules import (
    CpuDropout,
    CpuLinear,
    keep_gradient,
    use_cpu_modules,
)
from harp_plugin.models.packing.attention import drop_elements
from harp_plugin.models.packing.products import has_onednn

ROWS, WIDTH, OUTPUTS = 50, 24, 40


@pytest.fixture(autouse=True)
def products(monkeypatch):
    """Take oneDNN's products on every processor that has them."""
    if not has_onednn():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(cpu_modules, "multiplies_by_onednn", lambda: True)


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def has_our_product(output):
    """Whether a product is ours, which a view gives its shape."""
    return "Product" in type(output.grad_fn.next_functions[0][0]).__name__


@pytest.mark.parametrize("shape", [(7, WIDTH), (3, 5, WIDTH), (1, WIDTH)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_linear_and_its_gradients(shape, has_bias):
    """Against torch in float64."""
    layer = CpuLinear(WIDTH, OUTPUTS, bias=has_bias)
    inputs = drawn(*shape).requires_grad_()
    found = layer(inputs)
    assert has_our_product(found)
    gradients = torch.autograd.grad(found.sin().sum(), [inputs, *layer.parameters()])
    exact = [value.detach().double().requires_grad_() for value in (inputs, *layer.parameters())]
    expected = F.linear(*exact)
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
    wanted = torch.autograd.grad(expected.sin().sum(), exact)
    for gradient, exact_gradient in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(gradient.double(), exact_gradient, atol=1e-4, rtol=1e-4)


def test_gradients_come_only_to_those_that_need_them():
    layer, inputs = CpuLinear(WIDTH, OUTPUTS), drawn(7, WIDTH)
    layer.bias.requires_grad_(False)
    layer(inputs).sum().backward()
    torch.testing.assert_close(layer.weight.grad, inputs.sum(0).expand(OUTPUTS, WIDTH))
    assert inputs.grad is None and layer.bias.grad is None


def test_an_output_may_be_changed_in_place():
    """As DeBERTa adds its biases, and as Longformer divides its queries."""
    layer, inputs = CpuLinear(WIDTH, OUTPUTS), drawn(3, 5, WIDTH)
    outputs = layer(inputs)
    outputs.transpose(0, 1).unflatten(-1, (2, -1)).permute(0, 2, 1, 3).add_(1)
    outputs /= 2
    (outputs**2).sum().backward()
    rows = inputs.flatten(0, 1)
    expected = ((F.linear(rows, layer.weight, layer.bias) + 1) / 2).mT @ rows
    torch.testing.assert_close(layer.weight.grad, expected, atol=1e-4, rtol=1e-4)


def test_linear_of_other_kinds_is_torchs_own():
    layer = CpuLinear(WIDTH, OUTPUTS)
    assert not has_our_product(layer(drawn(WIDTH)))
    assert not has_our_product(layer(drawn(0, WIDTH)))
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(drawn(3, WIDTH)).dtype == torch.bfloat16
    assert not has_our_product(layer.double()(drawn(3, WIDTH).double()))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.83])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_drops_its_share_and_scales_the_others(share, dtype):
    torch.manual_seed(0)
    ones = torch.ones(301, 999, dtype=dtype, requires_grad=True)
    out = drop_elements(ones, share)
    assert out.dtype == dtype
    kept = out != 0
    torch.testing.assert_close(
        out[kept], torch.full_like(out[kept], 1 / (1 - share)), rtol=2e-3, atol=0
    )
    assert out[kept].unique().numel() == 1
    counts = torch.tensor([int((~kept).sum()), int(kept.sum())], dtype=torch.float64)
    expected = torch.tensor([share, 1 - share], dtype=torch.float64) * kept.numel()
    assert chisquare(counts, expected).pvalue > 1e-3
    out.sum().backward()
    assert torch.equal(ones.grad, out.detach())


def test_dropout_draws_each_element_by_itself():
    """All 16 outcomes of the four elements of one random number are equally likely."""
    torch.manual_seed(1)
    kept = (drop_elements(torch.ones(400_000), 0.5) != 0).view(-1, 4).long()
    outcomes = kept @ torch.tensor([1, 2, 4, 8])
    assert chisquare(torch.bincount(outcomes, minlength=16)).pvalue > 1e-3


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_dropout_of_nothing_and_of_all(share):
    assert torch.equal(drop_elements(torch.ones(5), share), torch.full((5,), 1 - share))


def test_dropout_follows_the_seed_and_the_mode():
    layer, ones = CpuDropout(0.3), torch.ones(1000)
    torch.manual_seed(3)
    first, second = layer(ones), layer(ones)
    torch.manual_seed(3)
    assert torch.equal(layer(ones), first)
    assert not torch.equal(first, second)
    assert torch.equal(layer.eval()(ones), ones)


def test_a_model_keeps_its_weights_and_computes_the_same():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Dropout(0.5), nn.Linear(WIDTH, 3))
    inputs, weights = drawn(5, WIDTH), model.state_dict()
    expected = model.eval()(inputs)
    use_cpu_modules(model)
    assert [type(part) for part in model] == [CpuLinear, nn.GELU, CpuDropout, CpuLinear]
    assert model.state_dict().keys() == weights.keys()
    torch.testing.assert_close(model(inputs), expected, atol=1e-6, rtol=1e-5)


def test_activations_that_are_computed_again_have_the_same_dropout():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.5))
    use_cpu_modules(model)
    inputs = drawn(20, WIDTH).requires_grad_()
    gradients = []
    for function in (model, lambda states: checkpoint(model, states, use_reentrant=False)):
        torch.manual_seed(4)
        gradients += torch.autograd.grad(function(inputs).sin().sum(), inputs)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("is_tied", [True, False])
@pytest.mark.parametrize("padding", [None, 0])
def test_gradient_of_an_embedding(is_tied, padding):
    """Of two batches that accumulate, and again after it was removed, as after a step."""
    embedding = nn.Embedding(ROWS, WIDTH, padding_idx=padding)
    nn.init.normal_(embedding.weight)  # torch sets the row of padding to 0, where gradients are 0
    chance = torch.Generator().manual_seed(1)
    batches = torch.randint(0, ROWS, (2, 3, 8), generator=chance)
    batches[0, 0, :4] = 0

    def backward(ids):
        states = embedding(ids).sin()
        outputs = F.linear(states, embedding.weight) if is_tied else states
        outputs.cos().sum().backward()

    for ids in batches:
        backward(ids)
    expected, embedding.weight.grad = embedding.weight.grad, None
    keep_gradient(embedding)
    for _ in range(2):
        for ids in batches:
            backward(ids)
        torch.testing.assert_close(embedding.weight.grad, expected, atol=1e-5, rtol=1e-5)
        embedding.weight.grad = None
