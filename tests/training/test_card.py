"""The model card and the manifest of each checkpoint."""

import json
import re

import pytest
from huggingface_hub import ModelCard, metadata_load

from harp_plugin.cli import main
from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.tasks import HARP_TASKS, TASKS
from harp_plugin.training.card import CARD, HARP, bibtex, cited, is_on_the_hub, model_card
from harp_plugin.training.losses import CITATIONS, LOSSES
from harp_plugin.training.run import fit
from harp_plugin.work.artifact import MANIFEST, Provenance
from harp_plugin.work.records import read_record

from .conftest import DyingGroups, Killed, SentenceGroups

pytestmark = pytest.mark.integration


FACTS = {"steps": 3, "best_step": None, "seed": 1, "counts": {}, "metrics": {}}
FACTS |= {"untrained_weights": [], "citations": [HARP]}


def table(card, heading):
    """The rows of a table of the card."""
    rows = card.partition(f"## {heading}\n")[2].partition("##")[0].strip().splitlines()
    return dict(row.strip("| ").split(" | ") for row in rows if row.startswith("| "))


def manifest_of(folder):
    return json.loads((folder / MANIFEST).read_text())


def test_every_checkpoint_says_what_it_is(options):
    groups = SentenceGroups()
    groups.counts = {"pages": 1234, "links": 7}
    out = fit(groups, *options(max_steps=4, num_train_epochs=1, seed=3))
    for step, folder in [(2, out / "checkpoint-2"), (4, out / "checkpoint-4"), (4, out)]:
        text = (folder / CARD).read_text()
        manifest = manifest_of(folder)
        assert str(out) not in text
        log = json.loads((out / f"checkpoint-{step}" / "trainer_state.json").read_text())
        measured = log["log_history"][-1]
        assert manifest["steps"] == manifest["metrics"]["step"] == step == measured["step"]
        assert manifest["metrics"]["loss"] == measured["loss"]
        shown = table(text, "At this step")
        assert shown["step"] == str(step)
        assert float(shown["loss"]) == pytest.approx(measured["loss"], rel=1e-5)
        assert float(shown["qdm/accuracy"]) == pytest.approx(measured["qdm/accuracy"], rel=1e-5)
        assert not any("second" in name for name in shown)
        assert table(text, "Training data")["pages"] == "1,234"
        assert table(text, "Losses") == {"loss": "weight", "hinge": "1", "mlm": "1"}
        assert table(text, "Options")["seed"] == "3"
        assert table(text, "Versions") == {"package": "version", **manifest["versions"]}
        assert manifest["counts"] == groups.counts and manifest["citations"] == [HARP]


def test_the_hub_reads_the_header(options):
    out = fit(SentenceGroups(), *options(max_steps=2, license="cc-by-sa-4.0", language="en"))
    card = ModelCard.load(out / CARD)
    assert (card.data.license, card.data.language) == ("cc-by-sa-4.0", "en")
    assert metadata_load(out / CARD) == card.data.to_dict()
    assert card.data.pipeline_tag == "text-ranking" and card.data.library_name == "transformers"
    assert card.data.base_model is None
    assert "{" not in card.text.partition("## Options")[0].replace("{ma", "")


