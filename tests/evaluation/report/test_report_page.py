"""The report of an evaluation, on BM25 and weak rankings of the encyclopedia."""

from __future__ import annotations

import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.evaluation.report import changed_queries, render, rows_of
from harp_plugin.evaluation.results import (
    Results,
    averages,
    measure_runs,
    paired_tests,
    parse_measures,
)
from harp_plugin.evaluation.runs import ranked
from harp_plugin.ranking.bm25 import Bm25
from harp_plugin.text import query_passage

MEASURES = ["RR@10", "nDCG@10"]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    collection = JudgedDataset("harp-encyclopedia")
    folder = tmp_path_factory.mktemp("index")
    bm25 = Bm25(collection, folder, k1=0.9, b=0.4, num_results=10, quiet=True)
    run = ranked(bm25.transform(collection.topics))
    shuffled = run.assign(score=np.random.default_rng(1).random(len(run)))
    runs = {"BM25": run, "at random": ranked(shuffled), "the same": run}
    per_query = measure_runs(runs, collection.topics, collection.qrels, parse_measures(MEASURES))
    results = Results(
        title="harp-encyclopedia, <b>56</b> queries",
        path=Path("results.json"),
        baseline="BM25",
        per_query=per_query,
        means=averages(per_query),
        p_values=paired_tests(per_query, "BM25"),
    )
    return SimpleNamespace(collection=collection, runs=runs, results=results)


def test_differences_and_their_intervals(evaluated):
    """Student's interval by its formula, with the 97.5 % quantile of 55 degrees of freedom."""
    baseline, shuffled, same = rows_of(evaluated.results)
    assert baseline["differences"] is None
    for measure in MEASURES:
        values = evaluated.results.per_query
        change = np.array(
            [values["at random"][measure][q] - v for q, v in values["BM25"][measure].items()]
        )
        assert len(change) == 56
        found = shuffled["differences"][measure]
        assert found["mean"] == pytest.approx(change.mean())
        assert found["half_width"] == pytest.approx(2.004045 * change.std(ddof=1) / math.sqrt(56))
        assert found["is_significant"]
        unchanged = same["differences"][measure]
        assert (unchanged["mean"], unchanged["half_width"]) == (0, 0)
        one_group = replace(evaluated.results, groups=dict.fromkeys(values["BM25"][measure], 1))
        assert rows_of(one_group)[1]["differences"][measure]["half_width"] == 0


def test_queries_won_and_lost(evaluated):
    results = evaluated.results
    won, lost = changed_queries(
        results, evaluated.runs, evaluated.collection, "at random", "RR@10", most=3, depth=2
    )
    values = results.per_query
    change = {q: values["at random"]["RR@10"][q] - v for q, v in values["BM25"]["RR@10"].items()}
    assert [query["after"] - query["before"] for query in lost] == sorted(change.values())[:3]
    assert all(query["after"] > query["before"] for query in won)
    assert len(lost) == 3
    query = lost[0]
    run = evaluated.runs["BM25"]
    first = run[run["qid"] == query["qid"]].sort_values("rank")["docno"].tolist()[:2]
    assert [document["docno"] for document in query["first"]] == first
    text = evaluated.collection.texts(first[:1])[first[0]]
    passage = " ".join(query_passage(query["text"], text).split())
    assert query["first"][0]["text"].removesuffix(" …") == passage[:400]
    assert query["first"][0]["is_relevant"] == (query["before"] == 1)


def test_a_system_against_itself_wins_and_loses_nothing(evaluated):
    results, runs = evaluated.results, evaluated.runs
    assert changed_queries(results, runs, evaluated.collection, "the same", "RR@10") == ([], [])


def test_a_document_that_the_collection_lacks_is_shown_by_its_name(evaluated):
    """A run of a file may list it, if nothing reads its text before."""
    unknown = {evaluated.runs["BM25"]["docno"][0]: "LA-1"}
    runs = {name: run.replace({"docno": unknown}) for name, run in evaluated.runs.items()}
    most = {"most": 56, "depth": 10}
    compared = "at random", "RR@10"
    won, lost = changed_queries(evaluated.results, runs, evaluated.collection, *compared, **most)
    shown = [d for query in won + lost for d in query["first"] + query["second"]]
    lacking = {d["docno"] for d in shown if d["text"] == "(not in this collection)"}
    assert lacking == {"LA-1"} and len(shown) > 100


class Tags(HTMLParser):
    """Collects the tags and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data.strip())


def test_the_page(evaluated):
    results = replace(evaluated.results, notes=("A & B",))
    page = render(results, evaluated.runs, evaluated.collection, {})
    seen = Tags(page)
    assert "harp-encyclopedia, <b>56</b> queries" in seen.texts  # escaped
    assert "A & B" in seen.texts
    for row in evaluated.results.means.values():
        assert f"{row['RR@10']:.4f}" in page
    assert sum(tag == "rect" for tag, _ in seen.tags) == 3
    assert not [a for _, a in seen.tags if a.keys() & {"src", "href", "onclick"}]
    assert page == render(results, evaluated.runs, evaluated.collection, {})


def bars(page):
    """The widths of bars, and the ends of lines."""
    tags = Tags(page.partition('id="bars"')[2].partition("<h2")[0]).tags
    widths = [float(attributes["width"]) for tag, attributes in tags if tag == "rect"]
    return widths, [(float(a["x1"]), float(a["x2"])) for tag, a in tags if tag == "line"]


def test_bars_are_seen_where_an_interval_is_wide(evaluated):
    """One group has all queries but one, so that the interval of 95 % has hardly an end."""
    results = evaluated.results
    first, *others = results.per_query["BM25"]["RR@10"]
    one_group = replace(results, groups=dict.fromkeys(others, 1) | {first: 2})
    assert rows_of(one_group)[1]["differences"]["RR@10"]["half_width"] > 100
    means = [values["RR@10"] for values in results.means.values()]
    widths, lines = bars(render(one_group, evaluated.runs, evaluated.collection, {}))
    assert max(widths) >= 200
    assert widths == pytest.approx([max(widths) * mean / max(means) for mean in means], abs=0.1)
    assert all(210 <= start <= end <= 620 for start, end in lines)


def test_what_a_learned_ranker_looks_at(evaluated):
    shares = pd.Series({f"<i>{n}": n / 105 for n in range(15)})
    page = render(evaluated.results, evaluated.runs, evaluated.collection, {"learned": shares})
    section = Tags(page.partition('id="features"')[2].partition("<h2")[0])
    assert [text for text in section.texts if text.startswith("<i>")] == [
        f"<i>{n}"
        for n in range(14, 2, -1)  # the largest twelve, escaped
    ]
    widths = [float(a["width"]) for tag, a in section.tags if tag == "rect"]
    assert widths == pytest.approx([400 * n / 14 for n in range(14, 2, -1)], abs=0.06)
    assert "13.3 %" in section.texts and "2.9 %" in section.texts


def test_one_row_alone(evaluated):
    results = evaluated.results
    alone = Results(
        title="alone",
        path=results.path,
        baseline="BM25",
        per_query={"BM25": results.per_query["BM25"]},
        means={"BM25": results.means["BM25"]},
        p_values={},
    )
    page = render(alone, {"BM25": evaluated.runs["BM25"]}, evaluated.collection, {})
    assert page.count("There is no such query.") == 2
