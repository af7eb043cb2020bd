"""The corpus of 150 real articles."""

from pathlib import Path

import pytest

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions


@pytest.fixture(scope="session")
def corpus150(shared_data, tmp_path_factory) -> Path:
    """A build with a finished corpus; not to be changed."""
    folder = tmp_path_factory.mktemp("corpus150")
    source = shared_data / "wiki" / "simplewiki-core150.xml.bz2"
    build_corpus(folder, CorpusOptions(), sources=[source])
    return folder
