"""What each task teaches, and how to judge its pairs."""

from __future__ import annotations

from typing import NamedTuple

from ..tasks import TASKS

__all__ = ["Explanation", "explain"]


class Explanation(NamedTuple):
    """What a reader of the page must know about a task.

    Attributes:
        name: the full name of the task.
        teaches: one sentence on what the task teaches.
        judge: what a good pair looks like, and what a bad pair looks like.
    """

    name: str
    teaches: str
    judge: str


_EXPLANATIONS = {
    "rqp": Explanation(
        "Representative Query Prediction",
        "One document has two queries: an anchor with words from around it should suit the page "
        "that it links to better than an anchor that stands on this page and links elsewhere.",
        "The + query should read like something a person would type to find this page. It is a bad "
        "pair if the − query says better what the page is about.",
    ),
    "qdm": Explanation(
        "Query Disambiguation Modeling",
        "One query has two pages that the same anchor text links to: the words around the anchor "
        "should tell which page is meant.",
        "The sampled words should point to the + page. It is a bad pair if they fit both pages, or "
        "if both pages are about the same thing.",
    ),
    "rdp": Explanation(
        "Representative Document Prediction",
        "A whole sentence is a long query for two pages that it links to: the page of the anchor "
        "with more weight in the sentence should rank higher.",
        "The + page should be closer to what the sentence is about. It is a bad pair if you would "
        "choose the other page. Neither page is better if the two weights are almost equal.",
    ),
    "acm": Explanation(
        "Anchor Co-occurrence Modeling",
        "Pages that one sentence links to belong together: an anchor with words of its page should "
        "suit the other page better than a page that the article links to elsewhere.",
        "The + page should be related to the query, the − page should not. It is a bad pair if the "
        "− page answers the query as well.",
    ),
    "prop": Explanation(
        "Representative wOrds Prediction (PROP)",
        "One document has two sets of words drawn from its language model: the likelier set should "
        "suit it better.",
        "The + words should say more about this document. Words that do not stand in it come from "
        "the whole collection: it is a bad pair if both sets are such words.",
    ),
    "srr": Explanation(
        "Simulated Re-ranking (Wikiformer)",
        "The titles down to a section are a query: its text should rank above the sections beside "
        "it.",
        "The + text should be about the last title. It is a bad pair if a − text is about it as "
        "well, or if a section is a list of references.",
    ),
    "rwi": Explanation(
        "Representative Words Identification (Wikiformer)",
        "One section has several queries: the titles down to it should suit it better than the "
        "titles of other sections of the article.",
        "The + titles should name what the text is about, the − titles should name something else.",
    ),
    "ati": Explanation(
        "Abstract Texts Identification (Wikiformer)",
        "An article's title is a query: its lead should rank above its other sections.",
        "The + text should summarize the article. It is a bad pair if the lead is only a note.",
    ),
    "ltm": Explanation(
        "Long Texts Matching (Wikiformer)",
        "An article is a long query: an article under its “See also” should rank above articles "
        "that it does not link to.",
        "The + article should be related to the query's article. It is a bad pair if a − article "
        "is related to it as well.",
    ),
    "ict": Explanation(
        "Inverse Cloze Task",
        "A sentence is a query: the passage that it was taken from should rank above a passage of "
        "another page.",
        "The + passage should be about the same thing. It is a bad pair if the sentence could "
        "stand on any page.",
    ),
    "bfs": Explanation(
        "Body First Selection",
        "A sentence of a page's lead is a query: a section of the page should rank above a section "
        "of another page.",
        "The + section should be about the page of the sentence. It is a bad pair if the sentence "
        "does not say what it is about, or if the section is a list of references.",
    ),
    "wlp": Explanation(
        "Wiki Link Prediction",
        "A sentence of a page's lead is a query: a passage of a page that links to the page should "
        "rank above a passage of a page that has no link to it or from it.",
        "The + passage should be related to the page of the sentence; often it is only loosely "
        "related.",
    ),
    "hlp": Explanation(
        "Hyperlink-induced Pre-training (HLP)",
        "A passage of a page is a query: a passage of a page should rank higher if the two pages "
        "link to each other, or if one page links to both.",
        "The + passage should be about something close to the query. It is a bad pair if one page "
        "links to both only because it lists very many pages.",
    ),
    "php": Explanation(
        "Progressive Hyperlink Prediction (PHP)",
        "A passage of a page is a query: pages with links both ways should rank above pages with a "
        "link one way, and these above pages without a link.",
        "The + passage should be closer to the query than the − passage. It is a bad pair if you "
        "would choose the other one.",
    ),
    "anchor": Explanation(
        "Anchor texts (Anchor-DR)",
        "The text of an anchor is a query: the page that it leads to should rank above pages that "
        "no anchor of this text leads to.",
        "The + page should be what a person looks for who types the text. It is a bad pair if a "
        "− page answers the query as well, or if the text says nothing about the page.",
    ),
    "crop": Explanation(
        "Random cropping (Contriever)",
        "A few words of a sentence are a query: the page that they stand on should rank above "
        "pages without a link to it or from it.",
        "The + page should be about the words. Often they say little; these pairs are for losses "
        "that read the scores of a teacher.",
    ),
}


def explain(task: str) -> Explanation:
    """Explain a task; a task of another package is explained by the start of its docstring."""
    if task in _EXPLANATIONS:
        return _EXPLANATIONS[task]
    teaches = " ".join((TASKS[task].__doc__ or "").split("\n\n")[0].split())
    return Explanation(
        "", teaches, "The + member should suit its query clearly better than the − member."
    )
