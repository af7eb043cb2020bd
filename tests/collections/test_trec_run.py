"""The lines of a TREC run, whatever they hold."""

import os
import threading
import tracemalloc

import pytest

from harp_plugin.collections.trec_run import LONGEST_LINE, count_lines, run_lines
from harp_plugin.errors import HarpError

LINE = b"q1 Q0 d1 0 1.5 x\n"


@pytest.mark.parametrize("kind", ["CRLF", "BOM", "ranks out of order", "tabs", "no line end"])
def test_what_is_only_unusual_is_read(tmp_path, kind):
    content = {
        "CRLF": LINE.replace(b"\n", b"\r\n"),
        "BOM": b"\xef\xbb\xbf" + LINE,
        "ranks out of order": LINE.replace(b" 0 ", b" 99 "),
        "tabs": LINE.replace(b" ", b"\t"),
        "no line end": LINE.strip(),
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
    assert count_lines(run) is None
    assert tracemalloc.get_traced_memory()[1] < 10 * LONGEST_LINE + (4 << 20)
    tracemalloc.stop()


def test_what_a_shell_substitutes_is_read_once():
    reading, writing = os.pipe()
    writer = threading.Thread(target=lambda: os.close(os.write(writing, b"") or writing))
    os.write(writing, LINE)
    writer.start()
    path = f"/dev/fd/{reading}"
    assert count_lines(path) is None
    assert [line.document for line in run_lines(path)] == ["d1"]
    writer.join()
    os.close(reading)
