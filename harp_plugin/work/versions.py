"""Versions of the packages that work is made by."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from .._version import __version__

__all__ = ["package_versions", "scoring_versions"]


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
