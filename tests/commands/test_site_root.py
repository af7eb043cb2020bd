"""Absolute links of Markdown, of which a build says by which site root they would be found."""

from __future__ import annotations

import pytest

from harp_plugin.commands.build import BuildOptions, build, summary
from harp_plugin.corpus.options import CorpusOptions

PAGES = {
    "docs/setup/install.md": "See [how to remove](/cpp/setup/remove#all) and [start](/cpp/start).",
    "docs/setup/remove.md": "See [how it begins](/cpp/start.md?x=1), [none](/cpp/setup/none), "
    "[other](/other/none/) and [a site](https://example.org/cpp/start).",
    "docs/start.md": "See [up](../none.md) and [twice](/cpp/twice).",
    "docs/twice.md": "Nothing here leads anywhere.",
    "blog/twice.md": "Nothing here leads anywhere either.",
}


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "site"
    for name, text in PAGES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        more = " ".join(f"The {path.parent.name} of {path.stem} has part {n}." for n in range(20))
        path.write_text(f"# {path.stem}\n\n{more} {text}\n")
    return folder


def built(source, folder, *roots):
    options = BuildOptions(
        output_dir=str(folder), stages=["corpus", "graph"], workers=1, quiet=True
    )
    manifests = build([source], options, CorpusOptions(site_root=list(roots)))
    missing = manifests["graph"]["drops"].get("link to a missing page", 0)
    return missing, " ".join(summary(manifests).split())


def test_missing_links_say_which_site_root_finds_them(source, tmp_path):
    """A page that two folders have proves nothing, and a page that no folder has is missing."""
    missing, said = built(source, tmp_path / "before")
    hint = f"3 of {missing} links to a missing page would be found with --site-root /cpp/=docs/"
    assert said.endswith(hint)
    left, said = built(source, tmp_path / "after", "/cpp/=docs/")
    assert left == missing - 4 and "--site-root" not in said


def test_folders_below_the_root_of_the_site(source, tmp_path):
    text = "Here is how it is [installed](/setup/install), and a whole list of other words. " * 10
    menu = "\n".join(f"* [{name}](/{name})" for name in ("start", "twice", "setup/remove"))
    (source / "blog/setup").mkdir()
    (source / "blog/setup/news.md").write_text(f"# News\n\n{text}\n\n{menu}\n")
    missing, said = built(source, tmp_path / "before")
    assert f"10 of {missing} links" in said and said.endswith("--site-root /=docs/")
    left, _ = built(source, tmp_path / "after", "/=docs/")
    assert left == missing - 10


def test_a_whole_address_is_a_site_root(source, tmp_path):
    """Grafana's pages link to themselves so; a processor of Markdown escapes the brackets."""
    site = "https://example.org/docs/<VERSION>/"
    links = ("setup/install", "setup/remove/?x=1#all", "setup/remove", "setup/none", "start")
    prose = "which is told at length in a page of its own, and so are many others"
    text = " ".join(f"There is [the {link}]({site}{link}), {prose}." for link in links)
    (source / "docs/more.md").write_text(f"# More\n\n{text} [B](https://example.org/a/b)\n")
    dropped, said = built(source, tmp_path / "before")
    root = "https://example.org/docs/%3CVERSION%3E/=docs/"
    assert "3 of 7 links to another site may be pages here, found with --site-root" in said
    assert said.replace("- ", "-").endswith(root)
    for name, spelling in (("encoded", root), ("as-written", f"{site}=docs/")):
        left, said = built(source, tmp_path / name, spelling)
        assert left == dropped + 1 and "links to another site" not in said
