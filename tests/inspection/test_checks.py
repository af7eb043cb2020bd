"""Checks and histograms on groups small enough to count by hand."""

from __future__ import annotations

import dataclasses
import importlib
import random
import re
from pathlib import Path

import numpy as np
import pytest
from observed_groups import observed
from scipy.stats import binomtest

from harp_plugin.corpus.build import CorpusOptions
from harp_plugin.graph import GraphOptions
from harp_plugin.inspection import InspectOptions
from harp_plugin.inspection.audit import TaskAudit, audit
from harp_plugin.inspection.check import ACCURACY_THRESHOLDS, CheckResult, Level
from harp_plugin.inspection.checks import CHECKS
from harp_plugin.inspection.histograms import histograms
from harp_plugin.inspection.measurements import AuditedGroups, Measurement, accuracy
from harp_plugin.inspection.observations import Observation
from harp_plugin.tasks import TASKS, DrawOptions


def measured(
    name: str, *observations: Observation, documents: int = 10, **knows
) -> Measurement | None:
    groups = AuditedGroups("some", list(observations), documents, seed=1, **knows)
    return CHECKS[name].measure(groups)


def audited(
    observations: list[Observation], task: str = "some", documents: int = 5
) -> TaskAudit | None:
    return audit(AuditedGroups(task, observations, documents, seed=1))


def result_of(name: str, observations: list[Observation], task: str = "some") -> CheckResult:
    return next(each for each in audited(observations, task).results if each.name == name)


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
    assert measured("higher_shared_share", *groups).value == pytest.approx((0.5 + 0.5 + 1) / 3)


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
    assert measured("higher_shared_share", one_query) is None
    assert measured("first_in_order", one_query) is None
    assert [each.name for each in audited([one_document], documents=0).results] == [
        "longer_query",
        "more_capitals",
        "first_capital",
        "more_shared_words",
        "higher_shared_share",
        "higher_term_frequency",
        "earlier_word",
        "repeated_groups",
        "repeated_pairs",
        "negative_is_positive",
    ]
    assert audited([]) is None


def test_what_stands_first():
    groups = [
        observed(("q", "a"), ("q", "b"), ("q", "c"), places=(5, 9, None)),
        observed(("q", "a"), ("q", "b"), places=(7, 2)),
        observed(("q", "a"), ("q", "b"), places=(None, 2)),
    ]
    first = measured("first_in_order", *groups)
    assert (first.groups, first.pairs, first.decided, first.value) == (2, 2, 1, 0.5)


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


def word(rng: random.Random) -> str:
    return "".join(rng.choice("aeiou") + rng.choice("klmnprst") for _ in range(3))


def test_documents_of_a_kind_of_their_own_are_found():
    rng = random.Random(2)
    groups = []
    for _ in range(300):
        texts = [" ".join(word(rng) for _ in range(20)) for _ in range(2)]
        groups.append(observed(("q", f"{texts[0]} list"), ("q", texts[1])))
    result = measured("document_alone", *groups)
    assert result.value > 0.95
    assert 90 < result.pairs < 210
    assert measured("query_alone", *groups) is None
    assert result == measured("document_alone", *groups)


def test_a_page_that_is_known_by_heart_does_not_count():
    rng = random.Random(3)
    good, bad = ([" ".join(word(rng) for _ in range(30)) for _ in range(40)] for _ in range(2))
    groups = [observed(("q", rng.choice(good)), ("q", rng.choice(bad))) for _ in range(600)]
    low, high = measured("document_alone", *groups).interval
    assert low < 0.65 and high > 0.35


def test_queries_are_held_out_by_page_too():
    rng = random.Random(4)
    groups = []
    for number in range(300):
        page = f"page {number % 30}"
        groups.append(observed((f"{word(rng)} news", page), (f"{word(rng)} {word(rng)}", page)))
    assert measured("query_alone", *groups).value > 0.95
    assert measured("query_alone", *groups).pairs == 300


def test_texts_that_are_equal_decide_nothing():
    groups = [observed(("same", f"d {n}"), ("same", f"d {n}"), ("x", f"d {n}")) for n in range(40)]
    result = measured("query_alone", *groups)
    assert result.decided <= 0.5


