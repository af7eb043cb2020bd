"""The checks of `harp inspect`: what each measures, its limits and its advice.

Other packages add theirs by an entry point in the group ``harp_plugin.checks``.
"""

from __future__ import annotations

from ..registry import Registry
from . import classifier, measurements
from .check import ACCURACY_THRESHOLDS, Check, Thresholds

__all__ = ["CHECKS"]

_SHARED_WORDS = (
    "Shared words alone tell much: mix in tasks where they do not, and compare with BM25 before "
    "you trust a gain."
)
_SWAPPED = "Check that positives and negatives are not swapped: the negatives share more words."
_NEGATIVE_OF_THE_PAGE = (
    "S2's words all stand in the document, S1's do not: give S2 the shape of S1, with "
    "--rqp-negative-words mirrored."
)
_ONE_QUERY = "Ask both pages the same query: --acm-negative-query same."
_OTHER_PAGES = "Draw the negative from other pages: --acm-negative-page not_linked."

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
    "more_shared_words": Check(
        label="more words shared",
        measure=measurements.more_shared_words,
        limits=ACCURACY_THRESHOLDS,
        has_opposite=True,
        advice=_SHARED_WORDS,
        reversed_advice=_SWAPPED,
        reversed_task_advice={"rqp": _NEGATIVE_OF_THE_PAGE},
    ),
    "higher_shared_share": Check(
        label="higher share of query shared",
        measure=measurements.higher_shared_share,
        limits=ACCURACY_THRESHOLDS,
        has_opposite=True,
        advice=_SHARED_WORDS,
        reversed_advice=_SWAPPED,
        reversed_task_advice={"rqp": _NEGATIVE_OF_THE_PAGE},
    ),
    "first_in_order": Check(
        label="first in reading order",
        measure=measurements.first_in_order,
        limits=ACCURACY_THRESHOLDS,
        has_opposite=True,
        advice="Draw positives from any place of the text, not by their order.",
        task_advice={"rdp": "Early anchors weigh more: draw any two with --rdp-anchors all_pairs."},
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
