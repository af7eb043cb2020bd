"""`harp inspect`: draws groups of a build, counts, checks and shows them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from ..errors import HarpError
from ..models.loading import load_tokenizer
from ..options import Count, Number, Options, Progress, Seed
from ..tasks import DrawOptions, PairGroup, PreTrainingData
from ..tasks.registry import needed_stages
from ..tasks.source import BuildSource
from ..tasks.terms import stop_words
from ..weights.options import WeightOptions
from ..work.manifest import most_frequent, read_manifest
from ..work.writing import refuse_special, write_text
from .audit import TaskAudit, audit, audit_path
from .groups import AuditedGroups, Observation, observe, page_units
from .measurements import bm25_of
from .report import InspectionReport, TaskRow
from .samples import Sample, make_sample
from .text_encoder import TextEncoder

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["InspectOptions", "inspect"]

_MOST_COUNTED = 20_000
"""Ids are hashes, so that every n-th page of a larger build is a random sample."""
_OURS = re.compile(rb'"generator"(: | content=)"harp_plugin ')
_HEAD_BYTES = 4096


@dataclass(kw_only=True)
class InspectOptions(Progress, Options):
    """How many groups of a build are drawn to judge it, and where the page goes.

    Attributes:
        output: HTML page to write (default: inspect.html in DIR).
        samples: How many groups of each task the page shows.
        seed: Seed of the draws; training draws the same groups with it.
        model: Model whose tokenizer counts tokens, and whose encoder checks the pairs (default: the
            one that weighed the terms).
        table_groups: Groups of each task that are drawn for the mean lengths and the audit; at most
            all that the task has.
        model_checks: Run the checks that need an encoder: a model that sees the query or the
            document alone, and the cosine of both. They take most of the time.
    """

    output: str | None = None
    samples: Number = 12
    seed: Seed = 42
    model: str | None = None
    table_groups: Count = 1000
    model_checks: bool = True


def inspect(
    directory: str | Path, options: InspectOptions | None = None, draw: DrawOptions | None = None
) -> InspectionReport:
    """Count and check the pairs of a finished build, and write a page with samples of each task.

    The groups are those that training draws in its first epoch with the same seed and options. The
    same build, options and seed give the same bytes.

    Args:
        directory: a folder written by ``harp build``.
        options: how many groups are drawn, and where the page is written.
        draw: how pairs are drawn.

    Raises:
        HarpError: the build is unfinished, the model for counting tokens is missing, or the page
            would replace a file that another program wrote.
    """
    directory, options, draw = Path(directory), options or InspectOptions(), draw or DrawOptions()
    path = Path(options.output) if options.output else directory / "inspect.html"
    for file in (path, audit_path(path)):
        _refuse_other_files(file)
    tasks = read_manifest(directory / "examples")["settings"]["tasks"]
    manifests = {stage: read_manifest(directory / stage) for stage in needed_stages(tasks, draw)}
    weighed = manifests["weights"]["settings"] if "weights" in manifests else {}
    model = options.model or weighed.get("model", WeightOptions.model)
    tokenizer = load_tokenizer(model)
    is_named = options.model is not None or "model" in weighed
    encoder, not_run = _encoder(model, options, is_named=is_named)
    inspector = _Inspector(directory, options, draw, tokenizer, encoder)
    examples = manifests["examples"]["rows"]
    rows = [inspector.row(task, examples.get(task, 0)) for task in tasks]
    drops = {stage: manifest["drops"] for stage, manifest in manifests.items()}
    report = InspectionReport(
        rows=rows,
        counts=_counts(manifests),
        drops={s: most_frequent(d) for s, d in (drops | {"drawing": inspector.drops}).items()},
        samples=inspector.samples,
        audits=inspector.audits,
        not_run=not_run,
        draw=draw,
        seed=options.seed,
        model=model,
        manifests=manifests,
        path=path,
    )
    try:
        write_text(report.audit_path, report.json())
        write_text(path, report.html())
    except OSError as error:
        raise HarpError(f"cannot write {path} ({error.strerror}): give --output") from error
    return report


def _refuse_other_files(path: Path) -> None:
    """Refuse to replace a file that `harp inspect` did not write, a folder or a link."""
    refuse_special(path, "--output")
    if path.exists():
        with path.open("rb") as file:
            if not _OURS.search(file.read(_HEAD_BYTES)):
                raise HarpError(
                    f"{path} was not written by `harp inspect`, which leaves it as it is: name "
                    "another --output, or move it away"
                )


def _encoder(
    model: str, options: InspectOptions, *, is_named: bool
) -> tuple[TextEncoder | None, str]:
    """Load the encoder of the checks that need one, or say why they are not run.

    A model that nobody named is not loaded for them.
    """
    if not options.model_checks:
        return None, "--no-model-checks"
    if not is_named:
        return None, "the build has no model: name a --model"
    try:
        return TextEncoder(model, quiet=options.quiet), ""
    except HarpError as error:
        return None, str(error)


@dataclass
class _Inspector:
    """Draws the groups of one task after the other, and keeps what the report shows of them."""

    directory: Path
    options: InspectOptions
    draw: DrawOptions
    tokenizer: PreTrainedTokenizerBase
    encoder: TextEncoder | None
    bm25: Callable[[str, str], float] | None = None
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    audits: list[TaskAudit] = field(default_factory=list)
    drops: dict[str, int] = field(default_factory=dict)

    def row(self, task: str, examples: int) -> TaskRow:
        """Draw groups of a task: audit them, and count their pairs and tokens."""
        self.samples[task] = []
        pairs = (
            [pair for group in self._audited(task) for pair in group.members] if examples else []
        )
        means = (self._mean_tokens(side, pairs) for side in ("query", "document"))
        return TaskRow(task, examples, len(pairs), *means)

    def _audited(self, task: str) -> list[PairGroup]:
        """Draw and audit groups; the first of them become samples."""
        data = PreTrainingData(self.directory, {task: 1}, seed=self.options.seed, draw=self.draw)
        wanted = min(max(self.options.table_groups, self.options.samples), data.groups[task])
        observations = list(self._observed(task, data, wanted))
        groups = AuditedGroups(
            task,
            observations,
            self.options.seed,
            stop_words(self.draw.stop_words),
            self._bm25(data.source),
            self.encoder,
            partial(page_units, source=data.source, options=self.draw),
        )
        if task_audit := audit(groups):
            self.audits.append(task_audit)
        return [observation.group for observation in observations]

    def _observed(self, task: str, data: PreTrainingData, wanted: int) -> Iterator[Observation]:
        skipped: set[int] = set()
        for index in tqdm(range(wanted), task, unit="group", disable=self.options.quiet):
            drawn = data.drawn(0, index)
            if drawn is None:
                self.drops[f"{task}: no pair in 100 examples on end"] = 1
                break
            skipped.update(drawn.skipped)
            if index < self.options.samples:
                sample = make_sample(drawn, index, data.source, self.draw)
                self.samples[task].append(sample)
            yield observe(drawn.group, data.source)
        if skipped:
            self.drops[f"{task}: example that gives no pair (such as a tie)"] = len(skipped)

    def _bm25(self, source: BuildSource) -> Callable[[str, str], float]:
        """Count the words of the build's documents once, or those of some of very many."""
        if self.bm25 is None:
            step = -(-len(source.documents) // _MOST_COUNTED)
            fields = self.draw.document_fields
            pages = source.documents[:: max(1, step)].tolist()
            self.bm25 = bm25_of(source.document(page, fields) for page in pages)
        return self.bm25

    def _mean_tokens(self, side: str, pairs: list[Any]) -> float | None:
        """Return the mean number of wordpieces of one side's texts."""
        texts = Counter(getattr(pair, side) for pair in pairs)
        if not texts:
            return None
        ids = self.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        total = sum(len(each) * count for each, count in zip(ids, texts.values(), strict=True))
        return total / texts.total()


def _counts(manifests: dict[str, dict[str, Any]]) -> dict[str, int]:
    corpus, graph = manifests["corpus"]["rows"], manifests["graph"]["rows"]
    return {
        "pages": corpus["pages"],
        "redirects": corpus["redirects"],
        "sentences with links": corpus["sentences"],
        "links": corpus["links"],
        "links that resolve": graph["anchors"],
        "pages that may be a document": graph["documents"],
    }
