"""`LinkedText.substitute` against a reference that follows every character."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harp_plugin.corpus.markup import Link, LinkedText

PATTERNS = [
    ("a+", ""),
    ("b", "xyz"),
    (r"\s+", " "),
    ("''+", ""),
    (r"(a)(b)", r"\2-\1"),
    ("ab|ba", "Q"),
    (r"\(\s*\)", ""),
    (r"\A\s+|\s+\Z", ""),
    ("(?=b)", "|"),
]
TEXTS = st.text(alphabet="ab '()\né", max_size=30)


def reference(text, links, pattern, replacement):
    """A link keeps its characters, and every replacement that lies within it as a whole."""
    out: list[tuple[str, int, int]] = []  # a character, and the stretch of text it stands for
    position = 0
    for match in re.finditer(pattern, text):
        out += [(text[i], i, i + 1) for i in range(position, match.start())]
        out += [(char, *match.span()) for char in match.expand(replacement)]
        position = match.end()
    out += [(text[i], i, i + 1) for i in range(position, len(text))]
    kept = []
    for start, end in links:
        inside = [c for c, first, last in out if start <= first and last <= end and first < end]
        kept.append("".join(inside))
    return "".join(char for char, *_ in out), kept


@settings(max_examples=1000)
@given(
    TEXTS, st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30))), st.sampled_from(PATTERNS)
)
def test_links_keep_their_characters(text, spans, change):
    spans = [tuple(sorted((min(a, len(text)), min(b, len(text))))) for a, b in spans]
    spans = [span for span in spans if span[0] < span[1]]
    body = LinkedText(text, [Link(*span, "", str(n)) for n, span in enumerate(spans)])
    pattern, replacement = change
    body.substitute(re.compile(pattern), replacement)
    expected, anchors = reference(text, spans, pattern, replacement)
    assert body.text == expected
    assert [link.target for link in body.links] == [str(n) for n in range(len(spans))]
    assert [body.text[link.start : link.end] for link in body.links] == anchors


@given(TEXTS, st.integers(0, 30), st.integers(0, 30))
def test_shrink_links_strips_like_str_strip(text, a, b):
    start, end = sorted((min(a, len(text)), min(b, len(text))))
    body = LinkedText(text, [Link(start, end, "", "T")])
    body.shrink_links()
    stripped = text[start:end].strip()
    assert [body.text[link.start : link.end] for link in body.links] == [stripped] * bool(stripped)


@pytest.mark.parametrize(
    ("text", "span", "pattern", "replacement", "moved"),
    [
        ("see ( 1990) now", (4, 11), r"\(\s+", "(", (4, 10)),  # the stretch starts the link
        ("a  b", (2, 4), r"\s+", " ", (2, 3)),  # the stretch started before the link
        ("a  b", (0, 2), r"\s+", " ", (0, 1)),  # the stretch goes on behind the link
        ("a    b", (2, 4), r"\s+", "", (1, 1)),  # the link lies within the stretch
    ],
)
def test_boundaries(text, span, pattern, replacement, moved):
    body = LinkedText(text, [Link(*span, "", "T")])
    body.substitute(re.compile(pattern), replacement)
    assert (body.links[0].start, body.links[0].end) == moved
