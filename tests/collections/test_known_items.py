"""Terms become queries, by hand: what is one query, what is left out, and how queries are split."""

import random
from collections import Counter, defaultdict
from dataclasses import replace

import pytest

from harp_plugin.collections.known_items.documents import DocumentIds
from harp_plugin.collections.known_items.queries import (
    NamedPage,
    Query,
    QueryOptions,
    Term,
    judged_queries,
)
from harp_plugin.collections.known_items.splits import (
    drawn_queries,
    few_queries_of_a_page,
    shared_by_splits,
    split_queries,
)
from harp_plugin.collections.known_items.texts import (
    is_address,
    is_natural,
    near_form,
    same_form,
    title_forms,
    without_qualifier,
)
from harp_plugin.errors import HarpError
from harp_plugin.sampling import stable_id


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("arrays [C++], multidimensional", "arrays, multidimensional"),
        ("files [MFC], closing", "files, closing"),
        ("C++ [C++]", "C++"),
        ("[MFC]", ""),
        ("Mercury (planet)", "Mercury"),
        ("f(x)", "f(x)"),
        ("  two\n words ", "two words"),
        ("a [b [c]] d", "a [b] d"),
    ],
)
def test_qualifiers(written, shown):
    assert without_qualifier(written) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("arrays, multidimensional", "C++", "C#", "run-time error", "I/O, binary files", "NATO"),
        *("DLLs, linking", "Newton’s laws", "20th century", "1960s", "3D", "World War 2", "U.S."),
        *('"quoted" text', "R&D", "Müller", "McDonald", "compiler error", "第二次世界大戦"),
    ],
)
def test_natural_texts(text):
    assert is_natural(text)


@pytest.mark.parametrize(
    "text",
    [
        *("C4996", "compiler error C2065", "_CrtDbgReport", "std::vector::begin", "CString"),
        *("std::vector", "size_t", "fileName", "stdio.h", "/clr", "-Wall option", "f(x)"),
        *("operator<<", "CWnd, GetProperty", "x64", "System.Text", "#define"),
    ],
)
def test_identifiers(text):
    assert not is_natural(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("docs/guide/start", True),
        ("index.html", True),
        ("/old", True),
        ("Input/output in C", False),
        ("St. Paul", False),
        ("Mr.", False),
    ],
)
def test_addresses(text, address):
    assert is_address(text) is address


@pytest.mark.parametrize(
    ("first", "second", "same", "near"),
    [
        ("Crab apple", "crab  Apple!", True, True),
        ("Crab apples", "the crab apple", False, True),
        ("arrays, multidimensional", "multidimensional array", False, True),
        ("cities", "city", False, True),
        ("Café", "cafe", False, True),
        ("glass", "glas", False, False),
        ("The Who", "Who", False, False),
        ("to be", "be to", False, True),
        ("apple", "pear", False, False),
        ("C", "C++", False, False),
        ("C# arrays", "arrays in C#", False, True),
    ],
)
def test_forms(first, second, same, near):
    assert (same_form(first) == same_form(second)) is same
    assert (near_form(first) == near_form(second)) is near


def test_forms_of_titles():
    assert title_forms("Thermo-dynamics") & title_forms("thermodynamics")
    assert title_forms("Data base") & title_forms("Databases")
    assert not title_forms("Data") & title_forms("Databases")


APPLE, PEAR, PLUM = 1, 2, 3
PAGES = {
    APPLE: NamedPage("Apple", title_forms("Apple"), frozenset({near_form("red fruit")})),
    PEAR: NamedPage("Pear", title_forms("Pear"), frozenset()),
    PLUM: NamedPage("Plum", title_forms("Plum"), frozenset()),
}


def queries(*terms, **options):
    """The text and the pages of each query, and the drops."""
    drops = Counter()
    made = judged_queries([Term(*term) for term in terms], PAGES, QueryOptions(**options), drops)
    return {(query.kind, query.text): query.pages for query in made}, dict(drops)


def index(text, page, count=1, seen=False):
    return "index", text, page, count, seen


def test_spellings_of_one_text_are_one_query():
    """Its text is the commonest one; its pages are those of all."""
    made, drops = queries(
        index("Green Fruit", PLUM),
        index("green fruit", PEAR, 2),
        ("link", "green, fruit", APPLE, 1, False),
    )
    assert made == {("index", "green fruit"): (APPLE, PEAR, PLUM)} and drops == {}


def test_the_first_kind_names_a_query():
    made, _ = queries(("link", "round", PEAR, 5, False), ("redirect", "Round", PEAR, 1, False))
    assert made == {("redirect", "round"): (PEAR,)}


def test_ids_depend_on_the_text_alone():
    drops = Counter()
    terms = [Term(*index("green fruit", PLUM)), Term(*index("sour", PEAR))]
    ids = [
        {query.text: query.id for query in judged_queries(some, PAGES, QueryOptions(), drops)}
        for some in (terms, terms[:1])
    ]
    assert ids[0].items() > ids[1].items()
    assert ids[1]["green fruit"] == f"index-{stable_id('query', 'green fruit'):016x}"


