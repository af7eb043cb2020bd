"""Groups of judged documents: what may be drawn, and that nothing but the key decides."""

import itertools
import random
from collections import Counter

import pytest
from torch.utils.data import DataLoader

from harp_plugin.collections.dataset_queries import DatasetQueries
from harp_plugin.errors import HarpError
from harp_plugin.text import query_passage
from harp_plugin.training.data import GroupDataset
from harp_plugin.training.judged import JudgedGroups

from .judged_data import DOCUMENTS, QRELS, QUERIES, RUN, allowed, register, write_run

OF_TEXT = {text: id for id, text in DOCUMENTS.items()}


@pytest.fixture(scope="module")
def name(tmp_path_factory):
    return register(tmp_path_factory.mktemp("judged"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("run") / "bm25.run")


def groups_of(name, run, negatives=7, seed=42, redraw_each_epoch=True, **options):
    source = DatasetQueries(name, run=run, seed=seed, **options)
    return JudgedGroups(
        source, negatives_per_group=negatives, seed=seed, redraw_each_epoch=redraw_each_epoch
    )


def drawn(groups, epochs=60):
    """Ids drawn for each query: positives, negatives."""
    found = {}
    for epoch in range(epochs):
        for index in range(len(groups)):
            group = groups.group(epoch, index)
            query = groups.source.judged(index).id
            assert all(pair.query == QUERIES[query] for pair in group.members)
            negatives = [OF_TEXT[pair.document] for pair in group.negatives]
            assert len(set(negatives)) == len(negatives) >= 1
            for pair in group.members:
                assert pair.query_origin.query_id == query
                assert pair.document_origin.document_id == OF_TEXT[pair.document]
            positives, others = found.setdefault(query, (Counter(), Counter()))
            positives[OF_TEXT[group.positive.document]] += 1
            others.update(negatives)
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"depth": 10},
        {"skip_top": 4},
        {"min_label": 2},
        {"judged_negatives": True, "depth": 8},
        {"min_label": 2, "depth": 12, "skip_top": 2, "judged_negatives": True},
    ],
)
def test_all_that_may_be_drawn_is_and_nothing_else(options, name, run):
    found = drawn(groups_of(name, run, **options))
    options["judged"] = options.pop("judged_negatives", False)
    assert len(found) == 12
    for query, (positives, negatives) in found.items():
        assert (positives.keys(), negatives.keys()) == allowed(query, **options)


def test_matching_passages_of_the_same_documents(tmp_path):
    """The same documents are drawn; of each, what its query asks for is shown."""
    documents = {
        id: f"{text} {' '.join(f'{id}w{n}' for n in range(200))}" for id, text in DOCUMENTS.items()
    }
    name = register(tmp_path, documents=documents)
    source = DatasetQueries(name, run=write_run(tmp_path / "a.run"), seed=42)
    whole, matching = JudgedGroups(source), JudgedGroups(source, passages="matching")
    for index in range(len(whole)):
        group, passages = whole.group(0, index), matching.group(0, index)
        for pair, passage in zip(group.members, passages.members, strict=True):
            assert passage.document_origin == pair.document_origin
            assert passage.document == query_passage(pair.query, pair.document) != pair.document


def test_draws_are_uniform(name, run):
    positives, negatives = drawn(groups_of(name, run, negatives=1), epochs=600)["q0"]
    for counts in (positives, negatives):
        expected = 600 / len(counts)
        assert all(abs(n - expected) < 5 * expected**0.5 for n in counts.values())


def test_a_query_of_few_negatives_gives_all_it_has(name, run):
    groups = groups_of(name, run, negatives=500)
    for index in range(len(groups)):
        _, negatives = allowed(groups.source.judged(index).id)
        assert len(groups.group(0, index).negatives) == len(negatives)


def test_order_of_lines_compression_and_source_do_not_matter(name, run, tmp_path):
    shuffled = [line for line in RUN if line[2] % 1 == 0]
    scores = {query: iter(range(99, 0, -1)) for query in QUERIES}
    distinct = [(query, doc, float(next(scores[query]))) for query, doc, _ in shuffled]
    first = groups_of(name, write_run(tmp_path / "a.run", distinct), depth=9)
    random.Random(1).shuffle(distinct)
    second = groups_of(name, write_run(tmp_path / "b.run.gz", distinct), depth=9)
    third = groups_of(register(tmp_path, run=distinct), None, depth=9)
    assert first.fingerprint == second.fingerprint == third.fingerprint
    for index in range(len(first)):
        assert first.group(3, index) == second.group(3, index) == third.group(3, index)


def test_key_decides(name, run):
    one, other = groups_of(name, run), groups_of(name, run, seed=7)
    fixed = groups_of(name, run, redraw_each_epoch=False)
    assert one.group(0, 3) == groups_of(name, run).group(0, 3)
    assert one.group(0, 3) != one.group(1, 3) != other.group(1, 3)
    assert fixed.group(0, 3) == fixed.group(5, 3) == one.group(0, 3)
    assert one.fingerprint != groups_of(name, run, depth=5).fingerprint


