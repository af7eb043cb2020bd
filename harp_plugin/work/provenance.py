"""What finished work was made from, compared with what is asked for now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import HarpError
from .store_paths import with_urls

__all__ = ["MadeFrom", "OverwriteRules", "keep_option", "overwrite_option", "refuse_changed"]

_MOST_SHOWN = 3
_MISSING = "nothing"


@dataclass(frozen=True)
class OverwriteRules:
    """What may be done with earlier work that is not what is asked for now.

    Attributes:
        overwrite: replace work that was made from other settings or by other versions, or that was
            changed since.
        keep: use work that other package versions made as it is.
        output: the option that names another place, for errors.
    """

    overwrite: bool = False
    keep: bool = False
    output: str = "--output-dir"


def overwrite_option(work: str = "earlier work of harp") -> Any:
    """Make the field of a command's options that lets it replace other work."""
    text = f"Replace {work} that was made from something else or was changed since."
    return field(default=False, metadata={"help": text})


def keep_option() -> Any:
    """Make the field of a command's options that lets it use work of other package versions."""
    text = "Use work that other package versions have made as it is."
    return field(default=False, metadata={"help": text})


@dataclass(frozen=True)
class MadeFrom:
    """All that the content of work depends on.

    Attributes:
        settings: options and the like, by name; JSON types.
        versions: versions of the packages that make the work.
        inputs: a fingerprint of each input, by name; None where it is not known yet, which counts
            as no difference.
    """

    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    inputs: Mapping[str, str | None] = field(default_factory=dict)

    def difference(self, stored: MadeFrom) -> str:
        """Name the settings and inputs that differ, such as ``min_words: 100 then, 0 now``.

        Args:
            stored: what earlier work was made from.

        Returns:
            At most three differences; an empty text if there are none.
        """
        then, now = stored.settings, self.settings
        inputs = _named(stored.inputs), _named(self._known_inputs(stored))
        return _difference({**then, **inputs[0]}, {**now, **inputs[1]})

    def version_difference(self, stored: MadeFrom) -> str:
        """Name the packages whose versions differ, as `difference` names settings."""
        return _difference(stored.versions, self.versions)

    def has_inputs_of(self, stored: MadeFrom) -> bool:
        """Tell whether earlier work was made from the same inputs."""
        return dict(stored.inputs) == self._known_inputs(stored)

    def agrees_with(self, stored: MadeFrom, rules: OverwriteRules) -> bool:
        """Tell whether earlier work was made from the same, or differs in versions that it may."""
        return not self.difference(stored) and (rules.keep or not self.version_difference(stored))

    def can_use(self, path: Path, stored: MadeFrom, rules: OverwriteRules) -> bool:
        """Decide what is done with earlier work: use it, or replace it.

        Args:
            path: the work.
            stored: what it was made from.
            rules: what may be done with it.

        Returns:
            True if the work can be used as it is, False if it may be replaced.

        Raises:
            HarpError: neither is allowed; the message names what differs.
        """
        if self.agrees_with(stored, rules):
            return True
        self.refuse_replacing(path, stored, rules)
        return False

    def refuse_replacing(self, path: Path, stored: MadeFrom, rules: OverwriteRules) -> None:
        """Refuse to replace earlier work that was made from something else.

        Args:
            path: the work.
            stored: what it was made from.
            rules: what may be done with it.

        Raises:
            HarpError: it was, and the rules do not allow to replace it; the message names what
                differs.
        """
        if rules.overwrite:
            return
        if difference := self.difference(stored):
            raise HarpError(
                f"{path} was made from other settings ({difference}): name another "
                f"{rules.output}, or give --overwrite to replace it"
            )
        if difference := self.version_difference(stored):
            raise HarpError(
                f"{path} was made by other package versions ({difference}): give --keep to use it "
                "as it is, or --overwrite to make it anew"
            )

    def _known_inputs(self, stored: MadeFrom) -> dict[str, str | None]:
        return {
            name: stored.inputs.get(name) if fingerprint is None else fingerprint
            for name, fingerprint in self.inputs.items()
        }


def refuse_changed(path: Path, rules: OverwriteRules) -> None:
    """Refuse to replace a file that was changed after harp wrote it.

    Raises:
        HarpError: the rules do not allow to replace it.
    """
    if not rules.overwrite:
        raise HarpError(
            f"{path} is not as it was written: move it away, name another {rules.output}, or give "
            "--overwrite to make it anew"
        )


def _named(inputs: Mapping[str, str | None]) -> dict[str, str | None]:
    return {f"content of {name}": fingerprint for name, fingerprint in inputs.items()}


def _difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    then, now = with_urls(json.loads(json.dumps([then, now])))
    names = [name for name in sorted({*then, *now}) if _entry(then, name) != _entry(now, name)]
    shown = [
        f"{name}: {_shown(then, name)} then, {_shown(now, name)} now"
        for name in names[:_MOST_SHOWN]
    ]
    more = len(names) - _MOST_SHOWN
    return ", ".join([*shown, f"and {more} more"] if more > 0 else shown)


def _entry(settings: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    return (settings[name],) if name in settings else ()


def _shown(settings: Mapping[str, Any], name: str) -> str:
    text = str(settings.get(name, _MISSING))
    return text if len(text) <= 60 else f"{text[:57]}..."
