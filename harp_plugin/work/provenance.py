"""What finished work was made from, compared with what is asked for now."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .._version import __version__
from ..errors import HarpError
from ..options import OverwriteRules
from .records import json_hash

__all__ = ["INDEX_RULES", "OverwriteRules", "Provenance", "package_versions", "scoring_versions"]

INDEX_RULES = OverwriteRules(overwrite=True, accept_other_versions=True)
"""Of an index whose folder is named from what it was made from: one of other package versions is
used, and one with a damaged file is made again."""
_MOST_SHOWN = 3


@dataclass(frozen=True)
class Provenance:
    """All that the content of work depends on.

    Attributes:
        settings: options and the like, by name; JSON types.
        versions: versions of the packages that make the work.
        inputs: a fingerprint of each input, by name; None where it is not known yet, which counts
            as no difference.
    """

    settings: Mapping[str, Any]
    versions: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Provenance:
        """Read what finished or started work was made from."""
        return cls(record["settings"], record["versions"], record["inputs"])

    @property
    def key(self) -> str:
        """A short hash of settings and inputs, for the name of a folder."""
        return json_hash([dict(self.settings), dict(self.inputs)])[:12]

    def difference(self, stored: Provenance) -> str:
        """Name the settings and inputs that differ, such as ``min_words: 100 then, 0 now``.

        Args:
            stored: what earlier work was made from.

        Returns:
            At most three differences; an empty text if there are none.
        """
        unknown = {name for name, fingerprint in self.inputs.items() if fingerprint is None}
        then, now = (
            {f"content of {name}": value for name, value in inputs.items() if name not in unknown}
            for inputs in (stored.inputs, self.inputs)
        )
        return _difference({**stored.settings, **then}, {**self.settings, **now})

    def version_difference(self, stored: Provenance) -> str:
        """Name the packages whose versions differ, as `difference` names settings."""
        return _difference(stored.versions, self.versions)

    def agrees_with(self, stored: Provenance, rules: OverwriteRules) -> bool:
        """Return whether earlier work was made from the same, by versions that are accepted."""
        return not self.difference(stored) and (
            rules.accept_other_versions or not self.version_difference(stored)
        )

    def refuse_replacing(self, path: Path, stored: Provenance, rules: OverwriteRules) -> None:
        """Refuse to replace earlier work that was made from something else.

        Raises:
            HarpError: it was, and the rules do not allow to replace it; the message names what
                differs.
        """
        if rules.overwrite or self.agrees_with(stored, rules):
            return
        if difference := self.difference(stored):
            raise HarpError(
                f"{path} was made from other settings ({difference}): name another "
                f"{rules.output}, or give --overwrite to replace it"
            )
        difference = self.version_difference(stored)
        raise HarpError(
            f"{path} was made by other package versions ({difference}): give "
            "--accept-other-versions to use it as it is, or --overwrite to make it again"
        )


def _difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    then, now = json.loads(json.dumps([dict(then), dict(now)]))
    missing = object()
    names = [n for n in sorted({*then, *now}) if then.get(n, missing) != now.get(n, missing)]
    shown = [
        f"{name}: {_shown(then, name)} then, {_shown(now, name)} now"
        for name in names[:_MOST_SHOWN]
    ]
    more = len(names) - _MOST_SHOWN
    return ", ".join([*shown, f"and {more} more"] if more > 0 else shown)


def _shown(settings: Mapping[str, Any], name: str) -> str:
    text = str(settings.get(name, "nothing"))
    return text if len(text) <= 60 else f"{text[:57]}..."


def package_versions(*packages: str) -> dict[str, str]:
    """Look up the installed versions of packages.

    Args:
        packages: names of distributions, in any spelling; ``python`` is the interpreter.

    Returns:
        The version of each package, by its name as it is written in ``packages``; a package that
        is missing is ``not installed``.
    """
    return {package: _version(package) for package in packages}


def scoring_versions() -> dict[str, str]:
    """Look up the version of each package that decides the bits of a score, by its name."""
    return package_versions("harp_plugin", "tokenizers", "torch", "transformers")


def _version(package: str) -> str:
    if package == "python":
        return platform.python_version()
    if package in ("harp-plugin", "harp_plugin"):
        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
