"""A whole build on a standalone cluster of Spark: a master and two workers on this machine."""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from test_build import tree

from harp_plugin.cli import main

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java"),
]

STAGES = ("corpus", "graph", "weights", "examples", "bm25_negatives")


class Cluster:
    """A master and two workers, each a process group of its own."""

    def __init__(self, folder):
        home = Path(importlib.util.find_spec("pyspark").submodule_search_locations[0])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"spark://127.0.0.1:{free.getsockname()[1]}"
        self.folder = folder
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

    def _worker(self):
        return self._start("worker.Worker", "--cores", "1", "--memory", "1g", self.url)

    def _start(self, name, *arguments):
        line = [self._class, f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                line, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )

    def replace_worker(self):
        """Kill the older worker with its executors, and start another."""
        self.workers.append(self._worker())
        self._kill(self.workers.pop(0))

    @staticmethod
    def _kill(process):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def end(self):
        for process in (*self.workers, self.master):
            self._kill(process)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    # The heavier compiler of Java does not pay for a run of a minute.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    started = Cluster(tmp_path)
    yield started
    started.end()


def kill_in_each_stage(folder, cluster, killed, ended):
    for stage in STAGES:
        while not any((folder / stage / "shards").glob("*.json")):
            if ended.wait(0.02):
                return
        killed.append((stage, (folder / stage / "manifest.json").exists()))
        cluster.replace_worker()


def test_a_worker_that_dies_in_each_stage_changes_no_byte(
    tmp_path, cluster, shared_data, tiny_bert, monkeypatch
):
    source = shutil.copy(shared_data / "wiki" / "simplewiki-core150.xml.bz2", tmp_path)
    monkeypatch.chdir(tmp_path)
    line = ["build", Path(source).name, "--min-words", "0", "--pages-per-shard", "10", "--quiet"]
    line += ["--tasks", "rqp", "anchor", "--negatives", "bm25", "--model", str(tiny_bert)]
    assert main([*line, "--output-dir", "here"]) == 0
    killed, ended = [], threading.Event()
    killer = threading.Thread(
        target=kill_in_each_stage, args=(tmp_path / "there", cluster, killed, ended)
    )
    killer.start()
    spark = ["--engine", "spark", "--spark-master", cluster.url, "--memory", "1GB"]
    try:
        assert main([*line, *spark, "--output-dir", "there"]) == 0
    finally:
        ended.set()
        killer.join()
    assert len([stage for stage, was_finished in killed if not was_finished]) >= 3
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
