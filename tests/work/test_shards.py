"""`map_shards`: in order, lazily, and clear when a worker is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.work.map_shards import map_shards
from harp_plugin.work.processes import UNGUARDED


def slow_square(number):
    time.sleep(0.05 if number % 2 else 0)
    return number, number**2, os.getpid()


def exits(number):
    if number == 3:
        os._exit(1)
    return number


def killed(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def fails(number):
    if number == 2:
        raise HarpError(f"shard {number} is bad")
    return number


@pytest.mark.parametrize("workers", [1, 2])
def test_in_order(workers):
    results = list(map_shards(slow_square, range(9), None, workers))
    assert [result[:2] for result in results] == [(n, n * n) for n in range(9)]
    here = {pid == os.getpid() for *_, pid in results}
    assert here == {workers == 1}


@pytest.mark.parametrize(("workers", "ahead"), [(1, 1), (2, 4)])
def test_shards_are_read_lazily(workers, ahead):
    taken = []

    def shards():
        for number in range(20):
            taken.append(number)
            yield number

    for done, _ in enumerate(map_shards(slow_square, shards(), None, workers), start=1):
        assert len(taken) <= done - 1 + ahead
    assert taken == list(range(20))


@pytest.mark.parametrize("fn", [exits, killed])
def test_a_killed_worker_is_a_clear_error(fn):
    results = map_shards(fn, range(30), None, 2)
    with pytest.raises(HarpError, match="a worker process ended") as caught:
        list(results)
    assert "\n" not in str(caught.value)


def test_a_script_that_starts_work_when_it_is_imported(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from harp_plugin.work.map_shards import map_shards\n"
        "print(list(map_shards(abs, [1, -2], None, 2)))\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert UNGUARDED in ran.stderr.splitlines()[-1]
    assert ran.stderr.count(UNGUARDED) > 1  # a worker gives it too, and starts no others


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_of_a_worker_come_through(workers):
    results = map_shards(fails, range(30), None, workers)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(HarpError, match="shard 2 is bad"):
        next(results)
