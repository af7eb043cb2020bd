import math
import re

import numpy as np
import pytest
import torch
from accelerate.data_loader import prepare_data_loader
from transformers import AutoConfig, AutoTokenizer, BertForMaskedLM

from harp_plugin.errors import HarpError
from harp_plugin.models.packing import compiled_layers
from harp_plugin.models.trainable import group_scores
from harp_plugin.training import arguments
from harp_plugin.training.arguments import HarpTrainingArguments
from harp_plugin.training.run import build_trainer

from .conftest import ManyNegatives, SentenceGroups

pytestmark = pytest.mark.integration

TASKS = ("rqp", "qdm")


def trainer_of(options, groups=None, **changes):
    return build_trainer(groups or SentenceGroups(), *options(**changes))


def without_dropout(trainer):
    for module in trainer.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return trainer


@pytest.mark.parametrize("is_tied", [True, False])
def test_processes_search_for_unused_weights_where_a_bias_has_no_use(is_tied, options, tmp_path):
    """Untied, BERT's language model has a bias beside that of its decoder."""
    base = options()[0].model
    config = AutoConfig.from_pretrained(base, tie_word_embeddings=is_tied)
    BertForMaskedLM(config).save_pretrained(tmp_path / "model")
    AutoTokenizer.from_pretrained(base).save_pretrained(tmp_path / "model")
    trainer = trainer_of(options, model=str(tmp_path / "model"), losses={"hinge": 1, "mlm": 1})
    assert trainer.args.ddp_find_unused_parameters is (False if is_tied else None)
    trainer.train()
    still = {n for n, w in trainer.model.named_parameters() if not trainer.optimizer.state.get(w)}
    assert bool(still) is not is_tied


def test_group_scores_put_the_positive_first():
    batch = {
        "group_pairs": torch.tensor([[0, 1, -1], [2, 3, 4]]),
        "teacher_scores": torch.arange(5),
    }
    inputs = group_scores(torch.tensor([1.0, 2, 3, 4, 5]), batch)
    assert inputs.scores.tolist() == [[1, 2, 0], [3, 4, 5]]
    assert inputs.teacher_scores.tolist() == [[0, 1, 0], [2, 3, 4]]
    assert inputs.mask.tolist() == [[True, True, False], [True, True, True]]


def test_training_separates_positives_from_negatives(options):
    trainer = trainer_of(options, max_steps=80, learning_rate=1e-2, logging_steps=10, save_steps=80)
    trainer.train()
    first, *_, last = [line for line in trainer.state.log_history if "loss" in line]
    assert last["loss/hinge"] < 0.5 < first["loss/hinge"]
    assert last["accuracy"] > 0.9
    assert last["loss/mlm"] < first["loss/mlm"]


def test_log_line_adds_up(options):
    trainer = trainer_of(options, max_steps=3, logging_steps=3, losses={"hinge": 2, "mlm": 0.5})
    trainer.train()
    line = next(line for line in trainer.state.log_history if "loss" in line)
    # Masked tokens differ in number from batch to batch, so the mean of means is only close.
    assert line["loss"] == pytest.approx(2 * line["loss/hinge"] + 0.5 * line["loss/mlm"], rel=0.01)
    tasks = (line["rqp/loss"], line["qdm/loss"])
    assert min(tasks) <= 2 * line["loss/hinge"] <= max(tasks)
    for name in TASKS:
        assert 0 <= line[f"{name}/accuracy"] <= 1


