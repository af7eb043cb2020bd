"""What each task draws, by χ² against distributions worked by hand; every option's effect."""

import math
from collections import Counter
from dataclasses import fields

import pytest
from chi_square import agrees

from harp_plugin.errors import HarpError
from harp_plugin.sampling import generator
from harp_plugin.tasks import PRESETS, TASKS, DrawOptions, Pair
from harp_plugin.tasks.source import BuildSource

OLD_APPLE = {"old": 4, "apple": 12, "tree": 16, "bears": 2, "red": 1, "fruit": 12, "quickly": 1}
"""β of the first anchor's sentence in 64ths, without ``the`` (8)."""
APPLE_PAGE = {"sweet": 16, "fruit": 4, "tree": 6}
"""β of its page without the anchor's word (24) and stop words."""
PAGES = {"APPLE": "Apple is the", "TREE": "Trees", "FRUIT": "Fruit", "RECORDS": "Records"}
PAGES |= {"CIDER": "Cider", "IRON": "Iron", "SALT": "Salt", "GOLD": "Gold"}


def softmax_of(weights, factor=4.0):
    powers = {word: math.exp(factor * n / 64) for word, n in weights.items()}
    return {word: power / sum(powers.values()) for word, power in powers.items()}


def poisson(words_more=0):
    norm = 1 - math.exp(-3)
    return {x + words_more: 3**x * math.exp(-3) / math.factorial(x) / norm for x in range(1, 40)}


EARLIER = {
    "normalization": "softmax",
    "replacement": True,
    "stop_words": "scikit-learn",
    "anchor_words_in_query": "kept",
    "query_case": "lower_words",
    "rqp_negative_words": "mirrored",
    "qdm_negatives": "drawn",
    "rdp_agreement": False,
    "rdp_max_in_link_ratio": 0,
    "alike_negatives": "allowed",
    "acm_negative_page": "not_linked",
}
"""What the options were by default before; `test_default_draws.py` has the present defaults."""


def groups(source, task, example, count, **options):
    """Groups drawn from one example, each with a generator of its own; None where it gives none."""
    chosen = DrawOptions(**{**EARLIER, **options})
    drawer = TASKS[task]()
    return [
        drawer.draw(example, generator("test", task, number), source, chosen)
        for number in range(count)
    ]


def page_of(document):
    names = [name for name, start in PAGES.items() if document.startswith(start)]
    return names[0] if names else document


