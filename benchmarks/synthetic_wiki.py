"""Writes a synthetic wiki of any size: a MediaWiki XML dump, or the tables of the corpus stage.

Targets of links are Zipfian, some of them redirects (a few double, looping or dangling), some
missing; anchor texts are titles, short names that several pages share, or "here"; some sentences
are made by a template; one page in ten has a see-also section. The same seed gives the same wiki,
by chunks of pages that depend on nothing else, in bounded memory.

    python benchmarks/synthetic_wiki.py --pages 100000 --links 1000000 --dump wiki.xml.bz2
    python benchmarks/synthetic_wiki.py --pages 1000000 --links 10000000 --tables DIR
"""

from __future__ import annotations

import argparse
import bz2
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tqdm import tqdm

from harp_plugin.corpus.tables import SECTION, TABLES
from harp_plugin.sampling import generator, stable_id
from harp_plugin.text import words
from harp_plugin.work.parquet import write_table
from harp_plugin.work.stage import Stage

PAGES_PER_CHUNK = 20_000
PAGES_PER_STREAM = 100
_SENTENCES_PER_SECTION = 4
_FILLER = words("""about after all and are as at back because been before being both but by came
can carry city clear come could country day deep each early earth even every far few field find fire
first five follow food form four friend from garden gave good great green ground grow had hand hard
has have head hear heat high hill him his home house how into iron island keep kind know land large
last late lay leave left light like line little live long look made make many might mile milk
more morning most mother move much name near need new next night north now of off often old on once
one only open or other our out over own paper part people place plain plant point put rain read
right river road rock room round sea second see set seven ship short should side small snow so some
song soon sound south stand star state still stone story street strong sun table than that the their
them then there these they third this those three through time told took town tree true turn two
under until up valley very walk wall warm was watch water way well were west what wheel when where
which while white who wide wind winter with wood word work world would write year young""")
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in ("a", "e", "i", "o", "u", "an", "or", "il")]
_TEMPLATES = 20
_TEMPLATE_LENGTH = 10
_HERE = ["here", "this page", "more", "it"]
_HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
    "<siteinfo><sitename>Synthetic</sitename><dbname>simplewiki</dbname>"
    '<case>first-letter</case><namespaces><namespace key="0" />'
    '<namespace key="1">Talk</namespace><namespace key="6">File</namespace>'
    '<namespace key="14">Category</namespace></namespaces></siteinfo>\n'
)


