"""Extensions of Markdown: includes, wiki links, alerts, directives, shortcodes and footnotes."""

from collections import Counter

import pytest
from builds import read_table
from test_markdown_reader import links, page_of, read_files

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.markdown.includes import INCLUDE_LOOP, MISSING_INCLUDE, with_includes
from harp_plugin.corpus.markdown.wiki_links import PageNames
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.corpus.pages import Dropped, Page
from harp_plugin.corpus.readers.markdown import FRAGMENT

NAMES = ["index.md", "Apple.md", "notes/Apple.md", "notes/deep/Old apple.md", "notes/Pear-Tree.md"]


def included(files: dict[str, str], path: str = "a/page.md") -> tuple[str, Counter[str]]:
    drops: Counter[str] = Counter()
    return with_includes(path, files[path], files.get, drops), drops


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("[!INCLUDE [a part](../parts/x.md)]", "See [it](../parts/it.md).\n\nMore."),
        ("A [!include[](../parts/y.md)] b", "A word b"),
        ("> [!INCLUDE[x](../parts/x.md)]", "> See [it](../parts/it.md).\n> \n> More."),
        ("1. [!INCLUDE[x](~/parts/x.md)]", "1. See [it](../parts/it.md).\n   \n   More."),
        ('--8<-- "/parts/y.md"', "word"),
        ("{% include-markdown '../parts/y.md' %}", "word"),
        ("import Y from '../parts/y.md'\n\n<Y />", "import Y from '../parts/y.md'\n\nword"),
        (
            "import A from 'a'; import\nY from '../parts/y.md'\n\n<Y />",
            "import A from 'a'; import\nY from '../parts/y.md'\n\nword",
        ),
        ("<br/>\n<Y />", "<br/>\n<Y />"),
    ],
)
def test_includes(page, text):
    files = {"a/page.md": page, "parts/x.md": "---\nt: x\n---\nSee [it](it.md).\n\nMore.\n"}
    assert included({**files, "parts/y.md": "word\n"}) == (text, Counter())


def test_included_links_keep_their_targets():
    part = "[a](b.md) [c](/c.md) [d](#d) [e](https://e.org) [f][g]\n\n[g]: ../g.md"
    text, _ = included({"a/page.md": "[!INCLUDE[x](parts/x.md)]", "a/parts/x.md": part})
    assert text == (
        "[a](parts/b.md) [c](/c.md) [d](#d) [e](https://e.org) [f][g]\n\n[g]: parts/../g.md"
    )


def test_links_of_nested_includes():
    files = {"a/page.md": "[!INCLUDE[x](../b/x.md)]", "b/x.md": "[!INCLUDE[y](c/y.md)]"}
    assert included({**files, "b/c/y.md": "[z](z.md)"})[0] == "[z](../b/c/z.md)"


def test_a_loop_of_includes_ends():
    loop = {"a/page.md": "A [!INCLUDE[b](b.md)]", "a/b.md": "B [!INCLUDE[a](page.md)]"}
    assert included(loop) == ("A B ", Counter({INCLUDE_LOOP: 1}))
    assert included({"a/page.md": "A [!INCLUDE[b](b.md)]"}) == ("A ", Counter({MISSING_INCLUDE: 1}))


def test_includes_that_multiply_end():
    files = {f"a/{n}.md": f"[!INCLUDE[x]({n + 1}.md)]\n\n" * 10 for n in range(9)}
    text, drops = included({**files, "a/9.md": "word"}, "a/0.md")
    assert text.count("word") < 1000 and drops[INCLUDE_LOOP] > 0


