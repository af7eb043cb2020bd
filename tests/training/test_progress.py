"""The lines that a person sees."""

from harp_plugin.training.progress import evaluation_line, training_line

LOGS = {
    "loss": 1.4512,
    "grad_norm": 3.0,
    "loss/hinge": 0.84321,
    "loss/mlm": 6.2071,
    "accuracy": 0.6,
}
SPEED = {"tokens_per_second": 1234567.8, "pairs_per_second": 4321.98}


def accuracies(*tasks):
    return {f"{task}/accuracy": 1.0 for task in tasks}


def test_a_line_fits_a_terminal():
    line = training_line(100000, LOGS | accuracies("acm", "qdm", "rdp", "rqp"))
    assert line.startswith("100000 loss 1.45 hinge 0.843 mlm 6.21 | acm 100% qdm 100% ")
    assert len(line) <= 80


def test_speed_stands_on_a_line_of_its_own_where_one_is_too_short():
    short = training_line(7, LOGS | accuracies("rqp") | SPEED | {"tokens_per_second": 900.4})
    assert short == (
        "     7 loss 1.45 hinge 0.843 mlm 6.21 | rqp 100% | 900 tokens/s 4,322.0 pairs/s"
    )
    speed = SPEED | {"model_flops_utilisation": 0.456}
    long = training_line(7, LOGS | accuracies("acm", "ict", "qdm", "rdp", "rqp") | speed)
    assert long.splitlines() == [
        "     7 loss 1.45 hinge 0.843 mlm 6.21",
        "       acm 100% ict 100% qdm 100% rdp 100% rqp 100%",
        "       1,234,568 tokens/s 4,322.0 pairs/s 46% of peak",
    ]


def test_a_run_without_a_pair_loss_shows_no_accuracies():
    assert training_line(10, {"loss": 2.5, "loss/mlm": 2.5}) == "    10 loss 2.5 mlm 2.5"


def test_an_evaluation():
    logs = {"eval_nDCG@10": 0.41234, "eval_RR@10": 0.5, "epoch": 1}
    assert evaluation_line(200, logs) == "   200 validation nDCG@10 0.4123 RR@10 0.5"
    of_pairs = {"eval_loss": 2.0, "eval_loss/mlm": 1.0, "eval_rqp/accuracy": 1, "eval_accuracy": 1}
    assert evaluation_line(3, of_pairs) == "     3 validation loss 2 accuracy 1"
