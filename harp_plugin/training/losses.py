"""Training losses, each a formula on the model's output, and their weighted sum (eq. 16)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import HarpError
from ..registry import Registry

Loss = Callable[..., Tensor]
LOSSES: Registry[Loss] = Registry("harp_plugin.losses", "loss")


@dataclass(frozen=True, slots=True)
class LossInputs:
    """What a loss can be computed from. A loss takes the fields that its parameters name.

    Attributes:
        scores: relevance scores, fp32, (groups, members); the positive stands in column 0.
        mask: where a group has a member, bool, (groups, members).
        mlm_logits: predictions at the masked tokens, fp32, (masked, vocabulary), or None.
        mlm_labels: the masked tokens' true ids, int64, (masked,), or None.
        teacher_scores: scores to learn from, fp32, (groups, members), or None.
    """

    scores: Tensor
    mask: Tensor
    mlm_logits: Tensor | None = None
    mlm_labels: Tensor | None = None
    teacher_scores: Tensor | None = None


@LOSSES.register("hinge")
def hinge(scores: Tensor, mask: Tensor) -> Tensor:
    """Hinge on the score difference, max(0, 1 − s⁺ + s⁻), eq. 6.

    Of several negatives the mean is taken, so that a group weighs the same in the gradient however
    many negatives it has; for one negative this is eq. 6 itself.

    Returns:
        The loss of each group, (groups,).
    """
    positive, negatives = scores[:, :1], scores[:, 1:]
    return mean_over_negatives(F.relu(1 - positive + negatives), mask)


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

    In print eq. 18 lacks the minus sign. The positive has label y = 1, the negatives have 0, and
    eq. 18's N are the group's members.

    Returns:
        The loss of each group, the mean over its members, (groups,).
    """
    labels = torch.zeros_like(scores)
    labels[:, 0] = 1
    values = F.binary_cross_entropy_with_logits(scores, labels, reduction="none")
    return (values * mask).sum(dim=1) / mask.sum(dim=1)


@LOSSES.register("lce")
def lce(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax cross-entropy over the group, −log(exp s⁺ / Σ exp s): Wikiformer, eq. 3 to 6.

    Known as localized contrastive estimation (Gao, Dai and Callan 2021, eq. 6).

    Returns:
        The loss of each group, (groups,).
    """
    return -scores.masked_fill(~mask, -torch.inf).log_softmax(dim=1)[:, 0]


@LOSSES.register("margin_mse")
def margin_mse(scores: Tensor, mask: Tensor, teacher_scores: Tensor) -> Tensor:
    """Margin-MSE, ((s⁺ − s⁻) − (t⁺ − t⁻))² with the teacher's scores t: Hofstätter et al. 2020.

    Returns:
        The loss of each group, the mean over its negatives, (groups,).
    """
    margins, wanted = (given[:, :1] - given[:, 1:] for given in (scores, teacher_scores))
    return mean_over_negatives((margins - wanted) ** 2, mask)


@LOSSES.register("kl")
def kl(scores: Tensor, mask: Tensor, teacher_scores: Tensor) -> Tensor:
    """Kullback-Leibler divergence Σ p log(p / q), p = softmax of the teacher's scores, q of ours.

    The distillation of Lin, Yang and Lin 2020 (TCT-ColBERT), over the members of a group.

    Returns:
        The loss of each group, (groups,).
    """
    log_q, log_p = (
        given.masked_fill(~mask, -torch.inf).log_softmax(dim=1).masked_fill(~mask, 0)
        for given in (scores, teacher_scores)
    )
    return F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(dim=1)


@LOSSES.register("mlm")
def mlm(mlm_logits: Tensor, mlm_labels: Tensor) -> Tensor:
    """Masked language model, −log p(x̂ | x without the masked tokens), eq. 15.

    Returns:
        The loss of each masked token, (masked,).
    """
    return F.cross_entropy(mlm_logits, mlm_labels, reduction="none")


def mean_over_negatives(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of (groups, members − 1) values over each group's negatives, (groups,)."""
    present = mask[:, 1:]
    return (values * present).sum(dim=1) / present.sum(dim=1)


class WeightedSum:
    """The total loss: a sum of registered losses with their weights, eq. 16.

    Args:
        weights: weight of each loss by its registered name, such as ``{"hinge": 1, "mlm": 1}``; a
            weight of 0 leaves a loss out.

    Raises:
        HarpError: a name is not registered, a weight is negative, no loss is left, or a loss asks
            for an input that `LossInputs` does not have.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = checked_weights("losses", weights)
        self.losses = {name: LOSSES[name] for name in self.weights}
        self.parameters = {name: _parameters(name, loss) for name, loss in self.losses.items()}

    @property
    def needs_mlm(self) -> bool:
        """Whether a loss reads the predictions at masked tokens."""
        return any("mlm_logits" in names for names in self.parameters.values())

    @property
    def needs_scores(self) -> bool:
        """Whether a loss reads the relevance scores."""
        return any(self.is_pair_loss(name) for name in self.weights)

    @property
    def of_teacher(self) -> list[str]:
        """Names of the losses that read a teacher's scores."""
        return [name for name, given in self.parameters.items() if "teacher_scores" in given]

    def is_pair_loss(self, name: str) -> bool:
        """Whether the loss gives one value for each group."""
        return "scores" in self.parameters[name]

    def terms(self, inputs: LossInputs) -> dict[str, Tensor]:
        """Each loss by name, unweighted: one value for each group or each masked token."""
        return {
            name: loss(**{field: getattr(inputs, field) for field in self.parameters[name]})
            for name, loss in self.losses.items()
        }


def checked_weights(option: str, given: Mapping[str, object]) -> dict[str, float]:
    """The weights that a recipe gives, in the order of their names, without those of 0.

    Raises:
        HarpError: one is not a number of at least 0, or none is left.
    """
    checked = {}
    for name, weight in sorted(given.items()):
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < 1e9:
            raise HarpError(f"{option}: {name!r} has weight {weight!r}: give a number, 0 or above")
        if weight:
            checked[name] = float(weight)
    if not checked:
        raise HarpError(f"{option} is empty: give at least one a weight above 0")
    return checked


def _parameters(name: str, loss: Loss) -> tuple[str, ...]:
    known = [field.name for field in fields(LossInputs)]
    names = tuple(inspect.signature(loss).parameters)
    if unknown := [parameter for parameter in names if parameter not in known]:
        raise HarpError(
            f"loss {name!r} asks for {', '.join(unknown)}: a loss can take {', '.join(known)}"
        )
    return names
