"""What the tasks draw from: the texts, anchors and weights of a finished build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..corpus.sentences import split_sentences
from ..corpus.tree import Tree, tree_of_rows
from ..errors import HarpError
from ..text import normalize_anchor, query_passage
from ..weights.collection import COUNTED_TEXTS, open_words
from ..weights.language_model import LanguageModel
from ..work.artifact import MANIFEST
from ..work.manifest import read_manifest
from ..work.mapped import MappedTable, lazy_table, open_table
from .options import DrawOptions
from .terms import Terms, WeighedText, merge_repeats, stop_words

__all__ = ["AmbiguousText", "Anchor", "BuildSource", "PageLinks"]

_MOST_OCCURRENCES = 50.0
_FRACTION = 1e-6
_ARTICLE_WORDS = 1024


class Anchor(NamedTuple):
    """A resolved link.

    Attributes:
        id: id of the anchor.
        sentence: id of the sentence that it stands in.
        start: offset of its first character in the sentence.
        end: offset after its last character in the sentence.
        page: id of the page that it leads to.
        source: id of the page that it stands on.
        text_id: id of its normalized text, which anchors of equal texts share.
    """

    id: int
    sentence: int
    start: int
    end: int
    page: int
    source: int
    text_id: int


class PageLinks(NamedTuple):
    """The links of a page, as ids in ascending order, each an int64 array.

    Attributes:
        anchors: the resolved links that stand on the page.
        targets: the distinct pages that these lead to.
        linked: the distinct pages of all links on the page that resolve, those that a filter drops
            included.
        sources: distinct pages that link to the page; of very many, some of them.
    """

    anchors: np.ndarray
    targets: np.ndarray
    linked: np.ndarray
    sources: np.ndarray


class AmbiguousText(NamedTuple):
    """An anchor text that leads to two pages or more, as int64 arrays.

    Attributes:
        pages: the distinct pages, ascending; of very many, some of them.
        counts: how many anchors of this text lead to each page.
        anchors: anchors of this text, sorted by their page; of very many of one page, some of them.
        anchor_pages: the page of each of these anchors.
    """

    pages: np.ndarray
    counts: np.ndarray
    anchors: np.ndarray
    anchor_pages: np.ndarray


class BuildSource:
    """Texts, anchors and weights of a finished build, by id.

    Args:
        directory: a folder written by ``harp build``.
        tasks: names of the tasks whose examples are read.

    Attributes:
        directory: the folder of the build.
        examples: the examples of each task, by task name.

    Raises:
        HarpError: the folder holds no finished build or one without a task, or a table is read
            whose stage was left out, or whose rows do not fit the texts.
    """

    def __init__(self, directory: str | Path, tasks: list[str]) -> None:
        self.directory = Path(directory)
        self.check(self.directory, tasks)
        self.examples = {task: open_table(self.directory, "examples", task) for task in tasks}
        self._hard_negatives: dict[tuple[str, str], MappedTable] = {}
        self._language_model: tuple[DrawOptions, LanguageModel] | None = None

    @staticmethod
    def check(directory: Path, tasks: list[str]) -> None:
        """Check that a build has the examples of these tasks.

        Raises:
            HarpError: it was built without one of them, or is unfinished.
        """
        if not tasks:
            return
        built = read_manifest(directory / "examples")["settings"].get("tasks", tasks)
        if missing := [task for task in tasks if task not in built]:
            raise HarpError(
                f"{directory} was built without {', '.join(missing)}: take --tasks "
                f"{' '.join(built)}, or run `harp build` again with --overwrite --tasks "
                f"{' '.join([*built, *missing])}"
            )

    _pages = lazy_table("corpus", "pages", "id", "title", "lead", "lead_bands")
    _sections = lazy_table("corpus", "pages", "id", "title", "sections", "language")
    _sentences = lazy_table("corpus", "sentences", "id", "text")
    _anchors = lazy_table("graph", "anchors")
    _sentence_anchors = lazy_table("graph", "sentence_anchors")
    _page_links = lazy_table("graph", "page_links")
    _anchor_texts = lazy_table("graph", "anchor_texts", "id", "targets")
    _ambiguous_texts = lazy_table("graph", "ambiguous_texts")
    _documents = lazy_table("graph", "documents")
    _sentence_weights = lazy_table("weights", "sentence_weights")
    _page_weights = lazy_table("weights", "page_weights")
    _anchor_weights = lazy_table("weights", "anchor_weights")

    @property
    def documents(self) -> np.ndarray:
        """Ids of all pages that may be a document, ascending, int64 of shape (documents,)."""
        return self._documents.ids

    @cached_property
    def in_links(self) -> np.ndarray:
        """Number of resolved links to each of the `documents`, int64 of shape (documents,)."""
        [in_links] = self._documents.columns(self.documents, "in_links")
        return in_links.to_numpy(zero_copy_only=False)

    def in_links_to(self, page: int) -> int:
        """Look up the number of resolved links to a page.

        Raises:
            KeyError: the page may not be a document.
        """
        return self._documents.get(page, "in_links")

    @cached_property
    def in_link_ends(self) -> np.ndarray:
        """Running sums of `in_links`, int64 of shape (documents,)."""
        return np.cumsum(self.in_links)

    @cached_property
    def heads(self) -> int:
        """Number of attention heads of the model that weighed the terms."""
        return read_manifest(self.directory / "weights")["heads"]

    def language_model(self, options: DrawOptions) -> LanguageModel:
        """Make the language model of all documents, which is kept for the same options.

        Raises:
            HarpError: the stage ``words`` is unfinished or damaged, the vocabulary is empty, or
                documents are made of passages, which no one can count before there is a query.
        """
        if self._language_model is None or self._language_model[0] is not options:
            model = _language_model(self.directory, options)
            self._language_model = options, model
        return self._language_model[1]

    def counted_text(self, page: int, options: DrawOptions) -> str:
        """Join the texts of a page that `language_model` counts: its fields as a document."""
        tree = self.tree(page)
        return " ".join(filter(None, (COUNTED_TEXTS[f](tree) for f in _counted_fields(options))))

    def title(self, page: int) -> str:
        """Look up a page's title."""
        return self._pages.get(page, "title")

    def lead(self, page: int) -> str:
        """Look up the text of a page's first section."""
        return self._pages.get(page, "lead")

    def document(self, page: int, fields: Sequence[str] | None = None, query: str = "") -> str:
        """Make the text that stands for a page as a document.

        Args:
            page: id of the page.
            fields: what the text is made of, in this order, joined by a space: ``title``, ``lead``,
                ``text``, which is the beginning of the whole page, or ``passage``, which is what
                `query_passage` finds in title and page; None for the lead.
            query: the query, by which the passage is chosen.
        """
        texts = (_DOCUMENT_FIELDS[name](self, page, query) for name in fields or ["lead"])
        return " ".join(filter(None, texts))

    def tree(self, page: int) -> Tree:
        """Make the tree of a page's sections."""
        return tree_of_rows(*self._sections.values(page, ("title", "sections")))

    def split_into_sentences(self, page: int, text: str) -> list[str]:
        """Split a text of a page into sentences, by the page's language."""
        return split_sentences(text, self._sections.get(page, "language"))

    def sentence(self, id: int) -> str:
        """Look up a sentence's text."""
        return self._sentences.get(id, "text")

    def anchor(self, id: int) -> Anchor:
        """Look up a resolved link."""
        return Anchor(*self._anchors.values(id, Anchor._fields))

    def anchor_text(self, anchor: Anchor) -> str:
        """Look up an anchor's text as it is written."""
        return self.sentence(anchor.sentence)[anchor.start : anchor.end]

    def sentence_anchors(self, sentence: int) -> list[Anchor]:
        """Look up the resolved links of a sentence, in reading order; none where it has none."""
        if sentence not in self._sentence_anchors:
            return []
        return [self.anchor(id) for id in self._sentence_anchors.get(sentence, "anchors")]

    def pages_linked_by(self, sentence: int) -> set[int]:
        """Look up the pages that a sentence links to, by links that a filter drops as well."""
        if sentence not in self._sentence_anchors:
            return set()
        return set(self._sentence_anchors.array(sentence, "linked").tolist())

    def page_links(self, page: int) -> PageLinks:
        """Look up the links on a page and to it."""
        if page not in self._page_links:
            return PageLinks(*(np.empty(0, dtype=np.int64) for _ in PageLinks._fields))
        return PageLinks(*(self._page_links.array(page, name) for name in PageLinks._fields))

    def texts_and_pages(self, anchors: np.ndarray) -> list[np.ndarray]:
        """Look up the ids of the texts and of the pages of anchors, each (anchors,)."""
        columns = self._anchors.columns(anchors, "text_id", "page")
        return [column.to_numpy(zero_copy_only=False) for column in columns]

    def query_likeness(self, texts: np.ndarray) -> np.ndarray:
        """Look up how much anchor texts look like queries, by their ids, (texts,) float32.

        Raises:
            HarpError: the build has no such stage.
        """
        table = open_table(self.directory, "query_likeness", "anchor_texts")
        [scores] = table.columns(texts, "score")
        return scores.to_numpy(zero_copy_only=False)

    def text_targets(self, text_id: int) -> set[int]:
        """Look up the pages that an anchor text leads to, by links that a filter drops as well.

        Of very many pages, these are some.
        """
        return set(self._anchor_texts.array(text_id, "targets").tolist())

    def ambiguous_text(self, text_id: int) -> AmbiguousText:
        """Look up the pages and the anchors of a text that leads to two pages or more.

        Raises:
            KeyError: the text leads to one page only.
        """
        table = self._ambiguous_texts
        return AmbiguousText(*(table.array(text_id, name) for name in AmbiguousText._fields))

    def hard_negatives(self, kind: str, queries: str, id: int) -> list[int]:
        """Look up the pages that a search found for a text, best first; none where it found none.

        Args:
            kind: ``bm25``, ``model`` or ``dense``.
            queries: which texts were searched by: ``anchor_texts``, ``sentences`` or ``pages``.
            id: the text's id in the table of this name.

        Raises:
            HarpError: the build has no such stage.
        """
        if (kind, queries) not in self._hard_negatives:
            self._hard_negatives[kind, queries] = open_table(
                self.directory, f"{kind}_negatives", queries
            )
        table = self._hard_negatives[kind, queries]
        return table.array(id, "pages").tolist() if id in table else []

    def are_alike(self, first: int, second: int, options: DrawOptions) -> bool:
        """Return whether a page is too like another to be its negative.

        It is where both are one page, have the same title or have near-duplicate leads, unless the
        option ``alike_negatives`` allows such negatives.
        """
        if options.alike_negatives == "allowed" or first == second:
            return options.alike_negatives != "allowed"
        (title, bands), (other_title, other_bands) = (
            self._pages.values(page, ("title", "lead_bands")) for page in (first, second)
        )
        has_same_title = normalize_anchor(title) == normalize_anchor(other_title)
        return has_same_title or not set(bands or ()).isdisjoint(other_bands or ())

    def are_linked(self, first: int, second: int) -> bool:
        """Return whether one of two pages links to the other, by links that a filter drops too."""
        return second in self.page_links(first).linked or first in self.page_links(second).linked

    def is_weighed(self, page: int) -> bool:
        """Return whether the words of a page's lead have weights."""
        has_weights = (self.directory / "weights" / MANIFEST).is_file()
        return has_weights and page in self._page_weights

    def has_weights(self, anchor: int) -> bool:
        """Return whether an anchor lies within the model's limit, so that it weighs words."""
        return anchor in self._anchor_weights

    def layer_before(self, anchor: int) -> float:
        """Look up [CLS]'s weight of a weighed anchor by the layer before the last.

        Returns:
            The sum over the words in the anchor's span; NaN where no such layer weighed it: in a
            build by an encoder of one layer.
        """
        weight = self._anchor_weights.get(anchor, "layer_before")
        return float("nan") if weight is None else weight

    def weighed_sentence(self, sentence: int) -> WeighedText:
        """A sentence, whose words are weighed by [CLS] (eq. 10)."""
        text = self.sentence(sentence)
        return self._weighed(f"sentence {sentence}", text, self._sentence_weights, sentence)

    def weighed_lead(self, page: int) -> WeighedText:
        """A page's lead, whose words are weighed by [CLS] (eq. 5)."""
        return self._weighed(f"page {page}", self.lead(page), self._page_weights, page)

    def weighed_by_anchor(self, anchor: Anchor) -> WeighedText:
        """An anchor's sentence, whose words are weighed by the anchor (eq. 1)."""
        weights = self._anchor_weights.array(anchor.id, "weights")
        name, text = f"anchor {anchor.id}", self.sentence(anchor.sentence)
        return self._weighed(name, text, self._sentence_weights, anchor.sentence, weights)

    def sentence_terms(self, anchor: Anchor, options: DrawOptions) -> Terms:
        """Terms of the anchor's sentence, weighed by the anchor (eq. 1 and 2)."""
        return _terms(self.weighed_by_anchor(anchor), options)

    def page_terms(self, page: int, options: DrawOptions) -> Terms:
        """Terms of a page's lead, weighed by [CLS] (eq. 5 and 13, then eq. 2)."""
        return _terms(self.weighed_lead(page), options)

    def _weighed(
        self, name: str, text: str, table: MappedTable, id: int, weights: np.ndarray | None = None
    ) -> WeighedText:
        """Bundle a text with a row of spans, and with the row's weights where no others are given.

        Raises:
            HarpError: they do not fit.
        """
        spans = np.stack([table.array(id, "starts"), table.array(id, "ends")], axis=1)
        weights = table.array(id, "weights") if weights is None else weights
        try:
            return WeighedText(text, spans.astype(np.int64), weights.astype(np.float64))
        except ValueError as error:
            raise HarpError(
                f"{self.directory}: the weights of {name} do not fit its text ({error}): run "
                "`harp build` again with --overwrite"
            ) from error