@pytest.mark.parametrize(
    ("term", "reason", "kept_by"),
    [
        (index("apples", APPLE), "index term that is the title of its page", "titles"),
        (
            index("Red fruits", APPLE),
            "index term that is an anchor text of its page in training",
            "anchors",
        ),
        (index("C4996", PEAR), "index term that is an identifier", "identifiers"),
        (index("[C++]", PEAR), "index term without a letter or digit", None),
        (
            ("redirect", "The Apples", APPLE, 1, False),
            "redirect that differs from the title by case, punctuation or plural only",
            None,
        ),
        (
            ("redirect", "old/path", PEAR, 1, False),
            "redirect that is an address, not a title",
            None,
        ),
        (
            ("link", "click here", PEAR, 1, False),
            "held-out anchor text that is functional, such as “here”",
            None,
        ),
        (
            ("link", "green", PEAR, 1, True),
            "held-out anchor text that leads to other pages in training",
            None,
        ),
    ],
)
def test_what_is_left_out(term, reason, kept_by):
    others = {name: "keep" for name in ("titles", "anchors", "identifiers") if name != kept_by}
    assert queries(term, **others) == ({}, {reason: 1})
    if kept_by:
        made, drops = queries(term, **{kept_by: "keep"})
        assert len(made) == 1 and drops == {}


def test_one_leaking_page_is_enough():
    assert queries(index("red fruit", PLUM), index("red fruit", APPLE))[0] == {}
    assert queries(index("red fruit", PLUM))[0] == {("index", "red fruit"): (PLUM,)}


def test_queries_of_many_pages():
    terms = [index("fruit of trees", page) for page in PAGES]
    assert queries(*terms, max_relevant=3)[0] == {("index", "fruit of trees"): (1, 2, 3)}
    assert queries(*terms, max_relevant=2) == ({}, {"index term of more than 2 pages": 1})


def random_queries(seed, count, pages, most):
    chosen = random.Random(seed)
    made = []
    for number in range(count):
        relevant = chosen.sample(range(pages), chosen.choice([1] * 8 + list(range(1, most + 1))))
        near = f"form {chosen.randrange(count * 5)}"
        kind = chosen.choice(["index", "link"])
        made.append(Query(f"{kind}-{number:04}", f"text {number}", near, tuple(sorted(relevant))))
    return made


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("most", [1, 4])
def test_splits(seed, most):
    given, drops = random_queries(seed, 400, 300, most), Counter()
    options = QueryOptions(seed=seed, train_fraction=0.25, dev_fraction=0.25)
    splits = split_queries(given, options, drops)
    kept = [query for queries in splits.values() for query in queries]
    assert sorted(kept, key=given.index) == [query for query in given if query in kept]
    assert len(kept) + drops.total() == 400
    places, forms = defaultdict(set), defaultdict(set)
    for split, queries in splits.items():
        assert queries == sorted(queries, key=lambda query: query.id)
        for query in queries:
            forms[query.near].add(split)
            for page in query.pages:
                places[page].add(split)
    assert all(len(found) == 1 for found in (*places.values(), *forms.values()))
    assert set(shared_by_splits(splits).values()) == {0}
    for split, share in (("train", 0.25), ("dev", 0.25), ("test", 0.5)):
        assert abs(len(splits[split]) / len(kept) - share) < 0.05
    assert split_queries(given[::-1], options, Counter()) == splits
    other = QueryOptions(seed=seed + 1, train_fraction=0.25, dev_fraction=0.25)
    assert split_queries(given, other, Counter()) != splits


def test_too_few_queries_of_train_are_those_of_dev():
    given = random_queries(0, 400, 300, 1)
    splits = split_queries(given, QueryOptions(), Counter())
    count = len(splits["train"])
    few = split_queries(given, QueryOptions(min_train_queries=count + 1), Counter())
    assert few["train"] == [] and few["test"] == splits["test"]
    both = splits["dev"] + splits["train"]
    assert few["dev"] == sorted(both, key=lambda query: query.id)
    assert split_queries(given, QueryOptions(min_train_queries=count), Counter()) == splits


def test_too_few_queries_of_test_are_all_queries():
    given = random_queries(0, 400, 300, 1)
    splits = split_queries(given, QueryOptions(), Counter())
    count = len(splits["test"])
    few = split_queries(given, QueryOptions(min_test_queries=count + 1), Counter())
    every = [query for queries in splits.values() for query in queries]
    assert few == {"train": [], "dev": [], "test": sorted(every, key=lambda query: query.id)}
    assert split_queries(given, QueryOptions(min_test_queries=count), Counter()) == splits


