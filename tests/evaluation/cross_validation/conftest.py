"""A judged collection, its first-stage run, and cross-validations of a tiny model on it."""

from pathlib import Path

import pytest
from training.judged_data import QRELS, register, write_run

from harp_plugin.evaluation.cross_validation import CrossValidationOptions

FINETUNING = {
    "max_length": 32,
    "negatives_per_group": 3,
    "depth": 20,
    "per_device_train_batch_size": 4,
    "learning_rate": 1e-2,
    "num_train_epochs": 2,
    "warmup_ratio": 0.0,
    "use_cpu": True,
}


@pytest.fixture(scope="session")
def judged(tmp_path_factory):
    """Id of a dataset of 12 queries, of which q3 has no relevant document; and a run."""
    folder = tmp_path_factory.mktemp("judged")
    qrels = [(query, doc, 0 if query == "q3" else label) for query, doc, label in QRELS]
    return register(folder, qrels=qrels), write_run(folder / "first.run")


@pytest.fixture(scope="session")
def make(judged, tiny_bert):
    """Options of a small cross-validation into a folder, changed as asked."""

    def options(folder: Path, **changes) -> CrossValidationOptions:
        dataset, run = judged
        given = {
            "dataset": dataset,
            "first_stage": run,
            "depth": 8,
            "systems": {
                "slow": {"model": str(tiny_bert), "finetuning": {"learning_rate": 1e-4}},
                "fast": str(tiny_bert),
            },
            "folds": 2,
            "train_queries": [0, 2, None],
            "finetuning": FINETUNING,
            "measures": ["AP", "nDCG@10"],
            "output_dir": str(folder),
            "quiet": True,
        }
        return CrossValidationOptions(**given | changes)

    return options
