"""No damage to a checkpoint or a published model goes unnoticed, and none changes a result."""

import json
import logging
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from harp_plugin.errors import HarpError
from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.models.folder import MANIFEST
from harp_plugin.models.loading import load_tokenizer
from harp_plugin.ranking import Scorer
from harp_plugin.training.checkpoint_files import (
    UNFINISHED,
    begin,
    fault,
    is_from_training,
    keep_newest,
    remove,
    synced_hashes,
)
from harp_plugin.training.folder import LOG, RECORD, RunFolder
from harp_plugin.training.run import fit
from harp_plugin.work.hashes import describe_files
from harp_plugin.work.lock import LOCK, one_writer
from harp_plugin.work.provenance import OverwriteRules
from harp_plugin.work.records import read_record, write_record

from .conftest import DyingGroups, Killed, SentenceGroups

pytestmark = pytest.mark.integration

WEIGHTS = "model.safetensors"
OF_A_CHECKPOINT = (
    *("config.json", WEIGHTS, "optimizer.pt", "rng_state.pth", "scheduler.pt"),
    *("tokenizer.json", "tokenizer_config.json", "trainer_state.json"),
)
OF_A_MODEL = ("config.json", WEIGHTS, "tokenizer.json", "tokenizer_config.json")
SAME = (WEIGHTS, LOG, MANIFEST, "config.json", "tokenizer.json")


def flip(path, other):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path, other):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def empty(path, other):
    path.write_bytes(b"")


def delete(path, other):
    path.unlink()


def lengthen(path, other):
    path.write_bytes(path.read_bytes() + b"\n")


def replace(path, other):
    """By the file of another run of the same shape."""
    content = other.read_bytes()
    path.write_bytes(content if content != path.read_bytes() else content + b" ")


def folder_instead(path, other):
    path.unlink()
    path.mkdir()


def pipe_instead(path, other):
    path.unlink()
    os.mkfifo(path)


DAMAGES = (flip, cut, empty, delete, lengthen, replace, folder_instead, pipe_instead)


@pytest.fixture(scope="module")
def runs(tiny_bert, tmp_path_factory):
    """Two runs of four steps with checkpoints at steps 2 and 4, of two seeds, and their folder."""
    from transformers import HfArgumentParser

    from harp_plugin.training.arguments import (
        HarpDataArguments,
        HarpModelArguments,
        HarpTrainingArguments,
    )

    parent = tmp_path_factory.mktemp("runs")

    def run(folder, groups=None, **changes):
        recipe = {
            "model": str(tiny_bert),
            "build_dir": "unread",
            "tasks": {"rqp": 1, "qdm": 1},
            "output_dir": str(folder),
            "max_length": 40,
            "per_device_train_batch_size": 5,
            "max_steps": 4,
            "logging_steps": 1,
            "save_steps": 2,
            "use_cpu": True,
            "disable_tqdm": True,
        }
        parser = HfArgumentParser((HarpModelArguments, HarpDataArguments, HarpTrainingArguments))
        return fit(groups or SentenceGroups(), *parser.parse_dict(recipe | changes))

    run(parent / "first")
    run(parent / "second", seed=7)
    return parent, run


@pytest.fixture
def copy(runs, tmp_path):
    """A copy of the first run."""
    return shutil.copytree(runs[0] / "first", tmp_path / "run")


@pytest.fixture
def unfinished(copy):
    """A copy of the first run as a kill before its model was published has left it."""
    for name in read_record(copy / RECORD)["published"]:
        (copy / name).unlink()
    return copy


def folder_of(path, overwrite=False):
    """The folder of the run that wrote there."""
    record = read_record(path / RECORD)
    return RunFolder(
        path,
        recipe=record["recipe"],
        description=TrainableCrossEncoder.description,
        processes=record["processes"],
        groups_per_epoch=record["groups_per_epoch"],
        data=record["data"],
        inputs=record["inputs"],
        rules=OverwriteRules(overwrite=overwrite),
    )


