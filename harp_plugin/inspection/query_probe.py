"""Can the query alone give the positive away? An encoder is trained on it, held out by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from tqdm import tqdm

from ..sampling import generator, stable_id
from ..weights.workers import one_thread
from .measurements import AuditedGroups, Measurement, accuracy, sides_differ
from .text_encoder import TextEncoder, by_length, mean_state, padded, tokenize

__all__ = ["MOST_TOKENS_TRAINED", "query_probe"]

MOST_TOKENS_TRAINED = 64_000
"""Training stops at this number of tokens: half of MiniLM's layers take most of a minute."""
_MOST_GROUPS = 6_000
_PARTS = 3
_BATCH = 16
_BATCHES_OF_A_LENGTH = 8
_LEARNING_RATE, _HEAD_LEARNING_RATE, _WARM_UP = 3e-4, 1e-3, 0.1


@dataclass(frozen=True, slots=True)
class _Group:
    queries: list[str]
    is_held_out: bool


def query_probe(groups: AuditedGroups) -> Measurement | None:
    """How often an encoder that reads the query only tells the positive.

    The lower half of the encoder's layers is trained for one pass on pairs of a positive's query
    and a negative's, by the logistic loss of the difference of their scores. One page in three is
    held out: no group is trained on that has such a page as a document, or a query about it. The
    accuracy is that of the groups whose pages are all held out, so that no page of theirs was seen
    with a label: neither the positive's nor the one that the negative's query is about.

    Returns:
        None where there is no encoder, all queries of each group are equal, or the groups are too
        few.
    """
    if groups.encoder is None or not any(sides_differ(o, "query") for o in groups.observations):
        return None
    drawn = list(_usable(groups))
    train = [group.queries for group in drawn if not group.is_held_out]
    test = [group.queries for group in drawn if group.is_held_out]
    pairs = [(group[0], other) for group in train for other in group[1:] if other != group[0]]
    if not pairs or not test:
        return None
    with one_thread():
        probe = _Probe(groups.encoder, groups.seed)
        probe.learn(pairs, groups.task)
        scores = probe.scores(list(dict.fromkeys(chain.from_iterable(test))))
    return accuracy([scores[query] for query in group] for group in test)


def _usable(groups: AuditedGroups) -> Iterator[_Group]:
    """The audited groups, then others, whose pages all lie on one side of the split.

    It ends when the tokens for training are reached.
    """
    assert groups.encoder is not None
    audited = (observation.group for observation in groups.observations)
    tokens = 0
    for group in islice(chain(audited, groups.more_groups()), _MOST_GROUPS):
        units = {*map(groups.page_unit, group.members), *groups.query_units(group)}
        parts = {stable_id("part", groups.seed, unit) % _PARTS for unit in units}
        is_held_out = parts == {0}
        if not is_held_out and 0 in parts:
            continue
        queries = [pair.query for pair in group.members]
        if not is_held_out:
            tokens += sum(map(len, tokenize(groups.encoder.tokenizer, queries)))
        yield _Group(queries, is_held_out)
        if tokens >= MOST_TOKENS_TRAINED:
            return


class _Probe:
    """The lower half of an encoder with a linear layer on [CLS] and the mean of all tokens."""

    def __init__(self, encoder: TextEncoder, seed: int) -> None:
        self.encoder, self.seed = encoder, seed
        self.body = encoder.lower_half()
        start = generator(seed, "probe", "head").normal(0, 0.02, 2 * self.body.config.hidden_size)
        self.head = nn.Parameter(torch.tensor(start, dtype=torch.float32))

    def learn(self, pairs: list[tuple[str, str]], task: str) -> None:
        """Train for one pass on pairs of texts of which the first must score higher."""
        tokenizer = self.encoder.tokenizer
        better, worse = (tokenize(tokenizer, side) for side in zip(*pairs, strict=True))
        batches = self._batches([len(a) + len(b) for a, b in zip(better, worse, strict=True)])
        body = [weight for weight in self.body.parameters() if weight.requires_grad]
        rates = [
            {"params": body, "lr": _LEARNING_RATE},
            {"params": [self.head], "lr": _HEAD_LEARNING_RATE},
        ]
        optimizer = torch.optim.AdamW(rates, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: _rate(step, len(batches))
        )
        quiet = self.encoder.quiet
        for batch in tqdm(batches, desc=f"{task}: probe", unit="batch", disable=quiet):
            scores = self._score([better[n] for n in batch] + [worse[n] for n in batch])
            loss = softplus(scores[len(batch) :] - scores[: len(batch)]).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(body, 1.0)
            optimizer.step()
            schedule.step()

    @torch.inference_mode()
    def scores(self, texts: list[str]) -> dict[str, float]:
        """Score texts."""
        ids = tokenize(self.encoder.tokenizer, texts)
        return {
            texts[number]: score
            for batch in by_length(ids)
            for number, score in zip(
                batch, self._score([ids[number] for number in batch]).tolist(), strict=True
            )
        }

    def _score(self, ids: list[list[int]]) -> Tensor:
        tokens, mask = padded(ids, self.encoder.tokenizer.pad_token_id)
        states = self.body(tokens, attention_mask=mask).last_hidden_state
        return torch.cat([states[:, 0], mean_state(states, mask)], 1) @ self.head

    def _batches(self, lengths: list[int]) -> list[list[int]]:
        """Draw batches of pairs; those of a batch are of similar length, which saves padding."""
        rng = generator(self.seed, "probe", "order")
        order, size = rng.permutation(len(lengths)), _BATCH * _BATCHES_OF_A_LENGTH
        batches = []
        for start in range(0, len(order), size):
            chosen = sorted(order[start : start + size].tolist(), key=lambda pair: lengths[pair])
            batches += [chosen[at : at + _BATCH] for at in range(0, len(chosen), _BATCH)]
        return [batches[place] for place in rng.permutation(len(batches))]


def _rate(step: int, steps: int) -> float:
    """The learning rate's share of its highest value: it rises, then falls to 0."""
    rising = _WARM_UP * steps
    return min((step + 1) / max(1.0, rising), (steps - step) / (steps - rising))
