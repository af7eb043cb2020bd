"""What HARP's tasks draw by default, by χ² against distributions worked by hand."""

import math
from collections import Counter
from itertools import permutations

import pytest
from chi_square import agrees
from orchard_wiki import draws

from harp_plugin.errors import HarpError
from harp_plugin.tasks.source import BuildSource

HARP = ["rqp", "qdm", "rdp", "acm"]
OLD_APPLE = {"old": 4, "tree": 16, "bears": 2, "red": 1, "fruit": 12, "quickly": 1}
"""β of the first anchor's sentence in 64ths, without ``the`` and without apple."""


def shares(weights):
    return {word: n / sum(weights.values()) for word, n in weights.items()}


def in_order(weights, size):
    """The chance of each sequence of words drawn one after the other without replacement."""
    found = {}
    for sequence in permutations(weights, size):
        chance, left = 1.0, sum(weights.values())
        for word in sequence:
            chance, left = chance * weights[word] / left, left - weights[word]
        found[sequence] = chance
    return found


def at_least_one(most):
    """A zero-truncated Poisson(3) of which no more than ``most`` words can be drawn."""
    norm = 1 - math.exp(-3)
    chances = Counter()
    for x in range(1, 60):
        chances[min(x, most)] += 3**x * math.exp(-3) / math.factorial(x) / norm
    return chances


def names(build, group):
    pages = {page: name for name, page in build.pages.items()}
    return tuple(pages[pair.document_origin.page] for pair in group.members)


class TestQuery:
    """S1 of RQP and QDM."""

    def draw(self, source, build, count, **options):
        options = {"rqp_negative_words": "page", **options}
        drawn = draws(source, "rqp", build.anchors[0, 0], count, **options)
        return [group.positive.query for group in drawn if group is not None]

    def test_words(self, source, hand_build):
        """Weights normalized plainly, none twice, none of the anchor's, as far as there are any."""
        queries = [query.split() for query in self.draw(source, hand_build, 1300)]
        assert {words[0] for words in queries} == {"apple"}
        drawn = [tuple(words[1:]) for words in queries]
        assert agrees(Counter(map(len, drawn)), at_least_one(len(OLD_APPLE)))
        assert agrees(Counter(words[0] for words in drawn), shares(OLD_APPLE))
        for size in (2, 3):
            counts = Counter(words for words in drawn if len(words) == size)
            assert agrees(counts, in_order(OLD_APPLE, size))

    def test_anchor_words_in_query(self, source, hand_build):
        queries = self.draw(source, hand_build, 400, anchor_words_in_query="kept")
        first = Counter(query.split()[1] for query in queries)
        assert agrees(first, shares({**OLD_APPLE, "apple": 12}))

    @pytest.mark.parametrize(("option", "expected"), [(0, {2}), (1, {2}), (2, set())])
    def test_min_drawn_words(self, source, hand_build, option, expected):
        """The sentence "Sweet apple" holds one word beside its anchor."""
        anchor = hand_build.anchors[2, 0]
        options = {"rqp_negative_words": "page", "min_drawn_words": option}
        found = filter(None, draws(source, "rqp", anchor, 50, **options))
        assert {len(group.positive.query.split()) for group in found} == expected

    def test_an_anchor_alone(self, source, hand_build, tmp_path):
        (tmp_path / "list").write_text("sweet")
        options = {"stop_words": str(tmp_path / "list"), "rqp_negative_words": "page"}
        anchor = hand_build.anchors[2, 0]
        assert draws(source, "rqp", anchor, 20, **options) == [None] * 20
        alone = draws(source, "rqp", anchor, 20, **options, min_drawn_words=0)
        assert {group.positive.query for group in alone} == {"apple"}

    def test_min_drawn_words_below_0(self):
        with pytest.raises(HarpError, match="--min-drawn-words is -1: it must be at least 0"):
            draws(None, "rqp", 0, 0, min_drawn_words=-1)

    @pytest.mark.parametrize(
        ("case", "anchor", "word"),
        [("lower", "salt", "rusty"), ("text", "Salt", "Rusty"), ("lower_words", "Salt", "rusty")],
    )
    def test_query_case(self, linked_source, linked_build, case, anchor, word):
        """Every member is written alike; Salt is an anchor, Rusty a word of a sentence."""
        pairs = [
            pair
            for group in draws(
                linked_source, "rqp", linked_build.anchors[0, 0], 100, query_case=case
            )
            if group is not None
            for pair in group.members
        ]
        queries = [pair.query for pair in pairs]
        assert any(query.split()[0] == anchor for query in queries)
        if case == "lower":
            assert all(query == query.lower() for query in queries)
        kept = draws(linked_source, "rqp", linked_build.anchors[26, 0], 100, query_case=case)
        texts = {pair.query for group in filter(None, kept) for pair in group.members}
        assert any(word in text.split() for text in texts)


