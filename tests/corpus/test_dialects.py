"""Generators of documentation: where their links lead, and what is text of their pages."""

import time
from collections import Counter

import pytest
from builds import read_table
from reading import write_files
from test_markdown_reader import links, page_of, read_files

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.markdown import (
    MarkdownAddress,
    find_layout,
    markdown_items,
    with_includes,
)
from harp_plugin.corpus.markdown.front_matter import FrontMatter
from harp_plugin.corpus.markdown.plain import plain_markdown
from harp_plugin.corpus.markdown.routes import address_by_route, find_routes
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.corpus.pages import Page, Redirect
from harp_plugin.corpus.readers import sources
from harp_plugin.corpus.readers.markdown import MarkdownReader
from harp_plugin.errors import HarpError

B = "# B\n\nThe other page says more about all of it."
SITES = {
    "hugo": (
        {"hugo.toml": 'baseURL = "https://x.org/doc/"\n[languages.en]\ncontentDir = "content/en"'},
        "content/en/a/_index.md",
        "content/en/a/B.md",
        ["b", "b/", "/a/b/", "/doc/a/b", "https://x.org/doc/a/b/#x", '{{< ref "b.md" >}}', "B.md"],
    ),
    "hugo of pages": (
        {"config.yaml": "baseURL: https://x.org/"},
        "content/a/page.md",
        "content/a/b/index.md",
        [
            "../b/",
            "/a/b",
            '{{% relref "b" %}}',
            '{{< relref path="/a/b" lang="en" >}}',
            "b/index.md",
        ],
    ),
    "docusaurus": (
        {
            "web/docusaurus.config.js": "module.exports = {baseUrl: '/x/', presets: [['classic', {"
            "docs: {path: '../docs', routeBasePath: '/'}}]]}"
        },
        "docs/01-first/a.md",
        "docs/02-second/03_b.mdx",
        [
            *(
                "../02-second/03_b.mdx",
                "/second/b",
                "/x/second/b",
                "../second/b",
                "@site/docs/02-second/03_b.mdx",
                "/docs/next/second/b",
            ),
            *("02-second/03_b.mdx", "/second/b?x#y"),
        ],
    ),
    "docusaurus of versions": (
        {"docusaurus.config.js": "module.exports = {url: 'https://x.org', baseUrl: '/'}"},
        "blog/2024-01-02-news.md",
        "versioned_docs/version-2.x/01-second/http2-b.mdx",
        [
            *("/docs/2.x/second/http2-b", "https://x.org/docs/2.x/second/http2-b#x"),
            "../versioned_docs/version-2.x/01-second/http2-b.mdx",
        ],
    ),
    "jekyll": (
        {"_config.yml": "baseurl: /x\ncollections:\n  docs:\n    output: true\n"},
        "index.md",
        "_posts/2024-01-02-b.md",
        [
            "/2024/01/02/b.html",
            "/x/2024/01/02/b",
            "{% post_url 2024-01-02-b %}",
            "{{ site.baseurl }}/2024/01/02/b/",
        ],
    ),
    "jekyll of permalinks": (
        {"_config.yml": "permalink: /blog/:categories/:year/:title:output_ext"},
        "index.md",
        "news/_posts/2024-01-02-b.md",
        ["/blog/2024/b.html", "/blog/2024/b"],
    ),
    "jekyll of a style": (
        {"_config.yml": "permalink: none"},
        "index.md",
        "_posts/2024-01-02-b.md",
        ["/b.html", "b"],
    ),
    "docusaurus of another base": (
        {"docusaurus.config.js": "module.exports = {baseUrl: '/p/', routeBasePath: 'guide'}"},
        "docs/a.md",
        "docs/b.md",
        ["/p/guide/b", "/guide/b", "/p/docs/b"],
    ),
    "mkdocs": (
        {"mkdocs.yml": "site_url: https://x.org/y/\nx: !!python/name:os.system\n"},
        "docs/a.md",
        "docs/c/b.md",
        ["c/b.md", "../c/b/", "/c/b/", "https://x.org/y/c/b/", "/y/c/b"],
    ),
    "mdbook": (
        {"book.toml": '[book]\nsrc = "text"\n[output.html]\nsite-url = "/book/"'},
        "text/a.md",
        "text/b.md",
        ["b.md", "b.html", "/book/b.html", "/b.html"],
    ),
    "vitepress or vuepress": (
        {"docs/.vuepress/config.js": "module.exports = {base: '/v/'}"},
        "docs/a.md",
        "docs/b.md",
        ["/b.html", "./b.md", "/v/b.html"],
    ),
    "commonmark of Zola": (
        {"config.toml": 'base_url = "https://x.org"'},
        "content/c/a.md",
        "content/d/b.md",
        ["@/d/b.md#x", "../../d/b/"],
    ),
    "vitepress": (
        {".vitepress/config.mts": "export default {srcDir: './src', base: '/v/'}"},
        "src/a.md",
        "src/b.md",
        ["/b", "./b", "/v/b.html", "/b.md"],
    ),
    "myst": (
        {"_toc.yml": "format: jb-book\nroot: a"},
        "a.md",
        "c/b.md",
        ["c/b.md", "page:b", "/c/b", "page:here"],
    ),
    "docfx": (
        {"docfx.json": '{"build": {"content": [{"files": ["**/*.md"], "src": "articles"}]}}'},
        "articles/a.md",
        "articles/b.md",
        ["b.md", "~/articles/b.md", "xref:the.b", "/b.html"],
    ),
    "obsidian": (
        {".obsidian/app.json": "{}"},
        "a.md",
        "c/Ünder_B.md",
        ["page:ünder b", "c/U%CC%88nder_B.md", "page:c/Ünder_B"],
    ),
}