def content(folder):
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    return {path.relative_to(folder): path.read_bytes() for path in files}


@pytest.mark.parametrize("name", OF_A_CHECKPOINT)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_checkpoint_is_not_gone_on_from(damage, name, unfinished, runs, caplog):
    last = unfinished / "checkpoint-4"
    damage(last / name, runs[0] / "second" / "checkpoint-4" / name)
    kept = content(unfinished / "checkpoint-2")
    with caplog.at_level(logging.WARNING):
        chosen = folder_of(unfinished).last_checkpoint()
    assert chosen == str(unfinished / "checkpoint-2")
    (warning,) = [record.getMessage() for record in caplog.records]
    assert str(last / name) in warning and "\n" not in warning
    assert content(unfinished / "checkpoint-2") == kept
    assert not last.exists() and (unfinished / "checkpoint-4.damaged" / MANIFEST).is_file()


@pytest.mark.parametrize("name", OF_A_CHECKPOINT)
def test_named_checkpoint_that_is_damaged_is_refused(name, unfinished):
    last = unfinished / "checkpoint-4"
    flip(last / name, None)
    before = content(unfinished)
    with pytest.raises(HarpError, match=f"not a whole checkpoint .*{name} is not as it was"):
        folder_of(unfinished).last_checkpoint(str(last))
    assert content(unfinished) == before


@pytest.mark.parametrize("damage", [flip, cut, empty, lengthen])
def test_damaged_manifest_of_a_checkpoint(damage, unfinished, caplog):
    damage(unfinished / "checkpoint-4" / MANIFEST, None)
    chosen = folder_of(unfinished).last_checkpoint()
    if damage is lengthen:  # White space at the end of JSON says nothing.
        assert chosen == str(unfinished / "checkpoint-4")
    else:
        assert chosen == str(unfinished / "checkpoint-2") and MANIFEST in caplog.text


@pytest.mark.parametrize("damage", [delete, folder_instead, pipe_instead])
def test_checkpoint_without_a_manifest_is_not_touched(damage, unfinished):
    damage(unfinished / "checkpoint-4" / MANIFEST, None)
    before = content(unfinished)
    with pytest.raises(HarpError, match=r"checkpoint-4 has no harp_manifest.json.*move it away"):
        folder_of(unfinished, overwrite=True).check()
    assert content(unfinished) == before


def test_checkpoint_killed_before_its_manifest(unfinished, caplog):
    (unfinished / "checkpoint-4" / MANIFEST).unlink()
    (unfinished / "checkpoint-4" / UNFINISHED).touch()
    folder = folder_of(unfinished)
    folder.check()
    assert folder.last_checkpoint() == str(unfinished / "checkpoint-2")
    assert "half-written" in caplog.text and not (unfinished / "checkpoint-4").exists()


@pytest.mark.parametrize("left", [[], [f"{UNFINISHED}.7.harp-tmp"]])
def test_checkpoint_killed_before_its_first_file(left, unfinished):
    shutil.rmtree(unfinished / "checkpoint-4")
    (unfinished / "checkpoint-4").mkdir()
    for name in left:
        (unfinished / "checkpoint-4" / name).touch()
    folder = folder_of(unfinished)
    folder.check()
    assert folder.last_checkpoint() == str(unfinished / "checkpoint-2")
    assert not (unfinished / "checkpoint-4").exists()


def test_whole_checkpoint_of_another_run_is_refused(unfinished, runs):
    shutil.rmtree(unfinished / "checkpoint-4")
    shutil.copytree(runs[0] / "second" / "checkpoint-4", unfinished / "checkpoint-4")
    with pytest.raises(HarpError, match=r"another run \(seed: 7 then, nothing now\)"):
        folder_of(unfinished).last_checkpoint()


