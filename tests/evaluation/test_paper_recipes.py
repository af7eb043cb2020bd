"""The recipes of the papers' tables, run whole on cranfield and a tiny model."""

import json
from collections import defaultdict
from itertools import product

import ir_datasets
import ir_measures
import numpy as np
import pytest
import torch
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import TrecQrels, TrecScoredDocs, TsvQueries
from ir_datasets.util import LocalDownload
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from harp_plugin.cli import main
from harp_plugin.evaluation.options import file_stem
from harp_plugin.options_parser import read_recipe
from harp_plugin.ranking.scorer import Scorer

pytestmark = pytest.mark.slow
CRANFIELD, VASWANI = "cranfield-ten", "vaswani-ten"
FIELDS = ["title", "text"]
SCORED = 110


def register_ten(name, folder):
    """Register ten queries of a dataset, with all documents and 110 drawn results of each query."""
    whole = ir_datasets.load(name)
    queries = list(whole.queries_iter())[:10]
    ids = {query.query_id for query in queries}
    docids = np.array([doc.doc_id for doc in whole.docs_iter() if doc.text])
    draw = np.random.default_rng(7)
    files = {
        "queries": [f"{query.query_id}\t{' '.join(query.text.split())}" for query in queries],
        "qrels": [
            f"{qrel.query_id} 0 {qrel.doc_id} {qrel.relevance}"
            for qrel in whole.qrels_iter()
            if qrel.query_id in ids
        ],
        "run": [
            f"{query.query_id} Q0 {docid} {rank} {SCORED - rank} x"
            for query in queries
            for rank, docid in enumerate(draw.choice(docids, SCORED, replace=False))
        ],
    }
    for file, lines in files.items():
        (folder / file).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    reads = {file: LocalDownload(str(folder / file)) for file in files}
    ten = Dataset(
        whole.docs_handler(),
        TsvQueries(reads["queries"]),
        TrecQrels(reads["qrels"], {}),
        TrecScoredDocs(reads["run"]),
    )
    ir_datasets.registry.register(f"{name}-ten", ten)


@pytest.fixture(scope="module")
def run_file(irds_home, tmp_path_factory):
    """Registers ten queries of both collections, and gives the run of cranfield's."""
    for name in ("vaswani", "cranfield"):
        folder = tmp_path_factory.mktemp(name)
        register_ten(name, folder)
    return folder / "run"


@pytest.fixture
def models(tiny_bert, tmp_path):
    """Makes tiny rerankers that score unlike each other."""

    def make(count):
        folders = []
        for seed in range(count):
            folder = tmp_path / f"model-{seed}"
            model = AutoModelForSequenceClassification.from_pretrained(tiny_bert)
            with torch.no_grad(), torch.random.fork_rng():
                torch.manual_seed(seed)
                for weight in model.parameters():
                    weight.add_(torch.randn_like(weight) * 0.1 if weight.dim() == 2 else 0)
            model.save_pretrained(folder)
            AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(folder)
            folders.append(str(folder))
        return folders

    return make


@pytest.fixture
def run_recipe(run_file, tmp_path, monkeypatch):
    """Runs a recipe of the package, with other data in place of those that it names."""
    monkeypatch.chdir(tmp_path)

    def run(command, name, **replaced):
        recipe = read_recipe(name)
        replaced = {"dataset": CRANFIELD, **replaced}
        assert replaced.keys() <= recipe.keys()
        path = tmp_path / "recipe.json"
        path.write_text(json.dumps(recipe | replaced))
        assert main([command, str(path), "--quiet", "--device", "cpu"]) == 0
        folder = tmp_path / recipe["output_dir"]
        return recipe, folder, json.loads((folder / "results.json").read_text())

    return run


def ranking(path):
    """The lines of a run: (docid, score) by query, in their order."""
    by_query = defaultdict(list)
    for line in path.read_text().splitlines():
        query, _, docid, _, score, _ = line.split()
        by_query[query].append((docid, float(score)))
    return by_query


