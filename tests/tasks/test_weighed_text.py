"""Words and their weights belong to one text; what does not fit is an error, not other words."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pytest
from builds import read_table

from harp_plugin.errors import HarpError
from harp_plugin.tasks import DrawOptions
from harp_plugin.tasks.source import BuildSource
from harp_plugin.tasks.terms import WeighedText
from harp_plugin.work.manifest import read_manifest
from harp_plugin.work.parquet import write_table
from harp_plugin.work.stage import Stage


def weighed(text, *spans):
    return WeighedText(text, np.array(spans).reshape(-1, 2), np.ones(len(spans)))


def test_words_are_those_of_the_text():
    assert weighed("one two three", (0, 3), (4, 7)).words == ["one", "two"]
    assert weighed("一二", (0, 1), (1, 2)).words == ["一", "二"]
    assert WeighedText("one").words == []


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 3), (4, 8)], "beyond the 7 characters"),
        ([(-1, 3)], "beyond"),
        ([(4, 7), (0, 3)], "not in reading order"),
        ([(0, 5), (4, 7)], "not in reading order"),
        ([(3, 0), (4, 7)], "not in reading order"),
    ],
)
def test_spans_that_do_not_fit(spans, message):
    with pytest.raises(ValueError, match=message):
        weighed("one two", *spans)


def test_as_many_weights_as_words():
    with pytest.raises(ValueError, match="1 weights for 2 words"):
        WeighedText("one two", np.array([(0, 3), (4, 7)]), np.ones(1))


def test_a_text_in_a_longer_one():
    inside = weighed("one two", (0, 3), (4, 7)).within("Title one two", 6)
    assert inside.words == ["one", "two"] and inside.text == "Title one two"


def rewrite(directory, name, change):
    """Replace a table of the weights, with a manifest that says so."""
    folder = directory / "weights"
    heads = read_manifest(folder)["heads"]
    tables = ("sentence_weights", "page_weights", "anchor_weights")
    contents = {table: read_table(folder / table) for table in tables}
    rows = contents[name].to_pylist()
    change(rows)
    contents[name] = pa.Table.from_pylist(rows, schema=contents[name].schema)
    shutil.rmtree(folder)
    stage = Stage(folder, {}, {})
    stage.start()
    files = [
        write_table(folder / table / "part-0.parquet", content.schema, content.to_batches())
        for table, content in contents.items()
    ]
    stage.finish_shard("part-0", {table: content.num_rows for table, content in contents.items()},
                       {}, files)  # fmt: skip
    stage.finish(heads=heads)


def lengthen(rows):
    for row in rows:
        row["ends"] = [*row["ends"][:-1], row["ends"][-1] + 1]


def turn(rows):
    for row in rows:
        row["starts"], row["ends"] = row["starts"][::-1], row["ends"][::-1]


def shorten(rows):
    for row in rows:
        row["weights"] = row["weights"][:-1]


@pytest.mark.parametrize(
    ("table", "change", "task", "words"),
    [
        ("sentence_weights", lengthen, "rqp", "anchor .* beyond the 48 characters"),
        ("sentence_weights", turn, "rdp", "sentence 1000 .* not in reading order"),
        ("page_weights", lengthen, "acm", "page .* beyond"),
        ("page_weights", shorten, "acm", "page .* weights for"),
        ("anchor_weights", shorten, "rqp", "anchor .*8 weights for 9 words"),
    ],
)
def test_a_build_whose_weights_do_not_fit(hand_build, tmp_path, table, change, task, words):
    from harp_plugin.sampling import generator
    from harp_plugin.tasks import TASKS

    directory = tmp_path / "build"
    shutil.copytree(hand_build.directory, directory)
    rewrite(directory, table, change)
    source = BuildSource(directory, [task])
    example = hand_build.anchors[0, 0] if task == "rqp" else hand_build.sentence(0)
    message = rf"{directory}: the weights of {words}.*: run `harp build` again with --overwrite"
    with pytest.raises(HarpError, match=message):
        TASKS[task]().draw(example, generator("x"), source, DrawOptions())