def read_site(folder, files):
    write_files(folder, files)
    reader = MarkdownReader()
    markdown = [source for source in sources(folder) if reader.recognizes(source)]
    records = [record for source in markdown for record in reader.records(source)]
    return [item for record in records for item in reader.parse(record)]


def page_of_site(folder, files, name):
    items = read_site(folder, files)
    (page,) = [item for item in items if isinstance(item, Page) and item.key == name]
    return page


@pytest.mark.parametrize("name", SITES)
def test_links_of_a_site(tmp_path, name):
    files, page, target, references = SITES[name]
    text = "---\nuid: the.b\n---\n(here)=\n" + B
    write_files(tmp_path, {**files, page: "# A\n\nText.", target: text, "z/other.md": B})
    (source,) = [source for source in sources(tmp_path) if source.name == page]
    (record,) = MarkdownReader().records(source)
    assert record.site.layout.name == name.partition(" ")[0]
    address = MarkdownAddress(page, {}, record.site)
    names = {target, "xref:the.b", *MarkdownAddress(target).other_keys()}
    for reference in references:
        plain = plain_markdown(f"[x]({reference})", address, Counter())
        assert address.resolve(plain[4:-1]) in names, reference


@pytest.mark.parametrize(
    ("markdown", "name", "text"),
    [
        ("{{< tab >}}\nA.\n{{< code >}}x = 1\n{{< /code >}}\n{{< /tab >}}", "x.md", "A."),
        ('{{% alert title="Note" %}}\nA.\n{{% /alert %}}', "x.md", "Note\nA."),
        ('A {{< tooltip id="p" text="Pod" >}} runs.{{< qr text="x" />}}', "x.md", "A Pod runs."),
        ("?> A tip.\n\n!> A warning!\n\nWhat?> No.", "x.md", "A tip.\nA warning!\nWhat?> No."),
        ("A {{< x\n  y=1 >}} b `{{< c >}}`.", "x.md", "A b {{< c >}}."),
        ("{% raw %}\n`{{ a }}`{% endraw %} {% if x %}B{% endif %}.", "x.md", "{{ a }} B."),
        ("{% highlight ruby %}\nx\n{% endhighlight %}\nA {{ 'b' }} {{ c }}.", "x.md", "A b ."),
        (
            "export const a = () => {\n  b\n}\n\nA {a} <B c={{d: '>'}}>e</B>{' '}f.",
            "x.mdx",
            "A e f.",
        ),
        (
            "import {a,\n b} from 'c'; import\nd from 'e';\n\n"
            "<T>\n    <I label='L'>\n    Text.\n    </I>\n</T>",
            "x.mdx",
            "L\nText.",
        ),
        ("A \\{b} `{c}` <Link to='y.md'>d</Link>.", "x.mdx", "A {b} {c} d."),
        (
            "You\nexport the data, or\nimport it.\n\nB.",
            "x.mdx",
            "You export the data, or import it.\nB.",
        ),
        ("import 'a';\nexport default b\n\nexport * from 'c';\n\nD.", "x.mdx", "D."),
        ("````{tip} T\n```{note}\nA.\n```\nB {kbd}`C`.\n````", "x.md", "T\nA.\nB C."),
        (
            ":::{dropdown} T\n:open:\nA {func}`~b.c`.\n:::\n```{code-cell}\nx\n```",
            "x.md",
            "T\nA c.",
        ),
        ("::: details T {open}\nA.\n:::", "x.md", "T\nA."),
        ("> :::note[T]\n> A.\n> :::", "x.md", "T\nA."),
        ("*[A]: B\nA {: .c } :material-x: :simple-y: d.", "x.md", "A d."),
        ("%%\nhidden\n\n%%\nA ^block1", "x.md", "A"),
        ("[[1]](x.md) is a link.", "x.md", "[1] is a link."),
        ("A <!-- {{ b }} --> c `unclosed {{ d }}", "x.md", "A c `unclosed"),
    ],
)
def test_text_of_dialects(markdown, name, text):
    assert page_of(markdown, name).lead == text


