"""`harp export`: drawn pairs as JSON lines for stock Tevatron and Hugging Face datasets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Literal, NamedTuple

from ..errors import show
from ..options import Count, Overwriting, Progress, Seed, option
from ..options_parser import BUILD, Command
from ..sampling import stable_id
from ..tasks import HARP_TASKS, DrawOptions, PairGroup, PreTrainingData
from ..tasks.registry import check_negatives, needed_stages
from ..tasks.terms import stop_words_hash
from ..work.build_stage import BuildRequest, finish_shards
from ..work.lock import one_writer
from ..work.manifest import read_content, source_names
from ..work.parquet import ShardFile, write_lines
from ..work.stage import Stage
from ..work.writing import write_text

__all__ = ["ExportOptions", "as_tevatron", "export"]

_CARD = "README.md"
_SHARD = 10_000
_CORPUS, _DRAWN = "corpus", "drawn"
_DECIDING = ("tasks", "groups_per_epoch", "epochs", "seed", "format")
"""Names of the options that decide which pairs are drawn, in addition to those of drawing."""
_CONFIGS = """
- config_name: corpus
  data_files:
  - split: train
    path: corpus/corpus.jsonl"""


@dataclass
class ExportOptions(Progress, Overwriting):
    """What is drawn, and where it is written.

    Attributes:
        output_dir: Folder for the dataset.
        tasks: Tasks whose pairs are drawn, in equal parts.
        groups_per_epoch: How many groups of pairs an epoch has (default: as many as examples).
        epochs: How many epochs are drawn.
        format: What a row has of its documents: their texts (pairs), as Tevatron 0.1.0 and its
            reranker read them; or their ids in a corpus (tevatron), as its retriever reads them
            today.
        seed: Seed of everything that is drawn.
        workers: How many worker processes run. The files are the same for any number.
    """

    output_dir: str
    tasks: list[str] = option(HARP_TASKS)
    groups_per_epoch: Count | None = None
    epochs: Count = 1
    format: Literal["pairs", "tevatron"] = "pairs"
    seed: Seed = 42
    workers: Count = 1


class _Shard(NamedTuple):
    name: str
    data: PreTrainingData
    stage: Stage
    slots: range
    has_ids: bool


def export(directory: str | Path, options: ExportOptions, draw: DrawOptions | None = None) -> Path:
    """Draw pairs from a finished build and write them as a dataset.

    ``data/train-*.jsonl`` holds one group a line: Tevatron's ``query``, ``positive_passages`` and
    ``negative_passages``, and the pairs themselves with their origins as ``positive`` and
    ``negatives``. Where a task's members differ in the query (RQP), Tevatron's fields hold the
    document as ``query`` and the pseudo queries as passages, and ``swapped`` is true. ``README.md``
    is the data card.

    In the format ``tevatron``, a row has ``query_text``, ``positive_document_ids`` and
    ``negative_document_ids``, and ``corpus/corpus.jsonl`` has each document once.

    Args:
        directory: a folder written by ``harp build``.
        options: how many groups are drawn, and where they are written.
        draw: how pairs are drawn.

    Returns:
        The folder.

    Raises:
        HarpError: the build is unfinished, damaged, or lacks examples of a task; or the folder
            holds another dataset or other files.
    """
    draw = draw or DrawOptions()
    groups = options.groups_per_epoch
    check_negatives(options.tasks, draw)
    data = PreTrainingData(
        directory,
        dict.fromkeys(options.tasks, 1),
        seed=options.seed,
        draw=draw,
        groups_per_epoch=groups,
    )
    inputs = read_content(Path(directory), *needed_stages(options.tasks, draw))
    inputs["stop words"] = stop_words_hash(draw.stop_words)
    stage = Stage(
        Path(options.output_dir),
        {**{name: getattr(options, name) for name in _DECIDING}, **asdict(draw)},
        inputs,
        ("numpy",),
        rules=options.rules,
        kind="export",
        others=(_CARD,),
        temporary=(_DRAWN,),
    )
    stage.check()
    with one_writer(stage.folder):
        _draw_all(stage, data, options)
    return stage.folder


def _draw_all(stage: Stage, data: PreTrainingData, options: ExportOptions) -> None:
    if stage.is_finished():
        return
    stage.start()
    total = options.epochs * len(data)
    shards: dict[str, _Shard] = {}
    for number, start in enumerate(range(0, total, _SHARD)):
        name = f"train-{number:05d}"
        slots = range(start, min(start + _SHARD, total))
        shards[name] = _Shard(name, data, stage, slots, options.format == "tevatron")
    request = BuildRequest(data.directory, quiet=options.quiet)
    finish_shards(stage, request, _write_shard, shards, workers=options.workers)
    if options.format == "tevatron" and not stage.shard_done(_CORPUS):
        _write_corpus(stage)
    if not (stage.folder / _CARD).exists():  # it may have been edited since
        _write_card(stage, data)
    stage.finish()


def _write_shard(shard: _Shard) -> None:
    rows: list[dict[str, Any]] = []
    documents: dict[str, dict[str, str]] = {}
    counts: Counter[str] = Counter()
    for slot in shard.slots:
        epoch, index = divmod(slot, len(shard.data))
        group = shard.data.group(epoch, index)
        counts[group.task] += 1
        row = as_tevatron(group, f"{group.task}-{epoch}-{index}")
        if shard.has_ids:
            row, passages = _with_ids(row)
            documents |= {passage["docid"]: passage for passage in passages}
        rows.append(row)
    files = [_write_lines(shard.stage.folder / "data" / f"{shard.name}.jsonl", rows)]
    if shard.has_ids:
        drawn = shard.stage.folder / _DRAWN / f"{shard.name}.jsonl"
        files.append(_write_lines(drawn, list(documents.values())))
    shard.stage.finish_shard(shard.name, counts, {}, files)


def _write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> ShardFile:
    return write_lines(path, [f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows])


def _with_ids(row: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Return a row that names its passages by their ids, and the passages."""
    positives, negatives = row["positive_passages"], row["negative_passages"]
    named = {
        "query_id": row["query_id"],
        "query_text": row["query"],
        "positive_document_ids": [passage["docid"] for passage in positives],
        "negative_document_ids": [passage["docid"] for passage in negatives],
        "task": row["task"],
        "swapped": row["swapped"],
    }
    return named, positives + negatives


