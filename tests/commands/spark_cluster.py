"""A standalone cluster of Spark on this machine, of which workers can be killed while it builds."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Cluster:
    """A master and two workers, each a process group of its own.

    Args:
        folder: for the log, and for what the workers write.
        memory: of each worker, in Spark's spelling, such as ``4g``.
    """

    def __init__(self, folder: Path, memory: str = "1g") -> None:
        home = Path(importlib.util.find_spec("pyspark").submodule_search_locations[0])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"spark://127.0.0.1:{free.getsockname()[1]}"
        self.folder = folder
        self.memory = memory
        self._class = str(home / "bin" / "spark-class")
        self._environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_WORKER_DIR": str(folder / "work"),
        }
        port = self.url.rpartition(":")[2]
        self.master = self._start("master.Master", "--port", port, "--webui-port", "0")
        self.workers = [self._worker(), self._worker()]

    def _worker(self) -> subprocess.Popen:
        return self._start("worker.Worker", "--cores", "1", "--memory", self.memory, self.url)

    def _start(self, name: str, *arguments: str) -> subprocess.Popen:
        line = [self._class, f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                line, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )

    def replace_worker(self) -> None:
        """Kill the older worker with its executors, and start another."""
        self.workers.append(self._worker())
        self._kill(self.workers.pop(0))

    @staticmethod
    def _kill(process: subprocess.Popen) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def end(self) -> None:
        """Kill all processes."""
        for process in (*self.workers, self.master):
            self._kill(process)


@contextmanager
def killing_workers(build: Path, cluster: Cluster, stages: list[str]) -> Iterator[list[str]]:
    """Kill a worker in stages of a build that runs meanwhile, after the first shard of each.

    Args:
        build: the folder.
        cluster: that builds.
        stages: in their order.

    Yields:
        The stages, in which a worker was killed before they were finished; it grows.
    """
    killed: list[str] = []
    ended = threading.Event()

    def kill() -> None:
        for stage in stages:
            while not any((build / stage / "shards").glob("*.json")):
                if ended.wait(0.02):
                    return
            if not (build / stage / "manifest.json").exists():
                killed.append(stage)
            cluster.replace_worker()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        ended.set()
        killer.join()
