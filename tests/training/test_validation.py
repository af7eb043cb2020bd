"""Ranking quality while training: best checkpoint, early stopping, and training left unmoved."""

import hashlib
import json
import random

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from harp_plugin.errors import HarpError
from harp_plugin.models.bi_encoder import TrainableBiEncoder
from harp_plugin.training.run import fit
from harp_plugin.training.run_folder import LOG
from harp_plugin.training.validation import measure_on_first_process
from harp_plugin.work.artifact import MANIFEST

from .conftest import DyingGroups, Killed, SentenceGroups

pytestmark = pytest.mark.integration

WEIGHTS = "model.safetensors"
WATCHED = {
    "eval_strategy": "steps",
    "eval_steps": 2,
    "validation_dataset": "scripted",
    "validation_measures": ["nDCG@10"],
    "warmup_ratio": 0,
}


class Scripted:
    """Gives values in turn, the same for the same weights; moves generators and the tokenizer."""

    dataset, queries, measures = "scripted", (), ("nDCG@10",)

    def __init__(self, *values):
        self.script = list(values)
        self.found = {}

    def __call__(self, model, tokenizer, files):
        assert not model.training and tokenizer.is_fast
        random.random(), np.random.rand(), torch.rand(1)
        tokenizer(["a text"], truncation=True, max_length=3, padding="max_length")
        content = b"".join(w.detach().numpy().tobytes() for w in model.state_dict().values())
        key = hashlib.sha256(content).digest()
        if key not in self.found:
            self.found[key] = self.script[len(self.found)]
        return {"nDCG@10": self.found[key]}


def run(options, validation=None, groups=None, held_out=None, **changes):
    return fit(
        groups or SentenceGroups(), *options(**changes), validation=validation, held_out=held_out
    )


def log_of(folder):
    return json.loads((folder / LOG).read_text())


def evaluated(folder):
    return {line["step"]: line["eval_nDCG@10"] for line in log_of(folder) if "eval_nDCG@10" in line}


DENSE = {"model_kind": "bi-encoder", "losses": {"contrastive": 1}}


@pytest.mark.parametrize(("on_start", "more"), [(False, {}), (True, {}), (True, DENSE)])
def test_training_goes_on_unmoved(on_start, more, options, tmp_path):
    changes = {"max_steps": 5, "save_steps": 5, "warmup_ratio": 0, **more}
    alone = run(options, output_dir=str(tmp_path / "alone"), **changes)
    changes = WATCHED | changes | {"eval_steps": 1, "eval_on_start": on_start}
    watched = run(options, Scripted(*range(9)), **changes)
    assert (alone / WEIGHTS).read_bytes() == (watched / WEIGHTS).read_bytes()
    assert log_of(alone) == [line for line in log_of(watched) if "loss" in line]
    steps = range(not on_start, 6)
    assert evaluated(watched) == {step: place for place, step in enumerate(steps)}
    assert json.loads((watched / MANIFEST).read_text())["metrics"].keys() >= {
        "loss",
        "eval_nDCG@10",
    }


def test_each_module_has_its_mode_again_after_a_validation(tiny_bert, tokenizer):
    model = TrainableBiEncoder.load(str(tiny_bert)).train()
    model.encoder.embeddings.eval()
    modes = [module.training for module in model.modules()]
    found = measure_on_first_process(Scripted(0.5), model, tokenizer)
    assert found == {"nDCG@10": 0.5} and not all(modes)
    assert [module.training for module in model.modules()] == modes


def test_the_last_step_is_validated(options):
    folder = run(options, Scripted(0.1, 0.2, 0.3), max_steps=5, **WATCHED)
    assert evaluated(folder) == {2: 0.1, 4: 0.2, 5: 0.3}


def test_the_best_checkpoint_is_kept(options):
    folder = run(
        options,
        Scripted(0.1, 0.3, 0.2, 0.2),
        max_steps=8,
        load_best_model_at_end=True,
        save_total_limit=1,
        **WATCHED,
    )
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["best_step"] == 4 and manifest["steps"] == 8
    assert manifest["metrics"]["eval_nDCG@10"] == 0.3 and manifest["metrics"]["step"] == 4
    final, best = (load_file(part / WEIGHTS) for part in (folder, folder / "checkpoint-4"))
    assert final.keys() == best.keys()
    assert all(torch.equal(final[name], best[name]) for name in final)


def test_only_better_checkpoints_are_saved(options):
    changes = {"save_strategy": "best", "load_best_model_at_end": True, "max_steps": 6}
    folder = run(options, Scripted(0.2, 0.1, 0.3), **WATCHED | changes)
    assert {path.name for path in folder.glob("checkpoint-*")} == {"checkpoint-2", "checkpoint-6"}


STOPPING = WATCHED | {"load_best_model_at_end": True, "early_stopping_patience": 2}


def test_early_stopping(options):
    folder = run(options, Scripted(0.1, 0.3, 0.2, 0.3), max_steps=20, **STOPPING)
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["steps"] == 8 and manifest["best_step"] == 4


