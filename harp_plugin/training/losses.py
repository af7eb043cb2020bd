"""Training losses, each a formula on values of a model, and their weighted sum (eq. 16).

A loss is a function. Its positional parameters name fields of
`harp_plugin.models.trainable.LossInputs`; its keyword-only parameters are numbers that a recipe may
set: ``{"hinge": {"weight": 1, "margin": 0.5}}`` next to ``{"hinge": 1}``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import fields
from functools import partial
from inspect import Parameter, signature
from typing import Annotated, Any, get_type_hints

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import HarpError
from ..models.trainable import LossInputs
from ..options import Interval, checked
from ..registry import Registry

__all__ = [
    "CITATIONS",
    "LOSSES",
    "Loss",
    "LossOption",
    "Margin",
    "Temperature",
    "WeightedSum",
    "bce",
    "checked_weights",
    "contrastive",
    "hinge",
    "kl",
    "lce",
    "margin_mse",
    "mean_over_negatives",
    "mlm",
    "ranknet",
    "softmax_margin",
]

Loss = Callable[..., Tensor]
"""A function from fields of `LossInputs` to one value for each group or each masked token."""
LossOption = Mapping[str, "float | Mapping[str, float]"]
"""The weight of each loss by name, or an object with its weight and its parameters."""
LOSSES: Registry[Loss] = Registry("harp_plugin.losses", "loss")
"""All losses by the names that a recipe gives them."""
CITATIONS = {
    "ranknet": "burges2005ranknet",
    "contrastive": "xie2023anchordr",
    "lce": "gao2021lce",
    "margin_mse": "hofstaetter2020margin",
    "kl": "lin2020distilling",
}
"""Key in ``data/citations.bib`` of the paper of a loss that is not HARP's."""
Margin = Annotated[float, Interval(ge=0)]
"""Type of a margin, with its limits."""
Temperature = Annotated[float, Interval(gt=0)]
"""Type of a temperature, with its limits."""


@LOSSES.register("hinge")
def hinge(scores: Tensor, mask: Tensor, *, margin: Margin = 1.0) -> Tensor:
    """Hinge on the score difference, max(0, margin − s⁺ + s⁻); in eq. 6 the margin is 1.

    If a group has several negatives, their mean is taken, so that a group has the same weight in
    the gradient with any number of negatives. For one negative this is eq. 6 itself.

    Returns:
        The loss of each group, (groups,).
    """
    positive, negatives = scores[:, :1], scores[:, 1:]
    return mean_over_negatives(F.relu(margin - positive + negatives), mask)


@LOSSES.register("softmax_margin")
def softmax_margin(scores: Tensor, mask: Tensor) -> Tensor:
    """Margin loss on the softmax of (s⁺, s⁻), which is 2σ(s⁻ − s⁺): HARP's released code.

    Returns:
        The loss of each group, the mean over its negatives, (groups,).
    """
    positive, negatives = scores[:, :1], scores[:, 1:]
    return mean_over_negatives(2 * torch.sigmoid(negatives - positive), mask)


@LOSSES.register("ranknet")
def ranknet(scores: Tensor, mask: Tensor) -> Tensor:
    """RankNet, −log σ(s⁺ − s⁻) = log(1 + exp(s⁻ − s⁺)): Burges et al. 2005, eq. 3.

    Returns:
        The loss of each group, the mean over its negatives, (groups,).
    """
    positive, negatives = scores[:, :1], scores[:, 1:]
    return mean_over_negatives(F.softplus(negatives - positive), mask)


@LOSSES.register("bce")
def bce(scores: Tensor, mask: Tensor) -> Tensor:
    """Binary cross-entropy of every member, −y log σ(s) − (1 − y) log(1 − σ(s)): HARP, eq. 18.

    The printed eq. 18 lacks the minus sign. The positive has the label y = 1 and the negatives have
    the label 0; N in eq. 18 is the number of members of the group.

    Returns:
        The loss of each group, the mean over its members, (groups,).
    """
    labels = torch.zeros_like(scores)
    labels[:, 0] = 1
    values = F.binary_cross_entropy_with_logits(scores, labels, reduction="none")
    return (values * mask).sum(dim=1) / mask.sum(dim=1)


