"""A bi-encoder is trained, killed and resumed as a cross-encoder is."""

import json

import numpy as np
import pytest
from safetensors.torch import load_file

from harp_plugin.errors import HarpError
from harp_plugin.models.bi_encoder import TrainableBiEncoder
from harp_plugin.models.loading import POOLING, WEIGHTS
from harp_plugin.tasks import Pair, PairGroup
from harp_plugin.training.data import Example, GroupCollator, TaughtGroups
from harp_plugin.training.run import fit
from harp_plugin.training.run_folder import LOG
from harp_plugin.work.artifact import MANIFEST
from harp_plugin.work.records import read_record

from .conftest import WORDS, DyingGroups, Killed, SentenceGroups

DENSE = {"model_kind": "bi-encoder", "losses": {"contrastive": 1}}


@pytest.mark.integration
def test_it_learns_and_a_killed_run_ends_in_the_same_bits(options, tmp_path):
    changes = {**DENSE, "max_steps": 30, "save_steps": 6}
    whole = fit(SentenceGroups(), *options(**changes, output_dir=str(tmp_path / "whole")))
    losses = [line["loss"] for line in json.loads((whole / LOG).read_text()) if "loss" in line]
    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])
    with pytest.raises(Killed):
        fit(DyingGroups(80), *options(**changes))
    assert not (tmp_path / "out" / "model.safetensors").exists()
    again = fit(SentenceGroups(), *options(**changes))
    for name in (*read_record(whole / MANIFEST)["files"], MANIFEST):
        assert (again / name).read_bytes() == (whole / name).read_bytes()
    assert "embeddings.word_embeddings.weight" in load_file(again / WEIGHTS)


@pytest.mark.integration
def test_a_finished_folder_is_replaced(options):
    folder = fit(SentenceGroups(), *options(**DENSE, max_steps=2, pooling="cls"))
    fit(SentenceGroups(), *options(**DENSE, max_steps=1, pooling="last", overwrite=True))
    pooling = json.loads((folder / POOLING / "config.json").read_text())
    assert pooling["pooling_mode_lasttoken"] and not pooling["pooling_mode_cls_token"]


@pytest.mark.integration
@pytest.mark.parametrize("role", ["model", "teacher"])
def test_another_pooling_is_another_run(options, tmp_path, role):
    start = fit(SentenceGroups(), *options(**DENSE, max_steps=1))
    (start / MANIFEST).unlink()
    role_of_start = {
        "model": DENSE | {"model": str(start)},
        "teacher": {"teacher": f"cosine:{start}", "losses": {"hinge": 1, "kl": 1}},
    }[role]
    changes = {**role_of_start, "max_steps": 1, "output_dir": str(tmp_path / "next")}
    groups = TaughtGroups(SentenceGroups(), lambda _, documents: np.zeros(len(documents)))
    fit(groups, *options(**changes))
    config = start / POOLING / "config.json"
    pooling = json.loads(config.read_text())
    pooling |= {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}
    config.write_text(json.dumps(pooling))
    with pytest.raises(HarpError, match=f"content of {role}"):
        fit(groups, *options(**changes))


@pytest.mark.integration
def test_losses_of_a_group_alone_train_it_too(options):
    losses = {"lce": {"temperature": 0.1}, "contrastive": 0.5}
    folder = fit(SentenceGroups(), *options(model_kind="bi-encoder", losses=losses, max_steps=2))
    log = json.loads((folder / LOG).read_text())
    assert {"loss/lce", "loss/contrastive"} <= log[0].keys()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"losses": {"contrastive": 1}}, "set model_kind to bi-encoder, or take lce"),
        ({**DENSE, "losses": {"lce": 1, "mlm": 1}}, "leave out mlm"),
        ({"pooling": "cls", "losses": {"lce": 1}}, "pooling is an option of a bi-encoder"),
        ({"normalize": True, "losses": {"lce": 1}}, "normalize is an option of a bi-encoder"),
        ({**DENSE, "pair_format": "tevatron"}, "pair_format is an option of a cross-encoder"),
        ({**DENSE, "texts_at_once": 0}, "it must be at least 1"),
    ],
)
def test_options_of_the_other_kind(options, changes, said):
    with pytest.raises(HarpError, match=said):
        fit(SentenceGroups(), *options(**changes))


def test_the_limit_of_a_query_does_not_cut_the_document_of_rqp(tiny_bert, tokenizer):
    """Whose groups share the document and differ in the query."""
    texts = [" ".join(WORDS[:count]) for count in (3, 12, 18)]
    better, worse, document = texts
    group = PairGroup("rqp", Pair(better, document), (Pair(worse, document),))
    batches = TrainableBiEncoder.load(str(tiny_bert)).batches(tokenizer, max_length=16)
    batch = GroupCollator(batches, ["rqp"], query_limits={"rqp": 5})([Example(0, 0, group)])
    assert batch["document_rows"].tolist() == [2, 2]
    assert batch["lengths"].tolist() == [3 + 2, 5 + 2, 16]