CONFIGURATIONS = {
    "hugo": {"hugo.toml": 'baseURL = "https://x.org/"'},
    "jekyll": {"_config.yml": "title: x"},
    "mkdocs": {"mkdocs.yml": "site_name: x"},
    "myst": {"myst.yml": "version: 1\nproject:\n  title: myst"},
    "vitepress": {".vitepress/config.js": ""},
    "obsidian": {".obsidian/app.json": "{}"},
    "docfx": {"docfx.json": "{}"},
    "docusaurus": {"docusaurus.config.js": ""},
    "commonmark": {},
}
DEFINITIONS = "`a`\n\n:   Default x.\n\n    Second [b](b.md).\n\n    - item\n\n[b](b.md)\n: c\n: d"
CODE = "`{{</* x */>}}`"
READ = [
    ("commonmark", DEFINITIONS, "a: Default x.\nSecond b.\nitem\nb: c\nd", "b b"),
    ("commonmark", "A.\n\n# T\n\nB.\n\n## C\n\nD.", "A.\nB.\nD.", ""),
    ("commonmark", "- [ ] a\n- [x] b\n\nC [x] d.", "a\nb\nC [x] d.", ""),
    ("hugo", f"A {{{{</* ref 'x' */>}}}} {CODE}.", "A {{< ref 'x' >}} {{< x >}}.", ""),
    ("hugo", "{{< code-toggle >}}\n[[a]]\n{{< /code-toggle >}}\n\nB.", "B.", ""),
    ("hugo", "A.\n\n{{< code-toggle a=b />}}\n\nB [c](b.md).", "A.\nB c.", "b"),
    ("hugo", "[x]({{< ref 'b' >}}#f) [y](/{{< param v >}}/b/) [z]({{% z a %}}).", "x y z.", "b"),
    ("hugo", "---\ndescription: Reports\n  a `b`.\n---\n\n```\nx\n```", "Reports a b.", ""),
    ("hugo", "A [x]({{< siteurl >}}/docs/b/).", "A x.", "b"),
    ("jekyll", "`{% raw %}{{ y }}{% endraw %}` [b]({% link docs/b.md %}#f).", "{{ y }} b.", "b"),
    ("jekyll", "* TOC\n{:toc}\n\nA.\n\n1. x\n{:toc .y}\n\nB.", "A.\nB.", ""),
    ("mkdocs", "[TOC]\n\n# A {#id data-x}\n\nB [b](b.md){ .md-button download }.", "B b.", "b"),
    (
        "mkdocs",
        "<div class='grid' markdown>\n- :x-y: **A** [b](b.md) c.\n</div>\n\nD.",
        "A b c.\nD.",
        "b",
    ),
    (
        "mkdocs",
        "See [A][a.B], [`C`][x.C], [d.E][] [b][b.B].\n\n[b.B]: b.md",
        "See A, C, d.E b.",
        "b",
    ),
    (
        "mkdocs",
        "A :tada: b :heavy_check_mark: 10:30:45 c:d:e [:digit:] x/:simple-x:/y [Send :simple-z:].",
        "A b 10:30:45 c:d:e [:digit:] x//y [Send ].",
        "",
    ),
    (
        "mkdocs",
        '!!! note inline end\n    A.\n\n??? tip annotate "T"\n    B.',
        "Note\nA.\nT\nB.",
        "",
    ),
    (
        "mkdocs",
        '++ctrl+del++ ++"a"++ C++ or G++ ==d e== ^^f^^ x == y.',
        "Ctrl+Del A C++ or G++ d e f x == y.",
        "",
    ),
    ("mkdocs", "Use `#!python x = 1`.", "Use x = 1.", ""),
    ("mkdocs", "-   :material-a: &nbsp;\n    __B__\n\n    ---\n\n    C.", "B\nC.", ""),
    ("mkdocs", "[a:]: b.md\n[c]:https://c.org\n\n[:a-b: B](b.md) [c].", "B c.", "b https://c.org/"),
    (
        "docfx",
        "A [!code-cpp[N#7](../y.cpp)] [!code[](x.cs)] b.\n\n> [!VIDEO https://x.y]",
        "A b.",
        "",
    ),
    ("docfx", 'A :::image source="x"::: :::no-loc text="B"::: c.', "A B c.", ""),
    ("obsidian", "## Part\n\n> A ==b==.\n\n^tbl\n\nC.", "A b.\nC.", ""),
    ("vitepress", "[[toc]]\n\nA.\n\n<<< @/x.js{2} [f]\n\nB.", "A.\nB.", ""),
    ("myst", "A [b](#lab) [c](<#lab>) [d](lab) {numref}`E %s <fig>`.", "A b c d E.", "b b b b"),
    ("myst", "{cite:p}`k` {octicon}`book;1em` {index}`market`.", "market.", ""),
    ("myst", "::::{grid} 1 2 2 3\nA.\n::::", "A.", ""),
    (
        "docusaurus",
        "<summary>**A** `b`</summary>\n\n<p>*c* [d](./b.md)</p>\n\nE.",
        "A b\nc d\nE.",
        "b",
    ),
    (
        "docusaurus",
        "$x_{1} + {y}$ $$\\int_{0}$$ $5 {z} $6.",
        "$x_{1} + {y}$ $$\\int_{0}$$ $5 $6.",
        "",
    ),
    ("docusaurus", "<p>x</p>\n::: tip T\nB.\n:::\n\n:::note\nC.\n:::", "x\nT\nB.\nC.", ""),
    ("docusaurus", "A.\n\n<!-- b\n\n# c -->\n\n<pre>\n# d\n</pre>\n\nE.", "A.\nE.", ""),
    (
        "docusaurus",
        "<C title='A' href='/docs/b'>\n Text.\n</C>\n<L title=\"B c\" to='b' />",
        "Text.\nA\nB c",
        "b b",
    ),
    ("docusaurus", "<iframe\n  src='x'\n></iframe>\n\n<a\n  href='./b.md'\n>b</a> c.", "b c.", "b"),
    (
        "hugo",
        "$5 [b]({{< ref 'b' >}}) 6$. $P `$` [b]({{< ref 'b' >}}) `y`.",
        "$5 b 6$. $P $ b y.",
        "b b",
    ),
    (
        "hugo",
        "A $$ b.\n\n```sh\n$$\n```\n\n[b]({{< ref 'b' >}}) ==[b](b.md)==.",
        "A $$ b.\nb b.",
        "b b",
    ),
    ("commonmark", ":returns: a\n:rtype: b\n\n:100: :+1: c", ":returns: a :rtype: b\nc", ""),
    ("commonmark", "{y=1, z} {#each a as b} {.5 of it}", "{y=1, z} {#each a as b} {.5 of it}", ""),
    ("commonmark", "> T\n> : x\n\n[!code x] [!Video y](b.md).", "T: x\n[!code x] !Video y.", "b"),
    ("commonmark", "5 - [x] a\n\n1. [ ] b\n\n*   [x] c\n\n-\t[ ] d", "5 - [x] a\nb\nc\nd", ""),
    ("mkdocs", "arr[i][j.k] x", "arr[i][j.k] x", ""),
    ("mkdocs", "[a][b.c], [d][e.f]: [g]\n[h] [i] [j.k] [l].\n\n  [h]: b.md", "a, d: g i [l].", "b"),
    (
        "hugo",
        "`a`\n: {{< new 1 />}}\n: B $$x_{k=0}^{i=1}$$ [c {{< d >}}][e].",
        "a: B $$x_{k=0}^{i=1}$$ [c ][e].",
        "",
    ),
    ("docusaurus", ":::note[A: [b](b.md)]\nC.\n:::", "A: b\nC.", "b"),
    ("docusaurus", "[p](/blog/2024/05/07/dir).", "p.", "blog/2024-05-07-dir/index"),
]


