import dataclasses

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from harp_plugin.errors import HarpError
from harp_plugin.models.cross_encoder import CrossEncoderBatches
from harp_plugin.models.masking import TokenMasker
from harp_plugin.models.pairs import PairEncoder
from harp_plugin.models.pooling import padded_inputs
from harp_plugin.models.trainable import GroupKeys
from harp_plugin.tasks import Pair, PairGroup
from harp_plugin.training.data import (
    EpochSampler,
    Example,
    GroupCollator,
    GroupDataset,
    query_limits,
)

TASKS = ("rqp", "qdm")


def collator(tokenizer, mask=True, max_length=512, max_query_length=None, new_masks=True):
    masker = TokenMasker.from_tokenizer(tokenizer, seed=5) if mask else None
    batches = CrossEncoderBatches(PairEncoder(tokenizer, max_length), True, masker)
    limits = query_limits(max_query_length, TASKS, max_length)
    return GroupCollator(batches, TASKS, query_limits=limits, new_masks=new_masks)


def rows(batch):
    """The token ids of each pair."""
    return [ids.tolist() for ids in torch.split(batch["input_ids"], batch["lengths"].tolist())]


def same(first, second):
    if isinstance(first, GroupKeys):
        return all(map(np.array_equal, dataclasses.astuple(first), dataclasses.astuple(second)))
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second)
    return torch.equal(first, second)


def batches(groups, tokenizer, epoch=0, workers=0):
    sampler = EpochSampler(len(groups), seed=3)
    sampler.set_epoch(epoch)
    return list(
        DataLoader(
            GroupDataset(groups),
            batch_size=5,
            sampler=sampler,
            collate_fn=collator(tokenizer),
            num_workers=workers,
        )
    )


def equal(first, second):
    return len(first) == len(second) and all(
        a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
        for a, b in zip(first, second, strict=True)
    )


def test_number_says_epoch_and_index(groups):
    dataset = GroupDataset(groups)
    example = dataset[2 * len(groups) + 5]
    assert (example.epoch, example.index) == (2, 5)
    assert example.group == groups.group(2, 5)


def test_sampler_gives_each_group_once_in_each_epoch():
    sampler = EpochSampler(50, seed=1)
    first = list(sampler)
    assert sorted(first) == list(range(50)) and first != sorted(first)
    assert list(sampler) == first
    sampler.set_epoch(1)
    second = list(sampler)
    assert sorted(second) == list(range(50, 100))
    assert [number - 50 for number in second] != first
    assert list(EpochSampler(50, seed=2)) != first


def test_workers_give_the_same_batches(groups, tokenizer):
    alone = batches(groups, tokenizer, epoch=1)
    assert equal(alone, batches(groups, tokenizer, epoch=1, workers=2))
    assert not equal(alone, batches(groups, tokenizer, epoch=0))


def test_pairs_read_as_the_tokenizer_reads_them(groups, tokenizer):
    examples = [Example(0, index, groups.group(0, index)) for index in range(4)]
    batch = collator(tokenizer, mask=False)(examples)
    members = [pair for example in examples for pair in example.group.members]
    texts = [pair.query for pair in members], [pair.document for pair in members]
    expected = tokenizer(*texts, padding=True, return_tensors="np")
    packed = (batch[name] for name in ("input_ids", "lengths", "token_type_ids"))
    inputs, _ = padded_inputs(*packed, tokenizer.pad_token_id)
    for name, values in inputs.items():
        np.testing.assert_array_equal(values, expected[name])
    assert batch["group_pairs"].tolist() == [[0, 1, 2], [3, 4, -1], [5, 6, -1], [7, 8, 9]]
    assert batch["keys"].sizes.tolist() == [3, 2, 2, 3]
    assert batch["group_tasks"].tolist() == [0, 1, 0, 1]
    assert "mlm_labels" not in batch


def test_document_is_cut_first_and_a_long_query_leaves_it_half(tokenizer):
    short = Pair("two words", "document " * 50)
    long = Pair("second " * 50, "document " * 50)
    batch = collator(tokenizer, mask=False, max_length=20)(
        [Example(0, 0, PairGroup("rqp", short, (long,)))]
    )
    assert batch["lengths"].tolist() == [20, 20]
    word = tokenizer.convert_tokens_to_ids
    assert [row.count(word("document")) for row in rows(batch)] == [15, 9]
    assert [row.count(word("second")) for row in rows(batch)] == [0, 8]


