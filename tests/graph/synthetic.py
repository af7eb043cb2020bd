"""The generator of synthetic wikis, which lies among the benchmarks."""

from benchmark_modules import load

synthetic_wiki = load("synthetic_wiki")
