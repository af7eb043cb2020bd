"""PROP's language model and word sets, by χ² and exact fractions worked from the leads."""

import math
import re
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from chi_square import agrees
from orchard_wiki import LEADS, PAGES, draws

from harp_plugin.errors import HarpError
from harp_plugin.sampling import generator
from harp_plugin.tasks import DrawOptions
from harp_plugin.weights import collection

STOPPED = {"a", "an", "and", "is", "it", "of", "the", "to", "but", "no", "or"}


def tokens(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def article(title):
    """The text of a page without headings, markup and what is listed under "See also"."""
    text = PAGES[title].partition("== See also ==")[0]
    text = re.sub(r"\[\[(?:[^]|]*\|)?([^]]*)\]\]", r"\1", text)
    return "\n".join(line for line in text.splitlines() if line and not line.startswith("="))


ARTICLES = {title: article(title) for title in LEADS}


class ByHand:
    """The language model of one document, a lead by default, by its definition and in fractions.

    V is what occurs often enough and is no stop word; |D|, μ and P(w|C) count words of V only.
    """

    def __init__(self, title, least=1, threshold=0.0, mu=None, texts=LEADS):
        counts = Counter(word for text in texts.values() for word in tokens(text))
        self.counts = {w: n for w, n in counts.items() if n >= least and w not in STOPPED}
        total = sum(self.counts.values())
        self.tf = Counter(word for word in tokens(texts[title]) if word in self.counts)
        self.length = self.tf.total()
        self.mu = Fraction(total, len(texts)) if mu is None else Fraction(mu)
        self.background = {word: Fraction(n, total) for word, n in self.counts.items()}
        self.keep = {
            word: math.sqrt(min(1, threshold / (n / total))) if threshold else 1
            for word, n in self.counts.items()
        }

    def probability(self, word):
        """P(w|D), eq. 3."""
        return (self.tf[word] + self.mu * self.background[word]) / (self.length + self.mu)

    def likelihood(self, words):
        """P(S|D), eq. 2."""
        return math.prod((self.probability(word) for word in words), start=Fraction(1))

    def chances(self):
        """Of drawing each word of the vocabulary."""
        kept = {word: float(self.probability(word)) * self.keep[word] for word in self.counts}
        return {word: chance / sum(kept.values()) for word, chance in kept.items()}


PRESETS = {
    "default": {"threshold": 1e-5},
    "paper": {"threshold": 1e-5, "least": 50},
}
OPTIONS = [
    *(({"preset": name}, by_hand) for name, by_hand in PRESETS.items()),
    ({"prop_subsampling": 0.0}, {}),
    ({"prop_subsampling": 0.05}, {"threshold": 0.05}),  # which keeps rare words always
    ({"prop_mu": "0"}, {"threshold": 1e-5, "mu": 0}),
    ({"prop_mu": "2.5", "prop_subsampling": 0.0}, {"mu": 2.5}),
    ({"prop_min_count": "9", "prop_subsampling": 0.0}, {"least": 9}),
    ({"prop_min_count": "10", "prop_subsampling": 1e-4}, {"least": 10, "threshold": 1e-4}),
]


@pytest.fixture(scope="module")
def stop_list(tmp_path_factory):
    path = tmp_path_factory.mktemp("stop") / "words.txt"
    path.write_text("\n".join(STOPPED))
    return str(path)


@pytest.fixture
def draw(orchard, stop_list):
    examples = orchard.examples("prop")

    def found(title, count=1000, **options):
        options = {"stop_words": stop_list, "document_fields": ["lead"], **options}
        return draws(orchard.source, "prop", examples[title,], count, **options)

    return found


@pytest.fixture
def model(orchard, stop_list):
    return lambda **options: orchard.source.language_model(
        DrawOptions(**{"stop_words": stop_list, "document_fields": ["lead"], **options})
    )


def test_examples(orchard):
    assert set(orchard.examples("prop")) == {(title,) for title in LEADS}


@pytest.mark.parametrize("title", ["Alpha", "Theta", "Beta"])
@pytest.mark.parametrize(("options", "by_hand"), OPTIONS)
def test_words_by_the_documents_language_model(model, options, by_hand, title):
    """P(w|D) · keep(w) over the whole vocabulary."""
    expected, found = ByHand(title, **by_hand), model(**options)
    assert set(found.words) == set(expected.counts)
    drawn = found.document(LEADS[title]).draw(generator("prop", title, str(options)), 40_000)
    assert agrees(Counter(found.words[number] for number in drawn.tolist()), expected.chances())


@pytest.mark.parametrize(("options", "by_hand"), OPTIONS)
def test_likelihood(model, options, by_hand):
    """Eq. 2 and 3."""
    found, expected = model(**options), ByHand("Alpha", **by_hand)
    for words in (["apple"], ["apple", "pear", "apple"], ["pear", "apple", "pear", "pear"]):
        drawn = [found.words.index(word) for word in words]
        by_fractions = math.log(expected.likelihood(words))
        assert found.document(LEADS["Alpha"]).log_likelihood(np.array(drawn)) == pytest.approx(
            by_fractions
        )


FIELDS = [
    (None, ARTICLES),
    (["text"], ARTICLES),
    (["title", "lead"], {title: f"{title} {lead}" for title, lead in LEADS.items()}),
    (["text", "title"], {title: f"{text} {title}" for title, text in ARTICLES.items()}),
    (["title"], {title: title for title in LEADS}),
]


@pytest.mark.parametrize(("fields", "texts"), FIELDS)
def test_the_document_is_what_the_language_model_counts(orchard, stop_list, fields, texts):
    options = DrawOptions(stop_words=stop_list, document_fields=fields)
    found = orchard.source.language_model(options)
    for title, page in orchard.pages.items():
        if title not in LEADS:  # Headless, which is no document
            continue
        document = orchard.source.counted_text(page, options)
        assert document == texts[title]
        by_hand = ByHand(title, texts=texts)
        assert set(found.words) == set(by_hand.counts)
        model = found.document(document)
        for word in ("apple", "alpha", "plain", "deep", "mud"):
            if word in by_hand.counts:
                drawn = np.array([found.words.index(word)])
                by_fractions = math.log(by_hand.probability(word))
                assert model.log_likelihood(drawn) == pytest.approx(by_fractions)
    for example in orchard.examples("prop").values():
        options = {"stop_words": stop_list, "document_fields": fields}
        for group in draws(orchard.source, "prop", example, 5, **options):
            if group is not None:
                title = orchard.source.title(example)
                assert {pair.document for pair in group.members} == {texts[title]}


def test_only_what_a_model_reads_is_counted(orchard, monkeypatch):
    monkeypatch.setattr(collection, "DOCUMENT_WORDS", 5)
    alpha = orchard.pages["Alpha"]
    cut = orchard.source.counted_text(alpha, DrawOptions(document_fields=["title", "text"]))
    assert cut == "Alpha Apple apple apple and a"


def test_a_passage_cannot_be_counted(draw):
    with pytest.raises(HarpError, match=r"--document-fields passage: prop .* name title, lead"):
        draw("Alpha", 1, document_fields=["passage"])


def test_the_vocabulary_by_hand(model):
    assert sorted(model(preset="paper").words) == ["apple", "pear"]
    assert sorted(model(prop_min_count="10").words) == ["apple", "fig", "pear", "plum", "quince"]
    assert {"grape", "quince"} < set(model(prop_min_count="9").words)
    assert "grape" not in model(prop_min_count="10").words
    assert len(model().words) == len({w for x in LEADS.values() for w in tokens(x)} - STOPPED)


def test_random_words(model, draw):
    """The paper's ablation: any word of the vocabulary alike; the likelier set is positive."""
    found = model(prop_words="random", prop_min_count="9")
    drawn = found.document(LEADS["Alpha"]).draw(generator("random"), 5000)
    names = ["apple", "pear", "plum", "fig", "quince", "grape"]
    assert agrees(Counter(found.words[n] for n in drawn.tolist()), dict.fromkeys(names, 1 / 6))
    by_hand = ByHand("Alpha", least=9)
    check_groups(draw("Alpha", 300, prop_words="random", prop_min_count="9"), by_hand, "Alpha")


def poisson(x):
    return 3**x * math.exp(-3) / math.factorial(x) / (1 - math.exp(-3))


def sets_of(by_hand, size):
    """Chance of each exact likelihood of so many drawn words."""
    chances, found = by_hand.chances(), Counter()
    for words in combinations_with_replacement(sorted(chances), size):
        times = math.factorial(size)
        for n in Counter(words).values():
            times //= math.factorial(n)
        likelihood = by_hand.likelihood(words)
        found[likelihood] += times * math.prod(chances[word] for word in words)
    return found


def check_groups(found, by_hand, title):
    """The positive is likelier by exact fractions, never as likely; one length, one document."""
    given = [group for group in found if group is not None]
    for group in given:
        (negative,) = group.negatives
        sets = [pair.query.split() for pair in group.members]
        assert group.positive.document == negative.document == LEADS[title]
        assert len(sets[0]) == len(sets[1])
        assert set(sets[0]) | set(sets[1]) <= set(by_hand.counts)
        assert by_hand.likelihood(sets[0]) > by_hand.likelihood(sets[1]), sets
    return given


@pytest.mark.parametrize("title", ["Alpha", pytest.param("Theta", marks=pytest.mark.integration)])
def test_lengths_and_ties(draw, title):
    """Both sets have one length; two sets that are as likely give nothing."""
    by_hand = ByHand(title, **PRESETS["paper"])
    chances = {}
    for size in range(1, 21):
        tie = sum(chance**2 for chance in sets_of(by_hand, size).values())
        chances[size] = poisson(size) * (1 - tie)
    chances[None] = 1 - sum(chances.values())
    found = draw(title, 2000, preset="paper")
    check_groups(found, by_hand, title)
    counts = Counter(g and len(g.positive.query.split()) for g in found)
    assert agrees(counts, chances)


def test_pairs_of_single_words(draw):
    """Which two words come together, and which of them is positive."""
    by_hand = ByHand("Alpha", least=10, threshold=1e-4)
    chances = by_hand.chances()
    pairs = {
        (a, b): chances[a] * chances[b] * 2
        for a in chances
        for b in chances
        if by_hand.likelihood([a]) > by_hand.likelihood([b])
    }
    expected = {pair: chance / sum(pairs.values()) for pair, chance in pairs.items()}
    found = [
        g for g in draw("Alpha", 3000, prop_min_count="10", prop_subsampling=1e-4) if g is not None
    ]
    queries = [tuple(pair.query for pair in group.members) for group in found]
    assert agrees(Counter(q for q in queries if " " not in q[0]), expected)


def test_sets_of_different_words_that_are_as_likely_give_nothing(draw):
    """Most words of this vocabulary are as likely as others, in whatever order they are added."""
    found = draw("Delta", 1500, prop_words="random")
    assert len(check_groups(found, ByHand("Delta"), "Delta")) > 700


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prop_min_count": "1000"}, "no word that is not a stop word occurs 1000 times"),
        ({"prop_min_count": "some"}, "--prop-min-count 'some' is not a number"),
        ({"prop_mu": "-1"}, "--prop-mu '-1' is not a number"),
        ({"prop_mu": "nan"}, "--prop-mu 'nan' is not a number"),
        ({"prop_mu": "inf"}, "--prop-mu 'inf' is not a number"),
        ({"prop_subsampling": 1.0}, "--prop-subsampling is 1.0: it must be"),
        ({"negatives_per_group": 0}, "--negatives-per-group is 0: it must be at least 1"),
    ],
)
def test_wrong_options(draw, options, message):
    with pytest.raises(HarpError, match=message):
        draw("Alpha", 1, **options)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_no_word_to_draw(draw):
    """Without smoothing, from a lead of stop words only."""
    assert draw("Kappa", 20, prop_mu="0", prop_min_count="9") == [None] * 20
