"""`harp adapt`: from a hyperlinked corpus to a search pipeline, and to a table of what it gains."""

import shlex

from ...corpus.options import CorpusOptions
from ...errors import show
from ...models.loading import PIPELINE
from ...options_parser import SOURCES, Command
from ...work.artifact import MANIFEST
from ...work.records import read_record
from .options import AdaptOptions
from .ranking import BY_RANKS, FIRST_STAGE, FUSED, LEARNED, RERANKED
from .run import adapt

__all__ = ["LEARNED", "RERANKED", "AdaptOptions", "adapt"]

_PIPELINES = {
    RERANKED: "the sum of a cross-encoder and what ranked before",
    LEARNED: "the learned ranking of what BM25 over fields and the cosine find",
    FIRST_STAGE: "BM25 over fields alone: no gain of the others was sure",
    FUSED: "the sum of BM25 over fields and the cosine",
    BY_RANKS: "BM25 over fields and the cosine, fused by ranks",
}


@Command(
    "SOURCE [SOURCE ...] --output-dir DIR",
    AdaptOptions,
    CorpusOptions,
    positional=SOURCES,
    trains=True,
)
def command(options: AdaptOptions, corpus: CorpusOptions, sources: list[str]) -> None:
    """Queries that people wrote into the corpus teach a ranker, and links train a cross-encoder.

    The queries are terms of an index, redirects, and links that are held out: some are learned
    from, others choose the weights of the fusion with BM25, and others test it. A cross-encoder is
    trained where the budget has time for it. A finished step is kept, and an interrupted one is
    resumed. Where all is finished, changed pages are read again, and models stay.
    """
    results = adapt(sources, options, corpus)
    row = read_record(options.folder / MANIFEST)["row"]
    table = f"{results}\n\n" if results is not None else ""
    report = f"report: {options.folder / 'evaluation' / 'report.html'}\n" * (row != BY_RANKS)
    name = shlex.quote(options.output_dir)
    show(
        f"{table}pipeline: {_PIPELINES[row]},\n"
        f"    in {options.folder / PIPELINE}\n"
        f"{report}"
        f'search: harp search {name} "a query"\n'
        f"as a page: harp serve {name}"
    )
