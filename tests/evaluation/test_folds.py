"""Folds, by brute force."""

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.evaluation.folds import draw_parts, folds_of, read_parts

IDS = [f"q{n}" for n in range(23)]


@pytest.mark.parametrize("count", [2, 3, 5, 22, 23])
@pytest.mark.parametrize("validate", [False, True])
def test_each_query_is_held_out_once_and_learnt_from_in_the_other_folds(count, validate):
    folds = folds_of(draw_parts(IDS, count, seed=1), validate=validate)
    assert [fold.number for fold in folds] == list(range(1, count + 1))
    assert sorted(query for fold in folds for query in fold.test) == sorted(IDS)
    for fold in folds:
        assert len(fold.test) in (23 // count, 23 // count + 1)
        whole = [*fold.train, *fold.validation, *fold.test]
        assert sorted(whole) == sorted(IDS)
    validated = sorted(query for fold in folds for query in fold.validation)
    assert validated == (sorted(IDS) if validate else [])


def test_folds_depend_on_the_seed_and_not_on_the_order_of_queries():
    parts = draw_parts(IDS, 5, seed=1)
    assert draw_parts(IDS[::-1], 5, seed=1) == parts
    assert draw_parts(IDS, 5, seed=2) != parts
    assert parts != [tuple(sorted(IDS[part::5])) for part in range(5)]


def test_more_folds_than_queries():
    with pytest.raises(HarpError, match="24 folds of 23 queries: ask for at most 23"):
        draw_parts(IDS, 24, seed=1)


@pytest.fixture
def files(tmp_path):
    def write(*parts):
        paths = [tmp_path / f"fold-{number}" for number in range(len(parts))]
        for path, part in zip(paths, parts, strict=True):
            path.write_text("\n".join(part))
        return [str(path) for path in paths]

    return write


def test_folds_from_files(files):
    paths = files(["b", "a", ""], ["c"])
    assert read_parts(paths, ["a", "b", "c"], "dataset x") == [("a", "b"), ("c",)]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([["a", "b"], ["b", "c"]], r"query b is in .*fold-0 and in .*fold-1: keep one"),
        ([["a"], ["c"]], "1 judged queries of dataset x are in no fold file, such as b"),
        ([["a", "b", "c"], ["d"]], "fold-1: no query 'd' in dataset x: list one a line"),
        ([["a", "b", "c"], []], "fold-1 is empty"),
    ],
)
def test_wrong_fold_files(files, parts, message):
    with pytest.raises(HarpError, match=message):
        read_parts(files(*parts), ["a", "b", "c"], "dataset x")
