"""The picture of a run."""

import json
import sys

import pytest

from harp_plugin.training.curves import CURVES, draw_curves, panels_of
from harp_plugin.training.run import fit

from .conftest import SentenceGroups


def test_a_run_leaves_a_picture(options):
    folder = fit(SentenceGroups(), *options(max_steps=2))
    assert (folder / CURVES).read_bytes().startswith(b"\x89PNG")


def test_same_log_same_bytes(tmp_path):
    log = [{"step": step, "loss": 1 / step, "loss/hinge": 1 / step} for step in range(1, 50)]
    for name in ("a.png", "b.png"):
        draw_curves(log, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_panels():
    log = [
        {"step": 1, "loss": 3, "loss/hinge": 1, "loss/mlm": 2, "rqp/loss": 1, "qdm/loss": 1},
        {"step": 1, "rqp/accuracy": 1, "qdm/accuracy": 1, "accuracy": 1},
        {"step": 1, "eval_nDCG@10": 0.5, "eval_loss": 3, "eval_loss/mlm": 2, "eval_accuracy": 1},
        {"step": 1, "tokens_per_second": 9, "train_runtime": 1},
    ]
    assert panels_of(log) == {
        "total loss": {"training": "loss", "held out": "eval_loss"},
        "hinge loss": {"training": "loss/hinge"},
        "mlm loss": {"training": "loss/mlm", "held out": "eval_loss/mlm"},
        "pair loss by task": {"rqp": "rqp/loss", "qdm": "qdm/loss"},
        "pairs in the right order": {"rqp": "rqp/accuracy", "qdm": "qdm/accuracy"},
        "pairs in the right order, held out": {"held out": "eval_accuracy"},
        "ranking, validation queries": {"nDCG@10": "eval_nDCG@10"},
    }


def test_nothing_logged_draws_nothing(tmp_path):
    draw_curves([], tmp_path / CURVES)
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_a_run_ends_well(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("harp_plugin.training.curves.find_spec", lambda name: None)
    with caplog.at_level("INFO"):
        draw_curves([{"step": 1, "loss/mlm": 1.0}], tmp_path / CURVES)
    assert not list(tmp_path.iterdir()) and "pip install matplotlib" in caplog.text
    assert "matplotlib.pyplot" not in sys.modules


def test_tensorboard_shows_what_is_logged(options):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    changes = {"max_steps": 4, "eval_strategy": "steps", "eval_steps": 2}
    changes |= {"validation_build_dir": "unread", "report_to": "tensorboard"}
    folder = fit(SentenceGroups(), *options(**changes), held_out=SentenceGroups(4))
    (events,) = (folder / "runs").iterdir()
    scalars = EventAccumulator(str(events)).Reload()
    log = json.loads((folder / "training_log.json").read_text())
    for tag, key in (
        ("train/loss/hinge", "loss/hinge"),
        ("train/rqp/accuracy", "rqp/accuracy"),
        ("eval/loss", "eval_loss"),
    ):
        logged = [(line["step"], pytest.approx(line[key], rel=1e-6)) for line in log if key in line]
        assert [(event.step, event.value) for event in scalars.Scalars(tag)] == logged
    assert len(scalars.Scalars("train/tokens_per_second")) == 4
