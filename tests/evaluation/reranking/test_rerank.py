"""``harp rerank`` on runs in every form, against `HarpReranker` on the whole frame."""

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from harp_plugin import HarpReranker
from harp_plugin.evaluation import reranking
from harp_plugin.evaluation.runs import read_run

DATASET = "harp-encyclopedia"


@pytest.fixture
def expected(tiny_bert, first_stage):
    """The reranked frame, columns as in a run."""
    topics = pt.get_dataset(f"irds:{DATASET}").get_topics()
    frame = pd.DataFrame(first_stage, columns=["qid", "docno", "score"]).merge(topics, on="qid")
    ranked = HarpReranker(tiny_bert, dataset=DATASET, max_length=40)(frame)
    place = ranked.groupby("qid", sort=False).ngroup()
    ordered = ranked.assign(place=place).sort_values(["place", "rank"], ignore_index=True)
    return ordered[["qid", "docno", "score", "rank"]]


def assert_run(path, expected):
    pd.testing.assert_frame_equal(read_run(path), expected, check_dtype=False, atol=1e-6)


def test_a_run_is_reranked_and_named_after_the_first(rerank, run_file, expected, capsys):
    assert rerank(run_file) == 0
    output = run_file.with_name("bm25.reranked.run.gz")
    assert capsys.readouterr().out == f"run: {output}\n"
    assert_run(output, expected)
    left = {path.name for path in run_file.parent.iterdir() if not path.name.startswith(".")}
    assert left == {run_file.name, output.name, f"{output.name}.json"}


@pytest.mark.parametrize("pairs_at_once", [1, 12, 1000])
def test_from_any_form_into_any_form(
    rerank, same_run, run_file, expected, monkeypatch, tmp_path, pairs_at_once
):
    monkeypatch.setattr(reranking, "PAIRS_AT_ONCE", pairs_at_once)
    packed = tmp_path / "packed.run.gz"
    packed.write_bytes(gzip.compress(run_file.read_bytes()))
    plain, compressed = tmp_path / "new" / "out.run", tmp_path / "out.run.gz"
    assert rerank(run_file, "--output", plain) == 0
    assert rerank(packed, "--output", compressed) == 0
    same_run(compressed, plain)
    assert_run(plain, expected)
    columns = plain.read_text().splitlines()[0].split()
    assert len(columns) == 6 and columns[1] == "Q0" and columns[5] == "harp"


@pytest.mark.slow
def test_from_standard_input_to_standard_output(run_file, expected, tiny_bert, tmp_path):
    options = ["--dataset", f"irds:{DATASET}", "--model", str(tiny_bert), "--max-length", "40"]
    done = subprocess.run(
        [sys.executable, "-m", "harp_plugin.cli", "rerank", "-", *options, "--output", "-"],
        input=run_file.read_text(),
        capture_output=True,
        text=True,
        check=True,
    )
    (tmp_path / "out.run").write_text(done.stdout)
    assert_run(tmp_path / "out.run", expected)
    assert "rerank" in done.stderr and "line" in done.stderr


def test_depth_keeps_the_best_of_the_first_stage(rerank, run_file, first_stage):
    assert rerank(run_file, "--depth", 2, "--tag", "two") == 0
    output = run_file.with_name("bm25.reranked.run.gz")
    kept = read_run(output)
    for qid, rows in kept.groupby("qid"):
        best = sorted((line for line in first_stage if line[0] == qid), key=lambda line: -line[2])
        assert set(rows["docno"]) == {docno for _, docno, _ in best[:2]}
    assert gzip.decompress(output.read_bytes()).endswith(b" two\n")


def test_equal_scores_keep_the_order_of_the_first_stage(rerank, tmp_path, monkeypatch):
    monkeypatch.setattr(HarpReranker, "scorer", property(lambda self: Constant()))
    run = tmp_path / "bm25.run"
    docnos = [page.doc_id for page in pt.get_dataset(f"irds:{DATASET}").irds_ref().docs_iter()][:4]
    scores = [1, 3, 2, 3]
    qid = pt.get_dataset(f"irds:{DATASET}").get_topics()["qid"][0]
    run.write_text("".join(f"{qid} Q0 {d} 0 {s} x\n" for d, s in zip(docnos, scores, strict=True)))
    assert rerank(run) == 0
    ranked = read_run(tmp_path / "bm25.reranked.run.gz")
    assert list(ranked["docno"]) == [docnos[place] for place in (1, 3, 2, 0)]


