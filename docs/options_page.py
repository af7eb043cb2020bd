"""The options of a command, as a section of the documentation."""

from __future__ import annotations

from harp_plugin.options import type_words
from harp_plugin.options_parser import Option, OptionsParser

__all__ = ["options_page"]


def options_page(command: str, parser: OptionsParser) -> str:
    """Write what a command does and its options as Markdown.

    Args:
        command: its name.
        parser: of its options.

    Returns:
        A section in MyST with a table of the options that ``--help`` shows, and one of all others,
        folded.
    """
    lines = [f"## harp {command}", "", f"`{parser.usage}`", "", parser.description or ""]
    shown = [option for option in parser.options if option.shown]
    further = [option for option in parser.options if not option.shown]
    lines += ["", *_table(shown)] if shown else []
    if further:
        title = f"{len(further)} further options, those of Tevatron and transformers among them"
        lines += ["", f":::{{dropdown}} {title}", "", *_table(further), "", ":::"]
    return "\n".join(lines) + "\n"


def _table(options: list[Option]) -> list[str]:
    rows = ["| option | value | what it does |", "|---|---|---|"]
    for option in options:
        values = ", ".join(map(str, option.choices)) or type_words(option.kind).removesuffix(
            " or null"
        )
        cells = (f"`{option.name}`", values, option.help)
        rows.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return rows


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
