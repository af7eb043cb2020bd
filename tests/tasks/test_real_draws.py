"""Draws from 150 real articles lie within what their tables allow, and all of it occurs."""

import math
from collections import Counter
from functools import cache
from itertools import permutations

import pytest
from orchard_wiki import TASKS, draws
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from wiki_reading import WikiReading

from harp_plugin.sampling import generator
from harp_plugin.tasks import TASKS as REGISTRY
from harp_plugin.tasks import DrawOptions
from harp_plugin.tasks.source import BuildSource
from harp_plugin.tasks.terms import stop_words
from harp_plugin.text import WORD

pytestmark = pytest.mark.integration
STRUCTURE = [task for task in TASKS if task not in ("prop", "crop")]
EXAMPLES = {"prop": 138, "srr": 89, "rwi": 334, "ati": 90, "ltm": 11} | {
    "ict": 462,
    "bfs": 89,
    "wlp": 136,
    "codoc": 89,
    "hlp": 136,
    "php": 138,
    "crop": 471,
}


@pytest.fixture(scope="module")
def wiki(wiki_build):
    return WikiReading(wiki_build)


@pytest.fixture(scope="module")
def source(wiki_build):
    return BuildSource(wiki_build, TASKS)


def named(source, wiki, task):
    """The examples' ids by page and place."""
    table = source.examples[task]
    found = {}
    for id in table.ids.tolist():
        if id in wiki.titles:
            found[wiki.titles[id],] = id
        else:
            found[wiki.titles[table.get(id, "page")], table.get(id, "place")] = id
    assert len(found) == len(table)
    return found


@pytest.mark.parametrize("task", TASKS)
def test_examples(source, wiki, task):
    found = named(source, wiki, task)
    assert set(found) == getattr(wiki, f"{task}_examples")()
    assert len(found) == EXAMPLES[task]


def texts(pair):
    return pair.query, pair.document


def negatives_within(task, drawn, group):
    """The texts that may differ; the others are the positive's."""
    if task == "rwi":
        assert {pair.document for pair in drawn.negatives} == {group.document}
        return [pair.query for pair in drawn.negatives]
    assert {pair.query for pair in drawn.negatives} == {group.query}
    return [pair.document for pair in drawn.negatives]


@pytest.mark.parametrize("task", STRUCTURE)
def test_every_example_draws_within_what_is_possible(source, wiki, task):
    options, drawer, given = DrawOptions(), REGISTRY[task](), 0
    for name, id in named(source, wiki, task).items():
        possible = {group[:2]: group for group in getattr(wiki, task)(*name)}
        for number in range(2):
            drawn = drawer.draw(id, generator("real", id, number), source, options)
            if drawn is None:
                continue
            given += 1
            group = possible[texts(drawn.positive)]
            negatives = negatives_within(task, drawn, group)
            assert group.negatives.issuperset(negatives)
            assert len({*negatives}) == len(negatives)
            if task in ("srr", "ati", "ltm"):
                assert len(negatives) == min(4, len(group.negatives))
            elif task == "rwi":
                assert 1 <= len(negatives) <= 4
            else:
                assert len(negatives) == 1
    assert given > 1.95 * EXAMPLES[task]


def test_crops_are_words_of_a_sentence_of_their_section(source, wiki):
    options, dropped, given = DrawOptions(), stop_words("english"), 0
    for (title, place), id in named(source, wiki, "crop").items():
        group = REGISTRY["crop"]().draw(id, generator("real", id), source, options)
        if group is None:
            continue
        given += 1
        assert group.positive.query in wiki.crops(title, place, dropped)
        assert group.positive.document == wiki.lead(title)
        documents = {pair.document for pair in group.negatives}
        assert len(documents) == 4
        assert documents <= {wiki.lead(page) for page in wiki.no_link(title)}
    assert given > 0.9 * EXAMPLES["crop"]


