"""An artifact's life: made, resumed, damaged, made from something else, among files of others."""

import json
import logging
import threading
from pathlib import Path

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.work.artifact import (
    Artifact,
    OverwriteRules,
    Provenance,
    read_finished,
    verify_record,
)
from harp_plugin.work.lock import one_writer

PROVENANCE = Provenance({"a": 1, "b": [1, 2]}, {"numpy": "2.0"}, {"dump.xml": "abc"})
OTHER_SETTINGS = Provenance({"a": 2, "b": [1, 2]}, {"numpy": "2.0"}, {"dump.xml": "abc"})
OTHER_INPUTS = Provenance({"a": 1, "b": [1, 2]}, {"numpy": "2.0"}, {"dump.xml": "other"})
OTHER_VERSIONS = Provenance({"a": 1, "b": [1, 2]}, {"numpy": "1.26"}, {"dump.xml": "abc"})
OVERWRITE = OverwriteRules(overwrite=True)
NO_RULES = OverwriteRules()


def fill(folder):
    (folder / "parts").mkdir()
    (folder / "parts" / "0.bin").write_bytes(b"zero")
    (folder / "index.bin").write_bytes(b"index")


def folder_work(tmp_path, provenance=PROVENANCE, rules=NO_RULES, kind="index"):
    return Artifact(tmp_path / "work", kind, provenance, rules, own=r"parts/[^/]*\.bin")


def file_work(tmp_path, provenance=PROVENANCE, rules=NO_RULES, kind="run"):
    return Artifact(tmp_path / "a.run", kind, provenance, rules, is_file=True)


def make_file(work, text="lines\n"):
    with work.writing() as temporary:
        temporary.write_text(text)


def make_folder(work):
    with work.writing() as temporary:
        fill(temporary)


def content(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


KINDS = pytest.mark.parametrize(
    ("new", "make"), [(folder_work, make_folder), (file_work, make_file)], ids=["folder", "file"]
)


@KINDS
def test_what_is_made_is_finished(tmp_path, new, make):
    work = new(tmp_path)
    assert work.read() is None and not work.is_finished()
    make(work)
    assert work.is_finished() and new(tmp_path).is_finished()
    assert read_finished(work.path)["settings"] == PROVENANCE.settings
    assert verify_record(work.record_path) == []


@KINDS
def test_an_error_leaves_nothing(tmp_path, new, make):
    work = new(tmp_path)
    with pytest.raises(ZeroDivisionError), work.writing():
        raise ZeroDivisionError
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not work.is_finished()


@KINDS
@pytest.mark.parametrize(
    ("other", "message"),
    [
        (OTHER_SETTINGS, r"made from other settings \(a: 1 then, 2 now\)"),
        (OTHER_INPUTS, r"\(content of dump.xml: abc then, other now\)"),
        (OTHER_VERSIONS, r"other package versions \(numpy: 2.0 then, 1.26 now\)"),
    ],
)
def test_other_work_is_replaced_only_when_asked(tmp_path, new, make, other, message):
    make(new(tmp_path))
    before = content(tmp_path)
    with pytest.raises(HarpError, match=message) as caught:
        new(tmp_path, other).is_finished()
    assert "--overwrite" in str(caught.value) and "\n" not in str(caught.value)
    assert content(tmp_path) == before
    work = new(tmp_path, other, OVERWRITE)
    assert not work.is_finished()
    make(work)
    assert work.is_finished() and new(tmp_path, other).is_finished()


@KINDS
def test_other_versions_are_accepted_when_asked(tmp_path, new, make):
    make(new(tmp_path))
    assert new(tmp_path, OTHER_VERSIONS, OverwriteRules(accept_other_versions=True)).is_finished()


@KINDS
def test_work_of_another_kind_is_refused(tmp_path, new, make):
    make(new(tmp_path))
    with pytest.raises(HarpError, match="not model: name another"):
        new(tmp_path, kind="model").is_finished()


@KINDS
def test_what_harp_did_not_write_is_never_replaced(tmp_path, new, make):
    work = new(tmp_path, rules=OVERWRITE)
    if work.is_file:
        work.path.write_text("precious")
    else:
        work.path.mkdir()
        (work.path / "notes.txt").write_text("precious")
    before = content(tmp_path)
    for act in (work.read, work.is_finished, work.start, work.clear, lambda: make(work)):
        with pytest.raises(HarpError, match=r"harp did not write|was not written by harp"):
            act()
    assert content(tmp_path) == before


def test_overwriting_never_deletes_an_unknown_file(tmp_path):
    make_folder(folder_work(tmp_path))
    (tmp_path / "work" / "notes.txt").write_text("precious")
    before = content(tmp_path)
    work = folder_work(tmp_path, OTHER_SETTINGS, OVERWRITE)
    for act in (work.start, work.clear, lambda: make_folder(work)):
        with pytest.raises(HarpError, match=r"1 files that harp did not write, such as notes.txt"):
            act()
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "special"),
    [("work", "link"), ("work", "file"), ("a.run", "link"), ("a.run", "folder")],
)
def test_links_and_the_like_are_refused(tmp_path, name, special):
    path = tmp_path / name
    if special == "link":
        path.symlink_to(tmp_path)
    elif special == "folder":
        path.mkdir()
    else:
        path.write_text("x")
    work = folder_work(tmp_path) if name == "work" else file_work(tmp_path)
    with pytest.raises(HarpError, match=f"is a {special}: name another --output-dir"):
        work.is_finished()


