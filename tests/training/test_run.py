import json
import shutil
from importlib.metadata import version

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification

from harp_plugin.errors import HarpError
from harp_plugin.models.loading import load_pretrained, load_tokenizer
from harp_plugin.ranking import Scorer
from harp_plugin.training.run import fit
from harp_plugin.training.run_folder import LOG
from harp_plugin.work.artifact import MANIFEST

from .conftest import DyingGroups, Killed, SentenceGroups

pytestmark = pytest.mark.integration

WEIGHTS = "model.safetensors"


def run(options, groups=None, **changes):
    return fit(groups or SentenceGroups(), *options(**changes))


def die(options, reads, **changes):
    with pytest.raises(Killed):
        run(options, DyingGroups(reads), **changes)


def same(first, second, files=(WEIGHTS, LOG)):
    return all((first / name).read_bytes() == (second / name).read_bytes() for name in files)


def test_same_seed_same_bits(options, tmp_path):
    first = run(options, output_dir=str(tmp_path / "a"), max_steps=4)
    changes = {"max_steps": 4, "dataloader_num_workers": 2}
    second = run(options, output_dir=str(tmp_path / "b"), **changes)
    assert same(first, second, (WEIGHTS, LOG, MANIFEST, "config.json", "tokenizer.json"))
    other = run(options, output_dir=str(tmp_path / "c"), max_steps=4, seed=1)
    assert not same(first, other, (WEIGHTS,))


def test_killed_and_resumed_run_ends_in_the_same_bits(options, tmp_path):
    whole = run(options, output_dir=str(tmp_path / "whole"), max_steps=6)
    for reads in (14, 17, 12):
        die(options, reads, max_steps=6)
    checkpoints = {path.name for path in (tmp_path / "out").glob("checkpoint-*")}
    assert "checkpoint-2" in checkpoints and not (tmp_path / "out" / MANIFEST).exists()
    assert same(whole, run(options, max_steps=6))


def test_killed_with_gradient_accumulation(options, tmp_path):
    changes = {"gradient_accumulation_steps": 3, "per_device_train_batch_size": 3, "max_steps": 4}
    whole = run(options, output_dir=str(tmp_path / "whole"), **changes)
    die(options, 26, **changes)
    assert same(whole, run(options, **changes))


def test_killed_after_the_last_checkpoint_takes_no_further_step(options, tmp_path):
    out = run(options, max_steps=4)
    whole = shutil.copytree(out, tmp_path / "whole")
    for name in (MANIFEST, "config.json", WEIGHTS):
        (out / name).unlink()
    resumed = run(options, DyingGroups(0), max_steps=4)
    assert same(whole, resumed, (WEIGHTS, LOG, MANIFEST, "config.json"))


def test_finished_run_is_left_as_it_is(options):
    out = run(options, max_steps=2)
    before = (out / WEIGHTS).stat().st_mtime_ns
    assert run(options, DyingGroups(0), max_steps=2, logging_steps=3) == out
    assert (out / WEIGHTS).stat().st_mtime_ns == before


def test_run_that_never_began_leaves_the_folder_free(options):
    with pytest.raises(HarpError, match="no model at"):
        run(options, model="/no/such/model")
    die(options, 3, learning_rate=0.1)
    run(options, max_steps=1)