class TestRQP:
    def test_a_query_of_another_anchor(self, linked_source, linked_build):
        """Cider and salt stand on the page, and have one word as apple has.

        Green tree has two words; the other three lead to apple: itself, elsewhere, and by a link of
        its sentence that was dropped. Beside cider stand three words, beside salt six.
        """
        drawn = draws(linked_source, "rqp", linked_build.anchors[0, 0], 2000)
        pairs = [[pair.query.split() for pair in group.members] for group in drawn]
        assert all(len(better) == len(worse) for better, worse in pairs)
        short = Counter(worse[0] for _, worse in pairs if len(worse) <= 4)
        assert agrees(short, {"cider": 1 / 2, "salt": 1 / 2})
        assert {worse[0] for _, worse in pairs if len(worse) > 4} == {"salt"}
        first = Counter(worse[1] for _, worse in pairs if worse[0] == "cider" and len(worse) == 2)
        assert agrees(first, shares({"sweet": 8, "barrels": 24, "rests": 0, "rest": 32}))
        page = linked_build.pages["APPLE"]
        for group in drawn:
            assert {pair.document_origin.page for pair in group.members} == {page}
            assert group.negatives[0].query_origin.page == page

    def test_as_many_words_in_the_anchor(self, linked_source, linked_build):
        """Fruits leads to apple from another page, by one word; Big red barn to tree, by three."""
        drawn = draws(linked_source, "rqp", linked_build.anchors[26, 0], 150)
        assert {g.negatives[0].query.split()[0] for g in filter(None, drawn)} == {"cider", "salt"}

    def test_anchors_near_the_page(self, linked_source, linked_build):
        """No anchor stands on tree: apple, its neighbor, is linked from iron and from apple."""
        drawn = [g for g in draws(linked_source, "rqp", linked_build.anchors[5, 0], 120) if g]
        standing = Counter(group.negatives[0].query_origin.page for group in drawn)
        names_of = {page: name for name, page in linked_build.pages.items()} | {99: "99"}
        assert {names_of[page] for page in standing} == {"APPLE", "IRON", "99"}
        for group in drawn:
            other = linked_source.anchor(group.negatives[0].query_origin.anchor)
            assert other.page != linked_build.pages["TREE"]
            assert "TREE" not in {
                names_of[page] for page in linked_source.pages_linked_by(other.sentence)
            }

    def test_no_anchor_near_the_page(self, source, hand_build):
        """All sentences stand on one page, to which none links."""
        assert draws(source, "rqp", hand_build.anchors[0, 0], 20) == [None] * 20


class TestQDM:
    def test_each_ordered_pair_of_pages_is_as_likely(self, source, hand_build):
        """Apple leads to apple (3 times), records (2) and cider (1); any of its anchors gives them.

        No anchor of records may have cider as the negative, for its sentence links to cider too.
        """
        drawn = draws(source, "qdm", hand_build.anchors[4, 0], 700)
        pairs = [("APPLE", "RECORDS"), ("APPLE", "CIDER"), ("RECORDS", "APPLE")]
        pairs += [("CIDER", "APPLE"), ("CIDER", "RECORDS")]
        counts = Counter(names(hand_build, group) for group in drawn)
        assert agrees(counts, dict.fromkeys(pairs, 1 / 5))
        apples = Counter(
            group.positive.query_origin.anchor
            for group in drawn
            if names(hand_build, group)[0] == "APPLE"
        )
        anchors = [hand_build.anchors[place] for place in ((0, 0), (2, 0), (3, 0))]
        assert agrees(apples, dict.fromkeys(anchors, 1 / 3))
        assert all(group.positive.query == group.negatives[0].query for group in drawn)


