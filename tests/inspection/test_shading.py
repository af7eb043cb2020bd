"""How a text is written with its words shaded."""

from __future__ import annotations

import re

import numpy as np
from markupsafe import Markup

from harp_plugin.inspection.shading import LEVELS, Mention, shaded
from harp_plugin.tasks.terms import WeighedText


def weighed(text: str, weights: dict[str, float]) -> WeighedText:
    spans = [(text.index(word), text.index(word) + len(word)) for word in weights]
    return WeighedText(text, np.array(spans), np.array(list(weights.values())))


def styles(html: Markup) -> dict[str, tuple[str, str]]:
    """The class and the weight of each word that has one."""
    words = re.findall(r'<i class="([^"]*)"(?: title="([^"]*)")?>(.*?)</i>', html)
    return {word: (style, weight) for style, weight, word in words}


def test_shading_is_relative_to_the_heaviest_word_that_can_be_drawn():
    weights = weighed("the cat sat.", {"the": 0.9, "cat": 0.3, "sat": 0.1})
    assert styles(shaded(weights, stopped={"the"}, marked={"sat", "the"})) == {
        "the": ("stop", "0.9000"),
        "cat": (f"w{LEVELS}", "0.3000"),
        "sat": (f"w{LEVELS // 3} mark", "0.1000"),
    }


def test_anchors_may_cut_words_and_all_is_escaped():
    text = weighed("<a> prewar house", {"prewar": 1.0})
    html = shaded(text, stopped=(), mentions=[Mention(7, 16, "War & peace", "focus", "<note>")])
    run = '<span class="anchor focus" title="&lt;note&gt;">'
    assert html.startswith('<span class="shown">&lt;')
    assert f'title="1.0000">pre</i>{run}<i class="w9" title="1.0000">war</i> ' in html
    assert html.endswith("<small>War &amp; peace</small></span></span>")


def test_words_beyond_the_models_limit_are_shown_without_weight():
    found = styles(shaded(weighed("one two three", {"one": 0.5}), stopped=(), marked={"three"}))
    assert (found["two"], found["three"]) == (("", ""), ("mark", ""))


def test_words_before_the_weighed_text_are_shown_without_weight():
    """As in a document of a title and a lead."""
    inside = weighed("one two", {"one": 0.5, "two": 0.2}).within("Title of it one two", 12)
    found = styles(shaded(inside, stopped={"of"}, marked={"title"}))
    assert (found["Title"], found["of"], found["one"]) == (
        ("mark", ""),
        ("stop", ""),
        ("w9", "0.5000"),
    )


def test_long_documents_are_cut_after_a_word_and_keep_the_querys_words():
    text = "word " * 90 + "Needle and word and needle"
    html = shaded(WeighedText(text), stopped={"and"}, marked={"needle", "word", "and"}, limit=400)
    shown, rest = html.split("</span>")
    assert Markup(shown).striptags() == ("word " * 80).rstrip()
    assert rest == ' … <i class="mark">needle</i> …'


def test_texts_without_spaces_are_cut_too():
    html = shaded(WeighedText("語" * 1000), stopped=(), limit=400)
    assert html.striptags() == "語" * 400 + " …"


def test_empty_text():
    assert shaded(WeighedText(""), stopped=()) == '<span class="shown"></span>'
