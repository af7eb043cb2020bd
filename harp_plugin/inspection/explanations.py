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


_OURS = {
    "rqp": Explanation(
        "Representative Query Prediction",
        "One document, two queries: an anchor with words from around it should suit the page that "
        "it links to better than other words of the same number do.",
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
    "prop": Explanation(
        "Representative wOrds Prediction (PROP)",
        "One document, two sets of words drawn from its language model: the likelier set should "
        "suit it better.",
        "The + words should be more about this document. Words that it does not hold come from the "
        "whole collection: it is a bad pair if both sets are such words.",
    ),
    "srr": Explanation(
        "Simulated Re-ranking (Wikiformer)",
        "The titles down to a section as query: its text should rank above the sections beside it.",
        "The + text should be what the last title says. It is a bad pair if a − text has as much "
        "to do with it, or if a section is a list of references.",
    ),
    "rwi": Explanation(
        "Representative Words Identification (Wikiformer)",
        "One section, several queries: the titles down to it should suit it better than the titles "
        "of other sections of the article.",
        "The + titles should name what the text is about, the − titles something else.",
    ),
    "ati": Explanation(
        "Abstract Texts Identification (Wikiformer)",
        "An article's title as query: its lead should rank above its other sections.",
        "The + text should sum the article up. It is a bad pair if the lead is a mere note.",
    ),
    "ltm": Explanation(
        "Long Texts Matching (Wikiformer)",
        "An article as a long query: an article under its “See also” should rank above articles "
        "that it does not link to.",
        "The + article should be akin to the query's. It is a bad pair if a − article is as well.",
    ),
    "ict": Explanation(
        "Inverse Cloze Task",
        "A sentence as query: the passage that it was taken from should rank above a passage of "
        "another page.",
        "The + passage should go on about the same thing. It is a bad pair if the sentence could "
        "stand anywhere.",
    ),
    "bfs": Explanation(
        "Body First Selection",
        "A sentence of a page's lead as query: a section of the page should rank above one of "
        "another page.",
        "The + section should be about the page of the sentence. It is a bad pair if the sentence "
        "does not say what it is about, or if the section is a list of references.",
    ),
    "wlp": Explanation(
        "Wiki Link Prediction",
        "A sentence of a page's lead as query: a passage of a page that it links to should rank "
        "above a passage of a page that it does not.",
        "The + passage should have to do with the sentence's page; often it does but loosely.",
    ),
}


def explain(task: str) -> Explanation:
    """A task in words; of a task from another package its class says what it teaches."""
    if task in _OURS:
        return _OURS[task]
    teaches = " ".join((TASKS[task].__doc__ or "").split("\n\n")[0].split())
    return Explanation(
        "", teaches, "The + member should suit its query clearly better than the − member."
    )
