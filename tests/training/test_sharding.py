"""FSDP: two processes that shard the model, gloo on the CPU, against one that does not.

Accelerate offers FSDP on accelerators alone; here it is told that a CPU is one. The sharding itself
is torch's.
"""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file
from torch import multiprocessing

from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.ranking import Scorer
from harp_plugin.training.run import fit

from .conftest import SentenceGroups, parse
from .test_processes import free_port, join, log_of

SHARDED = {
    "fsdp": True,
    "fsdp_config": {"version": 2, "transformer_layer_cls_to_wrap": ["BertLayer"]},
}


class ScoreOfAPair:
    """A validation that scores through the scorer that ranks."""

    dataset, queries, measures = "none", (), ("score",)

    def __call__(self, model, tokenizer, files):
        return {
            "score": float(Scorer.from_model(model, tokenizer).score(["query"], ["document"])[0])
        }


def allow_sharding_on_a_cpu() -> None:
    from accelerate.state import AcceleratorState, PartialState
    from accelerate.utils import DistributedType

    stock = AcceleratorState.__init__

    def sharding(self, *args, fsdp_plugin=None, **options):
        stock(self, *args, fsdp_plugin=fsdp_plugin, **options)
        if fsdp_plugin is not None:
            self.distributed_type = DistributedType.FSDP
            PartialState._shared_state["distributed_type"] = DistributedType.FSDP
            self.fsdp_plugin = fsdp_plugin

    AcceleratorState.__init__ = sharding


def train_as_one_of_two(rank: int, port: int, recipe: dict) -> None:
    join(rank, port)
    if "fsdp" in recipe:
        allow_sharding_on_a_cpu()
        del TrainableCrossEncoder._score_padded  # sharded batches are packed too
    fit(SentenceGroups(), *parse(recipe), validation=ScoreOfAPair())
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_sharded_training_is_unsharded_training_and_resumes(still_bert, tmp_path):
    def recipe(name, **changes):
        return {
            "model": still_bert,
            "build_dir": "unread",
            "tasks": {"rqp": 1, "qdm": 1},
            "output_dir": str(tmp_path / name),
            "max_length": 40,
            "per_device_train_batch_size": 3,
            "max_steps": 4,
            "save_steps": 2,
            "logging_steps": 1,
            "learning_rate": 1e-2,
            # Else Adam makes steps of what is but rounding where a gradient is 0.
            "adam_epsilon": 1e-2,
            "warmup_ratio": 0,
            "eval_strategy": "steps",
            "eval_steps": 2,
            "validation_dataset": "none",
            "validation_measures": ["score"],
            "load_best_model_at_end": True,
            "use_cpu": True,
            "disable_tqdm": True,
            **changes,
        }

    def shard(name):
        arguments = free_port(), recipe(name, **SHARDED)
        multiprocessing.spawn(train_as_one_of_two, args=arguments, nprocs=2)
        return tmp_path / name

    both = parse(recipe("whole", per_device_train_batch_size=6))
    fit(SentenceGroups(), *both, validation=ScoreOfAPair())
    whole, sharded = tmp_path / "whole", shard("sharded")
    for first, second in zip(log_of(whole), log_of(sharded), strict=True):
        assert first == pytest.approx(second, abs=1e-4, rel=1e-3)
        if "loss" in first:
            assert first["loss"] == pytest.approx(second["loss"], abs=1e-4)
    weights = [load_file(folder / "model.safetensors") for folder in (whole, sharded)]
    assert weights[0].keys() == weights[1].keys()
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight, atol=1e-4, rtol=1e-4)
    best = json.loads((sharded / "manifest.json").read_text())["metrics"]["eval_score"]
    loaded = Scorer(str(sharded)).score(["query"], ["document"])
    assert loaded[0] == pytest.approx(best, abs=1e-6)

    shutil.copytree(sharded, tmp_path / "resumed")
    shutil.rmtree(tmp_path / "resumed" / "checkpoint-4")
    for name in ("manifest.json", "config.json", "model.safetensors", "training_log.json"):
        (tmp_path / "resumed" / name).unlink()
    resumed = shard("resumed")
    for name in ("model.safetensors", "training_log.json"):
        assert (resumed / name).read_bytes() == (sharded / name).read_bytes()
