"""One shortcut is planted in groups that have none: the check that is made for it is red."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from observed_groups import grouped, observed

from harp_plugin.inspection.audit import TaskAudit, audit
from harp_plugin.inspection.checks import Level
from harp_plugin.inspection.groups import Observation
from harp_plugin.inspection.measurements import bm25_of

GROUPS = 400
COMMON = [f"common{n}" for n in range(60)]
RARE = [f"rare{n}" for n in range(3000)]
BM25_OF_WORDS = bm25_of(" ".join([*COMMON[n % 2 :: 2], *RARE[n::100]]) for n in range(100))


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


def audited(make, *, planted: bool) -> TaskAudit:
    rng = random.Random(7)
    observations = [make(rng, planted) for _ in range(GROUPS)]
    return audit(grouped(observations, bm25=BM25_OF_WORDS))


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
    assert red_rules(audited(make, planted=True)) == red
    plain = audited(make, planted=False)
    assert {each.level for each in plain.results} == {Level.GREEN}
    assert red <= {each.name for each in plain.results}


def test_matching_words_are_relevance_where_documents_differ():
    """A positive that shares more words is no fault there; it is where the negative shares more."""
    good = [observed(("sun", f"sun {n}"), ("sun", f"dust {n}")) for n in range(17)]
    bad = [observed(("sun", f"dust {n}"), ("sun", f"sun {n}")) for n in range(3)]
    by_name = {each.name: each for each in _audit(good * 20 + bad * 20).results}
    shared = by_name["more_shared_words"]
    assert (shared.is_baseline, shared.level) == (True, Level.GREEN)
    assert shared.measurement.value == 0.85
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
    assert found.best_baseline.measurement.value > 0.8
    assert not found.worst.is_baseline


def _audit(observations: list[Observation]) -> TaskAudit:
    return audit(grouped(observations))