def test_repeats():
    one, two = observed(("q", "a"), ("q", "b")), observed(("q", "a"), ("q", "c"))
    assert measured("repeated_groups", one, one, two, one).value == 0.5
    assert measured("repeated_pairs", one, two, two).value == 0.5
    assert measured("repeated_pairs", one).value == 0


def test_negatives_that_are_their_positive():
    same = observed(("q", "a"), ("q", "b"), ("q", "a"))
    other_query = observed(("q", "a"), ("r", "a"))
    assert measured("negative_is_positive", same, other_query).value == 0.5


def test_negatives_that_the_sentence_links():
    linked = observed(("q", "a"), ("q", "b"), pages=(1, 2), linked=(True, True))
    apart = observed(("q", "a"), ("q", "b"), pages=(1, 3), linked=(True, False))
    one_page = observed(("q", "a"), ("r", "a"), pages=(1, 1), linked=(True, True))
    assert measured("negative_linked", linked, apart, one_page).value == 0.5
    assert measured("negative_linked", one_page) is None


def test_functional_anchors():
    good = observed(("q", "a"), ("q", "b"), anchors=("sun",))
    bad = observed(("q", "a"), ("q", "b"), anchors=("moon", "here"))
    without = observed(("q", "a"), ("q", "b"))
    assert measured("functional_anchors", good, bad, good, without).value == pytest.approx(1 / 3)
    assert measured("functional_anchors", without) is None


def test_layers_that_disagree():
    agree, not_so = (
        observed(("q", "a"), ("q", "b"), layers_agree=is_so) for is_so in (True, False)
    )
    found = measured("layers_disagree", agree, not_so, agree, observed(("q", "a"), ("q", "b")))
    assert found.value == pytest.approx(1 / 3)
    assert measured("layers_disagree", observed(("q", "a"), ("q", "b"))) is None


def test_boilerplate():
    good = observed(("q", "a"), ("q", "b"), boilerplate=(False, False))
    bad = observed(("q", "a"), ("q", "b"), boilerplate=(False, True))
    found = measured("boilerplate", good, bad, observed(("q", "a"), ("q", "b")))
    assert found.value == 0.25
    assert result_of("boilerplate", [bad]).level is Level.RED
    assert measured("boilerplate", observed(("q", "a"), ("q", "b"))) is None


def test_titles_in_queries():
    titles = observed(
        ("the sun", "a"), ("sun of", "b"), titles=("Sun", "Moon"), anchors=("sun",), pages=(1, 2)
    )
    others = observed(
        ("a star", "a"), ("moon", "b"), titles=("Sun", "Moon"), anchors=("star",), pages=(1, 2)
    )
    found = measured("title_in_query", titles, others, titles, titles)
    assert (found.value, found.negatives, found.judged) == (0.75, 0.25, 0.5)


@pytest.mark.parametrize(
    ("query", "title", "is_held"),
    [
        ("old MERCURY (planet) sun", "Mercury (planet)", True),
        ("planet mercury", "Mercury (planet)", False),
        ("mercuryplanet", "Mercury", False),
        ("a", "?", False),
    ],
)
def test_a_title_is_held_word_by_word_in_its_order(query, title, is_held):
    group = observed((query, "a"), ("q", "b"), titles=(title, None), anchors=("sun",))
    assert measured("title_in_query", group).value == is_held


def test_coverage_is_held_against_an_even_draw():
    groups = [observed(("q", "a"), ("q", "b"), pages=(1, 2)) for _ in range(10)]
    found = measured("pages_seen", *groups, documents=100)
    even = np.mean(
        [len(set(row)) for row in np.random.default_rng(1).integers(100, size=(9999, 20))]
    )
    assert found.value == 0.02
    assert found.judged == pytest.approx(1 - 2 / even, abs=0.001)
    assert measured("frequent_pages", *groups).value == 1.0


def test_frequent_pages():
    groups = [observed(("q", "a"), ("q", "b"), pages=(n % 200, 1000)) for n in range(200)]
    groups += [observed(("q", "a"), ("q", "b"), pages=(7, 1000))] * 20
    assert measured("frequent_pages", *groups).value == pytest.approx((21 + 1) / 220)


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
    assert [ACCURACY_THRESHOLDS.level(share) for share in (0.6, 0.601, 0.65, 0.651)] == [
        Level.GREEN,
        Level.YELLOW,
        Level.YELLOW,
        Level.RED,
    ]
    assert CHECKS["negative_is_positive"].limits.level(0.0) is Level.GREEN


