"""How long `harp adapt` may take, and how many training steps fit into that time."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import Any

import numpy as np

from ...collections.dataset import Dataset
from ...errors import HarpError
from ...ranking import Scorer
from ...ranking.options import Dtype
from ...sampling import generator
from ...tasks import DrawOptions, PreTrainingData
from ...text import COMMON_WORDS, OWN_WORDS

__all__ = [
    "encoder_reading",
    "measured_speed",
    "ranking_dtype",
    "seconds_in",
    "seconds_of_a_step",
    "training_data",
    "training_steps",
]

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?:in)?)?(?:(\d+(?:\.\d+)?)s)?")
_TRAINING_COST = {"fp32": 4.0, "bf16": 2.5}
"""A pair takes as long in training, by its precision, as so many pairs in scoring in fp32.

On one core of Zen 5, MiniLM with 128 tokens: 28.7 pairs a second in training in fp32 and 45.9 in
bf16, 107.7 in scoring in fp32.
"""
_TEACHER_COST = {"fp32": 1.0, "bf16": 0.5}
"""What the scores of a teacher add to it, calculated: a teacher scores each pair once."""
_MEASURED_GROUPS = 48
_SECONDS_OF_A_TOKEN = 1.7e-4
"""That an encoder of MiniLM's size takes in float32 on two cores of Zen 4."""
_SHARE_OF_ENCODING = 0.65
"""Of the budget, at most."""
_FIRST_SECONDS = 600
_SHARE_OF_PASSAGES = 0.1
"""Of what the budget has beyond ten minutes, for more than the beginning of each document.

A cross-encoder gains more in that time.
"""
_SECONDS_OF_A_DOCUMENT = 0.008
"""Less of it for each document, which takes time in the other steps too."""
_ENCODED_LENGTHS = (128, 64, 32)
"""How many tokens of a document's beginning are encoded."""
_PASSAGES = (64, 32, 16, 8, 4, 2)
"""How many passages of a document are encoded, where there is time."""
_SECONDS_OF_A_PASSAGE = 112 * _SECONDS_OF_A_TOKEN
"""Of 80 words."""
_MOST_EPOCHS = 20


def seconds_in(text: str) -> float:
    """Read a duration such as ``2h``, ``90m`` or ``1h30m``.

    Raises:
        HarpError: the text is not a duration, or one of no length.
    """
    found = _DURATION.fullmatch(text.replace(" ", "").lower())
    hours, minutes, seconds = (float(part or 0) for part in found.groups()) if found else (0, 0, 0)
    seconds += 3600 * hours + 60 * minutes
    if not seconds:
        raise HarpError(f"--budget {text!r} is not a duration: give one such as 2h, 90m or 1h30m")
    return seconds


def training_data(recipe: dict[str, Any]) -> PreTrainingData:
    """Open the groups that a recipe of training draws from its build."""
    names = DrawOptions.__dataclass_fields__.keys() & recipe.keys()
    draw = DrawOptions(**{name: recipe[name] for name in names})
    return PreTrainingData(recipe["build_dir"], recipe["tasks"], seed=recipe["seed"], draw=draw)


def ranking_dtype() -> Dtype:
    """Return the type of numbers that ranks fastest on this machine without other results."""
    from ...training.arguments import multiplies_in_bf16

    return "bfloat16" if multiplies_in_bf16("auto", use_cpu=False) else "float32"


def measured_speed(
    data: PreTrainingData, model: str, max_length: int, seed: int, dtype: str = "float32"
) -> float:
    """Measure how many pairs of a build the model scores in a second on this machine.

    Args:
        data: the groups of the build.
        model: the base model; its head may be untrained.
        max_length: tokens of a pair.
        seed: draws the pairs.
        dtype: type of the numbers that it computes with.
    """
    places = generator(seed, "speed").integers(len(data), size=_MEASURED_GROUPS).tolist()
    pairs = [pair for place in places for pair in data.group(0, place).members]
    texts = [pair.query for pair in pairs], [pair.document for pair in pairs]
    scorer = Scorer(model, max_length=max_length, dtype=dtype, allow_untrained=True)
    scorer.score(*(side[:4] for side in texts))
    began = time.perf_counter()
    scorer.score(*texts)
    return len(pairs) / (time.perf_counter() - began)


def encoder_reading(dataset: str, budget: float) -> dict[str, Any]:
    """Choose how much of each document the encoder reads: the same on any machine.

    Args:
        dataset: id of the dataset.
        budget: seconds for all of the command.

    Returns:
        The arguments ``max_length`` and ``max_passages`` of `DenseCosine`. Up to 64 passages of
        each document, of 128 tokens, have two thirds of the first ten minutes of the budget and a
        tenth of the rest. Where that is one passage, the first 128, 64 or 32 tokens of a document
        have two thirds of the budget. Both are less 8 ms for each document.
    """
    words = _word_counts(dataset, Dataset(dataset).documents_hash)
    others = _SECONDS_OF_A_DOCUMENT * len(words)
    first = min(budget, _FIRST_SECONDS)
    for_passages = _SHARE_OF_ENCODING * first + _SHARE_OF_PASSAGES * (budget - first) - others
    parts = np.ceil((words - COMMON_WORDS) / OWN_WORDS).clip(min=1)
    for most in _PASSAGES:
        if parts.clip(max=most).sum() * _SECONDS_OF_A_PASSAGE <= for_passages:
            return {"max_length": _ENCODED_LENGTHS[0], "max_passages": most}
    each = (_SHARE_OF_ENCODING * budget - others) / len(words) / _SECONDS_OF_A_TOKEN
    length = next((length for length in _ENCODED_LENGTHS if length <= each), _ENCODED_LENGTHS[-1])
    return {"max_length": length, "max_passages": 1}


@lru_cache(maxsize=1)
def _word_counts(dataset: str, content: str | None) -> np.ndarray:
    """(documents,) the words of each document; ``content`` is the hash of them all."""
    return np.array([len(text.split()) for _, text in Dataset(dataset).documents()])


def seconds_of_a_step(pairs_per_second: float, recipe: dict[str, Any], *, bf16: bool) -> float:
    """Work out how long a step of a recipe takes.

    Args:
        pairs_per_second: that the model scores, as `measured_speed` finds.
        recipe: of the training.
        bf16: whether the training multiplies in bf16.
    """
    pairs = recipe["per_device_train_batch_size"] * (1 + recipe["negatives_per_group"])
    precision = "bf16" if bf16 else "fp32"
    cost = _TRAINING_COST[precision] + bool(recipe.get("teacher")) * _TEACHER_COST[precision]
    return pairs * cost / pairs_per_second


def training_steps(seconds: float, of_a_step: float, recipe: dict[str, Any], groups: int) -> int:
    """Work out how many steps of a recipe fit into a time.

    Args:
        seconds: the time.
        of_a_step: how long one takes.
        recipe: of the training.
        groups: how many groups one epoch has.

    Returns:
        At most 20 epochs, which teach all that there is.
    """
    most = _MOST_EPOCHS * groups // recipe["per_device_train_batch_size"]
    return min(int(seconds / of_a_step), most)
