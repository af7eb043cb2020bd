"""The reader of Markdown files: which files it takes, and where their links lead."""

import gzip
import json

import pytest
from reading import read, read_bytes, write_files

from harp_plugin.corpus.html import LONG_PAGE
from harp_plugin.corpus.markdown import MarkdownAddress
from harp_plugin.corpus.options import CorpusOptions, site_roots
from harp_plugin.corpus.pages import Dropped, IndexTerm, Page, Redirect
from harp_plugin.corpus.readers import choose_reader, configured_reader, sources
from harp_plugin.corpus.urls import INSIDE, NO_PAGE, OUTSIDE
from harp_plugin.errors import HarpError

FIELDS = """title: "`vector` class: a title"
helpviewer_keywords: ["std::vector [C++], push_back", "vector class", "operator [] [C++]"]
f1_keywords: ["vector/std::vector::at"]
tags: [containers]
keywords: arrays,  dynamic arrays
aliases: [/old/vector/, Vectors]
redirect_from: ../gone.html
uid: std.vector`1
"""


def page_of(markdown: str, name: str = "x.md") -> Page:
    (page,) = [item for item in read_bytes(markdown.encode(), name) if isinstance(item, Page)]
    return page


def read_files(folder, files: dict[str, str], **options) -> list:
    write_files(folder, files)
    items = []
    for source in sources(folder):
        reader = configured_reader(choose_reader(source), CorpusOptions(**options))
        for record in reader.records(source):
            items += [record] if isinstance(record, Dropped) else reader.parse(record)
    return items


def links(page: Page) -> list[tuple[str, str]]:
    found = []
    for section in page.sections:
        for link in section.body.links:
            assert section.body.text[link.start : link.end] == link.anchor
            found.append((link.anchor, link.target))
    return found


@pytest.mark.parametrize("name", ["a.md", "A.MD", "b.markdown", "c.mdx", "d.md.gz"])
def test_markdown_is_told_by_its_name(tmp_path, name):
    """A README may start with HTML."""
    data = b"<p align=center>Text</p>\n\nMore [text](x.md)."
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    (source,) = sources(tmp_path)
    assert choose_reader(source) == "markdown"
    (page,) = [item for item in read(tmp_path) if isinstance(item, Page)]
    assert page.key == name.removesuffix(".gz") and links(page) == [("text", "x.md")]


def test_binary_files_are_no_markdown(tmp_path):
    (tmp_path / "rom.md").write_bytes(b"\x00\x01\x02" * 99)
    with pytest.raises(HarpError, match="in no known format"):
        choose_reader(sources(tmp_path)[0])


def notebook(*cells: tuple[str, str | list[str]]) -> str:
    sources = [{"cell_type": kind, "source": source, "metadata": {}} for kind, source in cells]
    return json.dumps({"cells": sources, "nbformat": 4, "nbformat_minor": 5, "metadata": {}})


def test_the_markdown_cells_of_notebooks(tmp_path):
    """Links name a notebook by its file, its page in HTML, or its name; a checkpoint is a copy."""
    first = notebook(
        ("raw", "---\nkeywords: [arrays]\n---"),
        (
            "markdown",
            ["(label)=\n", "# One\n", "\n", "See [two](two.ipynb), [it](two.html), [again](two)."],
        ),
        ("code", "import numpy"),
        ("markdown", "The last cell."),
    )
    files = {
        "one.ipynb": first,
        ".ipynb_checkpoints/one-checkpoint.ipynb": first,
        "two.ipynb": notebook(("raw", ".. _here:"), ("markdown", "# Two\n\nText.")),
        "three.md": "# Three\n\nSee [one](one.ipynb#part), and {ref}`label`.",
    }
    items = read_files(tmp_path / "all", files, dialect="myst")
    pages = {item.key: item for item in items if isinstance(item, Page)}
    assert {key: page.title for key, page in pages.items()} == {
        "one.ipynb": "One",
        "two.ipynb": "Two",
        "three.md": "Three",
    }
    page_of_address = {item.source: item.target for item in items if isinstance(item, Redirect)}
    targets = [target for _, target in links(pages["one.ipynb"])]
    assert [page_of_address.get(target, target) for target in targets] == ["two.ipynb"] * 3
    assert [target for _, target in links(pages["three.md"])] == ["one.ipynb"] * 2
    texts = {key: page.sections[0].body.text for key, page in pages.items()}
    assert "numpy" not in texts["one.ipynb"] and texts["one.ipynb"].endswith("The last cell.")
    assert texts["two.ipynb"] == "Text."
    assert [item.term for item in items if isinstance(item, IndexTerm)] == ["arrays"]


