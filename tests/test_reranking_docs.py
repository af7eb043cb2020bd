"""The examples of docs/reranking.md, docs/fusion.md and PyTerrier's documentation run."""

import gzip
import json
import re
import shlex
import shutil
from importlib.resources import files
from operator import attrgetter
from pathlib import Path

import pyterrier as pt
import pytest

import harp_plugin
from harp_plugin import HarpReranker, ranking
from harp_plugin.cli import main
from harp_plugin.evaluation import EvaluationOptions

PAGE = Path(__file__).parents[1] / "docs" / "reranking.md"
PT_DOCS = Path(str(files("harp_plugin"))) / "pt_docs"


@pytest.fixture
def here(tmp_path, monkeypatch, tiny_bert, irds_home):
    """A working folder with the two checkpoints that the examples name."""
    monkeypatch.chdir(tmp_path)
    for name in ("checkpoint", "another"):
        shutil.copytree(tiny_bert, tmp_path / name)
    return tmp_path


@pytest.mark.slow
def test_the_page(here):
    names: dict = {}
    for language, block in re.findall(r"```(python|console)\n(.*?)```", PAGE.read_text(), re.S):
        if language == "python":
            exec(compile(block, str(PAGE), "exec"), names)
        else:
            commands = [shlex.split(line[2:]) for line in block.splitlines()]
            assert [main([*command[1:], "--quiet"]) for command in commands] == [0, 0]
    assert isinstance(names["ensemble"], ranking.HarpEnsemble)
    lines = gzip.decompress((here / "new.run.gz").read_bytes()).splitlines()
    assert len(lines) == 400
    assert len(gzip.decompress((here / "bm25.reranked.run.gz").read_bytes()).splitlines()) == 40


@pytest.mark.slow
def test_the_page_on_fusion(here):
    dataset = pt.get_dataset("irds:vaswani")
    names = {
        "dataset": dataset,
        "topics": dataset.get_topics().head(6),
        "qrels": dataset.get_qrels().query("qid in ['1', '2', '3', '4', '5', '6']"),
    }
    page = PAGE.with_name("fusion.md").read_text()
    for language, block in re.findall(r"```(python|json)\n(.*?)```", page, re.S):
        if language == "python":
            exec(compile(block, "fusion.md", "exec"), names)
        else:
            Path("engine.run.gz").touch()
            options = EvaluationOptions(**json.loads(block))
            assert options.rows[-3:] == ["learned", "rrf", "by hand"]
    assert len(names["in_a_pipeline"](names["topics"])) == 600
    assert names["learned"].queries == 6


@pytest.mark.slow
def test_the_pages_for_pyterrier(here):
    names: dict = {}
    for page in ("index.rst", "how-to.rst"):
        text = (PT_DOCS / page).read_text()
        for block in re.findall(
            r"code-block:: python\n(?:   :.*\n)*\n((?:   .*\n|\n)+)", text + "\n"
        ):
            code = "\n".join(line.removeprefix("   ") for line in block.splitlines())
            exec(compile(code, page, "exec"), names)
            if "dataset" in names:
                names.setdefault("topics", names["dataset"].get_topics().head(2))
                names.setdefault("qrels", names["dataset"].get_qrels())
    assert isinstance(names["two"], HarpReranker)


def test_what_the_pages_document_exists():
    pages = [page.read_text() for page in sorted(PT_DOCS.glob("*.rst"))]
    documented = re.findall(r"autoclass:: harp_plugin\.([\w.]+)\n   :members: (.*)", "".join(pages))
    assert len(documented) == 6
    for name, members in documented:
        cls = attrgetter(name)(harp_plugin)
        assert issubclass(cls, pt.Transformer)
        assert all(getattr(cls, member).__doc__ for member in members.split(", "))
    assert re.search(r"toctree::.*\n\n   how-to\n", "".join(pages), re.S)
