"""The documentation's examples run."""

import importlib
import json
import math
import re
import sys
from pathlib import Path

import pytest
import torch

import harp_plugin
from harp_plugin.commands.build import BuildOptions, build
from harp_plugin.corpus.readers import READERS
from harp_plugin.tasks import TASKS, PreTrainingData
from harp_plugin.training.losses import LOSSES, WeightedSum
from harp_plugin.weights.options import WeightOptions

EXTENDING = Path(__file__).parents[1] / "docs" / "extending.md"
ENCYCLOPEDIA = Path(str(importlib.resources.files("harp_plugin"))) / "data" / "encyclopedia.xml"


@pytest.fixture(scope="module")
def my_package(tmp_path_factory):
    """The examples of the documentation as an installed distribution with entry points."""
    site = tmp_path_factory.mktemp("site")
    for name, code in re.findall(
        r"```python\n# (my_package/\w+\.py)\n(.*?)```", EXTENDING.read_text(), re.DOTALL
    ):
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(code)
    info = site / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[harp_plugin.tasks]\nanchor-only = my_package.anchor_only:AnchorOnly\n"
        "[harp_plugin.readers]\njson-pages = my_package.json_pages:JsonPagesReader\n"
        "[harp_plugin.losses]\nexponential = my_package.exponential:exponential\n"
    )
    sys.path.insert(0, str(site))
    importlib.invalidate_caches()
    yield site
    TASKS.unregister("anchor-only")
    READERS.unregister("json-pages")
    LOSSES.unregister("exponential")
    sys.path.remove(str(site))


def test_examples_are_short(my_package):
    for file in (my_package / "my_package").glob("*.py"):
        assert len(file.read_text().splitlines()) <= 60


def test_the_task(my_package, tmp_path, tiny_bert):
    options = BuildOptions(
        output_dir=str(tmp_path), tasks=["rqp", "anchor-only"], workers=1, device="cpu", quiet=True
    )
    build([ENCYCLOPEDIA], options, WeightOptions(model=str(tiny_bert)))
    data = PreTrainingData(tmp_path, {"anchor-only": 1})
    assert len(data) == data.examples["anchor-only"] == 2863
    for index in range(20):
        group = data.group(0, index)
        assert group.task == "anchor-only"
        assert group.positive.query == group.negatives[0].query
        assert group.positive.document != group.negatives[0].document
    assert "anchor-only" in TASKS


def test_the_reader(my_package, tmp_path):
    pages = {
        "Cat": ("A cat hunts a mouse.", [[14, 19, "mouse"]]),
        "Mouse": ("A mouse flees from a cat.", [[21, 24, "Cat"]]),
    }
    source = tmp_path / "pages.jsonl"
    lines = [{"title": t, "text": x, "links": links} for t, (x, links) in pages.items()]
    source.write_text("\n".join(map(json.dumps, lines)))
    options = BuildOptions(
        output_dir=str(tmp_path / "out"), stages=["corpus"], workers=1, quiet=True
    )
    manifest = build([source], options)["corpus"]
    rows = {"index_terms": 0, "links": 2, "pages": 2, "redirects": 0, "sections": 2, "sentences": 2}
    assert manifest["rows"] == rows


def test_the_loss(my_package):
    from harp_plugin.training.losses import LOSSES

    scores = torch.tensor([[1.0, 0.0, 9.0], [0.0, 1.0, 2.0]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    by_hand = torch.tensor([math.exp(-1), (math.exp(1) + math.exp(2)) / 2])
    torch.testing.assert_close(LOSSES["exponential"](scores, mask), by_hand)
    assert WeightedSum({"exponential": 1}).weights == {"exponential": 1}


def test_the_walk_from_a_dump_to_a_score_names_files_that_exist():
    walk = EXTENDING.read_text().partition("from a dump to a score")[2].partition("\n## ")[0]
    files = re.findall(r"\| `([\w/]+\.py)` \|", walk)
    package = Path(harp_plugin.__file__).parent
    assert 20 <= len(files) <= 25
    assert [file for file in files if not (package / file).is_file()] == []


def test_the_files_that_a_change_touches_exist():
    text = EXTENDING.read_text().partition("## What a change touches")[2].partition("\nReaders")[0]
    files = re.findall(r"`([\w/]+\.py)`", text)
    package = Path(harp_plugin.__file__).parent
    assert len(files) >= 10
    assert [file for file in files if not (package / file).is_file()] == []
