"""Files and folders are written whole or not at all."""

import pytest

from harp_plugin.work.records import changed_file, describe_files
from harp_plugin.work.writing import (
    remove_temporary,
    remove_temporary_of,
    temporary_path,
    whole,
)


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_folder_gets_its_name_at_the_end(tmp_path):
    with whole(tmp_path / "a" / "index") as temporary:
        (temporary / "part").mkdir(parents=True)
        (temporary / "part" / "file").write_text("content")
        assert not (tmp_path / "a" / "index").exists()
    assert (tmp_path / "a" / "index" / "part" / "file").read_text() == "content"
    assert names(tmp_path / "a") == {"index"}


def test_nothing_is_left_of_what_fails(tmp_path):
    for kind in ("file", "folder"):
        with pytest.raises(KeyboardInterrupt), whole(tmp_path / "work") as temporary:
            if kind == "folder":
                temporary.mkdir()
                temporary = temporary / "file"
            temporary.write_text("half")
            raise KeyboardInterrupt
    assert not names(tmp_path)


def test_folder_of_others_is_not_replaced(tmp_path):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "thesis.txt").write_text("mine")
    with pytest.raises(OSError), whole(tmp_path / "index") as temporary:
        temporary.mkdir()
    assert (tmp_path / "index" / "thesis.txt").read_text() == "mine"
    assert names(tmp_path) == {"index"}


def test_a_folder_that_a_killed_process_left_is_made_again(tmp_path):
    temporary_path(tmp_path / "index").mkdir()
    (temporary_path(tmp_path / "index") / "half").touch()
    with whole(tmp_path / "index") as temporary:
        temporary.mkdir()
    assert not names(tmp_path / "index")


def test_only_temporary_files_are_removed(tmp_path):
    kept = ["work.run", "work.run.json", "work.run.harp-tmp.txt", "other.run.7.tmp"]
    own = ["work.run.7.harp-tmp", "work.run.json.7.harp-tmp", "work.run.part.json.7.harp-tmp"]
    for name in (*kept, *own, "other.run.7.harp-tmp"):
        (tmp_path / name).touch()
    (tmp_path / "work.run.8.harp-tmp").mkdir()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / ".x.7.harp-tmp").touch()
    remove_temporary_of(tmp_path / "work.run")
    assert names(tmp_path) == {*kept, "other.run.7.harp-tmp", "folder"}
    remove_temporary(tmp_path)
    assert names(tmp_path) == {*kept, "folder"}
    remove_temporary(tmp_path, recursive=True)
    assert not names(tmp_path / "folder")


def test_a_listed_file_outside_of_the_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("content")
    listed = describe_files(tmp_path, ["file"])
    assert changed_file(tmp_path, listed) is None
    for name in ("../file", "/etc/passwd"):
        assert "lies outside" in changed_file(tmp_path, {name: listed["file"]})
