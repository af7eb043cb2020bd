"""Where either Tevatron breaks, and that ours does not."""

import importlib
import json
import os
import sys
from itertools import chain
from pathlib import Path

import pytest
import torch
from accelerate.data_loader import DataLoaderShard
from safetensors.torch import load_file
from torch import multiprocessing
from transformers import AutoModelForSequenceClassification

from harp_plugin.errors import HarpError
from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.models.pairs import PackedPairs, PairEncoder
from harp_plugin.models.pooling import padded_inputs
from harp_plugin.training.data import GroupDataset, split_batches
from harp_plugin.training.run import fit
from harp_plugin.training.run_folder import LOG
from harp_plugin.training.tevatron import IS_MAIN, TevatronTrainer
from harp_plugin.training.trainer import HarpTrainer
from harp_plugin.work.artifact import MANIFEST

from .conftest import ManyNegatives, SentenceGroups, parse
from .test_processes import free_port
from .test_trainer import trainer_of, without_dropout

WEIGHTS = "model.safetensors"
release = pytest.mark.skipif(IS_MAIN, reason="0.1.0 only")


def test_a_package_that_tevatron_needs_is_named(monkeypatch):
    trainer = TevatronTrainer.__module__
    monkeypatch.delitem(sys.modules, trainer)
    monkeypatch.delitem(sys.modules, "harp_plugin.training.tevatron")
    monkeypatch.setitem(sys.modules, "transformers.trainer", None)
    with pytest.raises(HarpError, match=r"transformers\.trainer, .*`pip install transformers`"):
        importlib.import_module("harp_plugin.training.tevatron")


@pytest.mark.parametrize("method", ["compute_loss", pytest.param("_prepare_inputs", marks=release)])
def test_tevatrons_own_method_breaks(method, options, monkeypatch):
    monkeypatch.delattr(HarpTrainer, method)
    trainer = trainer_of(options, max_steps=1)
    with pytest.raises((TypeError, AttributeError)):
        trainer.train()


def test_weights_gathered_from_processes_are_saved(options, tmp_path):
    trainer = trainer_of(options)
    gathered = {name: weight + 1 for name, weight in trainer.model.state_dict().items()}
    with pytest.raises((TypeError, AssertionError)):
        TevatronTrainer._save(trainer, str(tmp_path / "stock"), gathered)
    trainer._save(str(tmp_path / "ours"), gathered)
    saved = load_file(tmp_path / "ours" / WEIGHTS)
    for name, weight in trainer.model.scorer.state_dict().items():
        assert torch.equal(saved[name], weight + 1), name


@release
def test_batches_of_0_1_0_are_not_shared_among_processes(options):
    trainer = trainer_of(options)
    assert isinstance(trainer.get_train_dataloader(), DataLoaderShard)
    assert not isinstance(TevatronTrainer.get_train_dataloader(trainer), DataLoaderShard)


@release
def test_dataset_of_0_1_0_asks_for_encode_plus(tokenizer):
    from tevatron.arguments import DataArguments
    from tevatron.data import TrainDataset

    stock = TrainDataset(DataArguments(), [], tokenizer)
    with pytest.raises(AttributeError, match="encode_plus"):
        stock.create_one_example([7592], is_query=True)
    packed = packed_pairs(tokenizer, "hello", "world")
    assert packed.ids[: packed.lengths[0]].tolist() == tokenizer("hello", "world")["input_ids"]


def test_weights_of_a_checkpoint_come_back_on_resuming(options, tmp_path):
    trainer_of(options, max_steps=2).train()
    checkpoint = tmp_path / "out" / "checkpoint-2"
    saved = load_file(checkpoint / WEIGHTS)
    trainer = trainer_of(options, max_steps=2)

    def is_saved():
        now = trainer.model.scorer.state_dict()
        return all(torch.equal(now[name], saved[name]) for name in now)

    with pytest.raises(AttributeError):
        TevatronTrainer._load_from_checkpoint(trainer, str(checkpoint))
    assert not is_saved()
    trainer.train(resume_from_checkpoint=str(checkpoint))
    assert is_saved()


def test_a_last_batch_that_is_not_full_gives_each_group_its_loss(options):
    """Three steps of 3, 3 and 1 groups, at a learning rate of 0."""
    trainer = without_dropout(
        trainer_of(
            options,
            ManyNegatives(7),
            losses={"hinge": 1},
            per_device_train_batch_size=3,
            dataloader_drop_last=False,
            max_steps=3,
            learning_rate=0.0,
        )
    )
    order = list(trainer.sampler)
    trainer.train()
    logged = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    alone = [of_one_group(trainer, number) for number in order]
    expected = [sum(alone[:3]) / 3, sum(alone[3:6]) / 3, alone[6]]
    assert logged == pytest.approx(expected, rel=1e-5)