@pytest.mark.parametrize(("dialect", "markdown", "text", "found"), READ)
def test_what_generators_read(dialect, markdown, text, found, tmp_path):
    folder = "content/docs" if dialect == "hugo" else "docs"
    name = f"{folder}/a.md{'x' * (dialect == 'docusaurus')}"
    other = f"{B}\n\n(lab)=\n## Lab\n\n```{{figure}} x.png\n:name: fig\n```"
    files = {f"{folder}/b.md": other, "blog/2024-05-07-dir/index.md": B, name: markdown}
    files |= CONFIGURATIONS[dialect]
    assert find_layout(list(files), files.get).name == dialect
    page = page_of_site(tmp_path, files, name)
    assert "\n".join(filter(None, (section.body.text for section in page.sections))) == text
    targets = (target.removesuffix(".md") for _, target in links(page))
    assert [target.removeprefix(f"{folder}/") for target in targets] == found.split()


def test_shortcodes_of_a_site_that_highlight_code(tmp_path):
    templates = {
        "layouts/shortcodes/fish.html": "{{ $x := .Inner }}{{ highlight $x 'sh' '' }}",
        "themes/t/layouts/_shortcodes/box.html": "<div>{{ .Inner }}</div>",
    }
    text = "A.\n\n{{< fish >}}\nls\n{{< /fish >}}\n\n{{< box >}}\nB.\n{{< /box >}}"
    files = CONFIGURATIONS["hugo"] | templates | {"content/a.md": text}
    assert page_of_site(tmp_path, files, "content/a.md").lead == "A.\nB."


