"""Damage of a finished build is one line, or is fixed by building again."""

import hashlib
import random
import shutil
from pathlib import Path

import pytest
from builds import run, tree
from dumps import write_dump

from harp_plugin.commands.check import check
from harp_plugin.errors import HarpError
from harp_plugin.options import Progress
from harp_plugin.tasks import DrawOptions, PreTrainingData
from harp_plugin.tasks.options import HARD_NEGATIVES

pytestmark = pytest.mark.integration

TASKS = ["rqp", "qdm", "rdp", "acm", "prop", "ict", "srr", "ltm", "wlp", "anchor"]
LONG = "It is a kind of plant that grows in many countries of the world and is known to all. "
PAGES = {
    "Apple": f"An apple is a [[fruit]] of a [[tree]]. Some call [[Cider|it]] wine. {LONG * 3}\n"
    f"== Kinds ==\n{LONG * 3}\n=== Red ===\n{LONG * 3}\n=== Green ===\nSour. {LONG * 3}\n"
    "== See also ==\n* [[Pear]]\n",
    "Tree": f"A [[tree]] bears [[fruit|it]]; [[nowhere]] else. {LONG * 3}",
    "Fruit": f"The [[apple]] and the [[pear]] are sweet. {LONG * 3}",
    "Pear": f"A [[Pyrus]] is a tree. {LONG * 3}",
    "Cider": f"It is made of [[apple]]s. {LONG * 3}",
    "Plum": f"It is a small [[fruit]] with a stone. {LONG * 3}",
}


@pytest.fixture(scope="module")
def builds(tmp_path_factory, tiny_bert):
    """A build, and its groups."""
    folder = tmp_path_factory.mktemp("builds")
    source = write_dump(folder / "d.xml", PAGES, {"Pyrus": "Tree"})
    run(source, folder / "out", tiny_bert, tasks=TASKS, pages_per_shard=4)
    return folder / "out", drawn(folder / "out")


def drawn(build: Path) -> str:
    """A hash of groups of all tasks: it reads every table that training reads."""
    digest = hashlib.sha256()
    tasks = dict.fromkeys(TASKS, "task").items()
    for task, kind in [*tasks, *(("anchor", kind) for kind in HARD_NEGATIVES)]:
        draw = DrawOptions(negatives=kind)
        data = PreTrainingData(build, {task: 1}, groups_per_epoch=6, draw=draw)
        for index in range(6):
            digest.update(repr(data.group(0, index)).encode())
    return digest.hexdigest()


def test_building_again_fixes_it(builds, tmp_path, tiny_bert):
    """What is missing or damaged is made again, with the same bytes; nothing else is."""
    build, _ = builds
    shutil.copytree(build, tmp_path / "out")
    source = build.parent / "d.xml"
    rng = random.Random(3)
    for name in ("corpus/pages", "graph/anchors", "weights/page_weights", "examples/rqp"):
        path = sorted((tmp_path / "out" / name).glob("*.parquet"))[0]
        if rng.random() < 0.5:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-5])
        stage = tmp_path / "out" / name.partition("/")[0]
        (stage / "manifest.json").write_bytes(b"{")
        run(source, tmp_path / "out", tiny_bert, tasks=TASKS, pages_per_shard=4)
        assert tree(tmp_path / "out") == tree(build)


def test_harp_check_finds_what_no_size_tells(builds, tmp_path):
    build, _ = builds
    assert check(build, Progress(quiet=True)).damages == []
    shutil.copytree(build, tmp_path / "out")
    for path in (
        *sorted((tmp_path / "out").glob("*/*/*.parquet"))[::9],
        *sorted((tmp_path / "out" / "mapped").glob("*/*.arrow"))[::5],
    ):
        before = path.read_bytes()
        path.write_bytes(before[:-300] + bytes([before[-300] ^ 4]) + before[-299:])
        (damage,) = check(tmp_path / "out", Progress(quiet=True)).damages
        assert str(path) in damage and "or delete it" in damage
        path.write_bytes(before)


def test_damage_is_one_line_or_changes_nothing(builds, tmp_path):
    build, expected = builds
    shutil.copytree(build, tmp_path / "out")
    for path in (
        tmp_path / "out" / "graph" / "manifest.json",
        sorted((tmp_path / "out" / "graph" / "anchors").glob("*.parquet"))[0],
    ):
        before = path.read_bytes()
        for damaged in (before[:-3], None):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            with pytest.raises(HarpError) as caught:
                drawn(tmp_path / "out")
            assert str(path.parent) in str(caught.value) and "\n" not in str(caught.value)
            path.write_bytes(before)
    foreign = tmp_path / "out" / "graph" / "anchors" / "part-999.parquet"
    shutil.copy(path, foreign)
    with pytest.raises(HarpError, match=r"part-999.parquet is not a file of this build"):
        drawn(tmp_path / "out")
    foreign.unlink()
    copy = next((tmp_path / "out" / "mapped").glob("*/table.arrow"))
    copy.write_bytes(copy.read_bytes()[:-1])
    assert drawn(tmp_path / "out") == expected
