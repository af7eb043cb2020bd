"""A matrix of damage to a finished build: each is told in one line, or changes nothing."""

import hashlib
import logging
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from builds import run, tree
from dumps import write_dump

from harp_plugin.commands.check import CheckOptions, check
from harp_plugin.errors import HarpError
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
    """A build, its groups, and a build of another source; each case mends what it has damaged."""
    folder = tmp_path_factory.mktemp("builds")
    logging.disable(logging.WARNING)
    source = write_dump(folder / "d.xml", PAGES, {"Pyrus": "Tree"})
    run(source, folder / "out", tiny_bert, tasks=TASKS, pages_per_shard=4)
    other = write_dump(folder / "e.xml", {**PAGES, "Quince": f"A [[fruit]]. {LONG * 3}"})
    run(other, folder / "other", tiny_bert, tasks=TASKS, pages_per_shard=4)
    yield folder / "out", folder / "other", drawn(folder / "out")
    logging.disable(logging.NOTSET)


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


def flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def damages(path: Path, build: Path, other: Path, rng: random.Random):
    """Names of damages with the content that the file has then; None where it is gone."""
    data = path.read_bytes()
    if not data:
        return
    for number in range(2):
        yield f"flip {number}", flipped(data, rng)
    yield "truncate", data[: rng.randrange(len(data))]
    yield "delete", None
    yield "zeros", bytes(len(data))
    twin = other / path.relative_to(build)
    if twin.is_file() and twin.read_bytes() != data:
        yield "replace", twin.read_bytes()


def outcome(build: Path, expected: str) -> str:
    try:
        return "the same" if drawn(build) == expected else "silent"
    except HarpError as error:
        assert "\n" not in str(error)
        return "one line" if str(build) in str(error) else f"names no file: {error}"


def matrix(build: Path, other: Path, expected: str, paths: list[Path], *, copies: bool) -> Counter:
    rng = random.Random(15)
    found: Counter[str] = Counter()
    for path in paths:
        before = path.read_bytes()
        for name, data in damages(path, build, other, rng):
            if not copies:
                shutil.rmtree(build / "mapped", ignore_errors=True)
            path.unlink()
            if data is not None:
                path.write_bytes(data)
            result = outcome(build, expected)
            path.write_bytes(before)
            assert result in ("the same", "one line"), (path, name, result)
            found[result] += 1
    return found


def test_tables(builds):
    """Without copies for look-ups, every table is read; its damage is always told."""
    build, other, expected = builds
    paths = sorted(build.glob("*/*/*.parquet"))[::2]
    found = matrix(build, other, expected, paths, copies=False)
    assert found.total() >= 60 and found["one line"] > 0.5 * found.total()


def test_tables_beside_their_copies(builds):
    build, other, expected = builds
    drawn(build)
    paths = sorted(build.glob("*/*/*.parquet"))[::4]
    assert matrix(build, other, expected, paths, copies=True).total() >= 30


def test_manifests(builds):
    build, other, expected = builds
    paths = sorted(build.glob("*/manifest.json"))
    found = matrix(build, other, expected, paths, copies=True)
    assert found.total() >= 25 and found["one line"] == found.total()


def test_copies_for_look_ups(builds):
    build, other, expected = builds
    shutil.rmtree(build / "mapped")  # it has copies that only the build itself reads
    drawn(build)
    paths = sorted(p for p in (build / "mapped").iterdir() if p.suffix != ".lock")
    names = [path.name for path in paths][::6]
    found: Counter[str] = Counter()
    rng = random.Random(7)
    for name in names:
        path = build / "mapped" / name
        for _, data in damages(path, build, other, rng):
            path.unlink()
            if data is not None:
                path.write_bytes(data)
            found[outcome(build, expected)] += 1
    assert found.total() >= 20 and set(found) == {"the same"}


def test_foreign_shards(builds):
    build, _, expected = builds
    for folder in sorted({path.parent for path in build.glob("*/*/*.parquet")}):
        foreign = folder / "part-999.parquet"
        shutil.copy(next(folder.glob("*.parquet")), foreign)
        result = outcome(build, expected)
        foreign.unlink()
        assert result in ("one line", "the same")


def test_building_again_mends_it(builds, tmp_path, tiny_bert):
    """What is missing or damaged is made anew, with the same bytes; nothing else is."""
    build, _, _ = builds
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


def test_harp_check_finds_every_damage(builds):
    """Also of files that no command would read now."""
    build, other, _ = builds
    drawn(build)
    assert check(build).damages == []
    rng = random.Random(1)
    paths = [p for p in build.rglob("*") if p.is_file() and p.suffix not in (".lock",)]
    paths = [p for p in paths if p.name not in (".harp.lock", "started.json")]
    paths = [p for p in paths if p.parent.name != "shards"]
    for path in sorted(paths):
        before = path.read_bytes()
        for name, data in damages(path, build, other, rng):
            path.unlink()
            if data is not None:
                path.write_bytes(data)
            found = check(build, CheckOptions(quiet=True))
            path.write_bytes(before)
            gone_copy = path.parent.name == "mapped" and path.suffix == ".json" and data is None
            assert found.damages or found.unfinished or gone_copy, (path, name)
    assert check(build).damages == []