def test_killed_and_resumed_with_best_checkpoint_and_early_stopping(options, tmp_path):
    validation = Scripted(0.1, 0.3, 0.2, 0.25, 0.9, 0.9)
    changes = STOPPING | {"max_steps": 20, "eval_on_start": True, "early_stopping_patience": 2}
    whole = run(options, validation, output_dir=str(tmp_path / "whole"), **changes)
    with pytest.raises(Killed):
        run(options, validation, DyingGroups(29), **changes)
    resumed = run(options, validation, **changes)
    for name in (WEIGHTS, LOG, MANIFEST):
        assert (whole / name).read_bytes() == (resumed / name).read_bytes()
    assert json.loads((whole / MANIFEST).read_text())["steps"] == 6


def test_killed_after_it_had_stopped_early_takes_no_further_step(options):
    validation = Scripted(0.3, 0.2, 0.1)
    changes = STOPPING | {"max_steps": 20}
    folder = run(options, validation, **changes)
    names = (WEIGHTS, LOG, MANIFEST)
    before = {name: (folder / name).read_bytes() for name in names}
    for name in names:
        (folder / name).unlink()
    assert run(options, validation, **changes) == folder
    assert {name: (folder / name).read_bytes() for name in names} == before


def test_the_best_checkpoint_is_found_where_the_folder_was_moved(options, tmp_path):
    validation = Scripted(0.1, 0.3, 0.2, 0.2)
    changes = WATCHED | {"load_best_model_at_end": True, "max_steps": 6}
    whole = run(options, validation, output_dir=str(tmp_path / "whole"), **changes)
    with pytest.raises(Killed):
        run(options, validation, DyingGroups(28), **changes)
    moved = (tmp_path / "out").rename(tmp_path / "moved")
    assert (moved / "checkpoint-4").is_dir()
    resumed = run(options, validation, output_dir=str(moved), **changes)
    assert json.loads((resumed / MANIFEST).read_text())["best_step"] == 4
    assert (whole / WEIGHTS).read_bytes() == (resumed / WEIGHTS).read_bytes()


def test_held_out_pairs(options):
    changes = WATCHED | {"validation_dataset": None, "validation_build_dir": "unread"}
    best = {"load_best_model_at_end": True, "max_steps": 4}
    folder = run(options, held_out=SentenceGroups(9), **changes | best)
    found = [line for line in log_of(folder) if "eval_loss" in line]
    assert [line["step"] for line in found] == [2, 4]
    assert {"eval_loss/hinge", "eval_accuracy", "eval_rqp/accuracy"} <= found[0].keys()
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["best_step"] == min(found, key=lambda line: line["eval_loss"])["step"]


def test_validation_that_nobody_measures(options):
    with pytest.raises(HarpError, match=r"call harp_plugin\.evaluation\.training"):
        run(options, **WATCHED)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"eval_strategy": "steps"}, "nothing to evaluate: name a validation_dataset"),
        ({"validation_dataset": "vaswani"}, "validation_dataset has no effect: set eval_strategy"),
        ({"early_stopping_patience": 2}, "early_stopping_patience has no effect"),
        (WATCHED | {"early_stopping_patience": 0}, "--early-stopping-patience is 0"),
        (WATCHED | {"validation_depth": 0}, "--validation-depth is 0"),
        (WATCHED | {"validation_measures": []}, "validation_measures is empty"),
        (
            WATCHED | {"load_best_model_at_end": True, "metric_for_best_model": "AP"},
            "metric_for_best_model is AP, which is not measured: choose one of nDCG@10$",
        ),
        *(
            (
                WATCHED | {"load_best_model_at_end": True, "metric_for_best_model": metric} | more,
                f"metric_for_best_model is {metric}, which is not measured: choose one of {known}",
            )
            for metric, more, known in (
                ("accurracy", {"validation_build_dir": "b"}, "nDCG@10, loss, accuracy, loss/NAME"),
                ("nDCG@10", {"validation_build_dir": "b", "validation_dataset": None}, "loss, acc"),
            )
        ),
    ],
)
def test_wrong_options(changes, message, options):
    with pytest.raises(HarpError, match=message):
        options(**changes)


def test_what_transformers_refuses(options):
    with pytest.raises(ValueError, match="round multiple of the evaluation"):
        options(**WATCHED | {"load_best_model_at_end": True, "save_steps": 3})


def test_best_is_the_first_measure_unless_said(options):
    def best(**changes):
        args = options(**WATCHED | {"load_best_model_at_end": True} | changes)[2]
        return args.metric_for_best_model, args.greater_is_better

    assert best() == ("nDCG@10", True)
    assert best(validation_measures=["RR@10", "AP"]) == ("RR@10", True)
    assert best(validation_dataset=None, validation_build_dir="b") == ("loss", False)
    assert best(metric_for_best_model="eval_nDCG@10") == ("eval_nDCG@10", True)


def test_the_best_loss_is_the_lowest(options):
    best = WATCHED | {"load_best_model_at_end": True, "validation_build_dir": "b"}
    for metric in ("loss", "eval_loss", "loss/lce", "eval_loss/mlm", "rqp/loss"):
        assert options(**best, metric_for_best_model=metric)[2].greater_is_better is False
    for metric in ("accuracy", "rqp/accuracy", "nDCG@10"):
        assert options(**best, metric_for_best_model=metric)[2].greater_is_better
    named = best | {"metric_for_best_model": "loss/lce", "greater_is_better": True}
    assert options(**named)[2].greater_is_better
