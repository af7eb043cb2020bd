"""Write the model card of a checkpoint from its manifest, for readers and for the hub."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from ..models.loading import PACKAGE_PREFIX
from ..models.trainable import ModelDescription
from ..tasks import TASKS
from ..work.artifact import Provenance
from .losses import CITATIONS, WeightedSum
from .validation import ValidationOptions

__all__ = ["CARD", "HARP", "bibtex", "cited", "is_on_the_hub", "model_card"]

CARD = "README.md"
"""File name of a model card."""
HARP = "ma2021harp"
"""Key of the HARP paper in ``data/citations.bib``."""


def cited(recipe: Mapping[str, Any]) -> list[str]:
    """Return the keys of the papers whose tasks and losses a recipe uses, HARP's key first."""
    tasks = (getattr(TASKS[name], "citation", None) for name in recipe.get("tasks", ()))
    losses = (CITATIONS.get(name) for name in recipe.get("losses", ()))
    return list(dict.fromkeys([HARP, *filter(None, [*tasks, *losses])]))


def model_card(
    made_from: Provenance, facts: Mapping[str, Any], description: ModelDescription
) -> ModelCard:
    """Make the card of a checkpoint; the same run always has the same card.

    Args:
        made_from: what the run is made from.
        facts: what the manifest of the checkpoint says besides.
        description: what the card says about the kind of model.
    """
    recipe = made_from.settings
    loss = WeightedSum(recipe["losses"])
    ranks = loss.needs_scores or not facts["untrained_weights"]
    name = recipe["model"]
    is_finetuned = "build_dir" not in recipe
    title = description.finetuned_title if is_finetuned else description.pretrained_title
    measured = list(_measured(recipe, facts["metrics"], description.pipeline_tag)) or None
    data = ModelCardData(
        language=recipe.get("language"),
        license=recipe.get("license"),
        base_model=name if is_on_the_hub(name) else None,
        library_name="transformers",
        pipeline_tag=description.pipeline_tag if ranks else "fill-mask",
        tags=list(description.tags),
        datasets=_on_the_hub(recipe.get("dataset")),
        model_name=title if measured else None,
        eval_results=measured,
    )
    return ModelCard.from_template(
        data,
        template_str=(files("harp_plugin") / "data" / description.template).read_text("utf-8"),
        title=title,
        base=f"`{name}`",
        mlm=loss.needs_mlm,
        max_length=recipe["max_length"],
        ranks=ranks,
        origin=_origin(recipe, is_finetuned=is_finetuned),
        tables=list(_tables(made_from, facts)),
        citations=bibtex(facts["citations"]),
    )


def bibtex(keys: Iterable[str]) -> str:
    """Return the entries of ``data/citations.bib`` with these keys."""
    text = (files("harp_plugin") / "data" / "citations.bib").read_text("utf-8")
    entries = {entry.partition("{")[2].partition(",")[0]: entry for entry in text.split("\n\n")}
    return "\n\n".join(entries[key].strip() for key in keys)


def is_on_the_hub(name: str) -> bool:
    """Return whether a name is of a model on the hub, not of a folder or a package."""
    is_path = name.startswith((".", "/", "~")) or name.count("/") > 1 or Path(name).exists()
    return not is_path and not name.startswith(PACKAGE_PREFIX)


def _on_the_hub(dataset: str | None) -> list[str] | None:
    """Name a dataset of ir_datasets as the hub does."""
    if dataset is None or dataset.startswith("harp"):
        return None
    return ["irds/" + dataset.removeprefix("irds:").replace("/", "_")]


def _measured(
    recipe: Mapping[str, Any], metrics: Mapping[str, Any], task: str
) -> Iterable[EvalResult]:
    """Yield what was measured on the queries of ``validation_dataset``, for the model index."""
    dataset = recipe.get("validation_dataset")
    for measure in recipe.get("validation_measures") or ValidationOptions().validation_measures:
        value = metrics.get(f"eval_{measure}")
        if dataset and value is not None:
            yield EvalResult(
                task_type=task,
                dataset_type=dataset,
                dataset_name=f"{dataset}, queries for validation",
                metric_type=measure,
                metric_value=value,
            )


def _origin(recipe: Mapping[str, Any], *, is_finetuned: bool) -> str:
    """Return the sentence that says what the model was trained on."""
    if not is_finetuned:
        tasks = ", ".join(f"`{task}`" for task in recipe["tasks"])
        return f"Pre-trained by harp_plugin on pairs drawn from a hyperlinked corpus: {tasks}."
    if recipe.get("dataset"):
        return f"Trained by harp_plugin on queries and judgments of `{recipe['dataset']}`."
    return "Trained by harp_plugin on queries with positive and negative passages."


def _tables(
    made_from: Provenance, facts: Mapping[str, Any]
) -> Iterable[tuple[str, tuple[str, str], list]]:
    """Yield the heading, the names of the columns and the rows of each table."""
    recipe = made_from.settings
    options = {**recipe, "seed": facts["seed"], "data": None}
    counts = {**facts["counts"], "groups in an epoch": recipe["groups_per_epoch"]}
    metrics = {"step": facts["best_step"] or facts["steps"], **facts["metrics"]}
    for heading, names, rows in (
        ("Training data", ("what", "count"), counts),
        ("Losses", ("loss", "weight"), recipe["losses"]),
        ("At this step", ("measure", "value"), metrics),
        ("Options", ("option", "value"), options),
        ("Versions", ("package", "version"), made_from.versions),
    ):
        values = [(name, value) for name, value in rows.items() if value is not None]
        yield heading, names, [(_cell(name), _cell(value)) for name, value in values]


def _cell(value: object) -> str:
    """Write a value as text for a cell of a Markdown table."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split()).replace("|", "\\|")
