"""`harp adapt`: from a hyperlinked corpus to a search pipeline, and to a table of what it gains."""

from ...corpus.options import CorpusOptions
from ...errors import show
from ...options_parser import SOURCES, Command
from .options import SIGNALS, AdaptOptions
from .ranking import LEARNED, RERANKED
from .run import adapt

__all__ = ["LEARNED", "RERANKED", "SIGNALS", "AdaptOptions", "adapt"]


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
    show(f"{results}\n\nreport: {results.path.parent / 'report.html'}")
