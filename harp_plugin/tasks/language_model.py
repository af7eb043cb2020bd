"""The language model that PROP draws words from, by the options of drawing."""

from __future__ import annotations

from pathlib import Path

from ..errors import HarpError
from ..weights.language_model import LanguageModel
from ..weights.words_stage import open_words
from .options import DrawOptions
from .terms import stop_words

__all__ = ["open_language_model"]

_MOST_LEAST = 50.0
_SHARE = 1e-6


def open_language_model(
    directory: Path, options: DrawOptions, *, verify: bool = True
) -> LanguageModel:
    """Make the language model of all documents of a build.

    Args:
        directory: the folder of the build.
        options: of drawing: those named ``prop_…`` and the stop list. Where ``prop_min_count`` is
            ``auto``, a word needs 50 occurrences, or a millionth of all where that is less.
        verify: as in `harp_plugin.storage.open_table`.

    Raises:
        HarpError: the stage ``words`` is unfinished or damaged, or the vocabulary is empty.
    """
    collection = open_words(directory, verify=verify)
    least = options.number("prop_min_count")
    if least is None:
        least = min(_MOST_LEAST, _SHARE * collection.sums["occurrences"])
    model = LanguageModel(
        collection,
        mu=options.number("prop_mu"),
        background=options.prop_background or "occurrences",
        least=least,
        left_out=stop_words(options.stop_words or "none"),
        subsampling=options.prop_subsampling or 0.0,
        is_uniform=options.prop_words == "random",
    )
    if not model.words:
        raise HarpError(
            f"no word that is not a stop word occurs {least:g} times in the documents: lower "
            "--prop-min-count, or build from more pages"
        )
    return model
