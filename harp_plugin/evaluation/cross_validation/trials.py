"""One trial: fine-tune on a fold's training queries, rank what was held out of it."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from ...collections.judged_dataset import JudgedDataset
from ...errors import HarpError
from ...files.hashes import file_hash
from ...files.with_record import FolderWithRecord
from ...models.folder import MANIFEST
from ...options import OptionsParser
from ...ranking.options import names_of_part
from ...training.arguments import HarpModelArguments, HarpTrainingArguments
from ...training.judged_arguments import FINETUNING, FinetuneDataArguments
from ...training.recipe import OPTIONS_WITHOUT_EFFECT
from ..experiment import make_reranker, rerank
from ..options import file_stem
from ..runs import stored_run
from ..training import finetune
from .folds import Fold
from .options import CrossValidationOptions, count_label

Arguments = tuple[HarpModelArguments, FinetuneDataArguments, HarpTrainingArguments]
DISCARDED = re.compile(
    r"model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json|config\.json"
    r"|(tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json"
    r"|vocab\.txt|merges\.txt|(spiece|tokenizer|sentencepiece\.bpe)\.model"
    r"|training_args\.bin|trainer_state\.json|optimizer\.pt|scheduler\.pt|rng_state.*\.pth"
    r"|checkpoint-\d+"
)
"""Names of what a fine-tuning writes and nobody needs once its run is there."""


@dataclass(frozen=True)
class Cell:
    """A system at a number of training queries, by one seed; all its folds make up one run."""

    system: str
    count: int | None
    seed: int

    @property
    def name(self) -> str:
        """As a part of file names."""
        return f"{file_stem(self.system)}-{count_label(self.count)}-queries-seed-{self.seed}"


@dataclass(frozen=True)
class Trial:
    """A cell's fine-tuning for one fold, with one choice of the grid's values."""

    cell: Cell
    fold: Fold
    candidate: int

    @property
    def name(self) -> str:
        """As a file name, unique within a cell."""
        choice = f"-candidate-{self.candidate + 1}" if self.fold.validation else ""
        return f"fold-{self.fold.number}{choice}"

    def __str__(self) -> str:
        return f"{self.cell.system}, {count_label(self.cell.count)} queries, {self.name}"


class Trials:
    """Runs trials in a folder, where the runs of earlier starts are used again.

    Args:
        options: of the cross-validation.
        collection: what is ranked.
        first: the first stage's run.
        negatives: file of the run from which negatives are drawn.
        settings: what that run depends on.
        fingerprints: of each system's models.
        versions: of the packages that make a run.
        ledger: writes the recipes and the files of folds.

    Attributes:
        usable: how many queries of each fold's training part can be learnt from, by system.
        shortages: why others cannot, by system.
    """

    def __init__(
        self,
        options: CrossValidationOptions,
        collection: JudgedDataset,
        first: pd.DataFrame,
        negatives: Path,
        settings: dict[str, Any],
        fingerprints: dict[str, list[str]],
        versions: dict[str, str],
        ledger: FolderWithRecord,
    ) -> None:
        self.usable: dict[str, list[int]] = {}
        self.shortages: dict[str, list[str]] = {}
        self._options = options
        self._collection = collection
        self._first = first
        self._negatives = negatives
        self._settings = settings
        self._fingerprints = fingerprints
        self._stored: dict[str, Any] = {"versions": versions, "rules": options.rules}
        self._ledger = ledger
        self._folder = Path(options.output_dir) / "finetuning"
        self._known: dict[str, tuple[int, list[str]]] = {}

    def check(self, folds: Sequence[Fold]) -> None:
        """Find what is wrong before anything is trained.

        Raises:
            HarpError: a model cannot be loaded, an option of fine-tuning is unknown or wrong, or a
                fold has fewer queries to learn from than asked for.
        """
        counts = self._options.query_counts
        for system in self._options.row_names:
            for candidate in range(len(self._options.candidates)):
                cell = Cell(system, None, self._options.seeds[0])
                for fold in folds:
                    trial = Trial(cell, fold, candidate)
                    usable, shortages = self._learnable(trial)
                    self._check_counts(trial, usable, shortages)
                    if candidate == 0:
                        self.usable.setdefault(system, []).append(usable)
                        self.shortages.setdefault(system, []).extend(shortages)
            self._check_models(system, untrained_too=0 not in counts)

    def held_out(self, trial: Trial) -> pd.DataFrame:
        """The run of the queries that a trial holds out, those for validation with them.

        The fine-tuned checkpoints are removed once the run is written, unless they shall be kept.
        """
        queries = {*trial.fold.test, *trial.fold.validation}
        first = self._first[self._first["qid"].isin(queries)].reset_index(drop=True)
        if first.empty:
            return first
        recipes = [self._recipe(trial, member) for member in self._members(trial)]

        def make() -> pd.DataFrame:
            checkpoints = [str(self._tuned(trial, recipe)) for recipe in recipes]
            return self._rerank(first, trial.cell, checkpoints, recipes[0])

        settings = self._settings_of(trial, recipes)
        run = stored_run(self._path(trial), settings, make, **self._stored)
        if not self._options.keep_checkpoints:
            for recipe in recipes:
                _discard_weights(Path(recipe["output_dir"]))
        return run

    def hash_of(self, trial: Trial) -> str:
        """The hash of a trial's run; empty where it holds out no query with results."""
        path = self._path(trial)
        return file_hash(path) if path.is_file() else ""

    def _path(self, trial: Trial) -> Path:
        return self._folder / trial.cell.name / f"{trial.name}.run"

    def zero_shot(self, cell: Cell, path: Path) -> pd.DataFrame:
        """The run of all queries by a system that is not fine-tuned."""
        finetuning = self._options.finetuning_of(cell.system)
        settings = {
            **self._settings,
            "models": self._fingerprints[cell.system],
            "ranking": self._ranking(cell, finetuning),
        }
        models = self._options.models(cell.system)
        return stored_run(
            path,
            settings,
            lambda: self._rerank(self._first, cell, models, finetuning),
            **self._stored,
        )

    def _members(self, trial: Trial) -> list[int]:
        return list(range(len(self._options.models(trial.cell.system))))

    def _values(self, trial: Trial, member: int = 0) -> dict[str, Any]:
        """The recipe of one fine-tuning, but for its number of queries and of steps."""
        cell, options = trial.cell, self._options
        folder = self._folder / cell.name
        models = options.models(cell.system)
        part = f"-model-{member + 1}" if len(models) > 1 else ""
        values = {
            "save_strategy": "no",
            "report_to": "none",
            "dataloader_drop_last": False,
            "negatives_run": str(self._negatives),
            **options.finetuning_of(cell.system),
            **options.candidates[trial.candidate],
            "model": models[member],
            "dataset": options.dataset,
            "fields": options.fields,
            "query_ids": str(self._train_ids(trial.fold)),
            "seed": cell.seed,
            "output_dir": str(folder / f"{trial.name}{part}"),
            "overwrite": options.overwrite,
            "keep": options.keep,
            "quiet": True,
        }
        return {name: value for name, value in values.items() if value is not None}

    def _recipe(self, trial: Trial, member: int) -> dict[str, Any]:
        values = self._values(trial, member)
        _, _, training = _read(values)
        count = trial.cell.count
        if count is not None:
            values["queries"] = count
        learnt = self._learnable(trial)[0] if count is None else count
        batch = training.per_device_train_batch_size * training.gradient_accumulation_steps
        steps = math.ceil(learnt / batch) * training.num_train_epochs
        if training.max_steps <= 0 and steps < self._options.min_steps:
            values["max_steps"] = self._options.min_steps
        return values

    def _train_ids(self, fold: Fold) -> Path:
        path = Path(self._options.output_dir) / "folds" / f"fold-{fold.number}.train.txt"
        content = "".join(f"{query}\n" for query in fold.train)
        self._ledger.write(path, content)
        return path

    def _learnable(self, trial: Trial) -> tuple[int, list[str]]:
        """How many of a fold's training queries can be learnt from, and why others cannot."""
        _, data, training = _read(self._values(trial))
        data = replace(data, queries=None)
        key = json.dumps([repr(data), trial.fold.train])
        if key not in self._known:
            data.check()
            groups = data.groups(training.seed)
            self._known[key] = len(groups), groups.shortages()
        return self._known[key]

    def _check_counts(self, trial: Trial, usable: int, shortages: list[str]) -> None:
        most = max((count for count in self._options.query_counts if count), default=0)
        if most > usable:
            why = f" ({'; '.join(shortages)})" if shortages else ""
            raise HarpError(
                f"train_queries has {most}, but fold {trial.fold.number} has {usable} queries to"
                f" learn from{why}: ask for fewer, or for all"
            )

    def _check_models(self, system: str, *, untrained_too: bool) -> None:
        """Score one pair by every model."""
        pair = pd.DataFrame([["1", "word", "1", "word"]], columns=["qid", "query", "docno", "text"])
        recipe = self._options.finetuning_of(system)
        cell = Cell(system, 0, self._options.seeds[0])
        arguments = self._ranking(cell, recipe)
        if untrained_too:
            arguments["allow_untrained"] = True
        options = {name: arguments[name] for name in arguments.keys() - names_of_part("ensemble")}
        for model in self._options.models(system):
            make_reranker(model, device=self._options.device, **options).transform(pair)

    def _ranking(self, cell: Cell, finetuning: dict[str, Any]) -> dict[str, Any]:
        return {
            "max_length": finetuning.get("max_length", FinetuneDataArguments.max_length),
            "dtype": self._options.dtype,
            "seed": cell.seed,
            **self._options.ranking_of(cell.system),
        }

    def _rerank(
        self, first: pd.DataFrame, cell: Cell, models: list[str], finetuning: dict[str, Any]
    ) -> pd.DataFrame:
        reranker = make_reranker(
            models if len(models) > 1 else models[0],
            device=self._options.device,
            batch_tokens=self._options.batch_tokens,
            **self._ranking(cell, finetuning),
        )
        return rerank(first, self._collection, reranker, cell.system, quiet=True)

    def _tuned(self, trial: Trial, recipe: dict[str, Any]) -> Path:
        folder = Path(recipe["output_dir"])
        if (folder / MANIFEST).is_file() and not (folder / "config.json").is_file():
            (folder / MANIFEST).unlink()  # its weights were discarded
        recipe_file = folder.with_name(f"{folder.name}.json")
        self._ledger.write(recipe_file, json.dumps(recipe, indent=2) + "\n")
        with _only_errors("harp_plugin.training"):
            try:
                return finetune(*_read(recipe))
            except HarpError as error:
                raise HarpError(f"{trial}: {error}") from error

    def _settings_of(self, trial: Trial, recipes: list[dict[str, Any]]) -> dict[str, Any]:
        places = ("query_ids", "negatives_run", "model", *OPTIONS_WITHOUT_EFFECT)
        recipe = {k: value for k, value in recipes[0].items() if not k.startswith(places)}
        return {
            **self._settings,
            "models": self._fingerprints[trial.cell.system],
            "ranking": self._ranking(trial.cell, recipe),
            "recipe": recipe,
            "negatives": file_hash(Path(recipes[0]["negatives_run"])),
            "train": trial.fold.train,
        }


