"""Which of two labels is the relevant one, and judgments that contradict each other."""

import pandas as pd
import pytest
from transformers import BertConfig

from harp_plugin.errors import HarpError
from harp_plugin.evaluation.results import measure_runs, parse_measures
from harp_plugin.models.labels import relevant_label

QRELS = pd.DataFrame([("q", "b", 1)], columns=["qid", "docno", "label"])


@pytest.mark.parametrize(
    ("first", "second", "relevant"),
    [
        ("LABEL_0", "LABEL_1", 1),
        ("relevant", "irrelevant", 0),
        ("Not relevant", "Relevant", 1),
        ("yes", "no", 0),
        ("non-relevant", "LABEL_1", 1),
        ("LABEL_0", "false", 0),
        ("positive", "negative", 0),
    ],
)
def test_the_relevant_label(first, second, relevant):
    assert relevant_label(BertConfig(id2label={0: first, 1: second})) == relevant


@pytest.mark.parametrize("names", [("relevant", "true"), ("no", "irrelevant")])
def test_labels_that_contradict_each_other(names):
    with pytest.raises(HarpError, match="do not say which one is relevant"):
        relevant_label(BertConfig(id2label=dict(enumerate(names))))


@pytest.mark.parametrize(("docnos", "value"), [("abc", 1 / 2), ("bac", 1.0), ("acb", 1 / 3)])
def test_ties_are_broken_alike_by_all_measures(docnos, value):
    run = pd.DataFrame({"qid": "q", "docno": list(docnos), "score": 1.0, "rank": range(3)})
    topics = pd.DataFrame({"qid": ["q"], "query": ["x"]})
    values = measure_runs({"r": run}, topics, QRELS, parse_measures(["RR", "AP", "RR@10"]))["r"]
    assert [by_query["q"] for by_query in values.values()] == pytest.approx([value] * 3)


def test_contradicting_judgments_are_named():
    double = pd.concat([QRELS, QRELS, QRELS.assign(label=0)])
    with pytest.raises(HarpError, match=r"^query q: document b is judged 1 and 0"):
        measure_runs({}, pd.DataFrame({"qid": ["q"]}), double, parse_measures(["RR"]))
    measure_runs(
        {}, pd.DataFrame({"qid": ["q"]}), pd.concat([QRELS, QRELS]), parse_measures(["RR"])
    )
