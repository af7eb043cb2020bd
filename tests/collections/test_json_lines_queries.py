"""Tevatron's JSON lines as judged queries, `harp export`'s own among them."""

import json
from collections import Counter

import pytest

from harp_plugin.collections.json_lines_queries import JsonLinesQueries
from harp_plugin.commands.export import ExportOptions, export
from harp_plugin.errors import HarpError
from harp_plugin.tasks import HARP_TASKS, DocumentOrigin, Pair, PreTrainingData, QueryOrigin
from harp_plugin.training.judged import JudgedGroups


def row(query, positives, negatives, **more):
    return {
        "query_id": query,
        "query": f"what is {query}?",
        "positive_passages": [{"docid": t, "title": "", "text": t} for t in positives],
        "negative_passages": [{"docid": t, "title": "A", "text": t} for t in negatives],
        **more,
    }


def write(path, *rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def files(tmp_path):
    first = write(
        tmp_path / "a.jsonl", row("q1", ["p1", "p2"], ["n1", "n2", "n3"]), row("q2", "é", "ü")
    )
    second = write(tmp_path / "b.jsonl", row("q3", ["p4"], ["n5"]))
    return [first, second]


def test_what_is_drawn(files):
    groups = JudgedGroups(JsonLinesQueries(files), negatives_per_group=2)
    assert len(groups) == 3
    found = [groups.group(epoch, 0) for epoch in range(60)]
    texts = {(group.positive.query, group.positive.document) for group in found}
    assert texts == {("what is q1?", "p1"), ("what is q1?", "p2")}
    counts = Counter(pair.document for group in found for pair in group.negatives)
    assert counts.keys() == {"A n1", "A n2", "A n3"} and counts.total() == 120
    assert groups.group(0, 1).members == (Pair("what is q2?", "é"), Pair("what is q2?", "A ü"))
    assert groups.group(9, 2).members == (Pair("what is q3?", "p4"), Pair("what is q3?", "A n5"))


def test_origins_hold_the_ids_of_the_lines(tmp_path):
    """A passage without a docid has none, and neither has the document of a swapped line."""
    lines = [row("q1", ["p1"], ["n1"]), row("q2", ["p2"], ["n2"], swapped=True)]
    del lines[0]["negative_passages"][0]["docid"]
    groups = JudgedGroups(JsonLinesQueries([write(tmp_path / "a.jsonl", *lines)]))
    plain, swapped = (groups.group(0, index) for index in range(2))
    ids = [pair.document_origin for pair in plain.members]
    assert ids == [DocumentOrigin(document_id="p1"), DocumentOrigin()]
    assert {pair.query_origin for pair in plain.members} == {QueryOrigin(query_id="q1")}
    assert {pair.query_origin for pair in swapped.members} == {QueryOrigin(query_id="q2")}
    assert [pair.document_origin for pair in swapped.members] == [None, None]


def test_fields_that_are_joined(files):
    groups = JudgedGroups(JsonLinesQueries(files, fields=["text", "docid"]))
    assert groups.group(0, 2).positive.document == "p4 p4"


def test_few_queries_and_named_ones(files, tmp_path):
    one, two = (JsonLinesQueries(files, queries=count, seed=3) for count in (1, 2))
    assert one.judged(0) in [two.judged(0), two.judged(1)] and len(two) == 2
    assert one.fingerprint != two.fingerprint
    (tmp_path / "ids").write_text("q3\n")
    assert JsonLinesQueries(files, query_ids=str(tmp_path / "ids")).judged(0).id == "q3"
    with pytest.raises(HarpError, match="only 3 of 4 queries to learn from"):
        JsonLinesQueries(files, queries=4)


def test_another_text_is_another_fingerprint(files, tmp_path):
    before = JsonLinesQueries(files).fingerprint
    write(tmp_path / "b.jsonl", row("q3", ["p4"], ["n6"]))
    assert JsonLinesQueries(files).fingerprint != before


def test_lines_left_out_are_counted(tmp_path):
    rows = [
        row("q1", [], ["n"]),
        row("q2", [" "], ["n"]),
        row("q3", ["p"], []),
        row("q4", "p", "n"),
    ]
    rows.append(row("q5", ["A p"], ["p"]))
    source = JsonLinesQueries([write(tmp_path / "x.jsonl", *rows)])
    assert len(source) == 1 and source.judged(0).id == "q4"
    assert source.drops == {
        "without a positive passage that has text": 2,
        "without a negative passage that has a text of its own": 2,
    }


def with_scores(line, positives, negatives):
    for key, scores in (("positive_passages", positives), ("negative_passages", negatives)):
        for passage, score in zip(line[key], scores, strict=True):
            passage |= {} if score is None else {"score": score}
    return line


def test_passages_carry_their_teachers_scores(tmp_path):
    rows = [
        with_scores(row("q1", ["p1", "p2"], ["n1", "n2", "n3"]), [9, 8.5], [1, None, -2.0]),
        with_scores(row("q2", ["p3"], ["n4"]), [1.0], [None]),
        with_scores(row("q3", ["p4"], ["n5"]), [None], [1.0]),
    ]
    path = write(tmp_path / "x.jsonl", *rows)
    groups = JudgedGroups(JsonLinesQueries([path], teacher=True))
    scores = {"p1": 9, "p2": 8.5, "A n1": 1, "A n3": -2.0}
    drawn = set()
    for epoch in range(30):
        group = groups.group(epoch, 0)
        documents = [pair.document for pair in group.members]
        assert group.teacher_scores == tuple(scores[document] for document in documents)
        drawn.update(documents)
    assert len(groups) == 1 and drawn == scores.keys()
    assert groups.source.without_teacher_score == 3
    assert groups.source.drops == {
        "without a relevant document that has a teacher score": 1,
        "without a negative that has a teacher score": 1,
    }
    plain = JudgedGroups(JsonLinesQueries([path]))
    assert len(plain) == 3 and plain.group(0, 0).teacher_scores is None


@pytest.mark.parametrize("score", ["high", True, float("nan"), float("inf"), [1]])
def test_a_score_that_is_not_a_number_is_named(score, tmp_path):
    path = write(tmp_path / "x.jsonl", with_scores(row("q", ["p"], ["n"]), [1], [score]))
    with pytest.raises(
        HarpError, match=r"x.jsonl, line 1: negative_passages: score is .*: it must be a number"
    ):
        JsonLinesQueries([path], teacher=True)
    assert len(JsonLinesQueries([path])) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 3: not JSON"),
        ("[]", r"line 3 is \[\]: it must be an object"),
        ('{"query": 3}', "line 3: query is 3: it must be a text"),
        ('{"query": "q"}', "line 3: positive_passages is None: it must be a list"),
        (
            '{"query": "q", "positive_passages": ["p"]}',
            r"line 3: positive_passages is \['p'\]: it must be",
        ),
        (
            '{"query": "q", "positive_passages": [{"body": "p"}], "negative_passages": []}',
            "line 3: positive_passages: a passage has no text in title, text",
        ),
        (
            '{"query": "q", "positive_passages": [{"text": null}], "negative_passages": []}',
            "line 3: positive_passages: text is None: it must be a text",
        ),
        ("\udcff", "line 3: not JSON"),
    ],
)
def test_malformed_lines_are_named(line, message, tmp_path):
    path = tmp_path / "x.jsonl"
    good = json.dumps(row("q1", ["p"], ["n"]))
    path.write_text(f"{good}\n\n{line}\n", errors="surrogateescape")
    with pytest.raises(HarpError, match=message):
        JsonLinesQueries([str(path)])


