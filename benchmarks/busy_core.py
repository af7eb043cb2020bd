"""Training while other programs compute on the same cores, with and without spinning threads.

    python benchmarks/busy_core.py BUILD --steps 20

The recipe of the quickstart trains on BUILD, which `harp quickstart` made, beside so many
programs that never rest. GNU's OpenMP lets a thread that waits spin 300,000 times unless told
otherwise; `harp` tells it 1,000.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

SPINS = {"as GNU's OpenMP does": "300000", "as harp does": "1000"}


def pairs_per_second(build: Path, steps: int, spins: str) -> str:
    """Train for some steps and return what the log says of its speed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        line = [sys.executable, "-m", "harp_plugin.cli", "train", "quickstart"]
        line += ["--build-dir", build, "--output-dir", folder, "--max-steps", steps]
        line += ["--logging-steps", steps // 2]
        done = subprocess.run(
            [str(word) for word in line],
            env={**os.environ, "GOMP_SPINCOUNT": spins},
            capture_output=True,
            text=True,
            check=True,
        )
    return re.findall(r"([\d.,]+) pairs/s", done.stdout + done.stderr)[-1]


def main() -> None:
    """Measure and print, one line for each number of busy programs and each way to wait."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("build", type=Path)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    for busy in arguments.busy:
        with ExitStack() as stack:
            for _ in range(busy):
                endless = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                stack.callback(endless.kill)
            for _ in range(arguments.rounds):
                for name, spins in SPINS.items():
                    speed = pairs_per_second(arguments.build, arguments.steps, spins)
                    print(f"{busy} busy, waiting {name}: {speed} pairs/s", flush=True)


if __name__ == "__main__":
    main()