def test_files_that_are_included_are_no_pages(tmp_path):
    items = read_files(
        tmp_path / "docs",
        {
            "a.md": "# A\n\nSee this.\n\n[!INCLUDE[x](includes/x.md)]\n\n[!INCLUDE[y](../out.md)]",
            "includes/x.md": "A [part](../b.md) of it.",
            "_common/y.md": "Another part.",
            "_part.mdx": "A part.",
            "_named.md": "# Named\n\nA page.",
        },
    )
    (tmp_path / "out.md").write_text("A secret.")
    pages = {item.key: item for item in items if isinstance(item, Page)}
    assert set(pages) == {"a.md", "_named.md"} and items.count(FRAGMENT) == 3
    assert pages["a.md"].lead == "See this.\nA part of it."
    assert links(pages["a.md"]) == [("part", "b.md")]
    assert items.count(Dropped(MISSING_INCLUDE)) == 1


@pytest.mark.parametrize(
    ("name", "path", "key"),
    [
        ("Apple", "index.md", "Apple.md"),
        ("apple", "notes/x.md", "notes/Apple.md"),
        ("notes/Apple", "index.md", "notes/Apple.md"),
        ("Old apple", "index.md", "notes/deep/Old apple.md"),
        ("deep/old_apple.md", "index.md", "notes/deep/Old apple.md"),
        ("Pear Tree", "index.md", "notes/Pear-Tree.md"),
        ("Plum", "index.md", None),
    ],
)
def test_names_of_pages(name, path, key):
    assert PageNames(NAMES).find(name, path) == key


def test_wiki_links(tmp_path):
    text = (
        "# Index\n\nIn this garden we have an [[Apple]], some [[apple#Red|red ones]], "
        "[[old trees|Pear Tree]], [[Plum]], "
        "which stand [[#Here]], and `[[Apple]]` too ![[Apple]] as we say in the [[index]].\n\n"
        "| A | B |\n|--|--|\n"
        "| [[Apple\\|one]] | two |\n"
    )
    items = read_files(tmp_path, {**dict.fromkeys(NAMES, "Text."), "index.md": text})
    (page,) = [item for item in items if isinstance(item, Page) and item.key == "index.md"]
    assert page.lead == (
        "In this garden we have an Apple, some red ones, old trees, Plum, which stand Here, and "
        "[[Apple]] too as we say in the index.\nA | B\none | two"
    )
    assert links(page) == [
        ("Apple", "Apple.md"),
        ("red ones", "Apple.md"),
        ("old trees", "notes/Pear-Tree.md"),
        ("Plum", "Plum"),
        ("one", "Apple.md"),
    ]
    assert page.drops["link inside the page"] == 2


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("> [!WARNING]\n> Take care.", "Take care."),
        ("> [!WARNING]  \n> Take\n> care.", "Take care."),
        ("> [!tip]- A *short* title\n> Take care\n> now.", "A short title\nTake care now."),
        ("> [!tip]- A title\n> Take care.", "A title\nTake care."),
        ('!!! note "A title"\n\n    Take care.\n\nMore.', "A title\nTake care.\nMore."),
        ("??? tip\n    Take care.\n\nMore.", "Tip\nTake care.\nMore."),
        ("/// note | A title\nTake care.\n///\nMore.", "A title\nTake care.\nMore."),
        ("- Item\n\n    /// tip\n\n    Take care.\n\n    ///\nMore.", "Item\nTake care.\nMore."),
        ("/// details | A title\n    type: tip\n\nText.\n///", "A title\nText."),
        ("/// html | div.y\nText.\n///", "Text."),
        ('=== "C"\n\n    A tab.\n\n=== "D"\n\n    Another.', "C\nA tab.\nD\nAnother."),
        (":::note\n\nTake care.\n\n:::\nMore.", "Take care.\nMore."),
        ('::: moniker range=">=msvc-150"\nNew.\n::: moniker-end', "New."),
        (
            ':::row:::\n    :::column span="1":::\n        A [word](x.md) here.\n'
            "    :::column-end:::\n:::row-end:::\nMore.",
            "A word here.\nMore.",
        ),
        ('Text.\n:::image source="x.png" alt-text="y":::\nMore.', "Text.\nMore."),
        ("A word.[^1] More.\n\n[^1]: A [note](n.md).", "A word. More."),
        ("# Title {#id .x}\n\nA [link](x.md){target=_blank}. {: .note }", "A link."),
        ("See {pep}`8` and {doc}`x`.", "See PEP 8 and x."),
        ("A set {a, b} is kept.", "A set {a, b} is kept."),
        ("{{< note >}}\nText {{% kbd 'x' %}}.\n{{< /note >}}", "Text ."),
        ("{% raw %}\nText.\n{% endraw %}", "Text."),
        ("import X from './x'\nimport './y.css';\n\nText. {/* no */}", "Text."),
        ("Some %%hidden%% text.", "Some text."),
        ("Write `%%i`.\n\nOr write `%%j`, at 5 %.", "Write %%i.\nOr write %%j, at 5 %."),
    ],
)
def test_text(markdown, text):
    page = page_of(markdown)
    assert page.lead == text


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ('{{< ref "y.md#a" >}}', "y.md"),
        ('{{% relref path="/a/y" %}}', "a/y.md"),
        ("{{ site.baseurl }}{% link _docs/y.md %}", "_docs/y.md"),
        ("{{ site.baseurl }}/y/", "y.md"),
        ("{{< other >}}", None),
    ],
)
def test_references_by_shortcodes(reference, target):
    found = links(page_of(f"See [it]({reference}) and more."))
    assert [target for _, target in found] == [target] * (target is not None)


