"""Checks on groups small enough to count by hand."""

from __future__ import annotations

import dataclasses
import importlib
import math
import random
import re
from pathlib import Path

import pytest
from observed_groups import grouped, observed
from scipy.stats import binomtest

from harp_plugin.corpus.build import CorpusOptions
from harp_plugin.graph import GraphOptions
from harp_plugin.inspection import InspectOptions
from harp_plugin.inspection.audit import audit
from harp_plugin.inspection.checks import CHECKS, CheckResult, Level
from harp_plugin.inspection.groups import Observation
from harp_plugin.inspection.measurements import Measurement, accuracy, bm25_of
from harp_plugin.tasks import TASKS, DrawOptions


def measured(name: str, *observations: Observation) -> Measurement | None:
    return CHECKS[name].measure(grouped(observations))


def result_of(name: str, observations: list[Observation], task: str = "some") -> CheckResult:
    results = audit(grouped(observations, task)).results
    return next(each for each in results if each.name == name)


def test_ties_count_one_half_and_each_negative_is_a_pair():
    result = measured(
        "longer_query",
        observed(("a b c", "d"), ("a b", "d"), ("a b c d", "d"), ("x y z", "d")),
        observed(("it's one", "d"), ("one", "d")),
    )
    assert (result.groups, result.pairs, result.decided) == (2, 4, 0.75)
    assert result.value == pytest.approx(2.5 / 4)


def test_shared_words_are_distinct_lower_cased_and_no_stop_words():
    groups = [
        observed(("The Sun of SUN", "the sun"), ("moon sun", "of the Sun, the moon")),
        observed(("red of the sun", "sun"), ("sun blue", "sun green")),
        observed(("sun", "a sun"), ("sun moon star", "sun moon")),
    ]
    assert measured("more_shared_words", *groups).value == pytest.approx((0 + 0.5 + 0) / 3)


@pytest.mark.parametrize("name", ["longer_query", "longer_document", "more_shared_words"])
def test_accuracies_are_those_of_a_naive_count(name):
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
    result = measured(name, *(observed(*group) for group in members))
    assert (result.pairs, result.value) == (total, pytest.approx(right / total))


def test_checks_that_do_not_apply_are_absent():
    one_document = observed(("a", "d"), ("b c", "d"))
    one_query = observed(("a", "d"), ("a", "d e"))
    assert measured("longer_document", one_document) is None
    assert measured("longer_query", one_query) is None
    assert [each.name for each in audit(grouped([one_document])).results] == [
        "longer_query",
        "more_capitals",
        "first_capital",
        "more_shared_words",
        "higher_term_frequency",
        "earlier_word",
    ]
    assert audit(grouped([])) is None


@pytest.mark.parametrize(("right", "of"), [(0, 7), (7, 7), (3, 10), (1301, 2000)])
def test_interval_is_wilsons(right, of):
    result = accuracy([[1.0, 0.0]] * right + [[0.0, 1.0]] * (of - right))
    reference = binomtest(right, of).proportion_ci(method="wilson")
    assert result.interval == pytest.approx((reference.low, reference.high))


def test_pairs_of_one_group_are_one_trial():
    several = accuracy([[1, 0, 0, 2]] * 60)
    reference = binomtest(40, 60).proportion_ci(method="wilson")
    assert (several.pairs, several.groups) == (180, 60)
    assert several.value == pytest.approx(2 / 3)
    assert several.interval == pytest.approx((reference.low, reference.high))


def test_bm25_is_that_of_a_naive_count():
    rng = random.Random(3)
    vocabulary = [f"word{n}" for n in range(40)]
    texts = [" ".join(rng.choices(vocabulary, k=rng.randint(1, 30))) for _ in range(50)]
    bm25 = bm25_of(texts)
    mean = sum(len(text.split()) for text in texts) / len(texts)
    for _ in range(100):
        query, document = " ".join(rng.choices(vocabulary, k=4)), rng.choice(texts)
        expected = 0.0
        for word in query.split():
            frequency = sum(word in text.split() for text in texts)
            idf = math.log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))
            tf = document.split().count(word)
            length = len(document.split())
            expected += idf * tf * 2.2 / (tf + 1.2 * (1 - 0.75 + 0.75 * length / mean))
        assert bm25(query, document) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("right", "level"),
    [(60, Level.GREEN), (61, Level.YELLOW), (65, Level.YELLOW), (66, Level.RED)],
)
def test_limits_are_inclusive(right, level):
    """Ten times a hundred groups, so that the interval is far from one half."""
    good, bad = observed(("a b", "d"), ("a", "d")), observed(("a", "d"), ("a b", "d"))
    assert (
        result_of("longer_query", [good] * 10 * right + [bad] * 10 * (100 - right)).level is level
    )


