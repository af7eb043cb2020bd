"""Writes Markdown without what only a generator reads: shortcodes, expressions, components."""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import quote

from ..word_lists import NAMES
from .address import PAGE, TEMPLATE, MarkdownAddress

__all__ = ["plain_markdown"]

_NAMES = {kind: frozenset(names) for kind, names in NAMES["markdown"].items()}
_TOKEN = re.compile(
    r"""(?:^(?=[ \t>*+\-\d`~:/(%ie<\[!?])|(?=[\\`{<%[\]^:$=+]))  # most characters start none
    (?:\\[^\n]|`[^`\n]++`(?!`)
    |\$\$(?:(?!\n[ \t]*\n|\{\{)[^$`])++\$\$
    |(?<![\w$])\$(?=[^\s$\d])(?:(?!\{\{)[^$\n`])*+(?<=\S)\$(?![\w$])
    |^(?P<before>[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+)
        (?P<fence>`{3,}+(?=[^`\n]*+$)|~{3,}+|:{3,}+(?!no-loc\b)
            |/{3,}+(?=[ \t]*+(?:[a-z][\w-]*+[ \t]*+(?:\|[^\n]*+)?)?$))(?P<info>[^\n]*+)$
    |^(?P<line>\([^()\n]++\)=[ \t]*+$|\*\[[^\]\n]++\]:[^\n]*+$|%(?!%)[^\n]*+$|\+\+\+[^\n]*+$
        |[ \t]*+<<<[ \t]*+\S[^\n]*+$|\[\[?(?i:toc)\]?\][ \t]*+$
        |(?:[*+-]|1\.)[ \t][^\n]*+\n\{:[ \t]*+toc\b[^}\n]*+\})
    |^(?P<module>import|export)\b[ \t]*+(?=["'{*]|\w+[ \t]*+(?:,|from[ \t]*+["'])
        |(?:async|class|const|default|enum|function|interface|let|type|var)\b)
    |(?P<ticks>`++)
    |(?<!!)\[\]\(<?(?P<untitled>[^()\s<>]++)>?\)
    |\]\(<?\#?(?P<label>[\w:.-]++)>?\)
    |(?<![\w\]])\[(?P<shown>[^\[\]\n{<:]++)\][ \t]?+\n?+[ \t]*+\[(?P<identifier>[^\[\]\n]*+)\]
    |(?<![\w=^+])(?P<around>==|\^\^|\+\+)(?=[^\s=^+])(?P<marked>[^\n=^{]{0,200}?[^\s=^+{])(?P=around)(?![\w=^+])
    |<(?P<raw>!--|(?:pre|script|style)\b)
    |(?P<template>\{\{[<%]|\{%|\{\{)
    |\{(?P<role>[\w:+-]++)\}(?P<marks>`++)
    |(?P<brace>\{)
    |</?(?P<tag>[A-Za-z][\w.]*+|(?=>))
    |(?P<hidden>%%)
    |(?P<mark>(?:(?<=[ \t])|^)\^[A-Za-z0-9][\w-]{2,}+[ \t]*+$
        |^(?P<item>[ \t>]*+(?:[-*+]|\d{1,9}[.)])[ \t]++)\[[ xX]\](?=[ \t])
        |^[!?]>[ \t]
        |\[!(?i:code)[\w-]*+\[[^\[\]\n]*+\]\([^()\n]*+\)\]
        |\[!(?i:video)[ \t]++https?:[^\[\]\n]*+\](?!\()
        |:::image\b(?:(?!:::)[^\n])*+:::
        |(?:(?<![\w:/.\]]):(?!(?:return|rtype|type|raise|yield|param|meta|field)s?:)
                (?:[a-z][\w+-]*+|[+-]1|100):(?![\w:/`\]])
            |:(?:material|octicons|fontawesome|simple)-[\w-]++:)[ \t]*+))""",
    re.MULTILINE | re.VERBOSE,
)
_TEMPLATES = NAMES["markdown_templates"]
"""The ends and the kinds of templates by their starts."""
_NAME = re.compile(r"[-\s/#.*(!]*+([\w.:-]*)")
_LITERAL = re.compile(r"\s*([\"'`])((?:(?!\1)[^\n{])*+)\1\s*(?:\||\Z)")
_ARGUMENT = re.compile(r"\s*(?:path=|.path.\s+)?[\"'`]?([^\"'`\s<>%{}#]*)")
_BASE = re.compile(r"base_?url|base_?path|site_?url|site\.url|page\.root|url_for|config\.site_url")
_TITLE = re.compile(r"(?<![\w-])(?:title|label|summary|header)\s*=\s*([\"'])([^\n]*?)\1")
_TEXT = re.compile(r"(?<![\w-])text\s*=\s*([\"'])([^\n]*?)\1")
_HREF = re.compile(r"(?<![\w-])(?:href|to)=([\"'])([^\"'\n]*)\1")
_LINK = re.compile(r"(?:\]\([ \t]*<?|\]:[ \t]*<?|(?:href|src)=[\"']?)([^\s()<>\"']*)\Z")
_MYST = re.compile(r"^[`:]{3,}\{[\w:-]+\}|\{(?:doc|ref|term)\}`", re.MULTILINE)
_MODULE = re.compile(
    r"^import[ \t]+(?:[\w*$, \t]*?(?:\{[^{}'\"]*+\}[ \t]*)?from[ \t]+)?[\"'][^\n]*+\n?",
    re.MULTILINE,
)
_BRACKET = re.compile(r"[{}()\[\]]|\n(?=[ \t]*(?:\n|\Z))")
_TAG_PART = re.compile(r"[{>]|\"[^\"]*\"|'[^']*'")
_ATTRIBUTES = re.compile(r"\{:?[ \t]*[#.][^{}\n]*\}")
_CONTAINER = re.compile(
    r"[ \t]*(?!html[ \t]*\|)[\w-]+(?:[ \t]*\[(?P<title>(?:[^\[\]\n]|\[[^\[\]\n]*\])*+)\]"
    r"|[ \t]+(?:\|[ \t]*)?(?P<rest>[^\s={}][^\n={}]*+(?<!:)))(?:\{[^{}\n]*\})?[ \t]*\Z"
)
_ROWS = re.compile(r"^[ \t]*:::row(?!-end).*?(?=^[ \t]*:::row-end|\Z)", re.MULTILINE | re.DOTALL)
"""Rows of DocFX, whose indents would read as code."""
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_DIRECTIVE = re.compile(r"[ \t]*\{([\w:+-]+)\}[ \t]*([^\n]*)")
_OPTIONS = re.compile(
    r"\n---\n(?:(?!---)[^\n]*+\n){0,99}+---(?=\n)|(?:\n[ \t>]*+:[\w-]++:[^\n]*+)++"
)
_DEFINED = re.compile(r"^[ \t]*\[([^\[\]\n]+)\]:", re.MULTILINE)
_NUMBER = re.compile(r"[ \t]*(?:%s|\{(?:number|name)\})")
_TARGET = re.compile(r"\s*([^<>]*?)\s*<([^<>]*)>\s*\Z")
_Written = tuple[str, int] | None
_LONGEST = 5000
"""The length of the longest tag or template that is read, in characters."""


