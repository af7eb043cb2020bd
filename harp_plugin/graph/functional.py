"""Functional anchor texts, which say what to do with a link and nothing about its page.

An example is "click here". Anchor-DR (Xie et al., 2023, section 3.2) leaves out anchors by keywords
that its authors chose from the 500 most frequent anchors. The file ``functional-anchors.txt`` has
similar lists, in the languages of the largest Wikipedias.
"""

from importlib.resources import files

__all__ = ["FUNCTIONAL_ANCHORS"]

_LINES = (files("harp_plugin") / "data" / "functional-anchors.txt").read_text(encoding="utf-8")

FUNCTIONAL_ANCHORS = frozenset(line for line in _LINES.splitlines() if not line.startswith("#"))
"""Functional anchor texts, normalized by `harp_plugin.text.normalize_anchor`."""
