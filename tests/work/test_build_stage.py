"""A stage of a build as one object: what it needs, what decides its result, and how it is run."""

from dataclasses import dataclass

import pyarrow as pa
import pytest

from harp_plugin.errors import HarpError
from harp_plugin.options import Options
from harp_plugin.work.build_stage import BuildRequest, BuildStage, StageOptions, finish_shards
from harp_plugin.work.manifest import read_manifest
from harp_plugin.work.parquet import write_table

SCHEMA = pa.schema([("id", pa.int64())])


@dataclass
class CountOptions(Options):
    """What is counted.

    Attributes:
        count: how many shards there are.
        unit: what is counted.
    """

    count: int = 4
    unit: str = "word"


def options_of(request):
    options = request.of(CountOptions)
    recorded, other = ({"count": options.count, "unit": unit} for unit in (options.unit, "letter"))
    return StageOptions(recorded, {"model": "a"}, ("numpy",), [other])


def count(stage, request):
    def write(number):
        ran.append(number)
        path = stage.folder / "numbers" / f"part-{number}.parquet"
        batch = pa.record_batch([pa.array([number])], schema=SCHEMA)
        stage.finish_shard(
            f"shard-{number}", {"numbers": 1}, {}, [write_table(path, SCHEMA, [batch])]
        )

    shards = {f"shard-{number}": number for number in range(stage.options["count"])}
    return {"more": 1} if finish_shards(stage, request, write, shards) else None


ran: list[int] = []
first = BuildStage("first", (), options_of, count, can_be_shared=True)
second = BuildStage("second", ("first",), options_of, count, clean=lambda request: ran.append(-1))


@pytest.fixture(autouse=True)
def none_ran():
    ran.clear()


def test_a_stage_runs_once(tmp_path):
    manifest = first(tmp_path)
    assert manifest == read_manifest(tmp_path / "first") and manifest["more"] == 1
    assert manifest["settings"] == {"count": 4, "unit": "word"} and ran == [0, 1, 2, 3]
    assert first(tmp_path) == manifest and ran == [0, 1, 2, 3]
    with pytest.raises(HarpError, match=r"count: 4 then, 5 now.*give --overwrite"):
        first(tmp_path, CountOptions(count=5))


def test_what_it_needs_comes_first_and_is_an_input(tmp_path):
    with pytest.raises(HarpError, match=r"no finished stage in .*first"):
        second(tmp_path)
    content = first(tmp_path)["content"]
    assert second(tmp_path)["inputs"] == {"first": content, "model": "a"}
    assert second.stage(BuildRequest(tmp_path)).inputs == {"first": content, "model": "a"}
    unknown = second.stage(BuildRequest(tmp_path), unknown=["first"])
    assert unknown.inputs == {"first": None, "model": "a"}


def test_an_equivalent_result_is_taken(tmp_path):
    first(tmp_path, CountOptions(unit="letter"))
    ran.clear()
    assert first(tmp_path, CountOptions())["settings"]["unit"] == "letter" and not ran
    with pytest.raises(HarpError, match="count: 4 then, 5 now, unit: letter then, word now"):
        first(tmp_path, CountOptions(count=5))


def test_each_host_makes_its_shards_and_the_last_one_commits(tmp_path):
    assert first(tmp_path, rank=1, world=3) == {} and ran == [1]
    assert first(tmp_path, rank=0, world=3) == {} and ran == [1, 0, 3]
    assert not (tmp_path / "first" / "manifest.json").exists()
    manifest = first(tmp_path, rank=2, world=3)
    assert manifest["rows"] == {"numbers": 4} and ran == [1, 0, 3, 2]


def test_what_lies_elsewhere_is_removed_whenever_the_stage_is_finished(tmp_path):
    first(tmp_path)
    second(tmp_path)
    second(tmp_path)
    assert ran == [*range(4), *range(4), -1, -1]
