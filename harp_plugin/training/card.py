"""The model card beside a checkpoint: what its manifest says, for a reader and for the hub."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData

from ..models.loading import PACKAGE_PREFIX
from .losses import WeightedSum

CARD = "README.md"
HARP = "ma2021harp"
CITED = {
    "prop": "ma2021prop",
    **dict.fromkeys(("srr", "rwi", "ati", "ltm"), "su2024wikiformer"),
    **dict.fromkeys(("ict", "bfs", "wlp"), "chang2020tasks"),
    "ranknet": "burges2005ranknet",
    "lce": "gao2021lce",
    "margin_mse": "hofstaetter2020margin",
    "kl": "lin2020distilling",
}
"""Key in ``data/citations.bib`` by task or loss; HARP's own are not named."""


def cited(recipe: Mapping[str, Any]) -> list[str]:
    """Keys of the papers whose tasks and losses a recipe uses, HARP's first."""
    used = [*recipe.get("tasks", ()), *recipe.get("losses", ())]
    return list(dict.fromkeys([HARP, *(CITED[name] for name in used if name in CITED)]))


def model_card(manifest: Mapping[str, Any]) -> ModelCard:
    """The card of a checkpoint, from its manifest alone: the same bytes for the same run."""
    recipe = manifest["recipe"]
    loss = WeightedSum(recipe["losses"])
    ranks = loss.needs_scores or not manifest["untrained_weights"]
    name = recipe["model"]
    tuned = "build_dir" not in recipe
    data = ModelCardData(
        base_model=name if is_on_the_hub(name) else None,
        library_name="transformers",
        pipeline_tag="text-ranking" if ranks else "fill-mask",
        tags=["cross-encoder", "information-retrieval", "reranker", "harp"],
    )
    return ModelCard.from_template(
        data,
        template_str=(files("harp_plugin") / "data" / "model-card.md").read_text("utf-8"),
        title="A reranker trained on judged queries"
        if tuned
        else "A reranker pre-trained on hyperlinks",
        base=f"`{name}`",
        mlm=loss.needs_mlm,
        ranks=ranks,
        origin=_origin(recipe, tuned),
        tables=list(_tables(manifest)),
        citations=bibtex(manifest["citations"]),
    )


def bibtex(keys: Iterable[str]) -> str:
    """The entries of `citations.bib` with these keys."""
    text = (files("harp_plugin") / "data" / "citations.bib").read_text("utf-8")
    entries = {entry.partition("{")[2].partition(",")[0]: entry for entry in text.split("\n\n")}
    return "\n\n".join(entries[key].strip() for key in keys)


def is_on_the_hub(name: str) -> bool:
    """Whether a model's name is one of the hub, not a folder's or a package's."""
    is_path = name.startswith((".", "/", "~")) or name.count("/") > 1 or Path(name).exists()
    return not is_path and not name.startswith(PACKAGE_PREFIX)


def _origin(recipe: Mapping[str, Any], tuned: bool) -> str:
    if not tuned:
        tasks = ", ".join(f"`{task}`" for task in recipe["tasks"])
        return f"Pre-trained by harp_plugin on pairs drawn from a hyperlinked corpus: {tasks}."
    if recipe.get("dataset"):
        return f"Trained by harp_plugin on queries and judgements of `{recipe['dataset']}`."
    return "Trained by harp_plugin on queries with positive and negative passages."


def _tables(manifest: Mapping[str, Any]) -> Iterable[tuple[str, tuple[str, str], list]]:
    recipe = manifest["recipe"]
    options = {**recipe, "seed": manifest["seed"], "processes": manifest["processes"]}
    counts = {**manifest["counts"], "groups in an epoch": manifest["groups_per_epoch"]}
    metrics = {"step": manifest["best_step"] or manifest["steps"], **manifest["metrics"]}
    for heading, names, rows in (
        ("Training data", ("what", "count"), counts),
        ("Losses", ("loss", "weight"), recipe["losses"]),
        ("At this step", ("measure", "value"), metrics),
        ("Options", ("option", "value"), options),
        ("Versions", ("package", "version"), manifest["versions"]),
    ):
        given = [(name, value) for name, value in rows.items() if value is not None]
        yield heading, names, [(_cell(name), _cell(value)) for name, value in given]


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split()).replace("|", "\\|")
