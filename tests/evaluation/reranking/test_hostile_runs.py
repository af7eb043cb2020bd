"""Runs that are damaged, hostile or not runs at all: one line, soon, and nothing is written."""

import gzip
import os

import pyterrier as pt
import pytest

from harp_plugin.cli import main
from harp_plugin.errors import HarpError, one_line
from harp_plugin.evaluation.options import RerankOptions
from harp_plugin.evaluation.reranking import rerank
from harp_plugin.evaluation.runs import read_run

pytestmark = [pytest.mark.integration, pytest.mark.timeout(20, func_only=True)]

DATASET = "harp-encyclopedia"
GOOD = b"{q} Q0 {d} 0 1.5 x\n"
HOSTILE = {
    "empty": (b"", "is empty"),
    "only empty lines": (b"\n \n\t\r\n" * 20, "is empty"),
    "one endless line": (b"x" * 10_000_000, "line 1: over"),
    "a long line in the middle": (GOOD + b"y" * 70_000 + b"\n" + GOOD, "line 2: over"),
    "a long docno": (b"{q} Q0 " + b"d" * 60_000 + b" 0 1 x\n", "no document"),
    "a long qid": (b"q" * 60_000 + b" Q0 {d} 0 1 x\n", "is not in dataset"),
    "UTF-16": (GOOD.decode().encode("utf-16"), "line 1"),
    "NUL bytes": (b"\0" * 200, "NUL"),
    "NUL in a docno": (b"{q} Q0 {d}\0 0 1 x\n", "NUL"),
    "UTF-16 without a mark": (GOOD.decode().encode("utf-16-le"), "NUL"),
    "Latin-1": (b"{q} Q0 d\xe9 0 1 x\n", "UTF-8"),
    "half a character": (b"{q} Q0 d\xe2\x82 0 1 x\n", "UTF-8"),
    "a surrogate": (b"{q} Q0 d\xed\xa0\x80 0 1 x\n", "UTF-8"),
    "score nan": (b"{q} Q0 {d} 0 nan x\n", "is not a number"),
    "score inf": (b"{q} Q0 {d} 0 inf x\n", "is not a number"),
    "score -Infinity": (b"{q} Q0 {d} 0 -Infinity x\n", "is not a number"),
    "score 1e999": (b"{q} Q0 {d} 0 1e999 x\n", "is not a number"),
    "score in hex": (b"{q} Q0 {d} 0 0x1p3 x\n", "is not a number"),
    "score 1_000": (b"{q} Q0 {d} 0 1_000 x\n", "is not a number"),
    "score of other digits": ("{q} Q0 {d} 0 ١٢ x\n".encode(), "is not a number"),
    "score 1,5": (b"{q} Q0 {d} 0 1,5 x\n", "is not a number"),
    "a score of many digits": (b"{q} Q0 {d} 0 " + b"9" * 50_000 + b" x\n", "is not a number"),
    "a word as score": (b"{q} Q0 {d} 0 best x\n", "is not a number"),
    "5 columns": (b"{q} {d} 0 1 x\n", "5 columns"),
    "7 columns": (b"{q} Q0 {d} 0 1 x y\n", "7 columns"),
    "a space in the docno": ("{q} Q0 {d}\u00a0b 0 1 x\n".encode(), "7 columns"),
    "a document twice": (GOOD * 2, "twice for query"),
    "a document 100,000 times": (GOOD * 100_000, "twice for query"),
    "lines of a query in two places": (GOOD + b"{q2} Q0 {d} 0 1 x\n" + GOOD, "in two places"),
    "an unknown query": (b"nobody Q0 {d} 0 1 x\n", "is not in dataset"),
    "an unknown document": (b"{q} Q0 nowhere 0 1 x\n", "no document nowhere"),
    "escape sequences": (b"\x1b[2J\x1b]0;x\x07 Q0 {d} 0 1 x\n", "is not in dataset"),
    "a million queries": (b"".join(b"n%d Q0 d 0 1 x\n" % n for n in range(1_000_000)), "not in"),
    "JSON": (b'{"query": "a"}\n', "2 columns"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 50, "line 1"),
}
PACKED = {
    "a bomb of one line": (b"z" * 50_000_000, "line 1: over"),
    "a bomb of one document": (GOOD * 50_000, "twice for query"),
}


