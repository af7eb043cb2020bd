"""A bi-encoder is trained, killed and resumed as a cross-encoder is."""

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file

from harp_plugin.errors import HarpError
from harp_plugin.models.folder import (
    MANIFEST,
    POOLING,
    WEIGHTS,
    listed_files,
    verify_manifest,
)
from harp_plugin.training.checkpoint_files import (
    UNFINISHED,
    UNPUBLISHED,
    fault,
    remove,
    synced_hashes,
)
from harp_plugin.training.folder import LOG, RECORD
from harp_plugin.training.run import fit
from harp_plugin.work.records import read_record, write_record

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
    for name in (*listed_files(whole), MANIFEST, LOG, "README.md"):
        assert (again / name).read_bytes() == (whole / name).read_bytes()
    assert "embeddings.word_embeddings.weight" in load_file(again / WEIGHTS)


@pytest.mark.integration
@pytest.mark.parametrize("names_folders", [False, True])
def test_a_finished_folder_is_written_anew(options, names_folders):
    """Also one whose record names its folders, as it once did; files of others stay."""
    folder = fit(SentenceGroups(), *options(**DENSE, max_steps=2, pooling="cls"))
    (folder / POOLING / "notes.txt").write_text("mine")
    record = read_record(folder / RECORD)
    if names_folders:
        top = {Path(name).parts[0] for name in record["published"]}
        write_record(folder / RECORD, record | {"published": sorted(top)})
    fit(SentenceGroups(), *options(**DENSE, max_steps=1, pooling="last", overwrite=True))
    assert (folder / POOLING / "notes.txt").read_text() == "mine"
    pooling = json.loads((folder / POOLING / "config.json").read_text())
    assert pooling["pooling_mode_lasttoken"] and not pooling["pooling_mode_cls_token"]
    assert f"{POOLING}/config.json" in listed_files(folder)


@pytest.mark.integration
def test_a_run_that_is_killed_while_it_publishes_is_published_again(options, monkeypatch):
    replace = Path.replace

    def dying(path, target):
        if path.name == "config.json" and path.parent.name == UNPUBLISHED:
            raise Killed
        return replace(path, target)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(Path, "replace", dying)
        fit(SentenceGroups(), *options(**DENSE, max_steps=2))
    folder = fit(SentenceGroups(), *options(**DENSE, max_steps=2))
    verify_manifest(folder, weights=True)
    assert not (folder / UNPUBLISHED).exists()


@pytest.mark.integration
def test_a_checkpoint_without_its_optimizer_or_its_mark(options):
    folder = fit(SentenceGroups(), *options(**DENSE, max_steps=2, save_steps=2))
    checkpoint = folder / "checkpoint-2"
    assert fault(checkpoint, 1) is None
    (checkpoint / MANIFEST).unlink()
    (checkpoint / "optimizer.pt").unlink()
    write_record(checkpoint / MANIFEST, {"files": synced_hashes(checkpoint)})
    assert "lacks the state of the optimizer" in fault(checkpoint, 1)
    (checkpoint / MANIFEST).unlink()
    (checkpoint / UNFINISHED).write_text("[]")
    remove(checkpoint)
    assert not checkpoint.exists()


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
        ({**DENSE, "texts_at_once": 0}, "it must be at least 1"),
    ],
)
def test_options_of_the_other_kind(options, changes, said):
    with pytest.raises(HarpError, match=said):
        fit(SentenceGroups(), *options(**changes))
