"""`PreTrainingData` and exports of tasks with several groups an example or several negatives."""

import json
import multiprocessing
from collections import Counter, defaultdict
from dataclasses import asdict

import pytest
from chi_square import agrees
from orchard_wiki import LEADS, draws

from harp_plugin.commands.export import ExportOptions, as_tevatron, export
from harp_plugin.errors import HarpError
from harp_plugin.tasks import DrawOptions, Pair, PairGroup, PreTrainingData

GROUPS = {"prop": 60, "srr": 4, "rwi": 17, "ati": 7, "ltm": 1, "ict": 15, "bfs": 5} | {
    "wlp": 5,
    "hlp": 5,
    "php": 6,
}


@pytest.fixture
def data(orchard):
    return lambda tasks, **options: PreTrainingData(
        orchard.directory, dict.fromkeys(tasks, 1), **options
    )


def first_draws(data, epoch):
    """What each example gives first, with all its groups of an epoch."""
    found = defaultdict(list)
    for index in range(len(data)):
        example, group = next(data.attempts(epoch, index))
        found[example].append(group)
    return found


def as_json(pair):
    return json.loads(json.dumps(asdict(pair)))


def key(groups):
    return sorted(map(repr, groups))


def test_groups_of_each_task(data):
    mixed = data(GROUPS)
    assert mixed.groups == GROUPS and len(mixed) == sum(GROUPS.values())
    assert mixed.examples == GROUPS | {"prop": len(LEADS)}


def test_a_task_that_was_not_built(data):
    with pytest.raises(HarpError, match=r"built without rqp: .* --tasks prop srr .* crop rqp$"):
        data(["prop", "rqp"])


def test_five_groups_of_each_document(data):
    """Of PROP, in one epoch; each of its own, and others in the next epoch."""
    redrawn = data(["prop"])
    assert len(redrawn) == 60
    epochs = [first_draws(redrawn, epoch) for epoch in range(2)]
    for found in epochs:
        assert len(found) == len(LEADS)
        assert {len(groups) for groups in found.values()} == {5}
    distinct = [len(set(key(groups))) for groups in epochs[0].values()]
    assert sum(distinct) >= 0.9 * 60
    same = [example for example in epochs[0] if key(epochs[0][example]) == key(epochs[1][example])]
    assert not same


def test_the_same_five_in_every_epoch(data):
    """Not redrawn: the same five of each document, in another order; a tie stays one."""
    fixed = data(["prop"], draw=DrawOptions(redraw_each_epoch=False))
    epochs = [first_draws(fixed, epoch) for epoch in range(3)]
    for example, groups in epochs[0].items():
        assert len(groups) == 5
        assert key(groups) == key(epochs[1][example]) == key(epochs[2][example])
    assert sum(len(set(key(groups))) for groups in epochs[0].values()) >= 0.9 * 60
    orders = [[next(fixed.attempts(epoch, n))[0] for n in range(60)] for epoch in range(2)]
    assert orders[0] != orders[1]


def test_a_longer_epoch_repeats_the_five_where_they_are_fixed(data):
    fixed = data(["prop"], draw=DrawOptions(redraw_each_epoch=False), groups_per_epoch=120)
    for groups in first_draws(fixed, 0).values():
        assert len(groups) == 10
        assert set(Counter(map(repr, groups)).values()) <= {2, 4, 6, 8, 10}
    redrawn = data(["prop"], groups_per_epoch=120)
    distinct = [len(set(key(groups))) for groups in first_draws(redrawn, 0).values()]
    assert sum(distinct) >= 0.85 * 120


def in_another_process(data, queue):
    queue.put([data.group(2, index) for index in range(len(data))])


@pytest.mark.slow
@pytest.mark.integration
def test_the_same_groups_in_any_process_and_order(data):
    mixed = data(GROUPS, groups_per_epoch=40)
    backwards = [data(GROUPS, groups_per_epoch=40).group(2, n) for n in range(39, -1, -1)]
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=in_another_process, args=(mixed, queue))
    child.start()
    groups = queue.get(timeout=120)
    child.join()
    assert groups == [mixed.group(2, index) for index in range(40)] == backwards[::-1]
    assert {group.task for group in groups} == set(GROUPS)
    for group in groups:
        assert group.positive not in group.negatives
        assert len(set(group.negatives)) == len(group.negatives) >= 1


