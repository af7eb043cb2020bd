"""Versions of the packages that decide the bits of a score."""

from __future__ import annotations

from ..work.versions import package_versions

__all__ = ["scoring_versions"]


def scoring_versions() -> dict[str, str]:
    """Look up the version of each package that makes scores, by its name."""
    return package_versions("harp_plugin", "tokenizers", "torch", "transformers")
