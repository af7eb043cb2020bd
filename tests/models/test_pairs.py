"""One rule of cutting, which training and ranking both follow."""

import numpy as np
import pytest
import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from harp_plugin.errors import HarpError
from harp_plugin.models.pairs import (
    PairEncoder,
    cut_sizes,
    joining_pairs,
    joins_pairs,
)
from harp_plugin.ranking import Scorer
from harp_plugin.tasks import Pair, PairGroup
from harp_plugin.training.data import Example, GroupCollator

LENGTHS = range(0, 26)
FEW_LENGTHS = (0, 1, 3, 7, 8, 9, 14, 15, 16, 25)
ROOMS = range(2, 24)


def words(count, first):
    """So many tokens of the tiny BERT's vocabulary, one a word."""
    vocabulary = ("link", "page", "query", "graph", "index")
    return " ".join(vocabulary[(first + place) % len(vocabulary)] for place in range(count))


@pytest.mark.parametrize("room", ROOMS)
def test_each_text_keeps_half_and_takes_what_the_other_leaves(room):
    """By brute force: tokens are taken off the longer text, one at a time."""
    for query in LENGTHS:
        for document in LENGTHS:
            left, right = query, document
            while left + right > room:
                if left > right or (left == right and left > room // 2):
                    left -= 1
                else:
                    right -= 1
            found = cut_sizes(np.array([query]), np.array([document]), room)
            kept = int(found[0][0]), int(found[1][0])
            assert sum(kept) == min(query + document, room)
            both_over = query > room // 2 and document > room // 2 and query + document > room
            assert kept == ((room // 2, room - room // 2) if both_over else (left, right))


@pytest.mark.parametrize("max_length", [9, 10, 20, 33])
def test_pairs_are_cut_as_the_tokenizer_cuts_the_longest_first(tokenizer, max_length):
    encoder = PairEncoder(tokenizer, max_length)
    odd = (max_length - encoder.template.length) % 2
    for query in FEW_LENGTHS:
        for document in FEW_LENGTHS:
            texts = words(query, 0), words(document, 2)
            ids = encoder.encode([texts[0]], [texts[1]]).packed().ids.tolist()
            both = [[text] for text in texts]
            [expected] = tokenizer(*both, truncation=True, max_length=max_length)["input_ids"]
            if not (odd and query > document):  # then the odd token is the query's there
                assert ids == expected
            assert len(ids) == len(expected)


@pytest.mark.parametrize("max_length", [9, 16, 21])
def test_training_and_ranking_read_the_same_tokens(tiny_bert, tokenizer, max_length, monkeypatch):
    """A model is asked what it was trained on, however long its texts are."""
    from harp_plugin.models.cross_encoder import TrainableCrossEncoder

    pairs = [Pair(words(q, 1), words(d, 3)) for q in (1, 6, 40) for d in (1, 5, 30)]
    model = TrainableCrossEncoder.load(str(tiny_bert))
    collate = GroupCollator(model.batches(tokenizer, max_length=max_length), ["rqp"])
    batch = collate([Example(0, 0, PairGroup("rqp", pairs[0], tuple(pairs[1:])))])
    trained = [row.tolist() for row in torch.split(batch["input_ids"], batch["lengths"].tolist())]

    read = []
    scorer = Scorer.from_model(model.scorer, tokenizer, max_length=max_length)
    forward = scorer._forward
    monkeypatch.setattr(
        forward, "outputs", lambda batch: read.append(batch) or np.zeros(len(batch.lengths))
    )
    scorer.score([pair.query for pair in pairs], [pair.document for pair in pairs])
    ranked = [
        ids.tolist() for batch in read for ids in np.split(batch.ids, np.cumsum(batch.lengths)[:-1])
    ]
    assert sorted(ranked) == sorted(trained)


def test_a_window_of_a_long_document_is_never_cut(tokenizer):
    for max_length in range(9, 30):
        encoder = PairEncoder(tokenizer, max_length)
        for query in FEW_LENGTHS:
            window = encoder.most_document_tokens(query)
            texts = [words(query, 0)], [words(window, 1)]
            start, stop = encoder.encode(*texts).document_bounds[0]
            assert stop - start == window >= (max_length - encoder.template.length) // 2


def test_a_limit_of_the_task_comes_before_the_rule(tokenizer):
    encoder = PairEncoder(tokenizer, 23)
    texts = [words(30, 0)] * 3, [words(30, 1), words(2, 1), words(30, 1)]
    tokens = encoder.encode(*texts, query_limits=[4, 4, None])
    sizes = [stop - start for start, stop in tokens.document_bounds.tolist()]
    assert sizes == [16, 2, 10]
    assert tokens.lengths.tolist() == [23, 9, 23]


def test_document_bounds_hold_the_documents_tokens(tokenizer):
    queries, documents = (
        ["link graph", "query " * 30],
        ["page index page", "a much longer one " * 9],
    )
    tokens = PairEncoder(tokenizer, 20).encode(queries, documents)
    packed = tokens.packed()
    for text, (start, stop) in zip(documents, tokens.document_bounds, strict=True):
        own = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert packed.ids[start:stop].tolist() == own[: stop - start]
        assert packed.types[start:stop].all()


@pytest.mark.parametrize("max_length", [9, 10, 20, 33])
def test_joined_pairs_are_the_tokens_of_tevatrons_string(tokenizer, max_length, tmp_path):
    """Query, two empty prefixes, an empty title and document, with a space before each."""
    joining_pairs(tokenizer).save_pretrained(tmp_path)
    joining = AutoTokenizer.from_pretrained(tmp_path)
    assert joins_pairs(joining) and not joins_pairs(tokenizer)
    assert joining.special_tokens_map == tokenizer.special_tokens_map
    encoder = PairEncoder(joining, max_length)
    pairs = [(words(q, 0), words(d, 2)) for q in FEW_LENGTHS for d in FEW_LENGTHS]
    tokens = encoder.encode(*zip(*pairs, strict=True))
    packed = tokens.packed()
    assert not packed.types.any()
    rows = np.split(packed.ids, np.cumsum(packed.lengths)[:-1])
    for row, (query, document), bounds in zip(rows, pairs, tokens.document_bounds, strict=True):
        expected = tokenizer(
            f" {query}   {document}".strip(), truncation=True, max_length=max_length
        )
        assert row.tolist() == expected["input_ids"]
        assert bounds[1] - bounds[0] == max(0, len(row) - 2 - len(query.split()))


def test_a_tokenizer_that_reads_spaces_cannot_join():
    bytes_of = ByteLevelBPETokenizer()
    bytes_of.train_from_iterator([words(9, 0)], special_tokens=["<s>", "</s>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_of._tokenizer)
    with pytest.raises(HarpError, match="reads the spaces between query and document"):
        joining_pairs(tokenizer)
