import math

import pytest
import torch

from harp_plugin.errors import HarpError
from harp_plugin.training.losses import (
    LOSSES,
    LossInputs,
    WeightedSum,
    bce,
    hinge,
    kl,
    lce,
    margin_mse,
    mlm,
    ranknet,
    softmax_margin,
)

BOTH = torch.tensor([[True, True]])
PAIR_LOSSES = ["hinge", "softmax_margin", "ranknet", "lce", "bce"]
OF_TEACHER = ["margin_mse", "kl"]


def ragged(seed, groups=40):
    """Scores of groups of two to nine members, where a member stands, and the sizes."""
    torch.manual_seed(seed)
    scores = torch.randn(groups, 9) * 5
    sizes = torch.arange(groups) % 8 + 2
    return scores, torch.arange(9) < sizes[:, None], sizes.tolist()


def teacher_of(name, scores):
    """What the loss takes beside scores and mask: a teacher that ranks the other way round."""
    return [1 - scores.detach()] if name in OF_TEACHER else []


def test_hinge_by_hand():
    scores = torch.tensor([[2.0, 0.5], [0.2, 0.5], [0.0, 0.0]])
    mask = torch.ones_like(scores, dtype=torch.bool)
    assert hinge(scores, mask).tolist() == pytest.approx([0.0, 1.3, 1.0])


