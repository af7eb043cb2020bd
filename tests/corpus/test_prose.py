"""What is taken out before parsing, and that parsing gives the same without it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import read

from harp_plugin.corpus.pages import Page
from harp_plugin.corpus.wikitext import page as wikitext
from harp_plugin.corpus.wikitext.prose import prose_only


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("a<!-- {{ -->b", "ab"),
        ("a<!-- open", "a"),
        ("a{{b|c={{d}}|e}}f", "af"),
        ("a{{{1|b}}}c", "ac"),
        ("a{{b|}}c", "ac"),
        ("a{{b|{{c|}}}}d", "ad"),
        ("a{{lang|fr|mot {{x}}}}b", "a{{lang|fr|mot \ue0f0}}b"),
        ("a{{lang-fr|mot}}b", "a{{lang-fr|mot}}b"),
        ("a{{b|{{lang|fr|mot}}}}c", "ac"),
        ("a {{ open [[b]]", "a {{ open [[b]]"),
        ("a }} b {{c}}", "a }} b \ue0f0"),
        ("{| open {{c}} b", "{| open \ue0f0 b"),
        ("a\n{| b\n|-\n| c {{d}}\n|}\ne", "a\n\ne"),
        ("a\n:{|\n{|\n|}\n|}e", "a\n:e"),
        ("a\n{|\n|{{b}}\n", "a\n{|\n|\n"),
        ("{{box|\n{|\n|b\n|}}}c", "c"),
        ("{{box|\n{|\n|b\n}}c", "c"),
        ("a {| b |} c", "a {| b |} c"),
        ("a<ref>{{b</ref>c", "ac"),
        ("a<ref name=b/>c<REF >d</Ref>e", "ace"),
        ("a<ref>b", "a<ref>b"),
        ("a<nowiki>{{b}}</nowiki>c", "a<nowiki>{{b}}</nowiki>c"),
        ("a<math>{{b</math>{{c}}", "a"),
        ("a<references/>b", "a<references/>b"),
    ],
)
def test_by_hand(written, left):
    assert prose_only(written) == left


@given(st.lists(st.sampled_from(["{{", "}}", "{|", "\n|}", "\n", "a", "|", "<ref>", "</ref>"])))
def test_nothing_is_added(parts):
    text = "".join(parts)
    rest = iter(text)
    assert all(character in rest for character in prose_only(text))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "apart"),
    [
        # Formulas, and what stands behind a template, are only seen there: 20 links of sentences
        # with such holes.
        ("enwiki-p10p30302-shortened.xml.bz2", 20),
        # One category is closed by three brackets after an open template.
        ("ltgwiki-pages-articles.xml.bz2", 1),
    ],
)
def test_parsing_gives_the_same_links_without_it(shared_data, monkeypatch, name, apart):
    path = shared_data / "wiki" / name

    def links():
        return Counter(
            (page.key, link.anchor, link.target)
            for page in read(path)
            if isinstance(page, Page)
            for section in page.sections
            for link in section.body.links
        )

    found = links()
    monkeypatch.setattr(wikitext, "prose_only", lambda text: text)
    whole = links()
    assert ((found - whole) + (whole - found)).total() <= apart
