"""Functional anchor texts, which say what to do with a link and nothing about its page.

An example is "click here". Anchor-DR (Xie et al., 2023, section 3.2) leaves out anchors by keywords
that its authors chose from the 500 most frequent anchors. The table ``functional_anchors`` of
``languages.toml`` has similar lists, in the languages of the largest Wikipedias.
"""

from ..corpus.word_lists import all_words

__all__ = ["FUNCTIONAL_ANCHORS"]

FUNCTIONAL_ANCHORS = frozenset(all_words("functional_anchors"))
"""Functional anchor texts, normalized by `harp_plugin.text.normalize_anchor`."""
