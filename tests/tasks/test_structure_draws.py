"""How often each task on a page's structure draws what, by χ² against chances worked by hand."""

from collections import Counter
from itertools import combinations, permutations, product
from math import comb

import pytest
from chi_square import agrees
from orchard_wiki import BODIES, LEADS, LONG, TEXTS, TITLED, draws, prose, sentence

from harp_plugin.tasks import Pair

NAMES = {text: name for name, text in TEXTS.items()}
BESIDE = ["One", "Two", "Three", "Four", "Five", "Six"]
ALPHA_SENTENCES = [
    "Apple apple apple and a pear.",
    "The plum is a fruit.",
    "A fig falls, an apple too.",
]


def uniform(names):
    names = list(names)
    return dict.fromkeys(names, 1 / len(names))


def independent(*chances):
    """Chances of tuples, one member by each of some distributions."""
    found = {}
    for members in product(*(each.items() for each in chances)):
        chance = 1.0
        for _, share in members:
            chance *= share
        found[tuple(name for name, _ in members)] = chance
    return found


def spread(*lists):
    """One of the lists, then one of its texts."""
    found = Counter()
    for texts in lists:
        for text in texts:
            found[text] += 1 / len(lists) / len(texts)
    return found


def documents_of(pairs):
    return frozenset(NAMES[pair.document] for pair in pairs)


class TestSRR:
    @pytest.fixture
    def draw(self, orchard):
        examples = orchard.examples("srr")
        return lambda *name, count=1500, **more: draws(
            orchard.source, "srr", examples[name], count, **more
        )

    def test_examples(self, orchard):
        """Nodes with two long enough children; of One's three the third lacks a word."""
        assert set(orchard.examples("srr")) == {("Alpha",), ("Alpha", "One"), ("Beta",), ("Twin",)}

    def test_any_child_and_four_of_those_beside_it(self, draw):
        chances = {}
        for child in BESIDE:
            others = [name for name in BESIDE if name != child]
            chances |= {(child, frozenset(four)): 1 / 30 for four in combinations(others, 4)}
        found = draw("Alpha")
        for group in found:
            title = NAMES[group.positive.document]
            assert {pair.query for pair in group.members} == {f"Alpha {title}"}
        counts = Counter((NAMES[g.positive.document], documents_of(g.negatives)) for g in found)
        assert agrees(counts, chances)

    def test_negatives_in_any_order(self, draw):
        found = [group for group in draw("Alpha") if NAMES[group.positive.document] == "One"]
        assert agrees(Counter(NAMES[g.negatives[0].document] for g in found), uniform(BESIDE[1:]))

    def test_article(self, draw):
        chances = {}
        for child in BESIDE:
            others = [name for name in LONG if name != child]
            for four in combinations(others, 4):
                chances[child, frozenset(four)] = 1 / 6 / comb(7, 4)
        found = draw("Alpha", count=1500, srr_negatives="article")
        counts = Counter((NAMES[g.positive.document], documents_of(g.negatives)) for g in found)
        assert agrees(counts, chances)

    @pytest.mark.parametrize(
        ("options", "negatives"),
        [
            ({"negatives_per_group": 8}, 5),
            ({"negatives_per_group": 1}, 1),
            ({"preset": "released"}, 7),
        ],
    )
    def test_most_negatives(self, draw, options, negatives):
        for group in draw("Alpha", count=20, **options):
            assert len(group.negatives) == len(documents_of(group.negatives)) == negatives

    def test_path_of_titles(self, draw):
        found = draw("Alpha", "One", count=300)
        pairs = Counter((g.positive, *g.negatives) for g in found)
        first, second = "Alpha One OneA", "Alpha One OneB"
        chances = {
            (Pair(first, TEXTS["OneA"]), Pair(first, TEXTS["OneB"])): 1 / 2,
            (Pair(second, TEXTS["OneB"]), Pair(second, TEXTS["OneA"])): 1 / 2,
        }
        assert agrees(pairs, chances)

    def test_a_negative_is_never_the_positives_text(self, draw):
        assert draw("Twin", count=20) == [None] * 20


