"""BM25 over fields as the first stage of an evaluation."""

import json

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions, evaluate
from harp_plugin.evaluation.first_stage import TUNING_FILE
from harp_plugin.evaluation.runs import read_run
from harp_plugin.ranking.fielded import FieldedBm25, FieldedIndex, tune

FRUITS = ["apple", "pear", "plum", "quince", "cherry", "fig"]


@pytest.fixture
def collection(tmp_path):
    """The title is right; the long text speaks more of the next fruit."""
    folder = tmp_path / "collection"
    folder.mkdir()
    with (folder / "documents.jsonl").open("w") as file:
        for place, fruit in enumerate(FRUITS):
            text = f"{FRUITS[(place + 1) % len(FRUITS)]} " * 6 + f"{fruit} {fruit}"
            page = {"doc_id": fruit, "title": fruit, "text": text, "anchor_text": ""}
            file.write(json.dumps(page) + "\n")
    write_split(folder / "test", {f"t{n}": fruit for n, fruit in enumerate(FRUITS)})
    write_split(folder / "dev", {f"d{n}": f"the {fruit}" for n, fruit in enumerate(FRUITS[:4])})
    return f"harp:{folder}"


def write_split(folder, queries):
    folder.mkdir()
    (folder / "queries.tsv").write_text("".join(f"{q}\t{text}\n" for q, text in queries.items()))
    lines = (f"{qid} 0 {text.split()[-1]} 1\n" for qid, text in queries.items())
    (folder / "qrels.txt").write_text("".join(lines))


@pytest.fixture
def options(collection, tmp_path):
    def make(**changes):
        given = {
            "dataset": f"{collection}/test",
            "first_stage": "fielded-bm25",
            "measures": ["RR@10"],
            "output_dir": str(tmp_path / "out"),
            "quiet": True,
        }
        return EvaluationOptions(**given | changes)

    return make


def test_named_weights(options, tmp_path):
    results = evaluate(options(field_weights='{"title": 2, "text": 1}', bm25_k1=1.5, bm25_b=0.5))
    index = FieldedIndex(options().dataset, tmp_path / "other", ["title", "text"])
    bm25 = FieldedBm25(index, {"title": 2, "text": 1}, k1=1.5, b=0.5, num_results=100)
    expected = bm25(JudgedDataset(options().dataset).topics)
    run = read_run(tmp_path / "out" / "runs" / "fielded-bm25.run")
    assert list(run["docno"]) == list(expected["docno"])
    assert run["score"].tolist() == pytest.approx(expected["score"].tolist(), rel=1e-6)
    assert list(results.means) == ["fielded BM25"]
    first_stage = json.loads(results.path.read_text())["first_stage"]
    assert first_stage["weights"] == {"title": 2, "text": 1} and first_stage["k1"] == 1.5


def test_queries_of_one_page_are_one_group(options, collection, tmp_path):
    """With two queries of each page, the test is that of the means of the pages."""
    queries = ["apple", "pear apple", "pear", "the pear", "plum", "fig quince plum"]
    write_split(tmp_path / "collection" / "train", {f"p{n}": q for n, q in enumerate(queries)})
    more = {"dataset": f"{collection}/train", "first_stages": {"BM25": "bm25"}}
    results = evaluate(options(**more, field_weights={"title": 20, "text": 1}))
    fielded, bm25 = (list(of["RR@10"].values()) for of in results.per_query.values())
    of_pages = np.subtract(bm25, fielded).reshape(3, 2).mean(axis=1)
    assert results.p_values["BM25"]["RR@10"] == pytest.approx(ttest_1samp(of_pages, 0).pvalue)
    assert results.table.endswith("as one group: 6 queries,\n3 groups")


def test_weights_chosen_by_other_queries(options, collection, tmp_path):
    untuned = evaluate(options(output_dir=str(tmp_path / "untuned"), field_weights=None))
    results = evaluate(options(tuning_dataset=f"irds:{collection}/dev"))
    assert untuned.means["fielded BM25"]["RR@10"] < results.means["fielded BM25"]["RR@10"] == 1
    dev = JudgedDataset(f"{collection}/dev")
    tuned = tune(FieldedIndex(options().dataset, tmp_path / "other"), dev.topics, dev.qrels)
    first_stage = json.loads(results.path.read_text())["first_stage"]
    assert first_stage == tuned.arguments | {"measure": "RR@10", "value": 1}
    stored = json.loads((tmp_path / "out" / TUNING_FILE).read_text())
    assert stored["tried"] == tuned.tried.to_dict("records")


