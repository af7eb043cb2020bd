"""The stage ``dense_negatives`` on 150 real articles, beside sentence-transformers."""

import shutil

import numpy as np
import pytest
from builds import read_table
from sentence_transformers import SentenceTransformer

from harp_plugin.cli import main
from harp_plugin.commands.check import check
from harp_plugin.errors import HarpError
from harp_plugin.negatives import mining
from harp_plugin.negatives.dense import build_dense_negatives
from harp_plugin.negatives.options import NegativeOptions
from harp_plugin.negatives.queries import QUERIES, BuildTexts
from harp_plugin.ranking.dense.encoder import Encoder
from harp_plugin.ranking.dense.index import DenseIndex
from harp_plugin.tasks import DrawOptions, PreTrainingData
from harp_plugin.tasks.build import build_examples
from harp_plugin.tasks.registry import ExampleOptions

pytestmark = pytest.mark.integration

DEPTH = 10


TASKS = ExampleOptions(tasks=["anchor", "rdp", "ict"])
"""They draw negatives by every kind of queries."""


def run(folder, encoder):
    options = NegativeOptions(negatives_depth=DEPTH, negatives_encoder=str(encoder))
    return build_dense_negatives(folder, TASKS, options, device="cpu")


@pytest.fixture
def build(linked150, tmp_path):
    for stage in ("corpus", "graph"):
        shutil.copytree(linked150 / stage, tmp_path / "build" / stage)
    return tmp_path / "build"


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*.parquet")}


def test_pages_are_the_nearest_of_all(build, tiny_bert):
    run(build, tiny_bert)
    texts, theirs = (
        BuildTexts(build),
        SentenceTransformer(str(tiny_bert), device="cpu"),
    )
    documents = theirs.encode(texts.document_texts(texts.document_ids), normalize_embeddings=True)
    for queries in QUERIES:
        ids = texts.ids(queries)
        table = read_table(build / "dense_negatives" / queries).to_pylist()
        assert [row["id"] for row in table] == ids.tolist()
        asked = theirs.encode(texts.queries(queries, ids), normalize_embeddings=True)
        for row, scores in zip(table, asked @ documents.T, strict=True):
            assert len(row["pages"]) == DEPTH
            np.testing.assert_allclose(row["scores"], np.sort(scores)[::-1][:DEPTH], atol=1e-5)
            places = np.searchsorted(texts.document_ids, row["pages"])
            np.testing.assert_allclose(row["scores"], scores[places], atol=1e-5)
    assert not list((build / "mapped").glob("dense-*"))
    assert not check(build).damages


def test_a_stopped_stage_goes_on_to_the_same_bytes(build, tiny_bert, tmp_path, monkeypatch):
    shutil.copytree(build, tmp_path / "whole")
    monkeypatch.setattr(mining, "QUERIES_PER_SHARD", 100)
    run(tmp_path / "whole", tiny_bert)
    search, calls = DenseIndex.search, []

    def stopping(self, *arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return search(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(DenseIndex, "search", stopping)
        with pytest.raises(KeyboardInterrupt):
            run(build, tiny_bert)
        patch.setattr(Encoder, "documents", None)  # the vectors are there
        run(build, tiny_bert)
    found = files_of(build / "dense_negatives")
    assert found == files_of(tmp_path / "whole" / "dense_negatives") and len(found) > 3
    monkeypatch.setattr(DenseIndex, "make", None)
    run(build, tiny_bert)


def test_a_task_draws_them(build, tiny_bert):
    run(build, tiny_bert)
    build_examples(build, TASKS)
    draw = DrawOptions(negatives="dense", negatives_per_group=3)
    data = PreTrainingData(build, {"anchor": 1}, draw=draw)
    table = data.source
    for index in range(20):
        group = data.group(0, index)
        anchor = table.anchor(group.positive.query_origin.anchor)
        ranked = table.hard_negatives("dense", "anchor_texts", anchor.text_id)
        pages = [pair.document_origin.page for pair in group.negatives]
        assert set(pages) <= set(ranked) - table.text_targets(anchor.text_id)


def test_the_encoder_and_the_kind_belong_together(shared_data, tiny_bert, tmp_path, capsys):
    simplewiki = str(shared_data / "wiki" / "simplewiki-core150.xml.bz2")
    line = ["build", simplewiki, "--output-dir", str(tmp_path / "build"), "--tasks", "anchor"]
    assert main([*line, "--negatives", "dense"]) == 2
    assert "--negatives dense needs --negatives-encoder" in capsys.readouterr().err
    assert main([*line, "--negatives-encoder", str(tiny_bert)]) == 2
    assert "belongs to --negatives dense" in capsys.readouterr().err
    assert not (tmp_path / "build").exists()


def test_another_encoder_needs_overwrite(build, tiny_bert, tmp_path):
    run(build, tiny_bert)
    other = shutil.copytree(tiny_bert, tmp_path / "other")
    with pytest.raises(HarpError, match=r"encoder: .* give --overwrite"):
        run(build, other)
