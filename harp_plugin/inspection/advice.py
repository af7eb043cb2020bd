"""What to do about a figure of the audit, in one sentence."""

from __future__ import annotations

NOTHING = "Nothing to do."
TOO_FEW = (
    "Too few groups to tell it from chance: look at more with --table-groups, or build from more "
    "pages."
)

BY_DESIGN = {
    ("rdp", "negative_linked"): "This is the task: both pages are linked from its sentence.",
    ("ati", "first_in_order"): "This is the task: its positive is the lead. The model does not see "
    "the order; look at the document alone.",
}
"""Figures that say what a task is, and nothing against it."""

_SWAPPED = "Check that positives and negatives are not swapped: the negatives share more words."
_OVERLAP = (
    "Shared words alone tell much: mix in tasks where they do not, and compare with BM25 before "
    "you trust a gain."
)
_ADVICE = {
    "longer_query": "Draw the queries of positives and negatives equally long.",
    "longer_document": "Leave out pages with short leads: build with --min-lead-words 30 or more.",
    "more_shared_words": _OVERLAP,
    "higher_shared_share": _OVERLAP,
    "first_in_order": "Draw positives from any place of the text, not by their order.",
    "document_alone": "Leave out pages that read unlike articles: build with --list-pages drop "
    "--disambiguation-pages drop --min-lead-words 30.",
    "query_alone": "Draw the queries of both sides from texts of one kind.",
    "repeated_groups": "Leave out repeated texts (--near-duplicate-leads drop), or draw fewer "
    "groups: the task has too few examples.",
    "repeated_pairs": "Leave out repeated texts (--near-duplicate-leads drop), or lower the task's "
    "weight: it has few distinct pairs.",
    "negative_is_positive": "Leave out repeated texts: build with --near-duplicate-leads drop.",
    "negative_linked": "The page may suit as well: draw negatives that the sentence does not link.",
    "functional_anchors": "Leave out links such as “here”: build with --functional-anchors drop.",
    "title_in_query": "Keep fewer links whose text is the page's title: build with "
    "--title-anchors 0.5 or less.",
    "pages_seen": "Few pages are seen at all: lower the task's weight, or build from pages with "
    "more links between them.",
    "frequent_pages": "A few pages are most positives: lower the task's weight, or mix in tasks "
    "that spread over all pages.",
}
_BY_TASK = {
    ("rqp", "longer_query"): "Draw S2 as long as S1: --negative-query-length equal.",
    ("acm", "longer_query"): "Ask both pages the same query: --acm-negative-query same.",
    ("acm", "query_alone"): "Ask both pages the same query: --acm-negative-query same.",
    ("acm", "negative_is_positive"): "Draw the negative from other pages: --acm-negative-page "
    "not_linked.",
    ("acm", "negative_linked"): "Draw the negative from other pages: --acm-negative-page "
    "not_linked.",
    ("rdp", "negative_is_positive"): "Draw two anchors of distinct pages: --rdp-anchors "
    "by_importance.",
    ("rdp", "first_in_order"): "Early anchors weigh more: draw any two with --rdp-anchors "
    "all_pairs.",
}
_FROM_THE_DOCUMENT = (
    "S2's words all stand in the document, S1's do not: give S2 the shape of S1, with "
    "--rqp-negative-words mirrored."
)
_OVERLAP_RULES = ("more_shared_words", "higher_shared_share")
_REVERSED = dict.fromkeys(_OVERLAP_RULES, _SWAPPED)
_REVERSED_BY_TASK = {("rqp", name): _FROM_THE_DOCUMENT for name in _OVERLAP_RULES}


def advise(task: str, name: str, *, is_reversed: bool = False) -> str:
    """What to do about a figure that is not green.

    Args:
        task: its task.
        name: of the figure.
        is_reversed: it is a rule that is wrong more often than right.
    """
    if is_reversed and (found := _REVERSED_BY_TASK.get((task, name)) or _REVERSED.get(name)):
        return found
    return _BY_TASK.get((task, name)) or _ADVICE[name]