class TestRQP:
    def draw(self, source, hand_build, count=600, **options):
        options = {"rqp_negative_words": "page", **options}
        found = groups(source, "rqp", hand_build.anchors[0, 0], count, **options)
        return [group for group in found if group is not None]

    def test_words_of_the_page(self, source, hand_build):
        """S1 by eq. 1 to 4 with T = 1/heads, S2 by eq. 5 with as many words, the linked page."""
        found = self.draw(source, hand_build, 1200)
        assert len(found) == 1200
        positive = [group.positive.query.split() for group in found]
        negative = [pair.query.split() for group in found for pair in group.negatives]
        assert {words[0] for words in positive} == {"Apple"}
        sampled = Counter(word for words in positive for word in words[1:])
        assert agrees(sampled, softmax_of(OLD_APPLE))
        assert agrees(Counter(map(len, positive)), poisson(1))
        assert [len(words) for words in negative] == [len(words) for words in positive]
        assert agrees(Counter(word for words in negative for word in words), softmax_of(APPLE_PAGE))
        documents = {pair.document for group in found for pair in group.members}
        assert documents == {hand_build.lead("APPLE")}

    @pytest.mark.parametrize(("option", "factor"), [("1", 1), ("0.125", 8), ("1/heads", 4)])
    def test_temperature(self, source, hand_build, option, factor):
        found = self.draw(source, hand_build, 1700, temperature=option)
        sampled = Counter(w for group in found for w in group.positive.query.split()[1:])
        assert agrees(sampled, softmax_of(OLD_APPLE, factor))
        assert not agrees(sampled, softmax_of(OLD_APPLE, 2 * factor))

    def test_normalization(self, source, hand_build):
        found = self.draw(source, hand_build, normalization="linear")
        sampled = Counter(w for group in found for w in group.positive.query.split()[1:])
        assert agrees(sampled, {word: n / 48 for word, n in OLD_APPLE.items()})

    def test_replacement(self, source, hand_build):
        for group in self.draw(source, hand_build, 150, replacement=False):
            words = group.positive.query.split()[1:]
            assert len(set(words)) == len(words) <= len(OLD_APPLE)
        repeated = self.draw(source, hand_build, 50, replacement=True)
        queries = [group.positive.query.split()[1:] for group in repeated]
        assert any(len(set(words)) < len(words) for words in queries)

    def test_stop_words(self, source, hand_build, tmp_path):
        found = self.draw(source, hand_build, stop_words="none")
        sampled = Counter(w for group in found for w in group.positive.query.split()[1:])
        assert agrees(sampled, softmax_of({**OLD_APPLE, "the": 8}))
        (tmp_path / "list").write_text("old\ntree")
        found = self.draw(source, hand_build, 300, stop_words=str(tmp_path / "list"))
        words = {w for group in found for w in group.positive.query.split()[1:]}
        assert words == {"the", *OLD_APPLE} - {"old", "tree"}

    def test_negative_query_length(self, source, hand_build):
        """The paper's S2 has a length of its own."""
        found = self.draw(source, hand_build, negative_query_length="drawn")
        pairs = [[len(pair.query.split()) for pair in group.members] for group in found]
        assert len(found) == 600
        assert agrees(Counter(negative for _, negative in pairs), poisson())
        longer = sum(positive > negative for positive, negative in pairs) / len(pairs)
        expected = sum(p * q for x, p in poisson(1).items() for y, q in poisson().items() if x > y)
        assert abs(longer - expected) < 0.04  # the shortcut that equal lengths take away

    def test_anchor_words_in_negative(self, source, hand_build):
        found = self.draw(source, hand_build, anchor_words_in_negative="zero_weight")
        words = Counter(w for group in found for w in group.negatives[0].query.split())
        assert agrees(words, softmax_of({**APPLE_PAGE, "apple": 0}))

    def test_mirrored(self, source, hand_build):
        """S1 as ever; each word becomes one of its kind, equal ones equal ones.

        Of the page's words sweet, fruit, tree and apple S1 may leave too few; the anchor is apple.
        """
        held, lead = {"apple", "fruit", "tree"}, {"apple", "sweet", "fruit", "tree"}
        anchor = hand_build.anchors[0, 0]
        of_page = groups(source, "rqp", anchor, 900, rqp_negative_words="page")
        mirrored, seen = groups(source, "rqp", anchor, 900), Counter()
        for paged, group in zip(of_page, mirrored, strict=True):
            first = paged.positive.query.lower().split()
            assert (group is None) == ({"fruit", "tree"} <= set(first))
            if group is None:
                continue
            assert group.positive == paged.positive
            assert group.negatives[0].document == group.positive.document
            second = group.negatives[0].query.lower().split()
            becomes = dict(zip(first, second, strict=True))
            assert second == [becomes[word] for word in first]
            assert len(set(becomes.values())) == len(becomes)
            assert not set(second) & set(first)
            for word, other in becomes.items():
                assert (other in lead) == (word in held)
            if not {"fruit", "tree"} & set(first):
                seen[becomes["apple"]] += 1
        assert agrees(seen, softmax_of(APPLE_PAGE))

    def test_mirrored_stop_words_stay(self, source, hand_build, tmp_path):
        """With big among the stop words, it stands where it stood."""
        (tmp_path / "list").write_text("big")
        anchor = hand_build.anchors[6, 0]
        options = {"stop_words": str(tmp_path / "list")}
        drawn = [g for g in groups(source, "rqp", anchor, 50, **options) if g is not None]
        assert drawn
        for group in drawn:
            first, second = (pair.query.split() for pair in group.members)
            assert first[0] == second[0] == "Big"
            assert not set(first[1:]) & set(second[1:])

    def test_an_anchor_beyond_the_limit_gives_nothing(self, cut_build):
        source = BuildSource(cut_build.directory, ["rqp", "qdm"])
        for task in ("rqp", "qdm"):
            assert groups(source, task, cut_build.anchors[2, 0], 3) == [None] * 3


class TestQDM:
    @pytest.mark.parametrize(
        ("anchor", "page", "negatives"),
        [
            ((0, 0), "APPLE", {"RECORDS": 2 / 3, "CIDER": 1 / 3}),
            ((4, 0), "CIDER", {"APPLE": 3 / 5, "RECORDS": 2 / 5}),
            ((1, 1), "RECORDS", {"APPLE": 3 / 4, "CIDER": 1 / 4}),
        ],
    )
    def test_negatives_by_their_occurrences(self, source, hand_build, anchor, page, negatives):
        found = groups(source, "qdm", hand_build.anchors[anchor], 500)
        assert {page_of(group.positive.document) for group in found} == {page}
        assert agrees(Counter(page_of(g.negatives[0].document) for g in found), negatives)
        assert all(group.positive.query == group.negatives[0].query for group in found)

    def test_query_is_that_of_rqp(self, source, hand_build):
        found = groups(source, "qdm", hand_build.anchors[0, 0], 500)
        sampled = Counter(w for group in found for w in group.positive.query.split()[1:])
        assert agrees(sampled, softmax_of(OLD_APPLE))

    def test_qdm_negatives(self, source, hand_build):
        """Twelve anchors of one text lead to a page each."""
        found = groups(source, "qdm", hand_build.anchors[8, 0], 600, qdm_negatives="drawn")
        counts = Counter(group.negatives[0].document for group in found)
        assert agrees(counts, {f"Spot number{n}": 1 / 11 for n in range(1, 12)})

    def test_examples(self, source, hand_build):
        ambiguous = {(0, 0), (1, 0), (1, 1), (2, 0), (3, 0), (4, 0)} | {
            (n, 0) for n in range(8, 20)
        }
        assert set(source.examples["qdm"].ids) == {hand_build.anchors[a] for a in ambiguous}


