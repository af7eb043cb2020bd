"""Where the texts of pairs come from, checked against the tables of the builds."""

from __future__ import annotations

import pickle

import pytest
from builds import read_table
from orchard_wiki import draws

from harp_plugin.tasks import (
    DocumentOrigin,
    DrawOptions,
    Pair,
    PairGroup,
    PreTrainingData,
    QueryOrigin,
    SampledWord,
)
from harp_plugin.text import words

HARP = ["rqp", "qdm", "rdp", "acm"]
VARIANTS = [{"preset": "default"}, {"preset": "paper"}]


def rows(directory, name):
    return {row["id"]: row for row in read_table(directory / name).to_pylist()}


@pytest.fixture(scope="module")
def tables(linked_build):
    names = ("corpus/pages", "corpus/sentences", "graph/anchors")
    return [rows(linked_build.directory, name) for name in names]


def drawn_pairs(source, task, options, count=15):
    for example in source.examples[task].ids.tolist():
        for group in draws(source, task, example, count, **options):
            if group is not None:
                yield from ((example, group, pair) for pair in group.members)


@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: options["preset"])
@pytest.mark.parametrize("task", HARP)
def test_documents_name_their_page(linked_source, tables, task, options):
    pages, _, _ = tables
    for _, _, pair in drawn_pairs(linked_source, task, options):
        assert pair.document_origin == DocumentOrigin(page=pair.document_origin.page)
        assert pages[pair.document_origin.page]["lead"] == pair.document


@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: options["preset"])
@pytest.mark.parametrize("task", ["rqp", "qdm", "acm"])
def test_queries_name_their_anchor_and_their_words(linked_source, tables, task, options):
    """The anchor's text and the sampled words are the query, and each word is in its text."""
    pages, sentences, anchors = tables
    of_page, from_sentence, is_default = 0, 0, options["preset"] == "default"
    for example, group, pair in drawn_pairs(linked_source, task, options):
        origin = pair.query_origin
        sampled = [drawn.word for drawn in origin.sampled]
        assert sampled and all((w.anchor is None) != (w.page is None) for w in origin.sampled)
        if pair is group.positive or task != "rqp" or is_default:
            anchor = anchors[origin.anchor]
            assert (origin.page, origin.sentence) == (anchor["source"], anchor["sentence"])
            if task == "rqp" and pair is not group.positive:
                assert anchor["page"] != pair.document_origin.page
            elif task == "qdm" and is_default:
                assert anchor["text_id"] == anchors[example]["text_id"]
            else:
                assert example in (origin.anchor, origin.sentence)
            text = sentences[origin.sentence]["text"][anchor["start"] : anchor["end"]]
            text = text.lower() if is_default else text
            assert pair.query == " ".join([text, *sampled])
        else:
            assert origin.anchor is origin.sentence is None
            assert sampled == pair.query.split()
        for drawn in origin.sampled:
            if drawn.page is not None:
                text, of_page = pages[drawn.page]["lead"], of_page + 1
            else:
                sentence = anchors[drawn.anchor]["sentence"]
                text, from_sentence = sentences[sentence]["text"], from_sentence + 1
            assert drawn.word in words(text.lower())
    assert bool(of_page) == (task == "acm" or (task == "rqp" and not is_default))
    assert bool(from_sentence) == (task != "acm")


def test_rdp_names_its_sentence(linked_source, tables):
    _, sentences, _ = tables
    for example, _, pair in drawn_pairs(linked_source, "rdp", {}):
        assert pair.query_origin == QueryOrigin(page=99, sentence=example)
        assert sentences[example]["text"] == pair.query


def test_mirrored_words_of_each_kind(source, hand_build):
    """Words that the lead holds become words of the lead; others, words of another sentence."""
    example, page = hand_build.anchors[0, 0], hand_build.pages["APPLE"]
    lead = words(hand_build.lead("APPLE").lower())
    for group in filter(None, draws(source, "rqp", example, 100, rqp_negative_words="mirrored")):
        negative = group.negatives[0]
        pairs = zip(words(group.positive.query.lower()), negative.query_origin.sampled, strict=True)
        for replaced, drawn in pairs:
            if replaced in lead:
                assert (drawn.page, drawn.anchor) == (page, None) and drawn.word in lead
            else:
                assert drawn.page is None and drawn.anchor in source.examples["rqp"]
                assert drawn.word not in lead


@pytest.mark.parametrize(
    "task", ["prop", "srr", "rwi", "ati", "ltm", "ict", "bfs", "wlp", "codoc", "hlp", "php"]
)
@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: options["preset"])
def test_sections_name_their_page_and_their_place(orchard, task, options):
    source = orchard.source
    for example, group, pair in drawn_pairs(source, task, options):
        page, place = pair.document_origin.page, pair.document_origin.place
        query_page = pair.query_origin.page
        assert pair.query_origin == QueryOrigin(page=query_page)
        table = source.examples[task]
        own = table.get(example, "page") if task in ("srr", "rwi", "ict") else example
        assert query_page == own
        if task in ("prop", "ltm"):
            assert place is None
            assert pair.document.startswith(source.lead(page))
        else:
            text = source.tree(page).nodes[place].text
            if task == "ict":
                assert set(words(pair.document)) <= set(words(text)) and pair.document != text
            else:
                assert pair.document == text
        if task in ("prop", "srr", "rwi", "ati"):
            assert page == own
        elif task in ("ict", "bfs", "codoc"):
            assert (page == own) == (pair is group.positive)
        else:
            assert page != own


def test_of_sections_with_one_text_the_first_that_may_be_drawn_is_named(orchard):
    """Twin's two sections have the same text."""
    twin = orchard.pages["Twin"]
    (group,) = draws(orchard.source, "ati", twin, 1)
    assert [pair.document_origin.place for pair in group.members] == [0, 1]


def test_pairs_are_their_texts():
    plain = Pair("q", "d")
    traced = Pair("q", "d", QueryOrigin(page=1), DocumentOrigin(page=2))
    assert plain == traced and hash(plain) == hash(traced) and len({plain, traced}) == 1
    assert PairGroup("x", plain, (traced,)) == PairGroup("x", traced, (plain,))
    assert Pair("q", "e") != plain


def test_origins_survive_a_process(source, hand_build):
    """As training's workers hand groups over."""
    (group,) = draws(source, "qdm", hand_build.anchors[0, 0], 1)
    copy = pickle.loads(pickle.dumps(group))
    for pair, other in zip(group.members, copy.members, strict=True):
        assert pair.query_origin == other.query_origin
        assert pair.document_origin == other.document_origin
    assert isinstance(copy.positive.query_origin.sampled[0], SampledWord)


def test_drawn_groups_name_their_example_and_those_before_it(hand_build, tied_build):
    """Examples that give nothing are skipped, and the group is the one that `group` gives."""
    data = PreTrainingData(hand_build.directory, {"rdp": 1}, draw=DrawOptions(rdp_agreement=False))
    known, skipped = set(data.source.examples["rdp"].ids.tolist()), set()
    for index in range(len(data)):
        drawn = data.drawn(0, index)
        assert drawn.group == data.group(0, index)
        assert drawn.example == drawn.group.positive.query_origin.sentence
        skipped.update(drawn.skipped)
    assert skipped == {hand_build.sentence(5), hand_build.sentence(7)} < known
    assert PreTrainingData(tied_build.directory, {"rdp": 1}).drawn(0, 0) is None
