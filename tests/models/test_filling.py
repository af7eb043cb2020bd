"""The text of padding that a large batch in training gets."""

import numpy as np
import pytest
import torch

from harp_plugin.models.bi_encoder import TrainableBiEncoder
from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.models.packing.encoder import filler_tokens, with_filler

LENGTHS = np.array([50] * 11 + [3])
TOKENS = int(LENGTHS.sum())


@pytest.mark.parametrize(
    ("tokens", "longest", "count"),
    [(511, 512, 0), (512, 512, 0), (513, 512, 127), (640, None, 0), (641, 100, 0), (700, 68, 68)],
)
def test_numbers_of_tokens(tokens, longest, count):
    assert filler_tokens(tokens, 128, longest) == count


def test_the_texts_stay_as_they_are():
    ids, types = torch.arange(1, TOKENS + 1), torch.ones(TOKENS, dtype=torch.long)
    filled, lengths, filled_types = with_filler(ids, LENGTHS, types, longest=512)
    assert len(filled) == len(filled_types) == lengths.sum() == 640
    assert torch.equal(filled[:TOKENS], ids) and not filled[TOKENS:].any()
    assert torch.equal(filled_types[:TOKENS], types)
    assert lengths[:-1].tolist() == LENGTHS.tolist()


def outputs(model, ids):
    if isinstance(model, TrainableBiEncoder):
        return [model(ids, LENGTHS)]
    output = model(ids, LENGTHS, torch.zeros_like(ids), torch.arange(0, TOKENS, 7))
    return [output.scores, output.mlm_logits]


@pytest.mark.parametrize("kind", [TrainableCrossEncoder, TrainableBiEncoder])
def test_outputs_and_gradients_are_those_of_padded_texts(kind, tiny_bert):
    """Padded texts have no such text."""
    torch.manual_seed(1)
    ids = torch.randint(5, 100, (TOKENS,))
    found = []
    for is_packed in (True, False):
        model = kind.load(str(tiny_bert)).eval()
        model.is_packed = is_packed
        values = outputs(model, ids)
        sum(value.square().mean() for value in values).backward()
        gradients = [w.grad for w in model.parameters() if w.grad is not None]
        found.append([*values, *gradients])
    for packed, padded in zip(*found, strict=True):
        torch.testing.assert_close(packed, padded, atol=1e-4, rtol=1e-3)