def test_proportional_counts_groups(data):
    mixed = data(GROUPS, draw=DrawOptions(mixing="proportional"), groups_per_epoch=900)
    total = sum(GROUPS.values())
    expected = {task: count / total for task, count in GROUPS.items()}
    assert mixed.shares == pytest.approx(expected)
    counts = Counter(mixed.group(0, index).task for index in range(900))
    assert agrees(counts, expected)


@pytest.mark.parametrize(
    ("tasks", "length", "mixing", "short"),
    [
        (["ltm", "prop"], 20, "uniform", []),  # ten of one: as often as may be
        (["ltm", "prop"], 22, "uniform", ["ltm"]),
        (["ltm", "prop"], 1220, "uniform", ["ltm", "prop"]),  # 610 of 60
        (["ltm", "prop"], 1200, "uniform", ["ltm"]),
        (["ltm", "prop"], 600, "proportional", []),
        (["ltm", "prop"], 650, "proportional", ["ltm", "prop"]),
        (["ltm"], None, "uniform", []),
    ],
)
def test_shortages(data, tasks, length, mixing, short):
    """Told of a task whose groups would be drawn more than ten times in an epoch."""
    mixed = data(tasks, draw=DrawOptions(mixing=mixing), groups_per_epoch=length)
    told = mixed.shortages()
    assert [sentence.partition(" ")[0] for sentence in told] == short
    if length == 22:
        assert "ltm has 1 groups to draw, its part of an epoch is 11" in told[0]


def test_fingerprint_of_a_build_without_weights(data):
    """Of the stages that the tasks need, and no other."""
    prints = {tasks: data(tasks).fingerprint for tasks in (("srr",), ("prop",), ("srr", "ict"))}
    assert prints["srr",] == prints["srr", "ict"] != prints["prop",]


def test_language_model_of_each_option(orchard):
    """One model for one set of options, another for another."""
    source, options = orchard.source, DrawOptions()
    assert source.language_model(options) is source.language_model(options)
    other = source.language_model(DrawOptions(prop_min_count="50"))
    assert other is not source.language_model(options)
    assert len(other.words) < len(source.language_model(options).words)


@pytest.fixture(scope="module")
def rows(orchard, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "pairs"
    options = ExportOptions(
        output_dir=str(folder), tasks=list(GROUPS), groups_per_epoch=160, quiet=True
    )
    export(orchard.directory, options)
    lines = (folder / "data" / "train-00000.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_export(rows, data):
    """Swapped where the queries differ; as many negative passages as the group has."""
    drawn = data(GROUPS, groups_per_epoch=160)
    assert {row["task"] for row in rows} == set(GROUPS)
    for index, row in enumerate(rows):
        group = drawn.group(0, index)
        assert row["swapped"] == (group.task in ("prop", "rwi"))
        shared, passage = ("document", "query") if row["swapped"] else ("query", "document")
        assert row["positive"] == as_json(group.positive)
        assert row["negatives"] == [as_json(pair) for pair in group.negatives]
        assert {row["query"]} == {getattr(pair, shared) for pair in group.members}
        given = [found["text"] for found in row["positive_passages"] + row["negative_passages"]]
        assert given == [getattr(pair, passage) for pair in group.members]
    most = {task: max(len(r["negatives"]) for r in rows if r["task"] == task) for task in GROUPS}
    assert most == {"prop": 1, "srr": 4, "rwi": 4, "ati": 4, "ltm": 4} | dict.fromkeys(
        ("ict", "bfs", "wlp", "hlp", "php"), 1
    )


def test_swapped_where_only_one_negative_has_another_query():
    """The first may repeat the positive's."""
    group = PairGroup("x", Pair("a", "d"), (Pair("a", "d"), Pair("b", "d")))
    row = as_tevatron(group, "1")
    assert row["swapped"] and row["query"] == "d"
    assert [passage["text"] for passage in row["negative_passages"]] == ["a", "b"]


def test_draws_are_those_of_the_task(orchard, data):
    """`PreTrainingData` gives groups that the task's own draws give."""
    only = data(["ltm"], groups_per_epoch=20)
    (example,) = only.source.examples["ltm"].ids.tolist()
    positives = {group.positive for group in draws(orchard.source, "ltm", example, 200)}
    assert {only.group(0, index).positive for index in range(20)} <= positives
