"""Rerank a TREC run, a few queries at a time; a later start resumes after a kill."""

from __future__ import annotations

import gzip
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
from tqdm.auto import tqdm

from ..collections.dataset import Dataset
from ..collections.run import QueryResults, is_stream, results_by_query, run_lines
from ..errors import HarpError
from ..models.loading import choose_device, model_fingerprint
from ..options import option_types
from ..ranking import HarpReranker
from ..ranking.options import ModelOptions
from ..work.artifact import Artifact, OverwriteRules, Provenance
from ..work.lock import one_writer
from ..work.provenance import scoring_versions
from ..work.records import file_hash, json_hash
from ..work.writing import refuse_input, remove_temporary_of, temporary_path
from .options import RerankOptions
from .runs import frame_text, ranked

__all__ = ["PAIRS_AT_ONCE", "rerank"]

logger = logging.getLogger(__name__)

PAIRS_AT_ONCE = 1024
"""Queries are scored together until they have so many results."""
_STDIN = "-"
_WITHOUT_EFFECT = {"output", "overwrite", "accept_other_versions", "quiet"}
"""Options that change no line of a run. Others do, if only the last bit of a score: a device and a
budget decide which pairs are scored together."""

_Write = Callable[[str], None]


def rerank(run: str, options: RerankOptions) -> Path | None:
    """Rerank a run by a model and write the new one.

    Few queries are in memory at once. Whole queries are appended to ``OUTPUT.part``; after a kill,
    a later start with the same run, model and options resumes after them. A finished run of the
    same run, model and options is not made again. A file that was made from others, or that harp
    did not write, is not replaced.

    Args:
        run: a TREC run of any engine, plain or packed by gzip, in which the lines of a query follow
            each other; or ``-`` for standard input.
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
        _rerank(source, _count(source, options), options, partial(print, end="", flush=True))
        return None
    with one_writer(output.parent, output.name):
        remove_temporary_of(output)
        with _as_file(run, output) as source:
            try:
                _write_file(source, output, options)
            except OSError as error:
                raise HarpError(
                    f"cannot write run {output}: {error}: remove the cause and run again"
                ) from error
    return output


def _write_file(run: str, output: Path, options: RerankOptions) -> None:
    """Append whole queries to the part, and copy it to its final name."""
    rules = OverwriteRules(options.overwrite, options.accept_other_versions, output="--output")
    count = _count(run, options)
    made_from = Provenance(_settings(run, options), scoring_versions())
    finished = Artifact(output, "run", made_from, rules, is_file=True)
    path = output.with_name(f"{output.name}.part")
    part = Artifact(path, "part of a run", made_from, rules, is_file=True)
    for file in (finished, part):
        for written in (file.path, file.record_path):
            refuse_input(written, {"the run to be reranked": run}, rules.output)
    if finished.is_finished():
        logger.info("%s was made from the same run, model and options already", output)
    else:
        part.start()
        finished.provenance = Provenance.from_record(part.read() or {})
        with path.open("ab+") as opened:
            _rerank(run, count, options, lambda lines: _append(opened, lines), opened)
            opened.seek(0)
            with finished.writing() as temporary, temporary.open("wb") as target:
                if output.suffix == ".gz":
                    with gzip.GzipFile("", "wb", fileobj=target, mtime=0) as packed:
                        shutil.copyfileobj(opened, packed)
                else:
                    shutil.copyfileobj(opened, target)
    part.clear()


def _count(run: str, options: RerankOptions) -> int | None:
    """Read a run to its end before it is scored, and count its results; None for a stream."""
    if is_stream(run):
        return None
    return sum(query.lines for query in _results(run, Dataset(options.dataset).queries(), options))


def _results(run: str, texts: dict[str, str], options: RerankOptions) -> Iterator[QueryResults]:
    lines = run_lines(run, texts, f"dataset {options.dataset}")
    return results_by_query(lines, f"run {run}", options.depth)


def _rerank(
    run: str,
    count: int | None,
    options: RerankOptions,
    write: _Write,
    written: BinaryIO | None = None,
) -> None:
    """Rerank the queries that are not written yet.

    Args:
        run: path of the run.
        count: the number of its results; None if it is not known.
        options: the model and the dataset.
        write: writes all lines of a few queries.
        written: the lines of the queries that an earlier start has reranked.
    """
    texts = Dataset(options.dataset).queries()
    queries = _results(run, texts, options)
    with tqdm(total=count, desc="rerank", unit="line", disable=options.quiet) as bar:
        if written is not None:
            queries = _unwritten(queries, written, bar)
        reranker = _reranker(options)
        for few in _few_queries(queries):
            reranked = ranked(reranker.transform(_frame(few, texts)))
            write(frame_text(reranked, options.tag))
            bar.update(sum(query.lines for query in few))


def _unwritten(
    queries: Iterator[QueryResults], written: BinaryIO, bar: tqdm
) -> Iterator[QueryResults]:
    """Give the queries that are not written yet, and cut off an unfinished query at the end."""
    whole = 0
    written.seek(0)
    for query in queries:
        lines = list(islice(written, len(query.documents)))
        if not _is_whole(lines, query):
            queries = chain([query], queries)
            break
        whole += sum(map(len, lines))
        bar.update(query.lines)
    written.truncate(whole)
    return queries


def _is_whole(lines: list[bytes], query: QueryResults) -> bool:
    if not lines or not lines[-1].endswith(b"\n"):
        return False
    written = [line.decode(errors="replace").split()[:3:2] for line in lines]
    return sorted(written) == sorted([query.query, document] for document in query.documents)


def _append(file: BinaryIO, lines: str) -> None:
    file.write(lines.encode())
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _as_file(run: str, output: Path) -> Iterator[str]:
    """Give a run that can be read several times; the copy of a stream is removed at the end."""
    if run != _STDIN and not is_stream(run):
        yield run
        return
    copy = temporary_path(output.with_name(f"{output.name}.input"))
    try:
        with (
            nullcontext(sys.stdin.buffer) if run == _STDIN else Path(run).open("rb") as source,
            copy.open("wb") as file,
        ):
            shutil.copyfileobj(source, file)
        yield str(copy)
    except OSError as error:
        raise HarpError(f"cannot read run {run}: {error}") from error
    finally:
        copy.unlink(missing_ok=True)


def _reranker(options: RerankOptions) -> HarpReranker:
    devices = options.device or []
    of_scores = option_types(ModelOptions).keys() - {"model"}
    return HarpReranker(
        options.model,
        dataset=options.dataset,
        text_field=options.fields,
        device=devices[0] if len(devices) == 1 else options.device,
        batch_tokens=options.batch_tokens,
        **{name: getattr(options, name) for name in of_scores if hasattr(options, name)},
    )


def _output(run: str, named: str | None) -> Path | None:
    if named == "-":
        return None
    if named is not None:
        return Path(named).expanduser()
    if run == _STDIN or is_stream(run):
        raise HarpError("a run from standard input or another process has no name: add --output")
    path = Path(run)
    stem = re.sub(r"(\.(run|trec|res|txt))?(\.gz)?$", "", path.name)
    return path.with_name(f"{stem}.reranked.run.gz")


def _settings(run: str, options: RerankOptions) -> dict[str, Any]:
    dataset = Dataset(options.dataset, options.fields)
    content = dataset.documents_hash  # None: a collection of ir_datasets does not change
    texts = {"documents": content, "queries": json_hash(dataset.queries())} if content else {}
    return {
        "run": file_hash(Path(run)),
        **texts,
        **{name: value for name, value in asdict(options).items() if name not in _WITHOUT_EFFECT},
        "device": options.device or [str(choose_device(None))],
        "dataset": options.dataset.removeprefix("irds:"),
        "model": model_fingerprint(options.model),
    }


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
