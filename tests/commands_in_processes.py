"""Commands of harp that are started in processes of their own."""

import os
import subprocess
import sys


def start(arguments):
    """Start a command; its process has one thread, and its standard error is a pipe."""
    return subprocess.Popen(
        [sys.executable, "-m", "harp_plugin.cli", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
