"""A stage's life: started, killed, gone on with, finished, asked for something else."""

import logging
import shutil

import pyarrow as pa
import pytest
from builds import read_table

from harp_plugin.errors import HarpError
from harp_plugin.work import stage as stage_module
from harp_plugin.work.manifest import read_content, read_manifest, table_files
from harp_plugin.work.parquet import write_table
from harp_plugin.work.provenance import OverwriteRules
from harp_plugin.work.stage import Stage

SCHEMA = pa.schema([("id", pa.int64())])
NO_RULES = OverwriteRules()


def stage(folder, rules=NO_RULES, **options):
    inputs = {"0:dump.xml": "abc"}
    packages = ("numpy", "no-such-package")
    return Stage(folder / "corpus", options, inputs, packages, rules=rules)


def write_shard(work, name, ids=(1, 2, 3), drops=None):
    """Write and commit one shard of the table ``pages``."""
    batch = pa.RecordBatch.from_pydict({"id": list(ids)}, schema=SCHEMA)
    file = write_table(work.folder / "pages" / f"{name}.parquet", SCHEMA, [batch])
    work.finish_shard(name, {"pages": file.rows}, drops or {}, [file])


def finished(folder, **options):
    work = stage(folder, **options)
    work.start()
    write_shard(work, "part-0")
    write_shard(work, "part-1", (4, 5))
    work.finish()
    return work