class TestRWI:
    @pytest.fixture
    def draw(self, orchard):
        examples = orchard.examples("rwi")
        return lambda *name, count=1500, **more: draws(
            orchard.source, "rwi", examples[name], count, **more
        )

    def test_examples(self, orchard):
        """Titles of a page that has enough others: not Gamma's one, nor those below First."""
        expected = {("Alpha", name) for name in TITLED} | {("Deep", "First")}
        expected |= {("Beta", "BetaOne"), ("Beta", "BetaTwo"), ("Twin", "Left"), ("Twin", "Right")}
        expected |= {("Epsilon", "EpsilonOne"), ("Epsilon", "EpsilonTwo")}
        assert set(orchard.examples("rwi")) == expected

    @pytest.mark.parametrize(
        ("name", "path", "own"),
        [
            ("OneA", "Alpha One OneA", {"One", "OneA"}),
            ("Under", "Alpha Void Under", {"Under"}),
            ("Three", "Alpha Three", {"Three"}),
            ("One", "Alpha One", {"One"}),  # titles below it are others
        ],
    )
    def test_as_many_other_titles(self, draw, name, path, own):
        depth = len(path.split()) - 1
        orders = list(permutations([n for n in TITLED if n not in own], depth))
        found = draw("Alpha", name)
        for group in found:
            assert group.positive == Pair(path, TEXTS[name])
            assert {pair.document for pair in group.negatives} == {TEXTS[name]}
            assert len({pair.query for pair in group.negatives}) == len(group.negatives)
            assert all(pair.query.split()[0] == "Alpha" for pair in group.negatives)
        first = Counter(tuple(g.negatives[0].query.split()[1:]) for g in found)
        assert agrees(first, uniform(orders))
        assert agrees(Counter(len(g.negatives) for g in found), distinct_of_four(len(orders)))
        drawn = {tuple(pair.query.split()[1:]) for g in found for pair in g.negatives}
        assert drawn == set(orders)

    @pytest.mark.parametrize("options", [{"rwi_negatives": "any"}, {"preset": "paper"}])
    def test_any(self, draw, options):
        """Of all sections, its own too; a query of its path is no negative."""
        orders = set(permutations(TITLED, 2)) - {("One", "OneA")}
        found = draw("Alpha", "OneA", count=1000, **options)
        first = Counter(tuple(g.negatives[0].query.split()[1:]) for g in found)
        assert agrees(first, uniform(orders))
        own = [g for g in draw("Alpha", "One", count=400, **options) if g is not None]
        drawn = {pair.query for group in own for pair in group.negatives}
        assert drawn == {f"Alpha {name}" for name in TITLED if name != "One"}

    def test_number_of_negatives(self, draw):
        assert {
            len(g.negatives) for g in draw("Alpha", "OneA", count=50, negatives_per_group=1)
        } == {1}
        assert (
            max(len(g.negatives) for g in draw("Alpha", "OneA", count=50, negatives_per_group=8))
            == 8
        )

    def test_nothing_where_all_is_its_own_path(self, draw):
        """Deep / First with any: its own title is one of three, and never given."""
        found = draw("Deep", "First", count=200, rwi_negatives="any", negatives_per_group=1)
        assert agrees(
            Counter(g and g.negatives[0].query for g in found),
            {None: 1 / 3, "Deep Second": 1 / 3, "Deep Third": 1 / 3},
        )


def distinct_of_four(size):
    """How many distinct ones four draws of so many give."""
    chances = {0: 1.0}
    for _ in range(4):
        after = Counter()
        for distinct, chance in chances.items():
            after[distinct] += chance * distinct / size
            after[distinct + 1] += chance * (1 - distinct / size)
        chances = after
    return {distinct: chance for distinct, chance in chances.items() if chance}


