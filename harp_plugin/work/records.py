"""Records: JSON files that hold their own checksum, which shows when they are damaged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import HarpError
from .store_paths import with_urls
from .writing import write_text

__all__ = ["CHECKSUM", "NOT_WRITTEN_BY_HARP", "read_own_record", "read_record", "write_record"]

CHECKSUM = "checksum"
"""Key of a record for the SHA-256 of all its other entries."""
NOT_WRITTEN_BY_HARP = "was not written by harp, which leaves it as it is"
"""What an error says of a file that another program or a person wrote."""


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a JSON object together with its checksum, whole or not at all.

    What has a URL in an object store stands in it by its URL, not by the path of its local copy.
    """
    content = with_urls(json.loads(json.dumps(record)))
    content[CHECKSUM] = _checksum(content)
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
    write_text(path, text + "\n")


def read_record(path: Path) -> dict[str, Any]:
    """Read what `write_record` wrote, without the checksum.

    Raises:
        HarpError: the file cannot be read, or it has changed since it was written.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    except (OSError, ValueError, RecursionError) as error:
        raise HarpError(f"{path} is damaged ({type(error).__name__})") from error
    if not isinstance(record, dict) or record.pop(CHECKSUM, None) != _checksum(record):
        raise HarpError(f"{path} is damaged: its checksum is wrong")
    return record


def read_own_record(
    path: Path, output: str, *, together_with: Path | None = None
) -> dict[str, Any]:
    """Read a record where another program's file may lie.

    Args:
        path: the record.
        output: the option that names another place, for errors.
        together_with: the file that the record describes, for errors.

    Raises:
        HarpError: the record is damaged, or harp did not write it.
    """
    try:
        return read_record(path)
    except HarpError as error:
        files = "it" if together_with is None else f"it with {together_with.name}"
        raise HarpError(
            f"{error}, or {NOT_WRITTEN_BY_HARP}: move {files} away, or name another {output}"
        ) from error


def _checksum(record: Any) -> str:
    text = json.dumps(record, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
