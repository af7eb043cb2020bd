"""`harp inspect`: draws groups of a build, counts, checks and shows them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from huggingface_hub import try_to_load_from_cache
from tqdm import tqdm

from ..errors import HarpError
from ..models.loading import load_tokenizer, resolve_model
from ..tasks import DrawOptions, PairGroup, PreTrainingData
from ..tasks.registry import needed_stages
from ..tasks.source import BuildSource
from ..weights.options import WeightOptions
from ..work.manifest import read_manifest
from ..work.writing import write_text
from .audit import TaskAudit, audit, audit_json, audit_path
from .bm25 import BM25
from .generator import AUDIT_MARK, PAGE_MARK, refuse_other_files
from .measurements import AuditedGroups
from .observations import Observation, observe, page_unit, query_units
from .options import InspectOptions
from .page import render
from .query_likeness import likeness_samples
from .report import InspectionReport
from .samples import Sample, make_sample
from .table import TaskRow, TokenCounter, most_frequent
from .text_encoder import TextEncoder

__all__ = ["inspect"]

_MOST_COUNTED = 20_000
"""Ids are hashes, so that every n-th page of a larger build is a random sample."""


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
    refuse_other_files(path, PAGE_MARK)
    refuse_other_files(audit_path(path), AUDIT_MARK)
    tasks = read_manifest(directory / "examples")["settings"]["tasks"]
    manifests = {stage: read_manifest(directory / stage) for stage in needed_stages(tasks, draw)}
    weighed = manifests["weights"]["settings"] if "weights" in manifests else {}
    model = options.model or weighed.get("model", WeightOptions.model)
    weighting = weighed.get("weighting", WeightOptions.weighting)
    counter = TokenCounter(load_tokenizer(model))
    is_named = options.model is not None or "model" in weighed
    encoder, not_run = _encoder(model, options, is_named=is_named)
    inspector = _Inspector(directory, options, draw, counter, weighting, encoder)
    examples = manifests["examples"]["rows"]
    rows = [inspector.row(task, examples.get(task, 0)) for task in tasks]
    drops = {stage: most_frequent(manifests[stage]["drops"]) for stage in manifests}
    drops["drawing"] = most_frequent(inspector.drops)
    report = InspectionReport(
        rows=rows,
        counts=_counts(manifests),
        drops=drops,
        samples=inspector.samples,
        audits=inspector.audits,
        not_run=not_run,
        likeness=likeness_samples(directory, draw),
        draw=draw,
        options=options,
        model=model,
        manifests=manifests,
        path=path,
    )
    try:
        report.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(
            report.audit_path,
            audit_json(report.audits, manifests, draw, options.seed, model, not_run),
        )
        write_text(report.path, render(report))
    except OSError as error:
        raise HarpError(f"cannot write {report.path} ({error.strerror}): give --output") from error
    return report


def _encoder(
    model: str, options: InspectOptions, *, is_named: bool
) -> tuple[TextEncoder | None, str]:
    """Load the encoder of the checks that need one, or say why they are not run.

    A model that nobody named is not downloaded for them.
    """
    if not options.model_checks:
        return None, "--no-model-checks"
    if not is_named and not _is_on_disk(model):
        return None, f"the build has no model, and {model} is not on this machine: name a --model"
    try:
        return TextEncoder(model, quiet=options.quiet), ""
    except HarpError as error:
        return None, str(error)


def _is_on_disk(model: str) -> bool:
    if Path(resolve_model(model)).is_dir():
        return True
    return isinstance(try_to_load_from_cache(model, "model.safetensors"), str)


class _Inspector:
    """Draws the groups of one task after the other, and keeps what the report shows of them."""

    def __init__(
        self,
        directory: Path,
        options: InspectOptions,
        draw: DrawOptions,
        counter: TokenCounter,
        weighting: str,
        encoder: TextEncoder | None,
    ) -> None:
        self.directory, self.options, self.draw = directory, options, draw
        self.counter, self.weighting, self.encoder = counter, weighting, encoder
        self.bm25: BM25 | None = None
        self.samples: dict[str, list[Sample]] = {}
        self.audits: list[TaskAudit] = []
        self.drops: dict[str, int] = {}

    def row(self, task: str, examples: int) -> TaskRow:
        """Draw groups of a task; the row of the table counts them."""
        self.samples[task] = []
        return self.counter.row(task, examples, self._groups(task) if examples else ())

    def _groups(self, task: str) -> Iterator[PairGroup]:
        """Draw groups; the first of them become samples, all are audited."""
        data = PreTrainingData(self.directory, {task: 1}, seed=self.options.seed, draw=self.draw)
        observations: list[Observation] = []
        skipped: set[int] = set()
        wanted = min(max(self.options.table_groups, self.options.samples), data.groups[task])
        bar = tqdm(range(wanted), desc=task, unit="group", disable=self.options.quiet)
        for index in bar:
            drawn = data.drawn(0, index)
            if drawn is None:
                self.drops[f"{task}: no pair in 100 examples on end"] = 1
                break
            skipped.update(drawn.skipped)
            if index < self.options.samples:
                sample = make_sample(drawn, index, data.source, self.draw, self.weighting)
                self.samples[task].append(sample)
            observations.append(observe(drawn.group, data.source, self.draw))
            yield drawn.group
        if skipped:
            self.drops[f"{task}: example that gives no pair (such as a tie)"] = len(skipped)
        groups = AuditedGroups(
            task,
            observations,
            len(data.source.documents),
            self.options.seed,
            self._bm25(data.source),
            self.encoder,
            partial(_groups_from, data, wanted),
            partial(query_units, source=data.source, options=self.draw),
            partial(page_unit, fields=self.draw.document_fields),
        )
        if task_audit := audit(groups):
            self.audits.append(task_audit)

    def _bm25(self, source: BuildSource) -> BM25:
        """Count the words of the build's documents once, or those of some of very many."""
        if self.bm25 is None:
            step = -(-len(source.documents) // _MOST_COUNTED)
            fields = self.draw.document_fields
            pages = source.documents[:: max(1, step)].tolist()
            self.bm25 = BM25.of(source.document(page, fields) for page in pages)
        return self.bm25


def _groups_from(data: PreTrainingData, first: int) -> Iterator[PairGroup]:
    """Draw the groups of the first epoch from the one of this number on."""
    for index in range(first, len(data)):
        drawn = data.drawn(0, index)
        if drawn is None:
            return
        yield drawn.group


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