class TestATI:
    @pytest.fixture
    def draw(self, orchard):
        examples = orchard.examples("ati")
        return lambda name, count=1500, **more: draws(
            orchard.source, "ati", examples[name,], count, **more
        )

    def test_examples(self, orchard):
        """Documents with a section that is not empty; Headless is none."""
        assert set(orchard.examples("ati")) == {(title,) for title in BODIES}

    def test_lead_against_four_sections(self, draw):
        found = draw("Alpha", count=2500)
        assert {group.positive for group in found} == {Pair("Alpha", LEADS["Alpha"])}
        assert {pair.query for group in found for pair in group.negatives} == {"Alpha"}
        fours = map(frozenset, combinations(TITLED, 4))
        assert agrees(Counter(documents_of(g.negatives) for g in found), uniform(fours))
        assert agrees(Counter(NAMES[g.negatives[0].document] for g in found), uniform(TITLED))

    def test_most_negatives(self, draw):
        assert {
            len(group.negatives) for group in draw("Alpha", count=9, negatives_per_group=8)
        } == {8}
        assert {
            documents_of(g.negatives) for g in draw("Alpha", count=9, negatives_per_group=50)
        } == {frozenset(TITLED)}
        texts = {frozenset(p.document for p in g.negatives) for g in draw("Epsilon", count=9)}
        assert texts == {frozenset({prose("EpsilonOne"), "Short."})}
        assert [len(group.negatives) for group in draw("Twin", count=3)] == [1] * 3

    def test_a_section_that_repeats_the_lead(self, draw):
        assert draw("Echo", count=20) == [None] * 20


class TestLTM:
    UNLINKED = ("Epsilon", "Theta", "Iota", "Kappa", "Twin", "Deep", "Echo")

    @pytest.fixture
    def articles(self):
        """Whole texts, by hand."""
        order = ["One", "OneA", "OneB", "OneC", "Two", "Three", "Four", "Five", "Six", "Under"]
        texts = {title: [lead] for title, lead in LEADS.items()}
        texts["Alpha"] += [TEXTS[name] for name in order]
        texts["Beta"] += [prose("BetaOne"), prose("Alpha")]
        texts["Epsilon"] += [prose("EpsilonOne"), "Short."]
        texts["Twin"] += [prose("Same")] * 2
        texts["Deep"] += ["Water.", "Stones.", "Mud."]
        texts["Echo"] += ["Echo says so."]
        return {"\n".join(parts): title for title, parts in texts.items()}

    @pytest.fixture
    def draw(self, orchard):
        (example,) = orchard.examples("ltm").values()
        return lambda count=1000, **more: draws(orchard.source, "ltm", example, count, **more)

    def test_examples(self, orchard):
        assert set(orchard.examples("ltm")) == {("Alpha",)}

    def test_targets_and_articles_that_are_not_linked(self, draw, articles):
        """Beta, Delta through a redirect, and Zeta; Headless is no document."""
        found = draw()
        assert {articles[pair.query] for group in found for pair in group.members} == {"Alpha"}
        fours = uniform(map(frozenset, combinations(self.UNLINKED, 4)))
        counts = Counter(
            (articles[g.positive.document], frozenset(articles[p.document] for p in g.negatives))
            for g in found
        )
        assert agrees(counts, independent(uniform(["Beta", "Delta", "Zeta"]), fours))

    def test_no_more_negatives_than_there_are(self, draw, articles):
        for group in draw(count=20, negatives_per_group=20):
            assert sorted(articles[p.document] for p in group.negatives) == sorted(self.UNLINKED)
        assert {len(group.negatives) for group in draw(count=20, negatives_per_group=1)} == {1}