def test_links_inside_are_removed_and_not_followed(tmp_path):
    (tmp_path / "precious").write_text("precious")
    make_folder(folder_work(tmp_path))
    link = tmp_path / "work" / "parts" / "1.bin"
    link.symlink_to(tmp_path / "precious")
    folder_work(tmp_path).clear()
    assert not (tmp_path / "work").exists()
    assert (tmp_path / "precious").read_text() == "precious"


def append(path):
    path.write_bytes(path.read_bytes() + b"!")


def flip(path):
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])


DAMAGES = {"missing": Path.unlink, "other size": append, "other byte": flip}


class TestDamage:
    """Every file, every damage: what opening sees, and what `verify_record` sees."""

    @KINDS
    @pytest.mark.parametrize("damage", DAMAGES)
    def test_of_files(self, tmp_path, new, make, damage):
        work = new(tmp_path)
        make(work)
        for name in json.loads(work.record_path.read_text())["files"]:
            path = work.path / name if not work.is_file else work.path
            before = path.read_bytes()
            {"missing": lambda p: p.unlink(), "other size": append, "other byte": flip}[damage](
                path
            )
            (line,) = verify_record(work.record_path)
            assert line.startswith(str(path))
            assert line.endswith("missing" if damage == "missing" else "since it was written")
            if damage == "other byte":  # sizes only, when it is opened
                assert work.is_finished()
            else:
                with pytest.raises(HarpError, match=r"restore it|not finished"):
                    read_finished(work.path)
            path.write_bytes(before)
        assert work.is_finished()

    @KINDS
    def test_a_missing_file_is_made_again(self, tmp_path, new, make, caplog):
        work = new(tmp_path)
        make(work)
        (work.path if work.is_file else work.path / "index.bin").unlink()
        assert not work.is_finished()
        make(work)
        assert work.is_finished()
        assert "missing" in caplog.text and "is made again" in caplog.text

    @KINDS
    def test_a_changed_file_is_replaced_only_when_asked(self, tmp_path, new, make):
        make(new(tmp_path))
        append(tmp_path / ("a.run" if new is file_work else "work/index.bin"))
        before = content(tmp_path)
        with pytest.raises(HarpError, match=r"has changed since it was written.*--overwrite"):
            new(tmp_path).is_finished()
        assert content(tmp_path) == before
        assert not new(tmp_path, rules=OVERWRITE).is_finished()

    @KINDS
    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"checksum": 1}', None])
    def test_of_the_record(self, tmp_path, new, make, text):
        work = new(tmp_path)
        make(work)
        record = work.record_path.read_text()
        work.record_path.write_text(record.replace("abc", "abd") if text is None else text)
        (line,) = verify_record(work.record_path)
        assert str(work.record_path) in line
        before = content(tmp_path)
        for act in (work.is_finished, work.start):
            with pytest.raises(HarpError, match=r"is damaged, or was not written by harp"):
                act()
        assert content(tmp_path) == before

    def test_a_listed_file_outside_of_the_folder(self, tmp_path):
        work = folder_work(tmp_path)
        make_folder(work)
        work.commit({"../a.txt": {"size": 1, "sha256": ""}})
        assert "lies outside" in verify_record(work.record_path)[0]


