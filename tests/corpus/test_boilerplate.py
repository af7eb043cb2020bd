"""Sections of references and hatnotes are marked, by hand and in the articles of real dumps."""

import re

import pyarrow.parquet as pq
import pytest
from dumps import write_dump
from reading import read_bytes

from harp_plugin.corpus.boilerplate import (
    boilerplate_sections,
    set_hatnotes_apart,
)
from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.markup import Link, LinkedText
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.corpus.pages import Page, Section
from harp_plugin.corpus.wikitext import Site, parse_page


def marked(*headings, is_web=False):
    """The headings, given as (level, title), whose sections are boilerplate."""
    sections = [Section(level, title, LinkedText("", [])) for level, title in headings]
    marks = boilerplate_sections(sections, is_web=is_web)
    return [title for (_, title), mark in zip(headings, marks, strict=True) if mark]


def test_what_stands_below_a_heading_of_boilerplate_is_boilerplate():
    headings = [
        (1, ""),
        (2, "History"),
        (3, "References"),
        (4, "Books"),
        (3, "War"),
        (2, "Other websites:"),
        (3, "Maps"),
        (2, "Culture"),
        (2, "REFERENCES"),
    ]
    expected = ["References", "Books", "Other websites:", "Maps", "REFERENCES"]
    assert marked(*headings) == expected


IN_MANY_LANGUAGES = """Einzelnachweise|Références|Enlaces externos|Bibliografia|Ligações externas
Bronnen|Przypisy|Källor|Примечания|Посилання|外部リンク|参考文献|وصلات خارجية|Liên kết ngoài|Lähteet
Jegyzetek|Kaynakça|Mga gumbanan sa gawas|Externí odkazy|Notes|Further reading|각주|Kilder"""


@pytest.mark.parametrize("heading", re.split(r"[|\n]", IN_MANY_LANGUAGES))
def test_headings_in_many_languages(heading):
    assert marked((1, ""), (2, heading)) == [heading]


def test_headings_of_text():
    """ "Notes" and "Sources" are headings of text on web pages other than those of a wiki."""
    assert marked((2, "History"), (2, "Reference frames"), (2, "Literature")) == []
    assert marked((2, "Notes"), (2, "Sources"), (2, "References"), is_web=True) == ["References"]


HATNOTES = {
    "in italics": ":''The article about the river is at [[Orange River]].''\n{}",
    "with bold words": ":''For the film, see '''[[Orange (film)]]'''.''\n{}",
    "not indented": "''For the car, see [[Ford Orange]].''\n{}",
    "behind a file": "[[File:A.jpg|thumb|An orange]]\n:''Also a town: [[Orange, Vaucluse]].''\n{}",
    "two lines": ":''Also a [[Town|town]].''\n:''Also a [[River|river]].''\n\n{}",
    "no italics": "For other uses, see [[Orange (disambiguation)]].\n{}",
    "redirect": '"Oranges" redirects here. For the color, see [[Orange (color)]].\n{}',
    "German": "Dieser Artikel behandelt die Frucht. Zur Farbe siehe [[Orange (Farbe)]].\n{}",
    "French": "Pour les articles homonymes, voir [[Orange (homonymie)]].\n{}",
    "Spanish": "Para otros usos, véase [[Naranja (desambiguación)]].\n{}",
    "Russian": "У этого термина существуют и другие значения, см. [[Апельсин (значения)]].\n{}",
    "Polish": "Zobacz też: [[Pomarańcza (barwa)]]\n{}",
}
TEXT = "An '''orange''' is a [[fruit]]."


@pytest.mark.parametrize("wikitext", HATNOTES.values(), ids=HATNOTES)
def test_a_lead_does_not_begin_with_a_hatnote(wikitext):
    page = parse_page("Orange", wikitext.format(TEXT), Site())
    set_hatnotes_apart(page)
    assert page.lead == "An orange is a fruit."
    assert [link.target for link in page.sections[0].body.links] == ["Fruit"]
    (hatnotes,) = (section for section in page.sections if section.region == "hatnote")
    assert hatnotes.body.links
    for link in hatnotes.body.links:
        assert hatnotes.body.text[link.start : link.end] == link.anchor
    assert page.drops["hatnote"] >= 1


@pytest.mark.parametrize(
    "text",
    [
        "''Hamlet'' is a play by [[Shakespeare]], as is ''Macbeth''",
        "'''Marriage''' is a [[union]]. It is called '''wedlock'''",
        "''Sung in [[Latin]]'' by all",
        ":''To do good.''\nThis is [[Buddhism]].",
        "For the most part, [[sailors]] see land.",
        "See also: [[Fishing]]. The word is also used for the activity.",
        "Main article: the [[constitution]] says in its first article that all are equal.",
        "An ''[[orange]]''",
        "== See also ==\n:''The tree: [[Orange tree]]''",
        "== Plays ==\n* ''[[Hamlet]] of 1600''\n* ''[[Macbeth]] of 1606''",
        "== Plays ==\n:''[[Hamlet]]''\n:''[[Macbeth]]''",
    ],
)
def test_text_is_no_hatnote(text):
    page = parse_page("Page", text, Site())
    set_hatnotes_apart(page)
    assert not page.drops["hatnote"] and all(s.region is None for s in page.sections)


