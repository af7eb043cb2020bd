"""`harp search`: results of the saved pipeline, as text, as JSON, and at a prompt."""

import io
import json
import os
import pty
import re
import select
import shutil
import signal
import sys

import pytest
from adapted import PAGES, make_adapted

from harp_plugin import HarpPipeline
from harp_plugin.cli import main
from harp_plugin.errors import HarpError
from harp_plugin.ranking.search import FolderSearch
from harp_plugin.text import SNIPPET_WORDS, Snippet, snippet, words


@pytest.fixture(scope="module")
def adapted(tmp_path_factory, tiny_bert):
    return make_adapted(tmp_path_factory.mktemp("search") / "my docs", tiny_bert)


@pytest.fixture
def search(capsys):
    def run(*arguments):
        assert main(["search", *map(str, arguments)]) == 0
        return capsys.readouterr().out

    return run


def test_results_are_those_of_the_pipeline(adapted, search):
    output = search(adapted, "how to install it")
    expected = HarpPipeline.load(adapted).search("how to install it")["docno"].tolist()
    blocks = output.rstrip("\n").split("\n\n")
    assert [block.splitlines()[1].strip() for block in blocks] == expected
    titles = [PAGES[docno][0] for docno in expected]
    assert [block.splitlines()[0] for block in blocks] == [
        f" {rank}  {title}" for rank, title in enumerate(titles, 1)
    ]
    assert "**Installing** needs a <b>network</b>." in output
    assert "**how**" not in output  # a stop word
    assert max(map(len, output.splitlines())) <= 80


def test_words_after_two_dashes_are_no_flags(adapted, search):
    (first,) = json.loads(search(adapted, "--json", "--results", 1, "--", "-remove"))["results"]
    assert first["docno"] == "guide/remove.md"
    assert search(adapted, "--results", 1, "--", "--json", "remove").startswith(" 1  Remove")
    assert search(adapted, "--results", 1, "--", "remove", "--help").startswith(" 1  Remove")


def test_a_terminals_codes_in_a_page_are_escaped(adapted, search):
    output = search(adapted, "naïve", "café", "--results", 1)
    assert "\x1b" not in output and r"**naïve** \x1b[2J search" in output
    assert "A **café** in Zürich" in output


def test_json_has_what_the_page_shows(adapted, search):
    output = search(adapted, "remove files", "--json", "--results", 2, "--base", "https://x/")
    answer = json.loads(output)
    assert answer["query"] == "remove files"
    first, _ = answer["results"]
    assert first["address"] == "https://x/guide/remove.md" and first["docno"] == "guide/remove.md"
    text = first["snippet"]
    assert [text[start:end] for start, end in first["marks"]] == ["removes", "files"]
    assert first["rank"] == 1 and first["ranks"]["BM25"] == 1 and "cosine" in first["ranks"]


def test_an_address_is_quoted_once(adapted, search):
    output = search(adapted, "half speed, wait", "--json", "--results", 1, "--base", "https://x/")
    (first,) = json.loads(output)["results"]
    assert first["address"] == "https://x/guide/50%25%20faster%3F.md"


def test_words_of_the_query_stand_anywhere(adapted, search):
    whole = search(adapted, "remove files", "--json", "--results", 2)
    assert search("--json", adapted, "remove", "files", "--results", 2) == whole
    assert search(adapted, "--json", "remove", "--results", 2, "files") == whole
    assert search("--json", "true", adapted, "--results", 2, "remove files") == whole
    assert search("--results", 2, "--json", adapted, "--", "remove files") == whole
    assert not search(adapted, "--json", "false", "remove").startswith("{")
    assert json.loads(search(adapted, "--json", "no", "network"))["query"] == "no network"


def test_a_page_with_characters_of_icons_is_printed_as_it_is():
    marked = snippet("b", "\ue000 a\ue001 <b>").marked("\ufdd0", "\ufdd1", str.upper)
    assert marked == "\ue000 A\ue001 <\ufdd0B\ufdd1>"


def test_a_moved_folder_is_searched(adapted, search, tmp_path):
    shutil.copytree(adapted, tmp_path / "there")
    assert search(tmp_path / "there", "install") == search(adapted, "install")


