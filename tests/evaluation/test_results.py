"""Measures, paired tests and tables against independent calculations."""

import math
from dataclasses import replace
from pathlib import Path
from shutil import which

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from scipy import integrate
from scipy.stats import t as student
from scipy.stats import ttest_rel
from statsmodels.regression.linear_model import OLS

from harp_plugin.errors import HarpError
from harp_plugin.evaluation.results import (
    Results,
    averages,
    corrected,
    groups_of_queries,
    measure_runs,
    paired_difference,
    paired_tests,
    parse_measures,
    starred,
)

TOPICS = pd.DataFrame({"qid": ["1", "2", "3"], "query": ["a", "b", "c"]})
QRELS = pd.DataFrame(
    [("1", "x", 2), ("1", "y", 1), ("2", "x", 1), ("3", "z", 1)], columns=["qid", "docno", "label"]
)
RUN = pd.DataFrame(
    [("1", "n", 3.0, 0), ("1", "x", 2.0, 1), ("1", "y", 1.0, 2), ("2", "x", 1.0, 0)],
    columns=["qid", "docno", "score", "rank"],
)


def test_measures_by_hand_and_zero_for_a_query_without_results():
    values = measure_runs({"r": RUN}, TOPICS, QRELS, parse_measures(["RR@10", "AP", "nDCG@2"]))["r"]
    assert values["RR@10"] == {"1": 0.5, "2": 1.0, "3": 0.0}
    assert values["AP"]["1"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    ideal = 2 + 1 / math.log2(3)
    assert values["nDCG@2"]["1"] == pytest.approx(2 / math.log2(3) / ideal)
    assert averages({"r": values})["r"]["RR@10"] == pytest.approx(0.5)


def t_test(differences: np.ndarray) -> float:
    """Two-sided p by integrating Student's density."""
    n = len(differences)
    t = abs(differences.mean() / (differences.std(ddof=1) / math.sqrt(n)))
    scale = math.gamma(n / 2) / (math.sqrt((n - 1) * math.pi) * math.gamma((n - 1) / 2))
    tail, _ = integrate.quad(lambda x: scale * (1 + x * x / (n - 1)) ** (-n / 2), t, math.inf)
    return 2 * tail


@pytest.mark.skipif(which("perl") is None, reason="gdeval is a program in Perl")
@pytest.mark.parametrize("qid", ["7", "index-7"])
def test_expected_reciprocal_rank_by_hand(qid):
    """Of grades up to 4: (2^1 - 1) / 2^4 at rank 1; at rank 2 (1 - 1/16) (2^2 - 1) / 2^4 / 2."""
    docnos = ["d1", "d2"]
    qrels = pd.DataFrame({"qid": qid, "docno": docnos, "label": [1, 2]})
    run = pd.DataFrame({"qid": qid, "docno": docnos, "score": [2.0, 1.0]})
    topics = pd.DataFrame({"qid": [qid], "query": ["words"]})
    measured = measure_runs({"x": run}, topics, qrels, parse_measures(["ERR@10"]))
    expected = 1 / 16 + 15 / 16 * 3 / 16 / 2
    assert measured["x"]["ERR@10"] == {qid: pytest.approx(expected, abs=1e-5)}


def test_paired_tests_by_integration():
    generator = np.random.default_rng(0)
    a, b = generator.random(30), generator.random(30) + 0.2
    per_query = {
        name: {"AP": {str(place): float(value) for place, value in enumerate(values)}}
        for name, values in (("a", a), ("b", b))
    }
    p_values = paired_tests(per_query, "a")
    assert p_values == {"b": {"AP": pytest.approx(t_test(b - a), rel=1e-6)}}


def test_paired_tests_and_means_equal_pyterriers():
    other = RUN.assign(score=[1.0, 2.0, 3.0, 1.0])
    measures = parse_measures(["AP", "nDCG@10"])
    per_query = measure_runs({"a": RUN, "b": other}, TOPICS, QRELS, measures)
    table = pt.Experiment([RUN, other], TOPICS, QRELS, measures, names=["a", "b"], baseline=0)
    for measure in ("AP", "nDCG@10"):
        assert list(table[measure]) == [averages(per_query)[row][measure] for row in "ab"]
        p_value = paired_tests(per_query, "a")["b"][measure]
        assert p_value == pytest.approx(table[f"{measure} p-value"][1])


def test_queries_of_one_page_are_no_further_observations():
    """Each query three times: p and the interval are those of the queries once."""
    generator = np.random.default_rng(0)
    once = {str(n): float(value) for n, value in enumerate(generator.random(20))}
    thrice = {f"{qid}-{copy}": value for qid, value in once.items() for copy in range(3)}
    zeros = dict.fromkeys(thrice, 0.4)
    expected = ttest_rel(list(once.values()), [0.4] * 20)
    half_width = expected.confidence_interval(0.95).high - expected.confidence_interval(0.95).low
    found = paired_difference(thrice, zeros, {qid: qid[:-2] for qid in thrice})
    assert found == pytest.approx((expected.pvalue, half_width / 2))
    assert paired_difference(thrice, zeros, {})[0] < found[0] / 10
    assert paired_difference(once, zeros | dict.fromkeys(once, 0.4), {}) == pytest.approx(found)


def test_unequal_groups_by_statsmodels():
    """Its standard error has G / (G - 1) and its test G - 1, with G groups; here G is effective."""
    generator = np.random.default_rng(3)
    sizes = [9, 6, 4, *[1] * 12]
    numbers = np.repeat(range(len(sizes)), sizes)
    changes = generator.normal(size=len(sizes))[numbers] + generator.normal(size=len(numbers))
    values = {str(n): float(change) for n, change in enumerate(changes)}
    groups = {str(n): int(number) for n, number in enumerate(numbers) if number < 9}
    fit = OLS(changes, np.ones(len(changes))).fit(cov_type="cluster", cov_kwds={"groups": numbers})
    effective, count = sum(sizes) ** 2 / sum(n * n for n in sizes), len(sizes)
    error = fit.bse[0] * math.sqrt(effective / (effective - 1) * (count - 1) / count)
    expected = 2 * student.sf(abs(changes.mean()) / error, effective - 1)
    p, half_width = paired_difference(values, dict.fromkeys(values, 0.0), groups)
    assert p == pytest.approx(expected)
    assert half_width == pytest.approx(error * student.ppf(0.975, effective - 1))


def test_a_gain_of_nothing_is_rarely_sure_with_large_groups():
    """Of 500 draws 5 %, or a little more; taken by query it would be more than a quarter."""
    generator, numbers = np.random.default_rng(1), np.repeat(range(23), [*[10] * 3, *[1] * 20])
    groups = {str(n): int(number) for n, number in enumerate(numbers)}
    zeros = dict.fromkeys(groups, 0.0)
    found = {"by group": 0, "by query": 0}
    for _ in range(500):
        changes = generator.normal(size=23)[numbers] + generator.normal(size=50) / 2
        values = dict(zip(groups, changes.tolist(), strict=True))
        for name, of in (("by group", groups), ("by query", {})):
            found[name] += starred(paired_difference(values, zeros, of)[0])
    assert found["by group"] < 50 and found["by query"] > 125


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        ({"1": 0.9, "2": 0.3}, {"1": 0, "2": 0}),  # one group
        ({"1": 0.5, "2": 0.25, "3": 0.5}, {"1": 0, "2": 0}),  # two values change places
        ({"1": 0.7, "2": 0.6, "3": 0.1, "4": 0.2}, {"1": 0, "2": 0, "3": 0}),  # and three
        ({"1": 0.5}, {}),
        ({"1": math.nan, "2": 0.5}, {}),
    ],
)
def test_what_cannot_be_tested_has_no_p_value(values, groups):
    baseline = {"1": 0.25, "2": 0.5, "3": 0.5}
    if len(values) == 4:
        baseline = {"1": 0.1, "2": 0.7, "3": 0.6, "4": 0.2}
    assert paired_difference(values, baseline, groups) == (None, 0.0)


