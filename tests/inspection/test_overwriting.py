"""What `harp inspect` replaces: its own page and audit, and nothing else."""

import json

import pytest

from harp_plugin.cli import main
from harp_plugin.errors import HarpError
from harp_plugin.inspection import InspectOptions, inspect

QUIET = {"samples": 1, "table_groups": 2, "model_checks": False, "quiet": True}


def test_its_own_page_is_replaced(build, tmp_path):
    page = tmp_path / "page.html"
    first = inspect(build, InspectOptions(output=str(page), **QUIET))
    before = page.read_bytes(), first.audit_path.read_bytes()
    inspect(build, InspectOptions(output=str(page), **QUIET))
    assert (page.read_bytes(), first.audit_path.read_bytes()) == before
    assert json.loads(before[1])["generator"].startswith("harp_plugin ")


@pytest.mark.parametrize("name", ["page.html", "page-audit.json"])
@pytest.mark.parametrize("content", ["", "<html>thesis</html>", '{"generator": "another"}'])
def test_no_other_file_is_replaced(name, content, build, tmp_path, capsys):
    (tmp_path / name).write_text(content)
    flags = ["--output", str(tmp_path / "page.html"), "--quiet"]
    assert main(["inspect", str(build), *flags]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path / name} was not written by `harp inspect`" in error
    assert error.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == content


@pytest.mark.parametrize("name", ["page.html", "page-audit.json"])
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_no_folder_or_link_is_replaced(name, kind, build, tmp_path):
    path = tmp_path / name
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HarpError, match=f"{name} is a {kind}: name another --output"):
        inspect(build, InspectOptions(output=str(tmp_path / "page.html"), **QUIET))
    assert not (tmp_path / "elsewhere").exists()
