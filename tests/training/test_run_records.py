"""What a run was made from, by the record of an earlier release, and what its log says."""

import pytest
from transformers.trainer_utils import speed_metrics

from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.training import checkpoint_files
from harp_plugin.training.folder import RunFolder
from harp_plugin.training.manifest import log_lines, read_made_from
from harp_plugin.work.provenance import OverwriteRules

RECORD = {
    "recipe": {"model": "tiny", "max_steps": 3, "max_query_length": None},
    "processes": 1,
    "groups_per_epoch": 24,
    "data": "abc",
    "inputs": {"model": "def"},
    "versions": {"torch": "2.0", "python": "3.11"},
}


def test_an_option_that_is_none_is_no_difference_to_one_that_is_not_recorded():
    present, earlier = {**RECORD}, {**RECORD, "recipe": {"model": "tiny", "max_steps": 3}}
    assert not read_made_from(present).difference(read_made_from(earlier))
    other = {**RECORD, "recipe": {"model": "tiny", "max_steps": 3, "max_query_length": 9}}
    assert read_made_from(other).difference(read_made_from(earlier)) == (
        "max_query_length: nothing then, 9 now"
    )


@pytest.mark.parametrize("counts", [{}, {"num_samples": 1, "num_steps": 1, "num_tokens": 1}])
def test_a_log_holds_nothing_that_the_clock_decides(counts):
    speed = speed_metrics("train", 0.0, **counts)
    assert log_lines([{"loss": 1.0, "step": 1, **speed}]) == [{"loss": 1.0, "step": 1}]


def test_the_version_of_python_is_no_difference():
    made_from = read_made_from({**RECORD, "versions": {"torch": "2.0"}})
    assert not made_from.version_difference(read_made_from(RECORD))


def test_a_run_that_is_killed_while_it_replaces_another_can_be_started_again(tmp_path, monkeypatch):
    def folder(seed):
        return RunFolder(
            tmp_path / "run",
            recipe={"seed": seed},
            description=TrainableCrossEncoder.description,
            processes=1,
            groups_per_epoch=24,
            rules=OverwriteRules(overwrite=True),
        )

    def kill(_):
        raise KeyboardInterrupt

    folder(1).claim()
    checkpoint_files.begin(tmp_path / "run" / "checkpoint-4")
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_files, "remove", kill)
        with pytest.raises(KeyboardInterrupt):
            folder(2).claim()
    folder(2).check()
    folder(2).claim()
    assert not (tmp_path / "run" / "checkpoint-4").exists()
