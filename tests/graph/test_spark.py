"""Spark gives the same bytes as DuckDB; without Java it says what to do."""

import shutil
from pathlib import Path

import pytest
from synthetic import synthetic_wiki

from harp_plugin.engine import EngineOptions, Step, run_steps
from harp_plugin.errors import HarpError
from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.storage import Stage
from harp_plugin.tasks import HARP_TASKS, TASKS

pytest.importorskip("pyspark")

GRAPH = ("anchors", "sentence_anchors", "documents")
SPARK = EngineOptions(engine="spark", memory="1GB")


def parquet_bytes(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.parquet")}


def build(wiki, folder, engine):
    folder.mkdir()
    (folder / "corpus").symlink_to(wiki / "corpus")
    manifest = build_graph(folder, GraphOptions(), engine, workers=2)
    examples = Stage(folder / "examples", {}, {})
    examples.start()
    steps = [Step(name, TASKS[name].examples) for name in HARP_TASKS]
    run_steps(examples, {name: folder / "graph" / name for name in GRAPH}, steps, engine, workers=2)
    return manifest


@pytest.mark.integration
@pytest.mark.skipif(shutil.which("java") is None, reason="no Java")
def test_the_same_bytes(tmp_path, capfd):
    wiki = synthetic_wiki.Wiki(pages=2_000, links=20_000, redirects=400)
    synthetic_wiki.write_tables(wiki, tmp_path / "wiki", quiet=True)
    for name in ("pages", "sentences", "links"):  # a source that is read twice
        shard = tmp_path / "wiki" / "corpus" / name / "part-pages-00000.parquet"
        shutil.copy(shard, shard.with_name("part-pages-again.parquet"))
    manifest = build(tmp_path / "wiki", tmp_path / "duckdb", EngineOptions())
    assert min(manifest["rows"].values()) > 100 and manifest["drops"]["link read twice"] == 20_000
    capfd.readouterr()
    assert build(tmp_path / "wiki", tmp_path / "spark", SPARK) == manifest
    assert capfd.readouterr() == ("", "")
    expected = parquet_bytes(tmp_path / "duckdb")
    assert len(expected) == 5 + len(HARP_TASKS)
    assert parquet_bytes(tmp_path / "spark") == expected
    leftovers = {p.suffix for p in (tmp_path / "spark").rglob("*") if p.is_file()}
    assert leftovers == {".parquet", ".json"}


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
