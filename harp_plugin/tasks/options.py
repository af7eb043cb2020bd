"""Every settled point of drawing pairs, as an option with a name, and the presets that set all."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from ..errors import HarpError
from ..options import flag

__all__ = ["HARD_NEGATIVES", "PRESETS", "DrawOptions"]

HARD_NEGATIVES = ("bm25", "model", "dense")
"""Kinds of hard negatives that a build can find; each is a module of `harp_plugin.negatives`."""

PRESETS: dict[str, dict[str, Any]] = {
    "default": {
        "normalization": "linear",
        "temperature": "1/heads",
        "replacement": False,
        "stop_words": "english",
        "anchor_words_in_query": "removed",
        "min_drawn_words": 1,
        "query_case": "lower",
        "negative_query_length": "equal",
        "rqp_negative_words": "anchors_on_page",
        "anchor_words_in_negative": "removed",
        "qdm_negatives": "pair_first",
        "rdp_agreement": True,
        "rdp_max_in_link_ratio": 4.0,
        "acm_negative_page": "same_article",
        "prop_words": "language_model",
        "prop_mu": "mean_length",
        "prop_min_count": "auto",
        "prop_subsampling": 1e-5,
        "rwi_negatives": "others",
        "negatives": "task",
        "alike_negatives": "excluded",
        "negatives_per_group": 4,
        "anchor_query": "anchor",
        "anchors_per_page": 5,
        "query_like_share": 1.0,
        "document_fields": None,
        "mixing": "uniform",
        "redraw_each_epoch": True,
    },
}
PRESETS["paper"] = {
    **PRESETS["default"],
    "normalization": "softmax",
    "replacement": True,
    "stop_words": "scikit-learn",
    "anchor_words_in_query": "kept",
    "query_case": "lower_words",
    "rqp_negative_words": "page",
    "rdp_agreement": False,
    "rdp_max_in_link_ratio": 0.0,
    "alike_negatives": "allowed",
    "negatives_per_group": 8,
    "redraw_each_epoch": False,
    "temperature": "1",
    "negative_query_length": "drawn",
    "anchor_words_in_negative": "zero_weight",
    "qdm_negatives": "drawn",
    "acm_negative_page": "any",
    "prop_min_count": "50",
    "rwi_negatives": "any",
}


_OVERLAPPING = (frozenset({"lead", "text", "passage"}), frozenset({"title", "passage"}))
"""Fields that hold the same words: a document has one of each set at most."""


def _option(help: str, *choices: str) -> Any:
    metadata: dict[str, Any] = {"help": f"{help} By default as the preset says."}
    if choices:
        metadata["choices"] = list(choices)
    return field(default=None, metadata=metadata)


@dataclass
class DrawOptions:
    """How pairs are drawn. An option that is None takes the preset's value.

    Attributes:
        advice: by the name of an option, what an error adds where a value is not known.

    Raises:
        HarpError: the preset is unknown, or an option has no such value.
    """

    advice: ClassVar[dict[str, str]] = {
        "negatives": "; the number of negatives is --negatives-per-group"
    }

    preset: str = field(
        default="default",
        metadata={
            "help": "Values of the options that are not named: default or paper (its letter).",
            "choices": list(PRESETS),
        },
    )
    normalization: str | None = _option(
        "Eq. 3: the weights of words become probabilities by "
        "softmax, or by division by their sum (linear).",
        "softmax",
        "linear",
    )
    temperature: str | None = _option("Eq. 3: temperature of the softmax, a number or 1/heads.")
    replacement: bool | None = _option("Words are drawn with replacement.")
    stop_words: str | None = _option(
        "Words that are not drawn: english (the list of scikit-learn and words that it lacks, such "
        "as used), scikit-learn (its list alone), none, or a file with one word on each line."
    )
    anchor_words_in_query: str | None = _option(
        "S1: the words of the anchor are taken out before its other words are drawn, or kept.",
        "removed",
        "kept",
    )
    min_drawn_words: int | None = _option(
        "S1: how many words must be drawn beside the anchor; with fewer, an example gives no group."
    )
    query_case: str | None = _option(
        "Queries with drawn words: all in lower case, as the words stand in their text, or the "
        "drawn words alone in lower case (lower_words).",
        "lower",
        "text",
        "lower_words",
    )
    negative_query_length: str | None = _option(
        "S2, the negative query of RQP, where it is made of words of a page: it is as long as S1, "
        "or its length is drawn (drawn).",
        "equal",
        "drawn",
    )
    rqp_negative_words: str | None = _option(
        "RQP: S2 is the S1 of an anchor that stands on the linked page and leads elsewhere "
        "(anchors_on_page); or its words are drawn from the linked page (page); or as many of them "
        "as of S1 stand in that page's text, and the others do not (mirrored).",
        "anchors_on_page",
        "mirrored",
        "page",
    )
    anchor_words_in_negative: str | None = _option(
        "RQP, eq. 5: what happens to the words of the anchor in S2.",
        "removed",
        "zero_weight",
    )
    qdm_negatives: str | None = _option(
        "QDM, of the pages that anchors of one text lead to: two pages are drawn, then an anchor "
        "of the first (pair_first); or an anchor, and then another of these pages (drawn).",
        "pair_first",
        "drawn",
    )
    rdp_agreement: bool | None = _option(
        "RDP: a pair of anchors is left out where the layer before the last does not confirm "
        "which of them weighs more."
    )
    rdp_max_in_link_ratio: float | None = _option(
        "RDP: a pair is left out where one page has more than this many times the in-links of the "
        "other; 0 for no limit."
    )
    acm_negative_page: str | None = _option(
        "ACM: which pages the negative may be: those that only other sentences of the article "
        "link to (same_article), all that the sentence does not link to, or any.",
        "same_article",
        "not_linked",
        "any",
    )
    prop_words: str | None = _option(
        "PROP: words are drawn by the language model of the document, or at random from the "
        "vocabulary.",
        "language_model",
        "random",
    )
    prop_mu: str | None = _option(
        "PROP, eq. 3: the parameter μ of Dirichlet smoothing, a number or mean_length."
    )
    prop_min_count: str | None = _option(
        "PROP: how often the collection must have a word that is drawn, a number or auto (50, "
        "or a millionth of all words where that is less)."
    )
    prop_subsampling: float | None = _option(
        "PROP: threshold above which frequent words are drawn less often, 0 for none."
    )
    rwi_negatives: str | None = _option(
        "RWI: the titles of a negative are those of sections that do not contain the document "
        "(others), or of any sections.",
        "others",
        "any",
    )
    negatives: str | None = _option(
        "Which pages tasks draw as negatives: those of the task's own definition (task), any in "
        "proportion to their in-links, or those that BM25, a model or an encoder (dense) ranks "
        "high for the query's text; these three need `harp build --negatives`.",
        "task",
        "in_links",
        *HARD_NEGATIVES,
    )
    alike_negatives: str | None = _option(
        "Whether a page can be a negative whose title is that of the positive page, or whose lead "
        "is nearly the same.",
        "excluded",
        "allowed",
    )
    negatives_per_group: int | None = _option(
        "SRR, RWI, ATI, LTM and anchor: how many negatives a group has at most."
    )
    anchor_query: str | None = _option(
        "anchor: the query is the text of an anchor alone (anchor), or with words of its sentence "
        "as in RQP (context); the latter needs term weights.",
        "anchor",
        "context",
    )
    anchors_per_page: int | None = _option(
        "anchor: how many distinct anchor texts that lead to a page are examples at most."
    )
    query_like_share: float | None = _option(
        "anchor: the share of anchor texts that are drawn from, those which look most like queries "
        "(Anchor-DR: 0.25); below 1 it needs `harp build --query-examples`."
    )
    document_fields: list[str] | None = field(
        default=None,
        metadata={
            "help": "What a page's text as a document is made of, joined by a space; passage is "
            "the title and the part of the page that shares most words with the query; sections as "
            "documents stay as they are (default: the lead; LTM: the whole text)",
            "choices": ["title", "lead", "text", "passage"],
        },
    )
    mixing: str | None = _option(
        "Each task has the same share of the groups, or a share in proportion to its examples.",
        "uniform",
        "proportional",
    )
    redraw_each_epoch: bool | None = field(
        default=None,
        metadata={
            "help": "Draw pairs anew in each epoch. By default as the preset says.",
        },
    )

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise HarpError(
                f"--preset {self.preset!r} is not known: known are {', '.join(PRESETS)}"
            )
        for option in fields(self):
            value = getattr(self, option.name)
            if value is None:
                setattr(self, option.name, PRESETS[self.preset][option.name])
                continue
            choices = option.metadata.get("choices", [value])
            for item in value if isinstance(value, list) else [value]:
                if item not in choices:
                    known = ", ".join(choices)
                    name = flag(option.name)
                    advice = self.advice.get(option.name, "")
                    raise HarpError(f"{name} {item!r} is not known: known are {known}{advice}")
        self._check_document_fields()
        for name, least in (
            ("negatives_per_group", 1),
            ("anchors_per_page", 1),
            ("min_drawn_words", 0),
        ):
            if getattr(self, name) < least:
                raise HarpError(f"{flag(name)} {getattr(self, name)}: give {least} or more")
        if not 0 < (self.query_like_share or 0) <= 1:
            raise HarpError(f"--query-like-share {self.query_like_share}: give a share up to 1")
        if self.prop_subsampling is not None and not 0 <= self.prop_subsampling < 1:
            raise HarpError(
                f"--prop-subsampling {self.prop_subsampling}: give 0, or a share below 1"
            )
        ratio = self.rdp_max_in_link_ratio
        if ratio is not None and ratio != 0 and not 1 <= ratio < float("inf"):
            raise HarpError(f"--rdp-max-in-link-ratio {ratio}: give 0 for no limit, or 1 or more")
        for name in ("prop_mu", "prop_min_count"):
            self.number(name)

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

    def number(self, name: str) -> float | None:
        """Read an option as a number of at least 0; None where it is a word.

        Raises:
            HarpError: it is neither a number nor the word that it may be.
        """
        value = getattr(self, name)
        if value in ("mean_length", "auto") and PRESETS["default"][name] == value:
            return None
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            word = PRESETS["default"][name]
            raise HarpError(
                f"{flag(name)} {value!r} is not a number of at least 0: give one, or {word}"
            )
        return number

    def temperature_for(self, heads: int) -> float:
        """Work out the softmax temperature for a model with this many heads.

        Raises:
            HarpError: it is neither a number above 0 nor ``1/heads``.
        """
        if self.temperature == "1/heads":
            return 1 / heads
        try:
            temperature = float(self.temperature or "")
        except ValueError:
            temperature = 0.0
        if not temperature > 0:
            raise HarpError(
                f"--temperature {self.temperature!r} is not a number above 0: give one, or 1/heads"
            )
        return temperature