def of_one_group(trainer, number, dataset=None) -> float:
    batch = trainer.data_collator([(dataset or trainer.train_dataset)[number]])
    with torch.no_grad():
        return trainer.compute_loss(trainer.model.eval(), batch).item()


@pytest.mark.parametrize("batch", [1, 4, 100])
def test_evaluation_is_the_mean_over_all_groups(batch, options):
    trainer = trainer_of(options, losses={"hinge": 2}, per_device_eval_batch_size=batch)
    held_out = GroupDataset(ManyNegatives(11))
    metrics = trainer.evaluate(held_out)
    alone = [of_one_group(trainer, number, held_out) for number in range(11)]
    assert metrics["eval_loss"] == pytest.approx(sum(alone) / 11, rel=1e-5)
    assert metrics["eval_rqp/loss"] == pytest.approx(sum(alone[::2]) / 6, rel=1e-5)
    assert trainer.state.log_history[-1].items() >= metrics.items()


def test_tevatrons_own_evaluation_breaks(options):
    trainer = trainer_of(options, per_device_eval_batch_size=4)
    with pytest.raises(TypeError):
        TevatronTrainer.evaluate(trainer, GroupDataset(ManyNegatives(11)))


def test_evaluation_leaves_training_as_it_is(options):
    trainer = trainer_of(options)
    of_one_group(trainer, 0)
    random_state = torch.get_rng_state()
    metrics = trainer.evaluate(GroupDataset(ManyNegatives(5)))
    assert {"eval_loss/hinge", "eval_loss/mlm", "eval_accuracy"} <= metrics.keys()
    assert torch.equal(torch.get_rng_state(), random_state)
    drained = trainer.meters.drain(trainer.accelerator)
    assert drained["rqp/loss"] > 0 and "qdm/loss" not in drained
    with pytest.raises(HarpError, match="0 pair groups cannot be evaluated on 1 processes"):
        trainer.evaluate()


@pytest.mark.parametrize(
    ("size", "processes", "batch"), [(24, 1, 5), (24, 2, 5), (7, 2, 1), (3, 3, 8), (101, 4, 8)]
)
def test_shares_hold_each_group_once(size, processes, batch):
    of_processes = split_batches(size, processes, batch)
    assert len({len(batches) for batches in of_processes}) == 1
    batches = list(chain.from_iterable(of_processes))
    assert sorted(chain.from_iterable(batches)) == list(range(size))
    assert all(1 <= len(part) <= max(batch, 2) for part in batches)


def evaluate_one_of_two(rank: int, port: int, recipe: dict, folder: str) -> None:
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    metrics = trainer_of(lambda **_: parse(recipe)).evaluate(GroupDataset(ManyNegatives(11)))
    Path(folder, f"{rank}.json").write_text(json.dumps(metrics))
    torch.distributed.destroy_process_group()


def short_recipe(model: Path, folder: Path) -> dict:
    return {
        "model": str(model),
        "build_dir": "unread",
        "tasks": {"rqp": 1, "qdm": 1},
        "output_dir": str(folder),
        "max_length": 40,
        "per_device_train_batch_size": 5,
        "learning_rate": 1e-3,
        "max_steps": 6,
        "logging_steps": 1,
        "save_steps": 2,
        "use_cpu": True,
        "disable_tqdm": True,
    }


@pytest.mark.slow
def test_two_processes_evaluate_what_one_evaluates(options, tiny_bert, tmp_path):
    recipe = short_recipe(tiny_bert, tmp_path / "two") | {"per_device_eval_batch_size": 2}
    arguments = (free_port(), recipe, str(tmp_path))
    multiprocessing.spawn(evaluate_one_of_two, args=arguments, nprocs=2)
    expected = trainer_of(options).evaluate(GroupDataset(ManyNegatives(11)))
    for rank in range(2):
        metrics = json.loads((tmp_path / f"{rank}.json").read_text())
        assert metrics == pytest.approx(expected, rel=1e-5)


def packed_pairs(tokenizer, query: str, document: str) -> PackedPairs:
    return PairEncoder(tokenizer, 512).encode([query] * 2, [document, "no"]).packed()


def padded(packed: PackedPairs) -> dict[str, torch.Tensor]:
    ids, types = torch.from_numpy(packed.ids), torch.from_numpy(packed.types)
    return padded_inputs(ids, packed.lengths, types, 0)[0]


