"""Train a bi-encoder on a build, by the options of Tevatron's retriever."""

import sys

from .names import run

__all__ = ["main"]


def main() -> int:
    """Train by this process's arguments, and return the exit status."""
    return run("bi-encoder")


if __name__ == "__main__":
    sys.exit(main())
