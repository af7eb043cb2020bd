"""A stage's life: started, killed, gone on with, finished, asked for something else."""

import json

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.storage import Stage, read_manifest


def stage(folder, **options):
    return Stage(folder / "corpus", options, {"0:dump.xml": "abc"}, ("numpy", "no-such-package"))


def test_finished_shards_are_kept(tmp_path):
    first = stage(tmp_path, a=1)
    first.start()
    (first.folder / "pages").mkdir()
    (first.folder / "pages" / "part-0.parquet").write_text("0")
    first.finish_shard("part-0", {"pages": 3}, {"short": 1})
    (first.folder / "pages" / "part-1.parquet.77.tmp").write_text("half")
    (first.folder / "tmpdb.tmp").mkdir()
    (first.folder / "tmpdb.tmp" / "work.tmp").write_text("x")

    again = stage(tmp_path, a=1)
    again.start()
    assert again.shard_done("part-0") and not again.shard_done("part-1")
    assert [path.name for path in (again.folder / "pages").iterdir()] == ["part-0.parquet"]
    assert not list(again.folder.rglob("*.tmp"))
    assert not again.finished
    with pytest.raises(HarpError, match="no finished stage"):
        read_manifest(again.folder)

    again.finish_shard("part-1", {"pages": 4, "links": 0}, {"short": 2, "empty": 1})
    manifest = again.finish(heads=2)
    assert again.finished and stage(tmp_path, a=1).finished
    assert manifest == read_manifest(again.folder)
    assert manifest["rows"] == {"pages": 7, "links": 0}
    assert manifest["drops"] == {"short": 3, "empty": 1}
    assert manifest["options"] == {"a": 1} and manifest["heads"] == 2
    assert manifest["versions"]["no-such-package"] == "not installed"


@pytest.mark.parametrize("change", ["options", "inputs"])
def test_other_work_clears_the_folder(tmp_path, change):
    first = stage(tmp_path, a=1)
    first.start()
    first.finish_shard("part-0", {"pages": 3}, {})
    first.finish()
    other = stage(tmp_path, a=2)
    if change == "inputs":
        other = Stage(tmp_path / "corpus", {"a": 1}, {"0:dump.xml": "other"})
    assert not other.finished
    other.start()
    assert not other.shard_done("part-0")
    assert not (other.folder / "manifest.json").exists()


def test_a_folder_of_unknown_origin_is_cleared(tmp_path):
    (tmp_path / "corpus" / "pages").mkdir(parents=True)
    (tmp_path / "corpus" / "pages" / "part-9.parquet").write_text("stale")
    new = stage(tmp_path, a=1)
    new.start()
    assert not list(new.folder.rglob("part-9*"))


def test_nothing_out_is_an_error(tmp_path):
    empty = stage(tmp_path, a=1)
    empty.start()
    empty.finish_shard("part-0", {"pages": 0}, {"short": 1200, "talk": 3})
    with pytest.raises(HarpError, match=r"^nothing .*dump\.xml.*short: 1,200, talk: 3") as caught:
        empty.finish()
    assert "\n" not in str(caught.value)
    assert not (empty.folder / "manifest.json").exists()


def test_an_empty_table_that_is_needed(tmp_path):
    some = stage(tmp_path, a=1)
    some.start()
    some.finish_shard("part-0", {"pages": 2, "links": 0}, {})
    with pytest.raises(HarpError):
        some.finish(needed="links")
    assert some.finish(needed="pages")["rows"]["pages"] == 2


def test_damaged_manifest(tmp_path):
    (tmp_path / "manifest.json").write_text('{"stage": ')
    with pytest.raises(HarpError, match=r"manifest\.json is damaged"):
        read_manifest(tmp_path)


def test_fingerprint_does_not_depend_on_order_or_place(tmp_path):
    one = Stage(tmp_path / "x", {"a": 1, "b": "é"}, {"c": "1", "d": "2"})
    two = Stage(tmp_path / "y", {"b": "é", "a": 1}, {"d": "2", "c": "1"})
    assert one.fingerprint == two.fingerprint
    assert one.fingerprint != Stage(tmp_path / "x", {"a": 1, "b": "e"}, one.inputs).fingerprint
    json.dumps(one.fingerprint)
