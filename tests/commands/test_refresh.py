"""`harp adapt` again on a folder of Markdown whose pages have changed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import brief_training
import pytest
from brief_training import train_briefly

from harp_plugin.cli import main
from harp_plugin.commands.adapt import AdaptOptions, plan, run
from harp_plugin.commands.adapt.ranking import Systems
from harp_plugin.commands.adapt.refresh import pipeline_record
from harp_plugin.errors import HarpError
from harp_plugin.options_parser import OptionsParser
from harp_plugin.ranking.search import FolderSearch

pytestmark = pytest.mark.slow

PAGES = 40
REFRESHED = r"== refresh \(after \d+:\d\d min\): "
MODELS = ("harp_pipeline.json", "links/model.safetensors", "queries/model.safetensors")
QUERIES = ("zymurgy of ale", "quokkas", "inverted index", "relevance feedback")
RECIPE = {
    "tasks": {"anchor": 1},
    "negatives": "bm25",
    "negatives_per_group": 1,
    "losses": {"lce": 1},
    "max_length": 32,
    "per_device_train_batch_size": 2,
    "save_steps": 20,
    "report_to": "none",
}


def write_pages(folder):
    """Write pages of the encyclopedia, each with links to the next six."""
    lines = (files("harp_plugin") / "data" / "encyclopedia-docs.jsonl").read_text().splitlines()
    pages = [json.loads(line) for line in lines[:PAGES]]
    folder.mkdir()
    for number, page in enumerate(pages):
        others = [pages[(number + step) % PAGES] for step in range(1, 7)]
        links = (
            f"See [{' '.join(other['text'].split()[5 * n : 5 * n + 5])}]({other['doc_id']}.md)."
            for n, other in enumerate(others, 1)
        )
        text = f"# {page['title']}\n\n{page['text']}\n\n" + "\n\n".join(links) + "\n"
        (folder / f"{page['doc_id']}.md").write_text(text)
    return sorted(folder.iterdir())


def change(docs):
    """Change a page, add one and delete one; return the name of the deleted page."""
    first, *_, last = sorted(docs.iterdir())
    first.write_text(first.read_text().replace("\n\n", "\n\nThe zymurgy of ale is new here. ", 1))
    (docs / "Added.md").write_text("# An addition\n\n" + "Quokkas smile at tourists. " * 8)
    last.unlink()
    return last.name


@pytest.fixture(scope="module")
def patched():
    """So few queries are enough, and so few steps are taken, that a test has time for them."""
    with pytest.MonkeyPatch.context() as patch:
        train_briefly(patch, 4)
        yield


@pytest.fixture(scope="module")
def finished(patched, tiny_bert, tmp_path_factory):
    """The folder of pages, and that of a finished run."""
    folder = tmp_path_factory.mktemp("finished")
    write_pages(folder / "docs")
    recipe = folder / "recipe.json"
    recipe.write_text(json.dumps(RECIPE))
    given = ["--model", str(tiny_bert), "--training", str(recipe), "--held-out-links", "0.5"]
    (folder / "arguments").write_text("\n".join(given))
    assert adapt(folder, "--budget", "5m") == 0
    return folder


def arguments(folder):
    given = (folder / "arguments").read_text().splitlines()
    output = ["--output-dir", str(folder / "out"), "--quiet", "--workers", "1"]
    return ["adapt", str(folder / "docs"), *given, *output]


def adapt(folder, *more):
    return main([*arguments(folder), *more])


def options_of(folder, more):
    """The options that `adapt` reads."""
    given = [*arguments(folder)[2:], *more]
    return OptionsParser((AdaptOptions,), "harp adapt", "").read(given)[0]


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of them, from which the model is as far as from them."""
    return shutil.copytree(finished, tmp_path, dirs_exist_ok=True)


def found(out):
    """What a search finds for each query: the pages and their scores."""
    search = FolderSearch(out)
    return {query: {r.docno: r.score for r in search.search(query, 20)} for query in QUERIES}


def models(folder):
    return {name: (folder / "out" / name).read_bytes() for name in MODELS}


def made_at_once(folder, out):
    """Make the pages of a folder, and let the same models and weights search them."""
    made = json.loads((folder / "out" / "manifest.json").read_text())["settings"]
    options = AdaptOptions(output_dir=str(out), model=made["model"], held_out_links=0.5)
    options.workers, options.quiet = 1, True
    run._build([folder / "docs"], options, None)
    run._collect(options, out / "collection")
    (out / "index").mkdir()
    for name in ("harp_pipeline.json", "links", "queries"):
        source = folder / "out" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, out / name)


def test_what_is_learnt_from_is_known_by_its_content(tiny_bert, tmp_path):
    """A folder of another encoder is not taken for this one's, and a run keeps its budget."""
    shutil.copytree(tiny_bert, tmp_path / "encoder")
    recipe = tmp_path / "training.json"
    recipe.write_text("{}")
    model, out = str(tmp_path / "encoder"), str(tmp_path / "out")

    def record(**more):
        options = AdaptOptions(output_dir=out, model=model, training=str(recipe), **more)
        return pipeline_record(["docs"], options, None)

    record().start(budget="7m")
    assert record().read()["budget"] == "7m"
    recipe.write_text('{"learning_rate": 1e-5}')
    with pytest.raises(HarpError, match=r"other settings \(content of training: .* then"):
        record()
    recipe.write_text("{}")
    (tmp_path / "encoder" / "tokenizer_config.json").write_text("{}")
    with pytest.raises(
        HarpError, match=r"other settings \(content of encoder: .* content of model"
    ):
        record()
    assert not record(overwrite=True).is_finished()