def as_they_are(examples):
    return examples


@pytest.mark.parametrize("context", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_same_groups_for_any_worker(context, irds_home, tmp_path):
    lines = [
        (str(q), str(1 + (37 * q + 13 * n) % 11429), -n) for q in range(1, 31) for n in range(20)
    ]
    groups = groups_of("vaswani", write_run(tmp_path / "v.run", lines), negatives=3)
    alone = [groups.group(*divmod(number, 30)) for number in range(60)]
    loader = DataLoader(
        GroupDataset(groups),
        sampler=range(60),
        batch_size=4,
        num_workers=2,
        collate_fn=as_they_are,
        multiprocessing_context=context,
    )
    assert [example.group for batch in loader for example in batch] == alone


def test_a_query_has_its_groups_whatever_the_others(name, run):
    all_of_them, few = groups_of(name, run), groups_of(name, run, queries=4)
    places = {all_of_them.source.judged(index).id: index for index in range(12)}
    for index in range(4):
        place = places[few.source.judged(index).id]
        assert few.group(2, index) == all_of_them.group(2, place)


def test_queries_left_out_are_counted_by_reason(tmp_path):
    documents = {"d1": "one", "d2": "two", "d3": " ", "d4": "four", "d5": "one"}
    queries = {f"q{n}": f"query {n}" for n in range(1, 8)}
    qrels = [
        *(("q1", "d1", 1), ("q2", "d1", 0), ("q3", "d1", 1), ("q4", "d3", 1)),
        *(("q5", "d1", 1), ("q5", "d2", 1), ("q7", "d2", 0), ("q7", "d2", 1)),
    ]
    lines = [
        *(("q1", doc, score) for score, doc in enumerate(documents)),
        *((query, doc, 1.0) for query in ("q2", "q4", "q5", "q7") for doc in ("d1", "d2")),
    ]
    groups = groups_of(register(tmp_path, documents, queries, qrels, lines), None)
    assert [groups.source.judged(index).id for index in range(len(groups))] == ["q1", "q7"]
    assert groups.source.drops == {
        "without a document of label 1 or more": 1,
        "not in the run": 1,
        "without a relevant document that has text": 1,
        "without a negative in the run": 1,
        "without a judgment": 1,
    }
    assert len(groups.shortages()) == 5 and all("1 query " in s for s in groups.shortages())
    for epoch in range(20):
        group = groups.group(epoch, 0)
        assert group.positive.document == "one"
        assert {pair.document for pair in group.negatives} == {"two", "four"}


def test_members_carry_their_teachers_scores(name, run, tmp_path):
    teacher = [(query, doc, n / 7) for n, (query, doc, _) in enumerate(RUN) if n % 4]
    teacher += [(query, doc, -n / 3) for n, (query, doc, _) in enumerate(QRELS) if n % 3]
    scores = {}
    for query, doc, score in teacher:
        scores.setdefault((query, doc), score)
    lines = [(*key, score) for key, score in scores.items()]
    groups = groups_of(name, run, teacher=write_run(tmp_path / "teacher.run", lines))
    has_scores = [each.source.has_teacher_scores for each in (groups, groups_of(name, run))]
    assert has_scores == [True, False]
    for epoch, index in itertools.product(range(5), range(len(groups))):
        group, query = groups.group(epoch, index), groups.source.judged(index).id
        expected = [scores[query, OF_TEXT[pair.document]] for pair in group.members]
        assert list(group.teacher_scores) == expected
    lost = 0
    for query, (positives, negatives) in drawn(groups).items():
        candidates = allowed(query)
        known = [{doc for doc in docs if (query, doc) in scores} for docs in candidates]
        assert [positives.keys(), negatives.keys()] == known
        lost += sum(map(len, candidates)) - sum(map(len, known))
    assert len(groups) == 12 and groups.source.without_teacher_score == lost > 0
    assert groups.counts["documents left out, without a teacher score"] == lost
    assert groups.shortages() == [f"left out: {lost} documents without a teacher score"]
    again = write_run(tmp_path / "teacher.run", [(q, d, s + (q == "q3")) for q, d, s in lines])
    assert groups_of(name, run, teacher=again).fingerprint != groups.fingerprint


def test_documents_without_text_are_never_drawn(irds_home, tmp_path):
    lines = [("1", doc, 1.0) for doc in ("471", "995", "700")]
    groups = groups_of("cranfield", write_run(tmp_path / "c.run", lines), negatives=2)
    for epoch in range(10):
        (negative,) = groups.group(epoch, 0).negatives
        assert negative.document == groups.source.texts(["700"])[0]
    nothing = groups_of("cranfield", write_run(tmp_path / "d.run", lines[:2]))
    with pytest.raises(HarpError, match="query 1: none of its 2 negatives has a text"):
        nothing.group(0, 0)
