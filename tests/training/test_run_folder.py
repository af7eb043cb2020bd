"""No damage to a checkpoint or a published model goes unnoticed, and no kill changes a result."""

import json
import logging
import pickle
import shutil
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
import torch
from transformers.trainer_utils import speed_metrics

from harp_plugin.errors import HarpError
from harp_plugin.ranking import Scorer
from harp_plugin.training.card import CARD
from harp_plugin.training.run_folder import (
    LOG,
    RunFolder,
    log_lines,
    remove_checkpoints,
    remove_weights,
)
from harp_plugin.work.artifact import (
    MANIFEST,
    STARTED,
    Artifact,
    OverwriteRules,
    Provenance,
    verify_record,
)
from harp_plugin.work.lock import LOCK, one_writer
from harp_plugin.work.records import read_record, write_record

from .conftest import DyingGroups, Killed, four_steps

pytestmark = pytest.mark.integration

WEIGHTS = "model.safetensors"
SAME = (WEIGHTS, LOG, CARD, MANIFEST, "config.json", "tokenizer.json")


def cut(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def empty(path):
    path.write_bytes(b"")


def delete(path):
    path.unlink()


@pytest.fixture
def copy(four_step_run, tmp_path):
    """A copy of the run of four steps."""
    return shutil.copytree(four_step_run, tmp_path / "run")


@pytest.fixture
def unfinished(copy):
    """A copy of the run as a kill before its model was published has left it."""
    for name in (*read_record(copy / MANIFEST)["files"], MANIFEST):
        (copy / name).unlink()
    return copy


@pytest.fixture
def run(tiny_bert):
    """Trains the run of four steps, changed as asked."""
    return lambda folder, groups=None, **changes: four_steps(tiny_bert, folder, groups, **changes)


def content(folder):
    files = [
        path for path in Path(folder).rglob("*") if path.is_file() and ".lock" not in path.name
    ]
    return {path.relative_to(folder): path.read_bytes() for path in files}


def same(first, second):
    return all((first / name).read_bytes() == (second / name).read_bytes() for name in SAME)


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (delete, "optimizer.pt"),
        (cut, WEIGHTS),
        (cut, "rng_state.pth"),
        (empty, "trainer_state.json"),
        (cut, MANIFEST),
    ],
)
def test_a_damaged_checkpoint_is_named_with_the_one_before(damage, name, unfinished, run):
    last, before = unfinished / "checkpoint-4", unfinished / "checkpoint-2"
    damage(last / name)
    stored = content(unfinished)
    with pytest.raises(HarpError, match=rf"from {last}: .*{name}.*resume from {before}") as refused:
        run(unfinished)
    assert "\n" not in str(refused.value) and content(unfinished) == stored


def test_without_the_damaged_checkpoint_the_run_ends_in_the_same_bytes(
    unfinished, run, four_step_run
):
    shutil.rmtree(unfinished / "checkpoint-4")
    assert same(run(unfinished, DyingGroups(10)), four_step_run)
    for name in (*read_record(unfinished / MANIFEST)["files"], MANIFEST):
        (unfinished / name).unlink()
    shutil.rmtree(unfinished / "checkpoint-4")
    cut(unfinished / "checkpoint-2" / WEIGHTS)
    with pytest.raises(HarpError, match=r"checkpoint-2.*remove it to train from the start"):
        run(unfinished)


class Hostile:
    """Unpickled, it writes a file in the working directory."""

    def __reduce__(self):
        return (Path.touch, (Path("code-was-run"),))


@pytest.mark.parametrize(
    ("name", "save"),
    [
        ("optimizer.pt", torch.save),
        ("rng_state.pth", torch.save),
        ("scheduler.pt", lambda value, path: path.write_bytes(pickle.dumps(value))),
    ],
)
def test_pickles_run_no_code(name, save, unfinished, run, tmp_path, monkeypatch):
    """Not even where the manifest vouches for them."""
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(unfinished / "checkpoint-4")
    last = unfinished / "checkpoint-2"
    save(Hostile(), last / name)
    record = read_record(last / MANIFEST)
    Artifact(last, "checkpoint", Provenance.from_record(record)).commit(record["files"].keys())
    with pytest.raises(HarpError, match=r"cannot resume from .*checkpoint-2.*from the start"):
        run(unfinished)
    assert not (tmp_path / "code-was-run").exists()


def test_a_checkpoint_of_another_run(unfinished, run, tmp_path, caplog):
    other = run(tmp_path / "other", seed=7, max_steps=2)
    shutil.copytree(other / "checkpoint-2", unfinished / "checkpoint-6")
    with pytest.raises(HarpError, match=r"checkpoint-6 is of another run \(max_steps: 2 then"):
        run(unfinished)
    with caplog.at_level(logging.WARNING):
        run(tmp_path / "named", resume_from_checkpoint=str(other / "checkpoint-2"))
    assert "checkpoint-2 was made from other settings: max_steps: 2 then, 4 now" in caplog.text
    cut(other / "checkpoint-2" / WEIGHTS)
    with pytest.raises(HarpError, match=r"cannot resume from .*checkpoint-2"):
        run(tmp_path / "again", resume_from_checkpoint=str(other / "checkpoint-2"))