class TestRDP:
    def chances(self, *pairs):
        """Sentence 0's, drawn by eq. 11 without replacement, up to 20 times until one of these."""
        p = shares({"APPLE": 16, "TREE": 8, "FRUIT": 12})
        once = {(a, b): p[a] * p[b] * (1 / (1 - p[a]) + 1 / (1 - p[b])) for a, b in pairs}
        never = (1 - sum(once.values())) ** 20
        return {pair: share * (1 - never) for pair, share in shares(once).items()} | {None: never}

    def test_agreement(self, source, hand_build):
        """The layer before weighs tree more than fruit: 14 against 12; apple more than both."""
        drawn = draws(source, "rdp", hand_build.sentence(0), 600)
        counts = Counter(group and names(hand_build, group) for group in drawn)
        assert agrees(counts, self.chances(("APPLE", "FRUIT"), ("APPLE", "TREE")))

    def test_only_with_agreement_a_pair_is_drawn_again(self, write_build):
        """p(a) = 1/2, 1/4, 1/4: of all draws, 1/6 are the tie of tree and fruit."""
        anchors = [(name.lower(), name, [8] * 4) for name in ("TREE", "FRUIT")]
        anchors = [("Apple", "APPLE", [8] * 4), *anchors]
        text = ("", "Apple tree bears fruit", [16, 8, 8, 8], anchors)
        build, source = write_build(more={20: text})
        for agreement, ties in ((True, 0), (False, 1 / 6)):
            options = {"rdp_agreement": agreement, "rdp_max_in_link_ratio": 0}
            drawn = draws(source, "rdp", build.sentence(20), 500, **options)
            counts = Counter(group and names(build, group) for group in drawn)
            pairs = dict.fromkeys([("APPLE", "FRUIT"), ("APPLE", "TREE")], (1 - ties) / 2)
            assert agrees(counts, pairs | ({None: ties} if ties else {}))

    @pytest.mark.parametrize(
        ("ratio", "pairs"),
        [
            (4.5, [("APPLE", "FRUIT"), ("APPLE", "TREE"), ("FRUIT", "TREE")]),
            (4.4, [("APPLE", "TREE"), ("FRUIT", "TREE")]),
            (2, [("FRUIT", "TREE")]),
        ],
    )
    def test_ratio_of_in_links(self, hand_build, write_build, ratio, pairs):
        """Apple has 9 in-links, tree 4 and fruit 2: 2.25, 2 and 4.5 times as many."""
        counts = {"APPLE": 9, "TREE": 4, "FRUIT": 2}
        in_links = {page: counts.get(name, 1) for name, page in hand_build.pages.items()}
        build, source = write_build(in_links=in_links)
        options = {"rdp_agreement": False, "rdp_max_in_link_ratio": ratio}
        drawn = draws(source, "rdp", build.sentence(0), 500, **options)
        counts = Counter(group and names(build, group) for group in drawn)
        assert agrees(counts, self.chances(*pairs))

    def test_in_links_that_differ_too_much(self, hand_build, write_build):
        in_links = {page: 5**n for n, page in enumerate(hand_build.pages.values())}
        build, source = write_build(in_links=in_links)
        assert draws(source, "rdp", build.sentence(0), 20) == [None] * 20

    def test_a_tie_in_the_layer_before_is_no_agreement(self, write_build):
        build, source = write_build(layer_before={(6, 0): 20})
        assert draws(source, "rdp", build.sentence(6), 20) == [None] * 20
        assert None not in draws(source, "rdp", build.sentence(6), 20, rdp_agreement=False)

    def test_words_that_no_layer_weighed(self, write_build):
        """By a language model: there is nothing to agree with."""
        build, source = write_build(layer_before={(0, place): math.nan for place in range(3)})
        assert None not in draws(source, "rdp", build.sentence(0), 50)


