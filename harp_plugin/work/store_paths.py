"""Which local path is the copy of what lies at a URL in an object store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = ["COPIES", "SCHEMES", "copies_folder", "is_url", "path_of", "with_urls"]

SCHEMES = ("abfs", "abfss", "az", "file", "gcs", "gs", "hdfs", "s3", "webhdfs")
"""How the URLs begin that are read and written; fsspec has a package for each."""
COPIES = "HARP_STORE_COPIES"
"""The variable of the environment that names another folder for the copies."""


def copies_folder() -> Path:
    """Where the copies are: ``$HARP_STORE_COPIES``, or in the user's folder for caches."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    named = os.environ.get(COPIES) or f"{cache}/harp_plugin/stores"
    return Path(named).expanduser().absolute()


def is_url(name: object) -> bool:
    """Tell whether a name is the URL of a file or folder in an object store."""
    scheme, found, _ = str(name).partition("://")
    return bool(found) and scheme in SCHEMES


def path_of(url: str) -> Path:
    """Return the local path of the copy of what lies at a URL."""
    scheme, _, rest = url.partition("://")
    return copies_folder() / scheme / rest.strip("/")


def with_urls(value: Any) -> Any:
    """Return a text or a value of JSON with URLs in place of the paths of copies."""
    if isinstance(value, dict):
        return {name: with_urls(part) for name, part in value.items()}
    if isinstance(value, list):
        return [with_urls(part) for part in value]
    folder = str(copies_folder())
    if not isinstance(value, str) or folder not in value:
        return value
    for scheme in SCHEMES:
        slash = "/" if scheme == "file" else ""
        value = value.replace(f"{folder}/{scheme}/", f"{scheme}://{slash}")
    return value
