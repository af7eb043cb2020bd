"""What training writes gives equal scores wherever it is loaded."""

import pytest
import torch
from sentence_transformers import CrossEncoder
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.ranking.scorer import Scorer
from harp_plugin.training.run import fit

from .conftest import SentenceGroups, parse
from .test_tevatron import short_recipe
from .tiny_models import KINDS, save_tiny_model

PAIRS = [
    ("index query", "A ranking of each document by its weight."),
    ("anchor link", "The page."),
    ("score graph", "Vector search engine corpus token score graph crawl cluster snippet. " * 2),
]


@pytest.fixture(scope="module", params=KINDS)
def checkpoint(request, tiny_bert, tmp_path_factory):
    """Of two steps with the hinge and masked language modeling, from a base without heads."""
    folder = tmp_path_factory.mktemp("checkpoint")
    base = save_tiny_model(request.param, tiny_bert, folder / "base")
    more = {"max_steps": 2, "learning_rate": 5e-3, "losses": {"hinge": 1, "mlm": 1}}
    return fit(SentenceGroups(), *parse(short_recipe(base, folder / "out") | more))


@pytest.fixture(scope="module")
def inputs(checkpoint):
    """Each pair as the model's own tokenizer encodes it, alone."""
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    return [tokenizer(*pair, return_tensors="pt") for pair in PAIRS]


@pytest.fixture(scope="module")
def expected(checkpoint, inputs):
    """Scores of transformers' own class, pair by pair."""
    loaded, info = AutoModelForSequenceClassification.from_pretrained(
        checkpoint, output_loading_info=True
    )
    assert not info["missing_keys"] and loaded.config.num_labels == 1
    with torch.no_grad():
        scores = torch.cat([loaded.eval()(**each).logits[:, 0] for each in inputs])
    assert scores.std() > 1e-4
    return scores


def close(found, expected):
    torch.testing.assert_close(torch.as_tensor(found), expected, atol=1e-5, rtol=0)


def test_our_own_model(checkpoint, expected):
    model = TrainableCrossEncoder.load(str(checkpoint)).eval()
    assert model.new_weights == ()
    batches = model.batches(AutoTokenizer.from_pretrained(checkpoint), max_length=64)
    with torch.no_grad():
        close(model(**batches(PAIRS, [None] * len(PAIRS), None)).scores, expected)


def test_cross_encoder(checkpoint, expected):
    close(CrossEncoder(str(checkpoint), device="cpu").predict(PAIRS), expected)


def test_reranker(checkpoint, expected):
    close(Scorer(checkpoint, device="cpu").score(*zip(*PAIRS, strict=True)), expected)


LOAD = """
import json, sys, torch
from tevatron.reranker.modeling import RerankerModel
of = json.loads(sys.argv[1])
options = {"torch_dtype": torch.float32, "attn_implementation": "sdpa"}
model = RerankerModel.load(of["model"], **options).eval()
with torch.no_grad():
    pairs = [{name: torch.tensor(rows) for name, rows in pair.items()} for pair in of["pairs"]]
    print(json.dumps([model(pair=pair).scores.item() for pair in pairs]))
"""


@pytest.mark.integration
def test_tevatrons_reranker_model(on_main, checkpoint, inputs, expected):
    """Tevatron's main branch asks for flash attention where no other is named."""
    pairs = [{name: rows.tolist() for name, rows in each.items()} for each in inputs]
    close(torch.tensor(on_main(LOAD, model=str(checkpoint), pairs=pairs)), expected)
