"""Which lines are set aside, and that pages come out the same as when all is parsed."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import read

from harp_plugin.corpus.pages import Page
from harp_plugin.corpus.wikitext import Site, page, parse_page
from harp_plugin.corpus.wikitext.lines import put_back, set_aside


@pytest.mark.parametrize(
    "line",
    [
        "words",
        "a [[b]]s and [[C d|e f]].",
        "* [[a]]: b",
        ":: ''a''",
        "a: b",
        "[[Talk:A|b]]",
        " a/b",
    ],
)
def test_plain(line):
    assert set_aside(line) == ("\x020\x03", [line])


@pytest.mark.parametrize(
    "line",
    [
        "= a =",
        "; a: b",
        "----",
        "a [b] c",
        "a [[b",
        "a ]]",
        "[[a|[[b]]]]",
        "[[a|b|c]]",
        "{{a}}",
        "a <b>",
        "a &amp; b",
        "http://a.b",
        "mailto:a",
        "[[http://a]]",
        "a | b",
        "",
        "//a.b",
    ],
)
def test_not_plain(line):
    assert set_aside(line) == (line, [])


def test_runs_of_lines_are_one():
    text = "a\n\nb [[c]]\n== d ==\ne\n<i>\nf"
    assert set_aside(text) == (
        "\x020\x03\n== d ==\n\x021\x03\n<i>\n\x022\x03",
        ["a\n\nb [[c]]", "e", "f"],
    )


MARKUP = ["[[", "]]", "|", "\n", "a", "b c", "*", ":", ";", "=", "\n== x ==\n", "<div>", "</div>"]
MARKUP += [
    "{{lang|fr|",
    "}}",
    "''",
    "&amp;",
    "http://x.y ",
    "<nowiki>",
    "</nowiki>",
    "#",
    "--",
    "/",
]
MARKUP += ["[[a]]", "[[b c|d]]s", "[[File:e|f\n", "[[:Category:g]]", "<br>", "\x02", "0\x03", "."]


@given(st.lists(st.sampled_from(MARKUP), max_size=12))
def test_put_back(parts):
    text = "".join(parts)
    marked, lines = set_aside(text)
    assert put_back(marked, lines) == re.sub("[\x02\x03]", "", text)


def parsed_whole(monkeypatch):
    monkeypatch.setattr(page, "set_aside", lambda text: (text, []))


@given(st.lists(st.sampled_from(MARKUP), max_size=12))
def test_a_page_comes_out_the_same(parts):
    text = "".join(parts)
    found = parse_page("A", text, Site())
    with pytest.MonkeyPatch.context() as patch:
        parsed_whole(patch)
        assert parse_page("A", text.replace("\x02", "").replace("\x03", ""), Site()) == found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["enwiki-p10p30302-shortened", "ltgwiki-pages-articles"])
def test_real_pages_come_out_the_same(shared_data, monkeypatch, name):
    path = shared_data / "wiki" / f"{name}.xml.bz2"
    found = [item for item in read(path) if isinstance(item, Page)]
    parsed_whole(monkeypatch)
    whole = [item for item in read(path) if isinstance(item, Page)]
    assert found == whole
    assert Counter(len(page.sections) > 1 for page in found)[True] > 50
