"""What a corpus costs, step by step, from the rates that were measured here.

    python benchmarks/plan.py --pages 6.9e6 --wikitext 25e3 --links 109e6 --tokens 5.0e9
    python benchmarks/plan.py --pages 60.49e6 --html 6.05e6 --links 117e6 --cores 256

``harp build SOURCE --dry-run`` estimates the sizes of a corpus from a sample of it. Each rate is of
one core of an AMD EPYC with AVX512-BF16, and stands with its command in benchmarks/RESULTS.md.
Hours are rates times sizes. That is right for all steps but the link graph, which sorts and joins:
there it holds while the memory that each link needs is at hand.
"""

from __future__ import annotations

import argparse
from math import log
from typing import NamedTuple


class Rate(NamedTuple):
    """What a step takes for a unit of its input.

    Attributes:
        step: its name.
        size: of the corpus, which it depends on.
        seconds: of one core, for a unit.
        written: bytes that stay on the disk, for a unit.
        uses_spark: whether Spark's tasks exchange rows.
    """

    step: str
    size: str
    seconds: float
    written: float = 0
    uses_spark: bool = False


WIKITEXT = 3.38
"""Megabytes a second, the stage `corpus` with one worker."""
HTML = 3.8 * 3.38 / 5.16
"""The reader's rate on Python's manual, times what the stage leaves of the reader's rate."""
CORPUS_WRITTEN = 1.1e6
DUCKDB_SECONDS = 1.21 * 60 / 10e6
SPARK_SECONDS = 2 * (8.74 + 2.37) * 60 / 10e6
GRAPH_WRITTEN = 102
MINILM_TOKENS = 7_046 / 2
MINILM_TOKENS_IN_BF16 = 11_644 / 2
BERT_BASE = 8
"""Weights in the layers of BERT-base, beside MiniLM's."""
RATES = (
    Rate("wikitext to tables (`corpus`)", "wikitext", 1 / WIKITEXT, CORPUS_WRITTEN),
    Rate("HTML to tables (`corpus`)", "html", 1 / HTML, CORPUS_WRITTEN / 5),
    Rate("link graph and examples, DuckDB", "links", DUCKDB_SECONDS, GRAPH_WRITTEN),
    Rate("the same, Spark", "links", SPARK_SECONDS, GRAPH_WRITTEN, uses_spark=True),
    Rate("weights by MiniLM, float32", "tokens", 1 / MINILM_TOKENS, 6),
    Rate("weights by MiniLM, bfloat16", "tokens", 1 / MINILM_TOKENS_IN_BF16, 6),
    Rate("weights by BERT-base, float32", "tokens", BERT_BASE / MINILM_TOKENS, 6),
    Rate("vectors of pages by MiniLM, bfloat16", "pages", 1 / 38.1, 4 * 384),
)


def exchanged(links: float) -> float:
    """Bytes that Spark's tasks exchange: 654 a link at 1 M links, and 110 more at 3 M.

    Less is summed up before it is sent where more links lie between two of the same text.
    """
    return links * (654 + 110 * max(0, log(links / 1e6, 3)))


def main() -> None:
    """Print a row for each step."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pages", type=float, default=0)
    parser.add_argument("--wikitext", type=float, default=0, help="megabytes, uncompressed")
    parser.add_argument("--html", type=float, default=0, help="megabytes, uncompressed")
    parser.add_argument("--links", type=float, default=0)
    parser.add_argument("--tokens", type=float, default=0, help="of leads and linked sentences")
    parser.add_argument("--cores", type=int, default=64, help="that share a step")
    options = parser.parse_args()
    print(f"| step | hours of a core | of {options.cores} cores | GB written | GB exchanged |")
    print("|---|---|---|---|---|")
    for rate in RATES:
        size = getattr(options, rate.size)
        if not size:
            continue
        hours = size * rate.seconds / 3600
        sent = f"{exchanged(size) / 1e9:,.0f}" if rate.uses_spark else "–"
        shared = "–" if "DuckDB" in rate.step else f"{hours / options.cores:,.2f}"
        written = f"{size * rate.written / 1e9:,.1f}"
        print(f"| {rate.step} | {hours:,.1f} | {shared} | {written} | {sent} |")


if __name__ == "__main__":
    main()
