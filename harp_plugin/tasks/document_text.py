"""What a page's text as a document may be made of: a further text is one entry here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..corpus.tree import Tree
from ..query_passage import query_passage

__all__ = ["DOCUMENT_FIELDS", "OVERLAPPING", "PageTexts"]

_ARTICLE_WORDS = 1024


class PageTexts(Protocol):
    """The texts of pages, such as those of a finished build."""

    def title(self, page: int) -> str:
        """Look up a page's title."""

    def lead(self, page: int) -> str:
        """Look up the text of a page's first section."""

    def tree(self, page: int) -> Tree:
        """Make the tree of a page's sections."""


def _article(texts: PageTexts, page: int) -> str:
    """Join a page's sections; of a long page its beginning, which is more than a model reads."""
    sections: list[str] = []
    length = 0
    for node in texts.tree(page).nodes:
        if length >= _ARTICLE_WORDS:
            break
        if node.boilerplate:
            continue
        sections += [node.text] if node.text else []
        length += len(node.text.split())
    return "\n".join(sections)


DOCUMENT_FIELDS: dict[str, Callable[[PageTexts, int, str], str]] = {
    "title": lambda texts, page, query: texts.title(page),
    "lead": lambda texts, page, query: texts.lead(page),
    "text": lambda texts, page, query: _article(texts, page),
    "passage": lambda texts, page, query: query_passage(query, texts.tree(page).text),
}
"""What makes each part of a document's text, by the name in the option ``document_fields``."""
OVERLAPPING = (frozenset({"lead", "text", "passage"}), frozenset({"title", "passage"}))
"""Fields that hold the same words: a document has one of each set at most."""
