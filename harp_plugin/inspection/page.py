"""The report as one HTML file that needs nothing beside itself."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from ..tasks import PRESETS
from .advice import NOTHING
from .charts import Chart
from .explanations import explain
from .lights import RULE
from .ours import GENERATOR
from .passages import LEVELS
from .table import figure

if TYPE_CHECKING:
    from .report import InspectionReport

_FLAG = re.compile(r"--[a-z-]+")


def render(report: InspectionReport) -> str:
    """Write the page; every text of the corpus is escaped, and the page may load nothing."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["figure"] = figure
    environment.filters["flags"] = _flags
    environment.filters["source_hash"] = _source_hash
    template = environment.from_string((files(__package__) / "page.html").read_text("utf-8"))
    inputs = report.manifests["corpus"]["inputs"]
    default = PRESETS["default"]
    return template.render(
        report=report,
        generator=GENERATOR,
        sources=[name.partition(":")[2] for name in inputs],
        levels=range(1, LEVELS + 1),
        share=lambda level: round(level / LEVELS, 2),
        limits=RULE,
        nothing=NOTHING,
        audits={audit.task: audit for audit in report.audits},
        chart=Chart,
        explanations={row.task: explain(row.task) for row in report.rows},
        drawing=[
            (name, value, name in default and value != default[name])
            for name, value in asdict(report.draw).items()
        ],
    )


def _flags(text: str) -> Markup:
    """A sentence whose command-line options are marked as code."""
    return Markup(_FLAG.sub(lambda flag: f"<code>{flag[0]}</code>", str(escape(text))))


def _source_hash(source: str) -> str:
    """What a content security policy names an inline style by."""
    digest = hashlib.sha256(source.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
