"""A judged collection by arithmetic, and who may be drawn in it, by brute force."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import ir_datasets
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import TrecQrels, TrecScoredDocs, TsvDocs, TsvQueries
from ir_datasets.util import LocalDownload

NUMBERS = itertools.count()
DOCUMENTS = {f"d{n}": f"Document number {n} on subject {n % 7}." for n in range(60)}
QUERIES = {f"q{n}": f"subject {n}" for n in range(12)}
QRELS = [
    (query, f"d{(11 * q + 7 * step) % 60}", (q + step) % 4 - 1)
    for q, query in enumerate(QUERIES)
    for step in range(8)
]
RUN = [
    (query, f"d{(17 * q + 7 * step) % 60}", float(30 - step // 2))
    for q, query in enumerate(QUERIES)
    for step in range(30)
]


def run_lines(run=RUN) -> str:
    return "".join(f"{query} Q0 {doc} 1 {score!r} bm25\n" for query, doc, score in run)


def write_run(path: Path, run=RUN) -> str:
    text = run_lines(run).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return str(path)


def register(folder: Path, documents=DOCUMENTS, queries=QUERIES, qrels=QRELS, run=None) -> str:
    """Make ir_datasets know a collection, with scoreddocs if a run is given; give its id."""
    name = f"judged-{next(NUMBERS)}"
    folder = folder / name
    folder.mkdir()
    contents = {
        "docs.tsv": "".join(f"{key}\t{text}\n" for key, text in documents.items()),
        "queries.tsv": "".join(f"{key}\t{text}\n" for key, text in queries.items()),
        "qrels.txt": "".join(f"{query} 0 {doc} {label}\n" for query, doc, label in qrels),
        "run.txt": run_lines(run or ()),
    }
    for file, content in contents.items():
        (folder / file).write_text(content)
    docs, queries_file, qrels_file, run_file = (LocalDownload(str(folder / f)) for f in contents)
    parts = [TsvDocs(docs), TsvQueries(queries_file), TrecQrels(qrels_file, {})]
    if run:
        parts.append(TrecScoredDocs(run_file))
    ir_datasets.registry.register(name, Dataset(*parts))
    return name


def allowed(query, *, qrels=QRELS, run=RUN, min_label=1, depth=100, skip_top=0, judged=False):
    """Ids that may be drawn as positives and as negatives."""
    labels = {doc: label for q, doc, label in qrels if q == query}
    positives = {doc for doc, label in labels.items() if label >= min_label}
    lines = [(q, doc, score) for q, doc, score in run if q == query]
    best = [doc for _, doc, _ in sorted(lines, key=lambda line: -line[2])][:depth]
    negatives, unjudged = set(), 0
    for doc in best:
        if doc not in labels:
            unjudged += 1
            if unjudged > skip_top:
                negatives.add(doc)
        elif doc not in positives:
            negatives.add(doc)
    if judged:
        negatives |= labels.keys() - positives
    return positives, negatives
