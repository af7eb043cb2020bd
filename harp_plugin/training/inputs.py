"""The files and folders that a training run reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import HarpError
from ..files.hashes import file_hash
from ..models.loading import model_fingerprint, resolve_model

_MODELS = ("model", "tokenizer_name")
_FOLDERS = ("build_dir", "validation_build_dir")
_FILES = ("negatives_run", "teacher_run", "train_file", "query_ids", "stop_words")
_FILES_OF_VALIDATION = ("validation_run", "validation_query_ids")


def check_output_dir(output_dir: str, *options: Any) -> None:
    """Find that a run does not write where it reads.

    Args:
        output_dir: where it writes.
        options: dataclasses of its options.

    Raises:
        HarpError: an input is ``output_dir``, lies in it, or is a folder that holds it.
    """
    output = Path(output_dir).resolve()
    for name, path in _inputs(options):
        source = Path(path).expanduser().resolve()
        if not source.exists():
            continue
        if output == source or output in source.parents or source in output.parents:
            raise HarpError(
                f"output_dir {output_dir} and {name} {path} overlap: choose an output_dir apart "
                "from what is read"
            )


def fingerprints(*options: Any) -> dict[str, str]:
    """What changes with the content of the start model, and of each named file but of the data.

    The data's own fingerprint is theirs to give.

    Raises:
        HarpError: a model or a file is missing.
    """
    found = {}
    for name, value in _given(options, (*_MODELS, *_FILES_OF_VALIDATION, "query_ids")):
        try:
            found[name] = model_fingerprint(value) if name in _MODELS else file_hash(Path(value))
        except OSError as error:
            raise HarpError(f"cannot read {name} {value}: {error.strerror}") from error
    return found


def _inputs(options: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    """Names and paths of what is read and lies on this machine."""
    yield from _given(options, (*_FOLDERS, *_FILES, *_FILES_OF_VALIDATION))
    for name, value in _given(options, _MODELS):
        yield name, resolve_model(value)


def _given(options: tuple[Any, ...], names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for each in options:
        for name in names:
            value = getattr(each, name, None) or []
            for one in [value] if isinstance(value, str) else value:
                yield name, one
