"""Runs Ibis expressions, and functions of shards, on this machine or on a Spark cluster."""

from .options import EngineOptions, memory_bytes
from .shards import map_shards
from .steps import PACKAGES, Step, Tables, run_steps

__all__ = ["PACKAGES", "EngineOptions", "Step", "Tables", "map_shards", "memory_bytes", "run_steps"]