def test_renamed_checkpoint_is_not_used(unfinished, caplog):
    (unfinished / "checkpoint-4").rename(unfinished / "checkpoint-9")
    assert folder_of(unfinished).last_checkpoint() == str(unfinished / "checkpoint-2")
    assert "checkpoint-9 holds the state of step 4" in caplog.text


@pytest.mark.parametrize("name", OF_A_MODEL)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_model_is_refused(damage, name, copy, runs):
    damage(copy / name, runs[0] / "second" / name)
    with pytest.raises(HarpError) as refused:
        Scorer(str(copy), device="cpu").score(["a"], ["b"])
    assert "\n" not in str(refused.value) and str(copy) in str(refused.value)
    with pytest.raises(HarpError, match=f"{name}.*delete .*harp_manifest.json"):
        folder_of(copy).is_finished()
    assert folder_of(copy, overwrite=True).is_finished() is False


@pytest.mark.parametrize("damage", [flip, cut, empty])
def test_damaged_manifest_of_a_model(damage, copy):
    damage(copy / MANIFEST, None)
    with pytest.raises(HarpError, match=r"harp_manifest.json is damaged.*delete"):
        load_tokenizer(str(copy))
    with pytest.raises(HarpError, match=r"harp_manifest.json is damaged.*delete"):
        folder_of(copy).is_finished()


def test_model_changed_on_purpose_needs_no_manifest(copy):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-3}))
    with pytest.raises(HarpError, match="if you changed this model on purpose"):
        Scorer(str(copy), device="cpu").score(["a"], ["b"])
    (copy / MANIFEST).unlink()
    Scorer(str(copy), device="cpu").score(["a"], ["b"])


@pytest.mark.parametrize("damage", [flip, cut, empty, folder_instead])
def test_folder_whose_record_is_damaged_is_left_alone(damage, unfinished):
    folder = folder_of(unfinished, overwrite=True)
    damage(unfinished / RECORD, None)
    before = content(unfinished)
    for act in (folder.check, folder.is_finished):
        with pytest.raises(HarpError, match=r"harp_run.json is damaged.*nothing tells which run"):
            act()
    assert content(unfinished) == before


@pytest.mark.parametrize("name", [WEIGHTS, "optimizer.pt", "trainer_state.json"])
def test_resumed_run_ends_in_the_same_bytes(name, runs, tmp_path):
    parent, run = runs
    with pytest.raises(Killed):
        run(tmp_path / "run", DyingGroups(19))
    last = tmp_path / "run" / "checkpoint-2"
    assert fault(last, 1) is None
    flip(last / name, None)
    before = content(tmp_path / "run")
    with pytest.raises(HarpError, match=rf"{name} is not as it was.*no whole .*--overwrite"):
        run(tmp_path / "run")
    assert content(tmp_path / "run") == before
    run(tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "checkpoint-2.damaged" / name).is_file()
    for each in SAME:
        assert (tmp_path / "run" / each).read_bytes() == (parent / "first" / each).read_bytes()


def test_damaged_model_is_made_again_from_the_last_checkpoint(copy, runs):
    flip(copy / WEIGHTS, None)
    with pytest.raises(HarpError, match="has changed since it was written"):
        runs[1](copy)
    runs[1](copy, DyingGroups(0), overwrite=True)
    for each in SAME:
        assert (copy / each).read_bytes() == (runs[0] / "first" / each).read_bytes()


class Hostile:
    """Unpickled, it writes a file in the working directory."""

    def __reduce__(self):
        return (Path.touch, (Path("code-was-run"),))