def _terms(weighed: WeighedText, options: DrawOptions) -> Terms:
    return merge_repeats(weighed.words, weighed.weights, stop_words(options.stop_words))


def _language_model(directory: Path, options: DrawOptions) -> LanguageModel:
    """Make the language model of all documents of a build.

    Where ``prop_min_count`` is ``auto``, a word needs 50 occurrences, or a millionth of all where
    that is less.

    Raises:
        HarpError: as `BuildSource.language_model`.
    """
    collection = open_words(directory, _counted_fields(options))
    least = options.number("prop_min_count", "auto")
    if least is None:
        least = min(_MOST_OCCURRENCES, _FRACTION * collection.occurrences.sum())
    model = LanguageModel(
        collection,
        mu=options.number("prop_mu", "mean_length"),
        least=least,
        left_out=stop_words(options.stop_words),
        subsampling=options.prop_subsampling,
        is_uniform=options.prop_words == "random",
    )
    if not model.words:
        raise HarpError(
            f"no word that is not a stop word occurs {least:g} times in the documents: lower "
            "--prop-min-count, or build from more pages"
        )
    return model


def _counted_fields(options: DrawOptions) -> Sequence[str]:
    """Return what PROP's documents are made of: the articles, where the options do not say."""
    fields = options.document_fields or ["text"]
    if unknown := [field for field in fields if field not in COUNTED_TEXTS]:
        raise HarpError(
            f"--document-fields {unknown[0]}: prop draws its queries from the words of the "
            f"document, so name {', '.join(COUNTED_TEXTS)}, or nothing for the article"
        )
    return fields


_DOCUMENT_FIELDS: dict[str, Callable[[BuildSource, int, str], str]] = {
    "title": lambda source, page, query: source.title(page),
    "lead": lambda source, page, query: source.lead(page),
    "text": lambda source, page, query: source.tree(page).article(_ARTICLE_WORDS),
    "passage": lambda source, page, query: query_passage(query, source.tree(page).text),
}
"""What makes each part of a document's text, by the name in the option ``document_fields``."""
