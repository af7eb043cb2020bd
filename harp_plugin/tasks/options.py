"""Every settled point of drawing pairs, as an option with a name, and the presets that set all."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from ..errors import HarpError

PRESETS: dict[str, dict[str, Any]] = {
    "default": {
        "normalisation": "softmax",
        "temperature": "1/heads",
        "query_length": "poisson",
        "replacement": True,
        "stop_words": "english",
        "anchor_position": "first",
        "negative_query_length": "equal",
        "anchor_words_in_negative": "removed",
        "qdm_negatives": "drawn",
        "rdp_anchors": "by_importance",
        "rdp_anchor_weight": "sum",
        "rdp_repeats": "summed",
        "acm_negative_query": "same",
        "acm_negative_page": "not_linked",
        "mixing": "uniform",
        "fresh": True,
    },
}
PRESETS["paper"] = {
    **PRESETS["default"],
    "temperature": "1",
    "negative_query_length": "drawn",
    "anchor_words_in_negative": "zero_weight",
    "acm_negative_page": "any",
    "fresh": False,
}
PRESETS["released"] = {
    **PRESETS["default"],
    "query_length": "normal",
    "anchor_position": "last",
    "negative_query_length": "drawn_above_one",
    "anchor_words_in_negative": "kept",
    "qdm_negatives": "first_ten",
    "rdp_anchors": "all_pairs",
    "rdp_anchor_weight": "mean",
    "rdp_repeats": "apart",
    "acm_negative_query": "redrawn",
    "acm_negative_page": "any_but_pair",
    "mixing": "proportional",
    "fresh": False,
}


def _option(help: str, *choices: str) -> Any:
    metadata: dict[str, Any] = {"help": f"{help} (default: as the preset says)"}
    if choices:
        metadata["choices"] = list(choices)
    return field(default=None, metadata=metadata)


@dataclass
class DrawOptions:
    """How pairs are drawn. What is not given is as the preset says.

    Raises:
        HarpError: the preset is unknown, or an option has no such value.
    """

    preset: str = field(
        default="default",
        metadata={
            "help": "default, paper (the paper taken literally) or released (the authors' code).",
            "choices": list(PRESETS),
        },
    )
    normalisation: str | None = _option("Eq. 3: softmax or plain sum", "softmax", "linear")
    temperature: str | None = _option("Eq. 3: softmax temperature, a number or 1/heads")
    query_length: str | None = _option("Eq. 4: draw of the query length", "poisson", "normal")
    replacement: bool | None = _option("Draw words with replacement")
    stop_words: str | None = _option("english, none, or a file with one word a line")
    anchor_position: str | None = _option("Where the anchor stands in S1", "first", "last")
    negative_query_length: str | None = _option(
        "RQP: length of S2", "equal", "drawn", "drawn_above_one"
    )
    anchor_words_in_negative: str | None = _option(
        "RQP, eq. 5: the anchor's words in S2", "removed", "zero_weight", "kept"
    )
    qdm_negatives: str | None = _option(
        "QDM: occurrences that give the negative", "drawn", "first_ten"
    )
    rdp_anchors: str | None = _option("RDP: which two anchors", "by_importance", "all_pairs")
    rdp_anchor_weight: str | None = _option("RDP: over an anchor's words", "sum", "mean")
    rdp_repeats: str | None = _option("RDP: repeats of an anchor", "summed", "apart")
    acm_negative_query: str | None = _option("ACM: S1 on the negative side", "same", "redrawn")
    acm_negative_page: str | None = _option(
        "ACM: what the negative page must not be", "not_linked", "any_but_pair", "any"
    )
    mixing: str | None = _option("How tasks are mixed", "uniform", "proportional")
    fresh: bool | None = _option("Draw anew in each epoch")

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise HarpError(f"unknown preset {self.preset!r}: known are {', '.join(PRESETS)}")
        for option in fields(self):
            value = getattr(self, option.name)
            if value is None:
                setattr(self, option.name, PRESETS[self.preset][option.name])
            elif value not in option.metadata.get("choices", [value]):
                known = ", ".join(option.metadata["choices"])
                raise HarpError(f"{option.name}={value!r} is not known: known are {known}")

    def temperature_for(self, heads: int) -> float:
        """The softmax temperature, for a model with this many heads.

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
                f"temperature={self.temperature!r} is not a number above 0: give one, or 1/heads"
            )
        return temperature
