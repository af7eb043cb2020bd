"""Options of the engine."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ...errors import HarpError

__all__ = ["ENGINES", "EngineOptions", "memory_bytes"]

ENGINES = ("duckdb", "spark")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass
class EngineOptions:
    """The engine that computes tables; no option changes a byte of the result.

    Raises:
        HarpError: the engine is unknown, or the memory is not a size.
    """

    memory: str = field(
        default="4GB",
        metadata={"help": "Memory limit of the engine, such as 1GB; larger tables go to disk."},
    )
    engine: str = field(
        default="duckdb",
        metadata={
            "help": "duckdb runs on this machine; spark on a cluster that sees the output folder.",
            "choices": list(ENGINES),
        },
    )
    spark_master: str = field(
        default="local[*]",
        metadata={
            "help": "Master of Spark, such as spark://host:7077; local[*] uses --workers threads."
        },
    )

    @property
    def is_spark(self) -> bool:
        """Whether Spark computes."""
        return self.engine == "spark"

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise HarpError(f"--engine {self.engine}: give one of {', '.join(ENGINES)}")
        memory_bytes(self.memory)


def memory_bytes(size: str) -> int:
    """Return the bytes of a size such as ``4GB`` (GB = 10^9) or ``512MiB`` (MiB = 2^20).

    Raises:
        HarpError: it is not a size, or it is zero.
    """
    match = _MEMORY.fullmatch(size.strip())
    if not match or not float(match[1]):
        raise HarpError(f"--memory {size}: give a number with its unit, such as 512MB or 4GB")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** _POWERS[match[2].lower()])
