"""Relational work, written once as Ibis expressions and run embedded or on a cluster."""

from .options import EngineOptions, memory_bytes
from .steps import PACKAGES, Step, Tables, run_steps

__all__ = ["PACKAGES", "EngineOptions", "Step", "Tables", "memory_bytes", "run_steps"]
