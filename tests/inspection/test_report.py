"""The table's figures, and the page as a person reads it."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from collections import defaultdict

import pytest
from builds import read_table
from shown_samples import PageReader
from tasks_of_others import Nothing, Ties, Titles
from transformers import HfArgumentParser

from harp_plugin.errors import HarpError
from harp_plugin.inspection import InspectOptions, inspect
from harp_plugin.models.loading import load_tokenizer
from harp_plugin.tasks import (
    HARP_TASKS,
    PRESETS,
    TASKS,
    DrawOptions,
    PreTrainingData,
)
from harp_plugin.tasks.build import build_examples
from harp_plugin.tasks.registry import ExampleOptions
from harp_plugin.tasks.terms import stop_words
from harp_plugin.text import words
from harp_plugin.work.provenance import OverwriteRules


@pytest.fixture(scope="module")
def look(build, tmp_path_factory):
    """Inspects the build with a preset; gives the report and what its page shows."""
    known = {}

    def inspected(preset: str = "default"):
        if preset not in known:
            output = tmp_path_factory.mktemp("page") / "deep" / f"{preset}.html"
            options = InspectOptions(output=str(output), model_checks=False, quiet=True)
            report = inspect(build, options, DrawOptions(preset=preset))
            known[preset] = report, PageReader(report.path.read_text(encoding="utf-8"))
        return known[preset]

    return inspected


def drawn_groups(build, task, preset="default"):
    data = PreTrainingData(build, {task: 1}, seed=42, draw=DrawOptions(preset=preset))
    return [data.group(0, index) for index in range(len(data))]


def test_numbers_of_examples_are_those_of_a_count_by_hand(build, look):
    anchors = read_table(build / "graph" / "anchors").to_pylist()
    by_sentence, by_text = defaultdict(set), defaultdict(set)
    for anchor in anchors:
        by_sentence[anchor["sentence"]].add(anchor["page"])
        by_text[anchor["normalized"]].add(anchor["page"])
    several = sum(len(pages) > 1 for pages in by_sentence.values())
    ambiguous = sum(len(by_text[anchor["normalized"]]) > 1 for anchor in anchors)
    found = {row.task: row.examples for row in look()[0].rows}
    assert found == {"rqp": len(anchors), "qdm": ambiguous, "rdp": several, "acm": several}
    assert min(found.values()) > 0


@pytest.mark.parametrize("task", HARP_TASKS)
def test_mean_tokens_are_those_of_the_pairs_drawn(build, look, tiny_bert, task):
    tokenizer = load_tokenizer(str(tiny_bert))
    pairs = [pair for group in drawn_groups(build, task) for pair in group.members]
    queries = sum(len(tokenizer.tokenize(pair.query)) for pair in pairs) / len(pairs)
    documents = sum(len(tokenizer.tokenize(pair.document)) for pair in pairs) / len(pairs)
    report, _ = look()
    row = next(row for row in report.rows if row.task == task)
    assert row.pairs == len(pairs)
    assert (row.query, row.document) == pytest.approx((queries, documents))
    line = next(line for line in str(report).splitlines() if line.startswith(f"{task} "))
    assert line.split()[1:4] == [str(row.examples), str(len(pairs)), f"{queries:.2f}"]
    assert line.split()[5] == f"{documents:.2f}"


def test_table_stands_beside_the_papers(look):
    lines = str(look()[0]).splitlines()
    table = [line.split() for line in lines if line.startswith(HARP_TASKS)]
    paper = [[row[4], row[6], row[7]] for row in table]
    assert paper == [
        ["2.64", "90.48", "17.71M"],
        ["2.80", "81.17", "1.35M"],
        ["34.90", "85.86", "6.49M"],
        ["4.55", "73.64", "12.64M"],
    ]
    assert max(map(len, lines[:-1])) <= 80
    assert "without special tokens" in " ".join(lines)


def test_pages_links_and_drops_are_counted(look):
    report, _ = look()
    assert report.counts["pages"] == 6
    assert report.counts["links"] == report.counts["links that resolve"] + 1
    assert report.drops["graph"] == [("link to a missing page", 1)]
    assert "link to a missing page" in str(report)
    assert "link to a missing page" in report.path.read_text(encoding="utf-8")


def test_fewer_groups_may_be_drawn(build, tmp_path):
    options = InspectOptions(output=str(tmp_path / "a.html"), samples=1, table_groups=3, quiet=True)
    report = inspect(build, options)
    assert [row.pairs for row in report.rows] == [6, 6, 6, 6]
    assert [len(samples) for samples in report.samples.values()] == [1, 1, 1, 1]


@pytest.mark.parametrize("preset", PRESETS)
def test_every_sample_is_the_group_that_training_draws(build, look, preset):
    _, page = look(preset)
    leads = {row["title"]: row["lead"] for row in read_table(build / "corpus/pages").to_pylist()}
    for task in HARP_TASKS:
        shown = [sample for sample in page.samples if sample.task == task]
        groups = drawn_groups(build, task, preset)
        assert len(shown) == min(12, len(groups))
        for sample in shown:
            group = groups[sample.index]
            assert sample.signs == ["+", "−"]
            for query, pair in zip(sample.queries, group.members, strict=True):
                whole = sample.origins[0] if query == ["the whole sentence"] else " ".join(query)
                assert whole == pair.query
            assert tuple(sample.documents) == tuple(pair.document for pair in group.members)
            assert [leads[title] for title in sample.titles] == sample.documents


@pytest.mark.parametrize("preset", PRESETS)
def test_sampled_words_are_underlined_where_they_were_drawn(look, preset):
    _, page = look(preset)
    stopped = stop_words(DrawOptions(preset=preset).stop_words)
    for sample in page.samples:
        sampled = list(sample.queries[0])
        if sample.task == "rdp":
            continue
        sampled.pop(0)
        assert sampled
        source = 1 if sample.task == "acm" else 0
        assert set(sampled) <= set(sample.underlined[source])
        assert not set(sampled) & stopped
        if sample.task == "rqp":
            held = set(words(sample.documents[-1].lower())) - stopped
            drawn = set(map(str.lower, sample.queries[1])) - stopped
            assert drawn & held <= set(sample.underlined[-1])
            assert preset == "default" or drawn <= held


def test_anchors_show_where_they_lead(build, look):
    _, page = look()
    titles = {row["id"]: row["title"] for row in read_table(build / "corpus/pages").to_pylist()}
    texts = {row["id"]: row["text"] for row in read_table(build / "corpus/sentences").to_pylist()}
    links = defaultdict(list)
    for anchor in read_table(build / "graph" / "anchors").to_pylist():
        links[texts[anchor["sentence"]]].append((anchor["start"], titles[anchor["page"]]))
    for sample in page.samples:
        assert sample.targets == [title for _, title in sorted(links[sample.origins[0]])]


def test_the_page_may_load_and_run_nothing(look):
    text = look()[0].path.read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)[1]
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert [rule.strip() for rule in policy.split(";")] == [
        "default-src 'none'",
        f"style-src 'sha256-{allowed}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert " style=" not in text and text.index(policy) < text.index("<style>")


def test_texts_are_escaped(look):
    report, page = look()
    text = report.path.read_text(encoding="utf-8")
    assert "script" not in page.tags and "shiny" not in page.tags
    assert "<script" not in text.lower()
    assert any('<script\n>alert("planted")</script' in d for s in page.samples for d in s.documents)
    assert any("Metal <shiny> & hard" in sample.titles for sample in page.samples)


def test_paragraphs_of_a_document_stand_on_lines_of_their_own(look):
    report, _ = look("default")
    assert ".shown { white-space: pre-line; }" in report.path.read_text(encoding="utf-8")


def test_page_needs_nothing_beside_itself(look):
    report, page = look()
    text = report.path.read_text(encoding="utf-8")
    assert not page.tags & {"script", "link", "img", "iframe", "object"}
    assert not page.attributes & {"src", "onload", "onclick", "style"}
    assert "url(" not in text and "@import" not in text and not re.search("https?:", text)


def test_words_that_were_not_drawn_are_not_shown_as_drawn(build, tmp_path):
    """With mercury among the stop words, it stands in both queries of RQP."""
    (tmp_path / "list").write_text("mercury")
    options = InspectOptions(output=str(tmp_path / "a.html"), quiet=True)
    draw = DrawOptions(stop_words=str(tmp_path / "list"), rqp_negative_words="mirrored")
    report = inspect(build, options, draw)
    roles = defaultdict(set)
    for sample in report.samples["rqp"]:
        for text, role in sample.members[1].query:
            roles[text.lower() == "mercury"].add(role)
    assert roles == {True: {"kept"}, False: {"sampled"}}


def test_the_lead_is_shaded_behind_a_title(build, tmp_path):
    """The words of the title have no weight; those of the lead have theirs."""
    options = InspectOptions(output=str(tmp_path / "a.html"), quiet=True, samples=2)
    reports = [
        inspect(build, options, DrawOptions(document_fields=fields))
        for fields in (None, ["title", "lead"])
    ]
    seen = 0
    for task in HARP_TASKS:
        for plain, titled in zip(*(report.samples[task] for report in reports), strict=True):
            for before, after in zip(plain.members, titled.members, strict=True):
                assert after.query == before.query and after.title == before.title
                assert after.document.striptags().startswith(f"{after.title} ")
                weighed = [
                    re.findall(r'title="([.\d]+)">([^<]+)<', member.document)
                    for member in (before, after)
                ]
                assert weighed[0] and weighed[1] == weighed[0][: len(weighed[1])]
                seen += len(weighed[1])
    assert seen > 100


@pytest.fixture
def registered():
    tasks = {"titles": Titles, "nothing": Nothing, "ties": Ties}
    for name, task in tasks.items():
        TASKS.register(name)(task)
    yield list(tasks)
    for name in tasks:
        TASKS.unregister(name)


def test_tasks_of_other_packages_are_shown(build, tmp_path, registered):
    other = tmp_path / "build"
    shutil.copytree(build, other)
    build_examples(other, ExampleOptions(tasks=registered), rules=OverwriteRules(overwrite=True))
    report = inspect(other, InspectOptions(model_checks=False, quiet=True))
    assert [(row.examples, row.pairs) for row in report.rows] == [(6, 18), (0, 0), (6, 0)]
    assert report.rows[1].query is None
    assert report.drops["drawing"] == [("ties: no pair in 100 examples on end", 1)]
    text = report.path.read_text(encoding="utf-8")
    samples = PageReader(text).samples
    assert [sample.signs for sample in samples] == [["+", "−1", "−2"]] * 6
    assert all(sample.titles[1:] == ["Document", "Document"] for sample in samples)
    assert all(sample.queries[0] == [sample.titles[0]] for sample in samples)
    assert "the page&#39;s own beats the next one&#39;s." in text and "More is not" not in text


def test_what_is_wrong_is_said_in_one_line(build, tmp_path):
    with pytest.raises(HarpError, match="run `harp build`"):
        inspect(tmp_path)
    with pytest.raises(HarpError, match="--samples is -1"):
        InspectOptions(samples=-1)
    with pytest.raises(HarpError, match="--table-groups is 0"):
        InspectOptions(table_groups=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(HarpError, match=r"cannot write .*--output"):
        inspect(build, InspectOptions(output=str(tmp_path / "file" / "page.html"), quiet=True))
    with pytest.raises(HarpError, match="no model at"):
        inspect(build, InspectOptions(model=str(tmp_path / "none"), quiet=True))


def test_options_can_be_flags():
    parser = HfArgumentParser((InspectOptions, DrawOptions))
    options, draw = parser.parse_args_into_dataclasses(
        ["--samples", "3", "--quiet", "--preset", "paper"]
    )
    assert (options.samples, options.quiet, draw.temperature) == (3, True, "1")
