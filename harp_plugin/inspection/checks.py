"""The checks of `harp inspect`: what each measures, its limits and its advice.

Other packages add theirs by an entry point in the group ``harp_plugin.checks``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..registry import Registry
from . import classifier, matching, measurements
from .check import ACCURACY_THRESHOLDS, Check, Thresholds
from .measurements import AuditedGroups, Measurement
from .query_probe import query_probe

__all__ = ["CHECKS"]

_MATCHES = (
    "Words alone find the query that the document is about: draw the words of both queries from "
    "texts of one kind."
)
_SWAPPED = "Check that positives and negatives are not swapped: the negatives match better."
_NEGATIVE_OF_THE_PAGE = (
    "S2's words stand in the document more often than S1's: take S2 from another anchor, with "
    "--rqp-negative-words anchors_on_page."
)
_OTHER_QUERY = "Take S2 from another anchor: --rqp-negative-words anchors_on_page."
_TITLE_FIRST = (
    "A lead begins with its page's title, and so do many anchors: build with --title-anchors 0.5, "
    "and take S2 from another anchor (--rqp-negative-words anchors_on_page)."
)
_ONE_QUERY = "Ask both pages the same query: --acm-negative-query same."
_OTHER_PAGES = "Draw the negative from other pages: --acm-negative-page not_linked."
_BY_IN_LINKS = "Draw negatives as often as links lead to them: --negatives in_links."
_SIMILAR_IN_LINKS = "Pair pages of similar numbers of in-links: --rdp-max-in-link-ratio 4, or less."
_LIKELIER = "This is the task: the likelier set of words is the one that the document has more of."
_TITLES = "This is the task: the titles of a section should name what its text is about."
_MATCHING_BY_DESIGN = {"prop": _LIKELIER, "rwi": _TITLES}


def _matching(
    label: str, measure: Callable[[AuditedGroups], Measurement | None], **fields: Any
) -> Check:
    """Make a check that counts how the words of a query match its document.

    It is a baseline where the documents of a group differ: the better document should match more.
    It is a rule where one document has several queries, which are drawn by rules, too: how often
    their words stand in the document must not tell which of them leads to it.
    """
    usual: dict[str, Any] = {
        "is_baseline": measurements.documents_differ,
        "task_advice": {"rqp": _OTHER_QUERY},
    }
    return Check(
        label=label,
        measure=measure,
        limits=ACCURACY_THRESHOLDS,
        has_opposite=True,
        advice=_MATCHES,
        reversed_advice=_SWAPPED,
        reversed_task_advice={"rqp": _NEGATIVE_OF_THE_PAGE},
        by_design=_MATCHING_BY_DESIGN,
        **(usual | fields),
    )


_OURS = {
    "longer_query": Check(
        label="longer query",
        measure=measurements.longer_query,
        limits=ACCURACY_THRESHOLDS,
        has_opposite=True,
        advice="Draw the queries of positives and negatives equally long.",
        task_advice={
            "rqp": "Draw S2 as long as S1: --negative-query-length equal.",
            "acm": _ONE_QUERY,
        },
    ),
    "longer_document": Check(
        label="longer document",
        measure=measurements.longer_document,
        limits=ACCURACY_THRESHOLDS,
        has_opposite=True,
        advice="Leave out pages with short leads: build with --min-lead-words 30 or more.",
    ),
    "more_capitals": Check(
        label="more capitals in the query",
        measure=measurements.more_capitals,
        limits=ACCURACY_THRESHOLDS,
        has_opposite=True,
        advice="Write the queries of both sides alike: in lower case, or as they stand in a text.",
    ),
    "first_capital": Check(
        label="query begins with a capital",
        measure=measurements.first_capital,
        limits=ACCURACY_THRESHOLDS,
        has_opposite=True,
        advice="Write the queries of both sides alike: in lower case, or as they stand in a text.",
    ),
    "more_in_links": Check(
        label="page with more in-links",
        measure=measurements.more_in_links,
        limits=ACCURACY_THRESHOLDS,
        has_opposite=True,
        advice=_BY_IN_LINKS,
        task_advice={"rdp": _SIMILAR_IN_LINKS},
    ),
    "commoner_target": Check(
        label="commoner target of the anchor",
        measure=measurements.commoner_target,
        limits=ACCURACY_THRESHOLDS,
        has_opposite=True,
        advice="Draw each page that a text leads to as often as the others: the commoner one is "
        "guessed without reading.",
        by_design={
            "anchor": "This is the task: its text leads to no negative. The model does not see the "
            "link graph."
        },
    ),
    "first_in_order": Check(
        label="first in reading order",
        measure=measurements.first_in_order,
        limits=ACCURACY_THRESHOLDS,
        has_opposite=True,
        advice="Draw positives from any place of the text, not by their order.",
        by_design={
            "ati": "This is the task: its positive is the lead. The model does not see the order; "
            "look at the document alone."
        },
    ),
    "document_alone": Check(
        label="document alone",
        measure=classifier.document_alone,
        limits=ACCURACY_THRESHOLDS,
        advice="Leave out pages that read unlike articles: build with --list-pages drop "
        "--disambiguation-pages drop --min-lead-words 30.",
    ),
    "query_alone": Check(
        label="query alone",
        measure=classifier.query_alone,
        limits=ACCURACY_THRESHOLDS,
        advice="Draw the queries of both sides from texts of one kind.",
        task_advice={"acm": _ONE_QUERY},
    ),
    "document_probe": Check(
        label="document alone, by a model",
        measure=classifier.document_probe,
        limits=ACCURACY_THRESHOLDS,
        advice="Positives and negatives are of different kinds: draw negatives from pages or "
        "sections like the positives, with --negatives in_links or bm25.",
    ),
    "query_probe": Check(
        label="query alone, by a model",
        measure=query_probe,
        limits=ACCURACY_THRESHOLDS,
        advice="Draw the queries of both sides from texts of one kind.",
        task_advice={"acm": _ONE_QUERY, "rqp": _OTHER_QUERY},
    ),
    "more_shared_words": _matching("more words shared", matching.more_shared_words),
    "higher_shared_share": _matching("higher share of query shared", matching.higher_shared_share),
    "higher_term_frequency": _matching("higher term frequency", matching.higher_term_frequency),
    "earlier_word": _matching(
        "query word stands earlier", matching.earlier_word, task_advice={"rqp": _TITLE_FIRST}
    ),
    "higher_bm25": _matching("higher BM25", matching.higher_bm25),
    "higher_cosine": _matching(
        "higher cosine of the encoder",
        matching.higher_cosine,
        is_baseline=lambda groups: True,  # an encoder reads, however little it knows of queries
        baseline_limits=Thresholds(1.0, 1.0),
    ),
    "repeated_groups": Check(
        label="groups seen before",
        measure=measurements.repeated_groups,
        limits=Thresholds(0.01, 0.05),
        advice="Leave out repeated texts (--near-duplicate-leads drop), or draw fewer groups: the "
        "task has too few examples.",
    ),
    "repeated_pairs": Check(
        label="pairs seen before",
        measure=measurements.repeated_pairs,
        limits=Thresholds(0.05, 0.20),
        advice="Leave out repeated texts (--near-duplicate-leads drop), or lower the task's "
        "weight: it has few distinct pairs.",
    ),
    "negative_is_positive": Check(
        label="negative equal to its positive",
        measure=measurements.negative_is_positive,
        limits=Thresholds(0.0, 0.001),
        advice="Leave out repeated texts: build with --near-duplicate-leads drop.",
        task_advice={
            "acm": _OTHER_PAGES,
            "rdp": "Draw two anchors of distinct pages: --rdp-anchors by_importance.",
        },
    ),
    "negative_linked": Check(
        label="negative linked in the sentence",
        measure=measurements.negative_linked,
        limits=Thresholds(0.01, 0.05),
        advice="The page may suit as well: draw negatives that the sentence does not link.",
        task_advice={"acm": _OTHER_PAGES},
        by_design={"rdp": "This is the task: both pages are linked from its sentence."},
    ),
    "functional_anchors": Check(
        label="functional anchor",
        measure=measurements.functional_anchors,
        limits=Thresholds(0.01, 0.05),
        advice="Leave out links such as “here”: build with --functional-anchors drop.",
    ),
    "layers_disagree": Check(
        label="layers that disagree on the order",
        measure=measurements.layers_disagree,
        limits=Thresholds(0.05, 0.15),
        advice="The order of such a pair is chance: leave these out with --rdp-agreement.",
    ),
    "boilerplate": Check(
        label="references, links or a hatnote",
        measure=measurements.boilerplate,
        limits=Thresholds(0.01, 0.05),
        advice="Such texts say nothing of their page: build again from the sources, or name the "
        "--reader that marks them.",
    ),
    "title_in_query": Check(
        label="query holds its page's title",
        measure=measurements.title_in_query,
        limits=Thresholds(0.20, 0.30),  # an excess of 0.30 is a guess that is right in 65 %
        advice="Keep fewer links whose text is the page's title: build with --title-anchors 0.5 "
        "or less.",
    ),
    "pages_seen": Check(
        label="pages seen as a document",
        measure=measurements.pages_seen,
        limits=Thresholds(0.50, 0.75),
        advice="Few pages are seen at all: lower the task's weight, or build from pages with more "
        "links between them.",
    ),
    "frequent_pages": Check(
        label="positives on 1 % of the pages",
        measure=measurements.frequent_pages,
        limits=Thresholds(0.10, 0.25),
        advice="A few pages are most positives: lower the task's weight, or mix in tasks that "
        "spread over all pages.",
    ),
}

CHECKS: Registry[Check] = Registry("harp_plugin.checks", "check", _OURS)
"""The checks, in the order in which a report lists them."""