@LOSSES.register("lce")
def lce(scores: Tensor, mask: Tensor, *, temperature: Temperature = 1.0) -> Tensor:
    """Softmax cross-entropy over the group, −log(exp s⁺ / Σ exp s): Wikiformer, eq. 3 to 6.

    All scores s are first divided by the temperature. The loss is also known as localized
    contrastive estimation (Gao, Dai and Callan 2021, eq. 6).

    Returns:
        The loss of each group, (groups,).
    """
    logits = (scores / temperature).masked_fill(~mask, -torch.inf)
    return -logits.log_softmax(dim=1)[:, 0]


@LOSSES.register("margin_mse")
def margin_mse(scores: Tensor, mask: Tensor, teacher_scores: Tensor) -> Tensor:
    """Margin-MSE, ((s⁺ − s⁻) − (t⁺ − t⁻))² with the teacher's scores t: Hofstätter et al. 2020.

    Returns:
        The loss of each group, the mean over its negatives, (groups,).
    """
    margins, teacher_margins = (
        values[:, :1] - values[:, 1:] for values in (scores, teacher_scores)
    )
    return mean_over_negatives((margins - teacher_margins) ** 2, mask)


@LOSSES.register("kl")
def kl(
    scores: Tensor, mask: Tensor, teacher_scores: Tensor, *, temperature: Temperature = 1.0
) -> Tensor:
    """Kullback-Leibler divergence Σ p log(p / q), p = softmax of the teacher's scores, q of ours.

    This is the distillation of Lin, Yang and Lin 2020 (TCT-ColBERT), over the members of a group.
    The teacher's scores and ours are first divided by the temperature.

    Returns:
        The loss of each group, (groups,).
    """
    log_q, log_p = (
        (values / temperature)
        .masked_fill(~mask, -torch.inf)
        .log_softmax(dim=1)
        .masked_fill(~mask, 0)
        for values in (scores, teacher_scores)
    )
    return F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(dim=1)


@LOSSES.register("contrastive")
def contrastive(
    batch_scores: Tensor, batch_mask: Tensor, *, temperature: Temperature = 0.05
) -> Tensor:
    """Softmax cross-entropy over the documents of the whole batch: Anchor-DR, eq. 1.

    −log(exp s⁺ / Σ exp s) over the group's own members and the documents of other groups (in-batch
    negatives). The printed eq. 1 lacks its log. All scores s are first divided by the temperature.

    Returns:
        The loss of each group, (groups,).
    """
    return lce(batch_scores, batch_mask, temperature=temperature)


@LOSSES.register("mlm")
def mlm(mlm_logits: Tensor, mlm_labels: Tensor) -> Tensor:
    """Masked language model, −log p(x̂ | x without the masked tokens), eq. 15.

    Returns:
        The loss of each masked token, (masked,).
    """
    dtype = torch.promote_types(mlm_logits.dtype, torch.float32)
    log_probabilities = mlm_logits.log_softmax(dim=1, dtype=dtype)
    return F.nll_loss(log_probabilities, mlm_labels, reduction="none")


