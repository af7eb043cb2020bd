"""One text at a time by the model's own ``output_attentions``, in loops."""

from functools import cache

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from harp_plugin.text import WORD


def spans_of(text, anchors):
    return [(text.index(anchor), text.index(anchor) + len(anchor)) for anchor in anchors]


@cache
def loaded(folder):
    model = AutoModel.from_pretrained(folder, attn_implementation="eager")
    return AutoTokenizer.from_pretrained(folder), model.eval().float()


def reference(folder, text, spans, unit="word", anchor_row="span", longest=66):
    """One text alone, eager attention in float32, and loops.

    Words, [CLS]'s and anchors' rows, and [CLS]'s weight of each anchor by the layer before.
    """
    tokenizer, model = loaded(folder)
    encoded = tokenizer(
        text, truncation=True, max_length=longest, return_offsets_mapping=True, return_tensors="pt"
    )
    offsets = encoded.pop("offset_mapping")[0].tolist()
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    real = [i for i, id in enumerate(encoded["input_ids"][0].tolist()) if id not in special]
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = {name: encoded[name] for name in names if name in encoded}
    if "Distil" in type(model).__name__ or "Modern" in type(model).__name__:
        inputs.pop("token_type_ids", None)
    with torch.no_grad():
        layers = model(**inputs, output_attentions=True).attentions
    before, attention = (
        sum(heads) / len(heads) for heads in (layer[0].double().numpy() for layer in layers[-2:])
    )

    def touch(token, start, end):
        return offsets[token][0] < end and offsets[token][1] > start

    if unit == "wordpiece":
        words = [tuple(offsets[i]) for i in real]
        owned = [[i] for i in real]
    else:
        end = max((offsets[i][1] for i in real), default=0)
        found = WORD.finditer(text)
        words = [m.span() for m in found if m.end() <= end]
        # A piece that covers two words, as an unknown one may, belongs to the first.
        first = {i: next((w for w in words if touch(i, *w)), None) for i in real}
        owned = [[i for i in real if first[i] == word] for word in words]

    def by_word(row):
        return [sum((row[i] for i in tokens), 0 * row[0]) for tokens in owned]

    rows = []
    for span in spans:
        tokens = [i for i in real if touch(i, *span)]
        if anchor_row == "first_piece":
            tokens = tokens[:1]
        row = sum(attention[i] for i in tokens) / len(tokens) if tokens else np.nan * attention[0]
        rows.append(by_word(row))
    of_words = list(zip(words, by_word(before[0]), strict=True))
    of_anchors = [sum(w for (a, b), w in of_words if a < end and b > start) for start, end in spans]
    return words, by_word(attention[0]), rows, of_anchors


def agree(weighed, expected):
    words, cls, rows, before = expected
    assert weighed.spans.tolist() == [list(word) for word in words]
    np.testing.assert_allclose(weighed.cls, cls, atol=1e-5, rtol=0)
    assert weighed.anchors.shape == (len(rows), len(words))
    np.testing.assert_allclose(weighed.anchors, np.reshape(rows, weighed.anchors.shape), atol=1e-5)
    inside = np.isfinite(weighed.anchors).all(axis=1)
    np.testing.assert_allclose(weighed.layer_before[inside], np.array(before)[inside], atol=1e-5)
