"""BM25 by PISA over ir_datasets collections."""

import json
import math
import os
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pyterrier as pt
import pytest

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions, evaluate
from harp_plugin.ranking.bm25 import Bm25
from harp_plugin.ranking.fielded import FieldedIndex

HARD_QUERIES = [
    "index",
    "",
    "   ",
    "nul \0 index",
    "half a pair \ud83d index",
    'a:b "c" (d) [e] {f} ^g~ h* i+ -j \\ / & | ! ? # @ $ % ; < > = `',
    "AND OR NOT index",
    "日本語 שלום 😀",
    "index\tindex\nindex",
    "don't U.S.A. C++",
    "index " * 5000,
    "x" * 100000,
]


@pytest.fixture
def bm25(dataset, tmp_path):
    return Bm25(
        JudgedDataset(dataset), tmp_path / "index", k1=0.9, b=0.4, num_results=10, quiet=True
    )


def anew(bm25):
    """The same, as a later process has it."""
    return Bm25(bm25.collection, bm25.folder, k1=0.9, b=0.4, num_results=10, quiet=True)


def shown(folder):
    return [path for path in folder.iterdir() if not path.name.startswith(".")]


def topics(*queries: str) -> pd.DataFrame:
    qids = [str(number) for number in range(len(queries))]
    return pd.DataFrame({"qid": qids, "query": queries}, dtype=object)


def test_queries_of_any_characters_survive(bm25):
    found = bm25(topics(*HARD_QUERIES))
    by_query = {qid: set(rows["docno"]) for qid, rows in found.groupby("qid")}
    about_indexes = {str(n) for n, query in enumerate(HARD_QUERIES) if "index" in query}
    assert {qid for qid, docnos in by_query.items() if {"d1", "d5"} <= docnos} == about_indexes
    for row in found.itertuples():
        assert row.query == HARD_QUERIES[int(row.qid)]


def test_a_dataset_of_pyterrier_is_one_too(bm25, dataset, tmp_path):
    expected = bm25(topics("index"))
    for same in (pt.get_dataset(f"irds:{dataset}"), f"irds:{dataset}"):
        found = Bm25(same, tmp_path / "index", num_results=10)(topics("index"))
        assert found["docno"].tolist() == expected["docno"].tolist()
    fielded = FieldedIndex(pt.get_dataset(f"irds:{dataset}"), tmp_path / "fielded")
    assert fielded == FieldedIndex(dataset, tmp_path / "fielded")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_results": -1}, "num_results is -1: it must be at least 1"),
        ({"num_results": 2.5}, "num_results is 2.5: it must be a whole number"),
        ({"k1": -1.0}, "k1 is -1"),
        ({"b": 2.0}, "b is 2"),
    ],
)
def test_numbers_that_make_no_sense(tmp_path, arguments, message):
    with pytest.raises(HarpError, match=message):
        Bm25("vaswani", tmp_path, **arguments)


def test_a_cutoff_retrieves_no_more_than_it_keeps(bm25):
    fused = (bm25 % 2).compile()
    assert (type(fused), fused.num_results) == (Bm25, 2)
    pd.testing.assert_frame_equal(fused(topics("index")), (bm25 % 2)(topics("index")))


def test_threads_leave_the_screen_as_it_was(bm25, capfd):
    """One thread begins to search while another one does, and ends after it."""
    bm25.make()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: bm25(topics("index")), range(40)))
    os.write(1, b"to be seen")
    os.write(2, b"and this")
    assert tuple(capfd.readouterr()) == ("to be seen", "and this")


def test_accents_are_folded_on_both_sides(bm25):
    found = bm25(topics("Sparck", "Spärck", "cafe zurich naive", "CAFÉ"))
    assert list(found[found["rank"] == 0]["docno"]) == ["d2", "d2", "d4", "d4"]


