"""Rerank a TREC run, a few queries at a time."""

from __future__ import annotations

import logging
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from tqdm.auto import tqdm

from ...collections.dataset import Dataset
from ...collections.run import QueryResults, count_lines, is_stream, results_by_query, run_lines
from ...errors import HarpError
from ...models.loading import choose_device, model_fingerprint
from ...ranking import HarpReranker
from ...work.hashes import file_hash
from ...work.lock import one_writer
from ...work.output_paths import refuse_input
from ...work.provenance import OverwriteRules
from ...work.versions import scoring_versions
from ...work.writing import remove_temporary_of, temporary_path
from ..runs import frame_text, ranked
from .growing_run import GrowingRun, Sink, StandardOutput
from .options import RerankOptions

__all__ = ["PAIRS_AT_ONCE", "rerank"]

logger = logging.getLogger(__name__)

PAIRS_AT_ONCE = 1024
"""Queries are scored together until they have so many results."""
_STDIN = "-"
_OPTIONS_WITHOUT_EFFECT = {"output", "overwrite", "keep", "quiet"}
"""Options that change no line of a run. Others do, if only the last bit of a score: a
device and a budget decide which pairs are scored together."""


def rerank(run: str, options: RerankOptions) -> Path | None:
    """Rerank a run by a model and write the new one.

    Few queries are in memory at once. Whole queries are appended to ``OUTPUT.part``; after a kill,
    a later start with the same run, model and options goes on after them. A finished run of the
    same run, model and options is not made again. A file that was made from others, or that harp
    did not write, is not replaced.

    Args:
        run: a TREC run of any engine, plain or ``.gz``, its lines of a query together; or ``-``
            for standard input.
        options: the model, the dataset, and where to write.

    Returns:
        The new run; None for standard output.

    Raises:
        HarpError: the run, the dataset or the model cannot be read, the run has a query or a
            document that the dataset lacks, or the output cannot be written or may not be replaced.
    """
    output = _output(run, options.output)
    if output is None:
        source = "/dev/stdin" if run == _STDIN else run
        _write(_queries(source, options), options, StandardOutput(), count_lines(source))
        return None
    with one_writer(output.parent, output.name):
        remove_temporary_of(output)
        with _as_file(run, output) as source:
            _write_file(source, output, options)
    return output


def _write_file(run: str, output: Path, options: RerankOptions) -> None:
    rules = OverwriteRules(options.overwrite, options.keep, output="--output")
    lines = count_lines(run)
    growing = GrowingRun(output, _settings(run, options), scoring_versions(), rules)
    for file in growing.files:
        refuse_input(file, {"the run to be reranked": run}, rules.output)
    if growing.is_finished():
        logger.info("%s was made from the same run, model and options already", output)
        return
    with growing.open():
        _write(_queries(run, options), options, growing, lines)


class _Queries(NamedTuple):
    """The queries' texts, and the results to be reranked."""

    texts: dict[str, str]
    results: _CountedResults


def _queries(run: str, options: RerankOptions) -> _Queries:
    texts = Dataset(options.dataset).queries()
    lines = run_lines(run, texts, f"dataset {options.dataset}")
    return _Queries(texts, _CountedResults(results_by_query(lines, f"run {run}", options.depth)))


def _write(queries: _Queries, options: RerankOptions, sink: Sink, lines: int | None) -> None:
    reranker = _reranker(options)
    with tqdm(total=lines, desc="rerank", unit="line", disable=options.quiet) as bar:
        for part in _few_queries(sink.remaining(queries.results)):
            reranked = ranked(reranker.transform(_frame(part, queries.texts)))
            sink.write(frame_text(reranked, options.tag))
            bar.update(queries.results.lines - bar.n)
    sink.finish()


@contextmanager
def _as_file(run: str, output: Path) -> Iterator[str]:
    """Give a run that can be read several times; the copy of a stream is removed at the end."""
    if run != _STDIN and not is_stream(run):
        yield run
        return
    copy = temporary_path(output.with_name(f"{output.name}.input"))
    try:
        _copy(run, copy)
        yield str(copy)
    finally:
        copy.unlink(missing_ok=True)


def _copy(run: str, path: Path) -> None:
    try:
        with (
            nullcontext(sys.stdin.buffer) if run == _STDIN else Path(run).open("rb") as source,
            path.open("wb") as file,
        ):
            shutil.copyfileobj(source, file)
    except OSError as error:
        raise HarpError(f"cannot read run {run}: {error}") from error


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
    )


def _output(run: str, named: str | None) -> Path | None:
    if named == "-":
        return None
    if named is not None:
        return Path(named).expanduser()
    if run == _STDIN:
        raise HarpError("a run from standard input has no name: add --output")
    path = Path(run)
    stem = re.sub(r"(\.(run|trec|res|txt))?(\.gz)?$", "", path.name)
    return path.with_name(f"{stem}.reranked.run.gz")


def _settings(run: str, options: RerankOptions) -> dict[str, Any]:
    return {
        "run": file_hash(Path(run)),
        **{n: value for n, value in asdict(options).items() if n not in _OPTIONS_WITHOUT_EFFECT},
        "device": options.device or [str(choose_device(None))],
        "dataset": options.dataset.removeprefix("irds:"),
        "model": model_fingerprint(options.model),
    }


class _CountedResults:
    """Gives the results of queries, and counts the lines of the run that were read for them."""

    def __init__(self, results: Iterator[QueryResults]) -> None:
        self._results = results
        self.lines = 0

    def __iter__(self) -> Iterator[QueryResults]:
        for query in self._results:
            self.lines += query.lines
            yield query


def _few_queries(queries: Iterable[QueryResults]) -> Iterator[list[QueryResults]]:
    few: list[QueryResults] = []
    for query in queries:
        few.append(query)
        if sum(len(query.documents) for query in few) >= PAIRS_AT_ONCE:
            yield few
            few = []
    if few:
        yield few


def _frame(results: list[QueryResults], texts: dict[str, str]) -> pd.DataFrame:
    rows = [
        (query, texts[query], document, rank)
        for query, documents, _ in results
        for rank, document in enumerate(documents)
    ]
    return pd.DataFrame(rows, columns=["qid", "query", "docno", "rank"])
