"""A command is cut off from its store at any request, and goes on without its copy."""

import os
import re
import shutil

import pytest
from test_build import tree

from harp_plugin.cli import main
from harp_plugin.errors import HarpError
from harp_plugin.ranking.dense.index import DenseIndex
from harp_plugin.training import checkpoints
from harp_plugin.work import store_copies, store_names
from harp_plugin.work.stores import Store

pytestmark = pytest.mark.integration

EVERY = int(os.environ.get("HARP_TEST_CUT_EVERY", "10"))
"""Of so many requests one is tried; 1 tries all."""
WITH_TIMES = re.compile(r"checkpoint-|training_args\.bin")
"""Files of transformers that say when and how long."""


class Connection:
    """The connection to the store, which ends after so many requests that change the store."""

    def __init__(self, monkeypatch):
        self.left, self.requests = None, 0
        send, delete = Store.upload, Store.remove

        def upload(store, content, name):
            self.count()
            send(store, content, name)

        def remove(store, names):
            for name in names:
                self.count()
                delete(store, [name])

        monkeypatch.setattr(Store, "upload", upload)
        monkeypatch.setattr(Store, "remove", remove)

    def count(self):
        self.requests += 1
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise HarpError("the connection has ended")


def stored_files(folder):
    """All files but those of PISA's index, which need not be whole once the run is there."""
    return {name: content for name, content in tree(folder).items() if name[:6] != "index/"}


@pytest.fixture
def connection(monkeypatch, tmp_path):
    monkeypatch.setenv("HARP_STORE_COPIES", str(tmp_path / "copies"))
    monkeypatch.setattr(store_names, "_SECONDS_BETWEEN", 1e6)
    monkeypatch.setattr(store_copies, "_AT_ONCE", 1)
    return Connection(monkeypatch)


def cut_off_everywhere(connection, command, tmp_path):
    """Compare what the store has at last with what it has without a cut."""
    copies, stored = tmp_path / "copies", tmp_path / "store"
    assert main(command) == 0
    whole = stored_files(stored)
    for cut in range(3, connection.requests, EVERY):  # the first two try whether it can be written
        for folder in (stored, copies):
            shutil.rmtree(folder)
        connection.left = cut
        assert main(command) == 2
        shutil.rmtree(copies)
        connection.left = None
        assert main(command) == 0, f"cut off after {cut} requests"
        left = stored_files(stored)
        assert sorted(left) == sorted(whole), f"cut off after {cut} requests"
        different = [name for name in whole if left[name] != whole[name]]
        assert [name for name in different if not WITH_TIMES.match(name)] == [], cut


@pytest.mark.parametrize("limit", [None, 1])
def test_train(encyclopedia_build, tiny_bert, connection, tmp_path, monkeypatch, limit):
    """With a limit, old checkpoints are removed in the store; without, two come at once."""
    keep_newest = checkpoints.keep_newest

    def keep_and_exchange(*arguments):
        keep_newest(*arguments)
        if limit:
            store_names.exchange_with_hosts()

    monkeypatch.setattr(checkpoints, "keep_newest", keep_and_exchange)
    command = ["train", "--model", str(tiny_bert), "--build-dir", str(encyclopedia_build)]
    command += ["--tasks", '{"qdm": 1}', "--output-dir", f"file://{tmp_path}/store"]
    command += ["--max-steps", "4", "--save-steps", "2", "--max-length", "64", "--use-cpu"]
    command += ["--report-to", "none", *(["--save-total-limit", str(limit)] if limit else [])]
    cut_off_everywhere(connection, command, tmp_path)


def test_evaluate(tiny_bert, connection, tmp_path):
    command = ["evaluate", "--dataset", "harp-encyclopedia", "--depth", "5", "--device", "cpu"]
    command += ["--rerankers", f'{{"tiny": {{"model": "{tiny_bert}"}}}}', "--quiet"]
    cut_off_everywhere(connection, [*command, "--output-dir", f"file://{tmp_path}/store"], tmp_path)


def test_index(tiny_bert, connection, tmp_path, monkeypatch):
    write = DenseIndex._write

    def write_and_exchange(*arguments):
        write(*arguments)
        store_names.exchange_with_hosts()

    monkeypatch.setattr(DenseIndex, "_write", write_and_exchange)
    command = ["index", "harp-encyclopedia", "--model", str(tiny_bert), "--device", "cpu"]
    command += ["--quiet", "--output-dir", f"file://{tmp_path}/store"]
    cut_off_everywhere(connection, command, tmp_path)
