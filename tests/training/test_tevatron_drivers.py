"""Drivers of Tevatron's main branch, as they are, on our checkpoints and exported pairs."""

import json
import pickle
import shutil
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from harp_plugin.commands.export import ExportOptions, export
from harp_plugin.ranking import HarpReranker, Scorer
from harp_plugin.ranking.dense.vectors import TextVectors
from harp_plugin.training.run import fit, train

from .conftest import SentenceGroups, parse

pytestmark = pytest.mark.integration
LENGTH = 48
TASKS = ["rqp", "qdm", "rdp", "acm"]


@pytest.fixture
def trained(core150, tiny_bert, tmp_path):
    """Trains a tiny model for ten steps on the articles, from weights that tell texts apart."""
    model = AutoModelForSequenceClassification.from_pretrained(tiny_bert)
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 10 if weight.dim() == 2 else 1
    shutil.copytree(tiny_bert, tmp_path / "start")
    model.save_pretrained(tmp_path / "start")

    def run(**options):
        recipe = {
            "model": str(tmp_path / "start"),
            "build_dir": str(core150),
            "tasks": dict.fromkeys(TASKS, 1),
            "output_dir": str(tmp_path / "model"),
            "max_length": LENGTH,
            "learning_rate": 1e-3,
            "max_steps": 10,
            "use_cpu": True,
            "quiet": True,
        }
        return train(*parse(recipe | options))

    return run


@pytest.fixture
def exported(core150, tmp_path):
    """Forty groups in the format of Tevatron: folder, groups and texts of the documents."""
    options = ExportOptions(
        str(tmp_path / "pairs"), TASKS, groups_per_epoch=40, format="tevatron", quiet=True
    )
    folder = export(core150, options)
    rows = lines(folder / "data" / "train-00000.jsonl")
    texts = {row["docid"]: row["text"] for row in lines(folder / "corpus" / "corpus.jsonl")}
    return folder, {row["query_id"]: row for row in rows}, texts


@pytest.fixture
def driver(python_on_main, tmp_path):
    """Runs a driver as ``python -m``, or a script that runs one, with options."""

    def run(*start, **options):
        options |= {"dataset_cache_dir": tmp_path / "cache"} if "dataset_name" in options else {}
        flags = [part for name, value in options.items() for part in (f"--{name}", value)]
        python_on_main(*start, *flags)

    return run


