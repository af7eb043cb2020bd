"""Folders of HTML files."""

import gzip
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import lxml.html
import pytest
from builds import read_table
from reading import read, read_bytes

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.corpus.pages import Dropped, Page, Redirect
from harp_plugin.corpus.readers import choose_reader, sources
from harp_plugin.corpus.readers.html import HtmlReader, looks_like_html, page_items
from harp_plugin.corpus.urls import FileAddress, WebAddress
from harp_plugin.graph import GraphOptions, build_graph

TEXT = "<p>A paragraph with <a href='{}'>a link</a> in it."


@pytest.mark.parametrize(
    "head",
    [
        b"<!DOCTYPE html>",
        b"\xef\xbb\xbf \n<!-- c --><HTML lang=en>",
        b"<?xml version='1.0'?>\n<!DOCTYPE html PUBLIC 'x'><html>",
        "\ufeff<html>".encode("utf-16-le"),
        b"<title>x</title>",
        b"<p>x",
        b"<h1 id=x>",
        b"<h2>x",
        b"<section class=x>",
        b"<ul><li>x",
    ],
)
def test_recognized(head):
    assert looks_like_html(head)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"plain text with <p>",
        b"<mediawiki xmlns='x'>",
        b"<?xml version='1.0'?><mediawiki>",
        b"<?xml version='1.0'?><rss><p>",
        b'<doc id="1" url="u" title="t">',
        b'{"title": "<html>"}',
        b"<!-- <html> ",
        b"<pre",
    ],
)
def test_not_recognized(head):
    assert not looks_like_html(head)


def test_links_between_files(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "index.html").write_text(TEXT.format("docs/a.html#x"))
    (tmp_path / "docs" / "a.htm").write_text(TEXT.format("../"))
    (tmp_path / "docs" / "b.html.gz").write_bytes(gzip.compress(TEXT.format("a.htm").encode()))
    (tmp_path / "notes.txt").write_text("no HTML")
    found = [source for source in sources(tmp_path) if HtmlReader().recognizes(source)]
    assert [choose_reader(source) for source in found] == ["html"] * 3
    (tmp_path / "notes.txt").unlink()
    pages = [item for item in read(tmp_path) if isinstance(item, Page)]
    assert {page.key: page.sections[0].body.links[0].target for page in pages} == {
        "index.html": "docs/a.html",
        "docs/a.htm": "index.html",
        "docs/b.html": "docs/a.htm",
    }


@pytest.mark.parametrize(
    ("file", "reference"),
    [
        ("guide/index.html", "/guide"),
        ("guide/index.html", "../guide"),
        ("guide/index.html", "/guide/"),
        ("guide/index.html", "/guide.html"),
        ("v1.2/index.html", "/v1.2#x"),
        ("other.html", "/other?x=1"),
        ("old.htm", "/old"),
        ("plain", "/plain"),
        ("api/torch.nn.html", "/api/torch.nn"),
    ],
)
def test_addresses_without_a_suffix(tmp_path, file, reference):
    for name, to in {file: "/", "docs/a.html": reference}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(TEXT.format(to))
    items = list(read(tmp_path))
    page = next(item for item in items if isinstance(item, Page) and item.key == "docs/a.html")
    target = page.sections[0].body.links[0].target
    redirects = {item.source: item.target for item in items if isinstance(item, Redirect)}
    assert redirects.get(target, target) == file


def test_canonical_address_leads_to_the_file():
    html = "<link rel=canonical href='https://Example.org/x'>" + TEXT.format(
        "https://example.org/x"
    )
    redirect, page = read_bytes(html.encode(), "x.html")
    assert redirect == Redirect("https://example.org/x", "x.html")
    assert page.key == "x.html" and page.domain is None
    (page,) = read_bytes(html.replace("https://Example.org/x", "x.html", 1).encode(), "x.html")
    assert page.key == "x.html"


@pytest.mark.parametrize(
    ("key", "is_believed"),
    [
        ("a.html", False),
        ("about/index.html", False),
        ("index.html", True),
        ("mirror/x.org/index.html", True),
        ("http://x.org/about/", False),
        ("http://x.org/?id=1", True),
        ("http://www.x.org/Index.php?id=1/2", True),
    ],
)
def test_a_canonical_address_on_all_pages_is_that_of_the_home_page(key, is_believed):
    html = "<link rel=canonical href='https://x.org/'>" + TEXT.format("y.html")
    address = WebAddress if "://" in key else FileAddress
    item, page = page_items(html, partial(address, key))
    dropped = Dropped("canonical address that is the home page of the site")
    assert item == (Redirect("https://x.org/", key) if is_believed else dropped)
    assert page.key == key


def test_refresh_is_a_redirect():
    html = b"<meta http-equiv=refresh content='0; url=sub/y.html#z'><p>Moved."
    assert read_bytes(html, "x.html") == [Redirect("x.html", "sub/y.html")]
    (page,) = read_bytes(html.replace(b"sub/y.html", b"x.html"), "x.html")
    assert page.lead == "Moved."


def test_names_of_boilerplate_do_not_swallow_a_page():
    html = "<div class=menu>" + "<p>All of the page stands in here. " * 20 + "</div>"
    (page,) = read_bytes(html.encode(), "x.html")
    assert page.word_count == 140


