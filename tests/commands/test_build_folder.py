"""`harp build` and the files of others: nothing is deleted, replaced, mixed or used when stale."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from builds import PAGES, run, same
from dumps import write_dump

from harp_plugin import cli
from harp_plugin.errors import HarpError
from harp_plugin.work import stage as stage_module
from harp_plugin.work.lock import one_writer
from harp_plugin.work.manifest import read_manifest
from harp_plugin.work.mapped import open_table

pytestmark = pytest.mark.integration
FEW: dict = {"tasks": ["rqp", "ict"], "negatives": []}
"""Tasks and stages that are enough for whole folders."""


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def harp_build(capsys, *arguments) -> str:
    """The one line of an error, from the command line."""
    assert cli.main(["build", *map(str, arguments), "--quiet"]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("harp: error: ") and "\n" not in error
    return error


class TestFilesOfOthers:
    def test_a_folder_named_corpus_beside_the_dump(self, tmp_path, tiny_bert, monkeypatch, capsys):
        """`mkdir corpus; cp DUMP corpus/; harp build corpus/DUMP --output-dir .`"""
        dump = write_dump(tmp_path / "corpus" / "d.xml", PAGES)
        (tmp_path / "corpus" / "thesis.tex").write_text("mine")
        before = content(tmp_path)
        monkeypatch.chdir(tmp_path)
        for more in ([], ["--overwrite"]):
            source = dump.relative_to(tmp_path)
            error = harp_build(capsys, source, "--output-dir", ".", "--model", tiny_bert, *more)
            assert "--output-dir . holds the source corpus/d.xml" in error
        assert content(tmp_path) == before

    @pytest.mark.parametrize("name", ["corpus", "graph", "weights", "examples"])
    def test_a_folder_that_is_not_ours(self, tmp_path, tiny_bert, name, capsys):
        dump = write_dump(tmp_path / "d.xml", PAGES)
        (tmp_path / "out" / name).mkdir(parents=True)
        (tmp_path / "out" / name / "thesis.tex").write_text("mine")
        for more in ([], ["--overwrite"]):
            error = harp_build(
                capsys, dump, "--output-dir", tmp_path / "out", "--model", tiny_bert, *more
            )
            assert f"{name} holds 1 files that harp did not write, such as thesis.tex" in error
        assert content(tmp_path / "out") == {f"{name}/thesis.tex": b"mine"}

    @pytest.mark.parametrize("output", [".", "dumps", "dumps/out", "link/out"])
    def test_an_output_that_holds_a_source_or_lies_inside(self, tmp_path, output, capsys):
        write_dump(tmp_path / "dumps" / "d.xml", PAGES)
        (tmp_path / "link").symlink_to(tmp_path / "dumps")
        before = content(tmp_path)
        error = harp_build(capsys, tmp_path / "dumps", "--output-dir", tmp_path / output)
        assert "name another folder" in error
        assert content(tmp_path) == before

    def test_an_output_that_is_a_file(self, tmp_path, tiny_bert, capsys):
        dump = write_dump(tmp_path / "d.xml", PAGES)
        (tmp_path / "out").write_text("mine")
        harp_build(capsys, dump, "--output-dir", tmp_path / "out", "--model", tiny_bert)
        assert (tmp_path / "out").read_text() == "mine"


@pytest.fixture(scope="module")
def built(tmp_path_factory, tiny_bert):
    """A source and its build; not to be changed."""
    folder = tmp_path_factory.mktemp("built")
    source = write_dump(folder / "d.xml", PAGES)
    run(source, folder / "out", tiny_bert, **FEW)
    return source, folder / "out"


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (
            {"tasks": ["rqp", "anchor"]},
            "examples was made from other settings (tasks: ['rqp', 'ict'] then",
        ),
        pytest.param(
            {"pages_per_shard": 3},
            "corpus was made from other settings (pages_per_shard: 40 then",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_other_settings_replace_nothing_unless_asked(
    built, tmp_path, tiny_bert, change, difference
):
    source, output = built
    shutil.copytree(output, tmp_path / "out")
    before = content(tmp_path)
    change = FEW | change
    with pytest.raises(HarpError) as caught:
        run(source, tmp_path / "out", tiny_bert, **change)
    assert difference in str(caught.value) and "give --overwrite" in str(caught.value)
    assert content(tmp_path) == before
    run(source, tmp_path / "out", tiny_bert, overwrite=True, **change)
    run(source, tmp_path / "new", tiny_bert, **change)
    same(tmp_path / "new", tmp_path / "out")


def test_a_change_in_the_middle_of_a_large_source_is_seen(tmp_path, tiny_bert):
    """Neither its size, nor its ends, nor its time tell of it."""
    filler = {f"Filler {n}": f"x <!--{'x' * 8000}-->" for n in range(700)}
    source = write_dump(tmp_path / "d.xml", {**PAGES, **filler})
    run(source, tmp_path / "out", tiny_bert, stages=["corpus"], pages_per_shard=400)
    time_before = source.stat()
    data = bytearray(source.read_bytes())
    assert len(data) > 4 << 20
    data[data.index(b"Filler 350")] = ord("K")
    source.write_bytes(data)
    os.utime(source, ns=(time_before.st_atime_ns, time_before.st_mtime_ns + 1))
    with pytest.raises(HarpError, match=r"content of 0:d\.xml"):
        run(source, tmp_path / "out", tiny_bert, stages=["corpus"], pages_per_shard=400)


def test_other_versions_ask_in_one_line(built, tmp_path, tiny_bert, monkeypatch):
    source, output = built
    shutil.copytree(output, tmp_path / "out")
    before = content(tmp_path)
    real = stage_module.package_versions

    def other(*names):
        return {name: "99.0" if name == "sentencex" else real(name)[name] for name in names}

    monkeypatch.setattr(stage_module, "package_versions", other)
    with pytest.raises(HarpError, match=r"corpus was made by .*sentencex: .* then, 99\.0 now") as e:
        run(source, tmp_path / "out", tiny_bert, **FEW)
    assert "--accept-other-versions" in str(e.value) and "--overwrite" in str(e.value)
    run(source, tmp_path / "out", tiny_bert, **FEW, accept_other_versions=True)
    assert content(tmp_path) == before
    run(source, tmp_path / "out", tiny_bert, **FEW, overwrite=True)
    assert read_manifest(tmp_path / "out" / "corpus")["versions"]["sentencex"] == "99.0"
    # The same bytes came out, so all that was made from them still holds.
    assert content(tmp_path)["out/graph/manifest.json"] == before["out/graph/manifest.json"]


def test_a_copy_for_look_ups_does_not_survive_a_rebuild(tmp_path, tiny_bert):
    output = tmp_path / "out"
    source = write_dump(tmp_path / "d.xml", PAGES)
    run(source, output, tiny_bert, stages=["corpus"])
    pages = open_table(output, "corpus", "pages", ["id", "lead"])
    old = {pages.get(int(id), "lead") for id in pages.ids}
    source = write_dump(tmp_path / "d.xml", {**PAGES, "Tree": "Another lead of a [[fruit]]."})
    run(source, output, tiny_bert, stages=["corpus"], overwrite=True)
    pages = open_table(output, "corpus", "pages", ["id", "lead"])
    new = {pages.get(int(id), "lead") for id in pages.ids}
    assert new - old == {"Another lead of a fruit."} and len(old - new) == 1


def test_a_stage_of_another_build_is_not_used(built, tmp_path, tiny_bert):
    from harp_plugin.tasks import PreTrainingData

    _, output = built
    shutil.copytree(output, tmp_path / "out")
    other = write_dump(tmp_path / "d.xml", {**PAGES, "Plum": "A [[fruit]]."})
    run(other, tmp_path / "other", tiny_bert, **FEW)
    shutil.rmtree(tmp_path / "out" / "corpus")
    shutil.copytree(tmp_path / "other" / "corpus", tmp_path / "out" / "corpus")
    with pytest.raises(HarpError, match="was made from another corpus"):
        PreTrainingData(tmp_path / "out", {"rqp": 1})


class TestOneWriter:
    def test_the_second_is_told_of_the_first(self, tmp_path, tiny_bert, capsys):
        source = write_dump(tmp_path / "d.xml", PAGES)
        with one_writer(tmp_path / "out"):
            error = harp_build(
                capsys, source, "--output-dir", tmp_path / "out", "--model", tiny_bert
            )
        assert "another process is writing to" in error and f"process {os.getpid()}" in error
        run(source, tmp_path / "out", tiny_bert, **FEW)

    def test_a_lock_ends_with_its_process(self, tmp_path):
        script = (
            "import sys, time\nfrom harp_plugin.work.lock import one_writer\n"
            "with one_writer(sys.argv[1]):\n    print('locked', flush=True)\n    time.sleep(60)\n"
        )
        command = [sys.executable, "-c", script, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout.readline()
            with pytest.raises(HarpError, match=f"process {child.pid}"), one_writer(tmp_path):
                pass
            child.kill()
            child.wait()
        with one_writer(tmp_path):
            pass

    @pytest.mark.slow
    def test_two_builds_at_once(self, tmp_path, tiny_bert):
        """With different options on one output, in 20 timings: each is right or refused."""
        pages = {f"Page {n}": f"About [[Page {(n * 7) % 60}]] and it. " * 3 for n in range(60)}
        source = write_dump(tmp_path / "d.xml", pages)
        expected = {}
        for size in (10, 7):
            run(source, tmp_path / f"{size}", tiny_bert, stages=["corpus"], pages_per_shard=size)
            expected[size] = read_manifest(tmp_path / f"{size}" / "corpus")["content"]
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
            for number in range(20):
                output = tmp_path / f"out-{number}"
                start = partial(processes.submit, error_of_build, source, output, tiny_bert)
                builds = {10: start(10)}
                time.sleep(0.02 * number)
                builds[7] = start(7)
                told = {size: build.result() for size, build in builds.items()}
                (winner,) = [size for size, error in told.items() if error is None]
                (error,) = filter(None, told.values())
                assert "another process is writing" in error or "made from other settings" in error
                manifest = read_manifest(output / "corpus")
                assert manifest["content"] == expected[winner] and manifest["rows"]["pages"] == 60


def error_of_build(source, output, model, size) -> str | None:
    try:
        run(source, output, model, stages=["corpus"], pages_per_shard=size)
    except HarpError as error:
        return str(error)
    return None


@pytest.mark.slow
def test_no_worker_outlives_a_killed_build(shared_data, tmp_path, tiny_bert):
    """One that did would write beside the next build."""
    source = shared_data / "wiki" / "simplewiki-core150.xml.bz2"
    line = [
        sys.executable,
        "-m",
        "harp_plugin.cli",
        "build",
        source,
        "--output-dir",
        tmp_path / "out",
    ]
    line += ["--model", tiny_bert, "--workers", "2", "--pages-per-shard", "5", "--quiet"]
    child = subprocess.Popen(list(map(str, line)), start_new_session=True)
    while child.poll() is None and not any(tmp_path.glob("out/corpus/shards/*.json")):
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    for _ in range(100):
        if not _processes(child.pid):
            return
        time.sleep(0.1)
    raise AssertionError(_processes(child.pid))


def _processes(session: int) -> list[str]:
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found
