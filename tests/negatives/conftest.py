"""The build whose texts are searched."""

import shutil
from pathlib import Path

import pytest

from harp_plugin.graph import GraphOptions, build_graph


@pytest.fixture(scope="session")
def linked150(corpus150, shared_folder) -> Path:
    """150 real articles with their link graph and no later stage; not to be changed."""

    def fill(folder: Path) -> None:
        shutil.copytree(corpus150, folder, dirs_exist_ok=True)
        build_graph(folder, GraphOptions(min_words=0))

    return shared_folder("linked150", fill)