def test_each_task_cuts_queries_at_its_own_limit(tokenizer):
    query = "Unbelievably long-winded questions, misspeled agian and again"
    pieces = tokenizer.tokenize(query)
    assert len(pieces) > 12 and len(query.split()) < len(pieces)
    group = PairGroup("rqp", Pair(query, "one"), (Pair("short", "two"),))
    examples = [
        Example(0, place, dataclasses.replace(group, task=task))
        for place, task in enumerate((*TASKS, "rqp"))
    ]
    for limit in range(1, len(pieces) + 2):
        make = collator(tokenizer, mask=False, max_length=40, max_query_length={"rqp": limit})
        ids = rows(make(examples))
        whole = len(pieces)
        for row, most in zip(ids, [limit, limit, whole, whole, limit, limit], strict=True):
            tokens = tokenizer.convert_ids_to_tokens(row)
            query_tokens = tokens[1 : tokens.index("[SEP]")]
            assert query_tokens in (pieces[:most], ["short"])
        assert [row[1:3] for row in ids[1::2]] == [ids[1][1:3]] * 3


def test_a_task_that_is_not_in_the_run_may_be_named(tokenizer):
    limits = query_limits({"acm": 10, "qdm": 12}, TASKS, max_length=64)
    assert [limits[task] for task in TASKS] == [None, 12]


def test_only_ordinary_tokens_of_documents_are_masked(groups, tokenizer):
    masked = collator(tokenizer)
    plain = collator(tokenizer, mask=False)
    for index in range(len(groups)):
        example = Example(1, index, groups.group(1, index))
        before, after = plain([example])["input_ids"], masked([example])
        positions = after["masked_positions"]
        assert torch.equal(before[positions], after["mlm_labels"])
        assert (after["token_type_ids"][positions] == 1).all()
        assert not set(after["mlm_labels"].tolist()) & set(tokenizer.all_special_ids)
        unmasked = torch.ones_like(before, dtype=torch.bool)
        unmasked[positions] = False
        assert torch.equal(before[unmasked], after["input_ids"][unmasked])
        ends = np.cumsum(after["lengths"])
        counts = np.bincount(np.searchsorted(ends, positions.numpy(), side="right"))
        assert (counts > 0).all() and len(counts) == len(example.group.members)


def test_special_tokens_written_in_a_document_are_not_masked(tokenizer):
    pair = Pair("query", "[SEP] [PAD] [CLS] word")
    batch = collator(tokenizer)([Example(0, 0, PairGroup("rqp", pair, (pair,)))])
    assert tokenizer.convert_ids_to_tokens(batch["mlm_labels"].tolist()) == ["word", "word"]


def test_empty_document_is_kept_and_masks_nothing(tokenizer):
    pair = Pair("query", "")
    batch = collator(tokenizer)([Example(0, 0, PairGroup("rqp", pair, (pair,)))])
    assert batch["masked_positions"].numel() == 0 == batch["mlm_labels"].numel()
    assert batch["masked_positions"].dtype == torch.int64


def test_fixed_masks_belong_to_the_pair(groups, tokenizer):
    fixed, fresh = collator(tokenizer, new_masks=False), collator(tokenizer)
    group = groups.group(0, 4)
    first, second = Example(0, 4, group), Example(1, 7, group)
    batches = [fixed([first]), fixed([second]), fresh([first]), fresh([second])]
    assert [batch.pop("group_places").tolist() for batch in batches] == [[[0, 4]], [[1, 7]]] * 2
    assert equal(batches[:1], batches[1:2])
    assert not equal(batches[2:3], batches[3:])
    longer = PairGroup("rqp", Pair("query", "document " * 30), (group.negatives[0],))
    together = fixed([Example(0, 0, longer), second])
    assert rows(together)[len(longer.members)] == rows(fixed([second]))[0]


def test_teacher_scores_and_places_travel_with_their_groups(groups, tokenizer):
    examples = [GroupDataset(groups)[number] for number in (3, 29)]
    plain = collator(tokenizer)(examples)
    assert "teacher_scores" not in plain and plain["group_places"].tolist() == [[0, 3], [1, 5]]
    sizes = [len(example.group.members) for example in examples]
    second = plain["masked_positions"] >= int(plain["lengths"][: sizes[0]].sum())
    assert second.tolist() == plain["masked_groups"].bool().tolist()
    assert sizes == [3, 2]
    taught = [
        dataclasses.replace(
            example, group=dataclasses.replace(example.group, teacher_scores=scores)
        )
        for example, scores in zip(examples, [(0.0, 0.5, 1.0), (2.0, -1.5)], strict=True)
    ]
    assert collator(tokenizer)(taught)["teacher_scores"].tolist() == [0, 0.5, 1, 2, -1.5]
    assert "teacher_scores" not in collator(tokenizer)([taught[0], examples[1]])


def test_queries_longer_than_what_is_read(tokenizer):
    with pytest.raises(HarpError, match="max_query_length is 33 for rqp: with a max_length of 32"):
        collator(tokenizer, max_length=32, max_query_length=33)
    collator(tokenizer, max_length=32, max_query_length=32)  # as a bi-encoder may have both
