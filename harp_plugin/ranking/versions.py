"""Versions of the packages that decide the bits of a score."""

from __future__ import annotations

from importlib.metadata import version

from .. import __version__


def scoring_versions() -> dict[str, str]:
    """The version of each package that makes scores, by its name."""
    packages = ("tokenizers", "torch", "transformers")
    return {"harp_plugin": __version__} | {package: version(package) for package in packages}