def test_digits_do_not_make_a_folder_ours(copy, run):
    (copy / "checkpoint-99").mkdir()
    (copy / "checkpoint-99" / "config.json").write_text("mine")
    with pytest.raises(HarpError, match=r"checkpoint-99 has no manifest\.json.*move it away"):
        run(copy, overwrite=True, seed=3)
    assert (copy / "checkpoint-99" / "config.json").read_text() == "mine"


@pytest.mark.parametrize("name", ["notes.txt", "checkpoint-2/notes.txt", "checkpoint-2-mine/x"])
def test_what_others_wrote_is_neither_replaced_nor_removed(name, unfinished, run):
    (unfinished / name).parent.mkdir(exist_ok=True)
    (unfinished / name).write_text("mine")
    with pytest.raises(HarpError, match="1 files that harp did not write, such as"):
        run(unfinished, overwrite=True, seed=3)
    assert (unfinished / "checkpoint-2" / WEIGHTS).is_file()
    run(unfinished, max_steps=4, save_total_limit=1)
    assert (unfinished / name).read_text() == "mine"


@pytest.mark.parametrize("moment", ["_describe", "commit_checkpoint"])
def test_a_kill_while_a_checkpoint_is_written(moment, run, four_step_run, tmp_path, monkeypatch):
    def kill(*_):
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(RunFolder, moment, kill)
        run(tmp_path / "run")
    assert not list((tmp_path / "run").glob("checkpoint-*"))
    assert same(run(tmp_path / "run"), four_step_run)
    assert not list((tmp_path / "run").glob("*.harp-tmp"))


def dying(remove, left):
    """A removal that ends the run when one too many is made; `left` counts what may be."""

    def call(path, *arguments, **options):
        if not left:
            raise Killed
        left.pop()
        return remove(path, *arguments, **options)

    return call


@pytest.mark.parametrize("is_other_run", [False, True])
def test_a_kill_at_any_removal(is_other_run, unfinished, tmp_path, monkeypatch):
    provenance = Provenance.from_record(read_record(unfinished / STARTED))
    made_from = Provenance({"seed": 3}) if is_other_run else provenance

    def begin_and_remove(path):
        folder = RunFolder(path, made_from, None, {}, OverwriteRules(overwrite=is_other_run))
        folder.start()
        folder.remove_old(1, None)
        remove_checkpoints(path)

    for removals in count():
        path, left = shutil.copytree(unfinished, tmp_path / str(removals)), [None] * removals
        with monkeypatch.context() as patched, suppress(Killed):
            for name in ("unlink", "rmdir"):
                patched.setattr(Path, name, dying(getattr(Path, name), left))
            begin_and_remove(path)
        again = shutil.copytree(path, tmp_path / f"{removals}-again")
        remove_checkpoints(path)
        begin_and_remove(again)
        assert not [*path.glob("checkpoint-*"), *again.glob("checkpoint-*")]
        if left:
            break
    assert removals > 10


@pytest.mark.parametrize("kind", ["cross-encoder", "bi-encoder"])
def test_a_kill_while_the_model_is_published(kind, run, tmp_path, monkeypatch):
    changes = {"model_kind": kind, "losses": {"lce": 1}, "max_steps": 2}
    whole = run(tmp_path / "whole", **changes)
    replace = Path.replace

    def dying(path, target):
        if path.name == "config.json" and path.parent.name.startswith(".final"):
            raise Killed
        return replace(path, target)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(Path, "replace", dying)
        run(tmp_path / "run", **changes)
    assert not (tmp_path / "run" / MANIFEST).exists()
    assert (
        same(run(tmp_path / "run", **changes), whole)
        and verify_record(tmp_path / "run" / MANIFEST) == []
    )


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_damaged_model_is_made_again_from_the_last_checkpoint(is_lost, copy, run, four_step_run):
    (delete if is_lost else cut)(copy / WEIGHTS)
    with pytest.raises(HarpError, match=rf"{WEIGHTS} .*if you changed this model on purpose"):
        Scorer(str(copy), device="cpu").score(["a"], ["b"])
    if not is_lost:
        with pytest.raises(HarpError, match=f"{WEIGHTS} has changed since it was written"):
            run(copy)
    assert same(run(copy, DyingGroups(0), overwrite=not is_lost), four_step_run)


def test_a_model_changed_on_purpose_needs_no_manifest(copy):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-3}))
    with pytest.raises(HarpError, match=r"on purpose, delete .*manifest\.json"):
        Scorer(str(copy), device="cpu").score(["a"], ["b"])
    (copy / MANIFEST).unlink()
    Scorer(str(copy), device="cpu").score(["a"], ["b"])


