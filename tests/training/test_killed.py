"""A run that is killed at any moment and started again ends in the bytes of an undisturbed one."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

STEPS = 60
BYTES = ("model.safetensors", "training_log.json", "manifest.json", "config.json")


@pytest.fixture
def start(encyclopedia_build, tiny_bert, tmp_path):
    """Starts `harp train` on four tasks with masked language modeling, in a process of its own."""
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

    def run(folder):
        line = [sys.executable, "-m", "harp_plugin.cli", "train", path, "--output_dir", folder]
        return subprocess.Popen(
            [str(part) for part in line],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )

    return run


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


def finish(process):
    errors = process.communicate()[1].decode()
    assert process.returncode == 0, errors


@pytest.mark.slow
def test_killed_twice_at_random_moments(start, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finish(start(whole))
    seed = random.SystemRandom().randrange(10**6)
    rng = random.Random(seed)
    for low, high in ((1, 20), (24, 40)):
        kill_after(start(killed), killed, rng.randint(low, high), rng.uniform(0, 0.1))
    assert not (killed / "manifest.json").exists()
    finish(start(killed))
    for name in BYTES:
        assert (whole / name).read_bytes() == (killed / name).read_bytes(), f"{name}, seed {seed}"
    log = json.loads((killed / "training_log.json").read_text())
    assert [line["step"] for line in log][-1] == STEPS
    assert {f"{task}/accuracy" for task in ("rqp", "qdm", "rdp", "acm")} <= set().union(*log)
