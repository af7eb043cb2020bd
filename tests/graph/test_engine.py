"""The engine: memory caps, children that die, work that is not done twice, and the same bytes."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builds import read_table
from engine_steps import absent_column, by_text, dies, fails, largest, pairs, small, sums
from hypothesis import given, settings
from hypothesis import strategies as st

from harp_plugin.errors import HarpError
from harp_plugin.work.parquet import parquet_files, write_table
from harp_plugin.work.sql.engine import EngineOptions, memory_bytes
from harp_plugin.work.sql.steps import Step, even_chunks, run_steps, write_sorted
from harp_plugin.work.stage import Stage

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("4GB", 4 * 10**9),
        ("512 MiB", 512 * 2**20),
        ("1.5gb", 1_500_000_000),
        (" 900kb ", 900_000),
        ("1TiB", 2**40),
        ("70B", 70),
    ],
)
def test_memory_sizes(size, expected):
    assert memory_bytes(size) == expected


@pytest.mark.parametrize("size", ["4 apples", "", "4", "GB", "0GB", "-1GB", "4GB;", "4 G B", "80%"])
def test_a_bad_memory_size_is_one_line(size):
    with pytest.raises(HarpError, match=r"give a number with its unit") as caught:
        EngineOptions(memory=size)
    assert "\n" not in str(caught.value)


def test_an_unknown_engine():
    with pytest.raises(HarpError, match="--engine is 'polars': it must be one of duckdb, spark"):
        EngineOptions(engine="polars")


NUMBERS = pa.schema([("id", pa.int64()), ("text", pa.string())])


@pytest.fixture
def numbers(tmp_path):
    """A stage, and a source table of the numbers below 2,003 in no order."""
    ids = [n * 7919 % 2003 for n in range(2003)]
    batch = pa.record_batch([ids, [f"t{n % 10}" for n in ids]], schema=NUMBERS)
    write_table(tmp_path / "source" / "part-0.parquet", NUMBERS, [batch])
    stage = Stage(tmp_path / "stage", {}, {})
    stage.start()
    return stage, {"source": tmp_path / "source"}


def test_kinds_of_steps(numbers):
    stage, sources = numbers
    steps = [
        Step("unneeded", fails, "temporary"),
        Step("small", small, "temporary"),
        Step("by_text", by_text, order=("text", "id")),
        Step("drops", sums, "drops"),
        Step("largest", largest, "counts"),
    ]
    assert run_steps(stage, sources, steps) == {"largest": 99}
    rows = read_table(stage.folder / "by_text").to_pylist()
    expected = sorted((f"t{n % 10}", n) for n in range(100))
    assert [(row["text"], row["id"]) for row in rows] == expected
    assert stage.counts() == ({"by_text": 100}, {"some": 100})
    assert sorted(path.name for path in stage.folder.iterdir()) == [
        "by_text",
        "shards",
        "started.json",
    ]


def test_finished_tables_are_not_made_again(numbers):
    stage, sources = numbers
    run_steps(stage, sources, [Step("small", small, "temporary"), Step("by_text", by_text)])
    (file,) = parquet_files(stage.folder / "by_text")
    before = file.stat().st_mtime_ns
    steps = [
        Step("small", fails, "temporary"),
        Step("by_text", fails),
        Step("largest", largest, "counts"),
    ]
    assert run_steps(stage, sources, steps) == {"largest": 99}
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (fails, r"stage: RuntimeError: asked for what nobody needs"),
        (dies, r"stage: the database process ended with status -9"),
        (absent_column, r"nothing"),
    ],
)
def test_a_failed_step_is_one_line(numbers, expression, message):
    stage, sources = numbers
    with pytest.raises(HarpError, match=message) as caught:
        run_steps(stage, sources, [Step("table", expression)])
    assert "\n" not in str(caught.value)
    assert not stage.shard_done("table")


@pytest.mark.slow
def test_steps_after_the_folder_of_a_training_is_gone(numbers):
    """In a process of its own, whose first child starts within that folder."""
    stage, sources = numbers
    code = (
        "import sys\n"
        f"sys.path[:0] = {[str(Path(__file__).parent), *filter(None, sys.path)]!r}\n"
        "from pathlib import Path\n"
        "from engine_steps import small\n"
        "from harp_plugin.work.processes import folder_of_workers\n"
        "from harp_plugin.work.sql.steps import Step, run_steps\n"
        "from harp_plugin.work.stage import Stage\n"
        "def run(name):\n"
        f"    stage = Stage(Path({str(stage.folder.parent)!r}, name), {{}}, {{}})\n"
        "    stage.start()\n"
        f"    sources = {{'source': Path({str(sources['source'])!r})}}\n"
        "    run_steps(stage, sources, [Step('small', small)])\n"
        "with folder_of_workers():\n"
        "    run('within')\n"
        "run('after')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert len(read_table(stage.folder.with_name("after") / "small")) == 100


def test_too_little_memory_says_so(numbers):
    stage, sources = numbers
    with pytest.raises(HarpError, match="--memory 3MB does not suffice") as caught:
        run_steps(stage, sources, [Step("pairs", pairs)], EngineOptions(memory="3MB"))
    assert "\n" not in str(caught.value)


FULL = """
import resource, signal, sys
sys.path[:0] = {path!r}
from pathlib import Path
from engine_steps import pairs
from harp_plugin.work.sql.engine import EngineOptions
from harp_plugin.work.sql.steps import Step, run_steps
from harp_plugin.errors import HarpError
from harp_plugin.work.stage import Stage
if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, 4_000_000))
    stage = Stage(Path({folder!r}), {{}}, {{}})
    stage.start()
    try:
        run_steps(stage, {{"source": Path({source!r})}}, [Step("pairs", pairs)],
                  EngineOptions(memory="60MB"))
    except HarpError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_full_disk_is_one_line(numbers, tmp_path):
    """A limit on the size of files stands for the disk: writing fails in the same place."""
    _, sources = numbers
    script = tmp_path / "full.py"
    path = [str(Path(__file__).parent), *filter(None, sys.path)]
    script.write_text(
        FULL.format(path=path, folder=str(tmp_path / "other"), source=str(sources["source"]))
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.stdout.count("\n") == 1 and done.stdout.startswith("other: no disk space left")
    assert "Traceback" not in done.stderr


ORPHAN = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from engine_steps import waits
from harp_plugin.work.sql.steps import Step, run_steps
from harp_plugin.work.stage import Stage
if __name__ == "__main__":
    stage = Stage(Path({folder!r}), {{}}, {{}})
    stage.start()
    run_steps(stage, {{}}, [Step("waits", waits)])
"""


@pytest.mark.slow
def test_no_orphan_is_left(tmp_path):
    """The child ends when its parent is killed."""
    script, child = tmp_path / "orphan.py", tmp_path / "child"
    path = [str(Path(__file__).parent), *filter(None, sys.path)]
    script.write_text(ORPHAN.format(path=path, folder=str(tmp_path / "stage")))
    environment = {**os.environ, "HARP_TEST_CHILD": str(child)}
    with subprocess.Popen([sys.executable, script], env=environment) as parent:
        while not (child.exists() and child.read_text()):
            assert parent.poll() is None
            time.sleep(0.05)
        parent.kill()
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(child.read_text())).wait(timeout=10)


def test_a_million_rows_a_file(tmp_path):
    ids = pa.record_batch({"id": pa.array(range(1_100_000), pa.int64())})
    written = write_sorted(tmp_path, ids.schema, [ids])
    assert [file.rows for file in written] == [2**20, 1_100_000 - 2**20]
    files = parquet_files(tmp_path)
    assert [file.name for file in files] == ["part-00000.parquet", "part-00001.parquet"]
    assert [pq.read_metadata(file).num_rows for file in files] == [2**20, 1_100_000 - 2**20]
    (tmp_path / "part-00007.parquet").write_text("stale")
    assert [file.rows for file in write_sorted(tmp_path, ids.schema, [])] == [0]
    assert [file.name for file in parquet_files(tmp_path)] == ["part-00000.parquet"]
    assert read_table(tmp_path).num_rows == 0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=8), st.integers(1, 30))
def test_even_chunks(sizes, size):
    schema = pa.schema([("id", pa.int64()), ("ids", pa.list_(pa.int64()))])
    rows = [{"id": n, "ids": list(range(n % 4))} for n in range(sum(sizes))]
    batches, done = [], 0
    for count in sizes:
        part = rows[done : done + count]
        batches.append(pa.RecordBatch.from_pylist(part, schema=schema))
        done += count
    chunks = list(even_chunks(batches, schema, size))
    assert [row for chunk in chunks for row in chunk.to_pylist()] == rows
    assert all(chunk.num_rows == size for chunk in chunks[:-1])
    assert not chunks or 0 < chunks[-1].num_rows <= size