@dataclass(frozen=True)
class Wiki:
    """What the wiki is made of. Titles are numbered: pages, then redirects, then missing pages."""

    pages: int = 10_000
    links: int = 100_000
    redirects: int = 2_000
    seed: int = 0

    @property
    def titles(self) -> int:
        return self.pages + self.redirects + max(1, self.pages // 10)


class Chunk(NamedTuple):
    """Some pages, flat: sentences by page, tokens by sentence, links by sentence.

    Attributes:
        first: number of the first page.
        sentences: sentences of each page.
        tokens: of each sentence; an index into the words, or -1 at a link.
        lengths: tokens in each sentence.
        links: links in each sentence.
        targets: title number of each link.
        anchors: anchor text of each link.
        see_also: title numbers under see-also, and how many on each page.
    """

    first: int
    sentences: np.ndarray
    tokens: np.ndarray
    lengths: np.ndarray
    links: np.ndarray
    targets: np.ndarray
    anchors: pa.Array
    see_also: tuple[np.ndarray, np.ndarray]


def titles(numbers: np.ndarray) -> pa.Array:
    """The titles of numbers: two words of syllables, distinct for distinct numbers."""
    base = len(_SYLLABLES)
    syllables = pa.array(_SYLLABLES)
    capitalized = pa.array([syllable.capitalize() for syllable in _SYLLABLES])
    digits = [numbers // base**power % base for power in (0, 1, 2, 3)]
    first, second, third, fourth = (pa.array(digit) for digit in digits)
    pieces = [capitalized.take(first), syllables.take(second), " "]
    pieces += [syllables.take(third), syllables.take(fourth), "n"]
    return pc.binary_join_element_wise(*pieces, "")


def ids(kind: int, numbers: np.ndarray) -> np.ndarray:
    """Distinct 63-bit ids of numbers below 2^40, well mixed (the finaliser of SplitMix64)."""
    x = (numbers.astype(np.uint64) << np.uint64(3)) + np.uint64(kind)
    x += np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)


def _zipf(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    """Numbers below ``count`` with P(rank) near 1/rank; ranks lie scattered over the numbers."""
    rank = np.minimum(np.exp(rng.random(size) * np.log(count + 1)).astype(np.int64) - 1, count - 1)
    step = next(s for s in range(int(count * 0.618) | 1, 2 * count + 3) if np.gcd(s, count) == 1)
    return rank * step % count


def _targets(rng: np.random.Generator, wiki: Wiki, size: int) -> np.ndarray:
    """Title numbers that links name: pages, redirects and missing pages."""
    kind = rng.random(size)
    found = _zipf(rng, wiki.pages, size)
    if wiki.redirects:
        found = np.where(kind < 0.08, wiki.pages + _zipf(rng, wiki.redirects, size), found)
    missing = wiki.pages + wiki.redirects
    other = missing + rng.integers(0, wiki.titles - missing, size)
    return np.where(kind > 0.96, other, found)


def redirects(wiki: Wiki, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    """Title numbers of redirects and of what they lead to: pages, redirects, loops, nothing."""
    rng = generator("synthetic redirects", wiki.seed, start)
    sources = np.arange(start, stop) + wiki.pages
    size = stop - start
    kind = rng.random(size)
    found = _zipf(rng, wiki.pages, size)
    others = wiki.pages + rng.integers(0, max(1, wiki.redirects), size)
    found = np.where(kind < 0.04, others, found)
    found = np.where((kind >= 0.04) & (kind < 0.045), sources, found)
    pair = wiki.pages + ((sources - wiki.pages) ^ 1)
    found = np.where((kind >= 0.045) & (kind < 0.06), pair, found)
    return sources, np.where(kind > 0.98, wiki.titles - 1, found)


def chunk(wiki: Wiki, start: int) -> Chunk:
    """Draw the pages from ``start`` on."""
    rng = generator("synthetic pages", wiki.seed, start)
    stop = min(start + PAGES_PER_CHUNK, wiki.pages)
    pages = stop - start
    total = wiki.links * stop // wiki.pages - wiki.links * start // wiki.pages
    share = rng.gamma(2.0, size=pages)
    sentences, links = _sentences(rng, rng.multinomial(total, share / share.sum()))
    template = np.where(rng.random(len(links)) < 0.02, rng.integers(0, _TEMPLATES, len(links)), -1)
    template[links != 1] = -1
    tokens, lengths = _tokens(rng, links, template)
    targets = _targets(rng, wiki, total)
    made = np.repeat(template, links)
    targets = np.where(made >= 0, made % wiki.pages, targets)
    anchors = _anchors(rng, targets, made >= 0)
    listed = np.where(rng.random(pages) < 0.1, rng.integers(1, 6, pages), 0)
    see_also = _targets(rng, wiki, int(listed.sum()))
    return Chunk(start, sentences, tokens, lengths, links, targets, anchors, (see_also, listed))


def _sentences(rng: np.random.Generator, per_page: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sentences of each page and links of each sentence; two without any open each page."""
    page = np.repeat(np.arange(len(per_page)), per_page)
    new = rng.random(len(page)) < 0.6
    new[np.flatnonzero(np.diff(page, prepend=-1))] = True
    sentence_of_link = np.cumsum(new) - 1
    linked = np.bincount(page[new], minlength=len(per_page))
    sizes = np.bincount(sentence_of_link)
    sentences = linked + 2
    links = np.zeros(int(sentences.sum()), np.int64)
    places = np.arange(len(sizes)) + 2 * (page[new] + 1)
    links[places] = sizes
    return sentences, links


def _tokens(
    rng: np.random.Generator, links: np.ndarray, template: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Words around the links, two at least before each and after the last, and each length.

    Sentences of one template have the same words.
    """
    size = len(_FILLER)
    sentence = np.repeat(np.arange(len(links)), links)
    before = np.where(template[sentence] >= 0, 5, rng.integers(2, 9, len(sentence)))
    tail = np.where(links == 0, rng.integers(12, 30, len(links)), rng.integers(2, 7, len(links)))
    tail[template >= 0] = 4
    lengths = tail + links + np.bincount(sentence, before, minlength=len(links)).astype(np.int64)
    ends = np.cumsum(lengths)
    drawn = rng.integers(0, size, int(lengths.sum()))
    made = np.flatnonzero(template >= 0)
    places = (ends - lengths)[made, None] + np.arange(_TEMPLATE_LENGTH)
    drawn[places] = (13 * template[made, None] + np.arange(_TEMPLATE_LENGTH)) % size
    drawn[ends - lengths] += size
    drawn[ends - 1] += 2 * size
    drawn[np.cumsum(before + 1) - 1 + (np.cumsum(tail) - tail)[sentence]] = -1
    return drawn, lengths


def _anchors(rng: np.random.Generator, targets: np.ndarray, plain: np.ndarray) -> pa.Array:
    """Titles as they are, in lower case, short names that several pages share, and "here"."""
    kind = np.where(plain, 0.0, rng.random(len(targets)))
    whole = titles(targets)
    short = pc.binary_join_element_wise(pc.utf8_lower(titles(targets // 4)), "isle", " ")
    here = pa.array(_HERE).take(pa.array(rng.integers(0, len(_HERE), len(targets))))
    choice = pa.array(np.searchsorted([0.5, 0.85, 0.995], kind))
    return pc.choose(choice, whole, pc.utf8_lower(whole), short, here)


class Texts(NamedTuple):
    """A chunk as texts: of sentences, of sections, and where the links stand."""

    sentences: pa.Array
    sections: pa.Array
    per_page: np.ndarray
    starts: np.ndarray


def texts(drawn: Chunk, shown: pa.Array) -> Texts:
    """Join words and links, as ``shown``, to sentences and sections."""
    capitalized, ended = [w.capitalize() for w in _FILLER], [f"{w}." for w in _FILLER]
    vocabulary = pa.array([*_FILLER, *capitalized, *ended])
    is_link = drawn.tokens < 0
    tokens = vocabulary.take(pa.array(np.maximum(drawn.tokens, 0)))
    tokens = pc.replace_with_mask(tokens, pa.array(is_link), shown)
    sentences = pc.binary_join(_lists(tokens, drawn.lengths), " ")
    places = np.cumsum(_lengths(tokens) + 1) - _lengths(tokens) - 1
    first = places[np.cumsum(drawn.lengths) - drawn.lengths]
    starts = places[is_link] - np.repeat(first, drawn.links)
    opens = _numbers(drawn.sentences) % _SENTENCES_PER_SECTION == 0
    per_section = np.diff(np.append(np.flatnonzero(opens), len(opens)))
    sections = pc.binary_join(_lists(sentences, per_section), " ")
    return Texts(sentences, sections, -(-drawn.sentences // _SENTENCES_PER_SECTION), starts)


def _lists(values: pa.Array, lengths: np.ndarray) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _lengths(strings: pa.Array) -> np.ndarray:
    return pc.utf8_length(strings).to_numpy().astype(np.int64)


def _numbers(counts: np.ndarray) -> np.ndarray:
    """0, 1, ... for each count."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def _starts(wiki: Wiki, count: int) -> range:
    return range(0, count, PAGES_PER_CHUNK)


def tables(wiki: Wiki, drawn: Chunk) -> dict[str, dict[str, Any]]:
    """The columns of the corpus stage's tables for a chunk of pages."""
    written = texts(drawn, drawn.anchors)
    pages = np.arange(drawn.first, drawn.first + len(drawn.sentences))
    page_of = np.repeat(pages, drawn.sentences)
    sentence_ids = ids(1, (page_of << 16) + _numbers(drawn.sentences))
    linked = drawn.links > 0
    sentence_of = np.repeat(np.arange(len(drawn.links)), drawn.links)
    page_of_link = page_of[sentence_of]
    per_page = np.bincount(page_of_link - drawn.first, minlength=len(pages))
    level = _numbers(written.per_page)
    page_of_section = np.repeat(pages, written.per_page)
    below = np.repeat(written.per_page - 1, written.per_page)
    left = np.repeat(drawn.sentences, written.per_page) - level * _SENTENCES_PER_SECTION
    heads = pc.binary_join_element_wise("Part ", pa.array(level).cast(pa.string()), "")
    columns = [
        pa.array(np.where(level == 0, 1, 2), pa.int8()),
        pc.if_else(pa.array(level == 0), "", heads),
        written.sections,
        pa.array(np.zeros(len(level), dtype=bool)),
    ]
    sections = pa.StructArray.from_arrays(columns, fields=list(SECTION))
    spaces = pc.count_substring(written.sections, " ").to_numpy() + 1
    firsts = np.cumsum(written.per_page) - written.per_page
    names = titles(pages)
    see_also, listed = drawn.see_also
    lower = pc.utf8_lower(drawn.anchors)
    return {
        "pages": {
            "id": ids(0, pages),
            "key": names,
            "title": names,
            "lead": written.sections.take(pa.array(firsts)),
            "words": np.add.reduceat(spaces, firsts).astype(np.int32),
            "sections": _lists(sections, written.per_page),
            "see_also": _lists(titles(see_also), listed),
        },
        "sentences": {
            "id": sentence_ids[linked],
            "page": ids(0, page_of[linked]),
            "text": written.sentences.filter(pa.array(linked)),
        },
        "sections": {
            "id": ids(3, (page_of_section << 16) + level),
            "page": ids(0, page_of_section),
            "place": level.astype(np.int32),
            "parent": pa.array(np.zeros(len(level), dtype=np.int32), mask=level == 0),
            "depth": (level > 0).astype(np.int32),
            "words": spaces.astype(np.int32),
            "sentences": np.minimum(left, _SENTENCES_PER_SECTION).astype(np.int32),
            "others": (below - (level > 0)).astype(np.int32),
            "boilerplate": np.zeros(len(level), dtype=bool),
        },
        "links": {
            "id": ids(2, (page_of_link << 16) + _numbers(per_page)),
            "sentence": sentence_ids[sentence_of],
            "start": written.starts.astype(np.int32),
            "end": (written.starts + _lengths(drawn.anchors)).astype(np.int32),
            "anchor": drawn.anchors,
            "normalized": lower,
            "text_id": _text_ids(lower),
            "target": titles(drawn.targets),
        },
    }


def _text_ids(texts: pa.Array) -> np.ndarray:
    """Give each anchor text the id that a reader gives it."""
    coded = texts.dictionary_encode()
    distinct = [stable_id("anchor text", text) for text in coded.dictionary.to_pylist()]
    return np.array(distinct, dtype=np.int64)[coded.indices.to_numpy()]


def write_tables(wiki: Wiki, directory: Path, *, quiet: bool = False) -> None:
    """Write the finished corpus stage of the wiki to ``directory/corpus``."""
    stage = Stage(directory / "corpus", asdict(wiki), {}, ("pyarrow", "numpy"))
    if stage.is_whole:
        return
    stage.start()
    for start in tqdm(_starts(wiki, wiki.pages), desc="pages", disable=quiet):
        found = tables(wiki, chunk(wiki, start))
        _write_shard(stage, f"pages-{start // PAGES_PER_CHUNK:05d}", found)
    for start in _starts(wiki, max(1, wiki.redirects)):
        stop = min(start + PAGES_PER_CHUNK, wiki.redirects)
        sources, targets = redirects(wiki, start, stop)
        found = {"redirects": {"source": titles(sources), "target": titles(targets)}}
        _write_shard(stage, f"redirects-{start // PAGES_PER_CHUNK:05d}", found)
    stage.finish()


def _write_shard(stage: Stage, shard: str, found: dict[str, dict[str, Any]]) -> None:
    files = {}
    for name, columns in found.items():
        schema = TABLES[name]
        size = len(next(iter(columns.values())))
        arrays = [
            pa.array(columns[field.name], field.type)
            if field.name in columns
            else pa.nulls(size, field.type)
            for field in schema
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        path = stage.folder / name / f"part-{shard}.parquet"
        files[name] = write_table(path, schema, [batch])
    rows = {name: file.rows for name, file in files.items()}
    stage.finish_shard(shard, rows, {}, files.values())


def page_texts(drawn: Chunk) -> pa.Array:
    """The wikitext of each page of a chunk."""
    linked = pc.binary_join_element_wise("[[", titles(drawn.targets), "|", drawn.anchors, "]]", "")
    written = texts(drawn, linked)
    level = _numbers(written.per_page)
    heads = pc.binary_join_element_wise("== Part ", pa.array(level).cast(pa.string()), " ==\n", "")
    heads = pc.if_else(pa.array(level == 0), "", heads)
    sections = pc.binary_join_element_wise(heads, written.sections, "")
    bodies = pc.binary_join(_lists(sections, written.per_page), "\n\n")
    see_also, listed = drawn.see_also
    items = pc.binary_join_element_wise("* [[", titles(see_also), "]]", "")
    lists = pc.binary_join(_lists(items, listed), "\n")
    heading = pa.array(["", "\n\n== See also ==\n"]).take(pa.array((listed > 0).astype(np.int8)))
    return pc.binary_join_element_wise(bodies, heading, lists, "")


def xml_pages(wiki: Wiki) -> Iterator[tuple[int, str, str]]:
    """The wiki's ``<page>`` elements: id, title, XML."""
    for start in _starts(wiki, wiki.pages):
        drawn = chunk(wiki, start)
        names = titles(np.arange(start, start + len(drawn.sentences))).to_pylist()
        for number, (name, text) in enumerate(
            zip(names, page_texts(drawn).to_pylist(), strict=True), start
        ):
            yield number, name, _page(number, name, text)
    for start in _starts(wiki, wiki.redirects):
        sources, targets = redirects(wiki, start, min(start + PAGES_PER_CHUNK, wiki.redirects))
        names, ends = titles(sources).to_pylist(), titles(targets).to_pylist()
        for number, name, end in zip(sources.tolist(), names, ends, strict=True):
            moved = f'<redirect title="{end}" />'
            yield number, name, _page(number, name, f"#REDIRECT [[{end}]]", moved)


def _page(number: int, name: str, text: str, redirect: str = "") -> str:
    return (
        f"<page><title>{name}</title><ns>0</ns><id>{number + 1}</id>{redirect}"
        f"<revision><id>{number + 1}</id><timestamp>2020-01-01T00:00:00Z</timestamp>"
        "<model>wikitext</model><format>text/x-wiki</format>"
        f'<text xml:space="preserve">{escape(text)}</text></revision></page>\n'
    )


def write_dump(wiki: Wiki, path: Path, *, quiet: bool = False) -> None:
    """Write a dump; ``.bz2`` compresses it.

    A name with ``multistream`` gives streams of 100 pages, and an index beside it whose lines are
    offset, id and title, as Wikimedia writes them.
    """
    bar = tqdm(xml_pages(wiki), total=wiki.pages + wiki.redirects, unit="page", disable=quiet)
    if "multistream" in path.name:
        _write_multistream(path, bar)
        return
    with bz2.open(path, "wb") if path.suffix == ".bz2" else path.open("wb") as file:
        file.write(_HEAD.encode())
        file.writelines(xml.encode() for _, _, xml in bar)
        file.write(b"</mediawiki>\n")


def _write_multistream(path: Path, pages: Iterator[tuple[int, str, str]]) -> None:
    name = path.name.replace("multistream", "multistream-index").replace(".xml", ".txt")
    with path.open("wb") as file, bz2.open(path.with_name(name), "wt", encoding="utf-8") as index:
        file.write(bz2.compress(_HEAD.encode()))
        waiting: list[str] = []
        for number, title, xml in pages:
            index.write(f"{file.tell()}:{number + 1}:{title}\n")
            waiting.append(xml)
            if len(waiting) == PAGES_PER_STREAM:
                _flush(file, waiting)
        _flush(file, waiting)
        file.write(bz2.compress(b"</mediawiki>\n"))


def _flush(file: IO[bytes], waiting: list[str]) -> None:
    if waiting:
        file.write(bz2.compress("".join(waiting).encode()))
        waiting.clear()


def main() -> None:
    """Read the flags and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in asdict(Wiki()).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dump", type=Path, help="an .xml, .xml.bz2 or multistream .xml.bz2 file")
    parser.add_argument("--tables", type=Path, help="a build folder, for the corpus stage's tables")
    parser.add_argument("--quiet", action="store_true")
    found = parser.parse_args()
    wiki = Wiki(found.pages, found.links, found.redirects, found.seed)
    if found.dump is None and found.tables is None:
        parser.error("name --dump or --tables")
    if min(wiki.pages, wiki.links) < 1 or wiki.redirects < 0:
        parser.error("give --pages and --links of 1 or more, and no negative --redirects")
    if found.dump:
        write_dump(wiki, found.dump, quiet=found.quiet)
    if found.tables:
        write_tables(wiki, found.tables, quiet=found.quiet)


if __name__ == "__main__":
    main()