def test_drops():
    assert read_bytes(b"<html>", "x.html") == [Dropped("page without text")]
    assert read_bytes(b"<p>" + b"x" * (9 << 20), "x.html") == [Dropped("page over 8 MiB")]


POSTGRESQL = "/usr/share/doc/postgresql-doc-15/html", "postgresql-doc-15", 1169
NUMBERED = re.compile(r"(Section|Chapter|Appendix|Table|Example|Part|Step)\s+[A-Z0-9][A-Z\d.]*")
PYTHON = "/usr/share/doc/python3.11/html", "python3.11-doc", 531


def manual(folder: str, package: str, step: int = 1) -> Iterator[tuple[Page, bytes]]:
    """Pages of an installed manual, and their files; or those of every second file, and so on."""
    if not Path(folder).is_dir():
        pytest.skip(f"the Debian package {package} is not installed")
    reader = HtmlReader()
    pages = filter(reader.recognizes, sources(folder))
    for source in islice(pages, 0, None, step):
        for name, data in reader.records(source):
            items = reader.parse((name, data))
            yield from ((i, data) for i in items if isinstance(i, Page))


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "package", "pages"), [POSTGRESQL, PYTHON])
def test_every_link_of_a_manual_is_kept_or_counted(folder, package, pages):
    """As many as lxml, another parser, finds, on every third page."""
    found = 0
    for page, data in manual(folder, package, step=3):
        assert isinstance(page, Page)
        tree = lxml.html.document_fromstring(data, parser=lxml.html.HTMLParser(encoding="utf-8"))
        links = [link for section in page.sections for link in section.body.links]
        missing = len(tree.findall(".//a[@href]")) - len(links) - sum(page.drops.values())
        # Below "See Also", the same page is often linked twice.
        assert missing >= len(page.see_also) if page.see_also else missing == 0, page.key
        found += 1
    assert found == len(range(0, pages, 3))


@pytest.mark.slow
def test_links_in_the_prose_of_a_manual_are_those_that_xpath_finds():
    """Links to other pages in paragraphs and lists, outside of navigation, tables and code.

    Those by the number of a section are left out.
    """
    expected: Counter[str] = Counter()
    found: Counter[str] = Counter()
    outside = {"navheader", "navfooter", "toc", "index", "glosslist", "table", "pre"}
    for page, data in manual(*POSTGRESQL[:2]):
        tree = lxml.html.document_fromstring(data, parser=lxml.html.HTMLParser(encoding="utf-8"))
        for link in tree.iterfind(".//a[@href]"):
            around = [
                name
                for element in link.iterancestors()
                for name in (element.tag, *(element.get("class") or "").split())
            ]
            target = link.get("href").partition("#")[0]
            other = target.endswith(".html") and ":" not in target and target != page.key
            other = other and NUMBERED.fullmatch(link.text_content()) is None
            if other and "p" in around and outside.isdisjoint(around):
                expected[page.key] += 1
        for section in page.content:
            for link in section.body.links:
                found[page.key] += ":" not in link.target
    assert sum(expected.values()) > 2000
    assert sum((expected - found).values()) < 0.04 * sum(expected.values())


@pytest.mark.slow
def test_link_graph_of_a_manual(tmp_path):
    """Of about 2,100 links in prose, lists and the glossary, those between documents are left.

    The manual has five times as many that are of no use: tables of contents, the index, tables of
    data, and 1,500 that are the number of a section. The leads of 270 documents are a tag line.
    """
    if not Path(POSTGRESQL[0]).is_dir():
        pytest.skip(f"the Debian package {POSTGRESQL[1]} is not installed")
    corpus = build_corpus(tmp_path, CorpusOptions(), sources=[POSTGRESQL[0]], quiet=True)
    graph = build_graph(tmp_path, GraphOptions())
    assert (corpus["rows"]["pages"], corpus["drops"]["file of unknown format"]) == (1169, 4)
    link_drops = {reason: n for reason, n in graph["drops"].items() if reason.startswith("link ")}
    assert graph["rows"]["anchors"] + sum(link_drops.values()) == corpus["rows"]["links"]
    assert graph["rows"]["documents"] == pytest.approx(885, rel=0.02)
    assert graph["rows"]["anchors"] == pytest.approx(1952, rel=0.03)
    assert corpus["drops"]["anchor text without a word"] == pytest.approx(1469, rel=0.02)
    anchors = read_table(tmp_path / "graph" / "anchors", ["normalized", "page"]).to_pylist()
    assert Counter(row["normalized"] for row in anchors)["create table"] >= 20
    assert not [
        row for row in anchors if re.fullmatch(r"(section|chapter) [\d.]+|\W*", row["normalized"])
    ]
    leads = {
        row["id"]: row["lead"] for row in read_table(tmp_path / "corpus" / "pages").to_pylist()
    }
    short = [row for row in anchors if len(leads[row["page"]].split()) < 20]
    assert len(short) < 0.01 * len(anchors)
    sentences = read_table(tmp_path / "graph" / "sentence_anchors").to_pylist()
    assert sum(row["targets"] > 1 for row in sentences) == pytest.approx(134, rel=0.1)