TRAIN = """
import json, sys, torch
torch.set_num_threads(1)
from harp_plugin.training.run import fit
from harp_plugin.training.trainer import HarpTrainer
from harp_plugin.training.arguments import HarpTrainingArguments
from tests.training.conftest import SentenceGroups, parse
fit(SentenceGroups(), *parse(json.loads(sys.argv[1])))
print(json.dumps([type.__bases__[-1].__module__ for type in (HarpTrainer, HarpTrainingArguments)]))
"""


@pytest.mark.integration
def test_main_trains_the_same_bits(on_main, tiny_bert, tmp_path):
    here, there = (short_recipe(tiny_bert, tmp_path / name) for name in ("here", "there"))
    fit(SentenceGroups(), *parse(here))
    modules = on_main(TRAIN, **there)
    assert modules == ["tevatron.reranker.trainer", "tevatron.retriever.arguments"]
    for name in (WEIGHTS, LOG, "config.json", "tokenizer.json"):
        first, second = ((tmp_path / folder / name).read_bytes() for folder in ("here", "there"))
        assert first == second, name
    recipes = [
        json.loads((tmp_path / folder / MANIFEST).read_text())["settings"]
        for folder in ("here", "there")
    ]
    assert recipes[0] == recipes[1]


COLLATE = """
import json, sys
from transformers import AutoTokenizer
from tevatron.reranker.arguments import DataArguments
from tevatron.reranker.collator import RerankerTrainCollator
from tevatron.reranker.dataset import format_pair
of = json.loads(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(of["model"])
pair = format_pair(of["query"], of["document"], "", "", "")
batch = RerankerTrainCollator(DataArguments(pad_to_multiple_of=1), tokenizer)([[pair]])
print(json.dumps({name: values[0].tolist() for name, values in batch.items()}))
"""


@pytest.mark.integration
def test_main_joins_without_a_separator_and_ours_with_one(on_main, tiny_bert, tokenizer):
    query, document = "hello world", "the world is small"
    stock = on_main(COLLATE, model=str(tiny_bert), query=query, document=document)
    inputs = padded(packed_pairs(tokenizer, query, document))
    ours = {name: rows[0].tolist() for name, rows in inputs.items()}
    words = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in (query, document)]
    start, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    assert stock["input_ids"] == [start, *words[0], *words[1], end]
    assert "token_type_ids" not in stock
    assert ours["input_ids"] == [start, *words[0], end, *words[1], end]
    assert ours["token_type_ids"] == [0] * (len(words[0]) + 2) + [1] * (len(words[1]) + 1)


LOAD = """
import json, sys, torch
from tevatron.reranker.modeling import RerankerModel
of = json.loads(sys.argv[1])
try:
    RerankerModel.load(of["model"])
    refusal = ""
except ImportError as error:
    refusal = str(error)
options = {"torch_dtype": torch.float32, "attn_implementation": "sdpa"}
model = RerankerModel.load(of["model"], **options).eval()
with torch.no_grad():
    scores = model(pair={name: torch.tensor(rows) for name, rows in of["pair"].items()}).scores
    model.train_batch_size, model.target_label = 4, torch.zeros(4, dtype=torch.long)
    many = {name: torch.tensor(rows[:1] * 4) for name, rows in of["pair"].items()}
    loss = model(pair=many).loss
print(json.dumps({"refusal": refusal, "scores": scores.flatten().tolist(), "loss": loss.item()}))
"""


@pytest.mark.integration
def test_main_loads_our_checkpoint(on_main, tiny_bert, tokenizer, tmp_path):
    """It asks for flash attention unless told, and two groups of two in a batch of four cost 0."""
    folder = fit(SentenceGroups(), *parse(short_recipe(tiny_bert, tmp_path / "out")))
    packed = packed_pairs(tokenizer, "hello world", "the world is small")
    pair = padded(packed)
    stock = on_main(
        LOAD, model=str(folder), pair={name: rows.tolist() for name, rows in pair.items()}
    )
    assert "flash" in stock["refusal"].lower()
    assert stock["loss"] == 0.0
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    assert "flash" not in model.config._attn_implementation
    with torch.no_grad():
        assert stock["scores"] == pytest.approx(model(**pair).logits.flatten().tolist(), abs=1e-6)
        ids, types = torch.from_numpy(packed.ids), torch.from_numpy(packed.types)
        ours = TrainableCrossEncoder.load(str(folder)).eval()(ids, packed.lengths, types).scores
    assert stock["scores"] == pytest.approx(ours.tolist(), abs=1e-6)