@pytest.mark.parametrize(
    "name", ["optimizer.pt", "rng_state.pth", "scheduler.pt", "training_args.bin"]
)
@pytest.mark.parametrize(
    "save", [torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))]
)
def test_pickles_run_no_code(name, save, runs, tmp_path, monkeypatch):
    """Not even where the manifest vouches for them."""
    monkeypatch.chdir(tmp_path)
    last = shutil.copytree(runs[0] / "first" / "checkpoint-2", tmp_path / "checkpoint-2")
    save(Hostile(), last / name)
    manifest = read_record(last / MANIFEST)
    manifest["files"] = describe_files(last, manifest["files"])
    write_record(last / MANIFEST, manifest)
    assert fault(last, 1) is None
    if name == "training_args.bin":
        runs[1](tmp_path / "out", resume_from_checkpoint=str(last))
    else:
        with pytest.raises(HarpError, match="cannot go on from"):
            runs[1](tmp_path / "out", resume_from_checkpoint=str(last))
    assert not (tmp_path / "code-was-run").exists()


@pytest.mark.parametrize("name", ["notes.txt", "checkpoint-old/notes.txt", "checkpoint-2-mine/x"])
def test_what_others_wrote_survives_overwriting(name, copy, runs):
    (copy / name).parent.mkdir(exist_ok=True)
    (copy / name).write_text("mine")
    for folder in (copy, copy / "checkpoint-2"):
        for mine in ("notes.txt", "query_encoder/notes.txt", "1_Pooling/notes.txt"):
            (folder / mine).parent.mkdir(exist_ok=True)
            (folder / mine).write_text("mine")
    runs[1](copy, overwrite=True, seed=3, save_total_limit=1)
    assert (copy / name).read_text() == "mine"
    for folder in (copy, copy / "checkpoint-2"):
        for mine in ("notes.txt", "query_encoder/notes.txt", "1_Pooling/notes.txt"):
            assert (folder / mine).read_text() == "mine"
    assert json.loads((copy / MANIFEST).read_text())["recipe"]["seed"] == 3


def test_file_with_the_name_of_one_of_ours_is_not_replaced(unfinished, runs):
    record = read_record(unfinished / RECORD)
    del record["published"]
    write_record(unfinished / RECORD, record)
    (unfinished / "README.md").write_text("mine")
    with pytest.raises(HarpError, match=r"README\.md was not written by this run"):
        runs[1](unfinished)
    assert (unfinished / "README.md").read_text() == "mine"
    (unfinished / "README.md").unlink()
    runs[1](unfinished, DyingGroups(0))


def test_digits_do_not_make_a_folder_ours(copy, runs):
    (copy / "checkpoint-99").mkdir()
    (copy / "checkpoint-99" / "config.json").write_text("mine")
    with pytest.raises(HarpError, match="checkpoint-99 has no"):
        runs[1](copy, overwrite=True, seed=3)
    assert (copy / "checkpoint-99" / "config.json").read_text() == "mine"


@pytest.mark.parametrize("finished", [True, False])
def test_other_versions(finished, copy, unfinished, runs):
    path = copy if finished else unfinished
    record = read_record(path / RECORD)
    write_record(path / RECORD, record | {"versions": record["versions"] | {"torch": "1.0"}})
    with pytest.raises(HarpError, match=r"other package versions \(torch: 1\.0 then.*--keep"):
        runs[1](path)
    runs[1](path, DyingGroups(0), keep=True)
    runs[1](path, overwrite=True)
    assert read_record(path / RECORD) == record


def test_start_model_of_other_content(tiny_bert, runs, tmp_path):
    model = shutil.copytree(tiny_bert, tmp_path / "model")
    runs[1](tmp_path / "out", model=str(model))
    flip(model / WEIGHTS, None)
    with pytest.raises(HarpError, match=r"other settings \(content of model"):
        runs[1](tmp_path / "out", model=str(model))


@pytest.mark.parametrize("output", ["model", "model/out", "."])
@pytest.mark.parametrize("option", ["model", "validation_run"])
def test_output_apart_from_inputs(output, option, tiny_bert, runs, tmp_path):
    model = shutil.copytree(tiny_bert, tmp_path / "model")
    value = model if option == "model" else model / "run.txt"
    if option == "validation_run":
        value.write_text("")
        if output == "model/out":
            output = "model/run.txt"
    before = content(tmp_path)
    with pytest.raises(HarpError, match=f"output_dir .* and {option} .* overlap"):
        runs[1](tmp_path / output, **{option: str(value)})
    assert content(tmp_path) == before


