"""The line that a person sees for each log entry."""

from harp_plugin.training.progress import as_line


def test_a_line_fits_a_terminal():
    logs = {
        "loss": 1.4512,
        "grad_norm": 3.0,
        "loss/hinge": 0.84321,
        "loss/mlm": 6.2071,
        "accuracy": 0.6,
        **{f"{task}/accuracy": 1.0 for task in ("acm", "qdm", "rdp", "rqp")},
    }
    line = as_line(100000, logs)
    assert line.startswith("100000 loss 1.45 hinge 0.843 mlm 6.21 | acm 100% qdm 100% ")
    assert len(line) <= 80


def test_a_run_without_a_pair_loss_shows_no_accuracies():
    assert as_line(10, {"loss": 2.5, "loss/mlm": 2.5}) == "    10 loss 2.5 mlm 2.5"