def test_a_notebook_next_to_its_other_form_is_no_second_page(tmp_path):
    """As Jupytext pairs them, and Sphinx its pages in HTML; links may name either."""
    files = {
        "a.md": "# One\n\nText.",
        "a.ipynb": notebook(("markdown", "# One\n\nText.")),
        "b.md": "# Two\n\nSee [one](a.ipynb), [it](a.md), [again](a.html).",
        "site/c.html": "<h1>Three</h1><p>Text of a page that Sphinx has written.</p>",
        "site/c.ipynb": notebook(("markdown", "# Three\n\nText.")),
    }
    items = read_files(tmp_path, files)
    assert items.count(Dropped("notebook next to its page in Markdown or HTML")) == 2
    pages = {item.key: item for item in items if isinstance(item, Page)}
    assert pages.keys() == {"a.md", "b.md", "site/c.html"}
    assert [target for _, target in links(pages["b.md"])] == ["a.md"] * 3


def test_pictures_do_not_make_a_notebook_too_long():
    source = {"cell_type": "markdown", "source": "# One\n\nText."}
    outputs = [{"data": {"image/png": "A" * (9 << 20)}}]
    cells = [source, {"cell_type": "code", "source": "plot()", "outputs": outputs}]
    items = read_bytes(json.dumps({"cells": cells}).encode(), "x.ipynb")
    assert [item.title for item in items if isinstance(item, Page)] == ["One"]
    long = notebook(("markdown", "word " * (2 << 20)))
    assert read_bytes(long.encode(), "x.ipynb") == [LONG_PAGE]


@pytest.mark.parametrize("folder", ["_build", "_downloads/5f", "html/_sources"])
def test_copies_of_notebooks_in_a_built_site_are_no_pages(folder, tmp_path):
    write_files(tmp_path, {f"{folder}/x.ipynb": notebook(("markdown", "# One\n\nText."))})
    with pytest.raises(HarpError, match="in no known format"):
        choose_reader(sources(tmp_path)[0])


@pytest.mark.parametrize("text", ["", "# No JSON", "[1]", '{"cells": 3}', '{"cells": [{}]}'])
def test_what_is_no_notebook_is_counted(text):
    assert read_bytes(text.encode(), "x.ipynb") == [Dropped("notebook that cannot be read")]


ROOTS = site_roots(["/cpp/=", "https://learn.example.org/en-us/cpp/=.", "/c/=lib/c"])


@pytest.mark.parametrize(
    ("reference", "key"),
    [
        ("c.md", "a/c.md"),
        ("c.md#part", "a/c.md"),
        ("c.md?view=1#part", "a/c.md"),
        ("c", "a/c.md"),
        ("./c.html", "a/c.md"),
        ("c/", "a/c.md"),
        ("c/index.md", "a/c/index.md"),
        ("c/index.html", "a/c/index.md"),
        ("../d.markdown", "d.markdown"),
        ("../", "index.md"),
        ("/", "index.md"),
        (".", "a.md"),
        ("/e/f.md", "e/f.md"),
        ("with%20space.md", "a/with space.md"),
        ("release-1.2", "a/release-1.2.md"),
        ("code.cpp", "a/code.cpp"),
        ("figure.png", "a/figure.png"),
        ("/cpp/g/h?view=msvc-160", "g/h.md"),
        ("/cpp/", "index.md"),
        ("/c/strings.md", "lib/c/strings.md"),
        ("https://learn.example.org/en-us/cpp/g/h#x", "g/h.md"),
        ("https://Learn.example.org/other", "https://learn.example.org/other"),
        ("xref:System.String%2A?displayProperty=fullName", "xref:System.String*"),
        ("b.md#x", INSIDE),
        ("b", INSIDE),
        ("#x", INSIDE),
        ("mailto:a@b.c", NO_PAGE),
        ("../../x.md", OUTSIDE),
    ],
)
def test_references_of_a_file(reference, key):
    assert MarkdownAddress("a/b.md", ROOTS).resolve(reference) == key


@pytest.mark.parametrize(
    ("path", "keys", "name"),
    [
        ("a/b.md", [], "b"),
        ("a/b.mdx", ["a/b.md"], "b"),
        ("a/index.md", ["a.md"], "a"),
        ("a/README.md", ["a/index.md", "a.md"], "a"),
        ("a/_index.md", ["a/index.md", "a.md"], "a"),
        ("index.md", [], "index"),
        ("README.md", ["index.md"], "README"),
    ],
)
def test_other_keys_of_a_file(path, keys, name):
    address = MarkdownAddress(path)
    assert (sorted(address.other_keys()), address.name) == (sorted(keys), name)


@pytest.mark.parametrize("option", ["/cpp/", "cpp=docs", "/cpp=docs"])
def test_a_site_root_is_a_pair(option):
    with pytest.raises(HarpError, match=r"^--site-root .*: give"):
        CorpusOptions(site_root=[option])


def test_front_matter():
    *names, page = read_bytes(f"---\n{FIELDS}---\nSome text.\n".encode(), "vector.md")
    assert page.title == "`vector` class: a title" and page.lead == "Some text."
    redirects = [item.source for item in names if isinstance(item, Redirect)]
    terms = [item.term for item in names if isinstance(item, IndexTerm)]
    assert redirects == ["old/vector.md", "Vectors", "xref:std.vector`1"]
    assert terms == [
        *("std::vector, push_back", "vector class", "operator []"),
        *("arrays", "dynamic arrays", "Vectors"),
    ]
    assert {item.target for item in names} == {"vector.md"}