def content(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_finished_shards_are_kept(tmp_path):
    first = stage(tmp_path, a=1)
    first.start()
    write_shard(first, "part-0", drops={"short": 1})
    (first.folder / "pages" / "part-1.parquet.77.harp-tmp").write_text("half")
    (first.folder / "tmpdb.harp-tmp").mkdir()
    (first.folder / "tmpdb.harp-tmp" / "work.tmp").write_text("x")

    again = stage(tmp_path, a=1)
    again.start()
    assert again.shard_done("part-0") and not again.shard_done("part-1")
    assert [path.name for path in (again.folder / "pages").iterdir()] == ["part-0.parquet"]
    assert not list(again.folder.rglob("*.harp-tmp"))
    assert not again.is_finished()
    with pytest.raises(HarpError, match="no finished stage"):
        read_manifest(again.folder)

    lost = ["pages/part-1.parquet.78.harp-tmp", "shards/part-0.json.78.harp-tmp"]
    for name in lost:  # of an executor that was killed, whose shard another one made again
        (again.folder / name).write_text("half")
    write_shard(again, "part-1", (4, 5, 6, 7), {"short": 2, "empty": 1})
    manifest = again.finish(heads=2)
    assert not list(again.folder.rglob("*.harp-tmp"))
    assert again.is_finished() and stage(tmp_path, a=1).is_finished()
    assert manifest == read_manifest(again.folder)
    assert manifest["rows"] == {"pages": 7}
    assert manifest["drops"] == {"short": 3, "empty": 1}
    assert manifest["settings"] == {"a": 1} and manifest["heads"] == 2
    assert manifest["versions"]["no-such-package"] == "not installed"
    assert list(manifest["files"]) == ["pages/part-0.parquet", "pages/part-1.parquet"]


def test_a_temporary_table_that_a_kill_has_left_is_removed(tmp_path):
    work = Stage(tmp_path / "corpus", {}, {}, temporary=("counted",))
    work.start()
    write_shard(work, "part-0")
    work.finish()
    (work.folder / "counted").mkdir()
    (work.folder / "counted" / "part-0.parquet").write_text("left after the manifest was written")
    assert work.is_finished()
    assert not (work.folder / "counted").exists()


def other_options(folder, rules=NO_RULES):
    return stage(folder, rules, a=2)


def other_inputs(folder, rules=NO_RULES):
    packages = ("numpy", "no-such-package")
    inputs = {"0:dump.xml": "other"}
    return Stage(folder / "corpus", {"a": 1}, inputs, packages, rules=rules)


@pytest.mark.parametrize(
    ("other", "difference", "whole"),
    [
        (other_options, "a: 1 then, 2 now", True),
        (other_options, "a: 1 then, 2 now", False),
        (other_inputs, "0:dump.xml: abc then, other now", True),
    ],
)
def test_other_work_is_replaced_only_when_asked(tmp_path, other, difference, whole):
    done = finished(tmp_path, a=1)
    if not whole:
        (done.folder / "manifest.json").unlink()
    before = content(tmp_path)
    for act in ("check", "is_finished", "start"):
        with pytest.raises(HarpError, match="give --overwrite") as caught:
            getattr(other(tmp_path), act)()
        assert difference in str(caught.value) and "\n" not in str(caught.value)
    assert content(tmp_path) == before
    new = other(tmp_path, OverwriteRules(overwrite=True))
    assert not new.is_finished()
    new.start()
    assert not new.shard_done("part-0")
    assert list(content(new.folder)) == ["started.json"]


def test_unfinished_work_from_another_input_is_replaced(tmp_path):
    """Nobody can resume it: a dump that was truncated has been fetched again."""
    (finished(tmp_path, a=1).folder / "manifest.json").unlink()
    other_inputs(tmp_path).start()
    assert list(content(tmp_path)) == ["corpus/started.json"]


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("name", ["dump.xml", "pages/part-9.parquet", "a/b/c.txt", ".hidden"])
def test_a_folder_of_unknown_origin_is_refused(tmp_path, name, overwrite):
    """No manifest of ours accounts for it: the folder may be a person's."""
    file = tmp_path / "corpus" / name
    file.parent.mkdir(parents=True)
    file.write_text("precious")
    for act in ("check", "start"):
        with pytest.raises(HarpError, match=r"files that harp did not write.*move them away"):
            getattr(stage(tmp_path, OverwriteRules(overwrite=overwrite), a=1), act)()
    assert content(tmp_path) == {f"corpus/{name}": b"precious"}


def of_version(monkeypatch, number):
    monkeypatch.setattr(
        stage_module, "package_versions", lambda *names: dict.fromkeys(names, number)
    )


@pytest.mark.parametrize("whole", [True, False])
def test_other_versions_ask(tmp_path, monkeypatch, whole):
    of_version(monkeypatch, "1.0")
    done = finished(tmp_path, a=1)
    if not whole:
        (done.folder / "manifest.json").unlink()
    before = content(tmp_path)
    of_version(monkeypatch, "1.1")
    with pytest.raises(
        HarpError, match=r"numpy: 1\.0 then, 1\.1 now.*give --accept-other-versions.*or --overwrite"
    ):
        stage(tmp_path, a=1).start()
    assert content(tmp_path) == before
    kept = stage(tmp_path, OverwriteRules(accept_other_versions=True), a=1)
    assert kept.is_finished() == whole
    kept.start()
    assert kept.shard_done("part-0")
    replaced = stage(tmp_path, OverwriteRules(overwrite=True), a=1)
    assert not replaced.is_finished()
    replaced.start()
    assert not replaced.shard_done("part-0")


def test_an_input_that_is_not_known_yet_is_not_compared(tmp_path):
    finished(tmp_path, a=1)
    packages = ("numpy", "no-such-package")
    for value, options in ((None, {"a": 1}), ("abc", {"a": 1})):
        Stage(tmp_path / "corpus", options, {"0:dump.xml": value}, packages).check()
    with pytest.raises(HarpError, match="a: 1 then, 2 now"):
        Stage(tmp_path / "corpus", {"a": 2}, {"0:dump.xml": None}, packages).check()


def test_nothing_out_is_an_error(tmp_path):
    empty = stage(tmp_path, a=1)
    empty.start()
    empty.finish_shard("part-0", {"pages": 0}, {"short": 1200, "talk": 3})
    with pytest.raises(HarpError, match=r"^nothing .*dump\.xml.*short: 1,200, talk: 3") as caught:
        empty.finish()
    assert "\n" not in str(caught.value)
    assert not (empty.folder / "manifest.json").exists()


def test_an_empty_table_that_is_needed(tmp_path):
    work = stage(tmp_path, a=1)
    work.start()
    write_shard(work, "part-0", (1, 2))
    with pytest.raises(HarpError):
        work.finish(needed="links")
    assert work.finish(needed="pages")["rows"]["pages"] == 2


@pytest.mark.parametrize("text", ['{"stage": ', "[]", "null", "{}", '{"a": 1}', "", "[" * 10**5])
def test_a_damaged_manifest_is_told_and_made_again(tmp_path, text):
    done = finished(tmp_path, a=1)
    before = content(tmp_path)
    (done.folder / "manifest.json").write_text(text)
    with pytest.raises(HarpError, match=r"manifest\.json is damaged.*run `harp build` again"):
        read_manifest(done.folder)
    again = stage(tmp_path, a=1)
    assert not again.is_finished()
    again.start()
    assert again.shard_done("part-0") and again.shard_done("part-1")
    again.finish()
    assert content(tmp_path) == before


def test_the_dataset_of_another_library_is_not_ours(tmp_path):
    """It may have a file of the same name, and shards that are named like ours."""
    for name in ("manifest.json", "data/train-00000-of-00001.parquet"):
        (tmp_path / "corpus" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "corpus" / name).write_text('{"name": "mine"}')
    before = content(tmp_path)
    for overwrite in (True, False):
        with pytest.raises(HarpError, match="not written by harp"):
            stage(tmp_path, OverwriteRules(overwrite=overwrite), a=1).start()
    assert content(tmp_path) == before


def test_only_our_temporary_files_are_removed(tmp_path):
    first = stage(tmp_path, a=1)
    first.start()
    for name in ("notes.tmp", "scan.20240101.tmp"):
        (first.folder / name).mkdir()
        (first.folder / name / "thesis.txt").write_text("mine")
    stage(tmp_path, a=1).start()
    assert {name for name in content(first.folder) if "thesis" in name} == {
        "notes.tmp/thesis.txt",
        "scan.20240101.tmp/thesis.txt",
    }


@pytest.mark.parametrize("damage", ["truncate", "delete", "record"])
def test_damaged_shards_are_made_again(tmp_path, caplog, damage):
    done = finished(tmp_path, a=1)
    (done.folder / "manifest.json").unlink()
    file = done.folder / "pages" / "part-1.parquet"
    if damage == "truncate":
        file.write_bytes(file.read_bytes()[:-1])
    elif damage == "delete":
        file.unlink()
    else:
        (done.folder / "shards" / "part-1.json").write_text("{}")
    again = stage(tmp_path, a=1)
    with caplog.at_level(logging.WARNING):
        again.start()
    assert "part-1" in caplog.text and "is made again" in caplog.text
    assert again.shard_done("part-0") and not again.shard_done("part-1")


def test_a_missing_file_of_a_finished_stage_is_made_again(tmp_path):
    done = finished(tmp_path, a=1)
    (done.folder / "pages" / "part-0.parquet").unlink()
    again = stage(tmp_path, a=1)
    assert not again.is_finished()
    again.start()
    assert not again.shard_done("part-0") and again.shard_done("part-1")
    assert not (done.folder / "manifest.json").exists()


class TestTableFiles:
    def test_in_order(self, tmp_path):
        done = finished(tmp_path, a=1)
        assert [file.rows for file in table_files(done.folder, "pages")] == [3, 2]
        assert read_table(done.folder / "pages")["id"].to_pylist() == [1, 2, 3, 4, 5]

    @pytest.mark.parametrize("damage", ["truncate", "delete", "foreign"])
    def test_damage_is_one_line_that_names_the_file(self, tmp_path, damage):
        done = finished(tmp_path, a=1)
        file = done.folder / "pages" / "part-1.parquet"
        if damage == "truncate":
            file.write_bytes(file.read_bytes()[:-1])
        elif damage == "delete":
            file.unlink()
        else:
            shutil.copy(file, done.folder / "pages" / "part-2.parquet")
        with pytest.raises(HarpError, match=r"part-[12]\.parquet") as caught:
            table_files(done.folder, "pages")
        assert "\n" not in str(caught.value)

    def test_another_table(self, tmp_path):
        with pytest.raises(HarpError, match="no table links"):
            table_files(finished(tmp_path, a=1).folder, "links")


def test_content_is_of_the_files_and_not_of_the_settings(tmp_path):
    one = finished(tmp_path / "one", a=1)
    two = finished(tmp_path / "two", a=2)
    first, second = (read_manifest(work.folder) for work in (one, two))
    assert first["settings"] != second["settings"]
    assert first["content"] == second["content"]
    three = stage(tmp_path / "three", a=1)
    three.start()
    write_shard(three, "part-0", (1, 2, 4))
    write_shard(three, "part-1", (4, 5))
    assert three.finish()["content"] != first["content"]


def test_a_stage_that_was_made_from_other_tables_is_refused(tmp_path):
    corpus = read_manifest(finished(tmp_path, a=1).folder)["content"]
    for input, accepted in ((corpus, True), ("0" * 32, False)):
        graph = Stage(
            tmp_path / "graph", {}, {"corpus": input}, rules=OverwriteRules(overwrite=True)
        )
        graph.start()
        write_shard(graph, "part-0")
        graph.finish()
        if accepted:
            assert read_content(tmp_path, "corpus", "graph")["corpus"] == corpus
        else:
            with pytest.raises(HarpError, match="graph was made from another corpus"):
                read_content(tmp_path, "corpus", "graph")