def test_a_folder_whose_record_is_damaged_is_left_alone(unfinished, run):
    cut(unfinished / STARTED)
    before = content(unfinished)
    with pytest.raises(HarpError, match=r"is damaged, or was not written by harp"):
        run(unfinished, overwrite=True)
    assert content(unfinished) == before


def test_other_work_is_replaced_where_that_is_allowed(unfinished, run):
    with pytest.raises(HarpError, match=r"other settings \(.*seed: nothing then, 3 now"):
        run(unfinished, seed=3, max_steps=2)
    run(unfinished, seed=3, max_steps=2, overwrite=True)
    assert read_record(unfinished / MANIFEST)["settings"]["seed"] == 3
    assert [path.name for path in unfinished.glob("checkpoint-*")] == ["checkpoint-2"]


@pytest.mark.parametrize("is_finished", [True, False])
def test_other_versions(is_finished, copy, run, request):
    path = copy if is_finished else request.getfixturevalue("unfinished")
    record_path = path / (MANIFEST if is_finished else STARTED)
    record = read_record(record_path)
    write_record(record_path, record | {"versions": record["versions"] | {"torch": "1.0"}})
    with pytest.raises(HarpError, match=r"versions \(torch: 1\.0 then.*--accept-other-versions"):
        run(path)
    run(path, DyingGroups(0), accept_other_versions=True)


def test_a_start_model_of_other_content(tiny_bert, run, tmp_path):
    model = shutil.copytree(tiny_bert, tmp_path / "model")
    run(tmp_path / "out", model=str(model), max_steps=1)
    data = bytearray((model / WEIGHTS).read_bytes())
    data[len(data) // 2] ^= 1
    (model / WEIGHTS).write_bytes(data)
    with pytest.raises(HarpError, match=r"other settings \(content of model"):
        run(tmp_path / "out", model=str(model), max_steps=1)


@pytest.mark.parametrize("output", ["model", "model/out", "."])
@pytest.mark.parametrize("option", ["model", "validation_run"])
def test_the_output_lies_apart_from_the_inputs(output, option, tiny_bert, run, tmp_path):
    model = shutil.copytree(tiny_bert, tmp_path / "model")
    value = model if option == "model" else model / "run.txt"
    if option == "validation_run":
        value.write_text("")
        output = "model/run.txt" if output == "model/out" else output
    before = content(tmp_path)
    with pytest.raises(HarpError, match=f"output_dir .* and {option} .* overlap"):
        run(tmp_path / output, **{option: str(value)})
    assert content(tmp_path) == before


def test_a_second_training_is_told_of_the_first(run, tmp_path):
    script = "import sys, time; from harp_plugin.work.lock import one_writer\n"
    script += "with one_writer(sys.argv[1]): print('ready', flush=True); time.sleep(60)"
    line = [sys.executable, "-c", script, str(tmp_path / "out")]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as first:
        assert first.stdout.readline() == b"ready\n"
        with pytest.raises(HarpError, match=f"another process is writing .*process {first.pid}"):
            run(tmp_path / "out")
        first.kill()
    with one_writer(tmp_path / "out"):
        pass
    assert (tmp_path / "out" / LOCK).is_file()


def test_old_checkpoints_are_removed_after_the_new_one_is_whole(run, tmp_path, monkeypatch):
    counts = []
    remove_old = RunFolder.remove_old

    def watch(folder, limit, best):
        paths = list(folder.path.glob("checkpoint-*"))
        assert all(verify_record(path / MANIFEST) == [] for path in paths)
        counts.append(len(paths))
        remove_old(folder, limit, best)

    monkeypatch.setattr(RunFolder, "remove_old", watch)
    out = run(tmp_path / "out", save_total_limit=1, max_steps=6)
    assert counts == [1, 2, 2, 1]  # once more at the end, for what a kill may have left
    assert [path.name for path in out.glob("checkpoint-*")] == ["checkpoint-6"]


def test_weights_are_removed_and_what_describes_them_stays(copy):
    (copy / "notes.txt").write_text("mine")
    for _ in range(2):
        remove_weights(copy)
        names = {path.name for path in copy.iterdir()} - {LOCK}
        assert (
            names == {LOG, CARD, MANIFEST, STARTED, "notes.txt"}
            and verify_record(copy / MANIFEST) == []
        )


@pytest.mark.parametrize("counts", [{}, {"num_samples": 1, "num_steps": 1, "num_tokens": 1}])
def test_a_log_holds_nothing_that_the_clock_decides(counts):
    speed = speed_metrics("train", 0.0, **counts)
    assert log_lines([{"loss": 1.0, "step": 1, **speed}]) == [{"loss": 1.0, "step": 1}]