def check_finetuning(options: CrossValidationOptions) -> None:
    """Find that every choice of options of fine-tuning makes sense, before anything is ranked.

    Raises:
        HarpError: an option is unknown or has a wrong value.
    """
    for system in options.row_names:
        for candidate in options.candidates:
            given = {
                "negatives_run": options.output_dir,
                **options.finetuning_of(system),
                **candidate,
                "model": options.models(system)[0],
                "dataset": options.dataset,
                "output_dir": options.output_dir,
            }
            _, data, _ = _read({name: v for name, v in given.items() if v is not None})
            try:
                data.check()
            except HarpError as error:
                raise HarpError(f"finetuning: {error}") from error


def _read(recipe: dict[str, Any]) -> Arguments:
    """Read a recipe as `harp finetune` does.

    Raises:
        HarpError: an option is unknown or has a wrong value.
    """
    parser = OptionsParser(FINETUNING, "harp finetune", "")
    try:
        model, data, training, _rest = parser.read(list(_flags(recipe)))
    except HarpError as error:
        raise HarpError(f"finetuning: {error}") from error
    if training.world_size > 1:
        raise HarpError("a cross-validation runs in one process: start it without torchrun")
    return model, data, training


def _flags(recipe: dict[str, Any]) -> Iterator[str]:
    for name, value in recipe.items():
        yield f"--{name}"
        for one in value if isinstance(value, list) else [value]:
            yield one if isinstance(one, str) else json.dumps(one)


def _discard_weights(folder: Path) -> None:
    """Leave a finished checkpoint's log, manifest, card and plots."""
    files = folder.iterdir() if folder.is_dir() else ()
    # config.json goes first: without it the folder is known to hold no whole checkpoint.
    for path in sorted(files, key=lambda path: (path.name != "config.json", path.name)):
        if DISCARDED.fullmatch(path.name):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


@contextlib.contextmanager
def _only_errors(name: str) -> Iterator[None]:
    """Hold back what would be told once for every fold."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
