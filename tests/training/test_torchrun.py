"""The command line under torchrun: two nodes of one process each, on the loopback."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from .test_processes import free_port

STEPS = 4


@pytest.mark.slow
def test_two_nodes_train_what_one_process_trains(encyclopedia_build, still_bert, tmp_path):
    recipe = {
        "model": still_bert,
        "build_dir": str(encyclopedia_build),
        "output_dir": str(tmp_path / "two"),
        "tasks": {"rqp": 1, "qdm": 1, "rdp": 1, "acm": 1},
        "losses": {"hinge": 1, "mlm": 1},
        "bf16": False,
        "max_length": 40,
        "per_device_train_batch_size": 3,
        "max_steps": STEPS,
        "optim": "sgd",
        "learning_rate": 0.1,
        "logging_steps": 1,
        "disable_tqdm": True,
    }
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(recipe))
    train = ["-m", "harp_plugin.cli", "train", str(path)]
    nodes = ["--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d"]
    meeting = ["--rdzv-endpoint", f"localhost:{free_port()}"]
    line = [sys.executable, "-m", "torch.distributed.run", *nodes, *meeting, *train]
    alone = ["--output_dir", str(tmp_path / "one"), "--per_device_train_batch_size", "6"]
    options = {
        "env": os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        "stderr": subprocess.PIPE,
        "text": True,
    }
    both = [subprocess.Popen(line, **options) for _ in range(2)]
    for node in both:
        _, errors = node.communicate(timeout=300)
        assert node.returncode == 0, errors
    subprocess.run([sys.executable, *train, *alone], check=True, **options)
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys()
    for name, weight in one.items():
        torch.testing.assert_close(two[name], weight, atol=1e-6, rtol=1e-5)
    manifest = json.loads((tmp_path / "two" / "manifest.json").read_text())
    assert manifest["settings"]["processes"] == 2