def test_a_note_is_called_by_its_name(tmp_path):
    files = {
        ".obsidian/app.json": "{}",
        "Bees.md": "## Part\n\nA.",
        "Cats.md": "A.\n\n# Late\n\nB.",
    }
    titles = [item.title for item in read_site(tmp_path, files) if isinstance(item, Page)]
    assert titles == ["Bees", "Cats"]


def test_what_is_left_out_is_counted_by_name():
    page = page_of("A {{< b >}} {{< b >}} <C/> {d.e} {% f %} {{ g.h }}.", "x.mdx")
    assert {reason: n for reason, n in page.drops.items() if "left out" in reason} == {
        "shortcode left out: b": 2,
        "component left out: C": 1,
        "expression left out: d.e": 1,
        "tag left out: f": 1,
        "template expression left out: g.h": 1,
    }


@pytest.mark.parametrize(
    ("page", "reference", "target"),
    [
        ("a.en.md", "/docs/b/", "docs/b.en.md"),
        ("a.de.md", "/docs/b/", "docs/b.de.md"),
        ("a.en.md", "{{< ref 'docs/b' >}}", "docs/b.en.md"),
        ("a.en.md", "b.md", "docs/b.en.md"),
        ("a.en.md", "/de/docs/b/", "docs/b.de.md"),
        ("a.de.md", "/docs/", "docs/_index.de.md"),
        ("a.en.md", "/docs/", "docs/_index.en.md"),
        ("c.md", "/docs/d/", "docs/d.md"),
        ("c.fr.md", "/docs/d/", "docs/d.fr.md"),
    ],
)
def test_pages_with_the_suffix_of_a_language(tmp_path, page, reference, target):
    names = ["_index.de.md", "_index.en.md", "b.de.md", "b.en.md", "d.md", "d.fr.md", page]
    files = {f"content/docs/{name}": f"See [it]({reference})." for name in names}
    read = page_of_site(tmp_path, CONFIGURATIONS["hugo"] | files, f"content/docs/{page}")
    assert links(read) == [("it", f"content/{target}")]


