"""The generator of synthetic wikis, which lies among the benchmarks."""

import importlib.util
import sys
from pathlib import Path

_FILE = Path(__file__).parents[2] / "benchmarks" / "synthetic_wiki.py"
_SPEC = importlib.util.spec_from_file_location("synthetic_wiki", _FILE)
synthetic_wiki = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = synthetic_wiki
_SPEC.loader.exec_module(synthetic_wiki)
