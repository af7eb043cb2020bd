"""A build of 150 real articles, with corpus and link graph."""

from pathlib import Path

import pytest

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.graph import GraphOptions, build_graph


@pytest.fixture(scope="session")
def wiki(shared_data, tmp_path_factory) -> Path:
    """The folder of the build; not to be changed."""
    folder = tmp_path_factory.mktemp("wiki-150")
    source = shared_data / "wiki" / "simplewiki-core150.xml.bz2"
    build_corpus(folder, CorpusOptions(), sources=[source], quiet=True)
    build_graph(folder, GraphOptions(min_words=0))
    return folder