def test_same_bytes_after_a_kill(options, tmp_path):
    whole = fit(SentenceGroups(), *options(output_dir=str(tmp_path / "whole"), max_steps=4))
    with pytest.raises(Killed):
        fit(DyingGroups(17), *options(max_steps=4))
    out = fit(SentenceGroups(), *options(max_steps=4))
    for name in (CARD, MANIFEST, f"checkpoint-4/{CARD}"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    found, expected = (read_record(each / "checkpoint-4" / MANIFEST) for each in (out, whole))
    # The trainer's state holds times, so that its hash differs.
    assert found.pop("files").keys() == expected.pop("files").keys() >= {"trainer_state.json"}
    assert found == expected


def test_scoring_head_that_nothing_trained_is_told():
    settings = {"model": "google/bert_uncased_L-2_H-128_A-2", "tasks": {"ltm": 1}}
    settings |= {"losses": {"mlm": 1.0}, "build_dir": "b", "fields": ["a|b"], "max_length": 96}
    facts = FACTS | {"untrained_weights": ["classifier.weight"], "citations": cited(settings)}
    made_from = Provenance(settings | {"groups_per_epoch": 9})
    card = model_card(made_from, facts, TrainableCrossEncoder.description)
    assert card.data.base_model == "google/bert_uncased_L-2_H-128_A-2"
    assert card.data.pipeline_tag == "fill-mask"
    assert "**Its scoring head was not trained:**" in card.text
    assert re.findall(r"@\w+{(\w+),", card.text) == ["ma2021harp", "su2024wikiformer"]
    assert '| fields | ["a\\|b"] |' in card.text


def test_measures_of_validation_stand_in_the_model_index():
    settings = {"model": "bert-base-uncased", "dataset": "msmarco-passage/train"}
    settings |= {"losses": {"lce": 1.0}, "validation_dataset": "vaswani", "groups_per_epoch": 9}
    settings["max_length"] = 96
    metrics = {"loss": 0.5, "eval_loss": 0.1, "eval_nDCG@10": 0.25, "step": 3}
    made_from, facts = Provenance(settings, {"torch": "2"}), FACTS | {"metrics": metrics}
    card = model_card(made_from, facts, TrainableCrossEncoder.description)
    assert 'CrossEncoder("path/to/model", max_length=96).predict(' in card.text
    (result,) = card.data.eval_results
    assert (result.metric_type, result.metric_value) == ("nDCG@10", 0.25)
    assert (result.task_type, result.dataset_type) == ("text-ranking", "vaswani")
    assert card.data.datasets == ["irds/msmarco-passage_train"]
    header = card.data.to_dict()["model-index"][0]
    assert header["name"] == card.text.partition("# ")[2].partition("\n")[0]
    folded = card.text.partition("<details>")[2].partition("</details>")[0]
    assert "## Options" in folded and "## Versions" in folded and "## Use" not in folded


def test_a_fine_tuned_card_names_its_data(tiny_bert, tmp_path):
    row = {
        "query": "what?",
        "positive_passages": [{"text": "this"}],
        "negative_passages": [{"text": "that"}],
    }
    (tmp_path / "lines.jsonl").write_text((json.dumps(row) + "\n") * 4)
    recipe = {
        "model": str(tiny_bert),
        "train_file": [str(tmp_path / "lines.jsonl")],
        "output_dir": str(tmp_path / "out"),
        "per_device_train_batch_size": 2,
        "max_steps": 1,
        "use_cpu": True,
        "disable_tqdm": True,
    }
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
    assert main(["finetune", str(tmp_path / "recipe.json")]) == 0
    card = (tmp_path / "out" / CARD).read_text()
    assert "Trained by harp_plugin on queries with positive and negative passages." in card
    assert table(card, "Training data")["queries"] == "4"
    assert "AutoModelForMaskedLM" not in card and "gao2021lce" in card


def test_counts_of_a_build(encyclopedia_build):
    from harp_plugin.tasks import PreTrainingData

    counts = PreTrainingData(encyclopedia_build, dict.fromkeys(HARP_TASKS, 1)).counts
    rows = json.loads((encyclopedia_build / "examples" / "manifest.json").read_text())["rows"]
    assert {f"examples of {task}": rows[task] for task in HARP_TASKS}.items() <= counts.items()
    assert counts["pages"] > 50 and counts["links"] > 300


def test_every_task_and_loss_has_its_paper():
    of_harp = {*HARP_TASKS, "hinge", "softmax_margin", "bce", "mlm"}
    of_us = {
        name
        for registry in (TASKS, LOSSES)
        for name in registry
        if registry[name].__module__.startswith("harp_plugin.")
    }
    of_tasks = {name: TASKS[name].citation for name in TASKS if hasattr(TASKS[name], "citation")}
    assert of_tasks.keys() | CITATIONS.keys() == of_us - of_harp
    for key in {HARP, *CITATIONS.values(), *of_tasks.values()}:
        assert bibtex([key]).startswith("@") and f"{{{key}," in bibtex([key])
    assert cited({"tasks": {"rqp": 1, "srr": 1, "rwi": 1}, "losses": {"lce": 1}}) == [
        HARP,
        "su2024wikiformer",
        "gao2021lce",
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bert-base-uncased", True),
        ("google/electra-base", True),
        ("package:some-model", False),
        ("./model", False),
        ("a/b/c", False),
    ],
)
def test_names_of_the_hub(name, expected):
    assert is_on_the_hub(name) == expected
