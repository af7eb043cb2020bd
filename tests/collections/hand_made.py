"""A small test collection, written by hand as a user could."""

import json

DOCUMENTS = [
    ("Apple", "Apple", "A fruit that grows on trees.", "apples\nthe apple"),
    ("Crab_apple", "Crab apple", "A small, sour apple.\nIt is green\u2028or red.", "crab"),
    ("Äpfel", "Äpfel", "German for apples.", ""),
    ("Ant", "Ant", "An insect that eats apples.", "ants\nants"),
]
SPLITS = {
    "train": ({"index-1": "small fruit"}, [("index-1", "Crab_apple")]),
    "dev": ({"link-1": "insects"}, [("link-1", "Ant")]),
    "test": (
        {"redirect-1": "sour fruit", "index-2": "German words"},
        [("redirect-1", "Crab_apple"), ("redirect-1", "Apple"), ("index-2", "Äpfel")],
    ),
}


def line(document):
    row = dict(zip(("doc_id", "title", "text", "anchor_text"), document, strict=True))
    return json.dumps(row, ensure_ascii=False) + "\n"


def write_collection(folder, documents=DOCUMENTS):
    """Write the folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "documents.jsonl").write_text("".join(map(line, documents)), "utf-8", newline="\n")
    for split, (queries, qrels) in SPLITS.items():
        (folder / split).mkdir(exist_ok=True)
        rows = "".join(f"{id}\t{text}\n" for id, text in queries.items())
        (folder / split / "queries.tsv").write_text(rows, "utf-8")
        rows = "".join(f"{query} 0 {document} 1\n" for query, document in qrels)
        (folder / split / "qrels.txt").write_text(rows, "utf-8")
    return folder