def ids(results):
    return [docid for docid, _ in results]


def own_scores(model, docids_of, fields, max_length):
    """Scores of the documents of each query, by query."""
    dataset = ir_datasets.load(CRANFIELD)
    store = dataset.docs_store()
    texts = {query.query_id: query.text for query in dataset.queries_iter()}
    scorer = Scorer(model, max_length=max_length, device="cpu")
    scores = {}
    for query, docids in docids_of.items():
        docs = [store.get(docid) for docid in docids]
        documents = [" ".join(getattr(doc, field) for field in fields) for doc in docs]
        scores[query] = scorer.score([texts[query]] * len(docids), documents)
    return scores


def means(dataset, path, measures):
    """Means by ir_measures."""
    qrels = list(ir_datasets.load(dataset).qrels_iter())
    parsed = [ir_measures.parse_measure(measure) for measure in measures]
    found = ir_measures.calc_aggregate(parsed, qrels, ir_measures.read_trec_run(str(path)))
    return {str(measure): value for measure, value in found.items()}


def check_ranking(results, docids, scores):
    """Check that the documents are ranked by the scores."""
    assert sorted(ids(results)) == sorted(docids)
    by_id = dict(zip(docids, scores, strict=True))
    np.testing.assert_allclose(
        [score for _, score in results], [by_id[id] for id in ids(results)], atol=1e-4
    )
    assert [score for _, score in results] == sorted((score for _, score in results), reverse=True)


def test_the_ensemble_of_three_models(run_recipe, models, run_file):
    one, *others = models(3)
    rerankers = read_recipe("evaluate-msmarco-document-ensemble")["rerankers"]
    single, ensemble = rerankers
    recipe, folder, written = run_recipe(
        "evaluate",
        "evaluate-msmarco-document-ensemble",
        fields=FIELDS,
        rerankers={single: one, ensemble: {**rerankers[ensemble], "model": [one, *others]}},
    )
    first = {query: ids(results)[: recipe["depth"]] for query, results in ranking(run_file).items()}
    first = dict(list(first.items())[:3])
    scores = [own_scores(model, first, FIELDS, recipe["max_length"]) for model in (one, *others)]
    runs = {row: folder / "runs" / f"{file_stem(row)}.run" for row in rerankers}
    for query, docids in first.items():
        assert len(docids) == 100
        of_query = np.array([of_model[query] for of_model in scores])
        scaled = of_query - of_query.mean(axis=1, keepdims=True)
        scaled /= scaled.std(axis=1, keepdims=True)
        check_ranking(ranking(runs[single])[query], docids, of_query[0])
        check_ranking(ranking(runs[ensemble])[query], docids, scaled.mean(axis=0))
    for row, path in runs.items():
        assert written["means"][row] == pytest.approx(means(CRANFIELD, path, recipe["measures"]))


def test_the_top_60_of_a_fused_run(run_recipe, models, run_file):
    zero_shot, finetuned = models(2)
    recipe, folder, written = run_recipe(
        "evaluate",
        "evaluate-trec-covid-round2",
        fields=FIELDS,
        first_stage=str(run_file),
        rerankers={"zero-shot": zero_shot, "fine-tuned": finetuned},
    )
    first = {query: ids(results)[:60] for query, results in ranking(run_file).items()}
    for row, model in (("zero-shot", zero_shot), ("fine-tuned", finetuned)):
        scores = own_scores(model, first, FIELDS, recipe["max_length"])
        path = folder / "runs" / f"{row}.run"
        for query, docids in first.items():
            check_ranking(ranking(path)[query], docids, scores[query])
        assert written["means"][row] == pytest.approx(means(CRANFIELD, path, recipe["measures"]))
    assert written["baseline"] == "first stage" and written["queries"] == 10