def test_results_are_a_ranked_frame(bm25):
    given = topics("index terms", "hyperlinks").assign(extra=["a", "b"])
    found = bm25(given)
    assert set(found.columns) == {"qid", "query", "extra", "docno", "score", "rank"}
    for _, rows in found.groupby("qid"):
        assert list(rows["rank"]) == list(range(len(rows)))
        assert rows["score"].is_monotonic_decreasing
    assert len(bm25(given.head(0))) == 0


def test_an_index_is_built_once(bm25, dataset):
    first = bm25(topics("index"))
    built = shown(bm25.folder)
    stamp = {file: file.stat().st_mtime_ns for file in built[0].iterdir()}
    pd.testing.assert_frame_equal(anew(bm25)(topics("index")), first)
    assert shown(bm25.folder) == built
    assert all(file.stat().st_mtime_ns == time for file, time in stamp.items())


def test_changed_attributes_count(bm25):
    """As `pt.GridSearch` changes them."""
    queries = topics("index terms", "hyperlinks of pages")
    before = bm25(queries)
    for name, value in {"k1": 3.0, "b": 0.9, "num_results": 1}.items():
        bm25.set_parameter(name, value)
        fresh = Bm25(
            bm25.collection, bm25.folder, k1=bm25.k1, b=bm25.b, num_results=bm25.num_results
        )
        after = bm25(queries)
        pd.testing.assert_frame_equal(after, fresh(queries))
        assert not after.equals(before)
        before = after


def test_other_fields_are_another_ranking(tmp_path):
    title, text, again = (
        Bm25(JudgedDataset("harp-encyclopedia", [name]), tmp_path)
        for name in ("title", "text", "title")
    )
    assert title == again != text


def test_nothing_is_printed(bm25, capfd):
    bm25(topics("index"))
    assert capfd.readouterr() == ("", "")


def test_what_is_left_of_a_killed_build_is_no_index(bm25):
    expected = bm25(topics("index"))
    (index,) = shown(bm25.folder)
    half_built = index.with_name(f"{index.name}.99999.harp-tmp")
    index.rename(half_built)
    (half_built / "fwd.termlex").write_bytes(b"half")
    pd.testing.assert_frame_equal(anew(bm25)(topics("index")), expected)
    assert shown(bm25.folder) == [index]


def test_a_damaged_index_is_made_again(bm25, caplog):
    expected = bm25(topics("index"))
    (bm25.artifact.path / "inv.docs").write_bytes(b"")
    pd.testing.assert_frame_equal(anew(bm25)(topics("index")), expected)
    assert "inv.docs has changed since it was written" in caplog.text


def test_what_harp_did_not_write_stays(bm25):
    bm25.artifact.path.mkdir(parents=True)
    (bm25.artifact.path / "thesis.txt").write_text("mine")
    with pytest.raises(HarpError, match="files that harp did not write"):
        bm25(topics("index"))
    assert (bm25.artifact.path / "thesis.txt").read_text() == "mine"


def test_a_document_that_cannot_be_indexed_stops_the_build(make_dataset, tmp_path):
    spaced = JudgedDataset(make_dataset({"d1": "a word", "d 2": "a word", "d3": "a word"}))
    bm25 = Bm25(spaced, tmp_path / "index", k1=0.9, b=0.4, num_results=10, quiet=True)
    with pytest.raises(HarpError, match="docno 'd 2' of test-"):
        bm25(topics("word"))
    assert shown(tmp_path / "index") == []


def test_no_documents_at_all(make_dataset, tmp_path):
    empty = JudgedDataset(make_dataset({}))
    bm25 = Bm25(empty, tmp_path / "index", k1=0.9, b=0.4, num_results=10, quiet=True)
    with pytest.raises(HarpError, match="has no documents"):
        bm25(topics("word"))


