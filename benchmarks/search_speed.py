"""How long does a search in a pipeline of `harp adapt` take, from the query to its results?

    python benchmarks/search_speed.py adapted --queries 200

Test queries are asked one after another. Milliseconds of the median and of the 95th percentile,
for the whole pipeline and for its parts, after one query that opens indexes and models.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt

from harp_plugin import HarpFusion, HarpPipeline
from harp_plugin.collections.dataset import JudgedDataset


def systems(pipeline: pt.Transformer) -> Iterator[tuple[str, pt.Transformer]]:
    """Find the systems that a fusion of pipelines fuses, each once."""
    if isinstance(pipeline, pt.Compose):
        for part in pipeline:
            yield from systems(part)
    elif isinstance(pipeline, HarpFusion):
        for name, system in pipeline.systems.items():
            yield name, system
            yield from systems(system)


def milliseconds(system: pt.Transformer, topics: pd.DataFrame) -> np.ndarray:
    """Ask one query after another."""
    system(topics.iloc[:1])
    seconds = []
    for number in range(len(topics)):
        began = time.perf_counter()
        system(topics.iloc[number : number + 1])
        seconds.append(time.perf_counter() - began)
    return 1000 * np.array(seconds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--queries", type=int, default=200)
    options = parser.parse_args()
    began = time.perf_counter()
    pipeline = HarpPipeline.load(options.folder)
    topics = JudgedDataset(f"harp:{options.folder / 'collection'}/test").topics[: options.queries]
    pipeline(topics.iloc[:1])
    print(f"loaded and asked once: {time.perf_counter() - began:.1f} s")
    print("| part | median, ms | 95th percentile, ms |\n|---|---|---|")
    for name, system in {"all": pipeline, **dict(systems(pipeline.pipeline))}.items():
        times = milliseconds(system, topics)
        print(f"| {name} | {np.median(times):.1f} | {np.percentile(times, 95):.1f} |")
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB at most")


if __name__ == "__main__":
    main()