def test_a_guess_that_is_mostly_wrong_is_judged_by_its_opposite():
    groups = [observed(("sun", "dust"), ("sun", "the sun"))] * 80
    groups += [observed(("sun", "sun"), ("sun", "dust"))] * 20
    found = result_of("more_shared_words", groups)
    assert (found.level, found.is_reversed, found.value) == (Level.RED, True, 0.8)
    assert "swapped" in found.advice and "reversed" in found.value_text
    assert found.as_json()["value"] == 0.2
    low, high = found.interval
    assert low < 0.8 < high


def test_few_groups_are_never_red():
    found = result_of("longer_query", [observed(("a b", "d"), ("a", "d"))] * 3)
    assert (found.value, found.level) == (1.0, Level.YELLOW)
    assert "--table-groups" in found.advice
    assert result_of("longer_query", [observed(("a b", "d"), ("a", "d"))] * 10).level is Level.RED


def test_what_a_task_is_speaks_not_against_it():
    groups = [
        observed(("q", "a"), ("q", "b"), pages=(1, 2), linked=(True, True), places=(4, 9))
    ] * 30
    rdp, other = (result_of("negative_linked", groups, task) for task in ("rdp", "acm"))
    assert (rdp.level, other.level) == (Level.GREEN, Level.RED)
    assert rdp.advice.startswith("This is the task")


def test_a_task_says_itself_which_check_is_no_fault():
    @TASKS.register("some")
    class Some:
        by_design = {"longer_query": "Its positives ask more."}  # noqa: RUF012

    groups = [observed(("a b", "d"), ("a", "d"))] * 30
    found = result_of("longer_query", groups)
    TASKS.unregister("some")
    assert (found.level, found.advice) == (Level.GREEN, Some.by_design["longer_query"])
    assert result_of("longer_query", groups).level is Level.RED


def test_the_worst_check_has_the_level_of_the_task():
    """A red share is named before green accuracies; of two red accuracies the higher is named."""
    equal = observed(("q", "a b"), ("q", "a b"), linked=(True, True), pages=(1, 2))
    audit = audited([equal] * 30)
    assert (audit.level, audit.worst.level) == (Level.RED, Level.RED)
    assert audit.worst.interval is None and audit.notable[0] is audit.worst
    assert all(each.level is not Level.GREEN for each in audit.notable)
    longer = [observed(("q", "a b"), ("q", "c")), observed(("q", "d e q"), ("q", "f"))] * 30
    longer += [observed(("q", "g"), ("q", "h q"))] * 3
    audit = audited(longer)
    assert audit.worst.name == "longer_document"
    assert {each.name for each in audit.notable} > {"repeated_groups"}


def test_of_a_task_that_is_green_the_most_accurate_guess_is_the_worst():
    words = "one two three four five six seven eight nine ten"
    groups = [observed(("q", f"{n} {words}"), ("q", f"{words} {n}")) for n in range(99)]
    groups += [observed(("q", f"longer {words} 99"), ("q", f"99 {words}"))]
    audit = audited(groups, documents=0)
    assert (audit.level, audit.worst.name) == (Level.GREEN, "longer_document")
    assert audit.notable == (audit.worst,)


def flags_of(options: type) -> set[str]:
    return {f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(options)}


def test_advice_names_options_that_exist():
    known = set().union(*map(flags_of, (CorpusOptions, GraphOptions, DrawOptions, InspectOptions)))
    advice = [
        text
        for check in CHECKS.values()
        for texts in (check.task_advice, check.reversed_task_advice, check.by_design)
        for text in (check.advice, check.reversed_advice or "", *texts.values())
    ]
    flags = {flag for text in advice for flag in re.findall(r"--[a-z-]+", text)}
    assert len(flags) > 9 and flags <= known


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
    assert (result.value, result.level, result.is_reversed) == (1.0, Level.RED, True)
    assert result.label == "query is a question" and result.advice.startswith("Draw the queries")
