"""`PreTrainingData`: groups by number, the walk over the examples, mixing, pickling, errors."""

import multiprocessing
import pickle
from collections import Counter

import pytest
from chi_square import agrees

from harp_plugin.errors import HarpError
from harp_plugin.tasks import DrawOptions, NoPairError, PreTrainingData

EQUAL = {"rqp": 1, "qdm": 1, "rdp": 1, "acm": 1}
SIZES = {"rqp": 27, "qdm": 18, "rdp": 5, "acm": 5}


@pytest.fixture
def data(hand_build):
    """Data whose examples all give a group, but for two of RDP."""

    def open_data(tasks=EQUAL, draw=None, **options):
        chosen = DrawOptions(**{"rqp_negative_words": "page", **(draw or {})})
        return PreTrainingData(hand_build.directory, tasks, draw=chosen, **options)

    return open_data


def epoch_of(data, epoch):
    return [data.group(epoch, index) for index in range(len(data))]


def walk(data, epoch):
    """The example that stands at each place of an epoch, whether it gives a group or not."""
    return [next(data.attempts(epoch, index))[0] for index in range(len(data))]


def in_another_process(data, queue):
    queue.put(epoch_of(data, 3))


def test_a_group_is_a_function_of_seed_epoch_and_index(data):
    first = data(groups_per_epoch=60)
    groups = {epoch: epoch_of(first, epoch) for epoch in (0, 1, 3)}
    again = data(groups_per_epoch=60)
    backwards = {
        (epoch, index): again.group(epoch, index)
        for epoch in (3, 0, 1)
        for index in range(59, -1, -1)
    }
    assert all(groups[epoch][index] == group for (epoch, index), group in backwards.items())
    assert groups[0] != groups[1] != groups[3]
    assert epoch_of(data(groups_per_epoch=60, seed=7), 0) != groups[0]


def test_pickle_is_small_and_draws_the_same(data):
    first = data(groups_per_epoch=40)
    groups = epoch_of(first, 3)
    pickled = pickle.dumps(first)
    assert len(pickled) < 3000
    assert epoch_of(pickle.loads(pickled), 3) == groups
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=in_another_process, args=(first, queue))
    child.start()
    assert queue.get(timeout=60) == groups
    child.join()


@pytest.mark.parametrize("task", SIZES)
def test_every_example_once_before_any_twice(data, task):
    size = SIZES[task]
    length = 3 * size + 2
    only = data({task: 1}, groups_per_epoch=length)
    assert only.examples == {task: size}
    orders = []
    for epoch in range(3):
        seen = walk(only, epoch)
        rounds = [seen[start : start + size] for start in range(0, length, size)]
        for whole in rounds[:3]:
            assert sorted(whole) == sorted(only.source.examples[task].ids)
        assert len(set(rounds[3])) == 2
        orders += rounds[:3]
    assert len({tuple(order) for order in orders}) >= 7  # of 9; there are 120 orders of five


def test_rounds_of_one_epoch_draw_anew(data):
    only = data({"rqp": 1}, groups_per_epoch=2 * SIZES["rqp"])
    groups: dict[int, list] = {}
    for example, group in zip(walk(only, 0), epoch_of(only, 0), strict=True):
        groups.setdefault(example, []).append(group)
    assert sum(one != two for one, two in groups.values()) > 20


def test_fresh_draws_change_with_the_epoch_and_fixed_ones_do_not(data):
    for redrawn in (True, False):
        only = data({"rqp": 1}, draw={"redraw_each_epoch": redrawn, "replacement": True})
        epochs = [dict(zip(walk(only, e), epoch_of(only, e), strict=True)) for e in range(2)]
        assert epochs[0].keys() == epochs[1].keys()
        same = sum(epochs[0][example] == epochs[1][example] for example in epochs[0])
        assert same == SIZES["rqp"] if not redrawn else same < 5
        assert walk(only, 0) != walk(only, 1)


def test_default_queries_of_rqp_have_as_many_drawn_words(linked_build):
    for group in epoch_of(PreTrainingData(linked_build.directory, {"rqp": 1}), 0):
        first, second = (pair.query_origin.sampled for pair in group.members)
        assert len(first) == len(second)


def test_an_example_that_gives_nothing_is_passed_over(data):
    """Sentence 5's anchors tie: its place is taken by the example after it."""
    only = data({"rdp": 1}, groups_per_epoch=50)
    groups = epoch_of(only, 0)
    assert all(group.positive.query != "Left right" for group in groups)
    tries = [list(zip(range(3), only.attempts(0, index), strict=False)) for index in range(50)]
    skipped = [attempts for attempts in tries if attempts[0][1][0] == 1005]
    assert len(skipped) == 10
    assert all(attempts[0][1][1] is None for attempts in skipped)


def test_a_task_that_gives_nothing_at_all(tied_build):
    only = PreTrainingData(tied_build.directory, {"rdp": 1})
    with pytest.raises(NoPairError, match=r"^task rdp gives no pair in 100 examples"):
        only.group(0, 0)


@pytest.mark.parametrize(
    ("tasks", "mixing", "shares"),
    [
        (EQUAL, "uniform", dict.fromkeys(SIZES, 1 / 4)),
        (EQUAL, "proportional", {name: size / 55 for name, size in SIZES.items()}),
        ({"rqp": 1, "acm": 3}, "uniform", {"rqp": 1 / 4, "acm": 3 / 4}),
        ({"rqp": 1, "acm": 3}, "proportional", {"rqp": 27 / 42, "acm": 15 / 42}),
        ({"rqp": 1, "acm": 0}, "uniform", {"rqp": 1}),
    ],
)
def test_mixing(data, tasks, mixing, shares):
    mixed = data(tasks, draw={"mixing": mixing}, groups_per_epoch=600)
    assert mixed.shares == pytest.approx(shares)
    counts = Counter(group.task for group in epoch_of(mixed, 0))
    if len(shares) > 1:
        assert agrees(counts, shares)
    assert set(counts) == set(shares)


def test_length(data):
    assert len(data()) == sum(SIZES.values())
    assert len(data({"rqp": 1})) == 27
    assert len(data(groups_per_epoch=7)) == 7


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ({}, "at least one"),
        ({"rqp": 0}, "at least one"),
        ({"rqp": 1, "qdm": -1}, "none below"),
        ({"rqb": 1}, "unknown task 'rqb': did you mean 'rqp'"),
    ],
)
def test_wrong_tasks(data, tasks, message):
    with pytest.raises(HarpError, match=message):
        data(tasks)


def test_folder_without_a_build(tmp_path):
    with pytest.raises(HarpError, match="no finished stage"):
        PreTrainingData(tmp_path, {"rqp": 1})
