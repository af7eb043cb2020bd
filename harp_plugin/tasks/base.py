"""What a pre-training task is, and what it draws from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ..corpus.sentences import split_sentences
from ..corpus.tree import Tree, section_tree
from ..errors import HarpError
from ..storage import MappedTable, open_table, read_manifest
from ..text import words
from .groups import PairGroup
from .language_model import LanguageModel, open_language_model
from .options import DrawOptions
from .terms import Terms, draw_length, draw_words, merge_repeats, stop_words

if TYPE_CHECKING:
    import ibis.expr.types as ir


_ARTICLE_WORDS = 1024


class Task(Protocol):
    """A pre-training task: which examples there are, and how one is drawn.

    A class may also have ``needs``, the stages of a build beside the corpus and the link graph that
    a draw reads (``("weights",)`` where it does not say), and ``groups_per_example``, groups drawn
    from an example in one epoch (1 where it does not say).
    """

    @staticmethod
    def examples(graph: Mapping[str, ir.Table]) -> ir.Table:
        """The examples as ids and spans only: an Ibis expression with a distinct column ``id``.

        Args:
            graph: the tables ``anchors``, ``sentence_anchors``, ``documents``, ``anchor_texts``
                and ``see_also`` of the link graph, and ``pages``, ``sentences``, ``sections`` of
                the corpus.
        """

    def draw(
        self, example: int, rng: np.random.Generator, source: Source, options: DrawOptions
    ) -> PairGroup | None:
        """Draw one group from an example, or None where this one gives none (a tie, no words)."""


class Anchor(NamedTuple):
    """A resolved link: its place in its sentence, and the page it leads to."""

    id: int
    sentence: int
    start: int
    end: int
    page: int


class Source:
    """Texts, anchors and weights of a finished build, by id.

    Attributes:
        examples: the examples of each task, by task name.

    Raises:
        HarpError: the folder holds no finished build or one without a task, or a table is read
            whose stage was left out.
    """

    def __init__(self, directory: str | Path, tasks: list[str], *, verify: bool = True) -> None:
        self.directory = Path(directory)
        self._verify = verify
        self.check(self.directory, tasks)
        self.examples = {task: self._table("examples", task) for task in tasks}
        self._language_model: tuple[DrawOptions, LanguageModel] | None = None

    @staticmethod
    def check(directory: Path, tasks: list[str]) -> None:
        """Find that a build has examples of some tasks.

        Raises:
            HarpError: it was built without one of them, or is unfinished.
        """
        if not tasks:
            return
        built = read_manifest(directory / "examples")["options"].get("tasks", tasks)
        if missing := [task for task in tasks if task not in built]:
            raise HarpError(
                f"{directory} was built without {', '.join(missing)}: run `harp build` again "
                f"with --overwrite --tasks {' '.join([*built, *missing])}"
            )

    def _table(self, stage: str, name: str, *columns: str) -> MappedTable:
        return open_table(self.directory, stage, name, list(columns) or None, verify=self._verify)

    @cached_property
    def _pages(self) -> MappedTable:
        return self._table("corpus", "pages", "id", "title", "lead")

    @cached_property
    def _sections(self) -> MappedTable:
        return self._table("corpus", "pages", "id", "title", "sections", "language")

    @cached_property
    def _sentences(self) -> MappedTable:
        return self._table("corpus", "sentences", "id", "text")

    @cached_property
    def _anchors(self) -> MappedTable:
        return self._table("graph", "anchors")

    @cached_property
    def _sentence_anchors(self) -> MappedTable:
        return self._table("graph", "sentence_anchors")

    @cached_property
    def documents(self) -> np.ndarray:
        """Ids of all pages that may be a document, ascending, int64 of shape (documents,)."""
        return self._table("graph", "documents").ids

    @cached_property
    def _sentence_weights(self) -> MappedTable:
        return self._table("weights", "sentence_weights")

    @cached_property
    def _page_weights(self) -> MappedTable:
        return self._table("weights", "page_weights")

    @cached_property
    def _anchor_weights(self) -> MappedTable:
        return self._table("weights", "anchor_weights")

    @cached_property
    def heads(self) -> int:
        """Attention heads of the model that weighed the terms."""
        return read_manifest(self.directory / "weights")["heads"]

    def language_model(self, options: DrawOptions) -> LanguageModel:
        """The documents' language models, made once for the same options."""
        if self._language_model is None or self._language_model[0] is not options:
            model = open_language_model(self.directory, options, verify=self._verify)
            self._language_model = options, model
        return self._language_model[1]

    def tree(self, page: int) -> Tree:
        """A page's sections as a tree."""
        sections = self._sections.get(page, "sections")
        found = ((each["level"], each["title"], each["text"]) for each in sections)
        return section_tree(self._sections.get(page, "title"), found)

    def article(self, page: int) -> str:
        """A page's whole text; of a long one its beginning, of more words than a model reads."""
        found: list[str] = []
        length = 0
        for node in self.tree(page).nodes:
            if length >= _ARTICLE_WORDS:
                break
            found += [node.text] if node.text else []
            length += len(node.text.split())
        return "\n".join(found)

    def sentences_of(self, page: int, text: str) -> list[str]:
        """The sentences of a text of a page."""
        return split_sentences(text, self._sections.get(page, "language"))

    def document(self, page: int) -> str:
        """A page as a document: its lead."""
        return self._pages.get(page, "lead")

    def title(self, page: int) -> str:
        """A page's title."""
        return self._pages.get(page, "title")

    def sentence(self, id: int) -> str:
        """A sentence's text."""
        return self._sentences.get(id, "text")

    def anchor(self, id: int) -> Anchor:
        """A resolved link."""
        get = self._anchors.get
        return Anchor(id, get(id, "sentence"), get(id, "start"), get(id, "end"), get(id, "page"))

    def anchor_text(self, anchor: Anchor) -> str:
        """An anchor's text as written."""
        return self.sentence(anchor.sentence)[anchor.start : anchor.end]

    def anchors_of(self, sentence: int) -> list[Anchor]:
        """The resolved links of a sentence, in reading order."""
        return [self.anchor(id) for id in self._sentence_anchors.get(sentence, "anchors")]

    def sentence_spans(self, sentence: int) -> tuple[np.ndarray, np.ndarray]:
        """Character offsets of a sentence's words, shape (words, 2), and [CLS]'s weights."""
        return self._spans(self._sentence_weights, sentence)

    def page_spans(self, page: int) -> tuple[np.ndarray, np.ndarray]:
        """Character offsets of a lead's words, shape (words, 2), and [CLS]'s weights (eq. 5)."""
        return self._spans(self._page_weights, page)

    def anchor_weights(self, anchor: int) -> np.ndarray:
        """Weights of the words of an anchor's sentence, seen from the anchor (eq. 1)."""
        return self._anchor_weights.array(anchor, "weights").astype(np.float64)

    def has_weights(self, anchor: int) -> bool:
        """Whether the anchor lay within the model's limit."""
        return anchor in self._anchor_weights

    def sentence_terms(self, anchor: Anchor, options: DrawOptions) -> Terms:
        """Terms of the anchor's sentence, weighed by the anchor (eq. 1 and 2)."""
        spans, _ = self.sentence_spans(anchor.sentence)
        weights = self.anchor_weights(anchor.id)
        return _terms(self.sentence(anchor.sentence), spans, weights, options)

    def page_terms(self, page: int, options: DrawOptions) -> Terms:
        """Terms of a page's lead, weighed by [CLS] (eq. 5 and 13, then eq. 2)."""
        spans, weights = self.page_spans(page)
        return _terms(self.document(page), spans, weights, options)

    @staticmethod
    def _spans(table: MappedTable, id: int) -> tuple[np.ndarray, np.ndarray]:
        starts, ends = table.array(id, "starts"), table.array(id, "ends")
        weights = table.array(id, "weights").astype(np.float64)
        return np.stack([starts, ends], axis=1).astype(np.int64), weights


