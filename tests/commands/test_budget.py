"""How long `harp adapt` may take."""

from __future__ import annotations

import json

import pytest

from harp_plugin.commands.adapt import plan
from harp_plugin.commands.adapt.budget import (
    encoder_reading,
    seconds_in,
    seconds_of_a_step,
    training_steps,
)
from harp_plugin.commands.adapt.options import AdaptOptions
from harp_plugin.commands.adapt.training import finetuning_part
from harp_plugin.commands.steps import in_words
from harp_plugin.errors import HarpError
from harp_plugin.tasks import NoPairError
from harp_plugin.work.records import write_record

RECIPE = {"per_device_train_batch_size": 16, "negatives_per_group": 3}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h", 7200),
        ("90m", 5400),
        ("1h30m", 5400),
        ("1 h 30 min", 5400),
        ("45s", 45),
        ("0.5h", 1800),
    ],
)
def test_durations(text, seconds):
    assert seconds_in(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "2 days", "0m", "-1h", "1m2h"])
def test_what_is_no_duration(text):
    with pytest.raises(HarpError, match=r"--budget .* give one such as 2h"):
        seconds_in(text)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(20, "20 s"), (60, "1 min"), (3599, "1 h"), (5400, "1 h 30 min"), (7200, "2 h")],
)
def test_words(seconds, words):
    assert in_words(seconds) == words


def test_own_queries_need_judgments(tmp_path):
    (tmp_path / "q.tsv").write_text("a\tb\n")
    queries = str(tmp_path / "q.tsv")
    with pytest.raises(HarpError, match="--queries and their judgments --qrels together"):
        AdaptOptions(output_dir="out", queries=queries)
    with pytest.raises(HarpError, match=r"there is no file .*none of your own queries"):
        AdaptOptions(output_dir="out", queries=queries, qrels=str(tmp_path / "none"))


def test_steps():
    """In 800 s, 80,000 pairs are scored, so 20,000 are trained on: 312 steps of 64."""
    of_a_step = seconds_of_a_step(100, RECIPE, bf16=False)
    assert of_a_step == pytest.approx(2.56)
    assert training_steps(800, of_a_step, RECIPE, groups=10_000) == 312
    assert training_steps(1, of_a_step, RECIPE, groups=10_000) == 0
    assert training_steps(1e6, of_a_step, RECIPE, groups=1600) == 20 * 100
    assert 1.5 * seconds_of_a_step(100, RECIPE, bf16=True) < of_a_step
    taught = RECIPE | {"teacher": "cosine:encoder"}
    assert seconds_of_a_step(100, taught, bf16=False) == pytest.approx(3.2)


@pytest.mark.parametrize(
    ("documents", "words", "minutes", "reading"),
    [
        (1000, 80, 5, (128, 64)),
        (1000, 1000, 5, (128, 8)),
        (1000, 1000, 15, (128, 64)),
        (9732, 80, 5, (64, 1)),
        (9732, 1000, 15, (128, 1)),
        (9732, 1000, 60, (128, 2)),
        (10**5, 80, 5, (32, 1)),
        (10**5, 80, 120, (128, 1)),
    ],
)
def test_less_of_a_document_is_read_where_a_budget_is_short(
    documents, words, minutes, reading, tmp_path
):
    """Of 5 minutes and 1,000 documents 187 s are for 1,100,000 tokens.

    A document of 1,000 words has 14 passages of 112 tokens: 8 of each of 1,000 documents are
    896,000 tokens, and all of them 1,568,000. Of an hour and 9,732 documents 612 s are for
    passages: two of each take 371 s, and four 741 s.
    """
    page = {"title": "", "text": "word " * words, "anchor_text": ""}
    lines = (json.dumps({"doc_id": str(n), **page}) + "\n" for n in range(documents))
    (tmp_path / "documents.jsonl").write_text("".join(lines))
    found = encoder_reading(f"harp:{tmp_path}", 60 * minutes)
    assert found == dict(zip(("max_length", "max_passages"), reading, strict=True))


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """Plans for a cross-encoder; 100 pairs are scored in a second."""
    recipe = RECIPE | {"max_length": 32, "bf16": False}
    options = AdaptOptions(output_dir=str(tmp_path))
    monkeypatch.setattr(plan, "measured_speed", lambda *_: 100.0)
    monkeypatch.setattr(plan, "training_data", lambda _: [0] * 10_000)
    monkeypatch.setattr(plan, "query_count", lambda *_: 100)
    monkeypatch.setattr(plan, "train_query_count", lambda _: 8000)

    def make(seconds, build_examples=lambda: None):
        return plan.make_plan(options, recipe, seconds, build_examples)

    return make


def test_a_plan(planned, capsys):
    """Scoring 200 queries of 50 pairs takes 100 s.

    Nine tenths of the other 3,410 s are for training, half of them for queries. A step takes
    2.56 s.
    """
    found = planned(3510)
    assert found == {"links": 599, "queries": 599}
    assert "about 51 min; then ranking, about 2 min" in " ".join(capsys.readouterr().out.split())
    assert planned(10**6) == found


def test_a_plan_of_an_older_version_is_another_plan(planned, tmp_path):
    recipes = {"cross-encoder": {}, "encoder": {}}
    asked = {"budget": None, "training": recipes}
    steps = {"links": 700, "queries": 700, "encoder-links": 300, "encoder-queries": 300}
    record = {"asked": asked | {"train_encoder": True, "pages": {}}, "steps": steps}
    write_record(tmp_path / "plan.json", record)
    assert planned(3510) == {"links": 599, "queries": 599}


def test_a_plan_for_too_little_time(planned, capsys):
    """900 s leave 720 for training: 281 steps of 2.56 s, too few on links and on queries.

    300 steps and the ranking take 853 and 100 s.
    """
    found = planned(900)
    assert set(found.values()) == {0}
    said = " ".join(capsys.readouterr().out.split())
    assert "no model is trained in the 15 min left of 2 h: one that helps takes 16 min" in said
    assert planned(10**6) == found


def test_a_plan_for_pages_that_are_all_alike(planned, monkeypatch, capsys):
    def no_pair(*_):
        raise NoPairError("task anchor gives no pair in 100 examples")

    monkeypatch.setattr(plan, "measured_speed", no_pair)
    assert set(planned(3510).values()) == {0}
    said = " ".join(capsys.readouterr().out.split())
    assert said.endswith("left of 2 h: task anchor gives no pair in 100 examples")


def test_each_part_of_the_training_needs_its_steps(planned, monkeypatch):
    """Of 1,710 s for training a fifth is for queries: 133 steps of 2.56 s."""
    monkeypatch.setattr(plan, "_SHARE_OF_QUERIES", 0.2)
    assert set(planned(2000).values()) == {0}


def test_examples_are_built_where_there_is_time(planned, tmp_path):
    built = []
    planned(299, build_examples=lambda: built.append(299))
    (tmp_path / "plan.json").unlink()
    planned(3510, build_examples=lambda: built.append(3510))
    planned(3510, build_examples=lambda: built.append("again"))
    assert built == [3510]


def test_training_on_queries_takes_the_options_that_it_has():
    """Options of drawing pairs from links, whichever a recipe names, are left out."""
    recipe = {"preset": "paper", "mixing": "uniform", "tasks": {"rqp": 1}, "about": "words"}
    shared = {"learning_rate": 1e-4, "max_length": 64, "negatives_per_group": 3}
    losses = {"losses": {"lce": 1, "kl": 1}}
    assert finetuning_part(recipe | shared | losses) == shared | {"losses": {"lce": 1}}
