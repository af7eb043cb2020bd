"""The audit of whole builds: what is planted is found, what it says is what training draws."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from builds import read_table

from harp_plugin.inspection import InspectOptions, inspect
from harp_plugin.inspection.checks import Level
from harp_plugin.inspection.groups import observe
from harp_plugin.tasks import (
    HARP_TASKS,
    TASKS,
    DrawOptions,
    Pair,
    PairGroup,
    PreTrainingData,
)
from harp_plugin.tasks.build import build_examples
from harp_plugin.tasks.registry import ExampleOptions
from harp_plugin.tasks.terms import stop_words
from harp_plugin.text import words
from harp_plugin.work.provenance import OverwriteRules

pytestmark = pytest.mark.integration

LEFT_OPEN = {
    ("rqp", "more_shared_words"),
    ("rqp", "higher_term_frequency"),
    ("rqp", "earlier_word"),
    ("rqp", "higher_bm25"),
}
"""Red accuracies of default data: an anchor often repeats its page's title, which begins the lead,
and a page of the encyclopedia shares few words with those that it links to."""

FEW = {"table_groups": 200, "model_checks": False}
"""Enough for the checks of words and lengths."""


def audited(directory, tmp_path, draw: DrawOptions | None = None, **options):
    """The report, and its audits by task."""
    asked = InspectOptions(output=str(tmp_path / "page.html"), quiet=True, samples=1, **options)
    report = inspect(directory, asked, draw)
    return report, {each.task: each for each in report.audits}


def levels(audit) -> dict[str, Level]:
    return {result.name: result.level for result in audit.results}


def result_of(audit, name: str):
    return next(each for each in audit.results if each.name == name)


class Longer:
    """Of two pages the one with the longer lead is always the positive."""

    @staticmethod
    def examples(graph):
        return graph["documents"].select("id")

    def draw(self, example, rng, source, options):
        other = int(rng.choice(source.documents))
        texts = (source.document(page) for page in (example, other))
        worse, better = sorted(texts, key=lambda text: len(words(text)))
        if len(words(worse)) == len(words(better)):
            return None
        query = source.title(int(rng.choice(source.documents)))
        return PairGroup("longer", Pair(query, better), (Pair(query, worse),))


class Swapped:
    """A random page is the positive, the linked page the negative of the anchor's text."""

    @staticmethod
    def examples(graph):
        return graph["anchors"].select("id")

    def draw(self, example, rng, source, options):
        anchor = source.anchor(example)
        page = int(rng.choice(source.documents))
        query = source.anchor_text(anchor)
        good, bad = source.document(page), source.document(anchor.page)
        if page == anchor.page:
            return None
        return PairGroup("swapped", Pair(query, good), (Pair(query, bad),))


@pytest.fixture(scope="module")
def planted(encyclopedia_build, tmp_path_factory):
    """The encyclopedia with the two tasks above."""
    directory = tmp_path_factory.mktemp("planted") / "build"
    shutil.copytree(encyclopedia_build, directory)
    tasks = {"longer": Longer, "swapped": Swapped}
    for name, task in tasks.items():
        TASKS.register(name)(task)
    build_examples(
        directory, ExampleOptions(tasks=list(tasks)), rules=OverwriteRules(overwrite=True)
    )
    yield directory
    for name in tasks:
        TASKS.unregister(name)


@pytest.fixture(scope="module")
def unequal(encyclopedia_build, tmp_path_factory):
    """The audit of queries of any length, the negatives' words drawn from the page."""
    draw = DrawOptions(rqp_negative_words="page", negative_query_length="drawn")
    return audited(encyclopedia_build, tmp_path_factory.mktemp("unequal"), draw, table_groups=200)


@pytest.fixture(scope="module")
def found_in_planted(planted, tmp_path_factory):
    return audited(planted, tmp_path_factory.mktemp("planted"), **FEW)


@pytest.fixture(scope="module")
def small(build, tmp_path_factory):
    """The audit of the small build by default options."""
    return audited(build, tmp_path_factory.mktemp("small"))


def test_queries_of_unequal_length_are_found(unequal, encyclopedia_build, tmp_path):
    paper = audited(encyclopedia_build, tmp_path, DrawOptions(preset="paper"), **FEW)
    for _, audits in (unequal, paper):
        found = result_of(audits["rqp"], "longer_query")
        assert found.level is Level.RED and found.measurement.value > 0.65
        assert "--negative-query-length equal" in found.advice


def test_queries_from_the_document_itself_are_found(encyclopedia_build, tmp_path):
    _, audits = audited(encyclopedia_build, tmp_path, DrawOptions(rqp_negative_words="page"), **FEW)
    found = result_of(audits["rqp"], "more_shared_words")
    assert found.level is Level.RED and found.is_reversed
    assert "--rqp-negative-words anchors_on_page" in found.advice