class TestICT:
    OTHERS = ("BetaOne", "Alpha", "GammaOne", "EpsilonOne", "Zeta", "Same", "Same")

    @pytest.fixture
    def draw(self, orchard):
        examples = orchard.examples("ict")
        return lambda *name, count=2500: draws(orchard.source, "ict", examples[name], count)

    def test_examples(self, orchard):
        """Two sentences and twenty words: leads too, and no more of a section of nineteen."""
        expected = {("Alpha", name) for name in LONG} | {("Zeta",), ("Gamma", "GammaOne")}
        expected |= {("Beta", "BetaOne"), ("Beta", "BetaTwo"), ("Epsilon", "EpsilonOne")}
        expected |= {("Twin", "Left"), ("Twin", "Right")}
        assert set(orchard.examples("ict")) == expected

    def test_sentence_rest_and_other_example(self, draw):
        """The other example is any of 15; of Alpha itself are 8, which give nothing."""
        found = draw("Alpha", "One")
        assert agrees(Counter(g is None for g in found), {True: 8 / 15, False: 7 / 15})
        cloze = {}
        for number in (1, 2, 3):
            rest = [sentence("One", n) for n in (1, 2, 3) if n != number]
            cloze[Pair(sentence("One", number), " ".join(rest))] = 1 / 3
        others = Counter()
        for name in self.OTHERS:
            total = 3 if name == "Zeta" else 2
            for left_out in range(1, total + 1):
                rest = " ".join(sentence(name, n) for n in range(1, total + 1) if n != left_out)
                others[rest] += 1 / len(self.OTHERS) / total
        drawn = [g for g in found if g is not None]
        assert all(pair.query == g.positive.query for g in drawn for pair in g.negatives)
        counts = Counter((g.positive, *(pair.document for pair in g.negatives)) for g in drawn)
        assert agrees(counts, independent(cloze, others))

    def test_an_example_of_the_same_page_gives_nothing(self, draw):
        """Twin's two, and none that repeats its text."""
        drawn = [group for group in draw("Twin", "Left", count=600) if group is not None]
        assert all(not pair.document.startswith("Same") for g in drawn for pair in g.negatives)
        given = Counter({True: len(drawn), False: 600 - len(drawn)})
        assert agrees(given, {True: 13 / 15, False: 2 / 15})


class TestBFS:
    def test_examples(self, orchard):
        expected = {("Alpha",), ("Beta",), ("Gamma",), ("Epsilon",), ("Twin",)}
        assert set(orchard.examples("bfs")) == expected

    def test_sentence_and_passages(self, orchard):
        found = draws(orchard.source, "bfs", orchard.examples("bfs")["Alpha",], 2000)
        negatives = spread(
            [prose("BetaOne"), prose("Alpha")],
            [prose("GammaOne")],
            [prose("EpsilonOne")],
            [prose("Same")] * 2,
        )
        assert all(pair.query == g.positive.query for g in found for pair in g.negatives)
        counts = Counter((g.positive.query, *(pair.document for pair in g.members)) for g in found)
        passages = uniform(TEXTS[name] for name in LONG)
        assert agrees(counts, independent(uniform(ALPHA_SENTENCES), passages, negatives))


class TestWLP:
    def test_examples(self, orchard):
        """Documents that link to documents; a see-also link is none."""
        assert set(orchard.examples("wlp")) == {("Alpha",), ("Beta",)}

    def test_sentence_linked_page_and_another(self, orchard):
        """A page first, then its lead or one of its long enough sections."""
        found = draws(orchard.source, "wlp", orchard.examples("wlp")["Alpha",], 2000)
        assert all(pair.query == g.positive.query for g in found for pair in g.negatives)
        linked = spread(
            [LEADS["Beta"], prose("BetaOne"), prose("Alpha")],
            [LEADS["Gamma"], prose("GammaOne")],
            [LEADS["Delta"]],
        )
        counts = Counter((group.positive.query, group.positive.document) for group in found)
        assert agrees(counts, independent(uniform(ALPHA_SENTENCES), linked))
        others = spread(
            [LEADS["Epsilon"], prose("EpsilonOne")],
            [LEADS["Twin"], prose("Same"), prose("Same")],
            *([LEADS[name]] for name in ("Zeta", "Theta", "Iota", "Kappa", "Deep", "Echo")),
        )
        counts = Counter(
            (g.positive.query, *(pair.document for pair in g.negatives)) for g in found
        )
        assert agrees(counts, independent(uniform(ALPHA_SENTENCES), others))
