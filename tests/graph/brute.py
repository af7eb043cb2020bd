"""The link graph in plain Python, written from its description and not from its expressions."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from harp_plugin.graph import FUNCTIONAL_ANCHORS
from harp_plugin.sampling import stable_id

HOPS = 16


class Graph(NamedTuple):
    """The tables by id, the drops by reason, and the counts by name."""

    anchors: dict
    sentence_anchors: dict
    page_links: dict
    documents: dict
    anchor_texts: dict
    ambiguous_texts: dict
    see_also: list
    drops: Counter
    counts: dict


def resolve_redirects(redirects, titles):
    """Title to final title, and the reasons why any other redirect is dropped."""
    first: dict[str, str] = {}
    drops = Counter()
    pairs = {(row["source"], row["target"]) for row in redirects}
    drops["redirect read twice"] = len(redirects) - len(pairs)
    for source, target in sorted(pairs):
        if source in titles:
            drops["redirect from the title of a page"] += 1
        elif source in first:
            drops["second target of a redirect"] += 1
        else:
            first[source] = target
    final = {}
    for source, target in first.items():
        hops = 1
        while target in first and hops < HOPS:
            target, hops = first[target], hops + 1
        if first[source] == source:
            drops["redirect to itself"] += 1
        elif target in first:
            drops["redirect in a loop or through more than 16 others"] += 1
        elif target not in titles:
            drops["redirect to a missing page"] += 1
        else:
            final[source] = target
    return final, drops


REGIONS = {
    "hatnote": "link in a hatnote",
    "references": "link in a section of references or web links",
}
ORDER = ["", "short", "no lead", "disambiguation", "list", "short lead", "near-duplicate"]
"""What may be wrong with a page; of several versions of it the least counts."""
TO = {
    "short": "a page that is too short or has no lead",
    "no lead": "a page that is too short or has no lead",
    "disambiguation": "a disambiguation page",
    "list": "a list page",
    "short lead": "a page with too short a lead",
    "near-duplicate": "a page whose lead nearly repeats another's",
}
FROM = {
    "short": "a page that is too short",
    "disambiguation": "a disambiguation page",
    "list": "a list page",
}


def page_flaws(pages, options):
    """Page id to what makes it no source, and to what makes it no document; "" for nothing."""
    as_source, as_document = defaultdict(list), defaultdict(list)
    for page in pages:
        flaws = []
        if page["words"] is not None and page["words"] < options.min_words:
            flaws.append("short")
        if page["kind"] is not None and getattr(options, f"{page['kind']}_pages") == "drop":
            flaws.append(page["kind"])
        as_source[page["id"]].append(min(flaws, key=ORDER.index, default=""))
        if page["lead"] == "":
            flaws.append("no lead")
        if page["lead_words"] < options.min_lead_words:
            flaws.append("short lead")
        as_document[page["id"]].append(min(flaws, key=ORDER.index, default=""))
    source, document = (
        {id: min(flaws, key=ORDER.index) for id, flaws in found.items()}
        for found in (as_source, as_document)
    )
    if options.near_duplicate_leads == "drop":
        bands = defaultdict(set)
        for page in pages:
            if document[page["id"]] == "":
                bands[page["id"]] |= set(page["lead_bands"])
        for page in bands:
            if any(bands[other] & bands[page] for other in bands if other < page):
                document[page] = "near-duplicate"
    return source, document


def site_of_pages(pages, options):
    """Page id to its registrable domain, if there are several of them and the filter is on."""
    found = defaultdict(set)
    for page in pages:
        if page["domain"] is not None and options.same_site_links == "drop":
            found[page["id"]].add(page["domain"])
    least = {id: min(domains) for id, domains in found.items()}
    return least if len(set(least.values())) > 1 else {}


def text_flaw(link, titles, options):
    """Why a link is dropped for its text, if it is."""
    if options.functional_anchors == "drop" and link["normalized"] in FUNCTIONAL_ANCHORS:
        return "link whose text is functional"
    if options.numeric_anchors == "drop" and not any(map(str.isalpha, link["normalized"])):
        return "link whose text has no letter"
    if options.long_anchors == "drop" and len(link["normalized"].split(" ")) > 64:
        return "link whose text has more than 64 words"
    kept = link["id"] % (2**31 - 1) < round(options.title_anchors * (2**31 - 1))
    if link["normalized"] in titles and not kept:
        return "link whose text is the title of its page"
    return None


def is_held_out(id, options):
    """Whether a page or a text is held out, by its id."""
    prime = 2**31 - 1
    factor = 1 + stable_id("held-out links", options.seed) % (prime - 1)
    return id % prime * factor % prime < round(options.held_out_links * prime)


def link_graph(pages, sentences, links, redirects, options):
    """All tables, drops and counts."""
    by_key = {page["key"]: page["id"] for page in pages}
    titles = defaultdict(set)
    for page in pages:
        titles[page["id"]] |= set(page["title_anchors"])
    no_source, no_document = page_flaws(pages, options)
    sites = site_of_pages(pages, options)
    final, drops = resolve_redirects(redirects, by_key)
    drops["page read twice"] = len(pages) - len(no_source)
    for flaw in no_document.values():
        if flaw not in ("", "short", "no lead"):
            drops[TO[flaw].removeprefix("a ")] += 1
    page_of = {sentence["id"]: sentence["page"] for sentence in sentences}
    anchors = {}
    read = set()
    linked_by_sentence, linked_by_page, linked_by_text = (defaultdict(set) for _ in range(3))
    for link in sorted(links, key=lambda link: (link["id"], link["target"])):
        source = page_of[link["sentence"]]
        page = by_key.get(final.get(link["target"], link["target"]))
        if page is not None:
            linked_by_sentence[link["sentence"]].add(page)
            linked_by_page[source].add(page)
            linked_by_text[link["text_id"]].add(page)
        if link["id"] in read:
            drops["link read twice"] += 1
            continue
        read.add(link["id"])
        if link["region"] is not None:
            drops[REGIONS.get(link["region"], "link in a header, footer or navigation")] += 1
        elif page is None:
            drops["link to a missing page"] += 1
        elif page == source:
            drops["link to its own page"] += 1
        elif no_document[page]:
            drops[f"link to {TO[no_document[page]]}"] += 1
        elif no_source[source]:
            drops[f"link from {FROM[no_source[source]]}"] += 1
        elif source in sites and sites[source] == sites.get(page):
            drops["link between two pages of one site"] += 1
        elif flaw := text_flaw(link, titles[page], options):
            drops[flaw] += 1
        elif is_held_out(page if options.held_out_by == "page" else link["text_id"], options):
            drops["link that is held out for queries"] += 1
        else:
            kept = ("sentence", "start", "end", "normalized", "text_id")
            row = {name: link[name] for name in kept}
            anchors[link["id"]] = {"id": link["id"], **row, "page": page, "source": source}
    groups = defaultdict(list)
    for anchor in sorted(anchors.values(), key=lambda a: (a["start"], a["id"])):
        groups[anchor["sentence"]].append(anchor)
    by_sentence = {
        sentence: {
            "id": sentence,
            "anchors": [a["id"] for a in group],
            "pages": [a["page"] for a in group],
            "targets": len({a["page"] for a in group}),
            "linked": sorted(linked_by_sentence[sentence]),
        }
        for sentence, group in groups.items()
    }
    linking = defaultdict(list)
    for anchor in anchors.values():
        linking[anchor["page"]].append(anchor["source"])
    documents = {
        page: {"id": page, "in_links": len(linking[page]), "sources": len(set(linking[page]))}
        for page in by_key.values()
        if not no_document[page]
    }
    texts = anchor_texts(anchors.values(), linked_by_text)
    pairs = see_also(pages, by_key, final, no_source, drops, options)
    counts = quality(anchors.values(), texts.values(), sentences)
    if options.same_site_links == "drop":
        counts["sites"] = len(set(sites.values()))
    on_pages = page_links(anchors.values(), linked_by_page)
    several = ambiguous_texts(anchors.values())
    return Graph(anchors, by_sentence, on_pages, documents, texts, several, pairs, +drops, counts)


def page_links(anchors, linked, most=1000):
    """The links on each page and to it."""
    return {
        page: {
            "id": page,
            "anchors": sorted(a["id"] for a in anchors if a["source"] == page),
            "targets": sorted({a["page"] for a in anchors if a["source"] == page}),
            "linked": sorted(linked[page]),
            "sources": sorted({a["source"] for a in anchors if a["page"] == page})[:most],
        }
        for page in set(linked) | {a["page"] for a in anchors}
    }


def anchor_texts(anchors, linked, most=1000):
    """What each anchor text leads to, by the id of the text."""
    occurrences = defaultdict(list)
    for anchor in anchors:
        occurrences[anchor["normalized"]].append(anchor)
    rows = [
        {
            "id": group[0]["text_id"],
            "normalized": text,
            "occurrences": len(group),
            "pages": len({a["page"] for a in group}),
            "sources": len({a["source"] for a in group}),
            "largest": max(Counter(a["page"] for a in group).values()),
            "targets": sorted(linked[group[0]["text_id"]])[:most],
        }
        for text, group in occurrences.items()
    ]
    return {row["id"]: row for row in rows}


def see_also(pages, by_key, final, no_source, drops, options):
    """Pairs of pages, ascending."""
    pairs = set()
    for source, key in {(page["id"], key) for page in pages for key in page["see_also"]}:
        target = by_key.get(final.get(key, key))
        if target is None:
            drops["see-also link to a missing page"] += 1
        elif target == source:
            drops["see-also link to its own page"] += 1
        elif no_source[target]:
            drops[f"see-also link to {FROM[no_source[target]]}"] += 1
        elif no_source[source]:
            drops[f"see-also link from {FROM[no_source[source]]}"] += 1
        elif (source, target) in pairs:
            drops["see-also link that repeats another"] += 1
        else:
            pairs.add((source, target))
    if options.held_out_by == "page":
        held_out = {pair for pair in pairs if is_held_out(pair[1], options)}
        drops["see-also link to a held-out page"] += len(held_out)
        pairs -= held_out
    return [{"source": source, "target": target} for source, target in sorted(pairs)]


def quality(anchors, texts, sentences, many_pages=100):
    """Figures on near-duplicates and spam."""
    used = {a["sentence"] for a in anchors}
    text_of = {s["id"]: s["text"] for s in sentences}
    standing = defaultdict(set)
    for sentence in sentences:
        if sentence["id"] in used:
            standing[sentence["text"]].add(sentence["page"])
    distinct = {(a["source"], a["normalized"], a["page"]) for a in anchors}
    many = [text for text in texts if text["pages"] > many_pages]
    return {
        "repeated anchors": len(anchors) - len(distinct),
        "anchors in repeated sentences": sum(
            len(standing[text_of[a["sentence"]]]) >= 2 for a in anchors
        ),
        "texts of several pages": sum(text["pages"] >= 2 for text in texts),
        "texts of very many pages": len(many),
        "anchors of very many pages": sum(text["occurrences"] for text in many),
    }


def ambiguous_texts(anchors, max_pages=100, max_occurrences=100):
    """Anchor texts with two pages or more: by the id of the text."""
    occurrences = defaultdict(list)
    for anchor in sorted(anchors, key=lambda a: a["id"]):
        occurrences[anchor["text_id"]].append(anchor)
    rows = {}
    for text, group in occurrences.items():
        counts = sorted(Counter(anchor["page"] for anchor in group).items())[:max_pages]
        if len(counts) >= 2:
            listed = [
                (page, anchor["id"])
                for page, _ in counts
                for anchor in [a for a in group if a["page"] == page][:max_occurrences]
            ]
            rows[text] = {
                "id": text,
                "pages": [page for page, _ in counts],
                "counts": [count for _, count in counts],
                "anchors": [anchor for _, anchor in listed],
                "anchor_pages": [page for page, _ in listed],
            }
    return rows
