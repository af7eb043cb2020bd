"""Jupyter notebooks as Markdown."""

from __future__ import annotations

import json

__all__ = ["notebook_markdown"]


def notebook_markdown(text: str) -> str | None:
    """Return the Markdown cells of a notebook (nbformat 4), without its code.

    A raw cell at the start is kept if it holds front matter.

    Args:
        text: the content of an ``.ipynb`` file.

    Returns:
        The cells with a blank line between them; None if this is no such notebook.
    """
    try:
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    except (KeyError, RecursionError, TypeError, ValueError):
        return None
    kept = [source for kind, source in cells if kind == "markdown"]
    if cells and cells[0][0] == "raw" and cells[0][1].startswith(("---", "+++")):
        kept.insert(0, cells[0][1])
    return "\n\n".join(kept)
