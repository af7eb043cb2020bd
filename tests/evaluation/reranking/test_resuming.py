"""What a kill, Ctrl-C or a changed option leaves of a run, and what a later start makes of it."""

import gzip
import io
import json
import shutil
import signal
import subprocess
import sys

import pytest
import torch
from transformers import BertForSequenceClassification

from harp_plugin import Scorer
from harp_plugin.evaluation import reranking
from harp_plugin.work.records import read_record, write_record

INTERRUPTED = """
import os, signal, sys
from harp_plugin import Scorer
from harp_plugin.cli import main
from harp_plugin.evaluation import reranking

reranking.PAIRS_AT_ONCE = 10
score, calls = Scorer.score, []

def interrupted(self, queries, documents, **options):
    calls.append(queries)
    if len(calls) == 3:
        os.kill(os.getpid(), int(sys.argv[1]))
    return score(self, queries, documents, **options)

Scorer.score = interrupted
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[2:]))
"""


@pytest.fixture
def whole(rerank, run_file, tmp_path):
    """An uninterrupted run."""
    output = tmp_path / "whole.run"
    assert rerank(run_file, "--output", output) == 0
    return output


@pytest.fixture
def scored(monkeypatch):
    """A list of the queries of all pairs that are scored; two queries are scored at once."""
    monkeypatch.setattr(reranking, "PAIRS_AT_ONCE", 10)
    score = Scorer.score
    seen = []

    def spy(self, queries, documents, **options):
        seen.extend(queries)
        return score(self, queries, documents, **options)

    monkeypatch.setattr(Scorer, "score", spy)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_a_kill_loses_only_the_queries_in_flight(
    rerank, same_run, run_file, whole, tiny_bert, tmp_path, scored, kill
):
    scored.clear()
    output = tmp_path / "out.run.gz"
    options = ["--output", output]
    command = [run_file, "--dataset", "harp-encyclopedia", "--model", tiny_bert, *options]
    command = ["rerank", *map(str, command), "--max_length", "40", "--quiet"]
    killed = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(int(kill)), *command],
        capture_output=True,
        text=True,
    )
    assert killed.returncode == (-kill if kill == signal.SIGKILL else 130)
    if kill == signal.SIGINT:
        assert "run again to resume" in killed.stderr and "Traceback" not in killed.stderr
    part = tmp_path / "out.run.gz.part"
    kept = part.read_bytes()
    assert kept.count(b"\n") == 20 and not output.exists()
    assert rerank(run_file, *options) == 0
    assert len(scored) == 10
    assert gzip.decompress(output.read_bytes()).startswith(kept)
    same_run(output, whole)
    assert not part.exists()


def test_a_part_that_ends_anywhere_is_taken_up(rerank, same_run, run_file, whole, tmp_path, scored):
    """Also one that a full disk has cut in the middle of a line."""
    output = tmp_path / "out.run"
    content = whole.read_bytes()
    record = read_record(tmp_path / "whole.run.json")
    started = {name: record[name] for name in ("settings", "versions", "inputs")}
    lines = content.splitlines(keepends=True)
    ten, thirteen, end = (len(b"".join(lines[:count])) for count in (10, 13, 30))
    for cut in (0, 1, ten, ten + 1, thirteen, end - 1, end):
        output.unlink(missing_ok=True)
        (tmp_path / "out.run.json").unlink(missing_ok=True)
        (tmp_path / "out.run.part").write_bytes(content[:cut])
        write_record(tmp_path / "out.run.part.json", {"kind": "part of a run", **started})
        scored.clear()
        assert rerank(run_file, "--output", output) == 0
        kept = content[:cut].count(b"\n") // 5 * 5
        assert output.read_bytes().startswith(b"".join(lines[:kept]))
        same_run(output, whole)
        assert len(scored) == 30 - kept


def test_a_finished_run_is_not_made_again(rerank, run_file, tmp_path, scored, capsys):
    output = tmp_path / "out.run"
    assert rerank(run_file, "--output", output) == 0
    scored.clear()
    assert rerank(run_file, "--output", output) == 0
    assert scored == []
    content = output.read_bytes()
    for options in (["--depth", 3], ["--batch-tokens", 64]):
        assert rerank(run_file, "--output", output, *options) == 2
        name = options[0].lstrip("-").replace("-", "_")
        assert f"made from other settings ({name}: " in capsys.readouterr().err
    assert output.read_bytes() == content and scored == []
    assert rerank(run_file, "--output", output, "--depth", 3, "--overwrite") == 0
    assert len(scored) == 18 and len(output.read_text().splitlines()) == 18


