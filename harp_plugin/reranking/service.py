"""Rerank a TREC run, a few queries at a time."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm.auto import tqdm

from .. import __version__
from ..errors import HarpError
from ..models import model_fingerprint
from ..ranking import HarpReranker
from ..ranking.texts import DatasetTexts
from .growing_run import GrowingRun, Sink, StandardOutput
from .options import RerankOptions
from .queries import STDIN, Results, count_lines, results_by_query

logger = logging.getLogger(__name__)

PAIRS_AT_ONCE = 1024
NO_MATTER = {"output", "cache", "quiet", "batch_tokens", "device"}
"""Options that change no line of a run."""


def rerank(run: str, options: RerankOptions) -> Path | None:
    """Rerank a run by a model and write the new one.

    Few queries are in memory at once. Whole queries are appended to ``OUTPUT.part``; after a kill,
    a later start with the same run, model and options goes on from there. A run that is there
    already, made from the same, is not made again.

    Args:
        run: a TREC run of any engine, plain or ``.gz``, its lines of a query together; or ``-``
            for standard input.
        options: what to rerank it by and where to write.

    Returns:
        The new run; None for standard output.

    Raises:
        HarpError: the run, the dataset or the model cannot be read, the run has a query or a
            document that the dataset lacks, or the output cannot be written.
    """
    output = _output(run, options.output)
    lines = count_lines(run)
    settings = _settings(run, options)
    if output is not None and GrowingRun.is_finished(output, settings):
        logger.info("%s is there, made from the same run, model and options", output)
        return output
    reranker = _reranker(options)
    queries = DatasetTexts(options.dataset, None).queries()
    collection = f"dataset {options.dataset}"
    results = _Counted(results_by_query(run, options.depth, queries, collection))
    sink: Sink = StandardOutput() if output is None else GrowingRun(output, settings)
    with tqdm(total=lines, desc="rerank", unit="line", disable=options.quiet) as bar:
        for some in _few_queries(sink.remaining(results)):
            sink.write(_lines(reranker.transform(_frame(some, queries)), options.tag))
            bar.update(results.lines - bar.n)
    sink.finish()
    return output


def _reranker(options: RerankOptions) -> HarpReranker:
    return HarpReranker(
        options.model,
        dataset=options.dataset,
        text_field=options.fields,
        passages=options.passages,
        passage_length=options.passage_length,
        passage_stride=options.passage_stride,
        max_length=options.max_length,
        batch_tokens=options.batch_tokens,
        device=options.device[0] if options.device and len(options.device) == 1 else options.device,
        dtype=options.dtype,
        cache=options.cache,
    )


def _output(run: str, named: str | None) -> Path | None:
    if named == "-":
        return None
    if named is not None:
        return Path(named).expanduser()
    if run == STDIN:
        raise HarpError("a run from standard input has no name: add --output")
    path = Path(run)
    stem = re.sub(r"(\.(run|trec|res|txt))?(\.gz)?$", "", path.name)
    return path.with_name(f"{stem}.reranked.run.gz")


def _settings(run: str, options: RerankOptions) -> dict[str, Any]:
    given = {name: value for name, value in asdict(options).items() if name not in NO_MATTER}
    return {
        "run": None if run == STDIN else _sha256(Path(run)),
        **given,
        "dataset": options.dataset.removeprefix("irds:"),
        "model": model_fingerprint(options.model),
        "harp_plugin": __version__,
    }


class _Counted:
    """Passes queries on and counts the lines of the run that they stand for."""

    def __init__(self, results: Iterator[Results]) -> None:
        self._results = results
        self.lines = 0

    def __iter__(self) -> Iterator[Results]:
        for query in self._results:
            self.lines += query.lines
            yield query


def _few_queries(queries: Iterable[Results]) -> Iterator[list[Results]]:
    few: list[Results] = []
    for query in queries:
        few.append(query)
        if sum(len(query.docnos) for query in few) >= PAIRS_AT_ONCE:
            yield few
            few = []
    if few:
        yield few


def _frame(results: list[Results], queries: dict[str, str]) -> pd.DataFrame:
    rows = [
        (query.qid, queries[query.qid], docno, rank)
        for query in results
        for rank, docno in enumerate(query.docnos)
    ]
    return pd.DataFrame(rows, columns=["qid", "query", "docno", "rank"])


def _lines(reranked: pd.DataFrame, tag: str) -> str:
    place = reranked.groupby("qid", sort=False).ngroup().rename("place")
    ordered = reranked.assign(place=place).sort_values(["place", "rank"])
    columns = (ordered[name].tolist() for name in ("qid", "docno", "rank", "score"))
    return "".join(
        f"{qid} Q0 {docno} {rank} {score!r} {tag}\n"
        for qid, docno, rank, score in zip(*columns, strict=True)
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