def _write_corpus(stage: Stage) -> None:
    """Write every drawn document once, in the order in which they were drawn."""
    documents: dict[str, str] = {}
    for file in stage.table(_DRAWN):
        with file.path.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                documents.setdefault(json.loads(line)["docid"], line)
    path = stage.folder / _CORPUS / "corpus.jsonl"
    stage.finish_shard(_CORPUS, {}, {}, [write_lines(path, list(documents.values()))])


def as_tevatron(group: PairGroup, id: str) -> dict[str, Any]:
    """Make a row of a group: Tevatron's fields, and the pairs themselves with their origins."""
    positive, negatives = group.positive, group.negatives
    swapped = any(negative.query != positive.query for negative in negatives)
    return {
        "query_id": id,
        "query": positive.document if swapped else positive.query,
        "positive_passages": [_passage(positive.query if swapped else positive.document)],
        "negative_passages": [_passage(n.query if swapped else n.document) for n in negatives],
        "task": group.task,
        "swapped": swapped,
        "positive": asdict(positive),
        "negatives": [asdict(negative) for negative in negatives],
    }


def _passage(text: str) -> dict[str, str]:
    return {"docid": f"{stable_id(text):016x}", "title": "", "text": text}


def _write_card(stage: Stage, data: PreTrainingData) -> None:
    rows, _ = stage.counts()
    card = Template((files("harp_plugin") / "data" / "dataset-card.md").read_text("utf-8"))
    table = "\n".join(f"| {task} | {count:,} |" for task, count in sorted(rows.items()))
    options = "\n".join(f"| {name} | {value} |" for name, value in stage.options.items())
    sources = ", ".join(source_names(data.directory))
    configs = _CONFIGS if stage.options["format"] == "tevatron" else ""
    text = card.substitute(counts=table, options=options, sources=sources, configs=configs)
    write_text(stage.folder / _CARD, text)


@Command("DIR --output-dir DIR", ExportOptions, DrawOptions, positional=BUILD)
def command(options: ExportOptions, draw: DrawOptions, directory: str) -> None:
    """Pairs are drawn from a build and written as JSON lines, with a data card.

    Stock Tevatron and datasets.load_dataset read them.
    """
    show(f"dataset: {export(directory, options, draw)}")