def test_an_index_beside_bm25(run_recipe, tiny_bert, tmp_path):
    index = tmp_path / "index"
    flags = ["--output-dir", str(index), "--fields", *FIELDS, "--device", "cpu", "--quiet"]
    assert main(["index", CRANFIELD, "--model", str(tiny_bert), *flags]) == 0
    recipe, folder, written = run_recipe(
        "evaluate",
        "evaluate-beir",
        fields=FIELDS,
        first_stages={"Anchor-DR": f"dense:{index}"},
    )
    assert written["means"].keys() == {"BM25", "Anchor-DR"} and written["queries"] == 10
    runs = {row: folder / "runs" / f"{row.lower()}.run" for row in written["means"]}
    for row, path in runs.items():
        assert written["means"][row] == pytest.approx(means(CRANFIELD, path, recipe["measures"]))
        assert max(map(len, ranking(path).values())) <= recipe["depth"]
    vectors = vectors_of(tiny_bert)
    for query, results in ranking(runs["Anchor-DR"]).items():
        assert len(results) == 1000
        products = vectors["queries"][query] @ np.stack(list(vectors["documents"].values())).T
        by_id = dict(zip(vectors["documents"], products, strict=True))
        np.testing.assert_allclose(
            [s for _, s in results], [by_id[id] for id in ids(results)], atol=1e-5
        )
        np.testing.assert_allclose([s for _, s in results], -np.sort(-products)[:1000], atol=1e-5)


def vectors_of(model):
    """Vectors of all queries and documents by sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    dataset, encoder = ir_datasets.load(CRANFIELD), SentenceTransformer(str(model), device="cpu")
    texts = {
        "queries": {query.query_id: query.text for query in dataset.queries_iter()},
        "documents": {doc.doc_id: f"{doc.title} {doc.text}" for doc in dataset.docs_iter()},
    }
    return {
        kind: dict(
            zip(
                of_kind,
                encoder.encode(list(of_kind.values()), normalize_embeddings=True),
                strict=True,
            )
        )
        for kind, of_kind in texts.items()
    }


@pytest.mark.parametrize("name", ["cross-validate-robust04", "cross-validate-mq2007"])
def test_five_folds_by_files(name, run_recipe, models, tmp_path):
    """Three folds are learnt from, the next one chooses, and the fold itself is held out.

    Of the systems, only the baseline is run: each one takes 20 trainings.
    """
    recipe = read_recipe(name)
    queries = [query.query_id for query in ir_datasets.load(VASWANI).queries_iter()]
    folds = [queries[place::5] for place in range(5)]
    files = [tmp_path / f"{number}.txt" for number in range(1, 6)]
    for file, fold in zip(files, folds, strict=True):
        file.write_text("".join(f"{query}\n" for query in fold))
    systems = {recipe["baseline"]: models(1)[0]}
    _, folder, written = run_recipe(
        "cross-validate",
        name,
        dataset=VASWANI,
        **({"fields": ["text"]} if "fields" in recipe else {}),
        systems=systems,
        fold_files=[str(file) for file in files],
        finetuning={**recipe["finetuning"], "bf16": False, "use_cpu": True},
    )
    assert list(map(set, written["folds"])) == list(map(set, folds))
    candidates = {
        query: set(ids(results)) for query, results in ranking(folder / "runs/bm25.run").items()
    }
    grid = [
        dict(zip(recipe["grid"], values, strict=True))
        for values in product(*recipe["grid"].values())
    ]
    for system in systems:
        cell = f"{file_stem(system)}-all-queries-seed-42"
        assert all(choice in grid for choice in written["chosen"][cell])
        run = ranking(folder / "runs" / f"{cell}.run")
        assert sorted(run) == sorted(queries)
        assert all(set(ids(run[query])) == candidates[query] for query in queries)
        expected = means(VASWANI, folder / "runs" / f"{cell}.run", recipe["measures"])
        assert written["means"]["all"][system] == pytest.approx(expected)
    for place in range(5):
        train = set((folder / f"folds/fold-{place + 1}.train.txt").read_text().split())
        assert train == set(queries) - {*folds[place], *folds[(place + 1) % 5]}
    assert max(map(len, candidates.values())) == recipe["depth"]
