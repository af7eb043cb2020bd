"""What each task teaches, and how to judge its pairs."""

from __future__ import annotations

from typing import NamedTuple

from ..tasks import TASKS


class Explanation(NamedTuple):
    """A task in words.

    Attributes:
        name: written out.
        teaches: one sentence.
        judge: what a good pair looks like, and what a bad one does.
    """

    name: str
    teaches: str
    judge: str


_HARP = {
    "rqp": Explanation(
        "Representative Query Prediction",
        "One document, two queries: an anchor with words from around it should suit the page that "
        "it links to better than words drawn from that page itself.",
        "The + query should read like something a person would type to find this page. It is a bad "
        "pair if the − query says better what the page is about.",
    ),
    "qdm": Explanation(
        "Query Disambiguation Modeling",
        "One query, two pages that the same anchor text leads to: the words around the anchor "
        "should tell which is meant.",
        "The sampled words should point to the + page. It is a bad pair if they fit both pages, or "
        "if both pages are about the same thing.",
    ),
    "rdp": Explanation(
        "Representative Document Prediction",
        "A whole sentence as a long query, two pages that it links to: the page of the anchor that "
        "weighs more in the sentence should rank higher.",
        "The + page should be nearer to what the sentence is about. It is a bad pair if you would "
        "have chosen the other; it is a coin toss if the two weights are almost equal.",
    ),
    "acm": Explanation(
        "Anchor Co-occurrence Modeling",
        "Pages linked from one sentence belong together: an anchor with words of its page should "
        "suit the other page better than one drawn from the whole corpus.",
        "The + page should have to do with the query, the − page should not. It is a bad pair if "
        "the − page would answer the query as well.",
    ),
}


def explain(task: str) -> Explanation:
    """A task in words; of a task from another package its class says what it teaches."""
    if task in _HARP:
        return _HARP[task]
    teaches = " ".join((TASKS[task].__doc__ or "").split("\n\n")[0].split())
    return Explanation(
        "", teaches, "The + member should suit its query clearly better than the − member."
    )
