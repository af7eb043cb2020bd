"""Crops of sentences as queries, by χ² against chances worked by hand."""

from collections import Counter

import pytest
from chi_square import agrees
from orchard_wiki import LONG, draws, sentence

from harp_plugin.tasks.terms import stop_words

SENTENCES = [sentence("Zeta", number).lower().rstrip(".").split() for number in (1, 2, 3)]


@pytest.fixture
def draw(orchard):
    examples = orchard.examples("crop")
    return lambda *name, count=1500, **more: draws(
        orchard.source, "crop", examples[name], count, **more
    )


def test_examples(orchard):
    """Leads and sections of twenty words."""
    expected = {("Alpha", name) for name in LONG} | {("Zeta",), ("Theta",), ("Gamma", "GammaOne")}
    expected |= {("Beta", "BetaOne"), ("Beta", "BetaTwo"), ("Epsilon", "EpsilonOne")}
    expected |= {("Twin", "Left"), ("Twin", "Right")}
    assert set(orchard.examples("crop")) == expected


def windows():
    """Two to twelve words of one of three sentences of ten words, from any place."""
    chances = Counter()
    for words in SENTENCES:
        for size in range(2, 13):
            starts = range(max(10 - size, 0) + 1)
            for start in starts:
                chances[tuple(words[start : start + size])] += 1 / 3 / 11 / len(starts)
    return chances


def queries_of(groups):
    return Counter(group and group.positive.query for group in groups)


def test_words_that_follow_each_other(draw):
    chances = {" ".join(words): chance for words, chance in windows().items()}
    assert agrees(queries_of(draw("Zeta", stop_words="none")), chances)


def test_half_of_the_queries_have_no_stop_words(draw):
    """Where no word is left, there is no group."""
    dropped = stop_words("english")
    chances = Counter()
    for words, chance in windows().items():
        chances[" ".join(words)] += chance / 2
        kept = " ".join(word for word in words if word not in dropped)
        chances[kept or None] += chance / 2
    assert chances[None] > 0.01
    assert agrees(queries_of(draw("Zeta")), chances)


def test_half_of_the_hard_negatives_are_drawn_at_random(draw, orchard):
    """A search finds three pages for Alpha that it has no links with."""
    titles = {id: title for title, id in orchard.pages.items()}
    options = {"negatives": "bm25", "negatives_per_group": 3}
    found = [group for group in draw("Alpha", "One", count=200, **options) if group]
    pages = [[titles[pair.document_origin.page] for pair in g.negatives] for g in found]
    assert all(len(set(drawn)) == 3 for drawn in pages)
    searched = {"Epsilon", "Twin", "Kappa"}
    assert {title for drawn in pages for title in drawn[:2]} == searched
    assert {drawn[2] for drawn in pages} > searched


def test_negatives_are_pages_without_a_link_to_or_from_it(draw, orchard):
    titles = {id: title for title, id in orchard.pages.items()}
    found = [group for group in draw("Alpha", "One", count=150, negatives_per_group=3) if group]
    drawn = Counter()
    for group in found:
        assert titles[group.positive.document_origin.page] == "Alpha"
        pages = [titles[pair.document_origin.page] for pair in group.negatives]
        assert len(set(pages)) == len(pages) == 3
        drawn.update(pages)
    linked = {"Alpha", "Beta", "Gamma", "Delta", "Headless"}
    assert not linked & set(drawn)
    assert len(drawn) > 3