def test_a_suffix_that_is_no_language(tmp_path):
    files = {"a.js.md": "See [it](b.md) and [that](vue).", "b.md": B, "b.js.md": B, "vue.js.md": B}
    read = page_of_site(tmp_path, CONFIGURATIONS["hugo"] | files, "a.js.md")
    assert links(read) == [("it", "b.md"), ("that", "a.js/vue.md")]


def test_a_letter_case_that_two_pages_have_is_no_address(tmp_path):
    items = read_files(tmp_path, {"a.md": "See [it](/X/Y/).", "x/y.md": B, "X/y.md": B})
    (page,) = [item for item in items if isinstance(item, Page) and item.key == "a.md"]
    assert links(page) == [("it", "X/Y.md")]


def test_references_of_myst_show_the_heading_below_a_label(tmp_path):
    files = {
        "a.md": "# A\n\nSee {ref}`here` and [](#here).",
        "b.md": "# B\n\n(here)=\n## Part\n\nText.",
    }
    (page,) = [i for i in read_files(tmp_path, files) if isinstance(i, Page) and i.key == "a.md"]
    assert links(page) == [("Part", "b.md"), ("Part", "b.md")]


def test_an_include_of_code_is_counted():
    drops = Counter()
    assert with_includes("a.md", '--8<-- "x.py"', lambda _: "x = 1", drops).strip() == ""
    assert drops == {"include of a file that is no Markdown": 1}


def test_the_summary_names_the_dialect(tmp_path):
    files = {"mkdocs.yml": "site_name: x", "docs/a.md": B, "docs/b.md": B}
    write_files(tmp_path / "in", files)
    for workers, dialect, name in ((1, "auto", "mkdocs"), (2, "hugo", "hugo")):
        options = CorpusOptions(dialect=dialect)
        folder = tmp_path / str(workers)
        built = build_corpus(
            folder, options, sources=[tmp_path / "in"], workers=workers, quiet=True
        )
        assert built["counts"] == {f"Markdown files read as {name}": 2}
    with pytest.raises(HarpError, match="--dialect"):
        CorpusOptions(dialect="latex")


def test_another_hidden_configuration_is_another_source(tmp_path):
    """VitePress is configured by a file in a hidden folder; what Obsidian keeps says nothing."""
    files = {".vitepress/config.mjs": "base: '/p/'", ".obsidian/x": "", "a.md": "# A\n\n[b](/p/b)"}
    write_files(tmp_path / "in", files | {"b.md": B})

    def links():
        build_corpus(tmp_path, CorpusOptions(), sources=[tmp_path / "in"], quiet=True)
        return read_table(tmp_path / "corpus" / "links")["target"].to_pylist()

    assert links() == ["b.md"]
    write_files(tmp_path / "in", {".obsidian/x": "other"})
    assert links() == ["b.md"]
    write_files(tmp_path / "in", {".vitepress/config.mjs": "base: '/q/'"})
    with pytest.raises(HarpError, match="was made from other settings"):
        links()


def test_a_configuration_of_another_program_is_no_site():
    assert find_layout(["config.toml", "a.md"], lambda _: "x = 1").name == "commonmark"


@pytest.mark.parametrize(
    "part",
    [
        *("{{<", "{{", "{%", "{", "<A ", "`` ` ", "{/*", "%%", "[[", "[](", "{a}`", "```{note}\n"),
        *(
            "```\n",
            ":::a\n",
            "import {\n",
            "export {\n",
            "<A {",
            "![[",
            "<!--",
            "{{< highlight >}}",
        ),
        *("(a)=\n", "]( {{ url", "[!INCLUDE[](", "- - - ", "> ", "{: a", "a {", "[a]:", "--8<--"),
        *(" ++a", " ==a", "[!code[", "[!video h", "$a ", "$$a", "([#1][])\n", ":a", "](#a", "- [ "),
    ],
)
def test_time_is_linear(part):
    check_time(
        lambda n: plain_markdown(part * n, MarkdownAddress("x.mdx"), Counter(), is_mdx=True), 40_000
    )


