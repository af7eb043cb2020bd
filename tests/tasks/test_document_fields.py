"""What a page's text as a document is made of."""

from __future__ import annotations

import pytest
from orchard_wiki import draws

from harp_plugin.errors import HarpError
from harp_plugin.tasks import DrawOptions
from harp_plugin.text import query_passage

SECTIONS = ("srr", "rwi", "ati", "ict", "bfs", "wlp", "codoc", "hlp", "php")
"""Tasks whose documents are sections or parts of them."""


@pytest.fixture(params=["rqp", "qdm", "rdp", "acm", "ltm", *SECTIONS])
def task(request):
    return request.param


@pytest.fixture
def build_source(task, request):
    if task in ("rqp", "qdm", "rdp", "acm"):
        return request.getfixturevalue("linked_source")
    return request.getfixturevalue("orchard").source


def groups(source, task, **options):
    return [
        group
        for example in source.examples[task].ids.tolist()
        for group in draws(source, task, example, 8, **options)
    ]


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_title_and_lead(build_source, task, preset):
    """The same groups are drawn, with the same queries; the documents begin with the title."""
    source = build_source
    plain = groups(source, task, preset=preset)
    titled = groups(source, task, preset=preset, document_fields=["title", "lead"])
    assert any(plain)
    for before, after in zip(plain, titled, strict=True):
        assert (before is None) == (after is None)
        for old, new in zip(*(g.members if g else () for g in (before, after)), strict=True):
            page = new.document_origin.page
            assert (new.query, page) == (old.query, old.document_origin.page)
            if task in SECTIONS:
                assert new.document == old.document
            else:
                assert new.document == f"{source.title(page)} {source.lead(page)}"
                assert new.document.startswith(source.title(page))
                assert task == "ltm" or new.document == f"{source.title(page)} {old.document}"


@pytest.mark.parametrize(
    ("fields", "document"),
    [
        (None, "{lead}"),
        (["lead"], "{lead}"),
        (["title"], "{title}"),
        (["lead", "title"], "{lead} {title}"),
        (["text"], "{text}"),
        (["title", "text"], "{title} {text}"),
    ],
)
def test_fields_are_joined_by_a_space(orchard, fields, document):
    source, page = orchard.source, orchard.pages["Beta"]
    text = "\n".join(node.text for node in source.tree(page).nodes)
    parts = {"title": "Beta", "lead": source.lead(page), "text": text}
    assert text.startswith(parts["lead"]) and len(text) > len(parts["lead"])
    assert source.document(page, fields) == document.format(**parts)


def test_a_passage_is_cut_for_each_pair(build_source, task):
    """Its text is of the title and of all sections with their headings, by the pair's query."""
    source, seen = build_source, 0
    for group in groups(source, task, document_fields=["passage"]):
        for pair in group.members if group and task not in SECTIONS else ():
            nodes = source.tree(pair.document_origin.page).nodes
            page = "\n".join(text for node in nodes for text in (node.title, node.text) if text)
            query = group.positive.query if task == "rqp" else pair.query
            assert pair.document == query_passage(query, page)
            seen += 1
    assert seen or task in SECTIONS


def test_a_page_without_a_lead(orchard):
    source, page = orchard.source, orchard.pages["Headless"]
    assert source.document(page) == ""
    assert source.document(page, ["title", "lead"]) == "Headless"


def test_ltm_shows_the_whole_text_unless_it_is_told_otherwise(orchard):
    source = orchard.source
    whole, leads = groups(source, "ltm"), groups(source, "ltm", document_fields=["lead"])
    for long, short in zip(whole, leads, strict=True):
        assert [pair.query for pair in long.members] == [pair.query for pair in short.members]
        for pair, lead in zip(long.members, short.members, strict=True):
            page = pair.document_origin.page
            assert pair.document == source.document(page, ["text"])
            assert lead.document == source.lead(page)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (["titel"], "--document-fields .*titel.*one of title, lead, text, passage"),
        ([], "name each field once"),
        (["title", "passage"], "the passage with the title"),
        (["passage", "text"], "none that holds another"),
        (["title", "title"], "name each field once"),
        (["lead", "text"], "the text begins with the lead"),
    ],
)
def test_wrong_fields(fields, message):
    with pytest.raises(HarpError, match=message):
        DrawOptions(document_fields=fields)
