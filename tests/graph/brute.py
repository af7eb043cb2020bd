"""The link graph in plain Python, written from its description and not from its expressions."""

from __future__ import annotations

from collections import Counter, defaultdict

HOPS = 5


def resolve_redirects(redirects, titles):
    """Title to final title; loops, chains that are too long and sources that are pages left out."""
    first: dict[str, str] = {}
    for row in redirects:
        if row["source"] not in titles:
            known = first.get(row["source"], row["target"])
            first[row["source"]] = min(known, row["target"])
    final = {}
    for source in first:
        target, hops = first[source], 1
        while target in first and hops < HOPS:
            target, hops = first[target], hops + 1
        if target not in first:
            final[source] = target
    return final


def link_graph(pages, sentences, links, redirects, min_words):
    """Anchors, drops, anchors by sentence, and documents with their in-links."""
    by_key: dict[str, int] = {}
    source_ok: dict[int, bool] = defaultdict(bool)
    document_ok: dict[int, bool] = defaultdict(bool)
    for page in pages:
        long_enough = page["words"] is None or page["words"] >= min_words
        by_key[page["key"]] = page["id"]
        source_ok[page["id"]] |= long_enough
        document_ok[page["id"]] |= long_enough and page["lead"] != ""
    final = resolve_redirects(redirects, by_key)
    page_of = {sentence["id"]: sentence["page"] for sentence in sentences}
    anchors, drops = {}, Counter()
    for link in {tuple(sorted(link.items())): link for link in links}.values():
        source = page_of[link["sentence"]]
        page = by_key.get(final.get(link["target"], link["target"]))
        if page is None:
            drops["link to a missing page"] += 1
        elif page == source:
            drops["link to its own page"] += 1
        elif not document_ok[page]:
            drops["link to a page that is too short or has no lead"] += 1
        elif not source_ok[source]:
            drops["link from a page that is too short"] += 1
        else:
            kept = ("sentence", "start", "end", "normalised")
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
        }
        for sentence, group in groups.items()
    }
    in_links = Counter(a["page"] for a in anchors.values())
    documents = {
        page: {"id": page, "in_links": in_links[page]}
        for page in by_key.values()
        if document_ok[page]
    }
    return anchors, drops, by_sentence, documents


def ambiguous(anchors, max_pages, max_occurrences):
    """Occurrences of anchor texts with two pages or more: id to pages and their counts."""
    occurrences = defaultdict(list)
    for anchor in sorted(anchors.values(), key=lambda a: a["id"]):
        occurrences[anchor["normalised"]].append(anchor)
    found = {}
    for group in occurrences.values():
        counts = sorted(Counter(anchor["page"] for anchor in group).items())[:max_pages]
        if len(counts) >= 2:
            pages, numbers = (list(column) for column in zip(*counts, strict=True))
            for anchor in group[:max_occurrences]:
                found[anchor["id"]] = {"id": anchor["id"], "pages": pages, "counts": numbers}
    return found
