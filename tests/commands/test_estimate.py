"""`harp build --dry-run`: its estimates against what a build gives."""

import bz2
import random

import pytest
from dumps import dump_xml

from harp_plugin.commands.build import BuildOptions, build
from harp_plugin.commands.estimate import estimate, report
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.errors import HarpError
from harp_plugin.graph import GraphOptions
from harp_plugin.weights.options import WeightOptions

PAGES = 800


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    """Pages in random order; of five links each, two dangle; two in a sentence, one alone."""
    rng = random.Random(7)

    def page(number):
        targets = [f"Page {rng.randrange(PAGES)}" for _ in range(3)]
        words = " ".join(rng.choices(["apple", "pear", "plum"], k=rng.randrange(20, 60)))
        return (
            f"The {words} of [[{targets[0]}|one]] is near [[{targets[1]}]]. "
            f"Some [[No such page {number}|none]] is [[Nowhere {number}]]. A [[{targets[2]}]]."
        )

    numbers = rng.sample(range(PAGES), PAGES)
    path = tmp_path_factory.mktemp("dump") / "d.xml.bz2"
    pages = {f"Page {number}": page(number) for number in numbers}
    redirects = {f"Moved {number}": f"Page {number}" for number in range(50)}
    path.write_bytes(bz2.compress(dump_xml(pages, redirects).encode(), compresslevel=1))
    return path


def estimate_from(dump, tmp_path, model, pages):
    options = BuildOptions(output_dir=str(tmp_path), dry_run=True, sample_pages=pages, device="cpu")
    options.workers = 1
    graph, weights = GraphOptions(min_words=0), WeightOptions(model=str(model))
    return options, graph, weights, estimate([dump], options, CorpusOptions(), graph, weights)


@pytest.mark.integration
def test_all_of_it_is_counted(dump, tmp_path, tiny_bert):
    options, graph, weights, expected = estimate_from(dump, tmp_path, tiny_bert, 10_000)
    assert expected.fraction == 1
    manifests = build([dump], options, graph=graph, weights=weights)
    real = {**manifests["corpus"]["rows"], **manifests["examples"]["rows"]}
    for name in ("pages", "links", "redirects", "rqp", "qdm", "rdp", "acm"):
        assert expected.rows[name] == real[name]
    folder = sum(path.stat().st_size for path in tmp_path.rglob("*.parquet"))
    assert folder / 3 < expected.size < folder * 6


def test_a_quarter_is_extrapolated_to_the_whole(dump, tmp_path, tiny_bert):
    *_, whole = estimate_from(dump, tmp_path, tiny_bert, 10_000)
    *_, expected = estimate_from(dump, tmp_path, tiny_bert, PAGES // 4)
    assert 0.1 < expected.fraction < 0.45
    for name in ("pages", "links", "documents", "linked sentences", "rqp", "rdp"):
        assert expected.rows[name] == pytest.approx(whole.rows[name], rel=0.3)
    assert not list(tmp_path.iterdir())


def test_no_link_leads_into_the_sample(tmp_path, tiny_bert):
    """Pages and documents are counted all the same; of examples the sample says nothing."""
    pages = {f"Page {n:03d}": f"A [[Page {n + 100:03d}]] and more text." for n in range(100)}
    source = tmp_path / "d.xml"
    source.write_text(dump_xml(pages | {f"Page {n}": "Much text." for n in range(100, 200)}))
    *_, expected = estimate_from(source, tmp_path / "out", tiny_bert, 50)
    assert expected.rows["rqp"] == expected.rows["rdp"] == 0
    assert expected.rows["documents"] == expected.rows["pages"] == pytest.approx(200, rel=0.3)


def test_no_example_comes_out_of_a_part(tmp_path):
    """Links lead into the sample, but no text leads to two pages, which QDM needs."""
    pages = {f"Page {n}": f"A [[Page {n * 7 % 200}]] and more text." for n in range(200)}
    source = tmp_path / "d.xml"
    source.write_text(dump_xml(pages))
    options = BuildOptions(output_dir=str(tmp_path / "out"), tasks=["qdm"], sample_pages=60)
    options.stages, graph = ["corpus", "graph", "examples"], GraphOptions(min_words=0)
    expected = estimate([source], options, CorpusOptions(), graph, WeightOptions())
    assert expected.rows["qdm"] == 0 < expected.rows["linked sentences"]


def test_a_folder_of_small_files(tmp_path, tiny_bert):
    """As many files are read as the asked number of pages needs."""
    folder = tmp_path / "site"
    folder.mkdir()
    for number in range(120):
        text = f'One <a href="{(number * 7) % 120}.html">page</a> leads to another. ' * 3
        (folder / f"{number}.html").write_text(f"<html><body><p>{text}</p></body></html>")
    *_, expected = estimate_from(folder, tmp_path / "out", tiny_bert, 60)
    assert 0.4 < expected.fraction < 0.7
    assert expected.rows["pages"] == pytest.approx(120, rel=0.1)
    assert expected.rows["rqp"] == pytest.approx(357, rel=0.3)


def test_report(dump, tmp_path, tiny_bert):
    *_, expected = estimate_from(dump, tmp_path, tiny_bert, 100)
    lines = report(expected, tmp_path / "not" / "there").splitlines()
    assert max(map(len, lines)) <= 80
    for word in ("pages", "rqp", "qdm", "weights", "disk", "free"):
        assert any(word in line for line in lines)


def test_what_is_missing_is_an_error(tmp_path, tiny_bert):
    with pytest.raises(HarpError, match="no source at"):
        estimate_from(tmp_path / "absent.xml", tmp_path, tiny_bert, 10)
    (tmp_path / "source").mkdir()
    empty = tmp_path / "source" / "d.xml"
    empty.write_text(dump_xml({}))
    with pytest.raises(HarpError, match="nothing came out"):
        estimate_from(empty, tmp_path / "out", tiny_bert, 10)


@pytest.mark.integration
def test_tasks_outside_of_harp_are_counted_without_a_model(dump, tmp_path):
    options = BuildOptions(output_dir=str(tmp_path), tasks=["prop", "ict", "wlp"], workers=1)
    options.sample_pages, options.quiet = 10_000, True
    graph = GraphOptions(min_words=0, min_lead_words=30, functional_anchors="drop")
    expected = estimate([dump], options, CorpusOptions(), graph, WeightOptions())
    manifests = build([dump], options, graph=graph)
    real = manifests["examples"]["rows"]
    assert {task: expected.rows[task] for task in options.tasks} == real
    assert expected.rows["documents"] == manifests["graph"]["rows"]["documents"]
    assert "rqp" not in expected.rows and "weights" not in expected.seconds


def test_a_folder_with_parts_of_pages(tmp_path):
    """Each file is read to its end; a part of other pages is no page, but counts as read."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(40):
        text = f"Read [the next page](page{number + 1}.md) of this manual, which is short. "
        (folder / f"page{number}.md").write_text(f"# Page {number}\n\n{text * 3}\n")
        (folder / f"_part{number}.md").write_text("A line that other pages include.\n")
    options = BuildOptions(output_dir=str(tmp_path / "out"), tasks=["anchor"], workers=1)
    options.sample_pages = 20
    graph, weights = GraphOptions(min_words=0), WeightOptions()
    expected = estimate([folder], options, CorpusOptions(reader="markdown"), graph, weights)
    assert 0.2 < expected.fraction < 0.8
    assert 20 <= expected.rows["pages"] <= 60
