"""The dump reader, and the naive reading of the real dumps that it must agree with."""

import bz2
import html
import re
from collections import Counter
from xml.etree import ElementTree

import pytest
from dumps import dump_xml, page_xml
from reading import read, read_bytes
from wikitexts import INTERLANGUAGE

from harp_plugin.corpus.pages import Dropped, Page, Redirect
from harp_plugin.corpus.sentences import linked_sentences

DUMPS = {
    "simplewiki-core150.xml.bz2": (150, 7),
    "simplewiki-20100814-999.xml.bz2": (999, 62),
    "ltgwiki-pages-articles.xml.bz2": (903, 147),
    "enwiki-p10p30302-shortened.xml.bz2": (106, 99),
}


def items(xml: str):
    return read_bytes(xml.encode(), "x.xml")


def test_pages_redirects_and_drops():
    xml = dump_xml({"Apple": "A [[pear]]."}, {"apples": "apple_#x"})
    more = page_xml("Talk:Apple", "x", namespace=1) + page_xml("Empty", "")
    page, redirect, talk, empty = items(xml.replace("</mediawiki>", more + "</mediawiki>"))
    assert isinstance(page, Page) and page.key == "Apple" and page.lead == "A pear."
    assert redirect == Redirect("Apples", "Apple")
    assert talk == Dropped("page of another namespace")
    assert empty == Dropped("page without text")


def test_redirect_that_only_the_text_names():
    """Dumps of before 2011 have ``<redirect />`` or nothing."""
    xml = dump_xml({"A": "#redirect [[b_c|d]] {{R}}", "B": "# redirect [[c]]", "C": "#[[d]]"})
    first, second, third = items(xml.replace("<model>", "<model>", 1))
    assert first == Redirect("A", "B c")
    assert isinstance(second, Page) and isinstance(third, Page)


def test_last_revision_and_other_models():
    first = dump_xml({"A": "new"})
    older = re.search("<revision>.*</revision>", first)[0].replace(">new<", ">old<")
    (page,) = items(first.replace("<revision>", older + "<revision>"))
    assert page.lead == "new"
    (dropped,) = items(first.replace(">wikitext<", ">json<"))
    assert dropped == Dropped("page that is not wikitext")


@pytest.mark.parametrize(
    ("language", "database", "expected"),
    [
        ("en", "simplewiki", "en"),
        ("yue", "zh_yuewiki", "yue"),
        ("de", "my_wiki", "de"),  # the name that MediaWiki proposes when it is installed
        ("en", "commonswiki", "en"),
        (None, "simplewiki", "en"),
        (None, "nds_nlwiki", "nds-nl"),
    ],
)
def test_the_language_is_that_of_the_dump(language, database, expected):
    xml = dump_xml({"A": "b"}).replace("enwiki", database)
    written = f' xml:lang="{language}"' if language else ""
    (page,) = items(xml.replace(' xml:lang="en"', written))
    assert page.language == expected


def test_namespaces_come_from_the_dump():
    xml = dump_xml({"A": "[[Datei:x.jpg|y]] [[Spezial:z|shown]] [[Other:w|link]]"})
    xml = xml.replace(">File<", ">Datei<").replace(">Talk<", ">Spezial<")
    (page,) = items(xml)
    assert page.lead == "shown link"
    assert [link.target for link in page.sections[0].body.links] == ["Other:w"]


def test_case_sensitive_wiki():
    (page,) = items(dump_xml({"apple": "[[pear]]"}).replace("first-letter", "case-sensitive"))
    assert page.key == "apple" and page.sections[0].body.links[0].target == "pear"


def wikitexts(path):
    """Titles and texts of a dump's articles that are no redirects, by ElementTree alone."""
    with bz2.open(path) as file:
        root = ElementTree.parse(file).getroot()
    for page in root.iter():
        if page.tag.endswith("}page"):
            found = {element.tag.rpartition("}")[2]: element for element in page.iter()}
            if found["ns"].text == "0" and "redirect" not in found:
                yield found["title"].text, found["text"].text or ""


_SIMPLE = re.compile(r"\[\[([^\[\]|{}]+)(?:\|([^\[\]|{}]+))?\]\]([a-z]*)")
_SEE_ALSO = re.compile(
    r"^(==+) *(?:related pages|see also|other pages) *==+ *$.*?(?=^==|\Z)", re.I | re.M | re.S
)
_HEADING = re.compile(r"^==.*==\s*$", re.M)


def naive_links(text):
    """Target and shown text of each plain ``[[target|text]]trail`` outside of headings."""
    text = INTERLANGUAGE.sub("", _SEE_ALSO.sub("", text))
    for match in _SIMPLE.finditer(_HEADING.sub("", text)):
        target = html.unescape(match[1]).partition("#")[0].replace("_", " ").strip()
        shown = html.unescape(match[2] or match[1]).replace("\u200e", "") + match[3]
        shown = " ".join(re.sub("'{2,3}|</?[a-z]+>", "", shown).split())
        if target and ":" not in target:
            yield target[0].upper() + target[1:], shown


@pytest.mark.parametrize(
    ("name", "links", "apart"),
    [
        ("simplewiki-core150.xml.bz2", 7_000, 0),
        # Apart: one link with stray quotes, one within single brackets, two with brackets in
        # their text (which the regular expression does not see).
        pytest.param("simplewiki-20100814-999.xml.bz2", 35_000, 4, marks=pytest.mark.slow),
    ],
)
def test_links_agree_with_a_naive_reading(shared_data, name, links, apart):
    """Both files hold no templates, tables or references, so that a regular expression will do."""
    path = shared_data / "wiki" / name
    expected = {title: Counter(naive_links(text)) for title, text in wikitexts(path)}
    different = total = 0
    for page in read(path):
        if isinstance(page, Page):
            found = Counter(
                (link.target, " ".join(link.anchor.split()))
                for section in page.sections
                for link in section.body.links
                if ":" not in link.target
            )
            naive = expected.pop(page.title)
            different += (found - naive).total() + (naive - found).total()
            total += naive.total()
    assert not expected
    assert total > links
    assert different <= apart


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if "core150" in name else pytest.mark.slow) for name in DUMPS],
)
def test_real_dump(shared_data, name):
    """Counts of ``data/README.md``; every link at its place; no markup left."""
    path = shared_data / "wiki" / name
    pages, redirects = DUMPS[name]
    kinds: Counter[type] = Counter()
    links = sentences = lost = 0
    for item in read(path):
        kinds[type(item)] += 1
        if not isinstance(item, Page):
            continue
        drops: Counter[str] = Counter()
        kept = 0
        for section in item.sections:
            for sentence in linked_sentences(
                section.body, item.language, drops, debris=item.debris
            ):
                sentences += 1
                for link in sentence.links:
                    kept += 1
                    assert sentence.text[link.start : link.end] == link.anchor
                assert not re.search(r"\[\[|\{\{|<ref|\|thumb|\n", sentence.text)
            links += len(section.body.links)
        total = sum(len(section.body.links) for section in item.sections)
        assert kept == total or drops["sentence with left-over markup"], (item.title, kept, total)
        lost += total - kept
    assert abs(kinds[Page] - pages) <= 0.05 * pages
    assert abs(kinds[Redirect] - redirects) <= 0.05 * redirects
    assert lost <= 0.001 * links
    assert sentences > 1000