def test_pages_are_read_again_and_models_stay(folder, capsys):
    kept, before = models(folder), found(folder / "out")
    deleted = change(folder / "docs")
    assert any(deleted in pages for pages in before.values())
    capsys.readouterr()
    assert adapt(folder) == 0
    output = capsys.readouterr().out
    assert re.search(REFRESHED + r"1 page changed, 1 new, 1 deleted \(of 40\)\n", output)
    assert output.endswith(
        f"    in {folder / 'out' / 'harp_pipeline.json'}\n"
        f"report: {folder / 'out' / 'evaluation' / 'report.html'}\n"
        f'search: harp search {folder / "out"} "a query"\n'
        f"as a page: harp serve {folder / 'out'}\n"
    )
    assert models(folder) == kept
    after = found(folder / "out")
    assert next(iter(after["zymurgy of ale"])) == "Anchor_text.md"
    assert next(iter(after["quokkas"])) == "Added.md"
    assert not any(deleted in pages for pages in after.values())
    made_at_once(folder, folder / "at-once")
    assert after == {
        query: pytest.approx(pages, abs=1e-4) for query, pages in found(folder / "at-once").items()
    }

    written = {path: path.stat().st_mtime_ns for path in (folder / "out").rglob("*.jsonl")}
    assert adapt(folder, "--budget", "5m") == 0
    assert re.search(REFRESHED + r"no page has changed\n", capsys.readouterr().out)
    assert {path: path.stat().st_mtime_ns for path in written} == written


KILLED = """
import os, pathlib, signal, sys

import pytest
from brief_training import train_briefly
from harp_plugin.cli import main

train_briefly(pytest.MonkeyPatch(), 4)
rename = pathlib.Path.replace

def replace(path, target):
    if path.parent.name.startswith("collection.") and path.name == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(path, target)

pathlib.Path.replace = replace
main(sys.argv[2:])
"""
"""Refreshes a folder, and is killed before it publishes a file of the new pages."""


def test_the_old_pipeline_searches_until_the_new_one_is_whole(folder, capsys):
    kept, before = models(folder), found(folder / "out")
    change(folder / "docs")

    def killed(*, before_file):
        run = [sys.executable, "-c", KILLED, before_file, *arguments(folder)]
        path = os.pathsep.join([str(Path(brief_training.__file__).parent), *sys.path])
        environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        assert subprocess.run(run, env=environment, check=False).returncode == -signal.SIGKILL
        return found(folder / "out")

    assert killed(before_file="documents.jsonl") == before
    after = killed(before_file="manifest.json")
    assert next(iter(after["quokkas"])) == "Added.md"
    assert adapt(folder) == 0
    assert found(folder / "out") == after
    assert adapt(folder) == 0
    assert re.search(REFRESHED + r"no page has changed\n", capsys.readouterr().out)
    assert models(folder) == kept
    assert not [*folder.rglob("*.harp-tmp")]


@pytest.mark.parametrize("more", [["--retrain"], ["--budget", "3h"]])
def test_an_interrupted_run_leaves_the_finished_pipeline(more, folder, monkeypatch, capsys):
    """The next run takes the budget of the last that was finished."""
    names = (*MODELS, "manifest.json")
    before = {name: (folder / "out" / name).read_bytes() for name in names}

    def stop(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Systems, "learn", stop)
        run.adapt([folder / "docs"], options_of(folder, more))
    for name, content in before.items():
        assert (folder / "out" / name).read_bytes() == content, name
    capsys.readouterr()
    assert adapt(folder) == 0
    assert re.search(REFRESHED + r"no page has changed\n", capsys.readouterr().out)
    assert found(folder / "out")


def test_other_options_are_named_and_another_budget_goes_on(folder, monkeypatch, capsys):
    change(folder / "docs")
    assert adapt(folder, "--min-words", "5") == 2
    error = capsys.readouterr().err
    assert "was made from other settings (min_words: 20 then, 5 now): name another" in error

    monkeypatch.setattr(plan, "training_steps", lambda *_: 2)
    links = [(folder / "out" / name).read_bytes() for name in MODELS[1:]]
    assert adapt(folder, "--retrain") == 0
    output = capsys.readouterr().out
    assert re.search(REFRESHED + r"1 page changed, 1 new, 1 deleted \(of 40\)\n", output)
    assert "== train" in output and "\nwith cross-encoder " in output
    trained = {name: (folder / "out" / name).read_bytes() for name in MODELS[1:]}
    assert not {*links} & {*trained.values()}

    monkeypatch.setattr(plan, "training_steps", lambda *_: 1)
    assert adapt(folder, "--budget", "3h") == 0
    assert {name: (folder / "out" / name).read_bytes() for name in trained} == trained
    assert "max_queries" not in capsys.readouterr().err
    monkeypatch.setattr(plan, "training_steps", lambda *_: 3)
    assert adapt(folder, "--budget", "4h") == 0
    assert (folder / "out" / "links" / "model.safetensors").read_bytes() not in trained.values()
    assert json.loads((folder / "out" / "plan.json").read_text())["steps"]["links"] == 3