def test_a_task_whose_positive_is_longer_is_found(found_in_planted):
    report, audits = found_in_planted
    audit = audits["longer"]
    found = result_of(audit, "longer_document")
    assert (found.measurement.value, found.level, audit.worst) == (1.0, Level.RED, found)
    assert "--min-lead-words" in found.advice
    assert levels(audit)["more_shared_words"] is not Level.RED
    line = next(line for line in str(report).splitlines() if line.startswith("  longer "))
    assert line.split()[1:4] == ["RED", "longer", "document"]


def test_swapped_labels_are_found(found_in_planted):
    _, audits = found_in_planted
    found = result_of(audits["swapped"], "more_shared_words")
    assert found.level is Level.RED and found.is_reversed and found.measurement.value > 0.65
    assert "not swapped" in found.advice


@pytest.mark.slow
def test_default_data_passes(encyclopedia_build, tmp_path):
    _, audits = audited(encyclopedia_build, tmp_path)
    red = {(a.task, r.name) for a in audits.values() for r in a.results if r.level is Level.RED}
    assert set(audits) == set(HARP_TASKS)
    assert red <= LEFT_OPEN
    assert levels(audits["rqp"])["longer_query"] is Level.GREEN


def test_nothing_is_red_by_chance_in_a_small_build(small):
    _, audits = small
    for audit in audits.values():
        for result in audit.results:
            low, high = result.measurement.interval
            assert result.level is not Level.RED or low > 0.5
            assert result.measurement.groups <= audit.groups < 100 and low < high


@pytest.mark.parametrize("task", HARP_TASKS)
def test_shared_words_are_those_of_the_groups_that_training_draws(build, small, task):
    data = PreTrainingData(build, {task: 1}, seed=42)
    stopped, right = stop_words("english"), 0.0
    for index in range(len(data)):
        group = data.group(0, index)
        good, bad = (
            len({*words(p.query.lower())} & {*words(p.document.lower())} - stopped)
            for p in group.members
        )
        right += (good > bad) + (good == bad) / 2
    _, audits = small
    result = result_of(audits[task], "more_shared_words")
    value = 1 - right / len(data) if result.is_reversed else right / len(data)
    assert result.measurement.pairs == len(data)
    assert result.measurement.value == pytest.approx(value)


@pytest.mark.parametrize("task", HARP_TASKS)
def test_links_are_those_of_a_count_by_hand(build, task):
    anchors = read_table(build / "graph/anchors").to_pylist()
    texts = {anchor["id"]: anchor["normalized"] for anchor in anchors}
    in_links = Counter(anchor["page"] for anchor in anchors)
    targets = Counter((anchor["normalized"], anchor["page"]) for anchor in anchors)
    data = PreTrainingData(build, {task: 1}, seed=42)
    for index in range(len(data)):
        seen = observe(data.group(0, index), data.source)
        pages = [pair.document_origin.page for pair in seen.group.members]
        assert seen.in_links == tuple(in_links[page] for page in pages)
        anchor = seen.group.positive.query_origin.anchor
        if anchor is None:
            assert set(seen.occurrences) == {None}
            continue
        counted = [targets[texts[anchor], page] for page in pages]
        order = np.argsort(counted, kind="stable").tolist()
        assert order == np.argsort(seen.occurrences, kind="stable").tolist()
        assert [bool(number) for number in counted] == [bool(n) for n in seen.occurrences]


