"""TREC runs: reading, writing, reuse."""

import gzip

import pandas as pd
import pytest

from harp_plugin.errors import HarpError
from harp_plugin.evaluation.runs import frame_text, ranked, read_run, stored_run
from harp_plugin.work.provenance import OverwriteRules


@pytest.fixture
def run():
    return pd.DataFrame(
        {
            "qid": ["b", "b", "b", "a"],
            "docno": ["d2", "d9", "d1", "d1"],
            "score": [0.1 + 0.2, 1 / 3, 0.1 + 0.2, -1e-300],
        }
    )


def test_queries_keep_their_order_and_ties_theirs(run):
    result = ranked(run)
    assert list(result["docno"]) == ["d9", "d2", "d1", "d1"]
    assert list(result["rank"]) == [0, 1, 2, 0]


@pytest.mark.parametrize("suffix", ["run", "run.gz"])
def test_what_is_written_reads_back_the_same(run, tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    content = frame_text(ranked(run), "tag").encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    pd.testing.assert_frame_equal(read_run(path), ranked(run))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "is empty"),
        ("q Q0 d 0 1.0 tag\nq Q0 e 1 tag\n", "line 2: 5 columns"),
        ("q Q0 d 0 one tag\n", "line 1: score 'one' is not a number"),
        ("q Q0 d 0 nan tag\n", "score 'nan' is not a number"),
        ("q Q0 d 0 1.0 t\nq Q0 d 1 0.5 t\n", "lists document d twice for query q"),
        (b"\xff\xfe", "cannot read run"),
    ],
)
def test_a_bad_run_is_told_with_its_place(tmp_path, lines, message):
    path = tmp_path / "bad.run"
    path.write_bytes(lines if isinstance(lines, bytes) else lines.encode())
    with pytest.raises(HarpError, match=message):
        read_run(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"score": float("nan")},
            r"x gives results that are no run \(run x.run, line 1: score",
        ),
        ({"docno": "d 1"}, r"no run \(run x.run, line 1: 7 columns"),
        (
            {"qid": "b", "docno": "d1"},
            r"no run \(run .* twice for query b: .*\): correct what ranks",
        ),
    ],
)
def test_what_is_no_run_is_not_stored(run, tmp_path, change, message):
    path = tmp_path / "x.run"
    with pytest.raises(HarpError, match=message):
        stored_run(path, {}, lambda: ranked(run.assign(**change)))
    assert not any(tmp_path.iterdir())
    pd.testing.assert_frame_equal(stored_run(path, {}, lambda: ranked(run)), ranked(run))


def test_a_cut_off_archive_is_told(run, tmp_path):
    path = tmp_path / "cut.run.gz"
    path.write_bytes(gzip.compress(frame_text(ranked(run), "t").encode())[:-12])
    with pytest.raises(HarpError, match="cannot read run"):
        read_run(path)


class Maker:
    """Makes a run and counts how often."""

    def __init__(self, run):
        self.run = ranked(run)
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.run


def test_a_whole_run_of_the_same_settings_is_reused(run, tmp_path):
    make = Maker(run)
    first = stored_run(tmp_path / "x.run", {"depth": 3, "fields": ("a",)}, make)
    again = stored_run(tmp_path / "x.run", {"depth": 3, "fields": ["a"]}, make)
    assert make.calls == 1
    pd.testing.assert_frame_equal(first, again)


@pytest.mark.parametrize("damage", ["other settings", "other versions", "cut run"])
def test_anything_else_of_ours_is_made_again_when_asked(run, tmp_path, damage):
    make, path = Maker(run), tmp_path / "x.run"
    stored_run(path, {"depth": 3}, make, versions={"torch": "1"})
    if damage == "cut run":
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    before = path.read_bytes()
    given = {"depth": 4 if damage == "other settings" else 3}
    versions = {"torch": "2" if damage == "other versions" else "1"}
    with pytest.raises(HarpError, match="--overwrite"):
        stored_run(path, given, make, versions=versions)
    assert make.calls == 1 and path.read_bytes() == before
    if damage == "other versions":
        stored_run(
            path, given, make, versions=versions, rules=OverwriteRules(accept_other_versions=True)
        )
        assert make.calls == 1
    result = stored_run(path, given, make, versions=versions, rules=OverwriteRules(overwrite=True))
    assert make.calls == 2
    pd.testing.assert_frame_equal(result, ranked(run))


@pytest.mark.parametrize("damage", ["no note", "cut note", "a stranger's note"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_may_be_a_strangers_is_left(run, tmp_path, damage, overwrite):
    make, path, note = Maker(run), tmp_path / "x.run", tmp_path / "x.run.json"
    stored_run(path, {}, make)
    if damage == "no note":
        note.unlink()
    elif damage == "cut note":
        note.write_text(note.read_text()[:-9])
    else:
        note.write_text('{"settings": {}}')
    before = path.read_bytes()
    with pytest.raises(HarpError, match="name another --output"):
        stored_run(path, {}, make, rules=OverwriteRules(overwrite=overwrite))
    assert path.read_bytes() == before


@pytest.mark.parametrize("moment", ["make", "note", "name"])
def test_a_kill_at_any_moment_is_made_good(run, tmp_path, monkeypatch, moment):
    """A kill between the note and the run's name, above all."""
    make, path = Maker(run), tmp_path / "x.run"

    class Killed(BaseException):
        pass

    def kill(*_arguments, **_options):
        raise Killed

    place = {"note": "harp_plugin.work.artifact.write_record", "name": "pathlib.Path.replace"}
    if moment != "make":
        monkeypatch.setattr(place[moment], kill)
    with pytest.raises(Killed):
        stored_run(path, {}, kill if moment == "make" else make)
    monkeypatch.undo()
    pd.testing.assert_frame_equal(stored_run(path, {}, make), ranked(run))


def test_a_run_that_cannot_be_made_leaves_nothing(tmp_path):
    def fail():
        raise HarpError("no")

    with pytest.raises(HarpError):
        stored_run(tmp_path / "runs" / "x.run", {}, fail)
    assert not (tmp_path / "runs").exists()