@pytest.mark.parametrize("changed", ["run", "model", "max_length"])
def test_a_part_of_another_run_model_or_option_is_replaced_only_when_asked(
    rerank, same_run, run_file, model_copy, tmp_path, scored, monkeypatch, capsys, changed
):
    output = tmp_path / "out.run"
    stop_after(monkeypatch, 2)
    assert rerank(run_file, "--output", output, model=model_copy) == 130
    part = tmp_path / "out.run.part"
    kept = part.read_bytes()
    assert len(kept.splitlines()) == 10
    monkeypatch.undo()
    options = ["--output", output]
    if changed == "run":
        with run_file.open("a") as run:
            run.write("\n")
    elif changed == "model":
        weights = BertForSequenceClassification.from_pretrained(model_copy)
        with torch.no_grad():
            weights.classifier.bias += 1
        weights.save_pretrained(model_copy)
    else:
        options += ["--max_length", 20]
    assert rerank(run_file, *options, model=model_copy) == 2
    assert f"made from other settings ({changed}: " in capsys.readouterr().err
    assert part.read_bytes() == kept
    assert rerank(run_file, *options, "--overwrite", model=model_copy) == 0
    anew = tmp_path / "anew.run"
    again = [anew if option is output else option for option in options]
    assert rerank(run_file, *again, model=model_copy) == 0
    same_run(output, anew)


@pytest.mark.parametrize("half", [False, True])
def test_work_of_other_versions_is_used_only_when_asked(
    rerank, run_file, tmp_path, scored, monkeypatch, capsys, half
):
    output = tmp_path / "out.run"
    if half:
        stop_after(monkeypatch, 2)
    assert rerank(run_file, "--output", output) == (130 if half else 0)
    monkeypatch.undo()
    note = tmp_path / ("out.run.part.json" if half else "out.run.json")
    old = read_record(note)
    old["versions"]["torch"] = "1.0"
    write_record(note, old)
    assert rerank(run_file, "--output", output) == 2
    error = capsys.readouterr().err
    assert (
        "torch: 1.0 then" in error and "--accept-other-versions" in error and "--overwrite" in error
    )
    assert rerank(run_file, "--output", output, "--accept-other-versions") == 0
    assert read_record(tmp_path / "out.run.json")["versions"]["torch"] == "1.0"
    assert rerank(run_file, "--output", output, "--overwrite") == 0
    assert read_record(tmp_path / "out.run.json")["versions"]["torch"] != "1.0"


def strangers(folder):
    """Paths at which something lies that is not ours, and what it is made by."""
    output = folder / "out.run"
    yield output, lambda: output.write_text("a stranger's")
    yield output, lambda: output.mkdir()
    yield output, lambda: output.symlink_to(folder / "nowhere")
    for name in ("out.run.part", "out.run.json", "out.run.part.json"):
        path = folder / name
        yield path, lambda path=path: path.write_text("{}")
        yield path, lambda path=path: path.mkdir()


@pytest.mark.parametrize("number", range(9))
@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_what_is_not_ours_is_never_replaced(rerank, run_file, tmp_path, capsys, number, overwrite):
    path, make = list(strangers(tmp_path))[number]
    make()
    before = path.read_bytes() if path.is_file() else None
    assert rerank(run_file, "--output", tmp_path / "out.run", *overwrite) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("harp: error: ") and "name another --output" in error
    assert path.is_symlink() or path.exists()
    assert before is None or path.read_bytes() == before


def test_the_input_is_never_the_output(rerank, run_file, tmp_path, capsys):
    content = run_file.read_bytes()
    link = tmp_path / "link.run"
    link.hardlink_to(run_file)
    part = tmp_path / "x.part"
    part.write_bytes(content)
    for run, output in ((run_file, run_file), (run_file, link), (part, tmp_path / "x")):
        assert rerank(run, "--output", output, "--overwrite") == 2
        assert "is the run to be reranked" in capsys.readouterr().err
        assert run.read_bytes() == content


