"""How relational work is run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..errors import HarpError

ENGINES = ("duckdb", "spark")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass
class EngineOptions:
    """How relational work is run. None of it changes a byte of the result.

    Raises:
        HarpError: the engine is unknown, or the memory is no size.
    """

    memory: str = field(
        default="4GB",
        metadata={"help": "Memory cap of relational work, such as 1GB; beyond it, it spills."},
    )
    engine: str = field(
        default="duckdb",
        metadata={
            "help": "duckdb runs embedded; spark on a cluster that sees the output folder.",
            "choices": list(ENGINES),
        },
    )
    spark_master: str = field(
        default="local[*]",
        metadata={"help": "Spark's master, such as spark://host:7077; local[*] is --workers."},
    )

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise HarpError(f"--engine {self.engine}: give one of {', '.join(ENGINES)}")
        memory_bytes(self.memory)


def memory_bytes(size: str) -> int:
    """Bytes of a size such as ``4GB`` (10^9) or ``512MiB`` (2^20).

    Raises:
        HarpError: it is no size, or zero.
    """
    found = _MEMORY.fullmatch(size.strip())
    if not found or not float(found[1]):
        raise HarpError(f"--memory {size}: give a number with its unit, such as 512MB or 4GB")
    base = 1024 if found[3] else 1000
    return int(float(found[1]) * base ** _POWERS[found[2].lower()])
