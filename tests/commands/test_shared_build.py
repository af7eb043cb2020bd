"""Hosts that share stages of a build: each makes every n-th shard, and the last one commits."""

import shutil

import pytest
from builds import tree

from harp_plugin.cli import main

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def linked(shared_data, tmp_path_factory):
    """A build up to its link graph, in 16 shards."""
    folder = tmp_path_factory.mktemp("linked") / "build"
    source = str(shared_data / "wiki" / "simplewiki-core150.xml.bz2")
    line = ["build", source, "--output-dir", str(folder), "--pages-per-shard", "10"]
    assert main([*line, "--stages", "corpus", "graph", "--min-words", "0", "--quiet"]) == 0
    return folder


@pytest.fixture
def weigh(tiny_bert):
    """Runs the stage `weights`."""

    def run(folder, *more):
        line = ["build", "--output-dir", folder, "--stages", "weights", "--model", tiny_bert]
        line += ["--workers", "1", "--device", "cpu", "--quiet", *more]
        return main(list(map(str, line)))

    return run


def finished(folder):
    return sorted(path.stem for path in (folder / "weights" / "shards").glob("*.json"))


def test_hosts_make_the_bytes_of_one_and_the_last_one_commits(linked, weigh, tmp_path, capsys):
    alone, shared = (shutil.copytree(linked, tmp_path / name) for name in ("alone", "shared"))
    assert weigh(alone) == 0
    every = finished(alone)
    for rank in (2, 0):
        assert weigh(shared, "--rank", rank, "--world", 3) == 0
        assert set(every[rank::3]) <= set(finished(shared))
        assert not (shared / "weights" / "manifest.json").exists()
        assert "waits for the shards of other hosts" in capsys.readouterr().out
    assert finished(shared) == sorted({*every[0::3], *every[2::3]})
    assert weigh(shared, "--rank", 1, "--world", 3) == 0
    assert tree(shared / "weights") == tree(alone / "weights")


def test_one_host_makes_what_others_have_left(linked, weigh, tmp_path):
    alone, shared = (shutil.copytree(linked, tmp_path / name) for name in ("alone", "shared"))
    assert weigh(alone) == 0
    assert weigh(shared, "--rank", 0, "--world", 2) == 0
    assert weigh(shared) == 0
    assert tree(shared / "weights") == tree(alone / "weights")


def test_what_cannot_be_shared_is_refused(tmp_path, capsys):
    ranks = ["--output-dir", str(tmp_path), "--rank", "0", "--world", "2"]
    assert main(["build", "--stages", "graph", "weights", *ranks]) == 2
    assert "hosts cannot share the stage graph" in capsys.readouterr().err