def test_hinge_is_the_mean_over_the_negatives_that_are_there():
    scores = torch.tensor([[1.0, 1.0, 2.0], [1.0, 1.5, 99.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    assert hinge(scores, mask).tolist() == pytest.approx([(1 + 2) / 2, 1.5])


@pytest.mark.parametrize(("positive", "negative", "slope"), [(0.3, 0.9, 1.0), (3.0, 0.5, 0.0)])
def test_gradient_of_hinge_is_one_on_misordered_pairs_and_none_beyond_the_margin(
    positive, negative, slope
):
    scores = torch.tensor([[positive, negative]], requires_grad=True)
    hinge(scores, BOTH).sum().backward()
    assert scores.grad.tolist() == [[-slope, slope]]


def test_hinge_pulls_each_misordered_pair_alike():
    scores = torch.tensor([[0.0, 1.0, 2.0, -3.0, 9.0]], requires_grad=True)
    mask = torch.tensor([[True, True, True, True, False]])
    hinge(scores, mask).sum().backward()
    expected = [-2 / 3, 1 / 3, 1 / 3, 0, 0]
    assert scores.grad[0].tolist() == pytest.approx(expected)


def test_softmax_margin_is_the_margin_loss_on_the_softmax():
    torch.manual_seed(0)
    scores = torch.randn(50, 2, dtype=torch.float64) * 4
    probabilities = scores.softmax(dim=1)
    margin = torch.nn.MarginRankingLoss(margin=1.0, reduction="none")
    expected = margin(probabilities[:, 0], probabilities[:, 1], torch.ones(50))
    ours = softmax_margin(scores, torch.ones(50, 2, dtype=torch.bool))
    torch.testing.assert_close(ours, expected)


def test_ranknet_by_hand():
    scores = torch.tensor([[math.log(3.0), 0.0, math.log(3.0)], [0.0, math.log(3.0), 99.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    expected = [(math.log(4 / 3) + math.log(2)) / 2, math.log(4)]
    assert ranknet(scores, mask).tolist() == pytest.approx(expected, rel=1e-6)


def test_ranknet_against_soft_margin_loss_on_each_ragged_group():
    scores, mask, sizes = ragged(4)
    for row, size, value in zip(scores, sizes, ranknet(scores, mask), strict=True):
        margins = row[0] - row[1:size]
        theirs = torch.nn.functional.soft_margin_loss(margins, torch.ones(size - 1))
        torch.testing.assert_close(value, theirs)


def test_bce_by_hand():
    scores = torch.tensor([[math.log(3.0), 0.0, math.log(4.0)], [0.0, -math.log(3.0), 99.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    expected = [
        (math.log(4 / 3) + math.log(2) + math.log(5)) / 3,
        (math.log(2) + math.log(4 / 3)) / 2,
    ]
    assert bce(scores, mask).tolist() == pytest.approx(expected, rel=1e-6)


def test_bce_against_cross_entropy_of_two_classes_on_each_ragged_group():
    scores, mask, sizes = ragged(5)
    for row, size, value in zip(scores, sizes, bce(scores, mask), strict=True):
        logits = torch.stack([torch.zeros(size), row[:size]], dim=1)
        labels = torch.tensor([1] + [0] * (size - 1))
        torch.testing.assert_close(value, torch.nn.functional.cross_entropy(logits, labels))


@pytest.mark.parametrize("name", PAIR_LOSSES + OF_TEACHER)
def test_gradients_of_large_scores_are_finite(name):
    scores = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]], requires_grad=True)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    values = LOSSES[name](scores, mask, *teacher_of(name, scores))
    values.sum().backward()
    assert values.isfinite().all() and scores.grad.isfinite().all()
    assert scores.grad[1, 2] == 0


def test_lce_by_hand():
    scores = torch.tensor([[math.log(3.0), 0.0, math.log(4.0)], [math.log(3.0), 0.0, 99.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    expected = [-math.log(3 / 8), -math.log(3 / 4)]
    assert lce(scores, mask).tolist() == pytest.approx(expected, rel=1e-6)


def test_lce_against_cross_entropy_on_each_ragged_group():
    scores, mask, sizes = ragged(3)
    scores.requires_grad_()
    ours = lce(scores, mask)
    (slopes,) = torch.autograd.grad(ours.sum(), scores)
    for group, size in enumerate(sizes):
        alone = scores[group : group + 1, :size].detach().requires_grad_()
        theirs = torch.nn.functional.cross_entropy(alone, torch.tensor([0]))
        theirs.backward()
        torch.testing.assert_close(ours[group], theirs)
        torch.testing.assert_close(slopes[group, :size], alone.grad[0])
        assert (slopes[group, size:] == 0).all()


@pytest.mark.parametrize("size", [1e4, 3e38])
def test_lce_of_large_scores_is_finite(size):
    scores = torch.tensor([[size, -size, 0.0], [0.0, size, 0.0]], requires_grad=True)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    values = lce(scores, mask)
    values.sum().backward()
    assert values.tolist() == pytest.approx([0.0, size])
    assert scores.grad.tolist() == [[0, 0, 0], [-1, 1, 0]]


def test_margin_mse_by_hand():
    scores = torch.tensor([[3.0, 1.0, 0.0], [0.5, 2.0, 99.0]])
    teacher = torch.tensor([[5.0, 4.0, 1.0], [7.0, 7.5, -99.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    expected = [((2 - 1) ** 2 + (3 - 4) ** 2) / 2, (-1.5 + 0.5) ** 2]
    assert margin_mse(scores, mask, teacher).tolist() == pytest.approx(expected)


def test_margin_mse_against_mse_loss_on_each_ragged_group():
    scores, mask, sizes = ragged(6)
    teacher, *_ = ragged(7)
    for row, wanted, size, value in zip(
        scores, teacher, sizes, margin_mse(scores, mask, teacher), strict=True
    ):
        margins = [given[0] - given[1:size] for given in (row, wanted)]
        torch.testing.assert_close(value, torch.nn.functional.mse_loss(*margins))


def test_kl_by_hand():
    scores = torch.tensor([[math.log(3.0), 0.0], [0.0, 0.0]])
    teacher = torch.tensor([[4.0, 4.0], [math.log(9.0) - 2, -2.0]])
    expected = [
        0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25),
        0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 0.5),
    ]
    both = torch.ones(2, 2, dtype=torch.bool)
    assert kl(scores, both, teacher).tolist() == pytest.approx(expected, rel=1e-5)


def test_kl_against_the_divergence_of_two_distributions_on_each_ragged_group():
    scores, mask, sizes = ragged(8)
    teacher, *_ = ragged(9)
    for row, wanted, size, value in zip(
        scores, teacher, sizes, kl(scores, mask, teacher), strict=True
    ):
        of_teacher, ours = (
            torch.distributions.Categorical(logits=given[:size]) for given in (wanted, row)
        )
        theirs = torch.distributions.kl_divergence(of_teacher, ours)
        torch.testing.assert_close(value, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OF_TEACHER)
def test_a_teacher_is_matched_up_to_a_constant(name):
    teacher, mask, _ = ragged(10)
    scores = (teacher + 3).requires_grad_()
    values = LOSSES[name](scores, mask, teacher)
    values.sum().backward()
    torch.testing.assert_close(values, torch.zeros(40), rtol=0, atol=1e-5)
    torch.testing.assert_close(scores.grad, torch.zeros(40, 9), rtol=0, atol=1e-5)
    assert (LOSSES[name](teacher + torch.arange(9), mask, teacher) > 0).all()


def test_mlm_by_hand():
    logits = torch.log(torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]))
    values = mlm(logits, torch.tensor([1, 2]))
    assert values.tolist() == pytest.approx([-math.log(0.25), -math.log(0.8)], rel=1e-5)


@pytest.mark.parametrize("name", PAIR_LOSSES + OF_TEACHER)
def test_gradient_of_pair_losses_by_finite_differences(name):
    torch.manual_seed(1)
    scores = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, True, True]] * 3 + [[True, True, False, False]] * 3)
    teacher = teacher_of(name, scores)
    assert torch.autograd.gradcheck(lambda s: LOSSES[name](s, mask, *teacher), scores)
    LOSSES[name](scores, mask, *teacher).sum().backward()
    assert (scores.grad[~mask] == 0).all()


def test_gradient_of_mlm_by_finite_differences():
    torch.manual_seed(2)
    logits = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 3, 3, 6, 1])
    assert torch.autograd.gradcheck(lambda x: mlm(x, labels), logits)


def test_sum_gives_each_loss_the_inputs_it_names():
    inputs = LossInputs(
        scores=torch.tensor([[0.0, 0.0]]),
        mask=BOTH,
        mlm_logits=torch.zeros(3, 4),
        mlm_labels=torch.tensor([0, 1, 2]),
    )
    total = WeightedSum({"hinge": 2, "mlm": 0.5})
    terms = total.terms(inputs)
    assert terms["hinge"].tolist() == [1.0]
    assert terms["mlm"].tolist() == pytest.approx([math.log(4)] * 3)
    assert total.needs_mlm and total.is_pair_loss("hinge") and not total.is_pair_loss("mlm")
    assert not WeightedSum({"hinge": 1, "mlm": 0}).needs_mlm
    assert total.needs_scores and not WeightedSum({"mlm": 1}).needs_scores
    assert total.reading("teacher_scores") == []
    several = WeightedSum({"lce": 1, "kl": 1, "margin_mse": 2})
    assert several.reading("teacher_scores") == ["kl", "margin_mse"]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"hing": 1}, "unknown loss 'hing': did you mean 'hinge'"),
        ({"hinge": -1}, "losses: 'hinge' has weight -1"),
        ({"hinge": "much"}, "losses: 'hinge' has weight 'much'"),
        ({"hinge": float("nan")}, "losses: 'hinge' has weight nan"),
        ({}, "losses is empty"),
    ],
)
def test_wrong_weights_are_named(weights, message):
    with pytest.raises(HarpError, match=message):
        WeightedSum(weights)


