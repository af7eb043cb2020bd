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
    """Links train a cross-encoder.

    Queries that people wrote into the corpus (terms of an index, redirects, links that are held
    out) choose the weights of its fusion with BM25 and an encoder, and test it. A finished step is
    kept, and an interrupted one is resumed.
    """
    results = adapt(sources, options, corpus)
    show(f"{results}\n\nreport: {results.path.parent / 'report.html'}")
