"""The report as one HTML file that needs nothing beside itself."""

from __future__ import annotations

import re
from dataclasses import asdict

from markupsafe import Markup, escape

from ..html_page import render_page
from ..tasks import PRESETS
from .charts import Chart
from .check import ACCURACY_THRESHOLDS, BASELINE_THRESHOLDS, NOTHING_TO_DO, Level
from .explanations import explain
from .generator import GENERATOR
from .passages import LEVELS
from .report import NOT_RUN, InspectionReport
from .table import format_mean

__all__ = ["render"]

_FLAG = re.compile(r"--[a-z-]+")


def render(report: InspectionReport) -> str:
    """Write the page: it escapes every text of the corpus, and may load nothing."""
    inputs = report.manifests["corpus"]["inputs"]
    default = PRESETS["default"]
    return render_page(
        __package__,
        "page.html",
        {"mean": format_mean, "flags": _flags},
        report=report,
        generator=GENERATOR,
        sources=[name.partition(":")[2] for name in inputs],
        weight_levels=range(1, LEVELS + 1),
        share=lambda level: round(level / LEVELS, 2),
        accuracy_limits=ACCURACY_THRESHOLDS,
        baseline_limits=BASELINE_THRESHOLDS,
        not_run=NOT_RUN,
        nothing_to_do=NOTHING_TO_DO,
        red_and_yellow=(Level.RED, Level.YELLOW),
        audits={audit.task: audit for audit in report.audits},
        chart=Chart,
        explanations={row.task: explain(row.task) for row in report.rows},
        likeness_rows=list(zip(*report.likeness[1:], strict=True)) if report.likeness else [],
        drawing=[
            (name, value, name in default and value != default[name])
            for name, value in asdict(report.draw).items()
        ],
    )


def _flags(text: str) -> Markup:
    """Mark the command-line options in a sentence as code."""
    return Markup(_FLAG.sub(lambda flag: f"<code>{flag[0]}</code>", str(escape(text))))
