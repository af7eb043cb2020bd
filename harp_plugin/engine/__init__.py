"""Runs Ibis expressions on DuckDB in this machine or on a Spark cluster."""

from .options import EngineOptions, memory_bytes
from .steps import PACKAGES, Step, Tables, run_steps

__all__ = ["PACKAGES", "EngineOptions", "Step", "Tables", "memory_bytes", "run_steps"]