def plain_markdown(
    text: str, address: MarkdownAddress, drops: Counter[str], *, is_mdx: bool = False
) -> str:
    """Write what templates, directives and components show as Markdown, and leave out the others.

    Code stays as it is. What is left out is counted by its kind and name, such as "shortcode left
    out: figure". The time is linear in the length of the text.

    Args:
        text: the text below the front matter.
        address: the address of the page.
        drops: the counter of reasons.
        is_mdx: whether braces are expressions and capital tags components, as in MDX.
    """
    return _Writer(text, address, drops, is_mdx).write()


class _Writer:
    """Reads each token by the method with the name of its last group; without one, it stays.

    Such a method returns what is written, and where to go on; None keeps the token.
    """

    def __init__(
        self, text: str, address: MarkdownAddress, drops: Counter[str], is_mdx: bool
    ) -> None:
        self.address, self.site, self.drops = address, address.site, drops
        self.is_mdx = is_mdx
        self.has_components = is_mdx or self.site.dialect.components
        self.is_mkdocs = self.site.layout.name == "mkdocs"
        self.defined = set(_DEFINED.findall(text.lower())) if self.is_mkdocs else set()
        self.is_obsidian = self.site.layout.name == "obsidian"
        self.is_myst = self.site.layout.name == "myst" or _MYST.search(text) is not None
        text = _ROWS.sub(lambda rows: _INDENT.sub("", rows[0]), text)
        self.text = text if is_mdx else _MODULE.sub("", text)
        self.fences: list[str] = []
        self.components: list[bool] = []
        self.link_end = self.raw_end = -1
        self.nearest: dict[str, re.Match[str] | None] = {}
        self.pairs = _pairs(self.text) if self.has_components else {}

    def write(self) -> str:
        """Return the text without what only a generator reads."""
        pieces: list[str] = []
        position = 0
        while token := _TOKEN.search(self.text, position):
            pieces.append(self.text[position : token.start()])
            result = token.lastgroup and getattr(self, f"_{token.lastgroup}")(token)
            written, position = result or (token[0], token.end())
            pieces.append(written)
        text = "".join([*pieces, self.text[position:]])
        return re.sub(*self.site.dialect.everywhere, text)

    def _next(self, pattern: str, position: int) -> re.Match[str] | None:
        """Return the next match of a pattern; it is searched for again only behind the last one."""
        match = self.nearest.get(pattern)
        if pattern not in self.nearest or (match is not None and match.start() < position):
            match = self.nearest[pattern] = re.compile(pattern, re.M).search(self.text, position)
        return match

    def _count(self, kind: str, name: str) -> None:
        self.drops[f"{kind} left out: {name[:40] or 'without a name'}"] += 1

    def _verbatim(self, token: re.Match[str], closer: str) -> _Written:
        end = self._next(closer, token.end())
        return (self.text[token.start() : end.end()], end.end()) if end else None

    def _raw(self, token: re.Match[str]) -> _Written:
        raw = self._verbatim(token, "-->" if token["raw"] == "!--" else f"</{token['raw']}>")
        return ("", raw[1]) if raw and self.is_mdx else raw

    def _ticks(self, token: re.Match[str]) -> _Written:
        code = self._verbatim(token, rf"(?<!`){token[0]}(?!`)")
        blank = self._next(r"\n[ \t]*\n", token.end())
        return None if code and blank and blank.start() < code[1] else code

    def _info(self, token: re.Match[str]) -> _Written:
        """Read a fence: code, a directive of MyST, or a container."""
        fence, before, info = token["fence"], token["before"], token["info"].strip()
        if self.fences and not info and fence.startswith(self.fences[-1]):
            self.fences.pop()
            return before, token.end()
        directive = _DIRECTIVE.match(info)
        name, title = directive.groups() if directive else ("", "")
        if name.lower() in _NAMES["text_directives"]:
            self.fences.append(fence)
            options = _OPTIONS.match(self.text, token.end())
            title = "" if title.replace(" ", "").isdecimal() else title
            return f"{before}{title}\n", options.end() if options else token.end()
        if fence[0] in ":/" and not directive:
            container = _CONTAINER.match(info)
            title = (container["title"] or container["rest"] or "") if container else ""
            below = re.sub(r"[^>\s]", " ", before)
            return f"{below}\n{before}{title}\n{below}", token.end()
        closer = re.compile(rf"^[ \t>]*+{fence[0]}{{{len(fence)},}}[ \t]*$", re.M)
        end = closer.search(self.text, token.end())
        position = end.end() if end else len(self.text)
        if directive is None:
            return self.text[token.start() : position], position
        if name.lower() not in _NAMES["code_directives"]:
            self._count("directive", name)
        return before, position

    def _line(self, token: re.Match[str]) -> _Written:
        """Leave out a label, an abbreviation, a table of contents, or what only MyST reads."""
        is_text = token[0][0] in "%+" and not (self.is_myst or "{:" in token[0])
        return None if is_text else ("", token.end())

    def _module(self, token: re.Match[str]) -> _Written:
        """Leave out imports and exports of MDX: they end with a blank line outside of brackets."""
        if not self.is_mdx:
            return None
        depth = 0
        for bracket in _BRACKET.finditer(self.text, token.end(), token.end() + 10 * _LONGEST):
            depth += (bracket[0] in "{([") - (bracket[0] in "})]")
            if bracket[0] == "\n" and depth <= 0:
                return "", bracket.start()
        blank = self._next(r"\n[ \t]*\n", token.end())
        return "", blank.start() if blank and depth else len(self.text)

    def _template(self, token: re.Match[str]) -> _Written:
        opener, start = token["template"], token.start()
        closer, kind = _TEMPLATES[opener]
        end = self._next(re.escape(closer), token.end())
        if end is None or end.start() - start > _LONGEST or start < self.raw_end:
            return None
        inner, position = self.text[token.end() : end.start()], end.end()
        name = next(_NAME.finditer(inner))[1]
        link = _LINK.search(self.text, max(0, start - 200), start)
        if link or start == self.link_end:
            self.link_end = position
            reference = self._reference(opener, name, inner)
            return reference if not (link and link[1]) else TEMPLATE, position
        if opener == "{{" and (literal := _LITERAL.fullmatch(inner)):
            return literal[2], position
        if inner.startswith("/*"):
            return opener + inner, position - len(closer)
        if inner.lstrip(" \t\n-").startswith("end" if opener == "{%" else "/"):
            return "", position
        is_open = opener != "{{" and not inner.rstrip().endswith("/")
        if is_open and (name == "raw" or name in _NAMES["code"] or name in self.site.layout.code):
            tag = rf"\{{%-?\s*end{name}\b" if opener == "{%" else rf"\{{\{{[<%]\s*/\s*{name}\b"
            if until := self._next(rf"{tag}[^%>\n]{{0,99}}[%>]\}}+", position):
                self.raw_end = until.start() if name == "raw" else self.raw_end
                return "", position if name == "raw" else until.end()
        self._count(kind, name)
        text = None if name in _NAMES["images"] else _TEXT.search(inner)
        return text[2] if text else self._title(inner, name, start), position

    def _reference(self, opener: str, name: str, inner: str) -> str:
        """Return the reference that a template at the start of a link makes."""
        argument = _ARGUMENT.match(inner[inner.find(name) + len(name) :])
        path = argument[1] if argument else ""
        if name in ("ref", "relref", "post_url"):
            return f"{PAGE}{quote(path)}" if path else "#"
        if name == "link" and opener == "{%":
            return f"/{path.lstrip('/')}"
        if literal := _LITERAL.match(inner) if opener == "{{" else None:
            return literal[2]
        return "" if _BASE.search(inner) else TEMPLATE

    def _title(self, source: str, name: str, start: int) -> str:
        """Return the title that a shortcode or a component at the start of a line shows."""
        title = _TITLE.search(source) if name.lower() not in _NAMES["images"] else None
        starts_line = not self.text[max(0, start - 200) : start].rpartition("\n")[2].strip()
        return f"{title[2]}\n\n" if title and starts_line else ""

    def _marks(self, token: re.Match[str]) -> _Written:
        """Read a role of MyST: a link, or words."""
        end = self._next(rf"(?<!`){token['marks']}(?!`)", token.end())
        if not self.is_myst or end is None or end.start() - token.start() > _LONGEST:
            return None
        name, content = token["role"].lower(), self.text[token.end() : end.start()]
        content = " ".join(content.split())
        explicit = _TARGET.match(content)
        shown, target = explicit.groups() if explicit else ("", content)
        shown = _NUMBER.sub("", shown)
        kind = name.rpartition(":")[2]
        if kind in _NAMES["hidden_roles"] or name.startswith("cite"):
            self._count("role", name)
            return "", end.end()
        if kind in _NAMES["link_roles"]:
            reference = f"{PAGE}{quote(target.lstrip('!'))}"
            shown = shown or self._title_of(reference, target) or target
            return f"[{shown}]({reference})", end.end()
        shown = shown or (f"{kind.upper()} {target}" if kind in ("pep", "rfc") else "")
        shown = shown or (target.rpartition(".")[2] if target.startswith("~") else target)
        return f"{token['marks']}{shown}{token['marks']}", end.end()

    def _untitled(self, token: re.Match[str]) -> _Written:
        """Write the title of its page into a link of MyST that shows nothing."""
        label = token["untitled"].lstrip("#")
        is_label = label in self.site.labels
        reference = f"{PAGE}{quote(label)}" if is_label else token["untitled"]
        title = self._title_of(reference, label)
        return (f"[{title}]({reference})", token.end()) if title else None

    def _label(self, token: re.Match[str]) -> _Written:
        """Write a link of MyST to a label, which may be that of another page."""
        name = token["label"]
        is_known = self.is_myst and name in self.site.labels
        return (f"]({PAGE}{quote(name)})", token.end()) if is_known else None

    def _identifier(self, token: re.Match[str]) -> _Written:
        """Leave out an identifier of generated pages, or the space before a name of MkDocs."""
        name = token["identifier"] or token["shown"].strip("`")
        is_defined = name.lower() in self.defined
        shown = f"[{token['shown']}][{token['identifier']}]" if is_defined else token["shown"]
        return (shown, token.end()) if self.is_mkdocs and (is_defined or "." in name) else None

    def _marked(self, token: re.Match[str]) -> _Written:
        """Write what is highlighted or inserted, and the names of keys."""
        around, marked = token["around"], token["marked"]
        if around != "++":
            return marked, token.end()
        is_keys = re.fullmatch(r"[\w\"-]+(?:\+[\w\"-]+)*", marked)
        return (marked.replace('"', "").title(), token.end()) if is_keys else None

    def _title_of(self, reference: str, name: str) -> str:
        """Return the heading below the label of this name, else the title of the page, if known."""
        title = self.site.labels.get(name, ("", ""))[1]
        return title or self.site.titles.get(str(self.address.resolve(reference)), "")

    def _brace(self, token: re.Match[str]) -> _Written:
        """Leave out an expression or a comment of MDX; a text in quotes is shown."""
        start = token.start()
        if self.text.startswith("/*", start + 1) and (end := self._next(r"\*/\s*\}", start)):
            return "", end.end()
        close = self.pairs.get(start)
        if not self.is_mdx or close is None or _ATTRIBUTES.match(self.text, start):
            return None
        inner = self.text[start + 1 : close]
        if literal := _LITERAL.fullmatch(inner):
            return literal[2], close + 1
        self._count("expression", next(_NAME.finditer(inner))[1])
        return "", close + 1

    def _tag(self, token: re.Match[str]) -> _Written:
        """Leave out the tags of a component, whose content stays; one that links is a link."""
        name, start = token["tag"], token.start()
        is_component = not name[:1].islower() or "." in name
        tag = self._read_tag(start) if self.has_components else None
        if tag is None or not (is_component or self.is_mdx):
            return None
        source, position = tag
        if not is_component:
            return re.sub(r"\s*\n\s*", " ", source), position
        if source.startswith("</"):
            return "</a>" if self.components and self.components.pop() else "", position
        href, is_open = _HREF.search(source), not source.endswith("/>")
        title = self._title(source, name, start)
        self.components += [href is not None and not title] if is_open else []
        if name:
            self._count("component", name)
        if href and title:
            return f'<a href="{href[2]}">{title.rstrip()}</a>\n\n', position
        return f'<a href="{href[2]}">' if href and is_open else title, position

    def _read_tag(self, start: int) -> _Written:
        """Return a tag with plain values in the place of expressions, and where it ends."""
        pieces: list[str] = []
        position = start
        closing = self._next(">", start)
        if closing is None or closing.start() - start > _LONGEST:
            return None
        while part := _TAG_PART.search(self.text, position, start + _LONGEST):
            pieces += [self.text[position : part.start()], part[0]]
            position = part.end()
            if part[0] == ">":
                return "".join(pieces), position
            if part[0] == "{":
                close = self.pairs.get(part.start())
                if close is None:
                    return None
                literal = _LITERAL.fullmatch(self.text[position:close])
                pieces[-1], position = f'"{literal[2] if literal else ""}"', close + 1
        return None

    def _hidden(self, token: re.Match[str]) -> _Written:
        """Leave out a comment of Obsidian; elsewhere, it stands on one line or starts one."""
        start, end = token.span()
        close = self._next("%%", end)
        if close is None or close.start() == end:
            return None
        starts_line = not start or self.text[start - 1] == "\n"
        is_hidden = starts_line or self.is_obsidian or "\n" not in self.text[end : close.start()]
        return ("", close.end()) if is_hidden else None

    def _mark(self, token: re.Match[str]) -> _Written:
        """Leave out a mark of a block, a box of a task, an emoji, or code and images of DocFX."""
        return token["item"] or "", token.end()


def _pairs(text: str) -> dict[int, int]:
    """Return the offsets of closing braces by those of their opening braces."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for brace in re.finditer("[{}]", text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            pairs[opened.pop()] = brace.start()
    return pairs
