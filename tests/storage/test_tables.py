"""Parquet shards and memory-mapped look-ups, against pandas."""

import pickle
import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harp_plugin.errors import HarpError
from harp_plugin.storage import (
    MappedTable,
    Stage,
    open_table,
    parquet_files,
    read_table,
    table_bytes,
    write_table,
)

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("weights", pa.list_(pa.float16()))])


def rows(count, seed=0):
    draw = random.Random(seed)
    ids = draw.sample(range(10**12), count)
    return [
        {"id": id, "text": f"é{id}", "weights": [np.float16(draw.random()) for _ in range(id % 5)]}
        for id in ids
    ]


def write(folder, parts):
    for number, part in enumerate(parts):
        batch = pa.RecordBatch.from_pylist(part, schema=SCHEMA)
        write_table(folder / f"part-{number}.parquet", SCHEMA, [batch])


def test_write_and_read(tmp_path):
    whole = rows(40)
    batches = [pa.RecordBatch.from_pylist(whole[i : i + 7], schema=SCHEMA) for i in range(0, 40, 7)]
    path = tmp_path / "a" / "t.parquet"
    assert write_table(path, SCHEMA, batches) == 40
    assert pd.read_parquet(path)["id"].tolist() == [row["id"] for row in whole]
    assert [file.name for file in path.parent.iterdir()] == ["t.parquet"]
    assert table_bytes(path.parent) == path.stat().st_size
    assert read_table(path.parent, ["text"]).column_names == ["text"]


def test_rows_are_grouped(tmp_path):
    ids = pa.record_batch({"id": pa.array(range(40_000), pa.int64())})
    write_table(tmp_path / "t.parquet", ids.schema, [ids])
    metadata = pq.read_metadata(tmp_path / "t.parquet")
    assert metadata.num_row_groups == 3 and metadata.num_rows == 40_000


def test_a_writer_that_dies_leaves_nothing_under_the_final_name(tmp_path):
    def batches():
        yield pa.RecordBatch.from_pylist(rows(3), schema=SCHEMA)
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        write_table(tmp_path / "t.parquet", SCHEMA, batches())
    assert not list(tmp_path.glob("*.parquet"))


def test_no_table(tmp_path):
    with pytest.raises(HarpError, match="no table in"):
        parquet_files(tmp_path)


@pytest.fixture
def mapped(tmp_path):
    whole = rows(101)
    write(tmp_path / "t", [whole[:50], [], whole[50:]])
    frame = pd.concat(
        [pd.read_parquet(file) for file in sorted((tmp_path / "t").iterdir())]
    ).set_index("id")
    return MappedTable(tmp_path / "t", tmp_path / "cache" / "t", "f" * 32), frame


def test_look_ups_agree_with_pandas(mapped):
    table, frame = mapped
    assert len(table) == len(frame) == 101
    assert table.ids.tolist() == sorted(frame.index)
    for id in frame.index:
        assert id in table
        assert table.get(id, "text") == frame.loc[id, "text"]
        np.testing.assert_array_equal(table.array(id, "weights"), frame.loc[id, "weights"])
        assert table.array(id, "weights").dtype == np.float16


def test_absent_ids(mapped):
    table, frame = mapped
    for id in (-1, 0, min(frame.index) + 1, max(frame.index) + 1):
        assert id not in table
        with pytest.raises(KeyError):
            table.get(id, "text")


def test_pickled_table_reads_the_same_copy(mapped):
    table, frame = mapped
    data = pickle.dumps(table)
    again = pickle.loads(data)
    assert len(data) < 1000
    assert all(again.get(id, "text") == text for id, text in frame["text"].items())


def test_first_of_equal_ids_counts(tmp_path):
    double = [{"id": 5, "text": text, "weights": []} for text in "abc"]
    write(tmp_path / "t", [double[:1], double[1:]])
    assert MappedTable(tmp_path / "t", tmp_path / "c" / "t", "f").get(5, "text") == "a"


def test_a_new_fingerprint_replaces_the_copy(tmp_path):
    write(tmp_path / "t", [[{"id": 1, "text": "old", "weights": []}]])
    assert MappedTable(tmp_path / "t", tmp_path / "c" / "t", "one").get(1, "text") == "old"
    write(tmp_path / "t", [[{"id": 1, "text": "new", "weights": []}]])
    assert MappedTable(tmp_path / "t", tmp_path / "c" / "t", "one").get(1, "text") == "old"
    assert MappedTable(tmp_path / "t", tmp_path / "c" / "t", "two").get(1, "text") == "new"
    assert {path.name for path in (tmp_path / "c").iterdir()} == {
        "t-two.arrow",
        "t-two.npy",
        "t.lock",
    }


def test_another_selection_of_columns_is_a_copy_of_its_own(tmp_path):
    """Its name begins alike; neither removes the other."""
    write(tmp_path / "t", [[{"id": 1, "text": "text", "weights": []}]])
    for name in ("t-id", "t"):
        MappedTable(tmp_path / "t", tmp_path / "c" / name, "one")
    assert len(list((tmp_path / "c").glob("*.arrow"))) == 2


def test_an_empty_table(tmp_path):
    write(tmp_path / "t", [[]])
    table = MappedTable(tmp_path / "t", tmp_path / "c" / "t", "f", ["id", "text"])
    assert len(table) == 0 and 3 not in table


def test_open_table_needs_a_finished_stage(tmp_path):
    stage = Stage(tmp_path / "graph", {}, {})
    stage.start()
    write(stage.folder / "anchors", [rows(3)])
    with pytest.raises(HarpError, match="no finished stage"):
        open_table(tmp_path, "graph", "anchors")
    stage.finish_shard("anchors", {"anchors": 3}, {})
    stage.finish()
    table = open_table(tmp_path, "graph", "anchors", ["id", "text"])
    assert sorted(table.ids) == sorted(row["id"] for row in rows(3))
    with pytest.raises(KeyError):
        table.get(rows(3)[0]["id"], "weights")
