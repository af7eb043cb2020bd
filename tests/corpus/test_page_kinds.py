"""Disambiguation pages and lists: by hand, and in real dumps against a search of their XML."""

import bz2
import re

import pytest
from builds import read_table
from dumps import write_dump
from reading import read

from harp_plugin.corpus.boilerplate import kind_of_page, kind_of_wikitext
from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.text import title_anchors


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        *(
            (title, "disambiguation")
            for title in (
                *(
                    "Saturn (disambiguation)",
                    "Mercury (Disambiguation)",
                    "Saturn (Begriffsklärung)",
                ),
                *("Paris (homonymie)", "Mars (olika betydelser)", "Mars (doorverwijspagina)"),
                *("Marte (desambiguación)", "Марс (значения)", "Marte (disambigua)"),
                *("Mars (ujednoznacznienie)", "火星（消歧义）", "Mars (pagklaro)", "مارس (توضيح)"),
            )
        ),
        *(
            (title, "list")
            for title in (
                *("List of birds", "Lists of people", "Index of physics articles"),
                *("Outline of chess", "Liste der Länder", "Listen von Vögeln"),
                *("Liste des pays", "Liste d'oiseaux", "Liste d’oiseaux", "Lista över länder"),
                *("Lijst van landen", "Lista de países", "Anexo:Países", "Список стран"),
                *("Lista di uccelli", "Lista delle città", "قائمة الدول", "国家列表", "国の一覧"),
            )
        ),
        *(
            (title, None)
            for title in (
                *("Saturn", "Saturn (planet)", "Disambiguation", "List", "Liste Pilz", "Lists"),
                *("Liste noire", "Lista negra", "Список Шиндлера", "Schindler's List", "一覧"),
                *("A list of birds", "Index of articles on chess", "(disambiguation) of words", ""),
            )
        ),
    ],
)
def test_titles(title, kind):
    assert kind_of_page(title) == kind


@pytest.mark.parametrize(
    ("title", "language", "kind"),
    [
        ("Liste deutscher Städte", "de", "list"),
        ("Liste deutscher Städte", "en", None),
        ("Liste Pilz", "de", None),
        ("Liste noire", "fr", None),
        ("Lista państw świata", "pl", "list"),
        ("Lista Schindlera", "pl", None),
        ("List of birds", "de", "list"),
    ],
)
def test_titles_in_one_language(title, language, kind):
    assert kind_of_page(title, language) == kind


def test_titles_and_texts_together():
    assert kind_of_page("Smith", text_kind="list") == "list"
    assert kind_of_page("Smith (disambiguation)", text_kind="list") == "disambiguation"
    assert kind_of_page("List of Smiths", text_kind="disambiguation") == "disambiguation"


@pytest.mark.parametrize(
    ("wikitext", "kind"),
    [
        *(
            (wikitext, "disambiguation")
            for wikitext in (
                *("{{disambig}}", "x\n{{ Disambig |surname}}", "{{Hndis|Smith}}", "{{dab}}"),
                *(
                    "{{Human_name_disambiguation}}",
                    "{{\nhndis\n}}",
                    "__DISAMBIG__",
                    "{{homonymie}}",
                ),
                *(
                    "{{Begriffsklärung}}",
                    "{{homonymie}}",
                    "{{неоднозначность|город}}",
                    "{{Disambigua}}",
                ),
                *("{{surname}} {{geodis}}", "{{disambig|<!-- x -->}}", "{{aimai}}", "{{giklaro}}"),
            )
        ),
        *((wikitext, "list") for wikitext in ("{{surname}}", "{{Given name|x}}", "{{SIA|fish}}")),
        *(
            (wikitext, None)
            for wikitext in (
                *(
                    "",
                    "{{disambiguation needed}}",
                    "{{Voir homonymes|x}}",
                    "{{значения}}",
                    "{{{dab}}}",
                ),
                *("<!-- {{disambig}} -->", "<nowiki>{{disambig}} __DISAMBIG__</nowiki>"),
                *("{{infobox surname}}", "{{Nota disambigua}}", "{{Begriffsklärungshinweis}}"),
                *("disambig", "{{cite|title={{x}}|disambig}}", "{{" * 5_000, "{{ " * 5_000),
                *("<nowiki>" * 200_000 + "{{disambig}}", "<!--" * 200_000 + "{{disambig}}"),
            )
        ),
    ],
)
def test_wikitext(wikitext, kind):
    assert kind_of_wikitext(wikitext) == kind


def test_columns_of_pages(tmp_path):
    texts = {
        "Mercury": "Two [[Mercury (planet)|planets]]. {{disambig}}",
        "Mercury (planet)": "A planet.",
        "List of planets": "All\n== More ==\nof them are here.",
    }
    source = write_dump(tmp_path / "d.xml", texts)
    build_corpus(tmp_path, CorpusOptions(), sources=[source], quiet=True)
    rows = {r["key"]: r for r in read_table(tmp_path / "corpus" / "pages").to_pylist()}
    assert {key: (row["kind"], row["lead_words"]) for key, row in rows.items()} == {
        "Mercury": ("disambiguation", 2),
        "Mercury (planet)": (None, 2),
        "List of planets": ("list", 1),
    }
    assert rows["Mercury (planet)"]["title_anchors"] == ["mercury (planet", "mercury"]
    assert rows["Mercury"]["title_anchors"] == ["mercury"]


@pytest.mark.parametrize(
    ("title", "texts"),
    [
        ("Ant", ["ant"]),
        ("Mercury (planet)", ["mercury (planet", "mercury"]),
        ("Mercury（planet）", ["mercury(planet", "mercury"]),
        ("Sheffield (song) (remix)", ["sheffield (song) (remix", "sheffield (song"]),
        ("(What's the Story) Morning Glory?", ["what's the story) morning glory"]),
        ("(500)", ["500"]),
        ("Yahoo!", ["yahoo"]),
    ],
)
def test_title_anchors(title, texts):
    assert title_anchors(title) == texts


PLAIN = re.compile(
    r"\{\{\s*(?:[a-z]*dis|(?:[^|{}]* )?disambig(?:uation)?)\s*[|}\n]|\(disambiguation\)</title>"
    r"|__DISAMBIG__",
    re.IGNORECASE,
)


@pytest.mark.parametrize(
    ("name", "disambiguation", "lists"),
    [
        ("simplewiki-20100814-999", 1, 0),
        ("enwiki-p10p30302-shortened", 8, 2),
        ("ltgwiki-pages-articles", 0, 0),  # its language is none of the largest
    ],
)
@pytest.mark.slow
def test_real_dumps(shared_data, name, disambiguation, lists):
    source = shared_data / "wiki" / f"{name}.xml.bz2"
    pages = [item for item in read(source) if hasattr(item, "kind")]
    kinds = {page.title: kind_of_page(page.title, page.language, page.kind) for page in pages}
    elements = bz2.decompress(source.read_bytes()).decode().split("<page>")[1:]
    articles = [e for e in elements if "<ns>0</ns>" in e and "<redirect" not in e]
    titles = {re.search("<title>(.*?)</title>", e)[1]: e for e in articles}
    expected = {title for title, element in titles.items() if PLAIN.search(element)}
    assert {title for title, kind in kinds.items() if kind == "disambiguation"} == expected
    assert {title for title, kind in kinds.items() if kind == "list"} == {
        title for title in titles if title.startswith("List of ")
    }
    assert (len(expected), list(kinds.values()).count("list")) == (disambiguation, lists)
