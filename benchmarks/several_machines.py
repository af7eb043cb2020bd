"""What a build costs by each engine on one machine: DuckDB, Spark here, and a cluster of Spark.

    python benchmarks/several_machines.py SOURCE DIR --engines duckdb cluster killed --memory 4GB

Each makes the whole build (`anchor` with BM25 negatives, and HARP's four tasks with ``--model``).
``cluster`` is Spark on a standalone cluster of a master and two workers on this machine, and
``killed`` is the same with a worker killed and replaced in each stage. Each row says whether the
bytes are those of the first.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from spark_cluster import Cluster, killing_workers

HARP = (sys.executable, "-m", "harp_plugin.cli")


def main() -> None:
    """Run what is asked, and print a row for each run."""
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    runs = _with_engines(options)
    print("| run | seconds | compared with the first | bytes |\n|---|---|---|---|")
    first: tuple[Path, float] | None = None
    for name, folder, seconds in runs:
        first = first or (folder, seconds)
        same = "the same" if _files_agree(first[0], folder) else "OTHERS"
        print(f"| {name} | {seconds:.1f} | {seconds / first[1]:.2f} | {same} |", flush=True)


def _with_engines(options: argparse.Namespace):
    """Make the whole build by several engines."""
    tasks = ["anchor", *(["rqp", "qdm", "rdp", "acm"] if options.model else [])]
    for engine in options.engines:
        folder = options.folder / engine
        shutil.rmtree(folder, ignore_errors=True)
        line = _build(options, str(folder), "--tasks", *tasks, "--negatives", "bm25")
        line += ["--workers", str(options.cores), "--memory", options.memory]
        if engine in ("duckdb", "spark"):
            line += ["--engine", engine, "--spark-master", options.spark_master]
            yield engine, folder, _run(line)
        else:
            yield _with_cluster(options, engine, folder, line)


def _with_cluster(options: argparse.Namespace, name: str, folder: Path, line: list[str]):
    """Make the whole build on a standalone cluster; kill workers if the name asks for it."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    place = options.folder / f"{name}-cluster"
    place.mkdir(exist_ok=True)
    cluster = Cluster(place, memory=options.memory.removesuffix("B").lower())
    line = [*line, "--engine", "spark", "--spark-master", cluster.url]
    try:
        if name == "cluster":
            return name, folder, _run(line)
        with killing_workers(folder, cluster) as killed:
            seconds = _run(line)
        return f"cluster, a worker killed in {', '.join(killed)}", folder, seconds
    finally:
        cluster.end()


def _build(options: argparse.Namespace, folder: str, *more: str) -> list[str]:
    line = [*HARP, "build", str(options.source), "--output-dir", folder, "--quiet"]
    if options.model:
        line += ["--model", options.model]
    return [*line, "--pages-per-shard", str(options.pages_per_shard), *more]


def _run(line: list[str]) -> float:
    """Run a command; return its seconds."""
    started = time.monotonic()
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if subprocess.run(line, env=environment, stdout=subprocess.DEVNULL, check=False).returncode:
        sys.exit("a run failed")
    return time.monotonic() - started


def _files_agree(one: Path, two: Path) -> bool:
    """Compare the files of stages, apart from locks and the copies that readers make."""
    names = [
        {
            path.relative_to(folder)
            for path in folder.rglob("*")
            if path.is_file() and ".lock" not in path.name and "mapped" not in path.parts
        }
        for folder in (one, two)
    ]
    different = filecmp.cmpfiles(one, two, map(str, names[0]), shallow=False)[1:]
    return names[0] == names[1] and not any(different)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=Path, help="such as simplewiki.xml.bz2")
    parser.add_argument("folder", type=Path, metavar="DIR", help="for the builds")
    engines = ["duckdb", "spark", "cluster", "killed"]
    parser.add_argument("--engines", nargs="+", default=engines[:2], choices=engines)
    parser.add_argument("--memory", default="4GB", help="of DuckDB, or of each worker of Spark")
    parser.add_argument("--spark-master", default="local[*]")
    parser.add_argument("--model", help="weighs; without it, no stage of weights")
    parser.add_argument("--pages-per-shard", type=int, default=100)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    return parser.parse_args()


if __name__ == "__main__":
    main()
