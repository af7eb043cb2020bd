"""Recognizes what of a page is no text of its own: lists of references, and hatnotes.

The signs are headings and the first words of lines, in the languages of the largest Wikipedias. A
hatnote is a line at the start of a section that leads to another page, such as "For other uses,
see ...".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..text import words
from .markup import LinkedText
from .pages import HATNOTE, Page, Section

__all__ = [
    "REFERENCES",
    "begins_with_hatnote",
    "boilerplate_sections",
    "set_hatnotes_apart",
]

REFERENCES = "references"
"""The region of links in sections with a heading of boilerplate."""

_HEADINGS = frozenset(
    # en
    {"references", "references and notes", "notes and references", "footnotes", "citations"}
    | {"references and footnotes", "notes and citations", "bibliography", "works cited"}
    | {"cited sources", "general references", "references and sources", "sources and references"}
    | {"external links", "external link", "external sources", "weblinks", "web links"}
    | {"other websites", "other website", "more websites", "related websites", "other links"}
    | {"further reading", "more reading", "other reading", "further information"}
    | {"external links and references", "references and external links", "bibliography and links"}
    # de, nl, sv
    | {"einzelnachweise", "nachweise", "belege", "literatur", "weblinks", "fußnoten"}
    | {"einzelnachweise und anmerkungen", "anmerkungen und einzelnachweise", "externe links"}
    | {"quellen und literatur", "literatur und quellen", "literatur und weblinks"}
    | {"bronnen", "referenties", "externe link", "literatuur", "bronnen, noten en/of referenties"}
    | {"bronnen, noten of referenties", "noten en referenties", "bibliografie", "voetnoten"}
    | {"källor", "referenser", "noter", "externa länkar", "litteratur", "källor och litteratur"}
    | {"vidare läsning", "fotnoter", "webbkällor", "tryckta källor"}
    # fr, es, it, pt, ro, ca
    | {"références", "notes et références", "références et notes", "notes et sources"}
    | {"liens externes", "lien externe", "bibliographie", "sources et références"}
    | {"sources et bibliographie", "pour en savoir plus", "lectures complémentaires"}
    | {"referencias", "notas y referencias", "enlaces externos", "enlace externo", "bibliografía"}
    | {"fuentes", "lecturas adicionales", "notas al pie", "referencias y notas", "citas"}
    | {"collegamenti esterni", "bibliografia", "altri progetti", "riferimenti", "fonti"}
    | {"note e riferimenti", "referências", "ligações externas", "ligação externa", "fontes"}
    | {"notas e referências", "leitura adicional", "leituras adicionais", "links externos"}
    | {"referințe", "legături externe", "bibliografie", "note și referințe", "lectură suplimentară"}
    | {"referències", "enllaços externs", "notes i referències", "bibliografia complementària"}
    # pl, cs, ru, uk
    | {"przypisy", "linki zewnętrzne", "literatura", "źródła", "bibliografia i linki"}
    | {"externí odkazy", "další literatura", "poznámky pod čarou", "zdroje"}
    | {"ссылки", "источники", "литература", "сноски", "примечания и ссылки", "библиография"}
    | {"примечания", "комментарии и примечания", "внешние ссылки", "дополнительная литература"}
    | {"посилання", "джерела", "література", "виноски", "зовнішні посилання", "бібліографія"}
    | {"примітки", "примітки та джерела", "додаткова література"}
    # fi, hu, tr, vi, id, ceb, da, no
    | {"lähteet", "aiheesta muualla", "viitteet", "kirjallisuutta", "kirjallisuus"}
    | {"források", "jegyzetek", "irodalom", "külső hivatkozások", "további információk"}
    | {"hivatkozások", "további olvasnivalók", "felhasznált irodalom"}
    | {"kaynakça", "kaynaklar", "dış bağlantılar", "dipnotlar", "konuyla ilgili yayınlar"}
    | {"tham khảo", "liên kết ngoài", "chú thích", "thư mục", "đọc thêm", "nguồn tham khảo"}
    | {"referensi", "pranala luar", "bacaan lanjutan", "daftar pustaka", "catatan kaki"}
    | {"mga gumbanan sa gawas", "ang mga gi basihan niini", "mga reperensya", "mga pakisayran"}
    | {"mga sumpay sa gawas", "kasaysayan sa mga reperensya", "referencer", "kilder"}
    | {"eksterne henvisninger", "eksterne lenker", "referanser", "litteratur og kilder"}
    # ar, arz, fa, he, ko, el, hi
    | {"مراجع", "المراجع", "مصادر", "المصادر", "وصلات خارجية", "روابط خارجية", "هوامش"}
    | {"قراءات إضافية", "المراجع والمصادر", "لينكات برانيه", "لينكات بره", "منابع", "پانویس"}
    | {"پیوند به بیرون", "یادداشت‌ها", "برای مطالعهٔ بیشتر", "הערות שוליים", "קישורים חיצוניים"}
    | {"לקריאה נוספת", "מקורות", "각주", "외부 링크", "참고 문헌", "참고문헌", "같이 읽기"}
    | {"παραπομπές", "εξωτερικοί σύνδεσμοι", "πηγές", "βιβλιογραφία", "सन्दर्भ", "संदर्भ"}
    | {"बाहरी कड़ियाँ", "बाहरी कड़ियां"}
    # zh, ja
    | {"参考文献", "參考文獻", "参考资料", "參考資料", "外部链接", "外部連結", "外部鏈接"}
    | {"脚注", "外部リンク", "出典", "関連書籍", "参考图书", "延伸阅读", "延伸閱讀", "注释", "註釋"}
)
_WIKI_HEADINGS = frozenset(
    {"sources", "links", "quellen", "liens", "annexes", "reference"}
    | {"notes", "note", "notas", "notes and sources", "anmerkungen", "noten", "noot", "uwagi"}
    | {"poznámky", "комментарии", "notlar", "catatan", "huomautukset", "megjegyzések", "merknader"}
)
"""Headings that stand over lists in a wiki, and over text on other web pages."""

_LONGEST = 400
_LONGEST_WITHOUT_LINK = 150
_PHRASES = (
    # en
    r"for (?:other|the|an?|more|further|information|details|similar|general|its|people|places)\b"
    r".{1,160}?\bsee\b",
    r"(?:this article is about|not to be confused with)\b",
    r"this (?:page|section) is about .{1,200}?\b(?:for|see)\b",
    r"(?:main (?:articles?|pages?)|see also|further information|see main article)\s*:",
    r"[\"“]?.{1,80} (?:redirects|links) here\.",
    r"(?:the )?article (?:about|on|for) .{1,120} (?:is|are) (?:at|here)\b",
    # de, nl, sv, da
    r"dieser artikel (?:behandelt|beschreibt|befasst sich|erläutert|handelt von)\b",
    r"(?:weitere bedeutungen|andere bedeutungen|für (?:andere|weitere)|zu[mr]? .{1,80}) ?.{0,80}"
    r"\bsiehe\b",
    r"→? ?(?:hauptartikel|siehe auch|siehe hauptartikel)\s*:",
    r"(?:zie .{1,80} voor (?:andere|het|de|een)|voor andere betekenissen.{0,60} zie)\b",
    r"(?:hoofdartikel|zie ook|zie hoofdartikel|huvudartikel|se även|hovedartikel|se også)\s*:",
    r"(?:niet te verwarren met|ej att förväxla med|för andra betydelser)\b",
    # fr, es, it, pt
    r"pour (?:les articles homonymes|d['’]autres significations|.{1,60} homonymes?)\b.{0,80}voir\b",
    r"(?:ne pas confondre|ne doit pas être confondue?|cet article (?:concerne|traite))\b",
    r"(?:articles? (?:principal|principaux|détaillés?|connexes?)|voir aussi)\s*:",
    r"para (?:otros usos|otras acepciones|otros significados|el|la|los|las)\b.{0,120}véase\b",
    r"(?:no (?:debe )?confund\w+ con|artículos? principal(?:es)?\s*:|véase también\s*:)",
    r"(?:disambiguazione\b|nota disambigua|se stai cercando|(?:lo stesso argomento in dettaglio"
    r"|voc[ei] principal[ei]|vedi anche)\s*:)",
    r"(?:para outros significados|não confundir com)\b",
    r"(?:artigos? principa(?:l|is)|ver também|ver artigo principal|nota)\s*:",
    # pl, cs, ru, uk
    r"(?:ten artykuł dotyczy|tento článek je o|další významy jsou uvedeny)\b",
    r"(?:zobacz też|główny artykuł|osobny artykuł|hlavní článek|viz též|podrobnější informace)"
    r"\s*:",
    r"(?:у этого термина существуют и другие значения|о других значениях|эта статья (?:—|–|-) ?о"
    r"|не (?:следует )?путать с)\b",
    r"(?:основная статья|см\. также|основна стаття|див\. також)\s*:",
    r"(?:ця стаття (?:—|–|-) ?про|про інші значення|не плутати з)\b",
    # fi, hu, tr, vi, ar
    r"tämä artikkeli (?:kertoo|käsittelee)\b",
    r"(?:pääartikkeli|katso myös|fő szócikk|lásd még|ana madde|ayrıca bakınız|bài chi tiết"
    r"|bài viết chính|xem thêm|المقالة الرئيسة|مقالة مفصلة|طالع أيضا|انظر أيضا)\s*:",
    r"(?:ez a szócikk|başlığın diğer anlamları için|bài này viết về|đối với các định nghĩa khác)\b",
    r"(?:هذه المقالة عن|لمعان أخرى)\b",
)
_HATNOTE = re.compile("|".join(_PHRASES), re.IGNORECASE)


def boilerplate_sections(sections: Iterable[Section], *, is_web: bool = False) -> list[bool]:
    """Tell which sections are boilerplate: a heading says so, or the heading of one above it.

    Args:
        sections: the sections of a page in order.
        is_web: whether the page may be any web page, where "Notes" is a heading of text.
    """
    marks: list[bool] = []
    level = 0  # above 0 in a section of boilerplate and in the sections below it
    for section in sections:
        if section.level <= level:
            level = 0
        heading = section.title.strip(" :").lower()
        if not level and (heading in _HEADINGS or (heading in _WIKI_HEADINGS and not is_web)):
            level = section.level
        marks.append(level > 0)
    return marks


def set_hatnotes_apart(page: Page) -> None:
    """Move the hatnotes at the starts of sections to a section of their own.

    Its region is `HATNOTE`, so that their links are stored with this region.
    """
    hatnotes: list[Section] = []
    for section in page.content:
        size = sum(len(line) + 1 for line in _hatnotes(section.body))
        if size:
            page.drops[HATNOTE] += 1
            body = section.body
            hatnotes.append(Section(1, "", _part(body, 0, size - 1), HATNOTE))
            section.body = _part(body, size, len(body.text))
    page.sections += hatnotes


def begins_with_hatnote(text: str) -> bool:
    """Tell whether the first line of a text reads like a hatnote."""
    return any(_hatnotes(LinkedText(text, [])))


def _hatnotes(body: LinkedText) -> Iterator[str]:
    """Give the lines at the start of a text that are hatnotes."""
    position = 0
    for line in body.text.split("\n"):
        if len(line) > _LONGEST or not _HATNOTE.match(line):
            return
        end = position + len(line)
        last = max((link.end for link in body.links if position < link.end <= end), default=0)
        if words(body.text[last:end]) if last else len(line) > _LONGEST_WITHOUT_LINK:
            return
        yield line
        position = end + 1


def _part(body: LinkedText, start: int, end: int) -> LinkedText:
    """Return a part of a text with the links inside it."""
    inside = (link for link in body.links if start <= link.start and link.end <= end)
    links = [link.at(link.start - start, link.end - start) for link in inside]
    return LinkedText(body.text[start:end], links)
