"""HTML of any kind: nothing is raised, links are exact, and every link is kept or counted."""

import re
from functools import partial

from hypothesis import example, given
from hypothesis import strategies as st
from reading import read_bytes

from harp_plugin.corpus.html import decode, read_document
from harp_plugin.corpus.pages import Dropped, Page
from harp_plugin.corpus.readers.html import page_items
from harp_plugin.corpus.urls import WebAddress

TAGS = re.findall(
    r"\w+",
    "a article aside b blockquote br button caption center code dd details div dl dt em figure form"
    " h1 h2 h3 header hr i img li main nav noscript ol p pre script section select span style sub"
    " svg table tbody td template textarea th title tr ul",
)
TEXTS = st.text(alphabet="ab \n\u00a0\u200b\u00ad¶&<>'\"é中", max_size=8)
ATTRIBUTES = st.sampled_from(
    [
        *("", " href", " href=x", " href='#y'", ' href="mailto:z"', " class=menu", " id=note"),
        *(" hidden", " role=main", " class='navbar x'", " style='display: none'"),
    ]
)
TREES = st.recursive(
    TEXTS,
    lambda inner: st.builds(
        lambda tag, attributes, parts, closed: (
            f"<{tag}{attributes}>{''.join(parts)}" + (f"</{tag}>" if closed else "")
        ),
        st.sampled_from(TAGS),
        ATTRIBUTES,
        st.lists(inner, max_size=4),
        st.booleans(),
    ),
    max_leaves=25,
)


def page_of(html: str) -> Page | None:
    assert not isinstance(read_document(html), Dropped)
    *_, item = page_items(html, partial(WebAddress, "http://a.b/c"))
    return item if isinstance(item, Page) else None


@given(TREES)
@example("<a href=x><h1>t<table><a href=y>u")
@example("<h1><div><h2>a</h1><nav>b")
def test_links_are_exact(html):
    page = page_of(html)
    for section in page.sections if page else []:
        text = section.body.text
        lines = text.split("\n") if text else []
        assert all(line == " ".join(line.split()) != "" for line in lines)
        end = 0
        for link in section.body.links:
            assert end <= link.start < link.end
            assert text[link.start : link.end] == link.anchor == link.anchor.strip()
            assert "\n" not in link.anchor
            end = link.end


@given(st.lists(st.sampled_from(["p", "div", "li", "td", "h2", "nav", "span", "pre"]), max_size=6))
def test_no_link_is_lost(around):
    opening = "".join(f"<{tag}>word <a href={n}>link {n}</a> " for n, tag in enumerate(around))
    html = f"<p>Some text first.</p><table><tr>{opening}"
    page = page_of(html)
    kept = sum(len(section.body.links) for section in page.sections)
    assert kept + sum(page.drops.values()) == len(re.findall("<a ", html))


@given(
    st.binary(max_size=300), st.sampled_from([b"", b"<html>", b"\xff\xfe", b"<meta charset=big5>"])
)
def test_any_bytes(data, start):
    text = decode(start + data)
    assert text.encode().decode() == text
    page_of(text)
    for item in read_bytes(b"<html>" + data, "x.html"):
        assert isinstance(item, Page | Dropped)
