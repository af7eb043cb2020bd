"""Layers that are compiled: one graph, no break, the same outputs and gradients."""

import numpy as np
import pytest
import torch
from torch._dynamo.backends.debugging import aot_eager
from transformers import BertConfig, BertModel, ModernBertConfig, ModernBertModel
from varlen import use_kernel

from harp_plugin.models.bi_encoder import TrainableBiEncoder
from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.models.packing import compiled_layers

SMALL = {
    "vocab_size": 123,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
}
MODELS = {
    "bert": lambda: BertModel(BertConfig(**SMALL)),
    "modernbert": lambda: ModernBertModel(
        ModernBertConfig(**SMALL, pad_token_id=0, cls_token_id=1, sep_token_id=2, local_attention=8)
    ),
}
BATCHES = [[9, 30, 4], [8, 8], [40, 3, 25, 3, 17]]


def values_of(model, lengths):
    """The outputs of a model for texts of these lengths, as one row."""
    generator = torch.Generator().manual_seed(sum(lengths))
    ids = torch.randint(5, 120, (sum(lengths),), generator=generator)
    if isinstance(model, TrainableBiEncoder):
        return model(ids, np.array(lengths)).flatten()
    output = model(ids, np.array(lengths), masked_positions=torch.tensor([1, 5, 11]))
    return torch.cat([output.scores, output.mlm_logits.flatten()])


def outputs_and_gradients(model):
    outputs = [values_of(model, lengths) for lengths in BATCHES]
    sum(values.square().mean() for values in outputs).backward()
    return outputs, [w.grad for w in model.parameters() if w.grad is not None]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (TrainableCrossEncoder, "bert"),
        (TrainableBiEncoder, "modernbert"),
        pytest.param(TrainableCrossEncoder, "modernbert", marks=pytest.mark.slow),
        pytest.param(TrainableBiEncoder, "bert", marks=pytest.mark.slow),
    ],
)
def test_all_layers_share_a_graph_without_a_break(kind, name, tmp_path, monkeypatch):
    torch.manual_seed(0)
    MODELS[name]().save_pretrained(tmp_path)
    expected = outputs_and_gradients(kind.load(str(tmp_path)).eval())
    use_kernel(monkeypatch)
    model, graphs = kind.load(str(tmp_path)).eval(), []

    def backend(graph, inputs):
        graphs.append(graph)
        return aot_eager(graph, inputs)

    torch._dynamo.reset()
    encoder = model.ranking_model().base_model
    layers = compiled_layers(encoder, *model.heads, backend=backend, fullgraph=True)
    parts = 4 * (name == "bert")  # of the last layer, which a packed cross-encoder calls one by one
    assert len(layers) == SMALL["num_hidden_layers"] + parts + len(model.heads)
    found = outputs_and_gradients(model)
    for values, wanted in zip([*found[0], *found[1]], [*expected[0], *expected[1]], strict=True):
        torch.testing.assert_close(values, wanted, atol=1e-5, rtol=1e-5)
    # The first layer of ModernBERT lacks a norm, and the windows of others differ.
    called = parts * (kind is TrainableCrossEncoder)
    assert len(graphs) <= {"bert": 1, "modernbert": 3}[name] + called + len(model.heads)
    assert model.state_dict().keys() == kind.load(str(tmp_path)).state_dict().keys()
    compiled, random = len(graphs), np.random.default_rng(0)
    for _ in range(25):
        values_of(model, random.integers(6, 40, random.integers(2, 9)).tolist())
    assert len(graphs) == compiled, "other numbers of texts and tokens need no other graph"


def test_what_is_between_compiled_layers_has_the_type_of_the_products(tmp_path):
    """Under autocast norms give the narrow type, and their values are those of fp32, rounded."""
    torch.manual_seed(0)
    MODELS["bert"]().save_pretrained(tmp_path)
    torch._dynamo.reset()
    plain, model = (TrainableCrossEncoder.load(str(tmp_path)).eval() for _ in range(2))
    layers = compiled_layers(model.scorer.base_model, backend="eager")
    inputs: list[torch.Tensor] = []
    layers[1].register_forward_pre_hook(lambda _, arguments: inputs.append(arguments[0]))
    with torch.autocast("cpu", torch.bfloat16):
        found, expected = (values_of(each, BATCHES[0]) for each in (model, plain))
    assert [states.dtype for states in inputs] == [torch.bfloat16]
    torch.testing.assert_close(found, expected, atol=0.02, rtol=0.02)
    states = torch.randn(4, 16)
    norm = layers[0].attention.output.LayerNorm
    torch.testing.assert_close(norm(states), torch.nn.LayerNorm.forward(norm, states))
