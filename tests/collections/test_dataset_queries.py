"""Judged queries of a dataset: which are left, and what is wrong with the others."""

import itertools

import pytest
from training.judged_data import QRELS, QUERIES, RUN, allowed, register, write_run

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.collections.dataset_queries import DatasetQueries
from harp_plugin.errors import HarpError


@pytest.fixture(scope="module")
def name(tmp_path_factory):
    return register(tmp_path_factory.mktemp("judged"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("run") / "bm25.run")


def test_few_shot_subsets_nest(name, run):
    def chosen(count, seed=42):
        source = DatasetQueries(name, run=run, queries=count, seed=seed)
        assert [j.id for j in source._judged] == [q for q in QUERIES if q in set(ids(source))]
        return set(ids(source))

    def ids(source):
        return [source.judged(index).id for index in range(len(source))]

    subsets = [chosen(count) for count in (1, 3, 5, 10, 12)]
    assert [len(subset) for subset in subsets] == [1, 3, 5, 10, 12]
    assert all(less < more for less, more in itertools.pairwise(subsets))
    assert len({frozenset(chosen(3, seed)) for seed in range(20)}) > 10


def test_query_ids_limit_what_is_taken(name, run, tmp_path):
    file = tmp_path / "ids.txt"
    file.write_text("q3\n\n q7 \n", encoding="utf-8-sig")  # as Windows' editors save it
    source = DatasetQueries(name, run=run, query_ids=str(file))
    assert [source.judged(index).id for index in range(len(source))] == ["q3", "q7"]
    assert len(DatasetQueries(name, run=run, query_ids=str(file), queries=1)) == 1
    for content, message in [("q3\nq99\n", "ids.txt: no query 'q99' in "), ("", "is empty")]:
        file.write_text(content)
        with pytest.raises(HarpError, match=message):
            DatasetQueries(name, run=run, query_ids=str(file))
    with pytest.raises(HarpError, match="cannot read query_ids"):
        DatasetQueries(name, run=run, query_ids=str(tmp_path / "none"))


def test_judged_documents_that_the_collection_lacks_are_not_drawn(tmp_path):
    documents = {"d1": "one", "d2": "two", "d3": "three"}
    qrels = [("q", doc, int(doc in ("d1", "gone"))) for doc in ("d1", "d2", "gone", "away")]
    name = register(tmp_path, documents, {"q": "query"}, qrels, [("q", "d3", 1.0)])
    (judged,) = DatasetQueries(name, judged_negatives=True)._judged
    assert (judged.positives, judged.negatives) == (["d1"], ["d3", "d2"])


def test_queries_that_the_teacher_lacks_are_left_out(name, run, tmp_path):
    positives, _ = allowed("q2")
    lines = [(query, doc, 1.0) for query, doc, _ in {*RUN, *QRELS} if query not in ("q1", "q2")]
    lines += [("q2", doc, 1.0) for doc in positives]
    lines = sorted({(query, doc): (query, doc, score) for query, doc, score in lines}.values())
    source = DatasetQueries(name, run=run, teacher=write_run(tmp_path / "t.run", lines))
    assert source.drops == {
        "without a relevant document that has a teacher score": 1,
        "without a negative that has a teacher score": 1,
    }
    assert len(source) == 10
    for text, message in [("q77 Q0 d1 1 2 x\n", "line 1: query 'q77'"), ("", "is empty")]:
        (tmp_path / "t.run").write_text(text)
        with pytest.raises(HarpError, match=message):
            DatasetQueries(name, run=run, teacher=str(tmp_path / "t.run"))


WRONG_RUNS = {
    "q1 Q0 d1 1 2.5\n": "line 1: 5 columns",
    "\nq1 Q0 d1 1 high bm25\n": "line 2: score 'high' is not a number",
    "q1 Q0 d1 1 nan bm25\n": "line 1: score 'nan' is not a number",
    "q1 Q0 d1 1 2 x\nq77 Q0 d1 1 2 x\n": "line 2: query 'q77' is not in dataset",
    "q1 Q0 d1 1 2 x\nq2 Q0 d1 1 2 x\nq1 Q0 d1 1 1 x\n": "document d1 twice for query q1",
    "": "is empty",
    "q0 Q0 d999 1 2 x\n": "document 'd999' is not in dataset",
    "q0 Q0 d2 1 2 x\nq3 Q0 d2 1 2 x\nq3 Q0 gone 1 2 x\n": "document 'gone' is not in dataset",
}


@pytest.mark.parametrize("text", WRONG_RUNS)
def test_wrong_runs_are_named(text, name, tmp_path):
    path = tmp_path / "wrong.run"
    path.write_text(text)
    with pytest.raises(HarpError, match=WRONG_RUNS[text]):
        DatasetQueries(name, run=str(path))


def test_runs_that_cannot_be_read(name, run, tmp_path):
    cut = tmp_path / "cut.run.gz"
    write_run(cut)
    cut.write_bytes(cut.read_bytes()[:-20])
    for path in (cut, tmp_path / "none.run", tmp_path):
        with pytest.raises(HarpError, match=r"cannot read run|is not a file: name one"):
            DatasetQueries(name, run=str(path))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields": ["title"]}, "no text field 'title': they have doc_id, text"),
        ({"min_label": 9}, "no query to learn from: 12 queries without a document of label 9"),
        ({"queries": 13}, "only 12 of 13 queries to learn from: there are no others"),
    ],
)
def test_wrong_options_are_named(options, message, name, run):
    with pytest.raises(HarpError, match=message):
        DatasetQueries(name, run=run, **options)


def test_wrong_datasets_are_named(name, run):
    with pytest.raises(HarpError, match=r"unknown dataset 'vaswany'"):
        DatasetQueries("vaswany", run=run)
    with pytest.raises(HarpError, match=r"has no scoreddocs: name a negatives_run"):
        DatasetQueries(name)
    with pytest.raises(
        HarpError, match=r"msmarco-document has no queries: .* has docs, queries, qrels"
    ):
        DatasetQueries("msmarco-document", run=run)


def test_fields_are_joined_as_the_evaluation_joins_them(irds_home, tmp_path):
    fields = ["title", "author", "text"]
    lines = [("1", str(n), -n) for n in range(1, 40)]
    run = write_run(tmp_path / "c.run", lines)
    source = DatasetQueries("cranfield", run=run, fields=fields)
    judged = source.judged(0)
    assert len(source) == 1 and len(judged.negatives) > 9
    expected = JudgedDataset("cranfield", fields).texts(judged.negatives)
    assert source.texts(judged.negatives) == [expected[id] for id in judged.negatives]
