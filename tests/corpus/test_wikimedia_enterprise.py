"""HTML dumps of Wikimedia Enterprise, in Parsoid's shape."""

import io
import json
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import read_bytes

from harp_plugin.corpus.pages import Dropped, Redirect
from harp_plugin.errors import HarpError

ARTICLE = """<!DOCTYPE html>
<html prefix="mw: http://mediawiki.org/rdf/"><head><base href="//en.wikipedia.org/wiki/"/>
<title>Pear tree</title></head><body lang="en" class="mw-parser-output">
<section data-mw-section-id="0" id="mwAQ"><style typeof="mw:Extension/templatestyles">x</style>
<div role="note" class="hatnote">For others, see <a rel="mw:WikiLink" href="./Other">x</a>.</div>
<table class="infobox"><tr><th>Kingdom</th><td><a rel="mw:WikiLink" href="./Plant">P</a></table>
<figure typeof="mw:File/Thumb"><a href="./File:P.jpg"><img/></a><figcaption>A <a rel="mw:WikiLink"
 href="./Pear">pear</a></figcaption></figure>
<p id="mwAg">A <b>pear tree</b> (<span typeof="mw:Transclusion" about="#mwt1"><span
 class="coordinates">1 N</span></span> ; ) bears <a rel="mw:WikiLink" href="./Pear" title="Pear">
pears</a>, a <a rel="mw:WikiLink" href="./Fruit_(food)" class="mw-redirect">kind of <i>fruit</i></a
>.<sup class="mw-ref reference" typeof="mw:Extension/ref"><a href="./Pear_tree#cite_note-1"><span
 class="mw-reflink-text">[1]</span></a></sup> It grows in
<a rel="mw:WikiLink" href="./Côte_d'Ivoire?action=edit&amp;redlink=1" class="new">Côte</a>.</p>
<link rel="mw:PageProp/Category" href="./Category:Trees"/></section>
<section data-mw-section-id="1"><h2 id="Use">Use</h2>
<p>See <a rel="mw:WikiLink" href="./Pear_tree#Names">below</a>,
<a rel="mw:WikiLink/Interwiki" href="https://de.wikipedia.org/wiki/Birne">Birne</a>,
<a rel="mw:ExtLink" class="external text" href="https://a.b/">a site</a>, and
<a rel="mw:WikiLink" href="./Help:Trees">help</a>.</p>
<section data-mw-section-id="2"><h3 id="Names">Names</h3><ul><li><a rel="mw:WikiLink"
 href="./Quince%3F">Quince?</a></li></ul></section></section>
<section data-mw-section-id="3"><h2 id="See_also">See also</h2>
<ul><li><a rel="mw:WikiLink" href="./Apple_tree">Apple tree</a></li></ul></section>
<section data-mw-section-id="4"><h2 id="References">References</h2><div class="reflist">
<div class="mw-references-wrap"><ol class="mw-references"><li><span class="mw-reference-text">Book
</span></li></ol></div></div><div role="navigation" class="navbox">N</div></section></body></html>
"""


def article(name="Pear tree", html=ARTICLE, **fields) -> dict:
    return {
        "name": name,
        "identifier": 7,
        "url": "https://en.wikipedia.org/wiki/Pear_tree",
        "namespace": {"identifier": 0},
        "in_language": {"identifier": "en"},
        "is_part_of": {"identifier": "enwiki"},
        "article_body": {"html": html, "wikitext": "x"},
        "redirects": [{"name": "pear trees", "url": "https://en.wikipedia.org/wiki/Pear_trees"}],
        **fields,
    }


def lines(*articles: dict) -> bytes:
    return b"".join(json.dumps(fields).encode() + b"\n" for fields in articles)


def archive(**members: bytes) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return data.getvalue()


def test_article():
    redirect, page = read_bytes(lines(article()), "x.ndjson")
    assert redirect == Redirect("Pear trees", "Pear tree")
    assert (page.key, page.title, page.language) == ("Pear tree", "Pear tree", "en")
    assert [(s.level, s.title, s.body.text) for s in page.sections] == [
        (1, "", "A pear tree bears pears, a kind of fruit. It grows in Côte."),
        (2, "Use", "See below, Birne, a site, and help."),
        (3, "Names", "Quince?"),
        (2, "References", ""),
    ]
    links = [link for section in page.sections for link in section.body.links]
    assert [(link.anchor, link.target) for link in links] == [
        ("pears", "Pear"),
        ("kind of fruit", "Fruit (food)"),
        ("Côte", "Côte d'Ivoire"),
        ("Quince?", "Quince?"),
    ]
    text = page.lead
    assert all(text[link.start : link.end] == link.anchor for link in page.sections[0].body.links)
    assert page.see_also == ["Apple tree"]
    assert page.drops == {
        "link in a box of a template": 1,
        "link in a table": 1,
        "link in a figure": 2,
        "link in a reference": 1,
        "link inside the page": 1,
        "link to another wiki": 1,
        "link to another site": 1,
        "link to another namespace": 1,
    }


def test_archive():
    data = archive(
        **{
            "enwiki_0.ndjson": lines(article("a"), article("B")),
            "enwiki_1.ndjson": lines(article("C", redirects=None)),
            "README": b"x",
        }
    )
    found = read_bytes(data, "enwiki-NS0-ENTERPRISE-HTML.json.tar.gz")
    assert [getattr(item, "key", item) for item in found] == [
        *(Redirect("Pear trees", "A"), "A", Redirect("Pear trees", "B"), "B", "C"),
        Dropped("file in the archive that holds no JSON lines"),
    ]


def test_titles_of_wiktionaries_keep_their_case():
    fields = article("pear", is_part_of={"identifier": "enwiktionary"}, redirects=[])
    (page,) = read_bytes(lines(fields), "x.json")
    assert page.key == "pear"


def test_drops():
    talk = article(namespace={"identifier": 1})
    empty = article(article_body={})
    assert read_bytes(lines(talk, empty), "x.json") == [
        Dropped("page of another namespace"),
        Dropped("page without text"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        *(b'{"identifier":1,"article_body":', b'{"identifier":1,"article_body":{}}\n[]'),
        *(lines(article(name=None)), lines(article(redirects=[1])), lines(article(namespace=[1]))),
        *(lines(article(redirects=1)), lines(article(html=[1]))),
    ],
)
def test_damaged_lines(line):
    with pytest.raises(HarpError, match=r"^x\.json, line \d+: no article of Wikimedia Enterprise"):
        read_bytes(line, "x.json")


@given(st.binary(max_size=40), st.integers(0, 2000), st.integers(0, 40))
def test_damaged_archives(junk, start, size):
    data = archive(**{"a.ndjson": lines(article(), article("B")), "b.ndjson": lines(article("C"))})
    data = data[:start] + junk + data[start + size :]
    try:
        found = read_bytes(data, "x.tar.gz", "wikimedia-enterprise")
    except HarpError as error:
        assert str(error).startswith("x.tar.gz") and "\n" not in str(error)
    else:
        assert len(found) <= 6