def test_files_without_a_line_to_learn_from(tmp_path):
    (tmp_path / "x.jsonl").touch()
    for name, message in [("x.jsonl", "is empty|no query to learn"), ("y.jsonl", "cannot read")]:
        with pytest.raises(HarpError, match=message):
            JsonLinesQueries([str(tmp_path / name)])


def test_round_trip_of_what_harp_export_writes(encyclopedia_build, tmp_path):
    options = ExportOptions(output_dir=str(tmp_path / "pairs"), groups_per_epoch=60, quiet=True)
    files = sorted(map(str, (export(encyclopedia_build, options) / "data").glob("*.jsonl")))
    data = PreTrainingData(encyclopedia_build, dict.fromkeys(HARP_TASKS, 1), groups_per_epoch=60)
    groups = JudgedGroups(JsonLinesQueries(files))
    assert len(groups) == 60 and not groups.shortages()
    tasks = Counter()
    for index in range(60):
        original = data.group(0, index)
        assert groups.group(4, index).members == original.members
        tasks[original.task] += 1
    assert tasks.keys() == set(HARP_TASKS)


def test_a_query_without_an_id_has_the_number_of_its_line(tmp_path):
    lines = [row(f"q{n}", [f"p{n}"], [f"n{n}"]) | {"query_id": None} for n in range(3)]
    file = write(tmp_path / "a.jsonl", *lines)
    assert len(JsonLinesQueries([file])) == 3
    assert len(JsonLinesQueries([file], queries=1)) == 1