def test_folder_of_someone_else_is_never_touched(options, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("draft")
    with pytest.raises(
        HarpError, match=r"holds 1 files that harp did not write, such as thesis\.txt"
    ):
        run(options, overwrite=True)
    assert (tmp_path / "out" / "thesis.txt").read_text() == "draft"


def test_saved_tokenizer_neither_cuts_nor_pads(options):
    saved = json.loads((run(options, max_steps=1) / "tokenizer.json").read_text())
    assert saved["truncation"] is None and saved["padding"] is None


def test_manifest_says_what_was_run(options):
    out = run(options, max_steps=3)
    manifest = json.loads((out / MANIFEST).read_text())
    assert manifest["settings"]["losses"] == {"hinge": 1.0, "mlm": 1.0}
    assert manifest["settings"]["max_steps"] == 3 and "output_dir" not in manifest["settings"]
    assert manifest["steps"] == 3 and manifest["seed"] == 42
    assert manifest["settings"]["groups_per_epoch"] == 24
    assert "cls.predictions.bias" in manifest["fresh_weights"]
    assert set(manifest["metrics"]) >= {"loss/hinge", "loss/mlm", "rqp/accuracy", "qdm/loss"}
    assert manifest["versions"]["tevatron"] == version("tevatron")
    assert str(out) not in (out / MANIFEST).read_text()
    assert not list(out.glob("*.harp-tmp"))


SCORING = {
    "bert.pooler.dense.bias",
    "bert.pooler.dense.weight",
    "classifier.bias",
    "classifier.weight",
}


@pytest.fixture
def bare_bert(tiny_bert, tmp_path):
    """The tiny BERT without any head."""
    folder = tmp_path / "bare-bert"
    shutil.copytree(tiny_bert, folder)
    weights = load_file(tiny_bert / WEIGHTS)
    kept = {name: w for name, w in weights.items() if name not in SCORING}
    save_file(kept, folder / WEIGHTS, metadata={"format": "pt"})
    return str(folder)


def heads(out):
    """Weights that the checkpoint lacks for the scorer and for the language model."""
    missing = [
        AutoModelForSequenceClassification.from_pretrained(out, output_loading_info=True)[1],
        AutoModelForMaskedLM.from_pretrained(out, output_loading_info=True)[1],
    ]
    return [set(info["missing_keys"]) for info in missing]


@pytest.mark.parametrize(
    ("losses", "scorer_lacks", "language_model_lacks"),
    [
        ({"hinge": 1, "mlm": 1}, False, False),
        ({"mlm": 1}, True, False),
        ({"lce": 1}, False, True),
    ],
)
def test_a_head_that_nothing_trained_is_not_saved(
    losses, scorer_lacks, language_model_lacks, bare_bert, options
):
    out = run(options, model=bare_bert, losses=losses, max_steps=2)
    scorer, language_model = heads(out)
    assert scorer == (SCORING if scorer_lacks else set())
    assert bool(language_model) == language_model_lacks
    manifest = json.loads((out / MANIFEST).read_text())
    assert set(manifest["untrained_weights"]) == scorer | language_model
    assert set(manifest["fresh_weights"]) >= scorer | language_model | SCORING
    if scorer_lacks:
        with pytest.raises(HarpError, match=r"no trained weights for bert\.pooler"):
            Scorer(str(out)).score(["query"], ["document"])


def test_head_that_came_with_the_model_is_kept(tiny_bert, options):
    out = run(options, losses={"mlm": 1}, max_steps=2)
    before, after = load_file(tiny_bert / WEIGHTS), load_file(out / WEIGHTS)
    assert all((before[name] == after[name]).all() for name in SCORING)
    assert json.loads((out / MANIFEST).read_text())["untrained_weights"] == []


@pytest.mark.parametrize("losses", [{"mlm": 1}, {"lce": 1}])
def test_killed_run_with_an_untrained_head_ends_in_the_same_bits(
    losses, bare_bert, options, tmp_path
):
    changes = {"model": bare_bert, "losses": losses, "max_steps": 4}
    whole = run(options, output_dir=str(tmp_path / "whole"), **changes)
    die(options, 17, **changes)
    assert (tmp_path / "out" / "checkpoint-2").is_dir()
    assert same(whole, run(options, **changes), (WEIGHTS, LOG, MANIFEST))


def test_shortages_are_told_before_training(options, caplog):
    class Short(SentenceGroups):
        def shortages(self):
            return ["ltm has too little.", "wlp has 100 % too little."]

    def told():
        return [r.message for r in caplog.records if r.levelname == "WARNING"]

    with pytest.raises(HarpError, match="max_length"):
        run(options, Short(), max_length=600)
    assert told() == Short().shortages()
    caplog.clear()
    run(options, Short(), max_steps=1)
    assert told() == Short().shortages()
    caplog.clear()
    run(options, Short(), max_steps=1)
    assert told() == []


def test_longer_than_the_model_reads(options):
    with pytest.raises(HarpError, match=r"max_length is 600, but .* at most 512"):
        run(options, max_length=600)


def test_a_tokenizer_of_more_words_than_the_model_has(options, tiny_bert, tmp_path):
    larger = load_pretrained(AutoModel, str(tiny_bert))
    tokenizer = load_tokenizer(str(tiny_bert))
    tokenizer.add_tokens(["harp1", "harp2"])
    larger.resize_token_embeddings(len(tokenizer))
    for each in (larger, tokenizer):
        each.save_pretrained(tmp_path / "larger")
    size = len(tokenizer)
    with pytest.raises(HarpError, match=rf"largest token is {size - 1}, but .* is {size - 2}"):
        run(options, tokenizer_name=str(tmp_path / "larger"))


def test_a_folder_with_a_tokenizer_alone(options, tiny_bert, tmp_path):
    load_tokenizer(str(tiny_bert)).save_pretrained(tmp_path / "tokenizer")
    folder = run(options, max_steps=1, tokenizer_name=str(tmp_path / "tokenizer"))
    assert load_tokenizer(str(folder)).get_vocab() == load_tokenizer(str(tiny_bert)).get_vocab()


def test_fewer_groups_than_a_batch(options):
    with pytest.raises(HarpError, match="24 pair groups are fewer than one batch of 30"):
        run(options, per_device_train_batch_size=30)


def test_another_build_is_another_run(groups, options, tmp_path):
    model_args, data_args, training_args = options(max_steps=2)
    groups.fingerprint = "one"
    fit(groups, model_args, data_args, training_args)
    groups.fingerprint = "another"
    with pytest.raises(HarpError, match="overwrite"):
        fit(groups, model_args, data_args, training_args)


def test_tensorboard_shows_what_is_logged(options):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    changes = {"max_steps": 4, "eval_strategy": "steps", "eval_steps": 2}
    changes |= {"validation_build_dir": "unread", "report_to": "tensorboard"}
    folder = fit(SentenceGroups(), *options(**changes), held_out=SentenceGroups(4))
    (events,) = (folder / "runs").iterdir()
    scalars = EventAccumulator(str(events)).Reload()
    log = json.loads((folder / LOG).read_text())
    for tag, key in (
        ("train/loss/hinge", "loss/hinge"),
        ("train/rqp/accuracy", "rqp/accuracy"),
        ("eval/loss", "eval_loss"),
    ):
        logged = [(line["step"], pytest.approx(line[key], rel=1e-6)) for line in log if key in line]
        assert [(event.step, event.value) for event in scalars.Scalars(tag)] == logged