@pytest.mark.parametrize("query", ["", " ", "\udcff", "**"])
def test_a_query_without_a_word_is_one_line(query, adapted):
    with pytest.raises(HarpError, match="has no word: write what you look for"):
        FolderSearch(adapted).search(query, 10)


def test_a_query_with_a_broken_byte_is_one_line(adapted, monkeypatch, capsys):
    """As Python reads one from a terminal or a pipe; the queries after it are answered."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("caf\udce9\nremove\n"))
    assert main(["search", str(adapted), "--results", "1"]) == 0
    said = capsys.readouterr()
    assert re.findall("^ 1  (.*)", said.out, re.MULTILINE) == ["Remove"]
    assert "is not valid Unicode: write it anew" in said.err


def test_other_folders_are_told(adapted, tmp_path, capsys):
    assert main(["search", str(tmp_path), "query"]) == 2
    assert "name a folder that `harp adapt` wrote" in capsys.readouterr().err
    shutil.copytree(adapted, tmp_path / "there")
    (tmp_path / "there" / "collection" / "documents.jsonl").unlink()
    assert main(["search", str(tmp_path / "there"), "query"]) == 2
    assert "no collection harp:" in capsys.readouterr().err


def test_lines_of_the_input_are_queries(adapted, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("install a network\n\n?!\nremove\n"))
    assert main(["search", str(adapted), "--results", "1"]) == 0
    said = capsys.readouterr()
    assert re.findall("^ 1  (.*)", said.out, re.MULTILINE) == ["Install", "Remove"]
    assert "harp: error: the query '?!' has no word" in said.err
    monkeypatch.setattr(sys, "stdin", io.StringIO("install a network\nremove\n"))
    assert main(["search", str(adapted), "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    answers = [json.loads(line) for line in lines]
    assert [each["query"] for each in answers] == ["install a network", "remove"]
    assert [each["results"][0]["title"] for each in answers] == ["Install", "Remove"]


def test_an_interruption_between_queries_is_no_end_of_the_input(adapted, monkeypatch):
    class Interrupted(io.StringIO):
        def readline(self, *size):
            line = super().readline(*size)
            if line.startswith("remove"):
                os.kill(os.getpid(), signal.SIGINT)
            return line

    monkeypatch.setattr(sys, "stdin", Interrupted("install\nremove\ninstall\n"))
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["search", str(adapted), "--results", "1"]) == 130
    finally:
        signal.signal(signal.SIGINT, handler)


@pytest.mark.integration
def test_the_prompt_of_a_terminal(adapted):
    """Words are bold, and Ctrl-C ends it without a message, as the end of the input does."""
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job ignores it
        os.environ["TERM"] = "xterm"
        command = [sys.executable, "-m", "harp_plugin.cli", "search", str(adapted)]
        os.execv(sys.executable, [*command, "--results", "1"])

    def read_until(mark):
        seen = b""
        while mark not in seen and select.select([terminal], [], [], 60)[0]:
            try:
                part = os.read(terminal, 4096)
            except OSError:  # the process has ended
                break
            if not part:
                break
            seen += part
        return seen.decode()

    try:
        assert "search> " in read_until(b"search> ")
        os.write(terminal, b"install\n")
        assert "\x1b[1mInstalling\x1b[22m" in read_until(b"search> ")
        os.write(terminal, b"half a que")
        assert "half a que" in read_until(b"half a que")
        for _ in range(6):  # `input` misses a Ctrl-C that comes just before it waits for a key
            os.write(terminal, b"\x03")
            if select.select([terminal], [], [], 10)[0]:
                break
        assert "interrupted" not in read_until(b"never")
    finally:
        os.close(terminal)  # which hangs up on a process that has not ended
        status = os.waitpid(pid, 0)[1]
    assert os.waitstatus_to_exitcode(status) == 0


def test_the_snippet_is_the_window_with_most_words_of_the_query():
    text = "one " * 100 + "two three " + "four " * 100
    best = snippet("threes", text)
    assert best.text.startswith("… ") and best.text.endswith(" …")
    assert len(words(best.text)) == SNIPPET_WORDS
    assert best.marked("[", "]").count("[three]") == 1
    assert snippet("five", "one\ntwo") == Snippet("one two", [])
    assert snippet("", "") == Snippet("", [])
    assert snippet("one", "(one) ").marked("<", ">") == "(<one>)"
