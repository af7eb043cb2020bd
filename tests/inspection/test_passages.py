"""How a text is cut into pieces."""

from __future__ import annotations

import numpy as np

from harp_plugin.inspection.passages import LEVELS, Mention, cut, passage
from harp_plugin.tasks.terms import WeighedText


def weighed(text: str, weights: dict[str, float]) -> WeighedText:
    spans = [(text.index(word), text.index(word) + len(word)) for word in weights]
    return WeighedText(text, np.array(spans), np.array(list(weights.values())))


def pieces(shown):
    return {p.text: p for run in shown.runs for p in run.pieces if p.text.strip(" .")}


def test_shading_is_relative_to_the_heaviest_word_that_can_be_drawn():
    text = "the cat sat."
    weights = weighed(text, {"the": 0.9, "cat": 0.3, "sat": 0.1})
    found = pieces(passage(weights, stopped={"the"}, marked={"sat", "the"}))
    assert [found[word].level for word in ("the", "cat", "sat")] == [0, LEVELS, LEVELS // 3]
    assert [found[word].style for word in ("the", "sat")] == ["stop", "w3 mark"]
    assert found["cat"].weight == 0.3


def test_anchors_may_cut_words():
    text = "a prewar house"
    mention = Mention(5, 14, "War")
    shown = passage(weighed(text, {"prewar": 1.0}), stopped=(), mentions=[mention])
    assert [(r.mention, "".join(p.text for p in r.pieces)) for r in shown.runs] == [
        (None, "a pre"),
        (mention, "war house"),
    ]
    assert pieces(shown)["pre"].level == pieces(shown)["war"].level == LEVELS
    assert shown.text == text


def test_words_beyond_the_models_limit_are_shown_without_weight():
    text = "one two three"
    found = pieces(passage(weighed(text, {"one": 0.5}), stopped=(), marked={"three"}))
    assert (found["two"].weight, found["three"].weight) == (None, None)
    assert found["three"].marked


def test_words_before_the_weighed_text_are_shown_without_weight():
    """As in a document of a title and a lead."""
    inside = weighed("one two", {"one": 0.5, "two": 0.2}).within("Title of it one two", 12)
    found = pieces(passage(inside, stopped={"of"}, marked={"title"}))
    assert (found["Title"].weight, found["one"].weight, found["two"].weight) == (None, 0.5, 0.2)
    assert found["Title"].marked and found["of"].stopped


def test_long_documents_are_cut_after_a_word_and_keep_the_querys_words():
    text = "word " * 90 + "Needle and word and needle"
    shown = cut(WeighedText(text), stopped={"and"}, marked={"needle", "word", "and"})
    assert shown.cut and not shown.weighed
    assert shown.text == ("word " * 80).rstrip()
    assert [word.lower() for word in shown.beyond] == ["needle"]


def test_texts_without_spaces_are_cut_too():
    shown = cut(WeighedText("語" * 1000), stopped=())
    assert shown.text == "語" * 400


def test_empty_text():
    assert passage(WeighedText(""), stopped=()).runs == ()
