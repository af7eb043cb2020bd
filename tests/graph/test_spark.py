"""Spark gives the same bytes as DuckDB; without Java it says what to do."""

import math
import os
import shutil
import sys
from pathlib import Path

import pytest
from dumps import write_dump
from small_wiki import ALL, PAGES
from synthetic import synthetic_wiki

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.errors import HarpError
from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.tasks import TASKS
from harp_plugin.tasks.build import CORPUS_TABLES, GRAPH_TABLES
from harp_plugin.work.map_shards import map_shards
from harp_plugin.work.sql.engine import EngineOptions, memory_bytes
from harp_plugin.work.sql.steps import Step, run_steps
from harp_plugin.work.stage import Stage

pytest.importorskip("pyspark")

REASONS = (
    "disambiguation page",
    "list page",
    "page with too short a lead",
    "page whose lead nearly repeats another's",
    "link whose text is functional",
    "link whose text is the title of its page",
)
SPARK = EngineOptions(engine="spark", memory="1GB")


def parquet_bytes(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.parquet")}


def build(wiki, folder, engine, **options):
    folder.mkdir()
    (folder / "corpus").symlink_to(wiki / "corpus")
    manifest = build_graph(folder, GraphOptions(**options), engine, workers=2)
    examples = Stage(folder / "examples", {}, {})
    examples.start()
    sources = {name: folder / "graph" / name for name in GRAPH_TABLES}
    sources |= {name: folder / "corpus" / name for name in CORPUS_TABLES}
    steps = [Step(name, task.examples) for name, task in TASKS.items()]
    run_steps(examples, sources, steps, engine, workers=2)
    return manifest


@pytest.mark.skipif(shutil.which("java") is None, reason="no Java")
def test_the_same_bytes(tmp_path, capfd, monkeypatch):
    """With all filters, the examples of all tasks, and a source that is read twice."""
    # The heavier compiler of Java does not pay for a run of a minute.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    wiki = synthetic_wiki.Wiki(pages=600, links=6_000, redirects=120)
    synthetic_wiki.write_dump(wiki, tmp_path / "wiki.xml", quiet=True)
    small = write_dump(tmp_path / "small.xml", PAGES)
    sources = [tmp_path / "wiki.xml", small, small]
    build_corpus(tmp_path / "wiki", CorpusOptions(), sources=sources, quiet=True)
    options = {"min_words": 0, **ALL}
    manifest = build(tmp_path / "wiki", tmp_path / "duckdb", EngineOptions(), **options)
    assert set(manifest["drops"]) >= {*REASONS, "link read twice"}
    rows = Stage(tmp_path / "duckdb" / "examples", {}, {}).counts()[0]
    assert set(rows) == set(TASKS) and min(rows.values()) > 0
    capfd.readouterr()
    assert build(tmp_path / "wiki", tmp_path / "spark", SPARK, **options) == manifest
    assert capfd.readouterr() == ("", "")
    expected = parquet_bytes(tmp_path / "duckdb")
    assert len(expected) == 7 + len(TASKS)
    assert parquet_bytes(tmp_path / "spark") == expected
    leftovers = {p.suffix for p in (tmp_path / "spark").rglob("*") if p.is_file()}
    assert leftovers == {".parquet", ".json"}


@pytest.mark.skipif(shutil.which("java") is None, reason="no Java")
def test_shards_in_order_and_their_errors_in_one_line(monkeypatch, capfd):
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    # The virtual environment is not activated: its Python is not the first of PATH.
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    own, folders = str(Path(sys.executable).parent), os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("PATH", os.pathsep.join(folder for folder in folders if folder != own))
    sizes = map_shards(memory_bytes, iter(["3GB", "1GB", "2KiB"]), SPARK, workers=2)
    assert list(sizes) == [3 * 10**9, 10**9, 2048]
    with pytest.raises(HarpError, match=r"^--memory four: give a number"):
        list(map_shards(memory_bytes, ["1GB", "four"], SPARK, workers=2))
    with pytest.raises(HarpError, match=r"^Spark: ValueError: math domain error \(finished .*\)$"):
        list(map_shards(math.sqrt, [-1], SPARK, workers=2))
    assert list(map_shards(math.sqrt, [], SPARK)) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("java", "Spark does not start .*install Java 17 or newer"),
        ("pyspark", r"--engine spark needs PySpark .*pip install harp_plugin\[spark\]"),
    ],
)
def test_what_is_missing_is_named(tmp_path, monkeypatch, missing, message):
    if missing == "java":
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    else:
        (tmp_path / "pyspark").mkdir()
        (tmp_path / "pyspark" / "__init__.py").write_text("raise ImportError('absent')")
        monkeypatch.syspath_prepend(tmp_path)
    stage = Stage(tmp_path / "stage", {}, {})
    stage.start()
    with pytest.raises(HarpError, match=message) as caught:
        run_steps(stage, {}, [], SPARK)
    assert "\n" not in str(caught.value)