@pytest.mark.parametrize("task", ["srr", "rwi", "ati"])
def test_everything_possible_is_drawn(source, wiki, task):
    """From the examples with few possibilities and with up to a hundred."""
    sizes = {
        name: (id, sum(len(group.negatives) for group in getattr(wiki, task)(*name)))
        for name, id in named(source, wiki, task).items()
    }
    ordered = sorted((size, name, id) for name, (id, size) in sizes.items() if 1 <= size <= 100)
    for size, name, id in [*ordered[:2], ordered[len(ordered) // 2], ordered[-1]]:
        expected = {(*g[:2], negative) for g in getattr(wiki, task)(*name) for negative in g[2]}
        assert len(expected) == size
        found = set()
        for group in draws(source, task, id, 12 * size + 20):
            negatives = negatives_within(task, group, group.positive)
            found.update((*texts(group.positive), negative) for negative in negatives)
        assert found == expected


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("ltm", None),
        ("ict", ("France", 5)),
        pytest.param("bfs", ("France",), marks=pytest.mark.slow),
        pytest.param("wlp", ("United States",), marks=pytest.mark.slow),
    ],
)
def test_every_positive_and_every_other_page_is_drawn(source, wiki, task, name):
    """Of ICT, of which there are thousands of negatives, a negative of every passage.

    France and the United States have links with many pages, so there are fewer to be drawn.
    """
    ids = named(source, wiki, task)
    name = name or max(ids)
    groups = getattr(wiki, task)(*name)
    possible = {group[:2] for group in groups}
    missing = set(possible)
    if task == "ict":
        pages = wiki.no_link(name[0])
        passages = [{*rests} for (page, _), rests in wiki.rests.items() if page in pages]
    else:
        passages = [{text} for text in groups[0].negatives]
    for number in range(12_000):  # at most: it ends when all have been drawn
        if not missing and not passages:
            break
        drawn = REGISTRY[task]().draw(
            ids[name], generator("test", task, number), source, DrawOptions()
        )
        if drawn is not None:
            missing.discard(texts(drawn.positive))
            assert texts(drawn.positive) in possible
            negatives = {pair.document for pair in drawn.negatives}
            assert negatives <= groups[0].negatives
            passages = [texts_of for texts_of in passages if negatives.isdisjoint(texts_of)]
    assert not missing and not passages


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_other_presets_draw_within_the_article(source, wiki, preset):
    """Titles of any section, eight of them."""
    options = DrawOptions(preset=preset, negatives_per_group=8)
    for task in ("srr", "rwi"):
        for (title, place), id in named(source, wiki, task).items():
            sections = wiki.sections[title]
            group = REGISTRY[task]().draw(id, generator("presets", id), source, options)
            if group is None:
                continue
            assert len(group.negatives) <= 8
            possible = {s.text for s in sections[1:] if s.words >= 20}
            if task == "srr":
                assert {pair.document for pair in group.members} <= possible
            if task == "rwi" and preset == "paper":
                depth = len(sections[place].path) - 1
                anything = wiki.rwi(title, place)[0].negatives
                queries = {pair.query for pair in group.negatives}
                assert queries <= orders(title, tuple(wiki.others(title, ())), depth) | anything
                assert group.positive.query not in queries


@cache
def orders(title, titles, depth):
    return {" ".join([title, *order]) for order in permutations(titles, depth)}


def beginning(text):
    """The text up to its 401st word."""
    later = [word.start() for word in WORD.finditer(text)][400:]
    return text[: later[0]].rstrip() if later else text


def document_words(texts):
    """Counts of the words of all documents, without stop words."""
    found = Counter(w.lower() for text in texts for w in WORD.findall(text))
    return {word: n for word, n in found.items() if word not in ENGLISH_STOP_WORDS}


class TestPROP:
    @pytest.mark.parametrize(
        ("options", "least"),
        [
            ({}, 1),
            ({"prop_min_count": "50"}, 50),
            ({"prop_min_count": "10", "document_fields": ["title", "lead"]}, 10),
        ],
    )
    def test_sets(self, source, wiki, options, least):
        """Words of the vocabulary, of one number; the positive is the likelier, never as likely."""
        documents = {title: beginning(wiki.article(title)) for title in wiki.documents}
        if "document_fields" in options:
            documents = {title: f"{title} {beginning(wiki.lead(title))}" for title in documents}
        counts = document_words(documents.values())
        kept = {word: n for word, n in counts.items() if n >= least}
        total, ties = sum(kept.values()), 0
        mu = total / len(wiki.documents)
        for (title,), id in named(source, wiki, "prop").items():
            document = documents[title]
            tf = Counter(w for w in map(str.lower, WORD.findall(document)) if w in kept)
            for group in draws(source, "prop", id, 12, **options):
                if group is None:
                    ties += 1
                    continue
                sets = [pair.query.split(" ") for pair in group.members]
                assert group.positive.document == group.negatives[0].document == document
                assert len(sets[0]) == len(sets[1]) and kept.keys() >= {*sets[0], *sets[1]}
                high, low = (
                    math.fsum(
                        math.log((tf[w] + mu * kept[w] / total) / (tf.total() + mu)) for w in words
                    )
                    for words in sets
                )
                assert high - low > 1e-10
        assert 0 < ties < 0.2 * 12 * len(wiki.documents)
