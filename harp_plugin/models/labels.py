"""Which of the two labels of a model for sequence classification says that a text is relevant."""

from __future__ import annotations

import re

from transformers import PretrainedConfig

from ..errors import HarpError

__all__ = ["relevant_label"]

_LABEL = re.compile(r"\b(?:relevant|true|yes|positive|match|entailment)\b")
_NEGATIVE = re.compile(r"(?:irr|not?\b|non|un|inval|false|neg|mis|contra)")


def relevant_label(config: PretrainedConfig) -> int:
    """Return the number of the relevant one of two labels: that of such a name, else 1.

    Raises:
        HarpError: both names say that a text is relevant, or both that it is not.
    """
    names = [str(config.id2label.get(number, "")).strip().lower() for number in (0, 1)]
    says = [_NEGATIVE.match(name) is None and _LABEL.search(name) is not None for name in names]
    denies = [_NEGATIVE.match(name) is not None for name in names]
    if all(says) or all(denies):
        raise HarpError(
            f"the model's labels {names[0]!r} and {names[1]!r} do not say which one is relevant: "
            "name one of them relevant in id2label of its config.json"
        )
    return 0 if says[0] or denies[1] else 1
