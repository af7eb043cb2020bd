"""The passage of a text that a query asks for."""

from __future__ import annotations

import math
import random

import pytest

from harp_plugin.text import query_passage

TITLE = [f"title{n}" for n in range(16)]
BODY = [f"w{n}" for n in range(200)]


def text_with(**words: str) -> str:
    """The title and 200 words, some of which are replaced: ``w100="apple"``."""
    return " ".join([*TITLE, *(words.get(word, word) for word in BODY)])


def cut(start: int, end: int, **words: str) -> str:
    return " ".join(words.get(word, word) for word in BODY[start:end])


def test_a_short_text_is_whole():
    text = " ".join([*TITLE, *BODY[:48]])
    assert query_passage("w40", text) == text


def test_without_a_common_word_the_text_begins_at_its_beginning():
    assert query_passage("pear", text_with()) == f"{' '.join(TITLE)}\n{cut(0, 48)}"


def test_the_first_of_the_windows_that_hold_a_word():
    """Windows start at the words 0, 24, 48, ...; those from 48 and 72 hold word 80."""
    found = query_passage("Apples?", text_with(w80="apple"))
    assert found == f"{' '.join(TITLE)}\n{cut(48, 96, w80='apple')}"


def test_the_last_window_ends_with_the_text():
    found = query_passage("apple", text_with(w199="apple"))
    assert found.endswith(cut(168, 200, w199="apple"))


def test_two_words_of_the_query_beat_one_that_is_repeated():
    many = {f"w{n}": "apple" for n in range(4, 20)}
    assert cut(96, 144, w100="apple", w120="pear") in query_passage(
        "apple pear", text_with(**many, w100="apple", w120="pear")
    )


def test_a_word_that_few_windows_have_counts_more():
    """Each window has "the"; only one has "pear", and another has "the" twice as often."""
    common = {f"w{n}": "the" for n in range(0, 200, 10)}
    denser = {f"w{n}": "the" for n in range(151, 160)}
    found = query_passage("the pear", text_with(**common, **denser, w61="pear"))
    assert "pear" in found


def test_punctuation_and_lines_stay():
    text = f"{' '.join(TITLE)}.\n" + ",\n".join(BODY)
    assert query_passage("w100", text).split("\n", 1)[1].startswith("w72,\nw73,")


@pytest.mark.parametrize("seed", range(5))
def test_no_window_scores_higher(seed):
    """By the formula, worked out for each window by itself."""
    rng = random.Random(seed)
    words = [rng.choice(["the", "apple", "pear", "plums", "kiwis", "other"]) for _ in range(400)]
    query = ["apples", "pear", "plumage", "kiwi"]
    body = words[16:]
    windows = [body[start : start + 48] for start in range(0, len(body) - 48 + 24, 24)]

    def count(stem, window):
        return sum(word[:5] == stem for word in window)

    def score(window):
        total = 0.0
        for stem in {word[:5] for word in query}:
            frequency = count(stem, window)
            having = sum(count(stem, other) > 0 for other in windows)
            if frequency:
                total += frequency / (frequency + 1) * math.log(1 + len(windows) / having)
        return total

    found = query_passage(" ".join(query), " ".join(words)).split("\n")[1].split()
    assert score(found) == pytest.approx(max(map(score, windows)))