def test_words_of_other_scripts_are_found(make_dataset, tmp_path):
    """Scores of a loop over the documents, whose words are made by hand."""
    texts = {
        "ru": ("Поисковые системы ищут документы", "поисков систем ищут документ"),
        "ru2": ("Документ и система, система", "документ и систем систем"),
        "ja": ("全文検索。検索", "全文 文検 検索 検索"),
        "en": ("search engines", "search engin"),
        "none": ("", ""),
    }
    collection = JudgedDataset(make_dataset({docno: text for docno, (text, _) in texts.items()}))
    queries = {"системы": ["систем"], "ДОКУМЕНТОВ ищут": ["документ", "ищут"], "検索": ["検索"]}
    bm25 = Bm25(collection, tmp_path / "index", num_results=10)
    found = bm25(topics(*queries))
    words = {docno: stems.split() for docno, (_, stems) in texts.items()}
    mean = sum(map(len, words.values())) / len(words)
    for query, of_query in queries.items():
        expected = {}
        for docno, of_document in words.items():
            for term in of_query:
                df = sum(term in others for others in words.values())
                tf = of_document.count(term)
                damping = 0.9 * (1 - 0.4 + 0.4 * len(of_document) / mean)
                weight = max(1e-6, math.log((len(words) - df + 0.5) / (df + 0.5)))
                if tf:
                    gain = weight * 1.9 * tf / (tf + damping)
                    expected[docno] = expected.get(docno, 0) + gain
        rows = found[found["query"] == query]
        assert dict(zip(rows["docno"], rows["score"], strict=True)) == pytest.approx(
            expected, rel=0.02
        )


def test_no_document_with_a_word(make_dataset, tmp_path):
    """PISA itself would end the process."""
    collection = JudgedDataset(make_dataset({"d1": "→ …", "d2": "😀", "d3": ""}))
    bm25 = Bm25(collection, tmp_path / "index", k1=0.9, b=0.4, num_results=10, quiet=True)
    with pytest.raises(HarpError, match="has a letter or digit"):
        bm25(topics("word"))
    assert shown(tmp_path / "index") == []


@pytest.mark.integration
def test_bm25_on_vaswani_is_near_published_figures(irds_home, tmp_path):
    """PyTerrier's notebooks give Terrier's BM25 (k1 = 1.2, b = 0.75) AP 0.2965, nDCG 0.6212."""
    results = evaluate(
        EvaluationOptions(
            dataset="vaswani",
            depth=1000,
            bm25_k1=1.2,
            bm25_b=0.75,
            measures=["AP", "nDCG"],
            output_dir=str(tmp_path),
            quiet=True,
        )
    )
    assert results.means["BM25"]["AP"] == pytest.approx(0.2965, abs=0.005)
    assert results.means["BM25"]["nDCG"] == pytest.approx(0.6212, abs=0.006)


def test_a_collection_that_is_written_again_is_indexed_again(tmp_path):
    file = tmp_path / "documents.jsonl"
    bm25 = Bm25(f"harp:{tmp_path}", tmp_path / "index", num_results=3)
    for docno, text in {"d1": "some words", "d2": "a zebra and a horse"}.items():
        page = {"doc_id": docno, "title": "", "text": text, "anchor_text": ""}
        file.write_text(f"{json.dumps(page)}\n")
        assert bm25.search(text)["docno"].tolist() == [docno]


@pytest.mark.parametrize("query", [None, float("nan"), 3])
def test_a_query_that_is_no_text_is_named(bm25, query):
    with pytest.raises(HarpError, match="no text in column 'query' of qid 1"):
        bm25.transform(topics("index", query))


def test_a_column_that_is_there_twice_is_named(bm25):
    frame = topics("index", "engine", "words")
    with pytest.raises(HarpError, match="'query' is there twice"):
        bm25.transform(pd.concat([frame, frame[["query"]]], axis=1))


def test_a_qid_that_is_there_twice_is_named(bm25):
    queries = pd.DataFrame({"qid": ["q", "q"], "query": ["apple", "pear"]})
    with pytest.raises(HarpError, match="row 1 has the qid 'q' of a row before it: give each"):
        bm25.transform(queries)