@pytest.mark.parametrize("fields", ["title: a: b", "title: a\n- b", "title: [", "title: *x"])
def test_a_broken_front_matter_is_counted_and_the_page_is_kept(fields):
    page = page_of(f"---\n{fields}\n---\n# Title\n\nSome text.")
    assert (page.title, page.lead) == ("Title", "Some text.")
    assert page.drops["front matter that cannot be read (its page is kept)"] == 1


@pytest.mark.parametrize("text", ["---\nA text.\n\n---\n", "---\n\nA text: a colon.", "A text."])
def test_rules_are_no_front_matter(text):
    page = page_of(text)
    assert page.lead.startswith("A text") and not +page.drops


def test_toml_front_matter():
    *terms, page = read_bytes(b"+++\ntitle = 'T'\nkeywords = ['a b']\n+++\nText.", "x.md")
    assert (page.title, terms) == ("T", [IndexTerm("a b", "x.md")])


@pytest.mark.parametrize("text", ["", "\n\n", "---\ndescription: x\n---\n", "```\ncode\n```"])
def test_files_without_text_are_counted(text):
    assert list(read_bytes(text.encode(), "x.md")) == [Dropped("page without text")]


def test_a_file_that_leads_on_is_a_redirect():
    text = b"---\nredirect_url: /cpp/other\n---\n# Moved\n"
    assert read_bytes(text, "x.md") == [Redirect("x.md", "cpp/other.md")]


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("x.md", "---\ntitle: Front\n---\n# `Head` line\n\nText.", "Head line"),
        ("x.md", "---\ntitle: Front\n---\n## Part\n\nText.", "Front"),
        ("x.md", "---\ntitle: Front\n---\nText.\n\n# Part\n\nText.", "Front"),
        ("x.md", "---\ntitle: 2024\n---\nText.", "2024"),
        ("x.md", "## Part\n\nText.\n\n## Other\n\nText.", "Part"),
        ("x.md", "<!-- A comment. -->\n\n## Part\n\nText.", "Part"),
        ("x.md", "Text.\n\n# Part\n\nText.", "Part"),
        ("My Note.md", "Text.\n\n## Part\n\nText.\n\n### Other\n\nText.", "My Note"),
        ("Settings.md", "*Text*.\n\n## Open settings\n\nText.\n\n## Other\n\nText.", "Settings"),
        ("x.md", '<a name="y"></a>\n## Open x\n\nText.\n\n## Other\n\nText.', "Open x"),
        ("x.md", "Text.\n<h1>Open x</h1>\n\n## Other\n\nText.", "Open x"),
        ("My Note.md", "## Part\n\nText.\n\n## Other\n\nText.", "My Note"),
        ("My Note.md", "# Head\n\nText.", "Head"),
        ("getting-started.md", "Text.", "Getting started"),
        ("My Note.md", "Text.", "My Note"),
    ],
)
def test_titles(name, text, title):
    page = page_of(text, name)
    assert page.title == title and page.lead.startswith("Text.")


def test_links_of_a_folder(tmp_path):
    items = read_files(
        tmp_path,
        {
            "docs/a.md": "# A\n\nSee [b](sub/b.md#x), [the *part*][p], <https://x.org/y> and "
            "[c](/cpp/sub).\n\n[p]: sub/b 'T'\n",
            "docs/sub/b.md": "# B\n\nBack to <a href='../a.html'>A</a>.",
            "docs/sub/README.md": "# Sub\n\n[Up](../a.md) it goes.",
        },
        site_root=["/cpp/=docs"],
    )
    pages = {item.key: item for item in items if isinstance(item, Page)}
    redirects = [item for item in items if isinstance(item, Redirect)]
    assert links(pages["docs/a.md"]) == [
        ("b", "docs/sub/b.md"),
        ("the part", "docs/sub/b.md"),
        ("https://x.org/y", "https://x.org/y"),
        ("c", "docs/sub.md"),
    ]
    assert links(pages["docs/sub/b.md"]) == [("A", "docs/a.md")]
    assert redirects == [
        Redirect("docs/sub/index.md", "docs/sub/README.md"),
        Redirect("docs/sub.md", "docs/sub/README.md"),
    ]


def test_text_of_a_page():
    words = " ".join(["word"] * 20)
    page = page_of(
        "# A\n\nUse `f(x)` and\n[g](g.md).\n\n> [!TIP]\n> A [tip](t.md).\n\n"
        "| Name | Use |\n|--|--|\n| [h](h.md) | Does a thing. |\n| i | |\n\n"
        f"```c\n[no](no.md)\n```\n\n    [no](no.md)\n\n{words}.\n\n## Part\n\nMore.\n\n"
        "## See also\n\n- [z](z.md)\n"
    )
    lead, part = page.sections
    assert lead.body.text == (
        f"Use f(x) and g.\nA tip.\nName | Use\nh | Does a thing.\ni\n{words}."
    )
    assert (part.title, part.body.text) == ("Part", "More.")
    assert links(page) == [("g", "g.md"), ("tip", "t.md"), ("h", "h.md")]
    assert page.see_also == ["z.md"]
