"""Runs: their lines, whatever they hold; grouped by query: order, checks, and little memory."""

import gzip
import os
import random
import threading
import tracemalloc

import pytest

from harp_plugin.collections.run import (
    LONGEST_LINE,
    QueryResults,
    Run,
    ScoredDocument,
    results_by_query,
    run_lines,
)
from harp_plugin.errors import HarpError

LINE = b"q1 Q0 d1 0 1.5 x\n"
LINES = [
    ScoredDocument(f"q{query}", f"d{(7 * query + rank) % 900}", float(-rank))
    for query in (3, 1, 2)
    for rank in range(700)
]


def test_equal_scores_keep_the_order_of_the_run():
    lines = [ScoredDocument("q", f"d{n}", float(n % 3)) for n in range(1000)]
    expected = [f"d{n}" for score in (2, 1) for n in range(score, 1000, 3)]
    for depth in (1, 7, 400):
        assert Run(lines, "run", depth)["q"] == expected[:depth]
    (results,) = results_by_query(lines, "run", 400)
    assert results == QueryResults("q", expected[:400], 1000)


@pytest.mark.parametrize("depth", [None, 1, 50, 5000])
def test_lines_of_a_query_may_stand_anywhere(depth):
    shuffled = random.Random(1).sample(LINES, len(LINES))
    for run in (Run(LINES, "run", depth), Run(shuffled, "run", depth)):
        assert set(run) == {"q1", "q2", "q3"} and "q4" not in run and run.scores("q4") == {}
        for query in run:
            best = [line for line in LINES if line.query == query][:depth]
            assert run[query] == [line.document for line in best]
            assert run.scores(query) == {line.document: line.score for line in best}
    assert list(Run(LINES, "run")) == ["q3", "q1", "q2"]


@pytest.mark.parametrize("depth", [None, 20_000])
def test_a_document_twice_is_refused_however_far_apart(depth):
    lines = [ScoredDocument("q", f"d{n}", 1.0) for n in range(15_000)]
    with pytest.raises(HarpError, match="my run lists document d3 twice for query q: keep"):
        Run([*lines, lines[3]], "my run", depth)


def test_a_stream_is_refused_where_a_query_stands_in_two_places():
    stream = results_by_query([*LINES, LINES[0]], "my run")
    assert [results.query for results in (next(stream), next(stream), next(stream))] == [
        *("q3", "q1", "q2")
    ]
    with pytest.raises(HarpError, match="my run has lines of query q3 in two places"):
        next(stream)


def test_a_run_without_lines_is_refused():
    for read in (Run, lambda *arguments: list(results_by_query(*arguments))):
        with pytest.raises(HarpError, match="my run is empty: name a run with results"):
            read([], "my run")


def test_a_run_takes_few_bytes_a_line():
    documents = [f"d{n}" for n in range(1000)]
    tracemalloc.start()
    lines = (
        ScoredDocument(f"q{query}", document, 1.0) for query in range(200) for document in documents
    )
    run = Run(lines, "run")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(run["q7"]) == 1000
    assert held < 14 * 200_000


@pytest.mark.parametrize(
    "kind", ["CRLF", "BOM", "ranks out of order", "tabs", "no line end", "packed"]
)
def test_what_is_only_unusual_is_read(tmp_path, kind):
    content = {
        "CRLF": LINE.replace(b"\n", b"\r\n"),
        "BOM": b"\xef\xbb\xbf" + LINE,
        "ranks out of order": LINE.replace(b" 0 ", b" 99 "),
        "tabs": LINE.replace(b" ", b"\t"),
        "no line end": LINE.strip(),
        "packed": gzip.compress(LINE),
    }[kind]
    run = tmp_path / "unusual.run"
    run.write_bytes(content)
    assert list(run_lines(run)) == [("q1", "d1", 1.5)]


@pytest.mark.parametrize("docno", ["é日本語😀", "a/b\\c", "'\"", "\x1b[0m", "=1+1", "x" * 1000])
def test_docnos_are_any_text(tmp_path, docno):
    run = tmp_path / "any.run"
    run.write_text(f"{docno} Q0 {docno} 1 -.5e-3 x\n", encoding="utf-8")
    assert list(run_lines(run)) == [(docno, docno, -0.0005)]


def test_an_endless_line_takes_no_memory(tmp_path):
    run = tmp_path / "endless.run"
    with run.open("wb") as file:
        file.truncate(1 << 32)
    tracemalloc.start()
    with pytest.raises(HarpError, match="line 1: over"):
        list(run_lines(run))
    assert tracemalloc.get_traced_memory()[1] < 10 * LONGEST_LINE + (4 << 20)
    tracemalloc.stop()


def test_what_a_shell_substitutes_is_read_once():
    reading, writing = os.pipe()
    writer = threading.Thread(target=lambda: os.close(os.write(writing, b"") or writing))
    os.write(writing, LINE)
    writer.start()
    path = f"/dev/fd/{reading}"
    assert [line.document for line in run_lines(path)] == ["d1"]
    writer.join()
    os.close(reading)
