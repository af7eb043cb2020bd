"""Hosts that share the encoding of an index: processes with one folder, each with a rank."""

import json
import random
import signal
import time
from itertools import islice

import ir_datasets
import pytest
import torch
from commands_in_processes import start

from harp_plugin.cli import main

pytestmark = pytest.mark.slow


SHARDS = 5


@pytest.fixture(scope="module")
def command(irds_home, tiny_bert, tmp_path_factory):
    """Makes the arguments of `harp index` on 4,900 documents of vaswani, of five shards."""
    collection = tmp_path_factory.mktemp("collection")
    documents = islice(ir_datasets.load("vaswani").docs_iter(), 1000 * SHARDS - 100)
    lines = (
        json.dumps({"doc_id": doc_id, "title": "", "text": text, "anchor_text": ""})
        for doc_id, text in documents
    )
    (collection / "documents.jsonl").write_text("\n".join([*lines, ""]), "utf-8")
    options = ["--model", str(tiny_bert), "--quiet"]

    def arguments(folder, *more):
        line = ["index", f"harp:{collection}", "--output-dir", folder, *options, *more]
        return [str(part) for part in line]

    return arguments


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """As in the processes that are started."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def finish(*processes):
    for process in processes:
        errors = process.communicate()[1].decode()
        assert process.returncode == 0, errors


def files(folder):
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def alone(command, one_thread, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "index"
    assert main(command(folder)) == 0
    return files(folder)


def test_two_hosts_make_the_bytes_of_one(alone, command, tmp_path):
    folder = tmp_path / "index"
    finish(*(start(command(folder, "--rank", rank, "--world", 2)) for rank in range(2)))
    assert files(folder) == alone


def test_the_shards_of_a_host_that_dies_are_encoded_without_it(alone, command, tmp_path):
    folder = tmp_path / "index"
    dying = start(command(folder, "--rank", 0, "--world", 2))
    while not any(folder.glob("vectors-*.npy")):
        assert dying.poll() is None
        time.sleep(0.005)
    time.sleep(random.Random(1).uniform(0, 0.05))
    dying.send_signal(signal.SIGKILL)
    dying.communicate()
    assert main(command(folder, "--rank", 1, "--world", 2)) == 0
    assert not (folder / "manifest.json").exists()
    assert main(command(folder)) == 0
    assert files(folder) == alone
