"""A run that is killed, or whose disk is full, resumes to the bytes of an undisturbed one."""

import json
import random
import resource
import signal
import time
from contextlib import contextmanager

import pytest
from commands_in_processes import start

from harp_plugin.cli import main

STEPS = 32
BYTES = ("model.safetensors", "training_log.json", "manifest.json", "config.json")


@pytest.fixture
def command(encyclopedia_build, tiny_bert, tmp_path):
    """Makes the arguments of `harp train` on four tasks with masked language modeling."""
    recipe = {
        "model": str(tiny_bert),
        "build_dir": str(encyclopedia_build),
        "output_dir": "unread",
        "tasks": {"rqp": 1, "qdm": 1, "rdp": 1, "acm": 1},
        "losses": {"hinge": 1, "mlm": 1},
        "max_length": 40,
        "groups_per_epoch": 150,
        "per_device_train_batch_size": 8,
        "max_steps": STEPS,
        "save_steps": 4,
        "save_total_limit": 2,
        "logging_steps": 3,
        "learning_rate": 1e-3,
        "use_cpu": True,
        "disable_tqdm": True,
    }
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(recipe))

    return lambda folder: ["train", str(path), "--output_dir", str(folder)]


def last_step(folder):
    steps = [path.name.partition("-")[2] for path in folder.glob("checkpoint-*")]
    return max((int(step) for step in steps if step.isdigit()), default=0)


def kill_after(process, folder, step, wait):
    """SIGKILL a run so many seconds after the checkpoint of a step appeared."""
    while last_step(folder) < step and process.poll() is None:
        time.sleep(0.005)
    time.sleep(wait)
    assert process.poll() is None, process.communicate()[1].decode()
    process.send_signal(signal.SIGKILL)
    process.communicate()


@contextmanager
def file_size_limit(size):
    """Let writing into files beyond so many bytes fail, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("written", ["half of the model", "the model, half of the optimizer"])
def test_a_full_disk_is_one_line(written, command, tmp_path, capsys):
    whole, full = tmp_path / "whole", tmp_path / "full"
    assert main([*command(whole), "--max_steps", "8"]) == 0
    size = (whole / "model.safetensors").stat().st_size
    capsys.readouterr()
    with file_size_limit(size // 2 if written == "half of the model" else size * 3 // 2):
        assert main([*command(full), "--max_steps", "8"]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("harp: error: a file cannot be written (")
    assert line.endswith("free space on the disk, and run the command again to resume")
    assert main([*command(full), "--max_steps", "8"]) == 0
    for name in BYTES:
        assert (whole / name).read_bytes() == (full / name).read_bytes(), name


@pytest.mark.slow
def test_killed_twice_at_random_moments(command, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(command(whole)) == 0
    seed = random.SystemRandom().randrange(10**6)
    rng = random.Random(seed)
    for low, high in ((1, 10), (13, 22)):
        kill_after(start(command(killed)), killed, rng.randint(low, high), rng.uniform(0, 0.1))
    assert not (killed / "manifest.json").exists()
    assert main(command(killed)) == 0
    for name in BYTES:
        assert (whole / name).read_bytes() == (killed / name).read_bytes(), f"{name}, seed {seed}"
    log = json.loads((killed / "training_log.json").read_text())
    assert [line["step"] for line in log][-1] == STEPS
    assert {f"{task}/accuracy" for task in ("rqp", "qdm", "rdp", "acm")} <= set().union(*log)