def test_a_run_that_was_cut_is_told(rerank, same_run, run_file, tmp_path, whole, capsys):
    good = tmp_path / "good.run"
    good.write_bytes(whole.read_bytes())
    whole.write_bytes(good.read_bytes()[:-5])
    assert rerank(run_file, "--output", whole) == 2
    assert "has changed since it was written" in capsys.readouterr().err
    assert rerank(run_file, "--output", whole, "--overwrite") == 0
    same_run(whole, good)


def test_what_a_killed_start_leaves_is_removed(rerank, run_file, tmp_path):
    names = ["out.run", "out.run.json", "out.run.part.json", "out.run.input"]
    left = [tmp_path / f"{name}.99999.harp-tmp" for name in names]
    other = tmp_path / "another.run.99999.harp-tmp"
    for path in (*left, other):
        path.write_text("half")
    assert rerank(run_file, "--output", tmp_path / "out.run") == 0
    assert not any(path.exists() for path in left) and other.exists()


@pytest.mark.parametrize("output", ["out.run", "-"])
def test_a_bad_last_line_is_seen_before_anything_is_scored(
    rerank, run_file, tmp_path, scored, capsys, output
):
    with run_file.open("a") as run:
        run.write("one bad line\n")
    assert rerank(run_file, "--output", output if output == "-" else tmp_path / output) == 2
    assert "line 31: 3 columns; a TREC run has 6" in capsys.readouterr().err
    assert not scored and not list(tmp_path.glob("out.run*"))


def test_another_run_from_standard_input_is_no_finished_one(
    rerank, run_file, tmp_path, monkeypatch, capsys
):
    def rerank_lines(lines):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
        return rerank("-", "--output", tmp_path / "out.run")

    lines = run_file.read_bytes()
    assert rerank_lines(lines) == 0
    assert rerank_lines(lines) == 0
    assert rerank_lines(b"".join(lines.splitlines(keepends=True)[:5])) == 2
    assert "made from other settings (run: " in capsys.readouterr().err


def test_a_folder_whose_documents_or_queries_changed_gives_another_run(rerank, tmp_path, capsys):
    (tmp_path / "pages" / "test").mkdir(parents=True)
    documents = tmp_path / "pages" / "documents.jsonl"
    queries = tmp_path / "pages" / "test" / "queries.tsv"
    (tmp_path / "pages" / "test" / "qrels.txt").write_text("q 0 d 1\n")
    run = tmp_path / "bm25.run"
    run.write_text("q Q0 d 1 2.0 x\n")

    def reranked(text, query):
        page = {"doc_id": "d", "title": "", "text": text, "anchor_text": ""}
        documents.write_text(json.dumps(page) + "\n")
        queries.write_text(f"q\t{query}\n")
        return rerank(run, "--output", tmp_path / "out.run", dataset=f"harp:{tmp_path}/pages/test")

    assert reranked("a page", "words") == reranked("a page", "words") == 0
    assert reranked("another page", "words") == reranked("a page", "other words") == 2
    said = capsys.readouterr().err
    assert "other settings (documents: " in said and "other settings (queries: " in said


def test_two_processes_do_not_write_one_run(rerank, run_file, tmp_path, capsys, monkeypatch):
    output = tmp_path / "out.run"
    score = Scorer.score
    errors = []

    def meanwhile(self, queries, documents, **options):
        if not errors:
            errors.append(rerank(run_file, "--output", output))
        return score(self, queries, documents, **options)

    monkeypatch.setattr(Scorer, "score", meanwhile)
    assert rerank(run_file, "--output", output) == 0
    assert errors == [2]
    assert "another process is writing" in capsys.readouterr().err


@pytest.fixture
def model_copy(tiny_bert, tmp_path):
    return shutil.copytree(tiny_bert, tmp_path / "model")


def stop_after(monkeypatch, calls):
    monkeypatch.setattr(reranking, "PAIRS_AT_ONCE", 10)
    score = Scorer.score
    seen = []

    def stopping(self, queries, documents, **options):
        seen.append(queries)
        if len(seen) == calls:
            raise KeyboardInterrupt
        return score(self, queries, documents, **options)

    monkeypatch.setattr(Scorer, "score", stopping)
