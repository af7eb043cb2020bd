"""Texts → inputs of a cross-encoder: tokenised once, paired as the tokenizer would, padded late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedTokenizerBase

from ..errors import HarpError

TOKENISED_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class PairTemplate:
    """The special tokens that a tokenizer puts around a text pair, and its token types.

    `before`, `between` and `after` hold (ids, types); `types` are those of query and document.
    """

    before: tuple[list[int], list[int]]
    between: tuple[list[int], list[int]]
    after: tuple[list[int], list[int]]
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

        def part(start: int, stop: int) -> tuple[list[int], list[int]]:
            return encoding.ids[start:stop], encoding.type_ids[start:stop]

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

    def fill(self, query: np.ndarray, document: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The (ids, types) of one pair, each (length,) int64."""
        query_type, document_type = self.types
        parts = [
            self.before,
            (query, [query_type] * len(query)),
            self.between,
            (document, [document_type] * len(document)),
            self.after,
        ]
        ids, types = zip(*parts, strict=True)
        return np.concatenate(ids).astype(np.int64), np.concatenate(types).astype(np.int64)


class TextPairs:
    """The distinct (query, document) pairs among n given ones, tokenised and cut to size.

    Documents are cut as ``truncation="only_second"`` cuts them. A query that leaves no room for a
    single token of the document, which a tokenizer refuses, is cut to half of the room.

    Attributes:
        inverse: (n,) for each given pair, its place among the distinct ones.
        lengths: (distinct,) tokens of each distinct pair, special tokens included.
    """

    def __init__(
        self,
        queries: Sequence[str],
        documents: Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        template: PairTemplate,
        max_length: int,
    ) -> None:
        self._tokenizer = tokenizer
        self._template = template
        query_of, distinct_queries = _distinct(queries)
        document_of, distinct_documents = _distinct(documents)
        self._queries = list(_tokenise(distinct_queries, tokenizer, max_length))
        self._documents = list(_tokenise(distinct_documents, tokenizer, max_length))
        pairs, self.inverse = np.unique(
            query_of * max(len(distinct_documents), 1) + document_of, return_inverse=True
        )
        self._pairs = np.stack(np.divmod(pairs, max(len(distinct_documents), 1)), axis=1)
        self._cut(max_length - template.length)

    def _cut(self, room: int) -> None:
        sizes = np.array([len(ids) for ids in self._queries], dtype=np.int64)
        query = sizes[self._pairs[:, 0]]
        sizes = np.array([len(ids) for ids in self._documents], dtype=np.int64)
        document = sizes[self._pairs[:, 1]]
        self._query_sizes = np.where(query + np.minimum(document, 1) > room, room // 2, query)
        self._document_sizes = np.minimum(document, room - self._query_sizes)
        self.lengths = self._template.length + self._query_sizes + self._document_sizes

    def __len__(self) -> int:
        return len(self._pairs)

    def batches(self, batch_tokens: int) -> Iterator[np.ndarray]:
        """Places of pairs, the longest first, as many as stay under the budget when padded."""
        order = np.argsort(-self.lengths, kind="stable")
        start = 0
        while start < len(order):
            count = max(1, batch_tokens // int(self.lengths[order[start]]))
            yield order[start : start + count]
            start += count

    def inputs(self, places: np.ndarray) -> dict[str, np.ndarray]:
        """`input_ids`, `attention_mask` and `token_type_ids`, each (pairs, longest) int64."""
        shape = (len(places), int(self.lengths[places].max()))
        ids = np.full(shape, self._tokenizer.pad_token_id or 0, dtype=np.int64)
        types = np.full(shape, self._tokenizer.pad_token_type_id, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        left = self._tokenizer.padding_side == "left"
        for row, place in enumerate(places):
            length = self.lengths[place]
            columns = slice(shape[1] - length, None) if left else slice(None, length)
            ids[row, columns], types[row, columns] = self._fill(place)
            mask[row, columns] = 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}

    def _fill(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        query, document = self._pairs[place]
        return self._template.fill(
            self._queries[query][: self._query_sizes[place]],
            self._documents[document][: self._document_sizes[place]],
        )


def _distinct(texts: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    places: dict[str, int] = {}
    of = np.fromiter((places.setdefault(text, len(places)) for text in texts), np.int64, len(texts))
    return of, list(places)


def _tokenise(
    texts: list[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> Iterator[np.ndarray]:
    for start in range(0, len(texts), TOKENISED_AT_ONCE):
        encoded = tokenizer(
            texts[start : start + TOKENISED_AT_ONCE],
            add_special_tokens=False,
            truncation=True,
            max_length=max_length,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        yield from (np.array(ids, dtype=np.int32) for ids in encoded["input_ids"])
