"""`harp adapt`: from a hyperlinked corpus to a search pipeline, and to a table of what it gains."""

import shlex

from ...corpus.options import CorpusOptions
from ...errors import show
from ...models.loading import PIPELINE
from ...options_parser import SOURCES, Command
from .options import SIGNALS, AdaptOptions
from .ranking import FUSED, LEARNED, RERANKED
from .run import adapt

__all__ = ["LEARNED", "RERANKED", "SIGNALS", "AdaptOptions", "adapt"]

_PIPELINES = {
    RERANKED: "the sum of BM25, the learned ranking and a cross-encoder",
    LEARNED: "the learned ranking of what BM25 over fields and the cosine find",
    FUSED: "the sum of BM25 over fields and the cosine",
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
    resumed.
    """
    results = adapt(sources, options, corpus)
    table, pipeline, report = "", "BM25 over fields and the cosine, fused by ranks", ""
    if results is not None:
        table = f"{results}\n\n"
        pipeline = next(text for row, text in _PIPELINES.items() if row in results.means)
        report = f"report: {options.folder / 'evaluation' / 'report.html'}\n"
    name = shlex.quote(options.output_dir)
    show(
        f"{table}pipeline: {pipeline},\n"
        f"    in {options.folder / PIPELINE}\n"
        f"{report}"
        f'search: harp search {name} "a query"\n'
        f"as a page: harp serve {name}"
    )
