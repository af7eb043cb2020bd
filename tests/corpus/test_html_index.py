"""Indexes of manuals in HTML: their terms, and that their links are navigation."""

from collections import Counter
from pathlib import Path

import pytest
from reading import read_bytes

from harp_plugin.corpus.html.index_terms import NO_TARGET
from harp_plugin.corpus.pages import IndexTerm, Page
from harp_plugin.corpus.readers import HtmlReader, sources

DOCBOOK = """<html><body><div class="index"><h1>Index</h1><p><a href="#A">A</a> <a href="#B">B</a>
<div class="indexdiv"><h3>A</h3><dl>
<dt>abbreviation (see <a href="#short">short form</a>)</dt>
<dt>aggregate <code>function</code>, <a class="indexterm" href="agg.html#x">Aggregate Functions</a>,
  <a class="indexterm" href="sql.html">SQL, in short</a></dt>
<dd><dl><dt>built-in, <a class="indexterm" href="agg.html">Aggregates</a></dt>
  <dd><dl><dt>fast, <a class="indexterm" href="fast.html">Fast</a></dt></dl></dd>
  <dt>moving, <a class="indexterm" href="xaggr.html#M">Moving</a></dt></dl></dd>
<dt>alias</dt><dd><dl><dt>in FROM, <a class="indexterm" href="query.html">Query</a></dt></dl></dd>
<dt>here, <a class="indexterm" href="#here">Here</a></dt>
</dl></div></div></body></html>"""
SPHINX = """<!DOCTYPE html><html><body><div role="main"><h1 id="index">Index</h1>
<div class="genindex-jumpbox"><a href="#A"><strong>A</strong></a></div><h2 id="A">A</h2>
<table class="indextable genindextable"><tr><td><ul>
<li><a href="library/sndhdr.html#index-0">A-LAW</a>, <a href="library/aifc.html#i">[1]</a></li>
<li>abc <ul><li><a href="library/abc.html#module-abc">module</a></li></ul></li>
<li><a href="c-api/sys.html#index-1">abort()</a>
  <ul><li><a href="asyncio.html#b">(asyncio.Barrier method)</a></li></ul></li>
<li><a href="io.html">write() (io method)</a>
  <ul><li><a href="codecs.html">(codecs method)</a></li></ul></li>
</ul></td><td><ul><li>see <ul><li>alias</li></ul></li></ul></td></tr></table></div></body></html>"""
OLD_SPHINX = """<html><body><table class="indextable"><tr><td><dl>
<dt><a href="a.html#x">abs() (built-in function)</a></dt>
<dt>module</dt><dd><dl><dt><a href="os.html">os</a></dt></dl></dd></dl></td></tr></table>"""
MODULES = """<html><body><table class="indextable modindextable"><tr class="cg-0"><td><td>
<a href="library/abc.html#module-abc"><code>abc</code></a></td><td><em>Base classes.</em></table>"""
TEXINFO = """<html><body><table class="index-cp" border="0"><tr><td></td><th>Index Entry</th></tr>
<tr><td></td><td><a href="Intro.html#index-ABI">ABI</a>:</td><td>&nbsp;</td>
<td><a href="Intro.html#Intro">Introduction</a></td></tr></table>
<div class="printindex cp-printindex"><table class="cp-entries-printindex"><tr>
<td class="printindex-index-entry"><a href="Use.html#index-ffi_005fcif"><code>ffi_cif</code></a>
</td><td class="printindex-index-section"><a href="Use.html">Use</a></td></tr></table></div>"""


def terms_of(html: str) -> set[tuple[str, str]]:
    items = read_bytes(html.encode(), "x.html")
    return {(item.term, item.target) for item in items if isinstance(item, IndexTerm)}


def test_docbook():
    assert terms_of(DOCBOOK) == {
        ("aggregate function", "agg.html"),
        ("aggregate function", "sql.html"),
        ("aggregate function, built-in", "agg.html"),
        ("aggregate function, built-in, fast", "fast.html"),
        ("aggregate function, moving", "xaggr.html"),
        ("alias, in FROM", "query.html"),
    }
    assert read_bytes(DOCBOOK.encode(), "x.html").count(NO_TARGET) == 1


def test_sphinx():
    assert terms_of(SPHINX) == {
        ("A-LAW", "library/sndhdr.html"),
        ("A-LAW", "library/aifc.html"),
        ("abc, module", "library/abc.html"),
        ("abort()", "c-api/sys.html"),
        ("abort() (asyncio.Barrier method)", "asyncio.html"),
        ("write() (io method)", "io.html"),
        ("write() (codecs method)", "codecs.html"),
    }
    assert terms_of(OLD_SPHINX) == {
        ("abs() (built-in function)", "a.html"),
        ("module, os", "os.html"),
    }
    assert terms_of(MODULES) == {("abc", "library/abc.html")}


def test_texinfo():
    assert terms_of(TEXINFO) == {("ABI", "Intro.html"), ("ffi_cif", "Use.html")}


@pytest.mark.parametrize("html", [DOCBOOK, SPHINX, OLD_SPHINX, MODULES, TEXINFO])
def test_links_of_an_index_are_navigation(html):
    """Also those below a term that reads like a sentence."""
    html = html.replace("</dt>", " and some more words of a long sentence</dt>")
    *_, page = read_bytes(html.encode(), "x.html")
    assert not [link for section in page.content for link in section.body.links]


@pytest.mark.parametrize(
    "html",
    [
        "<div class=index><ul><li><a href=y.html>News</a> of the day, and more of them.</ul></div>",
        "<table class=index-page><tr><td>All <a href=y.html>news</a> of the day are here.</table>",
    ],
)
def test_other_elements_of_such_a_class_are_content(html):
    (page,) = read_bytes(f"<html><body>{html}".encode(), "x.html")
    assert [link.anchor for link in page.content[0].body.links]


def manual(folder: str, package: str) -> list:
    if not Path(folder).is_dir():
        pytest.skip(f"the Debian package {package} is not installed")
    reader = HtmlReader()
    found = (source for source in sources(folder) if reader.recognizes(source))
    return [item for source in found for r in reader.records(source) for item in reader.parse(r)]


@pytest.mark.slow
def test_the_index_of_a_manual_leads_to_its_pages():
    """Each term of PostgreSQL's index; a program without a parser finds as many links."""
    folder = "/usr/share/doc/postgresql-doc-15/html"
    items = manual(folder, "postgresql-doc-15")
    keys = {item.key for item in items if isinstance(item, Page)}
    terms = [item for item in items if isinstance(item, IndexTerm)]
    links = (Path(folder) / "bookindex.html").read_text().count('class="indexterm" href')
    assert 0.97 * links < len(terms) <= links and {term.target for term in terms} <= keys
    assert Counter(terms).most_common(1)[0][1] == 1
    assert IndexTerm("function, user-defined, in C", "xfunc-c.html") in terms
