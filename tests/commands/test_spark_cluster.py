"""A build on a standalone cluster of Spark: a master and two workers on this machine."""

import shutil
from pathlib import Path

import pytest
import spark_cluster
from builds import tree

from harp_plugin.cli import main

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java"),
]
STAGES = ["corpus", "weights"]
"""Whose shards our own code sends to executors; of SQL, Spark makes lost parts again itself."""


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    # The heavier compiler of Java does not pay for a run of a minute.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    started = spark_cluster.Cluster(tmp_path)
    yield started
    started.end()


def test_a_worker_that_dies_in_each_stage_changes_no_byte(
    tmp_path, cluster, shared_data, tiny_bert, monkeypatch
):
    source = shutil.copy(shared_data / "wiki" / "simplewiki-core150.xml.bz2", tmp_path)
    monkeypatch.chdir(tmp_path)
    line = ["build", Path(source).name, "--min-words", "0", "--pages-per-shard", "10", "--quiet"]
    line += ["--model", str(tiny_bert), "--stages"]
    assert main([*line, "corpus", "graph", "weights", "--output-dir", "here"]) == 0
    spark = ["--engine", "spark", "--spark-master", cluster.url, "--memory", "1GB"]
    with spark_cluster.killing_workers(tmp_path / "there", cluster, STAGES) as killed:
        assert main([*line, "corpus", "--output-dir", "there", *spark]) == 0
        assert main([*line, "graph", "--output-dir", "there"]) == 0
        assert main([*line, "weights", "--output-dir", "there", *spark]) == 0
    assert killed == STAGES
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
