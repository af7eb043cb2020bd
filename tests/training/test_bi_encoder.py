"""A bi-encoder is trained, killed and resumed as a cross-encoder is."""

import json

import pytest
from safetensors.torch import load_file

from harp_plugin.errors import HarpError
from harp_plugin.training.folder import LOG
from harp_plugin.training.run import fit

from .conftest import DyingGroups, Killed, SentenceGroups

DENSE = {"model_kind": "bi-encoder", "losses": {"contrastive": 1}}


@pytest.mark.integration
def test_it_learns_and_a_killed_run_ends_in_the_same_bits(options, tmp_path):
    changes = {**DENSE, "max_steps": 30, "save_steps": 6}
    whole = fit(SentenceGroups(), *options(**changes, output_dir=str(tmp_path / "whole")))
    losses = [line["loss"] for line in json.loads((whole / LOG).read_text()) if "loss" in line]
    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])
    with pytest.raises(Killed):
        fit(DyingGroups(80), *options(**changes))
    assert not (tmp_path / "out" / "model.safetensors").exists()
    again = fit(SentenceGroups(), *options(**changes))
    for name in ("model.safetensors", LOG, "modules.json", "1_Pooling/config.json", "README.md"):
        assert (again / name).read_bytes() == (whole / name).read_bytes()
    assert "embeddings.word_embeddings.weight" in load_file(again / "model.safetensors")


@pytest.mark.integration
def test_a_recipe_may_name_shortened_vectors(options, tmp_path):
    losses = set()
    for name, more in (("whole", {}), ("shortened", {"matryoshka_dimensions": [16, 8]})):
        recipe = {**DENSE, **more, "max_steps": 1, "output_dir": str(tmp_path / name)}
        folder = fit(SentenceGroups(), *options(**recipe))
        losses.add(json.loads((folder / LOG).read_text())[0]["loss/contrastive"])
    assert len(losses) == 2


@pytest.mark.integration
def test_losses_of_a_group_alone_train_it_too(options):
    losses = {"lce": {"temperature": 0.1}, "contrastive": 0.5}
    folder = fit(SentenceGroups(), *options(model_kind="bi-encoder", losses=losses, max_steps=2))
    log = json.loads((folder / LOG).read_text())
    assert {"loss/lce", "loss/contrastive"} <= log[0].keys()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"losses": {"contrastive": 1}}, "set model_kind to bi-encoder, or take lce"),
        ({**DENSE, "losses": {"lce": 1, "mlm": 1}}, "leave out mlm"),
        ({"pooling": "cls", "losses": {"lce": 1}}, "pooling is an option of a bi-encoder"),
        ({"normalize": True, "losses": {"lce": 1}}, "normalize is an option of a bi-encoder"),
        (
            {**DENSE, "losses": {"lce": 1}, "matryoshka_dimensions": [8]},
            "changes the loss contrastive only",
        ),
        ({**DENSE, "matryoshka_dimensions": [0]}, "it must be at least 1"),
    ],
)
def test_options_of_the_other_kind(options, changes, said):
    with pytest.raises(HarpError, match=said):
        fit(SentenceGroups(), *options(**changes))