class Tables(HTMLParser):
    """The rows of all tables as texts, and the paragraphs, by the heading above."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self.texts: dict[str, list[str]] = {}
        self.section, self._cell = "", False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "h2":
            self.section = dict(attrs).get("id", "")
        elif tag == "tr":
            self.rows.setdefault(self.section, []).append([])
        elif tag in ("td", "th"):
            self.rows[self.section][-1].append("")
        elif tag == "p":
            self.texts.setdefault(self.section, []).append("")
        self._cell = tag in ("td", "th") or (self._cell and tag != "tr")

    def handle_endtag(self, tag):
        self._cell = self._cell and tag not in ("td", "th", "tr")

    def handle_data(self, data):
        if self._cell:
            self.rows[self.section][-1][-1] += data
        elif self.section in self.texts:
            self.texts[self.section][-1] += data


def test_page_json_and_terminal_say_the_same(unequal):
    report, audits = unequal
    shown = Tables(report.path.read_text(encoding="utf-8"))
    found = json.loads(report.audit_path.read_text(encoding="utf-8"))
    assert report.audit_path == report.path.with_name("page-audit.json")
    header, *rows = shown.rows["audit"]
    cells = {
        (row[0], task): cell for row in rows for task, cell in zip(header[1:], row[1:], strict=True)
    }
    assert list(found["tasks"]) == header[1:] == list(HARP_TASKS)
    for task, audit in audits.items():
        entry = found["tasks"][task]
        assert entry["worst"] == audit.worst.name
        assert entry["level"] == audit.worst.level.name.lower()
        for each, written in zip(audit.results, entry["checks"], strict=True):
            assert (written["name"], written["level"]) == (each.name, each.level.name.lower())
            assert cells[each.label, task] == f"{each.level.sign} {each.value_text}"
            said = [
                text for text in shown.texts[task] if f"{each.label}, {each.value_text}: " in text
            ]
            assert len(said) == bool(each.advice) and all(each.advice in text for text in said)
        line = next(line for line in str(report).splitlines() if line.startswith(f"  {task} "))
        assert line.split()[1] == (audit.worst.level.name if audit.worst.level else "green")
        assert f"{audit.worst.label[:31]:<32}{audit.worst.value_text}" in line


def test_terminal_names_the_worst_check_and_all_that_are_not_green(unequal):
    report, audits = unequal
    text = str(report)
    lines = [line for line in text.splitlines() if "page.html" not in line]
    assert max(map(len, lines)) <= 80
    for audit in audits.values():
        named = [each for each in audit.results if each.level is not Level.GREEN]
        for each in [*named, audit.worst]:
            assert f"{each.label[:31]:<32}{each.value_text}" in text
    assert text.count("  RED") + text.count(" YELLOW") == sum(
        each.level is not Level.GREEN for audit in audits.values() for each in audit.results
    )


def test_same_seed_same_bytes_of_the_page_and_the_audit_beside_it(build, tmp_path):
    def written(folder: str, seed: int) -> list[bytes]:
        options = InspectOptions(
            output=str(tmp_path / folder / "inspect.html"), seed=seed, quiet=True
        )
        inspect(build, options)
        names = ("inspect.html", "audit.json")
        return [(tmp_path / folder / name).read_bytes() for name in names]

    page, audit = written("a", 42)
    assert written("b", 42) == [page, audit]
    other_page, other_audit = written("c", 43)
    assert page != other_page and audit != other_audit
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "audit.json",
        "inspect.html",
    ]


@pytest.mark.slow
def test_default_data_of_a_wikipedia_passes(shared_data, tiny_bert, tmp_path):
    from harp_plugin.commands.build import BuildOptions, build
    from harp_plugin.weights.options import WeightOptions

    source = shared_data / "wiki" / "simplewiki-20100814-999.xml.bz2"
    others = ["prop", "srr", "rwi", "ati", "ltm", "ict", "bfs", "wlp"]
    directory = tmp_path / "build"
    options = BuildOptions(output_dir=str(directory), device="cpu", quiet=True)
    build([source], options, WeightOptions(model=str(tiny_bert)))
    _, audits = audited(directory, tmp_path)
    red = {(a.task, r.name) for a in audits.values() for r in a.results if r.level is Level.RED}
    assert set(audits) == set(HARP_TASKS)
    assert red <= LEFT_OPEN
    options = replace(options, tasks=[*HARP_TASKS, *others], overwrite=True)
    build([source], options, WeightOptions(model=str(tiny_bert)))
    _, audits = audited(directory, tmp_path, DrawOptions(preset="paper"), **FEW)
    assert set(audits) == {*HARP_TASKS, *others}
    assert levels(audits["rqp"])["longer_query"] is Level.RED


def test_checks_that_need_an_encoder_are_run_or_said_to_be_left_out(
    build, small, tiny_bert, tmp_path
):
    def written(report):
        page = report.path.read_text(encoding="utf-8")
        return page, json.loads(report.audit_path.read_text(encoding="utf-8")), str(report)

    report, audits = small
    page, found, text = written(report)
    assert {"document_probe", "higher_cosine"} <= set(levels(audits["acm"]))
    assert "were not run" not in page + text
    assert found["model_checks_not_run"] is None and found["model"] == str(tiny_bert)
    report, audits = audited(build, tmp_path, model_checks=False)
    page, found, text = written(report)
    assert not {"query_probe", "document_probe", "higher_cosine"} & set(levels(audits["acm"]))
    for shown in (page, text):
        assert "The checks that need an encoder were not run:" in shown
        assert "--no-model-checks" in shown
    assert found["model_checks_not_run"] == "--no-model-checks" and found["model"] is None


def test_a_model_that_nobody_named_is_not_loaded(build, tmp_path, monkeypatch, tokenizer):
    from harp_plugin.inspection import run

    directory = tmp_path / "build"
    shutil.copytree(build, directory)
    shutil.rmtree(directory / "weights")
    build_examples(directory, ExampleOptions(tasks=["ict"]), rules=OverwriteRules(overwrite=True))
    monkeypatch.setattr(run, "load_tokenizer", lambda name: tokenizer)
    report, audits = audited(directory, tmp_path)
    assert "document_probe" not in levels(audits["ict"])
    assert "the build has no model: name a --model" in report.not_run


def test_kinds_of_checks_stand_apart(small):
    report, audits = small
    found = json.loads(report.audit_path.read_text(encoding="utf-8"))["tasks"]
    kinds = {(task, each["name"]): each["kind"] for task in found for each in found[task]["checks"]}
    assert kinds["rqp", "higher_bm25"] == "rule" and kinds["acm", "higher_bm25"] == "baseline"
    assert kinds["rqp", "higher_cosine"] == "baseline"
    assert kinds["acm", "more_in_links"] == "rule"
    best = max(e["value"] for e in found["acm"]["checks"] if e["kind"] == "baseline")
    assert audits["acm"].best_baseline.measurement.value <= best
