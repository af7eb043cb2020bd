"""Train a cross-encoder on a build, by the options of Tevatron's reranker."""

import sys

from .names import run

__all__ = ["main"]


def main() -> int:
    """Train by this process's arguments, and return the exit status."""
    return run("cross-encoder")


if __name__ == "__main__":
    sys.exit(main())