class TestRDP:
    def test_a_pair_by_importance_without_replacement(self, source, hand_build):
        """p(a) = softmax(4 η); the heavier of two is positive; the sentence is the query."""
        found = groups(source, "rdp", hand_build.sentence(0), 1000)
        assert {pair.query for group in found for pair in group.members} == {
            "The old Apple tree bears red apple fruit quickly"
        }
        p = softmax_of({"APPLE": 16, "TREE": 8, "FRUIT": 12})
        heavier = [("APPLE", "FRUIT"), ("APPLE", "TREE"), ("FRUIT", "TREE")]
        chances = {(a, b): p[a] * p[b] * (1 / (1 - p[a]) + 1 / (1 - p[b])) for a, b in heavier}
        counts = Counter(tuple(page_of(pair.document) for pair in g.members) for g in found)
        assert agrees(counts, chances)

    @pytest.mark.parametrize(
        ("sentence", "pair"), [(6, ("TREE", "IRON")), (1, ("RECORDS", "CIDER"))]
    )
    def test_weights_of_anchors(self, source, hand_build, sentence, pair):
        """The sum over the words of an anchor, and over repeated anchors."""
        found = [g for g in groups(source, "rdp", hand_build.sentence(sentence), 50) if g]
        assert {tuple(page_of(p.document) for p in group.members) for group in found} == {pair}

    def test_ties_give_nothing(self, source, hand_build):
        assert groups(source, "rdp", hand_build.sentence(5), 50) == [None] * 50

    def test_anchors_beyond_the_limit_are_left_out(self, cut_build):
        source = BuildSource(cut_build.directory, ["rdp"])
        found = groups(source, "rdp", cut_build.sentence(0), 50)
        assert {page_of(p.document) for g in found for p in g.members} == {"APPLE", "TREE"}
        assert groups(source, "rdp", cut_build.sentence(5), 5) == [None] * 5

    def test_no_second_anchor_has_a_weight(self, source, hand_build):
        found = groups(source, "rdp", hand_build.sentence(7), 20, normalization="linear")
        assert found == [None] * 20
        assert None not in groups(source, "rdp", hand_build.sentence(7), 20)


class TestACM:
    def test_ordered_pair_and_queries(self, source, hand_build):
        found = groups(source, "acm", hand_build.sentence(0), 700)
        counts = Counter((g.positive.query.split()[0], page_of(g.positive.document)) for g in found)
        anchors = {"Apple": "APPLE", "tree": "TREE", "fruit": "FRUIT"}
        pairs = [(a, q) for a, p in anchors.items() for q in anchors.values() if p != q]
        assert agrees(counts, dict.fromkeys(pairs, 1 / 6))
        queries = [g.positive.query.split() for g in found]
        sampled = Counter(w for words in queries if words[0] == "Apple" for w in words[1:])
        assert agrees(sampled, softmax_of({**APPLE_PAGE, "apple": 24}))
        assert agrees(Counter(map(len, queries)), poisson(1))
        assert all(g.positive.query == g.negatives[0].query for g in found)

    def test_repeated_anchors_count_as_often_as_they_stand(self, source, hand_build):
        found = groups(source, "acm", hand_build.sentence(1), 400)
        counts = Counter(page_of(g.positive.document) for g in found)
        assert agrees(counts, {"CIDER": 2 / 3, "RECORDS": 1 / 3})

    def test_acm_negative_page(self, source, hand_build):
        """Uniform over the pages that the sentence does not link to, or over more of them.

        Apple leads to records and cider elsewhere.
        """
        corpus = {hand_build.lead(name) for name in hand_build.pages}
        linked = {hand_build.lead(name) for name in ("APPLE", "TREE", "FRUIT")}
        found = groups(source, "acm", hand_build.sentence(0), 1000)
        apples = {hand_build.lead(name) for name in ("RECORDS", "CIDER")}
        unlinked = corpus - linked
        expected = {page: 2 / 3 / len(unlinked) for page in unlinked}
        for page in unlinked - apples:
            expected[page] += 1 / 3 / len(unlinked - apples)
        assert agrees(Counter(group.negatives[0].document for group in found), expected)
        found = groups(source, "acm", hand_build.sentence(0), 1000, acm_negative_page="any")
        assert all(g.positive.document != g.negatives[0].document for g in found)
        # By symmetry each linked page is excluded equally often.
        each = 2 / 3 / (len(corpus) - 1)
        chances = dict.fromkeys(linked, each)
        chances |= dict.fromkeys(unlinked, (1 - 3 * each) / len(unlinked))
        assert agrees(Counter(group.negatives[0].document for group in found), chances)

    def test_no_page_is_left_as_negative(self, source):
        from harp_plugin.tasks.passages import draw_page

        assert draw_page(generator("x"), source.documents, set(source.documents.tolist())) is None
        all_but_one = set(source.documents[1:].tolist())
        assert draw_page(generator("x"), source.documents, all_but_one) == source.documents[0]