def check_time(read, size):
    """Four times as much takes four times as long, and 16 times where the time is quadratic."""

    def seconds(size: int) -> float:
        start = time.process_time()
        read(size)
        return time.process_time() - start

    seconds(1000)
    assert seconds(size) < 8 * seconds(size // 4) + 0.2


@pytest.mark.parametrize(
    "text",
    [
        lambda n: "# H\n\nText.\n\n" * (n // 10),
        lambda n: "[a](b.md) " * (n // 10),
        lambda n: "a" + " " * n + "{",
        lambda n: "[!INCLUDE[](" * (n // 10),
        lambda n: "<A " * n,
        lambda n: "-" * n,
        lambda n: "<a" + " markdown" * (n // 10),
        lambda n: "a {.b" + " data-c" * (n // 10),
        lambda n: f"---\na: {'1:' * n}5\n---\nT",
        lambda n: (
            "---\nx0: &x0 {a: b}\n"
            + "".join(f"x{i}: &x{i}\n  <<: [*x{i - 1}, *x{i - 1}]\n" for i in range(1, n // 20))
            + "---\nT"
        ),
    ],
)
def test_time_of_files_is_linear(text):
    def read(size: int) -> None:
        with_includes("x.md", text(size), lambda _: None, Counter())
        list(markdown_items(text(size), MarkdownAddress("x.md")))

    check_time(read, 20_000)


@pytest.mark.parametrize(
    "field",
    ["!!int ''", "!!float ''", "!!bool x", "!!timestamp x", "!!python/object x", "1e999999"],
)
def test_tags_of_yaml_are_text(field):
    assert page_of(f"---\na: {field}\ntitle: T\n---\nText.").title == "T"


def test_links_between_named_files(tmp_path):
    """The slug of a file that is named later, and a wiki link to it."""
    files = {"a.md": "See [one](/x) and [[Name b]].", "name-b.md": f"---\nslug: /x\n---\n{B}"}
    write_files(tmp_path, files | {"c/d.md": B})
    named = [tmp_path / name for name in ("a.md", "c/d.md", "name-b.md")]
    build_corpus(tmp_path / "out", CorpusOptions(), sources=named, quiet=True)
    targets = [
        row["target"] for row in read_table(tmp_path / "out" / "corpus" / "links").to_pylist()
    ]
    assert targets == ["name-b.md", "name-b.md"]


@pytest.mark.parametrize(
    ("name", "config"),
    [
        (
            "hugo.yaml",
            "permalinks:\n  page:\n    posts: /articles/:year/:month/:slug/\n"
            "    tutorials: /training/:slug/\n  section:\n    posts: /articles/\n",
        ),
        (
            "config/_default/permalinks.toml",
            "[page]\nposts = '/articles/:year/:month/:slug/'\n"
            "tutorials = '/training/:slug/'\n[section]\nposts = '/articles/'\n",
        ),
        (
            "hugo.json",
            '{"permalinks": {"page": {"posts": "/articles/:year/:month/:slug/", '
            '"tutorials": "/training/:slug/"}, "section": {"posts": "/articles/"}}}',
        ),
        (
            "config/_default/hugo.yaml",
            "permalinks:\n- pattern: /articles/:year/:month/:slug/\n  target:\n"
            "    path: '/posts/**'\n- pattern: /training/:slug/\n  target:\n"
            "    path: /tutorials/**\n",
        ),
        (
            "config/_default/hugo.toml",
            "[[permalinks]]\npattern = '/articles/:year/:month/:slug/'\n[permalinks.target]\n"
            "path = '/posts/**'\n[[permalinks]]\npattern = '/training/:slug/'\n"
            "[permalinks.target]\npath = '/tutorials/**'\n",
        ),
    ],
)
def test_permalinks_of_hugo(tmp_path, name, config):
    """The examples of https://gohugo.io/configuration/permalinks/ and of Hugo's ``urlize``."""
    files = {
        "hugo.toml": "baseURL = 'https://x.org/'",
        name: config.replace("{", '{"baseURL": "https://x.org/", ', 1),
        "content/a.md": "# A\n\nSee [one](/articles/2023/04/bash-in-slow-motion/) and "
        "[two](https://x.org/training/vim-text-editor/), and [three](/posts/tls/).",
        "content/posts/bash.md": "---\ntitle: Bash in Slow Motion\ndate: 2023-04-19T10:00Z\n---\n"
        + B,
        "content/tutorials/x/index.md": "+++\ntitle = 'Vim (text editor)'\ndate = 2023-01-02\n+++\n"
        + B,
        "content/posts/tls.md": "---\ntitle: No date\n---\n" + B,
    }
    (page,) = [i for i in read_site(tmp_path, files) if isinstance(i, Page) and i.title == "A"]
    assert links(page) == [
        ("one", "content/posts/bash.md"),
        ("two", "content/tutorials/x/index.md"),
        ("three", "content/posts/tls.md"),
    ]


@pytest.mark.parametrize(
    ("pattern", "address"),
    [
        ("/:section/:contentbasename/", "posts/a.b"),
        ("/:sections/:filename.html", "posts/2024/a.b.html"),
        ("/:year-:month-:day/:title/", "2024-02-03/a-title-c++"),
        ("/:slugorcontentbasename/", "a.b"),
        ("/:monthname/:title/", ""),
    ],
)
def test_tokens_of_permalinks(pattern, address):
    fields = FrontMatter({"title": "A Title: C++!", "date": "2024-02-03"})
    (route,) = find_routes(f"posts: {pattern}", ".+")
    assert address_by_route([route], "posts/2024/A.b.md", fields) == address
    assert address_by_route([route], "post/A.b.md", fields) == ""


def test_a_rule_of_many_parameters_is_not_read():
    """Its pattern would take very long on a path that nearly fits."""
    names = "".join(f":{letter}" for letter in "abcdefgh")
    assert not list(find_routes(f"'docs/{names}.md': 'x'", ".+"))
    assert list(find_routes("'docs/:a/:b/:c.md': 'x'", ".+"))


@pytest.mark.parametrize(
    "rewrites",
    [
        "'packages/pkg-a/src/index.md': 'pkg-a/index.md',\n"
        "'packages/pkg-a/src/foo.md': 'pkg-a/foo.md',\n"
        "'packages/pkg-b/src/bar.md': 'pkg-b/bar.md'\n",
        "'packages/:pkg/src/:slug*': ':pkg/:slug*'",
        "'packages/:pkg/src/(.*)': ':pkg/x', \"packages/:pkg/src/:file\": `:pkg/:file`",
    ],
)
def test_rewrites_of_vitepress(tmp_path, rewrites):
    """The examples of https://vitepress.dev/guide/routing#route-rewrites."""
    files = {
        ".vitepress/config.ts": f"export default {{\n  rewrites: {{\n{rewrites}\n  }}\n}}",
        "packages/pkg-a/src/index.md": B,
        "packages/pkg-a/src/foo.md": "See [one](../pkg-b/bar), [two](/pkg-a/) and [three](./).",
        "packages/pkg-b/src/bar.md": B,
    }
    items = read_site(tmp_path, files)
    (page,) = [item for item in items if isinstance(item, Page) and "foo" in item.key]
    assert links(page) == [
        ("one", "packages/pkg-b/src/bar.md"),
        ("two", "packages/pkg-a/src/index.md"),
        ("three", "packages/pkg-a/src.md"),
    ]
    assert Redirect("packages/pkg-a/src.md", "packages/pkg-a/src/index.md") in items


@pytest.mark.parametrize("name", ["_part", r"\_part"])
def test_underscores_of_an_import_may_be_escaped(name):
    text = f"import Part from './{name}.mdx';\n\n# T\n\n<Part />\n"
    drops = Counter()
    included = with_includes("docs/a.mdx", text, {"docs/_part.mdx": "Included."}.get, drops)
    assert included.endswith("# T\n\nIncluded.\n") and not +drops