class TestStarted:
    """Work that takes hours."""

    def start(self, tmp_path, provenance=PROVENANCE, rules=NO_RULES):
        work = folder_work(tmp_path, provenance, rules, "model")
        work.start()
        return work

    def with_part(self, tmp_path):
        work = self.start(tmp_path)
        (work.path / "parts").mkdir()
        (work.path / "parts" / "0.bin").write_bytes(b"zero")
        return work

    def test_it_is_resumed(self, tmp_path):
        work = self.with_part(tmp_path)
        assert "files" not in work.read() and not work.is_finished()
        with pytest.raises(HarpError, match="not finished"):
            read_finished(work.path)
        again = self.start(tmp_path)
        assert (again.path / "parts" / "0.bin").read_bytes() == b"zero"
        record = again.commit(["parts/0.bin"], steps=3)
        assert record["steps"] == 3 and again.is_finished()
        again.start()
        assert not again.is_finished()

    def test_a_damaged_manifest_does_not_hide_what_was_started(self, tmp_path):
        work = self.with_part(tmp_path)
        work.commit(["parts/0.bin"])
        work.record_path.write_text("{")
        assert not work.is_finished()
        work.start()
        assert sorted(content(work.path)) == ["parts/0.bin", "started.json"]

    def test_other_work_that_has_begun_asks(self, tmp_path):
        self.with_part(tmp_path)
        with pytest.raises(HarpError, match=r"a: 1 then, 2 now"):
            self.start(tmp_path, OTHER_SETTINGS)
        self.start(tmp_path, OTHER_SETTINGS, OVERWRITE)
        assert list(content(tmp_path / "work")) == ["started.json"]

    def test_other_work_that_has_no_file_yet_is_replaced(self, tmp_path):
        self.start(tmp_path)
        work = self.start(tmp_path, OTHER_SETTINGS)
        assert work.read()["settings"]["a"] == 2

    def test_with_a_lock_in_the_folder(self, tmp_path):
        with one_writer(tmp_path / "work"):
            work = self.with_part(tmp_path)
            (work.path / "parts" / "1.bin.77.harp-tmp").write_text("half")
            work.clear()
            assert all(name.startswith(".harp.lock") for name in content(work.path))
            self.start(tmp_path)

    def test_a_file_that_grows(self, tmp_path):
        part = file_work(tmp_path, kind="part")
        part.start()
        part.path.write_text("line\n")
        again = file_work(tmp_path, kind="part")
        again.start()
        assert part.path.read_text() == "line\n" and not again.is_finished()
        with pytest.raises(HarpError, match="other settings"):
            file_work(tmp_path, OTHER_SETTINGS, kind="part").start()
        file_work(tmp_path, OTHER_SETTINGS, OVERWRITE, kind="part").start()
        assert not part.path.exists()
        part.clear()
        assert not content(tmp_path)


class TestMake:
    """Work that is made once, by one process, while others wait."""

    def test_once(self, tmp_path):
        assert folder_work(tmp_path).make(fill)
        assert not folder_work(tmp_path).make(lambda _: pytest.fail("made twice"))

    def test_damage_is_made_again(self, tmp_path, caplog):
        work = folder_work(tmp_path, rules=OVERWRITE)
        work.make(fill)
        append(work.path / "index.bin")
        with caplog.at_level(logging.WARNING):
            assert work.make(fill)
        assert f"{work.path} is made again" in caplog.text
        assert (work.path / "index.bin").read_bytes() == b"index"

    def test_others_wait(self, tmp_path):
        began, may_end = threading.Event(), threading.Event()

        def slowly(folder):
            began.set()
            may_end.wait(10)
            fill(folder)

        made = []
        first = threading.Thread(target=lambda: made.append(folder_work(tmp_path).make(slowly)))
        second = threading.Thread(target=lambda: made.append(folder_work(tmp_path).make(fill)))
        first.start()
        assert began.wait(10)
        second.start()
        may_end.set()
        for thread in (first, second):
            thread.join(10)
        assert sorted(made) == [False, True]

    def test_what_a_killed_process_left_is_removed(self, tmp_path):
        (tmp_path / "work.123.harp-tmp").mkdir()
        folder_work(tmp_path).make(fill)
        assert not list(tmp_path.glob("*.harp-tmp"))