@pytest.fixture(scope="module")
def names():
    dataset = pt.get_dataset(f"irds:{DATASET}").irds_ref()
    queries = [query.query_id for query in dataset.queries_iter()]
    return {"q": queries[0], "q2": queries[1], "d": next(dataset.docs_iter()).doc_id}


def named(content: bytes, names) -> bytes:
    for mark, name in names.items():
        for code in ("utf-8", "utf-16-le"):
            content = content.replace(f"{{{mark}}}".encode(code), name.encode(code))
    return content


@pytest.fixture
def refused(tiny_bert, tmp_path):
    """Rerank a run that must be refused; gives the message as it is printed."""

    def attempt(run, **options) -> str:
        output = tmp_path / "out" / "new.run.gz"
        given = RerankOptions(
            dataset=DATASET,
            model=str(tiny_bert),
            output=str(output),
            max_length=40,
            quiet=True,
            **options,
        )
        with pytest.raises(HarpError) as raised:
            rerank(str(run), given)
        assert not output.exists() and not output.with_name(f"{output.name}.json").exists()
        message = one_line(raised.value)
        assert len(message) <= 1300 and message.isprintable() and "\n" not in message
        return message

    return attempt


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_run_is_one_line(refused, names, tmp_path, kind):
    content, expected = HOSTILE[kind]
    run = tmp_path / "hostile.run"
    run.write_bytes(named(content, names))
    assert expected in refused(run)


@pytest.mark.parametrize("kind", ["empty", "score 1_000", "5 columns", "Latin-1"])
def test_a_first_stage_is_read_with_the_same_care(names, tmp_path, kind):
    content, expected = HOSTILE[kind]
    run = tmp_path / "hostile.run"
    run.write_bytes(named(content, names))
    with pytest.raises(HarpError, match=expected):
        read_run(run)


@pytest.mark.parametrize("kind", PACKED)
def test_a_bomb_is_one_line(refused, names, tmp_path, kind):
    content, expected = PACKED[kind]
    run = tmp_path / "bomb.run.gz"
    run.write_bytes(gzip.compress(named(content, names), 1))
    assert expected in refused(run)


@pytest.mark.parametrize("damage", ["cut", "flipped", "a wrong end", "only a head"])
def test_a_damaged_archive_is_one_line(refused, names, tmp_path, damage):
    good = bytearray(gzip.compress(named(GOOD, names)))
    if damage == "cut":
        good = good[:-9]
    elif damage == "flipped":
        good[len(good) // 2] ^= 255
    elif damage == "a wrong end":
        good[-5] ^= 1
    else:
        good = good[:6]
    run = tmp_path / "damaged.run.gz"
    run.write_bytes(good)
    assert "cannot read run" in refused(run)


def test_what_is_not_a_file_is_one_line(refused, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe, "/dev/zero"):
        assert "is not a file: name one" in refused(path)
    for path in (tmp_path / "none", "x" * 5000, "a\0b", tmp_path / "none" / "none"):
        assert "cannot read run" in refused(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_run_that_may_not_be_read_is_one_line(refused, tmp_path):
    run = tmp_path / "secret.run"
    run.write_text("")
    run.chmod(0)
    assert "cannot read run" in refused(run)


def test_reading_is_linear_in_the_lines_of_a_query(tmp_path, names, refused):
    lines = [f"{names['q']} Q0 d{n} 0 {n} x\n" for n in range(100_000)]
    run = tmp_path / "long.run"
    run.write_text("".join([*lines, lines[0]]))
    assert "lists document d0 twice" in refused(run)


def test_the_command_prints_one_line(names, tiny_bert, tmp_path, capsys):
    run = tmp_path / "hostile.run"
    run.write_bytes(named(HOSTILE["escape sequences"][0], names))
    options = ["--dataset", DATASET, "--model", str(tiny_bert), "--quiet"]
    assert main(["rerank", str(run), *options]) == 2
    error = capsys.readouterr().err
    lines = error.splitlines()
    assert "Traceback" not in error and "\x1b" not in error
    assert len(lines) == 1 and lines[-1].startswith("harp: error: ")
    assert not (tmp_path / "hostile.reranked.run.gz").exists()
