"""Options of drawing pairs, one for each point that a paper leaves open, and their presets."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from ..errors import HarpError
from ..options import Count, Interval, Number, Options, flag, option

__all__ = ["HARD_NEGATIVES", "PRESETS", "DocumentField", "DrawOptions"]

HARD_NEGATIVES: dict[str, str | None] = {
    "bm25": None,
    "model": "negatives_model",
    "dense": "negatives_encoder",
}
"""Kinds of hard negatives that a build can find, and the option that each needs.

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


@dataclass(kw_only=True)
class DrawOptions(Options):
    """How pairs are drawn. An option that is None takes the preset's value.

    Attributes:
        preset: Values of the options that are not named: default, or paper (taken literally).
        normalization: Eq. 3: the weights of words become probabilities by softmax, or by division
            by their sum (linear). By default as the preset says.
        temperature: Eq. 3: temperature of the softmax, a number or 1/heads. By default as the
            preset says.
        replacement: Words are drawn with replacement. By default as the preset says.
        stop_words: Words that are not drawn: english (the list of scikit-learn and words that it
            lacks, such as used), scikit-learn (its list alone), none, or a file with one word on
            each line. By default as the preset says.
        anchor_words_in_query: S1: the words of the anchor are taken out before its other words are
            drawn, or kept. By default as the preset says.
        min_drawn_words: S1: how many words must be drawn with the anchor; with fewer, an example
            gives no group.
        query_case: Queries with drawn words: all in lower case, as the words stand in their text,
            or the drawn words alone in lower case (lower_words). By default as the preset says.
        negative_query_length: S2, the negative query of RQP, where it is made of words of a page:
            it is as long as S1, or its length is drawn (drawn). By default as the preset says.
        rqp_negative_words: RQP: S2 is the S1 of an anchor that stands on the linked page and leads
            elsewhere (anchors_on_page); or its words are drawn from the linked page (page); or as
            many of them as of S1 stand in that page's text, and the others do not (mirrored). By
            default as the preset says.
        anchor_words_in_negative: RQP, eq. 5: what happens to the words of the anchor in S2. By
            default as the preset says.
        qdm_negatives: QDM, of the pages that anchors of one text lead to: two pages are drawn, then
            an anchor of the first (pair_first); or an anchor, and then another of these pages
            (drawn). By default as the preset says.
        rdp_agreement: RDP: a pair of anchors is left out where the layer before the last does not
            confirm which of them weighs more. By default as the preset says.
        rdp_max_in_link_ratio: RDP: a pair is left out where one page has more than this many times
            the in-links of the other; 0 for no limit. By default as the preset says.
        acm_negative_page: ACM: which pages the negative may be: those that only other sentences of
            the article link to (same_article), all that the sentence does not link to, or any. By
            default as the preset says.
        prop_words: PROP: words are drawn by the language model of the document, or at random from
            the vocabulary.
        prop_mu: PROP, eq. 3: the parameter μ of Dirichlet smoothing, a number or mean_length.
        prop_min_count: PROP: how often the collection must have a word that is drawn, a number or
            auto (50, or a millionth of all words where that is less). By default as the preset
            says.
        prop_subsampling: PROP: threshold above which frequent words are drawn less often, 0 for
            none.
        rwi_negatives: RWI: the titles of a negative are those of sections that do not contain the
            document (others), or of any sections. By default as the preset says.
        negatives: Which pages tasks draw as negatives: those of the task's own definition (task),
            any in proportion to their in-links (in_links), or those that rank high for the query's
            text: BM25's (bm25), BM25's in the order of a cross-encoder (model), or an encoder's
            (dense); these three need `harp build --negatives`. Their number is
            --negatives-per-group.
        alike_negatives: Whether a page can be a negative whose title is that of the positive page,
            or whose lead is nearly the same. By default as the preset says.
        negatives_per_group: SRR, RWI, ATI, LTM, anchor and crop: how many negatives a group has at
            most. By default as the preset says.
        anchor_query: anchor: the query is the text of an anchor alone (anchor), or with words of
            its sentence as in RQP (context); the latter needs term weights.
        anchors_per_page: anchor: how many distinct anchor texts that lead to a page are examples at
            most.
        functional_anchors: anchor: whether texts such as "here" or "website" are examples too
            (keep); see the option of `harp build` that drops their links.
        query_like_share: anchor: the fraction of anchor texts that are drawn from, those which look
            most like queries (Anchor-DR: 0.25); below 1 it needs `harp build --query-examples`.
        document_fields: What a page's text as a document is made of, joined by a space; passage is
            the title and the part of the page that shares most words with the query (not for
            prop); sections as documents stay as they are (default: the lead; LTM and PROP: the
            text)
        mixing: Each task has the same part of the groups, or a part in proportion to its examples.
        redraw_each_epoch: Draw pairs again in each epoch. By default as the preset says.

    Raises:
        HarpError: a value makes no sense.
    """

    preset: Literal["default", "paper"] = "default"
    normalization: Literal["softmax", "linear"] = option(None)
    temperature: str = option(None)
    replacement: bool = option(None)
    stop_words: str = option(None)
    anchor_words_in_query: Literal["removed", "kept"] = option(None)
    min_drawn_words: Number = 1
    query_case: Literal["lower", "text", "lower_words"] = option(None)
    negative_query_length: Literal["equal", "drawn"] = option(None)
    rqp_negative_words: Literal["anchors_on_page", "mirrored", "page"] = option(None)
    anchor_words_in_negative: Literal["removed", "zero_weight"] = option(None)
    qdm_negatives: Literal["pair_first", "drawn"] = option(None)
    rdp_agreement: bool = option(None)
    rdp_max_in_link_ratio: Annotated[float, Interval(ge=0)] = option(None)
    acm_negative_page: Literal["same_article", "not_linked", "any"] = option(None)
    prop_words: Literal["language_model", "random"] = "language_model"
    prop_mu: str = "mean_length"
    prop_min_count: str = option(None)
    prop_subsampling: Annotated[float, Interval(ge=0, lt=1)] = 1e-5
    rwi_negatives: Literal["others", "any"] = option(None)
    negatives: str = option("task", choices=("task", "in_links", *HARD_NEGATIVES))
    alike_negatives: Literal["excluded", "allowed"] = option(None)
    negatives_per_group: Count = option(None)
    anchor_query: Literal["anchor", "context"] = "anchor"
    anchors_per_page: Count = 5
    functional_anchors: Literal["drop", "keep"] = "drop"
    query_like_share: Annotated[float, Interval(gt=0, le=1)] = 1.0
    document_fields: list[DocumentField] | None = None
    mixing: Literal["uniform", "proportional"] = "uniform"
    redraw_each_epoch: bool = option(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, (default, paper) in _VALUES.items():
            if getattr(self, name) is None:
                setattr(self, name, paper if self.preset == "paper" else default)
        names = self.document_fields
        if names is not None:
            overlapping = any(len(fields & set(names)) > 1 for fields in _OVERLAPPING)
            if not names or len(set(names)) < len(names) or overlapping:
                raise HarpError(
                    f"--document-fields {' '.join(names)}: name each field once, and none that "
                    "holds another: the text begins with the lead, the passage with the title"
                )
        if 0 < self.rdp_max_in_link_ratio < 1:
            raise HarpError(
                f"--rdp-max-in-link-ratio is {self.rdp_max_in_link_ratio}: give 0 for no limit, or "
                "1 or more"
            )
        self.number("prop_mu", "mean_length")
        self.number("prop_min_count", "auto")

    def number(self, name: str, word: str, *, above_0: bool = False) -> float | None:
        """Read an option as a number of at least 0, or above 0; None where it is this word.

        Raises:
            HarpError: it is neither.
        """
        value = getattr(self, name)
        if value == word:
            return None
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf") or (above_0 and not number):
            limit = "above 0" if above_0 else "of at least 0"
            raise HarpError(f"{flag(name)} {value!r} is not a number {limit}: give one, or {word}")
        return number

    def temperature_for(self, heads: int) -> float:
        """Work out the softmax temperature for a model with this many heads.

        Raises:
            HarpError: it is neither a number above 0 nor ``1/heads``.
        """
        return self.number("temperature", "1/heads", above_0=True) or 1 / heads


PRESETS: dict[str, dict[str, Any]] = {
    preset: {k: v for k, v in asdict(DrawOptions(preset=preset)).items() if k != "preset"}
    for preset in ("default", "paper")
}
"""The value of every option, by preset."""
