"""The stage ``query_likeness`` on 150 real articles, and the examples that it leaves."""

import math
import re
import shutil

import numpy as np
import pytest
from builds import read_table
from sentence_transformers import SentenceTransformer
from sklearn.linear_model import LogisticRegression

from harp_plugin.cli import main
from harp_plugin.errors import HarpError
from harp_plugin.negatives import query_likeness
from harp_plugin.negatives.options import QueryLikenessOptions
from harp_plugin.negatives.query_likeness import build_query_likeness, read_queries
from harp_plugin.ranking.dense.encoder import Encoder
from harp_plugin.sampling import generator
from harp_plugin.tasks import DrawOptions, PreTrainingData
from harp_plugin.tasks.build import build_examples
from harp_plugin.tasks.registry import ExampleOptions

pytestmark = pytest.mark.integration


def run(folder, examples, encoder):
    options = QueryLikenessOptions(query_examples=examples, query_likeness_encoder=str(encoder))
    return build_query_likeness(folder, options, device="cpu")


QUERIES = [f"how does {thing} {verb}" for thing in ("water", "light", "ice") for verb in "abcdefgh"]


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    path = tmp_path_factory.mktemp("queries") / "queries.tsv"
    path.write_text("".join(f"{n}\t{query}\n" for n, query in enumerate([*QUERIES, *QUERIES])))
    return str(path)


@pytest.fixture(scope="module")
def built(linked150, tmp_path_factory):
    """A build with examples and no scores; not to be changed."""
    folder = tmp_path_factory.mktemp("examples")
    for stage in ("corpus", "graph"):
        shutil.copytree(linked150 / stage, folder / stage)
    build_examples(folder, ExampleOptions(tasks=["anchor"]))
    return folder


@pytest.fixture
def build(built, tmp_path):
    return shutil.copytree(built, tmp_path / "build")


def scores_of(folder):
    table = read_table(folder / "query_likeness" / "anchor_texts").to_pylist()
    return {row["id"]: row["score"] for row in table}


def test_scores_are_those_of_a_logistic_regression(build, examples, tiny_bert):
    run(build, examples, tiny_bert)
    rows = sorted(read_table(build / "graph" / "anchor_texts").to_pylist(), key=lambda r: r["id"])
    theirs = SentenceTransformer(str(tiny_bert), device="cpu")
    texts = theirs.encode([row["normalized"] for row in rows], normalize_embeddings=True)
    queries = theirs.encode(sorted(QUERIES), normalize_embeddings=True)
    ids = np.array([row["id"] for row in rows])
    chosen = np.sort(generator(42, "raw anchors").choice(ids, len(QUERIES), replace=False))
    negatives = texts[np.searchsorted(ids, chosen)]
    model = LogisticRegression(class_weight="balanced", max_iter=1000)
    model.fit(np.concatenate([queries, negatives]), [1] * len(queries) + [0] * len(negatives))
    found = scores_of(build)
    assert list(found) == ids.tolist()
    np.testing.assert_allclose(list(found.values()), model.decision_function(texts), atol=2e-3)


def test_a_stopped_stage_goes_on_to_the_same_bytes(
    build, examples, tiny_bert, tmp_path, monkeypatch
):
    monkeypatch.setattr(query_likeness, "_TEXTS_PER_SHARD", 60)
    shutil.copytree(build, tmp_path / "whole")
    run(tmp_path / "whole", examples, tiny_bert)
    encode, calls = Encoder.queries, []

    def stopping(self, texts):
        calls.append(len(texts))
        if len(calls) == 5:
            raise KeyboardInterrupt
        return encode(self, texts)

    with monkeypatch.context() as patch:
        patch.setattr(Encoder, "queries", stopping)
        with pytest.raises(KeyboardInterrupt):
            run(build, examples, tiny_bert)
    run(build, examples, tiny_bert)
    found, expected = (
        {path.name: path.read_bytes() for path in (folder / "query_likeness").rglob("*.parquet")}
        for folder in (build, tmp_path / "whole")
    )
    assert found == expected and len(found) > 2


def test_a_fraction_of_the_texts_is_drawn_from(build, examples, tiny_bert):
    run(build, examples, tiny_bert)
    folder, scores = build, scores_of(build)
    anchors = {row["id"]: row for row in read_table(folder / "graph" / "anchors").to_pylist()}
    every = read_table(folder / "examples" / "anchor").column("id").to_pylist()
    texts = sorted({anchors[id]["text_id"] for id in every}, key=lambda text: (-scores[text], text))
    best = set(texts[: math.ceil(0.25 * len(texts))])
    expected, of_page = [], {}
    for id in sorted(every):
        page = anchors[id]["page"]
        if anchors[id]["text_id"] in best and of_page.get(page, 0) < 2:
            of_page[page] = of_page.get(page, 0) + 1
            expected.append(id)
    draw = DrawOptions(query_like_share=0.25, anchors_per_page=2)
    data = PreTrainingData(folder, {"anchor": 1}, draw=draw)
    assert data._ids["anchor"].tolist() == expected
    assert data.group(0, 0).positive.query_origin.anchor in expected
    assert data.fingerprint != PreTrainingData(folder, {"anchor": 1}).fingerprint


def test_queries_of_a_file_or_a_dataset(examples, tmp_path):
    assert read_queries(examples) == sorted(QUERIES)
    assert len(read_queries("harp-encyclopedia")) >= 20
    few = tmp_path / "few.txt"
    few.write_text("one\ntwo\nTwo \n")
    with pytest.raises(HarpError, match="has 2 distinct queries: give at least 20"):
        read_queries(str(few))
    with pytest.raises(HarpError, match=r"no/such.txt"):
        read_queries("no/such.txt")


def test_what_is_missing_is_said(build, shared_data, tiny_bert, tmp_path, capsys):
    source = str(shared_data / "wiki" / "simplewiki-core150.xml.bz2")
    flags = ["--output-dir", str(tmp_path / "x"), "--tasks", "anchor", "--quiet"]
    assert main(["build", source, *flags, "--query-examples", "no/such.txt"]) == 2
    assert re.search("no/such.txt", capsys.readouterr().err)
    assert main(["build", source, *flags, "--stages", "query_likeness"]) == 2
    assert "needs --query-examples" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
    with pytest.raises(HarpError, match=r"--query-like-share is 0\.0: it must be above 0"):
        DrawOptions(query_like_share=0.0)
    with pytest.raises(HarpError, match=r"no finished stage in .*query_likeness"):
        PreTrainingData(build, {"anchor": 1}, draw=DrawOptions(query_like_share=0.5))