def lines(file):
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.mark.skipif(find_spec("peft") is None, reason="Tevatron's retriever needs peft")
def test_vectors_and_search_of_the_retriever(driver, trained, exported, tmp_path):
    """The rows of RQP, whose query is the document, are cut as documents are."""
    folder, groups, texts = exported
    encoder = trained(
        model_kind="bi-encoder", pooling="mean", losses={"contrastive": 1}, normalize=True
    )
    common = {
        "model_name_or_path": encoder,
        "dataset_name": folder,
        "pooling": "mean",
        "normalize": True,
        "attn_implementation": "sdpa",
        "output_dir": tmp_path / "unused",
        "query_max_len": LENGTH,
        "passage_max_len": LENGTH,
        "use_cpu": True,
    }
    module = "tevatron.retriever.driver"
    driver("-m", f"{module}.encode", **common, dataset_config="corpus", encode_output_path="d.pkl")
    driver("-m", f"{module}.encode", **common, encode_is_query=True, encode_output_path="q.pkl")
    (documents, docids), (queries, query_ids) = (
        pickle.loads((tmp_path / name).read_bytes()) for name in ("d.pkl", "q.pkl")
    )
    assert (docids, query_ids) == (list(texts), list(groups))
    ours = TextVectors.load(str(encoder), torch.device("cpu"), "float32", None, LENGTH)
    our_documents = ours.documents(list(texts.values()))
    our_queries = ours.queries([group["query_text"] for group in groups.values()])
    np.testing.assert_allclose(documents, our_documents, atol=1e-4)
    np.testing.assert_allclose(queries, our_queries, atol=1e-4)

    driver(
        *("-m", f"{module}.search", "--save_text"),
        **{
            "query_reps": "q.pkl",
            "passage_reps": "d.pkl",
            "depth": 5,
            "save_ranking_to": "run.tsv",
        },
    )
    run = [line.split("\t") for line in (tmp_path / "run.tsv").read_text().splitlines()]
    assert [query_id for query_id, *_ in run] == [id for id in groups for _ in range(5)]
    products = our_queries @ our_documents.T
    scores = np.array([float(score) for *_, score in run]).reshape(-1, 5)
    np.testing.assert_allclose(scores, -np.sort(-products)[:, :5], atol=1e-4)
    column = {docid: place for place, docid in enumerate(texts)}
    of_run = [products[number // 5, column[docid]] for number, (_, docid, _) in enumerate(run)]
    np.testing.assert_allclose(scores.ravel(), of_run, atol=1e-4)


IN_FP32 = """
from functools import partial
import torch
from tevatron.reranker.driver import rerank
rerank.RerankerModel.load = partial(rerank.RerankerModel.load, torch_dtype=torch.float32)
rerank.main()
"""


@pytest.mark.parametrize(
    ("start", "tolerance"),
    [(("-m", "tevatron.reranker.driver.rerank"), 0.06), (("-c", IN_FP32), 1e-4)],
    ids=["in bf16, as it is", "in fp32"],
)
def test_scores_of_the_reranker(start, tolerance, driver, trained, exported, tmp_path):
    """It scores in bf16, whatever it is told, so its scores are compared in fp32 too."""
    _, groups, texts = exported
    reranker = trained(pair_format="tevatron")
    candidates = [
        {"query_id": id, "query": group["query_text"], "docid": docid, "text": texts[docid]}
        for id, group in groups.items()
        for docid in (*group["positive_document_ids"], *group["negative_document_ids"])
        if not group["swapped"]
    ]
    pairs = "".join(f"{json.dumps(candidate | {'title': ''})}\n" for candidate in candidates)
    (tmp_path / "candidates.jsonl").write_text(pairs)
    driver(
        *start,
        model_name_or_path=reranker,
        dataset_name="json",
        dataset_path="candidates.jsonl",
        output_dir=tmp_path / "unused",
        rerank_max_len=LENGTH,
        rerank_output_path="scores.tsv",
        use_cpu=True,
    )
    stock = {
        (query_id, docid): float(score)
        for query_id, docid, score in map(
            str.split, (tmp_path / "scores.tsv").read_text().splitlines()
        )
    }
    scorer = Scorer(str(reranker), max_length=LENGTH, device="cpu")
    ours = scorer.score(*zip(*((each["query"], each["text"]) for each in candidates), strict=True))
    theirs = [stock[each["query_id"], each["docid"]] for each in candidates]
    assert len(candidates) > 40 and np.std(theirs) > 3 * tolerance
    np.testing.assert_allclose(ours, theirs, atol=tolerance)


def test_a_checkpoint_keeps_how_it_joins_pairs(options, tmp_path):
    """Whoever loads it reads one text, and so does a training that begins with it."""
    first = fit(SentenceGroups(), *options(pair_format="tevatron", max_steps=2))
    folder = fit(
        SentenceGroups(), *options(model=str(first), max_steps=2, output_dir=str(tmp_path / "next"))
    )
    assert json.loads((folder / "reranker_config.json").read_text()) == {
        "attn_implementation": "sdpa"
    }
    pairs = [(member.query, member.document) for member in SentenceGroups().group(0, 0).members]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    joined = tokenizer([" ".join(pair) for pair in pairs], padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = model(**joined).logits[:, 0].numpy()
    scorer = HarpReranker(str(folder), device="cpu").scorer
    np.testing.assert_allclose(scorer.score(*zip(*pairs, strict=True)), expected, atol=1e-6)
    library = CrossEncoder(str(folder), device="cpu").predict(pairs)
    np.testing.assert_allclose(library, expected, atol=1e-6)
