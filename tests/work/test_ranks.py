"""Ranks of several hosts in one folder, against builds by one host."""

import errno
import fcntl
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.work.artifact import OverwriteRules
from harp_plugin.work.lock import one_writer
from harp_plugin.work.stage import Stage


def test_who_joins_leaves_what_others_write(tmp_path):
    stage, same = (Stage(tmp_path / "stage", {}, {}) for _ in range(2))
    stage.start(with_others=True)
    stage.finish_shard("a", {"table": 1}, {})
    written = tmp_path / "stage" / "table" / "x.parquet.7.harp-tmp"
    written.parent.mkdir()
    written.touch()
    same.start(with_others=True)
    assert same.shard_done("a") and written.exists()
    same.finish()  # when all shards are finished, nobody writes to a table any more
    assert not written.exists()
    stage.start(with_others=True)  # finds the stage finished, and leaves it so
    assert stage.is_whole
    written.touch()
    stage.start()
    assert not written.exists()


def test_a_rank_does_not_commit_while_another_starts(tmp_path):
    """Who starts removes the manifest of unfinished work."""
    stage = Stage(tmp_path / "stage", {}, {})
    stage.start(with_others=True)
    stage.finish_shard("a", {"table": 1}, {})
    with ThreadPoolExecutor() as pool:
        with stage._artifact.turn():
            finished = pool.submit(stage.finish, with_others=True)
            with pytest.raises(TimeoutError):
                finished.result(0.5)
            assert not stage.is_whole
        assert finished.result(30)["rows"] == {"table": 1} and stage.is_whole


def test_ranks_of_other_settings_are_refused_before_any_shard_is_finished(tmp_path):
    bf16, fp32 = (
        Stage(tmp_path / "stage", {"dtype": dtype}, {}, rules=OverwriteRules(overwrite=overwrite))
        for dtype, overwrite in (("bfloat16", False), ("float32", True))
    )
    bf16.start(with_others=True)
    careful = Stage(tmp_path / "stage", {"dtype": "float32"}, {})
    with pytest.raises(HarpError, match="dtype: bfloat16 then, float32 now"):
        careful.start(with_others=True)
    bf16.finish_shard("a", {"table": 1}, {})
    fp32.start(with_others=True)
    assert not fp32.shard_done("a")
    with pytest.raises(HarpError, match="another process has started other work"):
        bf16.finish_shard("b", {"table": 1}, {})


def test_ranks_write_together_and_nobody_else_meanwhile(tmp_path):
    refused = pytest.raises(HarpError, match="another process is writing to")
    ranks = [one_writer(tmp_path, with_ranks=True) for _ in range(2)]
    with ranks[0], ranks[1], refused, one_writer(tmp_path):
        pass
    with one_writer(tmp_path):
        for with_ranks in (False, True):
            with refused, one_writer(tmp_path, with_ranks=with_ranks):
                pass
    with one_writer(tmp_path, with_ranks=True):
        pass


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def fails(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", fails)
    refused = pytest.raises(HarpError, match=r"without locks \(No locks available\)")
    with refused, one_writer(tmp_path, with_ranks=True):
        pass