def _terms(text: str, spans: np.ndarray, weights: np.ndarray, options: DrawOptions) -> Terms:
    pieces = [text[start:end] for start, end in spans.tolist()]
    return merge_repeats(pieces, weights, stop_words(options.stop_words or "none"))


def sentences_of_several_pages(graph: Mapping[str, ir.Table]) -> ir.Table:
    """Examples of tasks that need a sentence with links to two pages or more."""
    sentences = graph["sentence_anchors"]
    return sentences.filter(sentences.targets >= 2).select("id")


def linked_pages(graph: Mapping[str, ir.Table]) -> ir.Table:
    """The distinct pages that each page links to, ascending.

    Columns: source, pages.
    """
    pairs = graph["anchors"].select("source", "page").distinct()
    groups = pairs.group_by("source").aggregate(pages=pairs["page"].collect())
    return groups.select("source", pages=groups["pages"].sort())


def anchored_query(anchor: str, sampled: list[str], options: DrawOptions) -> str:
    """S1: the anchor text and the sampled words."""
    parts = [anchor, *sampled] if options.anchor_position == "first" else [*sampled, anchor]
    return " ".join(parts)


def context_query(
    anchor: Anchor, rng: np.random.Generator, source: Source, options: DrawOptions
) -> str | None:
    """S1 of RQP and QDM: the anchor and l words of its sentence, drawn by eq. 1 to 4."""
    if not source.has_weights(anchor.id):
        return None
    terms = source.sentence_terms(anchor, options)
    size = draw_length(rng, options)
    sampled = draw_words(rng, terms, size, options, source.heads)
    return anchored_query(source.anchor_text(anchor), sampled, options) if sampled else None


def query_size(query: str) -> int:
    """Number of words in a query."""
    return len(words(query))
