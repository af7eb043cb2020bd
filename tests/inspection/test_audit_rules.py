"""Rules, figures and histograms on groups small enough to count by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.stats import binomtest

from harp_plugin.inspection import lights
from harp_plugin.inspection.audit import audit
from harp_plugin.inspection.classifier import ask_bag_of_words
from harp_plugin.inspection.figures import figures, holds
from harp_plugin.inspection.histograms import histograms
from harp_plugin.inspection.lights import Light
from harp_plugin.inspection.observations import Observation
from harp_plugin.inspection.rules import RULES, Outcome, tally
from harp_plugin.sampling import stable_id
from harp_plugin.tasks import Pair, PairGroup

STOPPED = frozenset({"the", "of"})


def observed(*members: tuple[str, str], **known) -> Observation:
    """A group of (query, document), the positive first, and what is known of it."""
    pairs = [Pair(*member) for member in members]
    nothing = (None,) * len(pairs)
    facts = {
        "pages": nothing,
        "titles": nothing,
        "places": nothing,
        "units": tuple(stable_id(pair.document) for pair in pairs),
        "linked": None,
        "anchors": (),
        "ranks": ((),) * len({pair.query for pair in pairs}),
        "stopped": STOPPED,
    }
    return Observation(PairGroup("some", pairs[0], tuple(pairs[1:])), **(facts | known))


def asked(name: str, *observations: Observation) -> Outcome | None:
    return next(rule for rule in RULES if rule.name == name).ask(list(observations))


def test_ties_count_one_half_and_each_negative_is_a_pair():
    outcome = asked(
        "longer_query",
        observed(("a b c", "d"), ("a b", "d"), ("a b c d", "d"), ("x y z", "d")),
        observed(("it's one", "d"), ("one", "d")),
    )
    assert outcome == Outcome(groups=2, pairs=4, decided=3, accuracy=pytest.approx(2.5 / 4))
    assert outcome.decided_share == 0.75


def test_shared_words_are_distinct_lower_cased_and_no_stop_words():
    groups = [
        observed(("The Sun of SUN", "the sun"), ("moon sun", "of the Sun, the moon")),
        observed(("red of the sun", "sun"), ("sun blue", "sun green")),
        observed(("sun", "a sun"), ("sun moon star", "sun moon")),
    ]
    assert asked("more_shared_words", *groups).accuracy == pytest.approx((0 + 0.5 + 0) / 3)
    assert asked("higher_shared_share", *groups).accuracy == pytest.approx((0.5 + 0.5 + 1) / 3)


@pytest.mark.parametrize("name", ["longer_query", "longer_document", "more_shared_words"])
def test_rules_are_those_of_a_naive_count(name):
    rng = random.Random(1)

    def text(most: int) -> str:
        return " ".join(rng.choice("abcdefgh") for _ in range(rng.randint(1, most)))

    members = [[(text(5), text(9)) for _ in range(rng.randint(2, 4))] for _ in range(200)]
    score = {
        "longer_query": lambda query, document: len(query.split()),
        "longer_document": lambda query, document: len(document.split()),
        "more_shared_words": lambda query, document: len({*query.split()} & {*document.split()}),
    }[name]
    right = total = 0.0
    for positive, *negatives in members:
        for negative in negatives:
            difference = score(*positive) - score(*negative)
            right += 1.0 if difference > 0 else 0.5 if difference == 0 else 0.0
            total += 1
    outcome = asked(name, *(observed(*group) for group in members))
    assert (outcome.pairs, outcome.accuracy) == (total, pytest.approx(right / total))


def test_rules_that_do_not_apply_are_absent():
    one_document = observed(("a", "d"), ("b c", "d"))
    one_query = observed(("a", "d"), ("a", "d e"))
    assert asked("longer_document", one_document) is None
    assert asked("longer_query", one_query) is None
    assert asked("higher_shared_share", one_query) is None
    assert asked("first_in_order", one_query) is None
    found = audit("some", [one_document], documents=0, seed=1)
    assert {each.name for each in found.rules} == {
        "longer_query",
        "more_shared_words",
        "higher_shared_share",
    }
    assert {each.name for each in found.figures} == {
        "repeated_groups",
        "repeated_pairs",
        "negative_is_positive",
    }
    assert audit("some", [], documents=1, seed=1) is None


def test_what_stands_first():
    groups = [
        observed(("q", "a"), ("q", "b"), ("q", "c"), places=(5, 9, None)),
        observed(("q", "a"), ("q", "b"), places=(7, 2)),
        observed(("q", "a"), ("q", "b"), places=(None, 2)),
    ]
    assert asked("first_in_order", *groups) == Outcome(2, 2, 2, 0.5)


@pytest.mark.parametrize(("right", "of"), [(0, 7), (7, 7), (3, 10), (1301, 2000)])
def test_interval_is_wilsons(right, of):
    outcome = tally([[(1.0, 0.0)]] * right + [[(0.0, 1.0)]] * (of - right))
    reference = binomtest(right, of).proportion_ci(method="wilson")
    assert outcome.interval == pytest.approx((reference.low, reference.high))


def test_pairs_of_one_group_are_one_trial():
    several = tally([[(1, 0), (1, 0), (0, 1)]] * 60)
    reference = binomtest(40, 60).proportion_ci(method="wilson")
    assert (several.pairs, several.groups) == (180, 60)
    assert several.accuracy == pytest.approx(2 / 3)
    assert several.interval == pytest.approx((reference.low, reference.high))


def word(rng: random.Random) -> str:
    return "".join(rng.choice("aeiou") + rng.choice("klmnprst") for _ in range(3))


def test_documents_of_a_kind_of_their_own_are_found():
    rng = random.Random(2)
    groups = []
    for _ in range(300):
        texts = [" ".join(word(rng) for _ in range(20)) for _ in range(2)]
        groups.append(observed(("q", f"{texts[0]} list"), ("q", texts[1])))
    outcome = ask_bag_of_words(groups, "document", seed=1)
    assert outcome.accuracy > 0.95
    assert 90 < outcome.pairs < 210
    assert ask_bag_of_words(groups, "query", seed=1) is None
    assert outcome == ask_bag_of_words(groups, "document", seed=1)


def test_a_page_that_is_known_by_heart_does_not_count():
    rng = random.Random(3)
    good, bad = ([" ".join(word(rng) for _ in range(30)) for _ in range(40)] for _ in range(2))
    groups = [observed(("q", rng.choice(good)), ("q", rng.choice(bad))) for _ in range(600)]
    low, high = ask_bag_of_words(groups, "document", seed=1).interval
    assert low < 0.65 and high > 0.35


def test_queries_are_held_out_by_page_too():
    rng = random.Random(4)
    groups = []
    for number in range(300):
        page = f"page {number % 30}"
        groups.append(observed((f"{word(rng)} news", page), (f"{word(rng)} {word(rng)}", page)))
    assert ask_bag_of_words(groups, "query", seed=1).accuracy > 0.95
    assert ask_bag_of_words(groups, "query", seed=1).pairs == 300


def test_texts_that_are_equal_decide_nothing():
    groups = [observed(("same", f"d {n}"), ("same", f"d {n}"), ("x", f"d {n}")) for n in range(40)]
    outcome = ask_bag_of_words(groups, "query", seed=1)
    assert outcome.decided <= outcome.pairs / 2


def figure(name: str, *observations: Observation, documents: int = 10):
    found = {each.name: each for each in figures(list(observations), documents)}
    return found.get(name)


def test_repeats():
    one, two = observed(("q", "a"), ("q", "b")), observed(("q", "a"), ("q", "c"))
    assert figure("repeated_groups", one, one, two, one).share == 0.5
    assert figure("repeated_pairs", one, two, two).share == 0.5
    assert figure("repeated_pairs", one).share == 0


def test_negatives_that_are_their_positive():
    same = observed(("q", "a"), ("q", "b"), ("q", "a"))
    other_query = observed(("q", "a"), ("r", "a"))
    assert figure("negative_is_positive", same, other_query).share == 0.5


def test_negatives_that_the_sentence_links():
    linked = observed(("q", "a"), ("q", "b"), pages=(1, 2), linked=(True, True))
    apart = observed(("q", "a"), ("q", "b"), pages=(1, 3), linked=(True, False))
    one_page = observed(("q", "a"), ("r", "a"), pages=(1, 1), linked=(True, True))
    assert figure("negative_linked", linked, apart, one_page).share == 0.5
    assert figure("negative_linked", one_page) is None


def test_functional_anchors():
    good = observed(("q", "a"), ("q", "b"), anchors=("sun",))
    bad = observed(("q", "a"), ("q", "b"), anchors=("moon", "here"))
    without = observed(("q", "a"), ("q", "b"))
    assert figure("functional_anchors", good, bad, good, without).share == pytest.approx(1 / 3)
    assert figure("functional_anchors", without) is None


def test_titles_in_queries():
    assert holds("old MERCURY (planet) sun", "Mercury (planet)")
    assert not holds("planet mercury", "Mercury (planet)")
    assert not holds("mercuryplanet", "Mercury") and not holds("a", "?")
    titles = observed(
        ("the sun", "a"), ("sun of", "b"), titles=("Sun", "Moon"), anchors=("sun",), pages=(1, 2)
    )
    others = observed(
        ("a star", "a"), ("moon", "b"), titles=("Sun", "Moon"), anchors=("star",), pages=(1, 2)
    )
    found = figure("title_in_query", titles, others, titles, titles)
    assert (found.share, found.negatives, found.judged) == (0.75, 0.25, 0.5)


def test_coverage_is_held_against_an_even_draw():
    groups = [observed(("q", "a"), ("q", "b"), pages=(1, 2)) for _ in range(10)]
    found = figure("pages_seen", *groups, documents=100)
    even = np.mean(
        [len(set(row)) for row in np.random.default_rng(1).integers(100, size=(9999, 20))]
    )
    assert found.share == 0.02
    assert found.judged == pytest.approx(1 - 2 / even, abs=0.001)
    assert figure("frequent_pages", *groups).share == 1.0


def test_frequent_pages():
    groups = [observed(("q", "a"), ("q", "b"), pages=(n % 200, 1000)) for n in range(200)]
    groups += [observed(("q", "a"), ("q", "b"), pages=(7, 1000))] * 20
    assert figure("frequent_pages", *groups).share == pytest.approx((21 + 1) / 220)


def test_histograms_hold_every_number():
    groups = [
        observed(("w " * (n % 7 + 1), "d " * n), ("w", "d"), ranks=((1, 3), (4, 200)))
        for n in range(1, 120)
    ]
    query, document, ranks = histograms(groups)
    assert query.starts == (1, 2, 3, 4, 5, 6, 7, 8)
    assert query.counts["positive"] == (17, 17, 17, 17, 17, 17, 17, 0)
    assert query.counts["negative"][0] == 119
    assert document.bins[0] == "0–9" and document.bins[-1].endswith("+")
    assert document.counts["positive"][:3] == (9, 10, 10)
    assert sum(document.counts["positive"]) == 119
    assert dict(zip(ranks.bins, ranks.counts["negative"], strict=True)) == dict.fromkeys(
        ["1", "2", "5–8", "9–16", "17–32", "33–64", "65–128", "3–4", "129+"], 0
    ) | {"3–4": 119, "129+": 119}
    assert [each.name for each in histograms([observed(("q", "d"), ("r", "d"))])] == [
        "query_words",
        "document_words",
    ]


def test_limits_are_inclusive():
    assert [lights.RULE.light(share) for share in (0.6, 0.601, 0.65, 0.651)] == [
        Light.GREEN,
        Light.YELLOW,
        Light.YELLOW,
        Light.RED,
    ]
    assert lights.FIGURES["negative_is_positive"].light(0.0) is Light.GREEN


def of_rule(name: str, groups: list[Observation], task: str = "some"):
    return next(
        each for each in audit(task, groups, documents=5, seed=1).rules if each.name == name
    )


def test_a_rule_is_judged_by_its_reverse():
    groups = [observed(("sun", "dust"), ("sun", "the sun"))] * 80
    groups += [observed(("sun", "sun"), ("sun", "dust"))] * 20
    found = of_rule("more_shared_words", groups)
    assert (found.light, found.is_reversed, found.judged) == (Light.RED, True, 0.8)
    assert "swapped" in found.advice and "reversed" in found.text
    assert found.as_json()["accuracy"] == 0.2
    low, high = found.interval
    assert low < 0.8 < high


def test_few_groups_are_never_red():
    found = of_rule("longer_query", [observed(("a b", "d"), ("a", "d"))] * 3)
    assert (found.share, found.light) == (1.0, Light.YELLOW)
    assert "--table-groups" in found.advice
    assert of_rule("longer_query", [observed(("a b", "d"), ("a", "d"))] * 10).light is Light.RED


def test_what_a_task_is_speaks_not_against_it():
    groups = [
        observed(("q", "a"), ("q", "b"), pages=(1, 2), linked=(True, True), places=(4, 9))
    ] * 30
    rdp, other = (audit(task, groups, documents=5, seed=1) for task in ("rdp", "acm"))
    found = [next(f for f in each.figures if f.name == "negative_linked") for each in (rdp, other)]
    assert [each.light for each in found] == [Light.GREEN, Light.RED]
    assert found[0].advice.startswith("This is the task")
