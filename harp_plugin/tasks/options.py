"""Options of drawing pairs, one for each point that a paper leaves open, and their presets."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from ..errors import HarpError
from ..options import Count, Interval, Number, Options, flag, option

__all__ = ["HARD_NEGATIVES", "PRESETS", "DocumentField", "DrawOptions"]

HARD_NEGATIVES: dict[str, tuple[str, str | None]] = {
    "bm25": ("those that BM25 ranks high", None),
    "model": ("bm25's in the order of a cross-encoder", "negatives_model"),
    "dense": ("those that an encoder finds", "negatives_encoder"),
}
"""Kinds of hard negatives that a build can find: what they are, and the option that they need.

Each is a module of `harp_plugin.negatives`.
"""

DocumentField = Literal["title", "lead", "text", "passage"]
"""What the text of a page as a document may be made of."""

_VALUES: dict[str, tuple[Any, Any]] = {
    # Option: default, paper
    "normalization": ("linear", "softmax"),
    "temperature": ("1/heads", "1"),
    "replacement": (False, True),
    "stop_words": ("english", "scikit-learn"),
    "anchor_words_in_query": ("removed", "kept"),
    "query_case": ("lower", "lower_words"),
    "negative_query_length": ("equal", "drawn"),
    "rqp_negative_words": ("anchors_on_page", "page"),
    "anchor_words_in_negative": ("removed", "zero_weight"),
    "qdm_negatives": ("pair_first", "drawn"),
    "rdp_agreement": (True, False),
    "rdp_max_in_link_ratio": (4.0, 0.0),
    "acm_negative_page": ("same_article", "any"),
    "prop_min_count": ("auto", "50"),
    "rwi_negatives": ("others", "any"),
    "alike_negatives": ("excluded", "allowed"),
    "negatives_per_group": (4, 8),
    "redraw_each_epoch": (True, False),
}
_OVERLAPPING = (frozenset({"lead", "text", "passage"}), frozenset({"title", "passage"}))
"""Fields that hold the same words: a document has one of each set at most."""


def _option(help: str) -> Any:
    """Declare an option whose value is that of the preset where none is given."""
    return option(None, f"{help} By default as the preset says.")


@dataclass(kw_only=True)
class DrawOptions(Options):
    """How pairs are drawn. An option that is None takes the preset's value.

    Raises:
        HarpError: a value makes no sense.
    """

    preset: Literal["default", "paper"] = option(
        "default", "Values of the options that are not named: default, or paper (taken literally)."
    )
    normalization: Literal["softmax", "linear"] = _option(
        "Eq. 3: the weights of words become probabilities by "
        "softmax, or by division by their sum (linear)."
    )
    temperature: str = _option("Eq. 3: temperature of the softmax, a number or 1/heads.")
    replacement: bool = _option("Words are drawn with replacement.")
    stop_words: str = _option(
        "Words that are not drawn: english (the list of scikit-learn and words that it lacks, such "
        "as used), scikit-learn (its list alone), none, or a file with one word on each line."
    )
    anchor_words_in_query: Literal["removed", "kept"] = _option(
        "S1: the words of the anchor are taken out before its other words are drawn, or kept."
    )
    min_drawn_words: Number = option(
        1,
        "S1: how many words must be drawn with the anchor; with fewer, an example gives no group.",
    )
    query_case: Literal["lower", "text", "lower_words"] = _option(
        "Queries with drawn words: all in lower case, as the words stand in their text, or the "
        "drawn words alone in lower case (lower_words)."
    )
    negative_query_length: Literal["equal", "drawn"] = _option(
        "S2, the negative query of RQP, where it is made of words of a page: it is as long as S1, "
        "or its length is drawn (drawn)."
    )
    rqp_negative_words: Literal["anchors_on_page", "mirrored", "page"] = _option(
        "RQP: S2 is the S1 of an anchor that stands on the linked page and leads elsewhere "
        "(anchors_on_page); or its words are drawn from the linked page (page); or as many of them "
        "as of S1 stand in that page's text, and the others do not (mirrored)."
    )
    anchor_words_in_negative: Literal["removed", "zero_weight"] = _option(
        "RQP, eq. 5: what happens to the words of the anchor in S2."
    )
    qdm_negatives: Literal["pair_first", "drawn"] = _option(
        "QDM, of the pages that anchors of one text lead to: two pages are drawn, then an anchor "
        "of the first (pair_first); or an anchor, and then another of these pages (drawn)."
    )
    rdp_agreement: bool = _option(
        "RDP: a pair of anchors is left out where the layer before the last does not confirm "
        "which of them weighs more."
    )
    rdp_max_in_link_ratio: Annotated[float, Interval(ge=0)] = _option(
        "RDP: a pair is left out where one page has more than this many times the in-links of the "
        "other; 0 for no limit."
    )
    acm_negative_page: Literal["same_article", "not_linked", "any"] = _option(
        "ACM: which pages the negative may be: those that only other sentences of the article "
        "link to (same_article), all that the sentence does not link to, or any."
    )
    prop_words: Literal["language_model", "random"] = option(
        "language_model",
        "PROP: words are drawn by the language model of the document, or at random from the "
        "vocabulary.",
    )
    prop_mu: str = option(
        "mean_length",
        "PROP, eq. 3: the parameter μ of Dirichlet smoothing, a number or mean_length.",
    )
    prop_min_count: str = _option(
        "PROP: how often the collection must have a word that is drawn, a number or auto (50, "
        "or a millionth of all words where that is less)."
    )
    prop_subsampling: Annotated[float, Interval(ge=0, lt=1)] = option(
        1e-5, "PROP: threshold above which frequent words are drawn less often, 0 for none."
    )
    rwi_negatives: Literal["others", "any"] = _option(
        "RWI: the titles of a negative are those of sections that do not contain the document "
        "(others), or of any sections."
    )
    negatives: str = option(
        "task",
        "Which pages tasks draw as negatives: those of the task's own definition (task), any in "
        "proportion to their in-links, or those that BM25, a model or an encoder (dense) ranks "
        "high for the query's text; these three need `harp build --negatives`. Their number is "
        "--negatives-per-group.",
        choices=("task", "in_links", *HARD_NEGATIVES),
    )
    alike_negatives: Literal["excluded", "allowed"] = _option(
        "Whether a page can be a negative whose title is that of the positive page, or whose lead "
        "is nearly the same."
    )
    negatives_per_group: Count = _option(
        "SRR, RWI, ATI, LTM and anchor: how many negatives a group has at most."
    )
    anchor_query: Literal["anchor", "context"] = option(
        "anchor",
        "anchor: the query is the text of an anchor alone (anchor), or with words of its sentence "
        "as in RQP (context); the latter needs term weights.",
    )
    anchors_per_page: Count = option(
        5, "anchor: how many distinct anchor texts that lead to a page are examples at most."
    )
    query_like_share: Annotated[float, Interval(gt=0, le=1)] = option(
        1.0,
        "anchor: the fraction of anchor texts that are drawn from, those which look most like "
        "queries (Anchor-DR: 0.25); below 1 it needs `harp build --query-examples`.",
    )
    document_fields: list[DocumentField] | None = option(
        None,
        "What a page's text as a document is made of, joined by a space; passage is "
        "the title and the part of the page that shares most words with the query; sections as "
        "documents stay as they are (default: the lead; LTM: the whole text)",
    )
    mixing: Literal["uniform", "proportional"] = option(
        "uniform",
        "Each task has the same part of the groups, or a part in proportion to its examples.",
    )
    redraw_each_epoch: bool = _option("Draw pairs again in each epoch.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, (default, paper) in _VALUES.items():
            if getattr(self, name) is None:
                setattr(self, name, paper if self.preset == "paper" else default)
        self._check_document_fields()
        if 0 < self.rdp_max_in_link_ratio < 1:
            raise HarpError(
                f"--rdp-max-in-link-ratio is {self.rdp_max_in_link_ratio}: give 0 for no limit, or "
                "1 or more"
            )
        self.number("prop_mu", "mean_length")
        self.number("prop_min_count", "auto")

    def _check_document_fields(self) -> None:
        names = self.document_fields
        if names is None:
            return
        overlapping = any(len(fields & set(names)) > 1 for fields in _OVERLAPPING)
        if not names or len(set(names)) < len(names) or overlapping:
            raise HarpError(
                f"--document-fields {' '.join(names)}: name each field once, and none that holds "
                "another: the text begins with the lead, the passage with the title"
            )

    def number(self, name: str, word: str) -> float | None:
        """Read an option as a number of at least 0; None where it is this word.

        Raises:
            HarpError: it is neither.
        """
        value = getattr(self, name)
        return None if value == word else _number(name, value, word)

    def temperature_for(self, heads: int) -> float:
        """Work out the softmax temperature for a model with this many heads.

        Raises:
            HarpError: it is neither a number above 0 nor ``1/heads``.
        """
        if self.temperature == "1/heads":
            return 1 / heads
        return _number("temperature", self.temperature, "1/heads", above_0=True)


def _number(name: str, value: str, word: str, *, above_0: bool = False) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf") or (above_0 and not number):
        limit = "above 0" if above_0 else "of at least 0"
        raise HarpError(f"{flag(name)} {value!r} is not a number {limit}: give one, or {word}")
    return number


PRESETS: dict[str, dict[str, Any]] = {
    preset: {k: v for k, v in asdict(DrawOptions(preset=preset)).items() if k != "preset"}
    for preset in ("default", "paper")
}
"""The value of every option, by preset."""