def test_fewer_queries_choose(options, collection, monkeypatch):
    read = []

    def reads(index, topics, *arguments, **further):
        read.append(set(topics["qid"]))
        return tune(index, topics, *arguments, **further)

    monkeypatch.setattr("harp_plugin.evaluation.first_stage.tune", reads)
    tuned = {"tuning_dataset": f"{collection}/dev"}
    evaluate(options(**tuned, tuning_queries=2))
    with pytest.raises(HarpError, match="tuning_queries: 2 then, 3 now"):
        evaluate(options(**tuned, tuning_queries=3))
    evaluate(options(**tuned, tuning_queries=3, overwrite=True))
    assert list(map(len, read)) == [2, 3] and read[0] < read[1]


def test_a_further_first_stage_is_tuned_as_well(options, collection):
    further = {"first_stage": "bm25", "first_stages": {"fields": "fielded-bm25"}}
    results = evaluate(options(**further, tuning_dataset=f"{collection}/dev"))
    assert results.means["fields"]["RR@10"] == 1 > results.means["BM25"]["RR@10"]
    assert json.loads(results.path.read_text())["first_stage"]["value"] == 1


def test_nothing_is_chosen_twice(options, collection, tmp_path, tiny_bert, monkeypatch):
    tuned = {"tuning_dataset": f"{collection}/dev"}
    first = evaluate(options(**tuned))
    before = json.loads(first.path.read_text())["first_stage"]

    def fail(*arguments, **options):
        raise AssertionError("chosen again")

    monkeypatch.setattr("harp_plugin.evaluation.first_stage.tune", fail)
    again = evaluate(options(**tuned, rerankers={"tiny": str(tiny_bert)}, overwrite=True))
    assert list(again.means) == ["fielded BM25", "tiny"]
    assert json.loads(again.path.read_text())["first_stage"] == before


def test_other_judgments_choose_anew_only_if_they_may(options, collection, tmp_path):
    evaluate(options(tuning_dataset=f"{collection}/dev"))
    qrels = tmp_path / "collection" / "dev" / "qrels.txt"
    qrels.write_text(qrels.read_text().replace(" 1\n", " 2\n"))
    with pytest.raises(HarpError, match="was made from other settings"):
        evaluate(options(tuning_dataset=f"{collection}/dev"))
    evaluate(options(tuning_dataset=f"{collection}/dev", overwrite=True))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"field_weights": {"body": 1}}, "have no text field 'body'"),
        ({"field_weights": {"title": "much"}}, "it must be an object"),
        ({"field_weights": {"title": 0}}, "the weights of all fields are 0"),
        ({"fields": ["body"]}, "have no text field 'body'"),
        ({"tuning_dataset": "no-such-set"}, "unknown dataset 'no-such-set'"),
    ],
)
def test_what_makes_no_sense(options, changes, message):
    with pytest.raises(HarpError, match=message):
        evaluate(options(**changes))


@pytest.mark.parametrize(
    "changes",
    [{"field_weights": {"text": 1}}, {"tuning_dataset": "vaswani"}],
    ids=["weights", "tuning"],
)
def test_other_first_stages_have_no_weights(changes):
    with pytest.raises(HarpError, match=r"^--\w+-\w+ needs --first-stage fielded-bm25"):
        EvaluationOptions(dataset="vaswani", **changes)


def test_queries_are_not_tuned_on_and_evaluated(options):
    with pytest.raises(
        HarpError, match=r"6 queries of tuning_dataset .* are evaluated as well, such as"
    ):
        evaluate(options(tuning_dataset=options().dataset))


def test_judgments_of_other_documents(options, collection, tmp_path):
    qrels = tmp_path / "collection" / "dev" / "qrels.txt"
    qrels.write_text("d0 0 elsewhere 1\n")
    with pytest.raises(HarpError, match=r"RR@10 is 0 for all queries of tuning_dataset"):
        evaluate(options(tuning_dataset=f"{collection}/dev"))
