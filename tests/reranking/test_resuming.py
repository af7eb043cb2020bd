"""What a kill, Ctrl-C or a changed option leaves of a run, and what a later start makes of it."""

import gzip
import shutil
import signal
import subprocess
import sys

import pytest
import torch
from transformers import BertForSequenceClassification

from harp_plugin import Scorer
from harp_plugin.reranking import service

INTERRUPTED = """
import os, sys
from harp_plugin import Scorer
from harp_plugin.cli import main
from harp_plugin.reranking import service

service.PAIRS_AT_ONCE = 10
score, calls = Scorer.score, []

def interrupted(self, queries, documents, **options):
    calls.append(queries)
    if len(calls) == 3:
        os.kill(os.getpid(), int(sys.argv[1]))
    return score(self, queries, documents, **options)

Scorer.score = interrupted
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
    monkeypatch.setattr(service, "PAIRS_AT_ONCE", 10)
    score = Scorer.score
    seen = []

    def spy(self, queries, documents, **options):
        seen.extend(queries)
        return score(self, queries, documents, **options)

    monkeypatch.setattr(Scorer, "score", spy)
    return seen


@pytest.mark.integration
@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("cached", [False, True])
def test_a_kill_loses_only_the_queries_in_flight(
    rerank, same_run, run_file, whole, tiny_bert, tmp_path, scored, kill, cached
):
    scored.clear()
    output = tmp_path / "out.run.gz"
    options = ["--output", output]
    options += ["--cache", tmp_path / "cache"] if cached else []
    command = [run_file, "--dataset", "harp-encyclopedia", "--model", tiny_bert, *options]
    command = ["rerank", *map(str, command), "--max_length", "40", "--quiet"]
    killed = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(int(kill)), *command],
        capture_output=True,
        text=True,
    )
    assert killed.returncode == (-kill if kill == signal.SIGKILL else 130)
    if kill == signal.SIGINT:
        assert "run again to go on" in killed.stderr and "Traceback" not in killed.stderr
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
    options = ["--output", output]
    part, note = tmp_path / "out.run.part", tmp_path / "out.run.part.json"
    settings = (tmp_path / "whole.run.json").read_bytes()
    content = whole.read_bytes()
    lines = content.splitlines(keepends=True)
    ten, thirteen, end = (len(b"".join(lines[:count])) for count in (10, 13, 30))
    for cut in (0, 1, ten - 1, ten, ten + 1, thirteen, end - 1, end):
        output.unlink(missing_ok=True)
        part.write_bytes(content[:cut])
        note.write_bytes(settings)
        scored.clear()
        assert rerank(run_file, *options) == 0
        kept = content[:cut].count(b"\n") // 5 * 5
        assert output.read_bytes().startswith(b"".join(lines[:kept]))
        same_run(output, whole)
        assert len(scored) == 30 - kept


def test_a_finished_run_is_not_made_again(rerank, run_file, tmp_path, scored):
    output = tmp_path / "out.run"
    assert rerank(run_file, "--output", output) == 0
    scored.clear()
    assert rerank(run_file, "--output", output, "--batch-tokens", 64) == 0
    assert scored == []
    assert rerank(run_file, "--output", output, "--depth", 3) == 0
    assert len(scored) == 18 and len(output.read_text().splitlines()) == 18


@pytest.mark.parametrize("changed", ["run", "model", "max_length"])
def test_another_run_model_or_option_starts_anew_and_says_so(
    rerank, same_run, run_file, model_copy, tmp_path, scored, monkeypatch, caplog, changed
):
    output = tmp_path / "out.run"
    stop_after(monkeypatch, 2)
    assert rerank(run_file, "--output", output, model=model_copy) == 130
    assert len((tmp_path / "out.run.part").read_text().splitlines()) == 10
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
    assert rerank(run_file, *options, model=model_copy) == 0
    assert f"was made with another {changed}: starting anew" in caplog.text
    anew = tmp_path / "anew.run"
    again = [anew if option is output else option for option in options]
    assert rerank(run_file, *again, model=model_copy) == 0
    same_run(output, anew)


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
    monkeypatch.setattr(service, "PAIRS_AT_ONCE", 10)
    score = Scorer.score
    seen = []

    def stopping(self, queries, documents, **options):
        seen.append(queries)
        if len(seen) == calls:
            raise KeyboardInterrupt
        return score(self, queries, documents, **options)

    monkeypatch.setattr(Scorer, "score", stopping)