def test_meters_by_hand(options):
    trainer = trainer_of(options, losses={"hinge": 1})
    scores = torch.tensor([[2.0, 0.0, 3.0], [0.0, 1.0, 0.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    losses = torch.tensor([1.0, 2.0])
    trainer.meters.add_loss("hinge", losses)
    tasks = torch.tensor([trainer.meters.tasks.index(task) for task in TASKS])
    trainer.meters.add_groups(tasks, losses, scores, mask)
    trainer.meters.add_groups(tasks[:1], losses[:1] * 5, scores[:1], mask[:1])
    assert trainer.meters.drain(trainer.accelerator) == {
        "loss/hinge": 1.5,
        "rqp/loss": 3.0,
        "rqp/accuracy": 0.5,
        "qdm/loss": 2.0,
        "qdm/accuracy": 0.0,
        "accuracy": 0.4,
    }
    assert trainer.meters.drain(trainer.accelerator) == {}


def test_a_batch_of_mixed_sizes_gives_each_group_its_own_losses(options):
    losses = {"hinge": 1, "softmax_margin": 1, "lce": 1, "mlm": 1}
    trainer = without_dropout(trainer_of(options, ManyNegatives(16), losses=losses))
    pair_losses = [name for name in losses if name != "mlm"]

    def values(numbers):
        batch = trainer.data_collator([trainer.train_dataset[number] for number in numbers])
        with torch.no_grad():
            output = trainer.model(**{name: batch[name] for name in trainer.model.inputs})
            total = trainer.compute_loss(trainer.model, batch)
        inputs = trainer.model.loss_inputs(output, batch)
        terms, scores = trainer.loss.terms(inputs), inputs.scores
        return terms, total, scores, trainer.meters.drain(trainer.accelerator)

    together, total, _, logged = values(range(16))
    assert total.item() == pytest.approx(sum(float(term.mean()) for term in together.values()))
    alone = [values([number]) for number in range(16)]
    for name, term in together.items():
        expected = torch.cat([terms[name] for terms, *_ in alone])
        torch.testing.assert_close(term, expected, atol=1e-5, rtol=1e-5)
        assert logged[f"loss/{name}"] == pytest.approx(term.mean().item(), rel=1e-5)
    assert [len(scores[0]) for _, _, scores, _ in alone] == [*range(2, 10)] * 2
    for group, (_, _, scores, line) in enumerate(alone):
        positive, *negatives = scores[0].tolist()
        by_hand = [max(0.0, 1 - positive + negative) for negative in negatives]
        assert float(together["hinge"][group]) == pytest.approx(
            sum(by_hand) / len(negatives), abs=1e-5
        )
        assert line["accuracy"] == sum(positive > score for score in negatives) / len(negatives)
        weighted = sum(float(together[name][group]) for name in pair_losses)
        assert line[f"{TASKS[group % 2]}/loss"] == pytest.approx(weighted, abs=1e-4)


@pytest.mark.parametrize("loss", ["lce", "hinge"])
def test_groups_of_several_negatives_train(loss, options):
    trainer = trainer_of(options, ManyNegatives(), losses={loss: 1}, max_steps=4)
    trainer.train()
    line = next(line for line in trainer.state.log_history if "loss" in line)
    assert line["loss"] == pytest.approx(line[f"loss/{loss}"], rel=1e-5)


def test_accumulated_batches_give_the_gradient_of_one_large_batch(options):
    """The number of masked tokens differs between the batches; the mean is over all of them."""

    def lines(**changes):
        trainer = without_dropout(
            trainer_of(options, max_steps=3, optim="sgd", learning_rate=0.5, **changes)
        )
        trainer.train()
        return [
            (line["loss"], line["grad_norm"], line["loss/mlm"], line["accuracy"])
            for line in trainer.state.log_history
            if "loss" in line
        ]

    large = lines(per_device_train_batch_size=8)
    small = lines(per_device_train_batch_size=2, gradient_accumulation_steps=4)
    for first, second in zip(large, small, strict=True):
        assert first == pytest.approx(second, rel=1e-4)


def test_processes_share_an_epoch_and_none_sees_a_group_twice(options):
    trainer = trainer_of(options)
    loader = trainer.get_train_dataloader()
    seen = []
    for process in range(2):
        sharded = prepare_data_loader(
            loader.base_dataloader, num_processes=2, process_index=process
        )
        seen.append([tuple(batch) for batch in sharded.batch_sampler])
    assert len(seen[0]) == len(seen[1]) == 2
    numbers = [number for batches in seen for batch in batches for number in batch]
    assert len(set(numbers)) == len(numbers) == 20


def test_every_epoch_is_drawn_anew(options):
    read = []

    class Listening(SentenceGroups):
        def group(self, epoch, index):
            read.append((epoch, index))
            return super().group(epoch, index)

    trainer_of(options, Listening(), max_steps=8).train()
    assert len(read) == len(set(read)) == 40
    assert {epoch for epoch, _ in read} == {0, 1}


def test_mlm_head_rests_when_no_loss_needs_it(options):
    trainer = trainer_of(options, losses={"softmax_margin": 1}, max_steps=2)
    before = [weight.clone() for weight in trainer.model.language_model.cls.parameters()]
    trainer.train()
    after = list(trainer.model.language_model.cls.parameters())
    same = [torch.equal(a, b) for a, b in zip(before, after, strict=True)]
    decoder = trainer.model.scorer.bert.embeddings.word_embeddings.weight
    assert all(same[i] for i, weight in enumerate(after) if weight is not decoder)
    line = next(line for line in trainer.state.log_history if "loss" in line)
    assert "loss/softmax_margin" in line and "loss/mlm" not in line


def test_scoring_head_rests_when_no_loss_reads_its_scores(options):
    trainer = trainer_of(options, losses={"mlm": 1}, max_steps=2, weight_decay=0.1)
    scorer = trainer.model.scorer
    head = [*scorer.bert.pooler.parameters(), *scorer.classifier.parameters()]
    before = [weight.clone() for weight in head]
    encoder = scorer.bert.encoder.layer[0].output.dense.weight
    moving = encoder.clone()
    trainer.train()
    assert all(torch.equal(a, b) for a, b in zip(before, head, strict=True))
    assert all(weight.grad is None for weight in head)
    assert not torch.equal(moving, encoder)
    line = next(line for line in trainer.state.log_history if "loss" in line)
    assert line["loss"] == pytest.approx(line["loss/mlm"], rel=1e-5)
    assert not any("accuracy" in name or name.endswith("/loss") for name in line)


def test_last_step_and_each_checkpoint_are_logged(options):
    trainer = trainer_of(options, max_steps=5, logging_steps=500)
    trainer.train()
    assert [line["step"] for line in trainer.state.log_history if "loss" in line] == [2, 4, 5]


def test_loss_that_is_not_finite_stops_the_run(options):
    trainer = trainer_of(options)
    with torch.no_grad():
        trainer.model.scorer.classifier.bias.fill_(math.nan)
    with pytest.raises(HarpError, match="the loss is not finite at step 1, for 5 of 5 groups"):
        trainer.train()


def test_tevatron_warm_up_is_in_force(options):
    trainer = trainer_of(options, warmup_ratio=0.5)
    trainer.train()
    rates = [line["learning_rate"] for line in trainer.state.log_history if "loss" in line]
    assert max(rates) == rates[5] == pytest.approx(1e-3)
    assert rates[:5] == sorted(rates[:5]) and rates[0] < 1e-3


def test_no_warm_up_where_it_has_no_steps(options):
    trainer = trainer_of(options, warmup_steps=0, max_steps=2)
    trainer.train()
    rates = [line["learning_rate"] for line in trainer.state.log_history if "loss" in line]
    assert rates[0] == pytest.approx(1e-3)


def test_checkpoint_holds_the_tokenizer(options, tmp_path):
    trainer_of(options, max_steps=2).train()
    names = {path.name for path in (tmp_path / "out" / "checkpoint-2").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    assert "training_args.bin" not in names


@pytest.mark.parametrize("tokens", [60, 600])
def test_a_batch_has_about_as_many_tokens_as_are_asked_for(options, tokens):
    groups = ManyNegatives(64)
    trainer = trainer_of(options, groups, tokens_per_batch=tokens)
    examples = [trainer.train_dataset[number] for number in range(len(groups))]
    lengths = [trainer.data_collator([example])["lengths"].sum() for example in examples]
    assert trainer.args.train_batch_size == max(1, round(tokens / np.mean(lengths)))
    batch = next(iter(trainer.get_train_dataloader()))
    assert len(batch["group_pairs"]) == trainer.args.train_batch_size


@pytest.mark.parametrize(
    ("environment", "has_gpu", "options", "expected"),
    [
        ({}, True, {}, 15),
        ({"LOCAL_WORLD_SIZE": "4"}, True, {}, 3),
        ({}, True, {"dataloader_num_workers": 0}, 0),
        ({}, False, {}, 0),
    ],
)
def test_who_makes_the_batches(environment, has_gpu, options, expected, tmp_path, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    monkeypatch.setattr(arguments, "usual_workers", with_gpu(has_gpu))
    made = HarpTrainingArguments(output_dir=str(tmp_path), **options)
    assert made.dataloader_num_workers == expected
    assert made.chooses_workers == (not options)


def with_gpu(has_gpu):
    usual = arguments.usual_workers

    def workers():
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(torch.cuda, "is_available", lambda: has_gpu)
            return usual()

    return workers


def test_a_model_that_does_not_compile_is_trained_as_it_is(options, caplog):
    """A compiler that fails is named in one line, and the steps are those without it."""
    calls = []

    def broken(graph, inputs):
        calls.append(graph)
        raise RuntimeError("no compiler here")

    plain = without_dropout(trainer_of(options, max_steps=2, save_strategy="no"))
    plain.train()
    trainer = without_dropout(trainer_of(options, max_steps=2, save_strategy="no"))
    torch._dynamo.reset()
    trainer._compiled = compiled_layers(trainer.model.scorer.base_model, backend=broken)
    trainer.train()
    [line] = [record for record in caplog.messages if "not compiled" in record]
    assert calls and "no compiler here" in line and "\n" not in line
    norms = {type(m) for m in trainer.model.modules() if isinstance(m, torch.nn.LayerNorm)}
    assert norms == {torch.nn.LayerNorm}
    weights = dict(plain.model.named_parameters())
    for name, weight in trainer.model.named_parameters():
        torch.testing.assert_close(weight, weights[name])


def test_lines_of_a_training_fit_a_terminal(options, capfd):
    trainer_of(options, max_steps=2, disable_tqdm=False, losses={"hinge": 1, "mlm": 1}).train()
    lines = re.split(r"[\r\n]+", "".join(capfd.readouterr()))
    [first, _] = [line for line in lines if line.startswith("step ") and "loss" in line]
    assert re.fullmatch(r"step 1: loss [\d.]+, grad norm .*, accuracy [\d.]+", first)
    assert all(len(line) <= 80 for line in lines if "/s]" not in line)
