"""Hosts that share the encoding of an index: processes with one folder, each with a rank."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def start(irds_home, tiny_bert):
    """Starts `harp index` on vaswani (12 shards) in a process of its own."""

    def run(folder, *more, **environment):
        line = ["index", "vaswani", "--model", tiny_bert, "--output-dir", folder]
        return subprocess.Popen(
            [sys.executable, "-m", "harp_plugin.cli", *map(str, line), "--quiet", *map(str, more)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ
            | {"OMP_NUM_THREADS": "1", "IR_DATASETS_HOME": str(irds_home)}
            | environment,
        )

    return run


def finish(*processes):
    for process in processes:
        errors = process.communicate()[1].decode()
        assert process.returncode == 0, errors


def files(folder):
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def alone(start, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "index"
    finish(start(folder))
    return files(folder)


def test_three_hosts_make_the_bytes_of_one(alone, start, tmp_path):
    folder = tmp_path / "index"
    finish(*(start(folder, "--rank", rank, "--world", 3) for rank in range(3)))
    assert files(folder) == alone


def test_the_shards_of_a_host_that_dies_are_encoded_without_it(alone, start, tmp_path):
    folder = tmp_path / "index"
    dying = start(folder, "--rank", 0, "--world", 2)
    while not any(folder.glob("vectors-*.npy")):
        assert dying.poll() is None
        time.sleep(0.005)
    time.sleep(random.Random(1).uniform(0, 0.05))
    dying.send_signal(signal.SIGKILL)
    dying.communicate()
    finish(start(folder, "--rank", 1, "--world", 2))
    assert not (folder / "manifest.json").exists()
    finish(start(folder))
    assert files(folder) == alone