def test_a_guess_that_is_mostly_wrong_is_judged_by_its_opposite():
    groups = [observed(("sun", "dust"), ("sun", "the sun"))] * 80
    groups += [observed(("sun", "sun"), ("sun", "dust"))] * 20
    found = result_of("more_shared_words", groups)
    assert (found.level, found.is_reversed, found.measurement.value) == (Level.RED, True, 0.8)
    assert "swapped" in found.advice and found.value_text == "80.0 % reversed"
    assert (found.as_json()["value"], found.as_json()["reversed"]) == (0.8, True)
    low, high = found.measurement.interval
    assert low < 0.8 < high


def test_few_groups_are_never_red():
    found = result_of("longer_query", [observed(("a b", "d"), ("a", "d"))] * 3)
    assert (found.measurement.value, found.level) == (1.0, Level.YELLOW)
    assert "--table-groups" in found.advice
    assert result_of("longer_query", [observed(("a b", "d"), ("a", "d"))] * 10).level is Level.RED


def test_a_task_says_itself_which_check_is_no_fault():
    @TASKS.register("some")
    class Some:
        by_design = {"longer_query": "Its positives ask more."}  # noqa: RUF012

    groups = [observed(("a b", "d"), ("a", "d"))] * 30
    found = result_of("longer_query", groups)
    TASKS.unregister("some")
    assert (found.level, found.advice) == (Level.GREEN, Some.by_design["longer_query"])
    assert result_of("longer_query", groups).level is Level.RED


def test_what_a_task_is_speaks_not_against_it():
    groups = [observed(("q", "a"), ("q", "b"), occurrences=(9, 0))] * 30
    anchor, other = (result_of("commoner_target", groups, task) for task in ("anchor", "acm"))
    assert (anchor.level, other.level) == (Level.GREEN, Level.RED)
    assert anchor.advice.startswith("This is the task")


def test_the_worst_check_has_the_level_of_the_task():
    """Of two red rules the one that is right more often is named; all others follow."""
    longer = [
        observed(("q", "a b"), ("q", "c"), in_links=(2, 1)),
        observed(("q", "d e"), ("q", "f")),
    ]
    found = audit(grouped(longer * 30))
    assert (found.worst.name, found.worst.level) == ("longer_document", Level.RED)
    assert [each.name for each in found.notable] == ["longer_document", "more_in_links"]


def test_of_a_task_that_is_green_the_most_accurate_rule_is_the_worst():
    words = "one two three four five six seven eight nine ten"
    groups = [observed(("q", f"{n} {words}"), ("q", f"{words} {n}")) for n in range(99)]
    groups += [observed(("q", f"longer {words} 99"), ("q", f"99 {words}"))]
    found = audit(grouped(groups))
    assert (found.worst.level, found.worst.name) == (Level.GREEN, "longer_document")
    assert found.notable == (found.worst,)


def flags_of(options: type) -> set[str]:
    return {f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(options)}


def test_advice_names_options_that_exist():
    known = set().union(*map(flags_of, (CorpusOptions, GraphOptions, DrawOptions, InspectOptions)))
    advice = [
        text
        for check in CHECKS.values()
        for text in (check.advice, *check.task_advice.values(), *check.by_design.values())
    ]
    flags = {flag for text in advice for flag in re.findall(r"--[a-z-]+", text)}
    assert len(flags) > 5 and flags <= known


@pytest.fixture
def installed_check(tmp_path, monkeypatch):
    """The example of the documentation as an installed distribution with an entry point."""
    text = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n# my_package/question.py\n(.*?)```", text, re.DOTALL)
    (tmp_path / "question_check.py").write_text(code)
    info = tmp_path / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[harp_plugin.checks]\nquestion_mark = question_check:QUESTION_MARK\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield "question_mark"
    CHECKS._items.pop("question_mark", None)


def test_another_package_adds_a_check_by_one_entry(installed_check):
    result = result_of(installed_check, [observed(("a", "d"), ("b?", "d"))] * 30)
    assert (result.measurement.value, result.level, result.is_reversed) == (1.0, Level.RED, True)
    assert result.label == "query is a question" and result.advice.startswith("Draw the queries")
