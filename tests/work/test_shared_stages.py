"""Several hosts share the shards of a stage."""

import errno
import fcntl
import itertools
import os

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.work.lock import LOCK, one_of_several_writers, one_writer
from harp_plugin.work.provenance import OverwriteRules
from harp_plugin.work.sharing import ALONE, Share
from harp_plugin.work.stage import Stage


@pytest.mark.parametrize(("world", "shards"), [*itertools.product((1, 2, 3, 7), (0, 1, 5, 20))])
def test_each_host_has_shards_of_its_own_and_then_all_others(world, shards):
    every = list(range(shards))
    orders = [Share(rank, world).order(every) for rank in range(world)]
    assert all(sorted(order) == every for order in orders)
    own = [order[: len(every[rank::world])] for rank, order in enumerate(orders)]
    assert own == [every[rank::world] for rank in range(world)]


def test_two_hosts_meet_in_the_middle_of_what_is_left():
    assert Share(0, 2).order("abcdefg") == [*"aceg", *"fdb"]
    assert Share(1, 2).order("abcdefg") == [*"bdf", *"geca"]
    assert ALONE.order("abc") == [*"abc"]


def test_what_is_finished_meanwhile_is_left_out(tmp_path):
    stage = Stage(tmp_path / "stage", {}, {})
    stage.start()
    given = Share(1, 2).unfinished(stage, {name: name for name in "abcde"})
    assert next(given) == "b"
    for name in "de":
        stage.finish_shard(name, {"table": 1}, {})
    assert list(given) == ["c", "a"]


def test_who_joins_leaves_what_others_write(tmp_path):
    stage, same = (Stage(tmp_path / "stage", {}, {}) for _ in range(2))
    Share(0, 2).start(stage)
    stage.finish_shard("a", {"table": 1}, {})
    written = tmp_path / "stage" / "table" / ".harp-tmp-of-another-host"
    written.parent.mkdir()
    written.touch()
    Share(1, 2).start(same)
    assert same.shard_done("a") and written.exists()
    manifest = Share(1, 2).finish(same)
    Share(0, 2).start(stage)
    assert stage.is_whole and Share(0, 2).finish(stage) == manifest


def test_hosts_of_other_settings_are_refused_before_any_shard_is_finished(tmp_path):
    bf16, fp32 = (
        Stage(tmp_path / "stage", {"dtype": dtype}, {}, rules=OverwriteRules(overwrite=overwrite))
        for dtype, overwrite in (("bfloat16", False), ("float32", True))
    )
    Share(0, 2).start(bf16)
    careful = Stage(tmp_path / "stage", {"dtype": "float32"}, {})
    with pytest.raises(HarpError, match="dtype: bfloat16 then, float32 now"):
        Share(1, 2).start(careful)
    bf16.finish_shard("a", {"table": 1}, {})
    Share(1, 2).start(fp32)
    assert not fp32.shard_done("a")
    with pytest.raises(HarpError, match="another process has started other work"):
        bf16.finish_shard("b", {"table": 1}, {})


@pytest.mark.parametrize(
    ("environment", "share"),
    [
        ({}, ALONE),
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "4"}, Share(3, 4)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, ALONE),
        ({"RANK": "1", "WORLD_SIZE": "2"}, Share(1, 2)),
        (
            {
                **{"SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_COUNT": "8"},
                **{"SLURM_ARRAY_TASK_MIN": "1", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
            },
            Share(4, 8),
        ),
        *(
            (
                {
                    **{"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_COUNT": count},
                    **{"SLURM_ARRAY_TASK_MIN": least, "SLURM_ARRAY_TASK_STEP": step},
                },
                share,
            )
            for task, count, least, step, share in (
                ("30", "16", "0", "2", Share(15, 16)),  # --array=0-30:2
                ("3", "2", "3", "1", Share(0, 2)),  # --array=3,7
                ("7", "2", "3", "1", Share(0, 2)),
            )
        ),
    ],
)
def test_the_share_of_a_scheduler(environment, share):
    assert Share.of_environment(environment) == share


@pytest.mark.parametrize(
    ("rank", "world", "message"),
    [
        (0, None, "--rank and --world belong together"),
        (None, 2, "--rank and --world belong together"),
        (2, 2, "name a rank from 0 to 1"),
        (-1, 2, "name a rank from 0 to 1"),
    ],
)
def test_wrong_shares(rank, world, message):
    with pytest.raises(HarpError, match=message):
        Share.of(rank, world)


def test_those_who_share_a_folder_lock_it_against_others(tmp_path):
    with one_of_several_writers(tmp_path), one_of_several_writers(tmp_path):
        refused = pytest.raises(HarpError, match=r"another process is writing to .*, and others")
        with refused, one_writer(tmp_path):
            pass
    refused = pytest.raises(HarpError, match=r"another process is writing to .*pytest")
    with one_writer(tmp_path), refused, one_of_several_writers(tmp_path):
        pass
    with one_of_several_writers(tmp_path):
        pass


def test_the_last_of_those_who_share_a_folder_removes_what_killed_ones_left(tmp_path):
    left = tmp_path / "stage" / "table.parquet.1.harp-tmp"
    with one_of_several_writers(tmp_path):
        with one_of_several_writers(tmp_path):
            left.parent.mkdir()
            left.touch()
        assert left.exists()
    assert {path.name for path in tmp_path.rglob("*")} == {"stage", LOCK}


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    refused = pytest.raises(HarpError, match=r"a file system without locks \(No locks available\)")
    with refused, one_of_several_writers(tmp_path):
        pass