def test_second_training_is_told_of_the_first(runs, tmp_path):
    script = "import sys, time; from harp_plugin.work.lock import one_writer\n"
    script += "with one_writer(sys.argv[1]): print('ready', flush=True); time.sleep(60)"
    line = [sys.executable, "-c", script, str(tmp_path / "out")]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as first:
        assert first.stdout.readline() == b"ready\n"
        with pytest.raises(HarpError, match=f"another process is writing .*process {first.pid}"):
            runs[1](tmp_path / "out")
        first.kill()
    runs[1](tmp_path / "out", max_steps=1)
    with one_writer(tmp_path / "out"):
        pass
    assert (tmp_path / "out" / LOCK).is_file()


def test_old_checkpoints_are_removed_after_the_new_one_is_whole(runs, tmp_path, monkeypatch):
    removed = []

    def watch(folder, limit, best):
        whole = [path for path in folder.glob("checkpoint-*") if fault(path, 1) is None]
        removed.append(len(whole))
        keep_newest(folder, limit, best)

    monkeypatch.setattr("harp_plugin.training.checkpoints.keep_newest", watch)
    out = runs[1](tmp_path / "out", save_total_limit=1, max_steps=6)
    assert removed == [1, 2, 2, 1]  # once more at the end, for what a kill may have left
    assert [path.name for path in out.glob("checkpoint-*")] == ["checkpoint-6"]


def test_damaged_checkpoints_of_one_step_stay(unfinished, runs):
    for _ in range(2):
        flip(unfinished / "checkpoint-4" / "rng_state.pth", None)
        folder_of(unfinished).last_checkpoint()
        shutil.copytree(runs[0] / "first" / "checkpoint-4", unfinished / "checkpoint-4")
    assert (unfinished / "checkpoint-4.damaged-2" / "rng_state.pth").is_file()
    folder = folder_of(unfinished)
    folder.check()
    keep_newest(folder.path, 1, None)
    assert {path.name for path in unfinished.glob("checkpoint-*")} == {
        *("checkpoint-4", "checkpoint-4.damaged", "checkpoint-4.damaged-2")
    }


@pytest.mark.parametrize("name", ["bpe.codes", "model-00001-of-00002.safetensors", "a/b.own"])
def test_every_listed_file_is_removed(name, tmp_path):
    checkpoint = tmp_path / "checkpoint-5"
    begin(checkpoint)
    (checkpoint / name).parent.mkdir(exist_ok=True)
    (checkpoint / name).write_text("ours")
    write_record(checkpoint / MANIFEST, {"files": synced_hashes(checkpoint)})
    remove(checkpoint)
    assert not checkpoint.exists()


def test_what_was_there_before_is_not_listed(tmp_path):
    checkpoint = tmp_path / "checkpoint-5"
    checkpoint.mkdir()
    (checkpoint / "notes.txt").write_text("mine")
    begin(checkpoint)
    (checkpoint / "own.codes").write_text("ours")
    remove(checkpoint)
    assert is_from_training(checkpoint)
    begin(checkpoint)
    assert list(synced_hashes(checkpoint)) == ["own.codes"]


def test_manifest_is_removed_last(tmp_path, monkeypatch):
    checkpoint = tmp_path / "checkpoint-5"
    begin(checkpoint)
    (checkpoint / "own.codes").write_text("ours")
    write_record(checkpoint / MANIFEST, {"files": synced_hashes(checkpoint)})
    monkeypatch.setattr(Path, "unlink", lambda path, **_: (_ for _ in ()).throw(Killed))
    with pytest.raises(Killed):
        remove(checkpoint)
    assert (checkpoint / MANIFEST).is_file()
