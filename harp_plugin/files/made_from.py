"""What finished work was made from, compared with what is asked for now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import HarpError

_SHOWN = 3
_MISSING = "nothing"


@dataclass(frozen=True)
class OverwriteRules:
    """What may be done with work of ours that does not fit.

    Attributes:
        overwrite: replace our own work of other settings or versions, or that was changed.
        keep: use work of other package versions as it is.
        output: the option that names another place, for errors.
    """

    overwrite: bool = False
    keep: bool = False
    output: str = "--output-dir"


def overwrite_option(work: str = "work of ours") -> Any:
    """The field of a command's options that lets it replace other work."""
    text = f"Replace {work} that was made from something else or was changed since."
    return field(default=False, metadata={"help": text})


def keep_option() -> Any:
    """The field of a command's options that lets it use work of other package versions."""
    text = "Use work of other package versions as it is."
    return field(default=False, metadata={"help": text})


def difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The entries that differ, as ``min_words: 100 then, 0 now``; at most three of them."""
    names = [
        name
        for name in sorted({*then, *now})
        if then.get(name, _MISSING) != now.get(name, _MISSING)
    ]
    shown = [
        f"{name}: {_short(then.get(name, _MISSING))} then, {_short(now.get(name, _MISSING))} now"
        for name in names[:_SHOWN]
    ]
    more = len(names) - _SHOWN
    return ", ".join([*shown, f"and {more} more"] if more > 0 else shown)


def refuse_other_settings(
    path: Path, then: Mapping[str, Any], now: Mapping[str, Any], output: str = "--output-dir"
) -> None:
    """Refuse to replace work that was made from other settings.

    Args:
        path: the work.
        then: the settings that it was made from.
        now: the settings that are asked for.
        output: the option that names another place.

    Raises:
        HarpError: the settings differ; the message names what differs.
    """
    if then != now:
        raise HarpError(
            f"{path} was made from other settings ({difference(then, now)}): name another "
            f"{output}, or give --overwrite to replace it"
        )


def refuse_other_versions(path: Path, then: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse to go on silently with work that other releases of packages made.

    Raises:
        HarpError: the versions differ; the message names what differs.
    """
    if then != now:
        raise HarpError(
            f"{path} was made by other package versions ({difference(then, now)}): give --keep to "
            "use it as it is, or --overwrite to make it anew"
        )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