class TestACM:
    def test_negatives_of_the_same_article(self, linked_source, linked_build):
        """Its other links; no page of the sentence, of a dropped link, or of apple elsewhere."""
        drawn = draws(linked_source, "acm", linked_build.sentence(0), 1500)
        article = {"IRON", "GOLD", *(f"SPOT{n}" for n in range(12))}
        expected = Counter()
        for first, also in (("apple", set()), ("tree", {"RECORDS", "CIDER"})):
            share = 1 / 3 if first == "apple" else 2 / 3
            for page in article | also:
                expected[page] += share / len(article | also)
        counts = Counter(names(linked_build, group)[1] for group in drawn)
        assert agrees(counts, expected)
        assert all(group.positive.query == group.negatives[0].query for group in drawn)

    def test_words_without_the_anchor(self, source, hand_build):
        drawn = draws(source, "acm", hand_build.sentence(0), 600)
        queries = [group.positive.query.split() for group in drawn]
        first = Counter(words[1] for words in queries if words[0] == "apple")
        assert agrees(first, shares({"sweet": 16, "fruit": 4, "tree": 6}))

    def test_negatives_by_their_in_links(self, hand_build, write_build):
        """An article, about gold, whose only links are those of the sentence."""
        text = ("GOLD", "Bright iron salt mine", [8] * 4)
        anchors = [("iron", "IRON", [8] * 4), ("salt", "SALT", [8] * 4)]
        counts = {name: 1 + number for number, name in enumerate(hand_build.pages)}
        build, source = write_build(
            more={20: (*text, anchors)},
            in_links={hand_build.pages[name]: n for name, n in counts.items()},
        )
        drawn = draws(source, "acm", build.sentence(20), 800)
        never = ("GOLD", "IRON", "SALT")
        expected = shares({name: n for name, n in counts.items() if name not in never})
        assert agrees(Counter(names(build, group)[1] for group in drawn), expected)

    def test_no_page_like_that_of_the_words(self, linked_source, linked_build, monkeypatch):
        """Gold is taken for a near-duplicate of the page of apple."""
        both = {linked_build.pages["APPLE"], linked_build.pages["GOLD"]}
        monkeypatch.setattr(
            BuildSource,
            "are_alike",
            lambda self, a, b, options: options.alike_negatives == "excluded" and {a, b} == both,
        )
        for alike, found in (("excluded", {False}), ("allowed", {False, True})):
            example = linked_build.sentence(0)
            drawn = draws(linked_source, "acm", example, 200, alike_negatives=alike)
            of_apple = [g for g in drawn if g.positive.query.startswith("apple ")]
            assert {names(linked_build, group)[1] == "GOLD" for group in of_apple} == found


class TestHardNegatives:
    """Beside sentence 0's apple: no page that the sentence or the text leads to."""

    def negatives(self, build, task, **options):
        """Negatives of groups whose text is the apple of sentence 0."""
        source = BuildSource(build.directory, HARP)
        example = build.anchors[0, 0] if task == "qdm" else build.sentence(0)
        count = 800 if task == "rdp" else 1500  # of the others, apple is in a part
        for group in filter(None, draws(source, task, example, count, **options)):
            positive, negative = names(build, group)
            is_apple = {
                "qdm": group.positive.query_origin.anchor == build.anchors[0, 0],
                "rdp": positive == "APPLE",
                "acm": group.positive.query.startswith("apple "),
            }
            if is_apple[task]:
                assert group.positive.query == group.negatives[0].query
                yield negative

    @pytest.mark.parametrize("task", ["qdm", "rdp", "acm"])
    def test_of_a_search(self, searched_build, task):
        """Of the seven that it found, one is linked beside apple, and to three the text leads."""
        counts = Counter(self.negatives(searched_build, task, negatives="bm25"))
        assert counts.total() > 150
        assert agrees(counts, dict.fromkeys(("SALT", "IRON", "GOLD"), 1 / 3))

    @pytest.mark.parametrize("task", ["qdm", "rdp", "acm"])
    def test_by_in_links(self, hand_build, task):
        """Two anchors lead to iron, one to each other page."""
        counts = Counter(self.negatives(hand_build, task, negatives="in_links"))
        assert agrees(counts, shares({"IRON": 2, "GOLD": 1} | {f"SPOT{n}": 1 for n in range(12)}))