class Constant:
    """A scorer that finds all documents equal."""

    def score(self, queries, documents, **options):
        return np.ones(len(queries), dtype=np.float32)


def test_fields_and_passages(rerank, run_file, tiny_bert, first_stage):
    options = ["--fields", "title", "text", "--passages", "max", "--passage-length", 9]
    assert rerank(run_file, *options) == 0
    topics = pt.get_dataset(f"irds:{DATASET}").get_topics()
    frame = pd.DataFrame(first_stage, columns=["qid", "docno", "score"]).merge(topics, on="qid")
    reranker = HarpReranker(
        tiny_bert,
        dataset=DATASET,
        text_field=["title", "text"],
        passages="max",
        passage_length=9,
        max_length=40,
    )
    kept = read_run(run_file.with_name("bm25.reranked.run.gz")).set_index(["qid", "docno"])
    scores = reranker(frame).set_index(["qid", "docno"])["score"]
    pd.testing.assert_series_equal(kept["score"].sort_index(), scores.sort_index(), atol=1e-6)


def test_queries_stream(rerank, run_file, first_stage, monkeypatch, capfd):
    """From a stream, first queries are written before the last are read."""
    monkeypatch.setattr(reranking, "PAIRS_AT_ONCE", 1)
    with run_file.open("a") as run:
        run.write("one bad line\n")
    with run_file.open() as run:
        assert rerank(f"/dev/fd/{run.fileno()}", "--output", "-") == 2
    output, error = capfd.readouterr()
    assert len(output.splitlines()) >= len(first_stage) - 5
    assert error.endswith("line 31: 3 columns; a TREC run has 6\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nobody Q0 page 1 2 x", "line 31: query 'nobody' is not in dataset harp-encyclopedia"),
        ("{0} Q0 nowhere 1 2 x", "no document nowhere in dataset harp-encyclopedia"),
        ("{0} Q0 {1} 1 2 x", "lists document {1} twice for query {0}"),
        ("{2} Q0 new 1 2 x", "lines of query {2} in two places: sort it by query"),
    ],
)
def test_a_bad_line_is_one_clear_message(rerank, run_file, first_stage, capsys, line, message):
    qid, docno, _ = first_stage[-1]
    names = qid, docno, first_stage[0][0]
    with run_file.open("a") as run:
        run.write(line.format(*names) + "\n")
    assert rerank(run_file) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("harp: error: ") and message.format(*names) in error
    if "no document" in message:
        assert f"qid {qid}" in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--depth", 0], "--depth is 0"),
        (["--tag", "two words"], "--tag is 'two words'"),
        (["--passages", "best"], "best"),
        (["--passage-length", 0], "--passage-length is 0"),
        (["--dtype", "int3"], "--dtype"),
        (["--fields", "url"], "no text field 'url'"),
    ],
)
def test_a_bad_option_is_one_clear_message(rerank, run_file, capsys, options, message):
    assert rerank(run_file, *options) == 2
    assert message in capsys.readouterr().err


def test_bad_names_are_one_clear_message(rerank, run_file, tmp_path, capsys):
    assert rerank(tmp_path / "none.run") == 2
    assert "cannot read run" in capsys.readouterr().err
    (tmp_path / "empty.run").write_text("")
    assert rerank(tmp_path / "empty.run") == 2
    assert "is empty" in capsys.readouterr().err
    assert rerank(run_file, dataset="irds:none") == 2
    assert "unknown dataset 'none'" in capsys.readouterr().err
    assert rerank(run_file, model=tmp_path / "none") == 2
    assert "no model at" in capsys.readouterr().err
    for stream in ("-", "/dev/fd/63"):
        assert rerank(stream) == 2
        assert "add --output" in capsys.readouterr().err
