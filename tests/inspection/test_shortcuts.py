"""One shortcut is planted in groups that have none: the check that is made for it is red."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable

import pytest
from observed_groups import observed

from harp_plugin.inspection.audit import TaskAudit, audit
from harp_plugin.inspection.bm25 import BM25
from harp_plugin.inspection.check import Kind, Level
from harp_plugin.inspection.measurements import AuditedGroups
from harp_plugin.inspection.observations import Observation

GROUPS = 400
COMMON = [f"common{n}" for n in range(60)]
RARE = [f"rare{n}" for n in range(3000)]
BM25_OF_WORDS = BM25(1000, Counter(dict.fromkeys(COMMON, 500) | dict.fromkeys(RARE, 2)), 20)


def sides(rng: random.Random, *, planted: bool, odds: float = 1.0) -> tuple[int, int]:
    """Which of two members comes first in what is planted: the positive, or a random one."""
    return (0, 1) if (planted and rng.random() < odds) or rng.random() < 0.5 else (1, 0)


def of_two_queries(make: Callable[[random.Random], tuple[str, str, str]]):
    """Groups of one document with two queries, of which one is the better by a rule."""

    def group(rng: random.Random, planted: bool) -> Observation:
        better, worse, document = make(rng)
        first, second = sides(rng, planted=planted)
        queries = (better, worse)
        return observed((queries[first], document), (queries[second], document))

    return group


def two_words(rng: random.Random) -> tuple[str, str, str]:
    first, second, *others = rng.sample(RARE, 20)
    return first, second, " ".join(["start", *others, first, second])


@of_two_queries
def capitals(rng):
    better, worse, document = two_words(rng)
    return f"start {better.upper()}", f"start {worse}", document


@of_two_queries
def first_capital(rng):
    better, worse, document = two_words(rng)
    return f"Start {better} start", f"start {worse} Start", document


@of_two_queries
def term_frequency(rng):
    better, worse, document = two_words(rng)
    return f"start {better}", f"start {worse}", f"{document} {better} {better}"


@of_two_queries
def place(rng):
    better, worse, document = two_words(rng)
    return better, worse, f"{better} {document.replace(better, 'other')}"


@of_two_queries
def rarity(rng):
    common, (rare, *others) = rng.choice(COMMON), rng.sample(RARE, 20)
    return f"start {rare}", f"start {common}", " ".join(["start", *others, rare, common])


def of_two_pages(rng: random.Random, planted: bool, name: str) -> Observation:
    """A group of one query with two pages, of which one has the higher number of this name."""
    texts = [" ".join(rng.sample(RARE, 20)) for _ in range(2)]
    numbers = sorted(rng.sample(range(1000), 2), reverse=True)
    first, second = sides(rng, planted=planted)
    known = {name: (numbers[first], numbers[second])}
    return observed(*(("start", text) for text in texts), **known)


def in_links(rng, planted):
    return of_two_pages(rng, planted, "in_links")


def commonest_target(rng, planted):
    return of_two_pages(rng, planted, "occurrences")


def audited(make, *, planted: bool, **knows) -> TaskAudit:
    rng = random.Random(7)
    observations = [make(rng, planted) for _ in range(GROUPS)]
    return audit(AuditedGroups("some", observations, 0, seed=1, bm25=BM25_OF_WORDS, **knows))


def red_rules(audit: TaskAudit) -> set[str]:
    return {each.name for each in audit.results if each.level is Level.RED}


@pytest.mark.parametrize(
    ("make", "red"),
    [
        (capitals, {"more_capitals"}),
        (first_capital, {"first_capital"}),
        (term_frequency, {"higher_term_frequency", "higher_bm25"}),
        (place, {"earlier_word"}),
        (rarity, {"higher_bm25"}),
        (in_links, {"more_in_links"}),
        (commonest_target, {"commoner_target"}),
    ],
)
def test_a_planted_shortcut_is_red_in_its_check_and_in_no_other(make, red):
    assert red_rules(audited(make, planted=True)) - {"query_alone"} == red
    plain = audited(make, planted=False)
    accuracies = [each for each in plain.results if each.interval is not None]
    assert {each.level for each in accuracies} == {Level.GREEN}
    assert red <= {each.name for each in accuracies}


def test_bm25_is_that_of_a_naive_count():
    rng = random.Random(3)
    texts = [" ".join(rng.choices(RARE[:40], k=rng.randint(1, 30))) for _ in range(50)]
    bm25 = BM25.of(texts)
    mean = sum(len(text.split()) for text in texts) / len(texts)
    for _ in range(100):
        query, document = " ".join(rng.choices(RARE[:40], k=4)), rng.choice(texts)
        expected = 0.0
        for word in query.split():
            frequency = sum(word in text.split() for text in texts)
            idf = math.log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))
            tf = document.split().count(word)
            length = len(document.split())
            expected += idf * tf * 2.2 / (tf + 1.2 * (1 - 0.75 + 0.75 * length / mean))
        assert bm25.score(query, document) == pytest.approx(expected)


def test_matching_words_are_relevance_where_documents_differ():
    """A positive that shares more words is no fault there; it is where the negative shares more."""
    good = [observed(("sun", f"sun {n}"), ("sun", f"dust {n}")) for n in range(17)]
    bad = [observed(("sun", f"dust {n}"), ("sun", f"sun {n}")) for n in range(3)]
    by_name = {each.name: each for each in _audit(good * 20 + bad * 20).results}
    shared = by_name["more_shared_words"]
    assert (shared.kind, shared.level, shared.value) == (Kind.BASELINE, Level.GREEN, 0.85)
    by_name = {each.name: each for each in _audit(good * 40 + bad).results}
    assert by_name["more_shared_words"].level is Level.YELLOW
    by_name = {each.name: each for each in _audit(good + bad * 40).results}
    assert by_name["more_shared_words"].level is Level.RED
    assert by_name["more_shared_words"].is_reversed


def test_a_rule_is_named_before_a_baseline_that_is_right_more_often():
    texts = [
        (f"sun {n} x" if n % 7 else f"dust {n} x", f"{'sun' * (not n % 7)} y{n}") for n in range(99)
    ]
    found = _audit([observed(("sun", better), ("sun", worse)) for better, worse in texts])
    assert found.best_baseline.value > 0.8
    assert found.worst.kind is Kind.RULE


def _audit(observations: list[Observation]) -> TaskAudit:
    return audit(AuditedGroups("some", observations, 0, seed=1))
