"""Drops the list of titles in other languages that some dumps have as plain text.

Articles that were written back from HTML may end with ``arz:...new:...``: the links of wikis
that the converter had no name for, one behind the other, sometimes right behind the last word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["INTERLANGUAGE", "without_interlanguage"]

INTERLANGUAGE = "list of titles in other languages, in plain text"
"""The reason that the manifest counts."""

_CODES_OF_TWO_LETTERS = """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy
    da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu
    hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb
    lg li ln lo lt lv mg mh mi mk ml mn mo mr ms mt my na ne ng nl nn no nv ny oc om or os pa pi
    pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw ta te tg
    th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
_LONGER_CODES = """
    ace ady als alt ami ang ann anp arc ary arz ast atj avk awa azb ban bar bat-smg bbc bcl bdr
    be-tarask be-x-old bew bjn blk bpy btm bug bxr cbk-zam cdo ceb cho chr chy ckb crh csb dag din
    diq dsb dtp dty eml ext fat fiu-vro fon frp frr fur gag gan gcr glk gom gor got gpe guc gur
    guw hak haw hif hsb hyw ilo inh jam jbo kaa kab kbd kbp kcg koi krc ksh kus lad lbe lez lfn
    lij lld lmo lrc ltg lzh mad mai map-bms mdf mhr min mni mnw mrj mus mwl myv mzn nah nan nap
    nds nds-nl new nia nov nqo nrm nso olo pag pam pap pcd pcm pdc pfl pih pms pnb pnt pwn rmy
    roa-rup roa-tara rsk rue sah sat scn sco shi shn simple skr smn srn stq szl szy tay tcy tdd
    tet tly tpi trv tum tyv udm vec vep vls war wuu xal xmf yue zea zgh zh-classical zh-min-nan
    zh-yue
"""
_TWO_LETTERS = frozenset(_CODES_OF_TWO_LETTERS.split())
_LONGER = frozenset(_LONGER_CODES.split())
_COLON = re.compile(r"[a-z-]{2,12}:(?=[^\s:/])")
_MARKUP = re.compile(r"[\[\]{}<>|=]")
_LATIN = re.compile("[A-Za-zÀ-ɏ]")
_LONGEST_TITLE = 120


def without_interlanguage(wikitext: str) -> str:
    """Return wikitext without a list of titles in other languages at its end.

    A list is the end of the last line, from the first code of a language on, where titles without
    markup stand right behind the colons of such codes. Behind a letter or a space, as in
    ``Interface:Title``, it has several titles or one in another script.
    """
    text = wikitext.rstrip()
    start = text.rfind("\n") + 1
    line = text[start:]
    marks = [mark.end() for mark in _MARKUP.finditer(line)]
    codes = list(_codes(line, marks[-1] if marks else 0))
    if not codes:
        return wikitext
    first = codes[0][0]
    ends = [code_start for code_start, _ in codes[1:]] + [len(line)]
    titles = [line[colon + 1 : end] for (_, colon), end in zip(codes, ends, strict=True)]
    if max(map(len, titles)) > _LONGEST_TITLE:
        return wikitext
    before = line[:first][-1:]
    if (before == " " or _LATIN.match(before)) and len(titles) == 1 and _LATIN.match(titles[0]):
        return wikitext
    return text[: start + first].rstrip()


def _codes(line: str, place: int) -> Iterator[tuple[int, int]]:
    """Give the start and the colon of each code of a language behind a place in a line.

    Inside a line, a code of two letters counts only where no letter stands before it.
    """
    for run in _COLON.finditer(line, place):
        colon = run.end() - 1
        for code_start in range(run.start(), colon - 1):
            code = line[code_start:colon]
            glued = code_start > 0 and (line[code_start - 1] == " " or code_start > run.start())
            if code in _LONGER or (code in _TWO_LETTERS and not glued):
                yield code_start, colon
                break
