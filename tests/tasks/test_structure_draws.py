"""How often each task on a page's structure draws what, by χ² against chances worked by hand."""

from collections import Counter
from itertools import combinations, permutations, product

import pytest
from chi_square import agrees
from orchard_wiki import BODIES, LEADS, LONG, TEXTS, TITLED, draws, prose, sentence

from harp_plugin.tasks import Pair
from harp_plugin.tasks.source import BuildSource

NAMES = {text: name for name, text in TEXTS.items()}
BESIDE = ["One", "Two", "Three", "Four", "Five", "Six"]
ALPHA_SENTENCES = [
    "Apple apple apple and a pear.",
    "The plum is a fruit.",
    "A fig falls, an apple too.",
]


def find_alike(monkeypatch, alike):
    """Let two pages be near-duplicates, which the option may allow as negatives."""

    def are_alike(self, first, second, options):
        return options.alike_negatives == "excluded" and {first, second} == alike

    monkeypatch.setattr(BuildSource, "are_alike", are_alike)


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
        return lambda *name, count=500, **more: draws(
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

    @pytest.mark.parametrize(
        ("options", "negatives"),
        [
            ({"negatives_per_group": 8}, 5),
            ({"negatives_per_group": 1}, 1),
            ({"preset": "paper"}, 5),
        ],
    )
    def test_most_negatives(self, draw, options, negatives):
        for group in draw("Alpha", count=20, **options):
            assert len(group.negatives) == len(documents_of(group.negatives)) == negatives

    def test_path_of_titles(self, draw):
        found = draw("Alpha", "One", count=200)
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
        return lambda *name, count=600, **more: draws(
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
        found = draw("Alpha", "OneA", count=600, **options)
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
        found = draw("Deep", "First", count=120, rwi_negatives="any", negatives_per_group=1)
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
        return lambda name, count=600, **more: draws(
            orchard.source, "ati", examples[name,], count, **more
        )

    def test_examples(self, orchard):
        """Documents with a section that is not empty; Headless is none."""
        assert set(orchard.examples("ati")) == {(title,) for title in BODIES}

    def test_lead_against_four_sections(self, draw):
        found = draw("Alpha", count=1200)
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
        return lambda count=600, **more: draws(orchard.source, "ltm", example, count, **more)

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

    def test_of_a_search(self, draw, articles):
        """Of the six pages that it found, the article itself and two that it links are left out."""
        found = draw(negatives="bm25", negatives_per_group=2)
        twos = uniform(map(frozenset, combinations(["Epsilon", "Twin", "Kappa"], 2)))
        counts = Counter(frozenset(articles[p.document] for p in g.negatives) for g in found)
        assert agrees(counts, twos)

    @pytest.mark.parametrize("allowed", [False, True])
    def test_no_article_like_the_query(self, orchard, draw, articles, monkeypatch, allowed):
        alike = {orchard.pages["Alpha"], orchard.pages["Twin"]}
        find_alike(monkeypatch, alike)
        options = {"alike_negatives": "allowed"} if allowed else {}
        found = draw(count=50, negatives_per_group=20, **options)
        drawn = {articles[pair.document] for group in found for pair in group.negatives}
        assert drawn == set(self.UNLINKED) - (set() if allowed else {"Twin"})

    def test_by_in_links(self, draw, articles):
        """Of the articles that are not linked, only Kappa has a link to it."""
        for group in draw(count=20, negatives="in_links"):
            assert [articles[pair.document] for pair in group.negatives] == ["Kappa"]


class TestICT:
    UNLINKED = ("EpsilonOne", "Zeta", "Same", "Same")
    """Passages of pages that Alpha has no links with."""

    @pytest.fixture
    def draw(self, orchard):
        examples = orchard.examples("ict")
        return lambda *name, count=600, **more: draws(
            orchard.source, "ict", examples[name], count, **more
        )

    def test_examples(self, orchard):
        """Two sentences and twenty words: leads too, and no more of a section of nineteen."""
        expected = {("Alpha", name) for name in LONG} | {("Zeta",), ("Gamma", "GammaOne")}
        expected |= {("Beta", "BetaOne"), ("Beta", "BetaTwo"), ("Epsilon", "EpsilonOne")}
        expected |= {("Twin", "Left"), ("Twin", "Right")}
        assert set(orchard.examples("ict")) == expected

    @pytest.mark.parametrize(
        ("options", "passages"),
        [({}, UNLINKED), ({"negatives": "bm25"}, ("EpsilonOne", "Same"))],
    )
    def test_sentence_rest_and_passage_of_another_page(self, draw, options, passages):
        """Every passage as often; of a search, every page as often: Kappa has no passage."""
        cloze = {}
        for number in (1, 2, 3):
            rest = [sentence("One", n) for n in (1, 2, 3) if n != number]
            cloze[Pair(sentence("One", number), " ".join(rest))] = 1 / 3
        others = Counter()
        for name in passages:
            total = 3 if name == "Zeta" else 2
            for left_out in range(1, total + 1):
                rest = " ".join(sentence(name, n) for n in range(1, total + 1) if n != left_out)
                others[rest] += 1 / len(passages) / total
        found = draw("Alpha", "One", **options)
        assert all(pair.query == g.positive.query for g in found for pair in g.negatives)
        counts = Counter((g.positive, *(pair.document for pair in g.negatives)) for g in found)
        assert agrees(counts, independent(cloze, others))

    def test_never_a_passage_of_the_same_page(self, draw, orchard):
        """Twin has two with one text; of the other fifteen passages Alpha has eight."""
        found = draw("Twin", "Left", count=400)
        titles = {page: title for title, page in orchard.pages.items()}
        pages = Counter(titles[g.negatives[0].document_origin.page] for g in found)
        shares = {"Alpha": 8, "Beta": 2, "Gamma": 1, "Epsilon": 1, "Zeta": 1}
        assert agrees(pages, {title: share / 13 for title, share in shares.items()})


class TestBFS:
    def test_examples(self, orchard):
        expected = {("Alpha",), ("Beta",), ("Gamma",), ("Epsilon",), ("Twin",)}
        assert set(orchard.examples("bfs")) == expected

    @pytest.mark.parametrize("negatives", ["task", "bm25"])
    def test_sentence_and_passages(self, orchard, negatives):
        """Alpha has links with Beta and Gamma; Kappa, which a search finds, has no passage."""
        example = orchard.examples("bfs")["Alpha",]
        found = draws(orchard.source, "bfs", example, 700, negatives=negatives)
        others = spread([prose("EpsilonOne")], [prose("Same")] * 2)
        assert all(pair.query == g.positive.query for g in found for pair in g.negatives)
        counts = Counter((g.positive.query, *(pair.document for pair in g.members)) for g in found)
        passages = uniform(TEXTS[name] for name in LONG)
        assert agrees(counts, independent(uniform(ALPHA_SENTENCES), passages, others))


class TestCoDoc:
    def test_examples(self, orchard):
        """Twin's two sections have one text."""
        assert set(orchard.examples("codoc")) == {("Alpha",), ("Beta",), ("Twin",)}

    def test_two_passages_of_a_page(self, orchard):
        """Alpha has links with Beta, so that only Twin remains; its lead has two words."""
        found = draws(orchard.source, "codoc", orchard.examples("codoc")["Alpha",], 900)
        passages = [LEADS["Alpha"]] * (len(LEADS["Alpha"].split()) >= 20)
        passages += [TEXTS[name] for name in LONG]
        pairs = uniform(permutations(passages, 2))
        assert agrees(Counter((query, document) for query, document, _ in texts_of(found)), pairs)
        assert {negative for *_, negative in texts_of(found)} == {prose("Same")}

    def test_equal_passages_are_no_pair(self, orchard):
        assert draws(orchard.source, "codoc", orchard.examples("codoc")["Twin",], 5) == [None] * 5


PASSAGES = {
    **{title: [lead] for title, lead in LEADS.items()},
    "Alpha": [LEADS["Alpha"], *(TEXTS[name] for name in LONG)],
    "Beta": [LEADS["Beta"], prose("BetaOne"), prose("Alpha")],
    "Gamma": [LEADS["Gamma"], prose("GammaOne")],
    "Epsilon": [LEADS["Epsilon"], prose("EpsilonOne")],
    "Twin": [LEADS["Twin"], prose("Same"), prose("Same")],
}
"""Leads and long enough sections."""


def passages_of(**shares):
    """Passages of pages that have these shares of the draws."""
    found = Counter()
    for title, share in shares.items():
        for text in PASSAGES[title]:
            found[text] += share / sum(shares.values()) / len(PASSAGES[title])
    return found


def passages_without(*titles):
    return passages_of(**dict.fromkeys(LEADS.keys() - set(titles), 1))


def texts_of(groups):
    """The texts of each group: its query, its positive and its only negative."""
    for group in groups:
        (negative,) = group.negatives
        assert negative.query == group.positive.query
        yield group.positive.query, group.positive.document, negative.document


class TestWLP:
    SENTENCES = uniform(["Pear and pear, plum or fig.", "No apple."])

    def test_examples(self, orchard):
        """Documents that documents link to; Headless is none, nor does a see-also link count."""
        found = set(orchard.examples("wlp"))
        assert found == {("Alpha",), ("Beta",), ("Gamma",), ("Delta",), ("Kappa",)}

    def test_sentence_linking_page_and_another(self, orchard):
        """Alpha links to Beta, and so does Epsilon; a page first, then one of its passages."""
        found = draws(orchard.source, "wlp", orchard.examples("wlp")["Beta",], 600)
        counts = Counter((query, positive) for query, positive, _ in texts_of(found))
        linking = passages_of(Alpha=1, Epsilon=1)
        assert agrees(counts, independent(self.SENTENCES, linking))
        counts = Counter((query, negative) for query, _, negative in texts_of(found))
        others = passages_without("Alpha", "Beta", "Epsilon")
        assert agrees(counts, independent(self.SENTENCES, others))

    @pytest.mark.parametrize(
        ("negatives", "shares"),
        [
            ("bm25", {"Gamma": 1, "Twin": 1, "Kappa": 1}),
            ("in_links", {"Gamma": 2, "Delta": 1, "Kappa": 1}),
        ],
    )
    def test_other_negatives(self, orchard, negatives, shares):
        example = orchard.examples("wlp")["Beta",]
        found = draws(orchard.source, "wlp", example, 400, negatives=negatives)
        counts = Counter(negative for _, _, negative in texts_of(found))
        assert agrees(counts, passages_of(**shares))

    @pytest.mark.parametrize(("allowed", "others"), [(False, {"Gamma", "Kappa"}), (True, None)])
    def test_pages_like_that_of_the_query(self, orchard, monkeypatch, allowed, others):
        """Twin is taken for a near-duplicate of Beta, whose sentence is the query."""
        alike = {orchard.pages["Beta"], orchard.pages["Twin"]}
        find_alike(monkeypatch, alike)
        options = {"alike_negatives": "allowed"} if allowed else {}
        example = orchard.examples("wlp")["Beta",]
        found = draws(orchard.source, "wlp", example, 60, negatives="bm25", **options)
        titles = {page: title for title, page in orchard.pages.items()}
        drawn = {titles[group.negatives[0].document_origin.page] for group in found}
        assert drawn == (others or {"Gamma", "Twin", "Kappa"})


class TestHLP:
    """Alpha and Beta link to each other; Alpha also links to Gamma and Delta, Epsilon to Beta and
    Kappa, and Headless, which is no document, to Alpha."""

    @pytest.fixture
    def draw(self, orchard):
        examples = orchard.examples("hlp")
        return lambda name, count=600, **more: list(
            texts_of(draws(orchard.source, "hlp", examples[name,], count, **more))
        )

    def test_examples(self, orchard):
        """Alpha for its link with Beta, the others for a page that links to two."""
        examples = orchard.examples("hlp")
        assert set(examples) == {("Alpha",), ("Beta",), ("Gamma",), ("Delta",), ("Kappa",)}
        table = orchard.source.examples["hlp"]
        mutual = {name[0]: table.array(id, "mutual").tolist() for name, id in examples.items()}
        alpha, beta = orchard.pages["Alpha"], orchard.pages["Beta"]
        assert mutual == {"Alpha": [beta], "Beta": [alpha], "Gamma": [], "Delta": [], "Kappa": []}

    def test_a_dual_link_or_a_co_mention(self, draw):
        """Half of Beta's positives are Alpha; the others stand beside it on Alpha or on Epsilon."""
        found = draw("Beta", negatives="bm25")
        related = passages_of(Alpha=4, Gamma=1, Delta=1, Kappa=2)
        counts = Counter((query, positive) for query, positive, _ in found)
        assert agrees(counts, independent(passages_of(Beta=1), related))

    def test_no_relation(self, draw):
        """Epsilon links to Beta, and Gamma, Delta and Kappa share a page that does."""
        counts = Counter((query, other) for query, _, other in draw("Beta", negatives="bm25"))
        assert agrees(counts, independent(passages_of(Beta=1), passages_of(Twin=1)))

    def test_other_negatives(self, draw):
        found = draw("Gamma", negatives="bm25", count=500)
        counts = Counter(negative for _, _, negative in found)
        assert agrees(counts, passages_of(Epsilon=1, Twin=1, Kappa=1))
        assert agrees(Counter(p for _, p, _ in found), passages_of(Beta=1, Delta=1))
        for options in ({}, {"negatives": "in_links"}):
            found = draw("Gamma", count=20, **options)
            assert {negative for _, _, negative in found} == {LEADS["Kappa"]}


KINDS = ("mutual", "one_way")


class TestPHP:
    @pytest.fixture
    def draw(self, orchard):
        examples = orchard.examples("php")
        return lambda name, count=700, **more: list(
            texts_of(draws(orchard.source, "php", examples[name,], count, **more))
        )

    def test_examples(self, orchard):
        """All documents with a link to another or from one."""
        table, titles = orchard.source.examples["php"], {p: t for t, p in orchard.pages.items()}
        grades = {
            name[0]: [{titles[page] for page in table.array(id, kind)} for kind in KINDS]
            for name, id in orchard.examples("php").items()
        }
        assert grades == {
            "Alpha": [{"Beta"}, {"Gamma", "Delta"}],
            "Beta": [{"Alpha"}, {"Epsilon"}],
            "Gamma": [set(), {"Alpha"}],
            "Delta": [set(), {"Alpha"}],
            "Epsilon": [set(), {"Beta", "Kappa"}],
            "Kappa": [set(), {"Epsilon"}],
        }

    @pytest.mark.parametrize(
        ("options", "unlinked"),
        [({}, ("Kappa",)), ({"negatives": "bm25"}, ("Epsilon", "Twin", "Kappa"))],
    )
    def test_neighboring_grades(self, draw, options, unlinked):
        """Alpha's mutual link against its one-way links, or one of these against pages without."""
        mutual, one_way = passages_of(Beta=1), passages_of(Gamma=1, Delta=1)
        chances = Counter()
        none = passages_of(**dict.fromkeys(unlinked, 1))
        for better, worse in ((mutual, one_way), (one_way, none)):
            for texts, chance in independent(better, worse).items():
                chances[texts] += chance / 2
        found = draw("Alpha", **options)
        assert agrees(Counter((positive, negative) for _, positive, negative in found), chances)
        assert agrees(Counter(query for query, _, _ in found), passages_of(Alpha=1))

    def test_one_grade(self, draw):
        """Gamma has no mutual link. Of the pages without a link, Beta has two in-links."""
        counts = Counter((positive, negative) for _, positive, negative in draw("Gamma"))
        none = passages_of(Beta=2, Delta=1, Kappa=1)
        assert agrees(counts, independent(passages_of(Alpha=1), none))
