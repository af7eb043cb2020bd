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
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java"),
]
STAGES = ["corpus", "graph", "weights"]
"""Of each way in which Spark works: it parses, runs SQL, and runs a model."""


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
    line += ["--stages", *STAGES, "--model", str(tiny_bert)]
    assert main([*line, "--output-dir", "here"]) == 0
    spark = ["--engine", "spark", "--spark-master", cluster.url, "--memory", "1GB"]
    with spark_cluster.killing_workers(tmp_path / "there", cluster) as killed:
        assert main([*line, *spark, "--output-dir", "there"]) == 0
    assert killed == STAGES
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