def mean_over_negatives(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over the negatives of each group, (groups,).

    Args:
        values: a value for each negative, (groups, members − 1).
        mask: True where a group has a member, (groups, members).
    """
    present = mask[:, 1:]
    return (values * present).sum(dim=1) / present.sum(dim=1)


class WeightedSum:
    """The total loss: a sum of registered losses with their weights, eq. 16.

    Args:
        losses: the weight of each loss by its registered name, or an object with ``weight`` (1 if
            it is left out) and the parameters of the loss: ``{"hinge": {"margin": 2}, "mlm": 1}``.
            A weight of 0 leaves a loss out.

    Attributes:
        weights: weight of each loss by name.
        losses: each loss by name, with its parameters set.

    Raises:
        HarpError: a name is not registered, a weight is negative, no loss is left, a parameter is
            unknown or makes no sense, or a loss needs an input that `LossInputs` does not have.
    """

    def __init__(self, losses: LossOption) -> None:
        self.weights = checked_weights("losses", losses)
        self.losses = {name: _with_parameters(name, losses[name]) for name in self.weights}
        self._inputs = {name: _inputs_of(name) for name in self.weights}

    @property
    def needs_mlm(self) -> bool:
        """Return whether a loss reads the predictions at masked tokens."""
        return bool(self.reading("mlm_logits"))

    @property
    def needs_scores(self) -> bool:
        """Return whether a loss reads the relevance scores."""
        reading = self.reading("scores") or self.reading("batch_scores")
        return bool(reading) or any(self.is_pair_loss(name) for name in self.weights)

    def reading(self, field: str) -> list[str]:
        """Return the names of the losses that read a field of `LossInputs`."""
        return [name for name, inputs in self._inputs.items() if field in inputs]

    def is_pair_loss(self, name: str) -> bool:
        """Return whether the loss gives one value for each group, not for each masked token."""
        return "mlm_logits" not in self._inputs[name]

    def compiled(self, **options: Any) -> WeightedSum:
        """Return the same sum, whose losses of masked tokens are compiled.

        They then read the predictions once, and keep no copy of them in fp32.

        Args:
            options: ``backend``, ``mode`` and the like, as for `torch.compile`.
        """
        warnings.filterwarnings("ignore", r"\s*Online softmax is disabled")
        result = copy(self)
        of_tokens = self.reading("mlm_logits")
        result.losses = self.losses | {
            name: torch.compile(self.losses[name], dynamic=True, **options) for name in of_tokens
        }
        return result

    def terms(self, inputs: LossInputs) -> dict[str, Tensor]:
        """Return each loss, without weights: a value for each group or each masked token."""
        return {
            name: loss(**{field: getattr(inputs, field) for field in self._inputs[name]})
            for name, loss in self.losses.items()
        }


def checked_weights(option: str, values: Mapping[str, object]) -> dict[str, float]:
    """Check the weights of a recipe, and return those above 0 in the order of their names.

    Args:
        option: name of the option, for errors.
        values: weights by name, or objects with a ``weight``, which is 1 where it is left out.

    Raises:
        HarpError: a weight is not a number of at least 0, or no weight is above 0.
    """
    weights = {}
    for name, value in sorted(values.items()):
        weight = value.get("weight", 1) if isinstance(value, Mapping) else value
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < 1e9:
            raise HarpError(f"{option}: {name!r} has weight {weight!r}: give a number, 0 or above")
        if weight:
            weights[name] = float(weight)
    if not weights:
        raise HarpError(f"{option} is empty: give at least one a weight above 0")
    return weights


def _with_parameters(name: str, value: float | Mapping[str, float]) -> Loss:
    """Return a loss with the parameters that a recipe sets."""
    loss = LOSSES[name]
    values = dict(value) if isinstance(value, Mapping) else {}
    values.pop("weight", None)
    if not values:
        return loss
    parameters = [
        p.name for p in signature(loss).parameters.values() if p.kind is Parameter.KEYWORD_ONLY
    ]
    if unknown := [parameter for parameter in values if parameter not in parameters]:
        raise HarpError(
            f"losses: {name!r} has no parameter {unknown[0]!r}: it has "
            f"{', '.join(['weight', *parameters])}"
        )
    for parameter, number in values.items():
        checked(f"losses: {parameter} of {name!r}", _type_of(loss, parameter), number)
    return partial(loss, **values)


def _type_of(loss: Loss, parameter: str) -> Any:
    """Return the type of a parameter, with its limits, such as `Margin`."""
    try:
        hints = get_type_hints(loss, include_extras=True)
    except (NameError, TypeError):  # annotations of another package that cannot be resolved
        hints = {}
    return hints.get(parameter, float)


def _inputs_of(name: str) -> tuple[str, ...]:
    """Return the fields of `LossInputs` that a loss takes."""
    parameters = signature(LOSSES[name]).parameters.values()
    names = tuple(p.name for p in parameters if p.kind is not Parameter.KEYWORD_ONLY)
    inputs = [field.name for field in fields(LossInputs)]
    if unknown := [parameter for parameter in names if parameter not in inputs]:
        raise HarpError(
            f"loss {name!r} asks for {', '.join(unknown)}: a loss can take {', '.join(inputs)}; "
            "numbers that a recipe may set are keyword-only parameters"
        )
    return names
