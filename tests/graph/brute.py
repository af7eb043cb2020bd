"""The link graph in plain Python, written from its description and not from its expressions."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

HOPS = 16


class Graph(NamedTuple):
    """The tables by id, the drops by reason, and the counts by name."""

    anchors: dict
    sentence_anchors: dict
    documents: dict
    anchor_texts: dict
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


def link_graph(pages, sentences, links, redirects, min_words):
    """All tables, drops and counts."""
    by_key: dict[str, int] = {}
    source_ok: dict[int, bool] = defaultdict(bool)
    document_ok: dict[int, bool] = defaultdict(bool)
    for page in pages:
        long_enough = page["words"] is None or page["words"] >= min_words
        by_key[page["key"]] = page["id"]
        source_ok[page["id"]] |= long_enough
        document_ok[page["id"]] |= long_enough and page["lead"] != ""
    final, drops = resolve_redirects(redirects, by_key)
    page_of = {sentence["id"]: sentence["page"] for sentence in sentences}
    anchors = {}
    read = set()
    for link in sorted(links, key=lambda link: (link["id"], link["target"])):
        source = page_of[link["sentence"]]
        page = by_key.get(final.get(link["target"], link["target"]))
        if link["id"] in read:
            drops["link read twice"] += 1
            continue
        read.add(link["id"])
        if link["region"] is not None:
            drops["link in a header, footer or navigation"] += 1
        elif page is None:
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
    linking = defaultdict(list)
    for anchor in anchors.values():
        linking[anchor["page"]].append(anchor["source"])
    documents = {
        page: {"id": page, "in_links": len(linking[page]), "sources": len(set(linking[page]))}
        for page in by_key.values()
        if document_ok[page]
    }
    texts = anchor_texts(anchors.values())
    pairs = see_also(pages, by_key, final, source_ok, drops)
    counts = quality(anchors.values(), texts.values(), sentences)
    return Graph(anchors, by_sentence, documents, texts, pairs, +drops, counts)


def anchor_texts(anchors):
    """What each anchor text leads to, by the least id of its anchors."""
    occurrences = defaultdict(list)
    for anchor in anchors:
        occurrences[anchor["normalised"]].append(anchor)
    rows = [
        {
            "id": min(a["id"] for a in group),
            "normalised": text,
            "occurrences": len(group),
            "pages": len({a["page"] for a in group}),
            "sources": len({a["source"] for a in group}),
            "largest": max(Counter(a["page"] for a in group).values()),
        }
        for text, group in occurrences.items()
    ]
    return {row["id"]: row for row in rows}


def see_also(pages, by_key, final, long_enough, drops):
    """Pairs of pages, ascending."""
    pairs = set()
    for source, key in {(page["id"], key) for page in pages for key in page["see_also"]}:
        target = by_key.get(final.get(key, key))
        if target is None:
            drops["see-also link to a missing page"] += 1
        elif target == source:
            drops["see-also link to its own page"] += 1
        elif not long_enough[target]:
            drops["see-also link to a page that is too short"] += 1
        elif not long_enough[source]:
            drops["see-also link from a page that is too short"] += 1
        elif (source, target) in pairs:
            drops["see-also link that repeats another"] += 1
        else:
            pairs.add((source, target))
    return [{"source": source, "target": target} for source, target in sorted(pairs)]


def quality(anchors, texts, sentences, many_pages=100):
    """Figures on near-duplicates and spam."""
    used = {a["sentence"] for a in anchors}
    text_of = {s["id"]: s["text"] for s in sentences}
    standing = defaultdict(set)
    for sentence in sentences:
        if sentence["id"] in used:
            standing[sentence["text"]].add(sentence["page"])
    distinct = {(a["source"], a["normalised"], a["page"]) for a in anchors}
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