def test_links_of_hatnotes_below_headings():
    wikitext = "Lead.\n== History ==\n:''Main article: [[History of X]]''\nOld [[text]].\n=== A ==="
    page = parse_page("X", wikitext, Site())
    assert [(s.title, s.body.text, s.region) for s in page.sections] == [
        ("", "Lead.", None),
        ("History", "Old text.", None),
        ("A", "", None),
        ("", "Main article: History of X", "hatnote"),
    ]


def test_a_hatnote_without_a_link_is_short():
    def hatnotes(text):
        page = Page("a", "A", [Section(1, "", LinkedText(text, []))])
        set_hatnotes_apart(page)
        return page.lead

    assert hatnotes("For other uses, see A (letter).\nA text.") == "A text."
    long = f"For the first time in {'many, ' * 30} years, they see.\nText"
    assert hatnotes(long) == long
    link = Link(24, 25, "A", "A")
    page = Page("a", "A", [Section(1, "", LinkedText("For other uses of A see A\nText", [link]))])
    set_hatnotes_apart(page)
    assert page.lead == "Text" and page.sections[1].body.links == [link]


HTML = """<html><body><main><h1>Orange</h1>
<div role="note" class="hatnote navigation-not-searchable">For others, see <a href="o.html">Orange
(river)</a>.</div>{}
<p>An orange is a fruit of the <a href="t.html">orange tree</a>, and it is eaten by very many
people in all the countries of the world, in the north and in the south.</p>
<h2>Notes</h2><p>Oranges are also <a href="d.html">drunk</a>.</p>
<h2>References</h2><p>A <a href="b.html">book</a>.</p></main></body></html>"""


@pytest.mark.parametrize(
    "note",
    [
        "",
        '<div class="dablink">See <a href="x.html">X</a>.</div>',
        '<p role="note">See <a href="x.html">X</a>.</p>',
    ],
)
def test_hatnotes_of_html(note):
    (page,) = read_bytes(HTML.format(note).encode(), "a.html")
    assert page.lead.startswith("An orange is")
    (hatnotes,) = (section for section in page.sections if section.region == "hatnote")
    assert [link.target for link in hatnotes.body.links] == ["o.html", "x.html"][: 1 + bool(note)]
    assert boilerplate_sections(page.content, is_web=page.is_web) == [False, False, True]


def test_a_note_in_a_box_is_text():
    box = '<div role="note" class="note"><p>Peel it <a href="p.html">first</a>.</p></div>'
    (page,) = read_bytes(HTML.format(box).encode(), "a.html")
    assert "Peel it first." in page.lead


WIKITEXT = """:''For the river, see [[River]].''
An orange is a [[fruit]] that grows. It is eaten.
== Use ==
It is [[juice]] too.
== References ==
* A [[book]] of many words.
=== Older ones ===
* Another [[book]] of words.
== History ==
It is [[old]]."""


def test_the_tables_say_what_is_boilerplate(tmp_path):
    build_corpus(
        tmp_path, CorpusOptions(), sources=[write_dump(tmp_path / "d.xml", {"A": WIKITEXT})]
    )
    (page,) = pq.read_table(tmp_path / "corpus" / "pages").to_pylist()
    marks = [(section["title"], section["boilerplate"]) for section in page["sections"]]
    headings = ["", "Use", "References", "Older ones", "History"]
    assert marks == list(zip(headings, [False, False, True, True, False], strict=True))
    assert page["lead"] == "An orange is a fruit that grows. It is eaten."
    assert page["words"] == 10 + 4 + 3
    sections = pq.read_table(tmp_path / "corpus" / "sections").to_pylist()
    columns = ("place", "parent", "words", "others", "boilerplate")
    assert [tuple(row[name] for name in columns) for row in sections] == [
        (0, None, 10, 2, False),
        (1, 0, 4, 1, False),
        (2, 0, 0, 2, True),
        (3, 2, 0, 2, True),
        (4, 0, 3, 1, False),
    ]
    links = pq.read_table(tmp_path / "corpus" / "links").to_pylist()
    assert {(link["target"], link["region"]) for link in links} == {
        ("River", "hatnote"),
        ("Fruit", None),
        ("Juice", None),
        ("Book", "references"),
        ("Old", None),
    }


@pytest.mark.parametrize("file", ["simplewiki-core150.xml.bz2", "ltgwiki-pages-articles.xml.bz2"])
def test_no_real_lead_begins_with_a_hatnote(shared_data, tmp_path, file):
    """The words that hatnotes of these wikis begin with."""
    build_corpus(tmp_path, CorpusOptions(), sources=[shared_data / "wiki" / file], quiet=True)
    leads = pq.read_table(tmp_path / "corpus" / "pages")["lead"].to_pylist()
    begins = re.compile(r"For (?:other|the) [^.]*\bsee\b|See also|This article is about|Golvon")
    assert [lead[:80] for lead in leads if begins.match(lead)] == []