def test_groups_are_the_queries_with_the_same_relevant_documents():
    qrels = pd.DataFrame(
        [("1", "a", 1), ("2", "a", 2), ("2", "b", 0), ("3", "a", 1), ("3", "b", 1), ("4", "a", 0)],
        columns=["qid", "docno", "label"],
    )
    groups = groups_of_queries(qrels)
    assert set(groups) == {"1", "2", "3"} and groups["1"] == groups["2"] != groups["3"]
    values = {"AP": {"1": 0.5, "2": 0.25, "3": 0.5, "4": 0.0}}
    results = Results("", Path(), "a", {"a": values}, averages({"a": values}), {}, groups=groups)
    assert " ".join(results.table.split()).endswith("one group: 4 queries, 3 groups")
    assert not replace(results, groups={}).every_note


def test_no_difference_has_no_p_value():
    per_query = {name: {"AP": {"1": 0.5, "2": 0.25}} for name in "ab"}
    assert paired_tests(per_query, "a") == {"b": {"AP": None}}


def test_holms_correction_by_hand():
    p_values = {"a": {"AP": 0.01, "RR": 0.5}, "b": {"AP": None, "RR": 0.02}, "c": {"AP": 0.04}}
    p_values |= {"d": {"AP": 0.03}}
    assert corrected(p_values, "none") == p_values
    result = corrected(p_values, "holm")
    assert {row: of["AP"] for row, of in result.items()} == {
        "a": pytest.approx(3 * 0.01),
        "b": None,
        "c": pytest.approx(2 * 0.03),
        "d": pytest.approx(2 * 0.03),
    }
    assert [result[row]["RR"] for row in "ab"] == [pytest.approx(0.5), pytest.approx(2 * 0.02)]
    assert p_values["a"]["AP"] == 0.01


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nope", "unknown measure 'nope'"),
        ("AP@x", "unknown measure"),
        ("", "unknown measure ''"),
        ("BPM", "measure 'BPM': invalid param cutoff: write it as P@5"),
        ("INST", "measure 'INST': invalid param max_rel: write"),
        ("SDCG@3", "measure 'SDCG@3': invalid param max_rel: write"),
        ("NERR10@5", "measure 'NERR10@5': unsupported params found: .'cutoff'.: write"),
        ("P@0", "measure 'P@0' measures no document: write it as nDCG@10"),
    ],
)
def test_an_unknown_measure(name, message):
    with pytest.raises(HarpError, match=message):
        parse_measures(["AP", name])