@pytest.mark.parametrize("preset", PRESETS)
def test_groups_of_every_preset(linked_source, preset):
    source, options = linked_source, DrawOptions(preset=preset)
    seen = Counter()
    for task in ("rqp", "qdm", "rdp", "acm"):
        for example in source.examples[task].ids.tolist():
            for number in range(20):
                group = TASKS[task]().draw(example, generator(number, example), source, options)
                if group is None:
                    continue
                seen[task] += 1
                (negative,) = group.negatives
                assert group.task == task and group.members == (group.positive, negative)
                assert all(
                    isinstance(pair, Pair) and pair.query and pair.document
                    for pair in group.members
                )
                assert group.positive != negative
                is_same = group.positive.document == negative.document
                assert is_same == (task == "rqp")
    assert min(seen.values()) > 50


PRESET_TABLE = {
    # Option: default, paper; from the specification's table.
    "normalization": ("linear", "softmax"),
    "temperature": ("1/heads", "1"),
    "replacement": (False, True),
    "stop_words": ("english", "scikit-learn"),
    "anchor_words_in_query": ("removed", "kept"),
    "min_drawn_words": (1, 1),
    "query_case": ("lower", "lower_words"),
    "rqp_negative_words": ("anchors_on_page", "page"),
    "negative_query_length": ("equal", "drawn"),
    "anchor_words_in_negative": ("removed", "zero_weight"),
    "qdm_negatives": ("pair_first", "drawn"),
    "rdp_agreement": (True, False),
    "rdp_max_in_link_ratio": (4, 0),
    "acm_negative_page": ("same_article", "any"),
    "prop_words": ("language_model", "language_model"),
    "prop_mu": ("mean_length", "mean_length"),
    "prop_min_count": ("auto", "50"),
    "prop_subsampling": (1e-5, 1e-5),
    "rwi_negatives": ("others", "any"),
    "negatives": ("task", "task"),
    "alike_negatives": ("excluded", "allowed"),
    "negatives_per_group": (4, 8),
    "anchor_query": ("anchor", "anchor"),
    "anchors_per_page": (5, 5),
    "functional_anchors": ("drop", "drop"),
    "query_like_share": (1.0, 1.0),
    "document_fields": (None, None),
    "mixing": ("uniform", "uniform"),
    "redraw_each_epoch": (True, False),
}


@pytest.mark.parametrize(("column", "preset"), list(enumerate(PRESETS)))
def test_presets_set_every_option(column, preset):
    options = DrawOptions(preset=preset)
    names = {option.name for option in fields(DrawOptions)} - {"preset"}
    assert names == set(PRESET_TABLE)
    assert {name: getattr(options, name) for name in names} == {
        name: values[column] for name, values in PRESET_TABLE.items()
    }


def test_an_option_wins_over_its_preset():
    options = DrawOptions(preset="paper", query_case="text", redraw_each_epoch=True)
    assert (options.query_case, options.redraw_each_epoch) == ("text", True)
    assert options.normalization == "softmax"


@pytest.mark.parametrize(
    "wrong",
    [{"preset": "ours"}, {"query_case": "long"}, {"mixing": "even"}],
)
def test_unknown_values(wrong):
    with pytest.raises(HarpError, match="must be one of"):
        DrawOptions(**wrong)


@pytest.mark.parametrize("ratio", [-1, 0.5, math.nan])
def test_wrong_ratio_of_in_links(ratio):
    with pytest.raises(HarpError, match=r"--rdp-max-in-link-ratio is "):
        DrawOptions(rdp_max_in_link_ratio=ratio)


@pytest.mark.parametrize("temperature", ["0", "-1", "warm", "nan"])
def test_wrong_temperature(temperature):
    with pytest.raises(HarpError, match="temperature"):
        DrawOptions(temperature=temperature).temperature_for(4)


def test_missing_stop_list(source, hand_build):
    with pytest.raises(HarpError, match="stop list /no/such cannot be read"):
        groups(source, "rqp", hand_build.anchors[0, 0], 1, stop_words="/no/such")
