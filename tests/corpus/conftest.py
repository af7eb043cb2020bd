"""Property tests: the same cases in every run, no time limit, no folder of failures."""

from hypothesis import settings

settings.register_profile("harp", derandomize=True, deadline=None, database=None)
settings.load_profile("harp")
