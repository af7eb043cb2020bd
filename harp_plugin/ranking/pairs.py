"""Tokenised texts → inputs of a cross-encoder, paired as the tokenizer would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from transformers import PreTrainedTokenizerBase

from ..errors import HarpError


@dataclass(frozen=True, slots=True)
class PairTemplate:
    """The special tokens that a tokenizer puts around a text pair, and its token types.

    `before`, `between` and `after` hold (ids, types); `types` are those of query and document.
    """

    before: tuple[np.ndarray, np.ndarray]
    between: tuple[np.ndarray, np.ndarray]
    after: tuple[np.ndarray, np.ndarray]
    types: tuple[int, int]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> PairTemplate:
        """Read the template off the tokenizer's own encoding of a pair.

        Raises:
            HarpError: it is not a fast tokenizer, or puts the document before the query.
        """
        if not tokenizer.is_fast:
            raise HarpError(f"{type(tokenizer).__name__} is no fast tokenizer: convert it first")
        encoding = tokenizer(["a"], ["b"]).encodings[0]
        sides = encoding.sequence_ids
        query = [place for place, side in enumerate(sides) if side == 0]
        document = [place for place, side in enumerate(sides) if side == 1]
        if not query or not document or query[-1] > document[0]:
            raise HarpError(f"{type(tokenizer).__name__} does not encode a pair as query, document")

        def part(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
            chosen = slice(start, stop)
            return _integers(encoding.ids[chosen]), _integers(encoding.type_ids[chosen])

        return cls(
            before=part(0, query[0]),
            between=part(query[-1] + 1, document[0]),
            after=part(document[-1] + 1, len(sides)),
            types=(encoding.type_ids[query[0]], encoding.type_ids[document[0]]),
        )

    @property
    def length(self) -> int:
        """The number of special tokens of a pair."""
        return sum(len(ids) for ids, _ in (self.before, self.between, self.after))

    def around(self, kind: int, query: np.ndarray, document: np.ndarray) -> list[np.ndarray]:
        """The parts of one pair: ids for ``kind`` 0, token types for 1."""
        return [self.before[kind], query, self.between[kind], document, self.after[kind]]


class Batch(NamedTuple):
    """Texts of a batch, special tokens included, one behind the other, the shortest first.

    Attributes:
        ids: (tokens,) int64.
        types: (tokens,) int64.
        lengths: (pairs,) int64, ascending.
    """

    ids: np.ndarray
    types: np.ndarray
    lengths: np.ndarray

    def halves(self) -> tuple[Batch, Batch]:
        """The shorter pairs and the longer ones."""
        middle = len(self.lengths) // 2
        cut = int(self.lengths[:middle].sum())
        return (
            Batch(self.ids[:cut], self.types[:cut], self.lengths[:middle]),
            Batch(self.ids[cut:], self.types[cut:], self.lengths[middle:]),
        )

    def filled(self, count: int) -> Batch:
        """The same with one more text of ``count`` tokens at the end, unless that is 0."""
        if not count:
            return self
        none = np.zeros(count, dtype=np.int64)
        return Batch(
            np.append(self.ids, none), np.append(self.types, none), np.append(self.lengths, count)
        )

    def padded(self, ids: int, types: int, *, left: bool) -> dict[str, np.ndarray]:
        """`input_ids`, `attention_mask` and `token_type_ids`, each (pairs, longest) int64.

        Args:
            ids: the id of a padding token.
            types: its type.
            left: pad before the text.
        """
        shape = len(self.lengths), int(self.lengths[-1])
        rows = np.repeat(np.arange(shape[0]), self.lengths)
        columns = np.arange(len(self.ids)) - np.repeat(
            np.cumsum(self.lengths) - self.lengths, self.lengths
        )
        if left:
            columns += np.repeat(shape[1] - self.lengths, self.lengths)
        found = {}
        for name, padding, values in (
            ("input_ids", ids, self.ids),
            ("attention_mask", 0, np.ones_like(self.ids)),
            ("token_type_ids", types, self.types),
        ):
            found[name] = np.full(shape, padding, dtype=np.int64)
            found[name][rows, columns] = values
        return found


class TokenPairs:
    """Tokenised (query, document) pairs, cut to size.

    Args:
        queries: n texts, each (length,) int32, without special tokens.
        documents: n texts of the same kind.
        template: what the tokenizer puts around them.
        max_length: tokens of a pair.

    Attributes:
        lengths: (n,) tokens of each pair, special tokens included.
    """

    def __init__(
        self,
        queries: Sequence[np.ndarray],
        documents: Sequence[np.ndarray],
        template: PairTemplate,
        max_length: int,
    ) -> None:
        self._queries = queries
        self._documents = documents
        self._template = template
        self._query_sizes, self._document_sizes = cut_sizes(
            _sizes(queries), _sizes(documents), max_length - template.length
        )
        self.lengths = template.length + self._query_sizes + self._document_sizes

    def __len__(self) -> int:
        return len(self.lengths)

    def batches(self, batch_tokens: int) -> Iterator[np.ndarray]:
        """Places of pairs, the longest first, as many as stay under the budget even when padded.

        Within a batch the shortest comes first.
        """
        order = np.argsort(-self.lengths, kind="stable")
        start = 0
        while start < len(order):
            count = max(1, batch_tokens // int(self.lengths[order[start]]))
            yield order[start : start + count][::-1]
            start += count

    def batch(self, places: np.ndarray) -> Batch:
        """Put some pairs together, given in ascending length."""
        template = self._template
        sizes = zip(
            *(part[places].tolist() for part in (self._query_sizes, self._document_sizes)),
            strict=True,
        )
        ids: list[np.ndarray] = []
        types: list[np.ndarray] = []
        for place, (query, document) in zip(places.tolist(), sizes, strict=True):
            ids += template.around(
                0, self._queries[place][:query], self._documents[place][:document]
            )
            types += template.around(
                1, np.full(query, template.types[0]), np.full(document, template.types[1])
            )
        return Batch(_joined(ids), _joined(types), self.lengths[places])


def cut_sizes(query: np.ndarray, document: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """How many tokens of each query and of its document are kept, both (n,).

    Documents are cut as ``truncation="only_second"`` cuts them. A query that leaves no room for a
    single token of the document, which a tokenizer refuses, is cut to half of the room.

    Args:
        query: (n,) tokens of each query.
        document: (n,) tokens of each document.
        room: tokens that fit beside the special ones.
    """
    query = np.where(query + np.minimum(document, 1) > room, room // 2, query)
    return query, np.minimum(document, room - query)


def distinct(texts: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """(n,) the place of each text among the distinct ones, and those in order of appearance."""
    places: dict[str, int] = {}
    of = np.fromiter((places.setdefault(text, len(places)) for text in texts), np.int64, len(texts))
    return of, list(places)


def distinct_pairs(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of (n, 2) places, and (n,) for each given one its place among them."""
    if not len(pairs):
        return pairs, np.zeros(0, dtype=np.int64)
    width = int(pairs[:, 1].max()) + 1
    codes, inverse = np.unique(pairs[:, 0] * width + pairs[:, 1], return_inverse=True)
    return np.stack(np.divmod(codes, width), axis=1), inverse


def _sizes(texts: Sequence[np.ndarray]) -> np.ndarray:
    return np.fromiter((len(ids) for ids in texts), np.int64, len(texts))


def _integers(values: Sequence[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts).astype(np.int64, copy=False)
