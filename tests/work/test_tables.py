"""Parquet shards and memory-mapped look-ups, against pandas."""

import hashlib
import pickle
import random
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builds import read_table

from harp_plugin.errors import HarpError
from harp_plugin.work.manifest import table_files
from harp_plugin.work.mapped import MappedTable, open_table
from harp_plugin.work.parquet import parquet_files, write_table
from harp_plugin.work.stage import Stage

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("weights", pa.list_(pa.float16()))])


def rows(count, seed=0):
    draw = random.Random(seed)
    ids = draw.sample(range(10**12), count)
    return [
        {"id": id, "text": f"é{id}", "weights": [np.float16(draw.random()) for _ in range(id % 5)]}
        for id in ids
    ]


def write(folder, parts):
    batches = [pa.RecordBatch.from_pylist(part, schema=SCHEMA) for part in parts]
    return [
        write_table(folder / f"part-{number}.parquet", SCHEMA, [batch])
        for number, batch in enumerate(batches)
    ]


def test_write_and_read(tmp_path):
    whole = rows(40)
    batches = [pa.RecordBatch.from_pylist(whole[i : i + 7], schema=SCHEMA) for i in range(0, 40, 7)]
    path = tmp_path / "a" / "t.parquet"
    written = write_table(path, SCHEMA, batches)
    assert (written.path, written.rows, written.size) == (path, 40, path.stat().st_size)
    assert written.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert pd.read_parquet(path)["id"].tolist() == [row["id"] for row in whole]
    assert [file.name for file in path.parent.iterdir()] == ["t.parquet"]
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
    files = write(tmp_path / "t", [whole[:50], [], whole[50:]])
    frame = pd.concat([pd.read_parquet(file.path) for file in files]).set_index("id")
    return MappedTable.from_files(files, tmp_path / "cache" / "t"), frame


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
    files = write(tmp_path / "t", [double[:1], double[1:]])
    assert MappedTable.from_files(files, tmp_path / "c" / "t").get(5, "text") == "a"


def test_another_content_replaces_the_copy(tmp_path):
    def text(value):
        files = write(tmp_path / "t", [[{"id": 1, "text": value, "weights": []}]])
        return MappedTable.from_files(files, tmp_path / "c" / "t").get(1, "text")

    assert [text(value) for value in ("old", "new", "old")] == ["old", "new", "old"]
    names = sorted(path.name for path in (tmp_path / "c").iterdir())
    assert names == [".t.lock", "t"]


def test_another_selection_of_columns_is_a_copy_of_its_own(tmp_path):
    """Its name begins alike; neither removes the other."""
    files = write(tmp_path / "t", [[{"id": 1, "text": "text", "weights": []}]])
    for name in ("t-id", "t"):
        MappedTable.from_files(files, tmp_path / "c" / name)
    assert len(list((tmp_path / "c").glob("*/table.arrow"))) == 2


def test_an_empty_table(tmp_path):
    files = write(tmp_path / "t", [[]])
    table = MappedTable.from_files(files, tmp_path / "c" / "t", ["id", "text"])
    assert len(table) == 0 and 3 not in table


def test_a_damaged_copy_is_made_again(tmp_path, caplog):
    files = write(tmp_path / "t", [rows(30)])
    MappedTable.from_files(files, tmp_path / "c" / "t")
    path = tmp_path / "c" / "t" / "index.npy"
    path.write_bytes(path.read_bytes()[:-1])
    again = MappedTable.from_files(files, tmp_path / "c" / "t")
    assert sorted(again.ids) == sorted(row["id"] for row in rows(30))
    assert f"{tmp_path / 'c' / 't'} is made again" in caplog.text


def test_a_damaged_table_is_not_copied(tmp_path):
    files = write(tmp_path / "t", [rows(30)])
    files[0].path.write_bytes(files[0].path.read_bytes()[:-1])
    with pytest.raises(HarpError, match=r"part-0\.parquet (is damaged|has changed)"):
        MappedTable.from_files(files, tmp_path / "c" / "t")
    assert not list((tmp_path / "c").glob("**/*.arrow"))


def test_pages_have_checksums(tmp_path):
    """Where only a page is read: no footer tells that a byte of it has changed."""
    (file,) = write(tmp_path / "t", [rows(30)])
    data = bytearray(file.path.read_bytes())
    silent = 0
    for index in range(4, len(data) // 2, 7):
        data[index] ^= 16
        file.path.write_bytes(data)
        with suppress(HarpError):
            silent += read_table(tmp_path / "t").to_pylist() != rows(30)
        data[index] ^= 16
    assert not silent


def test_open_table_needs_a_finished_stage(tmp_path):
    stage = Stage(tmp_path / "graph", {}, {})
    stage.start()
    files = write(stage.folder / "anchors", [rows(3)])
    with pytest.raises(HarpError, match="no finished stage"):
        open_table(tmp_path, "graph", "anchors")
    stage.finish_shard("anchors", {"anchors": 3}, {}, files)
    stage.finish()
    assert table_files(tmp_path / "graph", "anchors") == files
    table = open_table(tmp_path, "graph", "anchors", ["id", "text"])
    assert sorted(table.ids) == sorted(row["id"] for row in rows(3))
    with pytest.raises(KeyError):
        table.get(rows(3)[0]["id"], "weights")


def test_pandas_is_imported_before_pyarrow_needs_it():
    """Or else pyarrow imports it from C, and a Ctrl-C that comes meanwhile is lost."""
    program = "import sys, harp_plugin.work.parquet; sys.exit('pandas' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