def results(rows: list[str], measures: list[str]) -> Results:
    means = {row: dict.fromkeys(measures, (place + 1) / 7) for place, row in enumerate(rows)}
    p_values = {row: dict.fromkeys(measures, 0.01 * place) for place, row in enumerate(rows)}
    p_values[rows[0]] = dict.fromkeys(measures)
    return Results("dataset, 3 queries, top 10", Path("r"), rows[0], {}, means, p_values)


def test_a_table():
    assert results(["BM25", "HARP"], ["AP", "nDCG@10"]).table == (
        "dataset, 3 queries, top 10\n\n"
        "           AP   nDCG@10\n"
        "BM25   0.1429    0.1429\n"
        "HARP   0.2857*   0.2857*\n\n"
        "* p < 0.05 against BM25 (paired t-test)"
    )


def test_a_table_says_how_p_values_are_corrected():
    table = replace(results(["BM25", "HARP"], ["AP"]), correction="holm").table
    assert table.endswith("against BM25 (paired t-test, Holm's correction)")


def test_a_large_table_fits_in_80_columns():
    rows = [
        "BM25",
        "a reranker with a name that is much too long for any table, by far, really it is",
    ]
    measures = [f"nDCG(dcg='exp-log2')@{k}" for k in range(1, 12)]
    lines = results([*rows, "z"], measures).table.splitlines()
    assert max(map(len, lines)) <= 80
    assert all(any(measure in line for line in lines) for measure in measures)
    assert any("…" in line for line in lines)


def test_means_by_kind_of_query():
    """The ids of queries that `harp collect` made begin with their kind."""
    hashes = [f"{number:016x}" for number in range(4)]
    values = {f"index-{hashes[0]}": 1.0, f"index-{hashes[1]}": 0.5, f"link-{hashes[2]}": 0.25}
    of_queries, means = {"a": {"RR@10": values}}, {"a": {"RR@10": 0.0}}
    results = Results("t", Path("results.json"), "a", of_queries, means, {})
    assert results.by_kind == {"a": {"index (2)": 0.75, "link (1)": 0.25}}
    assert "RR@10 by kind of query\n\n" in results.table
    assert "index (2)    link (1)" in results.table
    for others in ({}, {"q1": 1.0}, {f"index-{hashes[3]}": 1.0}):
        one_kind = {**dict(list(values.items())[:2]), **others}
        other = replace(results, per_query={"a": {"RR@10": one_kind}})
        assert other.by_kind == {} and "by kind" not in other.table
