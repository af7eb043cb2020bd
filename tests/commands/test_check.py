"""`harp check`: every damage of what our commands wrote, by name; nothing is changed."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from harp_plugin import cli
from harp_plugin.commands.check import check
from harp_plugin.errors import HarpError
from harp_plugin.options import Progress
from harp_plugin.work.artifact import Artifact, Provenance
from harp_plugin.work.mapped import open_table
from harp_plugin.work.parquet import write_table
from harp_plugin.work.records import write_record
from harp_plugin.work.stage import Stage

SCHEMA = pa.schema([("id", pa.int64())])
QUIET = Progress(quiet=True)


def write_stage(folder: Path, inputs=None) -> dict:
    stage = Stage(folder, {}, inputs or {})
    stage.start()
    batch = pa.RecordBatch.from_pydict({"id": [1, 2, 3]}, schema=SCHEMA)
    file = write_table(folder / "pages" / "part-0.parquet", SCHEMA, [batch])
    stage.finish_shard("part-0", {"pages": 3}, {}, [file])
    return stage.finish()


@pytest.fixture
def work(tmp_path):
    """A build with a copy of a table, a model, a run, results, and a record without files."""
    manifest = write_stage(tmp_path / "wiki" / "corpus")
    write_stage(tmp_path / "wiki" / "graph", {"corpus": manifest["content"]})
    open_table(tmp_path / "wiki", "corpus", "pages")
    with Artifact(tmp_path / "model", "model", Provenance({})).writing() as temporary:
        (temporary / "data").write_text("1234")
    with Artifact(tmp_path / "a.run", "run", Provenance({}), is_file=True).writing() as temporary:
        temporary.write_text("1 Q0 d 0 1.0 harp\n")
    results = Artifact(tmp_path, "results", Provenance({}), own="table.txt", is_shared=True)
    results.write({"table.txt": "a table"})
    write_record(tmp_path / "plan.json", {"steps": {}})
    return tmp_path


def test_whole_work(work):
    before = {path: path.read_bytes() for path in work.rglob("*") if path.is_file()}
    found = check(work, QUIET)
    assert found.damages == [] and found.parts == 7
    assert before == {path: path.read_bytes() for path in work.rglob("*") if path.is_file()}


FILES = (
    "wiki/corpus/pages/part-0.parquet",
    "wiki/corpus/manifest.json",
    "wiki/mapped/corpus-pages/table.arrow",
    "model/data",
    "model/manifest.json",
    "a.run",
    "a.run.json",
    "table.txt",
    "manifest.json",
    "plan.json",
)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_damage_is_named(work, name, damage):
    data = bytearray((work / name).read_bytes())
    if damage == "cut":
        del data[-3:]
    else:
        data[len(data) // 2] ^= 1
    (work / name).write_bytes(data)
    damages = check(work, QUIET).damages
    assert len(damages) == 1 and str(work / name) in damages[0] and "\n" not in damages[0]
    assert ": " in damages[0]  # what to do


def test_missing_files(work):
    for name in ("wiki/corpus/pages/part-0.parquet", "model/data", "table.txt"):
        (work / name).unlink()
    damages = check(work, QUIET).damages
    assert len(damages) == 3 and all("is missing" in damage for damage in damages)


def test_a_stage_of_other_tables(work):
    write_stage(work / "wiki" / "words", {"corpus": "0" * 32})
    (damage,) = check(work, QUIET).damages
    assert "words was made from another corpus" in damage


def test_files_of_others_are_not_damages(work):
    (work / "data").mkdir()
    for name in ("manifest.json", "results.json", "dataset_info.json"):
        content = {"name": "mine", "download": {"checksum": "f" * 64}, "checksum": "none"}
        (work / "data" / name).write_text(json.dumps(content))
    assert check(work, QUIET).damages == []


def test_an_unfinished_stage_is_not_a_damage(work):
    (work / "wiki" / "graph" / "manifest.json").unlink()
    found = check(work, QUIET)
    assert found.damages == [] and found.unfinished == [work / "wiki" / "graph"]
    assert "graph is unfinished: run its command again" in str(found)


def test_nothing_to_check(tmp_path):
    (tmp_path / "notes.json").write_text(json.dumps({"mine": 1}))
    with pytest.raises(HarpError, match="holds nothing that harp has written"):
        check(tmp_path, QUIET)
    with pytest.raises(HarpError, match="no folder"):
        check(tmp_path / "absent", QUIET)


def test_exit_status(work, capsys):
    assert cli.main(["check", str(work), "--quiet"]) == 0
    assert capsys.readouterr().out == "7 parts checked, 0 damages\n"
    (work / "a.run").write_text("")
    assert cli.main(["check", str(work), "--quiet"]) == 2
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and said[0].startswith(
        f"{work / 'a.run'} has changed since it was written"
    )