def test_loss_that_asks_for_what_is_not_there_is_named():
    LOSSES.register("distance")(lambda scores, embeddings: scores)
    try:
        with pytest.raises(HarpError, match="loss 'distance' asks for embeddings"):
            WeightedSum({"distance": 1})
    finally:
        LOSSES.unregister("distance")


def test_a_loss_of_masked_tokens_may_read_scores_too():
    LOSSES.register("both")(lambda scores, mlm_logits: mlm_logits[:, 0] * scores.sum())
    try:
        total = WeightedSum({"both": 1})
        assert total.needs_scores and total.needs_mlm
    finally:
        LOSSES.unregister("both")


def test_parameters_of_losses_by_hand():
    scores, mask = torch.tensor([[2.0, 1.5]]), BOTH
    inputs = LossInputs(scores, mask, teacher_scores=torch.tensor([[1.0, 3.0]]))
    losses = {
        "hinge": {"margin": 2},
        "lce": {"temperature": 0.5, "weight": 3},
        "kl": {"temperature": 2},
    }
    total = WeightedSum(losses)
    assert total.weights == {"hinge": 1.0, "kl": 1.0, "lce": 3.0}
    terms = total.terms(inputs)
    assert terms["hinge"].item() == pytest.approx(2 - 2 + 1.5)
    assert terms["lce"].item() == pytest.approx(math.log(1 + math.exp((1.5 - 2) / 0.5)))
    p, q = (torch.softmax(values / 2, 1) for values in (inputs.teacher_scores, scores))
    assert terms["kl"].item() == pytest.approx(float((p * (p / q).log()).sum()))


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ({"hinge": {"slope": 1}}, "'hinge' has no parameter 'slope': it has weight, margin"),
        ({"hinge": {"margin": "wide"}}, "margin of 'hinge' is 'wide': it must be a number"),
        ({"hinge": {"margin": True}}, "margin of 'hinge' is True: it must be a number"),
        ({"hinge": {"margin": -1}}, "losses: margin of 'hinge' is -1: it must be at least 0"),
        ({"lce": {"temperature": 0}}, "losses: temperature of 'lce' is 0: it must be above 0"),
        ({"lce": {"temperature": math.nan}}, "temperature of 'lce' is nan: it must be a number"),
        ({"lce": {"weight": "much"}}, "losses: 'lce' has weight 'much'"),
        ({"ranknet": {"margin": 1}}, "'ranknet' has no parameter 'margin': it has weight"),
    ],
)
def test_parameters_that_make_no_sense(losses, message):
    with pytest.raises(HarpError) as refusal:
        WeightedSum(losses)
    assert message in str(refusal.value)


def test_a_loss_of_another_package_may_have_parameters():
    def scaled(scores, mask, *, scale=1.0):
        return scale * hinge(scores, mask)

    LOSSES.register("scaled")(scaled)
    try:
        [term] = (
            WeightedSum({"scaled": {"scale": 4}})
            .terms(LossInputs(torch.tensor([[0.0, 0.0]]), BOTH))
            .values()
        )
        assert term.item() == 4
    finally:
        LOSSES.unregister("scaled")
