"""HTML pages from templates: one file that needs no other file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

__all__ = ["render_page"]


def render_page(
    package: str, filters: Mapping[str, Callable[..., Any]] | None = None, **values: Any
) -> str:
    """Render a template: every text is escaped, and a value that is missing is an error.

    Args:
        package: the package in whose folder the template lies, ``page.html``.
        filters: by the names that they have in the template; ``source_hash``, by which a content
            security policy names an inline style, is added.
        values: by the names that they have in the template.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"source_hash": _source_hash, **(filters or {})}
    source = (files(package) / "page.html").read_text("utf-8")
    return environment.from_string(source).render(**values)


def _source_hash(source: str) -> str:
    digest = hashlib.sha256(source.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
