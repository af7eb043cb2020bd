"""Paragraphs to sentences: by hand, and no link is lost or moved."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from harp_plugin.corpus.markup import Link, LinkedText
from harp_plugin.corpus.sentences import linked_sentences
from harp_plugin.corpus.wikitext import DEBRIS


def body(marked):
    """A text in which ``<`` and ``>`` stand around its links."""
    text, links, start = "", [], None
    for char in marked:
        if char == "<":
            start = len(text)
        elif char == ">":
            links.append(Link(start, len(text), text[start:], f"T{len(links)}"))
        else:
            text += char
    return LinkedText(text, links)


def sentences(marked, language="en"):
    drops = Counter()
    found = [
        (s.text, [(s.text[link.start : link.end], link.target) for link in s.links])
        for s in linked_sentences(body(marked), language, drops, DEBRIS)
    ]
    return found, +drops


def test_only_sentences_with_links():
    found, drops = sentences("One here. A <link> here. Three.\nA second <line>.  And <more>!")
    assert found == [
        ("A link here.", [("link", "T0")]),
        ("A second line.", [("line", "T1")]),
        ("And more!", [("more", "T2")]),
    ]
    assert not drops


def test_a_link_joins_the_sentences_it_crosses():
    found, _ = sentences("Start. He wrote <This Film. A Story> in winter. Then <it> ended.")
    assert found == [
        ("He wrote This Film. A Story in winter.", [("This Film. A Story", "T0")]),
        ("Then it ended.", [("it", "T1")]),
    ]


def test_left_over_markup_is_counted():
    found, drops = sentences("A {{bad <link> here. This <good> one.")
    assert found == [("This good one.", [("good", "T1")])]
    assert drops == {"sentence with left-over markup": 1}


def test_lines_that_are_sentences_already():
    found, _ = sentences("One. A <link> here. Three.\nNo link.", language=None)
    assert found == [("One. A link here. Three.", [("link", "T0")])]


WORDS = st.sampled_from(["The", "Dr. Who", "u.s.", "ran", "is", "it.", "End.", "(so)", "é!", "3.5"])


@given(st.lists(st.lists(st.tuples(WORDS, st.booleans()), max_size=12), max_size=4))
def test_every_link_comes_out_once(lines):
    marked = "\n".join(" ".join(f"<{w}>" if link else w for w, link in line) for line in lines)
    whole = body(marked)
    found = list(linked_sentences(whole, "en", Counter()))
    anchors = [(s.text[link.start : link.end], link.target) for s in found for link in s.links]
    assert anchors == [(link.anchor, link.target) for link in whole.links]
    for sentence in found:
        assert sentence.text in whole.text and sentence.text == sentence.text.strip()
        assert "\n" not in sentence.text
