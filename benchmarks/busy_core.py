"""Training while another program computes on the same cores, by how long waiting threads spin.

    python benchmarks/busy_core.py BUILD --beside nothing loop training

The recipe of the quickstart trains on BUILD, which `harp quickstart` made, with all cores. Beside
it runs nothing, an endless loop of Python, or another training with one thread. GNU's OpenMP lets a
waiting thread check 300,000 times before it sleeps; the commands of harp say 1,000.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

SPINS = {"as GNU's OpenMP does": "300000", "as harp does": "1000"}
ENDLESS = 1_000_000
SECONDS_TO_START = 30


def main() -> None:
    """Measure and print, one line for each program beside it and each way to wait."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("build", type=Path)
    parser.add_argument("--beside", nargs="+", choices=BESIDE, default=list(BESIDE))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for beside in options.beside:
        with BESIDE[beside](options.build):
            speeds: dict[str, list[float]] = {name: [] for name in SPINS}
            for _ in range(options.rounds):
                for name, spins in SPINS.items():
                    speeds[name].append(_steps_per_second(options.build, options.steps, spins))
            for name, values in speeds.items():
                shown = ", ".join(map(str, values))
                print(f"beside {beside}, waiting {name}: {shown} steps/s", flush=True)


def _steps_per_second(build: Path, steps: int, spins: str) -> float:
    """Train for one step and for more, and return the speed of those between."""
    return round((steps - 1) / (_seconds(build, steps, spins) - _seconds(build, 1, spins)), 3)


def _seconds(build: Path, steps: int, spins: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        subprocess.run(
            _training(build, folder, steps),
            env={**os.environ, "GOMP_SPINCOUNT": spins},
            capture_output=True,
            check=True,
        )
        return time.perf_counter() - started


def _training(build: Path, output: str, steps: int) -> list[str]:
    line = [sys.executable, "-m", "harp_plugin.cli", "train", "quickstart"]
    return [*line, "--build-dir", str(build), "--output-dir", output, "--max-steps", str(steps)]


@contextmanager
def _running(line: list[str], **environment: str) -> Iterator[None]:
    process = subprocess.Popen(
        line,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
        if process.poll() is not None:
            sys.exit("the program beside it has ended: nothing was measured")
    finally:
        process.kill()
        process.wait()


def _nothing(_build: Path) -> AbstractContextManager[None]:
    return nullcontext()


def _loop(_build: Path) -> AbstractContextManager[None]:
    return _running([sys.executable, "-c", "while True: pass"])


@contextmanager
def _other_training(build: Path) -> Iterator[None]:
    with (
        tempfile.TemporaryDirectory() as folder,
        _running(_training(build, folder, ENDLESS), OMP_NUM_THREADS="1"),
    ):
        time.sleep(SECONDS_TO_START)
        yield


BESIDE = {"nothing": _nothing, "loop": _loop, "training": _other_training}

if __name__ == "__main__":
    main()