class TestShared:
    """A folder where other files may lie."""

    def work(self, tmp_path, provenance=PROVENANCE, rules=NO_RULES):
        own = r"results\.json|report\.html"
        return Artifact(tmp_path, "results", provenance, rules, own=own, is_shared=True)

    def test_files_of_others_stay(self, tmp_path):
        (tmp_path / "notes.txt").write_text("precious")
        self.work(tmp_path).write({"results.json": "{}"}, queries=3)
        self.work(tmp_path).write({"results.json": "{ }", "report.html": b"<p>"})
        assert self.work(tmp_path).is_finished()
        self.work(tmp_path, OTHER_SETTINGS, OVERWRITE).write({"results.json": "[]"})
        assert sorted(content(tmp_path)) == ["manifest.json", "notes.txt", "results.json"]
        assert verify_record(tmp_path / "manifest.json") == []

    def test_a_file_of_its_name_that_it_has_not_written_is_refused(self, tmp_path):
        (tmp_path / "report.html").write_text("precious")
        work = self.work(tmp_path, rules=OVERWRITE)
        for act in (work.is_finished, lambda: work.write({"report.html": "x"})):
            with pytest.raises(HarpError, match=r"such as report\.html"):
                act()
        assert content(tmp_path) == {"report.html": b"precious"}

    def test_other_results_are_refused_before_anything_is_computed(self, tmp_path):
        self.work(tmp_path).write({"results.json": "{}"})
        with pytest.raises(HarpError, match="a: 1 then, 2 now"):
            self.work(tmp_path, OTHER_SETTINGS).is_finished()

    def test_a_file_that_was_edited_is_replaced_only_when_asked(self, tmp_path):
        self.work(tmp_path).write({"results.json": "{}"})
        (tmp_path / "results.json").write_text("[]")
        with pytest.raises(HarpError, match="has changed since it was written"):
            self.work(tmp_path).is_finished()  # before anything is computed
        with pytest.raises(HarpError, match="has changed since it was written"):
            self.work(tmp_path).write({"results.json": "{}"})
        self.work(tmp_path, rules=OVERWRITE).write({"results.json": "{}"})
        assert (tmp_path / "results.json").read_text() == "{}"


class TestProvenance:
    def test_an_input_that_is_not_known_yet_is_no_difference(self):
        unknown = Provenance(PROVENANCE.settings, PROVENANCE.versions, {"dump.xml": None})
        assert unknown.difference(PROVENANCE) == ""
        assert OTHER_INPUTS.difference(PROVENANCE)

    def test_tuples_are_lists(self):
        assert not Provenance({"a": (1, 2)}).difference(Provenance({"a": [1, 2]}))

    def test_at_most_three_differences_are_named(self):
        then, now = (Provenance(dict.fromkeys("abcde", value)) for value in (1, "x" * 99))
        assert now.difference(then).count(" then, ") == 3
        assert now.difference(then).endswith("and 2 more") and "xxx..." in now.difference(then)

    def test_none_is_not_a_missing_setting(self):
        assert Provenance({"a": None}).difference(Provenance({})) == "a: nothing then, None now"

    def test_the_key_is_of_settings_and_inputs(self):
        assert len({each.key for each in (PROVENANCE, OTHER_SETTINGS, OTHER_INPUTS)}) == 3
        assert OTHER_VERSIONS.key == PROVENANCE.key
        reordered = Provenance({"b": [1, 2], "a": 1}, PROVENANCE.versions, PROVENANCE.inputs)
        assert reordered.key == PROVENANCE.key