@pytest.mark.parametrize(
    ("uid", "shown"),
    [
        ("System.Collections.Generic.List%601", "List"),
        ("System.String.Format*?displayProperty=nameWithType", "String.Format"),
        ("System.String?displayProperty=fullName", "System.String"),
    ],
)
def test_links_by_uid(uid, shown):
    page = page_of(f"Use <xref:{uid}> or [this](xref:{uid}).")
    (first, key), second = links(page)
    assert (first, second) == (shown, ("this", key)) and key.startswith("xref:System.")


def test_links_to_next_pages_are_navigation():
    page = page_of('Text.\n\n> [!div class="nextstepaction"]\n> [Go on](next.md) with the tour')
    assert [section.region for section in page.sections] == [None, "navigation"]


def test_a_folder_of_good_and_broken_files(tmp_path):
    """The same rows for one worker and for two; every drop is counted."""
    files = {
        "docs/index.md": "# Home\n\nGo to the [[guide]], or to [its page](/site/guide/) at once.",
        "docs/guide.md": "---\ntitle: [x\n---\n# Guide\n\nBack [home](./index.html). "
        "[!INCLUDE[x](includes/loop.md)]",
        "docs/includes/loop.md": "And on.\n\n[!INCLUDE[x](loop.md)]",
        "docs/empty.md": "",
        "docs/moved.md": "---\nredirect_url: /site/moved-again\n---\n",
        "docs/moved-again.md": "---\nredirect_url: moved.md\n---\n",
        "docs/terms.md": "---\nkeywords: [a term]\n---\nSome text.",
    }
    for name, text in files.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    options = CorpusOptions(site_root=["/site/=docs"], pages_per_shard=2)
    built = [
        build_corpus(tmp_path / str(n), options, sources=[tmp_path / "in"], workers=n, quiet=True)
        for n in (1, 2)
    ]
    assert built[0]["files"] == built[1]["files"]
    assert built[0]["drops"] == {
        "file that is only a part of other pages": 1,
        "front matter that cannot be read (its page is kept)": 1,
        INCLUDE_LOOP: 1,
        "page without text": 1,
    }
    corpus = tmp_path / "1" / "corpus"
    assert {row["target"] for row in read_table(corpus / "links").to_pylist()} == {
        "docs/guide.md",
        "docs/index.md",
    }
    assert read_table(corpus / "index_terms").to_pylist() == [
        {"term": "a term", "target": "docs/terms.md"}
    ]