def test_a_page_of_very_many_queries_joins_no_split_to_another():
    """Each query shares a page with the next one: without a limit, all would be in one split."""
    chain = [Query(f"index-{n:03}", f"t{n}", f"t{n}", (n, n + 1)) for n in range(200)]
    drops = Counter()
    splits = split_queries(chain, QueryOptions(), drops)
    assert set(shared_by_splits(splits).values()) == {0}
    assert 0 < drops["query that would join very many pages in one split"] < 60
    assert len(splits["test"]) > 60 and splits["train"] and splits["dev"]


def test_pages_in_two_splits_are_counted():
    query = Query("index-1", "t", "t", (1,))
    assert shared_by_splits({"train": [query], "test": [query]}) == {
        "pages in several splits": 1,
        "near-duplicate queries across splits": 1,
    }


@pytest.mark.parametrize("seed", range(3))
def test_few_queries_of_a_page_are_drawn(seed):
    """No page has more, and of what is left out each query has a page that has as many."""
    given = sorted(random_queries(seed, 400, 40, 3), key=lambda query: query.id)
    drops: Counter[str] = Counter()
    options = QueryOptions(seed=seed, max_queries_per_page=4)
    drawn = few_queries_of_a_page(given, options, drops)
    counts = Counter((query.kind, page) for query in drawn for page in query.pages)
    assert set(counts.values()) <= {1, 2, 3, 4} and drawn == [q for q in given if q in drawn]
    for query in (query for query in given if query not in drawn):
        assert max(counts[query.kind, page] for page in query.pages) == 4
    assert drops == {"query beyond --max-queries-per-page": 400 - len(drawn)}
    assert few_queries_of_a_page(given, QueryOptions(), drops) == given


@pytest.mark.parametrize("seed", range(3))
def test_queries_that_are_not_drawn_teach_where_they_give_nothing_away(seed):
    given, drops = random_queries(seed, 400, 300, 4), Counter()
    splits = split_queries(given, QueryOptions(seed=seed), drops)
    drops.clear()
    options = QueryOptions(seed=seed, max_queries=10, max_train_queries=None)
    drawn = drawn_queries(splits, options, drops)
    assert [len(drawn[split]) for split in ("dev", "test")] == [20, 20]  # of two kinds
    tested = drawn["dev"] + drawn["test"]
    pages = {page for query in tested for page in query.pages}
    forms = {query.near for query in tested}
    kept = [query for queries in splits.values() for query in queries if query not in tested]
    apart = [q for q in kept if q.near not in forms and not pages & set(q.pages)]
    assert drawn["train"] == sorted(apart, key=lambda query: query.id)
    assert len(drawn["train"]) > 2 * len(splits["train"])
    assert set(shared_by_splits(drawn).values()) == {0}
    assert drops == {"query beyond --max-queries": len(kept) - len(apart)}
    few = replace(options, max_train_queries=30)
    assert len(drawn_queries(splits, few, drops)["train"]) == 60
    none = {**splits, "train": []}
    assert drawn_queries(none, options, drops) == {**drawn, "train": []}


def test_fewer_queries_nest_in_more():
    splits = {"dev": random_queries(1, 200, 200, 1), "test": []}
    drops = Counter()
    few, more = (
        {query.id for query in drawn_queries(splits, options, drops)["dev"]}
        for options in (QueryOptions(max_queries=n) for n in (10, 40))
    )
    assert few < more and (len(few), len(more)) == (20, 80)  # of two kinds
    assert drops == {"query beyond --max-queries": 180 + 120}


def test_document_ids():
    keys = {1: "A B", 2: "A_B", 3: "A\u2028B", 4: "C\td", 5: "é"}
    keys |= {6: "a/b c.md", 7: "d\u00a0e.html", 8: "Visual Basic .NET"}
    ids = DocumentIds(keys.values())
    assert [ids.of(*page) for page in keys.items()] == [
        *("A_B_1", "A_B", "A_B_3", "C_d", "é"),
        *("a/b%20c.md", "d%C2%A0e.html", "Visual_Basic_.NET"),
    ]
    assert ids.lengthened == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kinds": []}, "--kinds is empty: give one or more of index, redirect, link"),
        (
            {"kinds": ["links"]},
            r"--kinds is \['links'\]: it must be a list, each one of index, redirect, link, anchor",
        ),
        ({"max_queries": 0}, "--max-queries is 0: it must be at least 1"),
        ({"max_train_queries": 0}, "--max-train-queries is 0"),
        ({"max_relevant": 0}, "--max-relevant is 0"),
        ({"min_train_queries": -1}, "--min-train-queries is -1"),
        ({"min_test_queries": -1}, "--min-test-queries is -1"),
        ({"train_fraction": -0.1}, "--train-fraction is -0.1"),
        ({"dev_fraction": float("nan")}, "--dev-fraction is nan"),
        ({"train_fraction": 0.5, "dev_fraction": 0.5}, "leave no queries to test"),
        ({"titles": "no"}, "--titles is 'no': it must be one of keep, drop"),
    ],
)
def test_bad_values(options, said):
    with pytest.raises(HarpError, match=said):
        QueryOptions(**options)
