"""Recognizes pages that only lead to other pages: disambiguation pages and lists.

The signs are a magic word, the names of templates, and titles, in the languages of the largest
Wikipedias. A page about all bearers of a name (a surname, ships of one name) is a set index, which
Wikipedia counts among the lists.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["DISAMBIGUATION", "LIST", "kind_of_page", "kind_of_wikitext"]

DISAMBIGUATION = "disambiguation"
LIST = "list"

_DISAMBIGUATION_TEMPLATES = frozenset(
    # en, and redirects that many wikis have
    {"disambiguation", "disambig", "disamb", "dab", "disambiguation page", "disambig page"}
    | {"disambiguation cleanup", "disambig-cleanup", "disambiguation-cleanup", "dab-cleanup"}
    | {"hndis", "hndis-cleanup", "hndisambig", "geodis", "geo-dis", "geodis-cleanup", "mathdab"}
    | {"airportdis", "callsigndis", "hospitaldis", "numberdis", "roaddis", "schooldis", "4cc"}
    | {"letter-numbercombdisambig", "mil-unit-dis", "big5dab"}
    # ceb, de, fr
    | {"giklaro", "pagklaro", "begriffsklärung", "homonymie", "homonyme", "paronymie"}
    | {"bandeau standard homonymie", "patronymie", "toponymie", "titres homonymes"}
    | {"homonymie dynastique", "homonymie d'édifices religieux", "homonymie de clubs sportifs"}
    | {"homonymie de nom romain", "homonymie de titre", "personnes homonymes", "saints homonymes"}
    | {"unités militaires homonymes", "batailles homonymes", "arrondissements homonymes"}
    # sv, nl, es, ru
    | {"förgrening", "gren", "förgreningssida", "olika betydelser", "namnförgrening"}
    | {"trebokstavsförgrening", "dp", "dpintro", "doorverwijspagina", "desambiguación"}
    | {"desambiguacion", "desambig", "неоднозначность", "многозначность", "однофамильцы"}
    | {"тёзки", "тезки", "список однофамильцев"}
    # it, pl, arz and ar
    | {"disambigua", "ujednoznacznienie", "strona ujednoznaczniająca", "توضيح", "صفحة توضيح"}
    # zh, ja, uk, vi, pt, fa, ca
    | {"消歧义", "消歧義", "消歧义页", "消歧義頁", "曖昧さ回避", "人名の曖昧さ回避", "aimai"}
    | {"地名の曖昧さ回避", "山の曖昧さ回避", "багатозначність", "disambigg"}
    | {"định hướng", "trang định hướng", "desambiguação", "ابهام زدایی", "ابهام‌زدایی"}
    | {"desambiguació"}
)
_LIST_TEMPLATES = frozenset(
    {"set index article", "set index", "sia", "surname", "given name", "given name set index"}
    | {"nickname", "name list", "shipindex", "ship index", "mountainindex", "mountain index"}
    | {"lakeindex", "roadindex", "road index", "sportindex", "sport index", "chemistry index"}
    | {"storm index", "plant common name", "animal common name", "efternamn", "förnamn"}
)
_DISAMBIGUATION_TITLE = re.compile(
    r"\((?:disambiguation|pagklaro|giklaro|begriffsklärung|homonymie|paronymie|olika betydelser"
    r"|doorverwijspagina|desambiguación|значения|disambigua|ujednoznacznienie|توضيح|消歧义|消歧義"
    r"|曖昧さ回避|значення|định hướng|desambiguação|ابهام‌زدایی|ابهام زدایی|desambiguació)\)$",
    re.IGNORECASE,
)
_LIST_TITLE = re.compile(
    r"Lists? of |Ind(?:ex|ices) of .* articles$|Outline of |Listen? (?:der|des|von|vom|aller) "
    r"|Listes? d(?:es? |u |['’])|Listor? över |Lista över |Lijst(?:en)? (?:van|met|der|uit) |Anexo:"
    r"|List[ae] d(?:el?|i|ei|egli|elle|ella|ello|ell['’]|['’]|os?|as?)\b|Lista (?:sa|ng|mga) "
    r"|Talaan (?:sa|ng) |Списки? [а-яё]|Список [а-яіїєґ]|Перелік |Danh sách "
    r"|Llistes? d(?:e |els? |['’])|(?:قائمة|قوائم|ليستة|قايمة|فهرست) |.+(?:列表|一覧|一览|一覽)$"
)
_LIST_TITLE_BY_LANGUAGE = {
    "de": re.compile(r"Listen? [a-zäöü]"),
    "pl": re.compile(r"Lista [a-ząćęłńóśźż]"),
}
"""Titles of lists in one language only: a "Liste noire" and a "Lista negra" are no lists."""
_MAGIC_WORD = "__DISAMBIG__"
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|<nowiki>.*?(?:</nowiki>|\Z)|\{\{\{[^{}]*\}\}\}", re.DOTALL)
_TEMPLATE = re.compile(r"\{\{\s*([^|{}\[\]<>#\n]+)")


def kind_of_page(title: str, language: str = "en", text_kind: str | None = None) -> str | None:
    """Return the kind of a page: ``"disambiguation"``, ``"list"`` or None.

    Args:
        title: the title of the page as a reader sees it.
        language: its language code.
        text_kind: the kind that its text tells, such as `kind_of_wikitext`.
    """
    if text_kind == DISAMBIGUATION:
        return text_kind
    return _kind_of_title(title, language) or text_kind


def kind_of_wikitext(wikitext: str) -> str | None:
    """Return the kind that the magic word and the names of templates tell, or None."""
    kind = _kind_of_marks(wikitext)
    return _kind_of_marks(_HIDDEN.sub("", wikitext)) if kind else None


def _kind_of_marks(wikitext: str) -> str | None:
    names = {name.replace("_", " ").strip().lower() for name in _TEMPLATE.findall(wikitext)}
    if _MAGIC_WORD in wikitext or any(map(_disambiguates, names)):
        return DISAMBIGUATION
    return None if names.isdisjoint(_LIST_TEMPLATES) else LIST


def _kind_of_title(title: str, language: str) -> str | None:
    title = unicodedata.normalize("NFKC", title).strip()
    if title.endswith(")") and _DISAMBIGUATION_TITLE.search(title):
        return DISAMBIGUATION
    pattern = _LIST_TITLE_BY_LANGUAGE.get(language, _LIST_TITLE)
    return LIST if _LIST_TITLE.match(title) or pattern.match(title) else None


def _disambiguates(name: str) -> bool:
    return name in _DISAMBIGUATION_TEMPLATES or name.endswith(" disambiguation")
