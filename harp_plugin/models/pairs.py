"""Make token ids of (query, document) pairs, by one rule for training and for ranking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from ..errors import HarpError
from .tokenizing import tokenize

__all__ = [
    "PackedPairs",
    "PairEncoder",
    "PairTemplate",
    "TextTemplate",
    "TokenPairs",
    "cut_sizes",
    "joining_pairs",
    "joins_pairs",
]


def cut_sizes(
    query: np.ndarray, document: np.ndarray, available: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return how many tokens of each query and of its document are kept, both (n,).

    This is the rule of cutting, except where pairs are joined (`joining_pairs`). A pair that fits
    is not cut. If a pair does not fit, each text may have half of the available tokens, and a text
    may also use the tokens that the other text does not need. So a short query is kept whole while
    its document is cut, a long query always leaves tokens for its document, and a short document
    never shortens its query. Tokenizers call this rule ``truncation="longest_first"``, and
    sentence-transformers uses it. If both texts are longer than half of an odd number of tokens,
    the document has the odd token.

    A model must rank the same kind of input that it was trained on, so training and ranking both
    cut here. A task may first cut its queries to a length of their own (``max_query_length``).

    Args:
        query: tokens of each query, (n,).
        document: tokens of each document, (n,).
        available: tokens of a pair without its special tokens.
    """
    query = np.minimum(query, np.maximum(available // 2, available - document))
    return query, np.minimum(document, available - query)


@dataclass(frozen=True, slots=True)
class PairTemplate:
    """The special tokens that a tokenizer puts around a text pair, and its token types.

    Attributes:
        before: ids and types of the special tokens before the query.
        between: ids and types of the special tokens between query and document.
        after: ids and types of the special tokens after the document.
        types: the token types of query and document.
        joined: whether both are one text, which is cut at its end.
    """

    before: tuple[np.ndarray, np.ndarray]
    between: tuple[np.ndarray, np.ndarray]
    after: tuple[np.ndarray, np.ndarray]
    types: tuple[int, int]
    joined: bool = False

    @classmethod
    def from_tokenizer(cls, tokenizer: PreTrainedTokenizerBase) -> PairTemplate:
        """Read the template from the tokenizer's own encoding of a pair.

        Raises:
            HarpError: the tokenizer is not a fast one, or it puts the document before the query.
        """
        encoding = _encoding(tokenizer, ["a"], ["b"])
        sides = encoding.sequence_ids
        query = [position for position, side in enumerate(sides) if side == 0]
        document = [position for position, side in enumerate(sides) if side == 1]
        if not query or not document or query[-1] > document[0]:
            raise HarpError(
                f"{type(tokenizer).__name__} does not encode a pair as query, document: choose "
                "another model"
            )

        def part(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
            ids, types = encoding.ids[start:stop], encoding.type_ids[start:stop]
            return np.array(ids, dtype=np.int64), np.array(types, dtype=np.int64)

        return cls(
            before=part(0, query[0]),
            between=part(query[-1] + 1, document[0]),
            after=part(document[-1] + 1, len(sides)),
            types=(encoding.type_ids[query[0]], encoding.type_ids[document[0]]),
            joined=joins_pairs(tokenizer),
        )

    @property
    def length(self) -> int:
        """The number of special tokens of a pair."""
        return sum(len(ids) for ids, _ in (self.before, self.between, self.after))

    def cut(
        self, query: np.ndarray, document: np.ndarray, max_length: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how many tokens of each query and of its document are kept, both (n,).

        Args:
            query: tokens of each query, (n,).
            document: tokens of each document, (n,).
            max_length: tokens of a pair, special tokens included.
        """
        available = max_length - self.length
        if not self.joined:
            return cut_sizes(query, document, available)
        query = np.minimum(query, available)
        return query, np.minimum(document, available - query)

    def around(self, kind: int, query: np.ndarray, document: np.ndarray) -> list[np.ndarray]:
        """Return the parts of one pair: token ids for ``kind`` 0, token types for ``kind`` 1."""
        return [self.before[kind], query, self.between[kind], document, self.after[kind]]


@dataclass(frozen=True, slots=True)
class TextTemplate:
    """The special tokens that a tokenizer puts around one text.

    Attributes:
        before: ids of the special tokens before the text.
        after: ids of the special tokens after the text.
    """

    before: np.ndarray
    after: np.ndarray

    @classmethod
    def from_tokenizer(cls, tokenizer: PreTrainedTokenizerBase) -> TextTemplate:
        """Read the template from the tokenizer's own encoding of a text.

        Raises:
            HarpError: the tokenizer is not a fast one.
        """
        encoding = _encoding(tokenizer, ["a"])
        text = [index for index, side in enumerate(encoding.sequence_ids) if side == 0]
        ids = np.array(encoding.ids, dtype=np.int64)
        return cls(ids[: text[0]], ids[text[-1] + 1 :])

    @property
    def length(self) -> int:
        """The number of special tokens of a text."""
        return len(self.before) + len(self.after)

    def around(self, text: np.ndarray) -> np.ndarray:
        """Return the token ids of a text with its special tokens, (length,) int64."""
        return np.concatenate([self.before, text, self.after]).astype(np.int64, copy=False)


def joining_pairs(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Return a tokenizer that encodes a pair as Tevatron's reranker does: as one text.

    The document follows its query without a special token between, both have the same token type,
    and a pair is cut at its end. A saved tokenizer keeps that.

    Args:
        tokenizer: a fast tokenizer, which stays as it is.

    Raises:
        HarpError: spaces between two texts change its tokens.
    """
    template = TextTemplate.from_tokenizer(tokenizer)
    before, after = (
        tokenizer.convert_ids_to_tokens(ids.tolist()) for ids in (template.before, template.after)
    )
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.post_processor = TemplateProcessing(
        single=[*before, "$A", *after],
        pair=[*before, "$A:0", "$B:0", *after],
        special_tokens=[
            (token, tokenizer.convert_tokens_to_ids(token)) for token in {*before, *after}
        ],
    )
    # The class of a model's own tokenizer writes the template of that model again.
    joining = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=tokenizer.model_max_length,
        model_input_names=tokenizer.model_input_names,
        padding_side=tokenizer.padding_side,
        pair_format="tevatron",
        **tokenizer.special_tokens_map,
    )
    if joining("a", "b")["input_ids"] != tokenizer("a   b")["input_ids"]:
        raise HarpError(
            "pair_format tevatron: this tokenizer reads the spaces between query and document; "
            "name a model of word pieces, such as BERT"
        )
    return joining


def joins_pairs(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether a tokenizer is one of `joining_pairs`."""
    return tokenizer.init_kwargs.get("pair_format") == "tevatron"


def _encoding(tokenizer: PreTrainedTokenizerBase, *texts: list[str]) -> Any:
    """Return the tokenizer's own encoding of a text or a pair.

    Raises:
        HarpError: the tokenizer is not a fast one.
    """
    if not tokenizer.is_fast:
        name = type(tokenizer).__name__
        raise HarpError(f"{name} is not a fast tokenizer: choose a model that has one")
    return tokenizer(*texts).encodings[0]


class PackedPairs(NamedTuple):
    """Pairs that follow each other in one row of tokens, special tokens included.

    Attributes:
        ids: token ids, (tokens,) int64.
        types: token types, (tokens,) int64.
        lengths: tokens of each pair, (pairs,) int64.
    """

    ids: np.ndarray
    types: np.ndarray
    lengths: np.ndarray

    def halves(self) -> tuple[PackedPairs, PackedPairs]:
        """Return the first half of the pairs and the second half."""
        middle = len(self.lengths) // 2
        cut = int(self.lengths[:middle].sum())
        return (
            PackedPairs(self.ids[:cut], self.types[:cut], self.lengths[:middle]),
            PackedPairs(self.ids[cut:], self.types[cut:], self.lengths[middle:]),
        )


@dataclass(eq=False)
class TokenPairs:
    """Tokenized (query, document) pairs, cut by `PairTemplate.cut`.

    Args:
        queries: token ids of n queries, each (length,) int32, without special tokens.
        documents: token ids of n documents of the same kind.
        template: the special tokens around a pair.
        max_length: tokens of a pair, special tokens included.

    Attributes:
        lengths: tokens of each pair, special tokens included, (n,).
    """

    queries: Sequence[np.ndarray]
    documents: Sequence[np.ndarray]
    template: PairTemplate
    max_length: int

    def __post_init__(self) -> None:
        sizes = _sizes(self.queries), _sizes(self.documents)
        self._query_sizes, self._document_sizes = self.template.cut(*sizes, self.max_length)
        self.lengths = self.template.length + self._query_sizes + self._document_sizes

    def __len__(self) -> int:
        return len(self.lengths)

    def batches(self, batch_tokens: int) -> Iterator[np.ndarray]:
        """Yield the indices of the pairs of each batch, beginning with the longest pairs.

        A batch holds as many pairs as fit ``batch_tokens`` when they are padded. Within a batch the
        shortest pair comes first.
        """
        order = np.argsort(-self.lengths, kind="stable")
        start = 0
        while start < len(order):
            count = max(1, batch_tokens // int(self.lengths[order[start]]))
            yield order[start : start + count][::-1]
            start += count

    def packed(self, indices: np.ndarray | None = None) -> PackedPairs:
        """Pack the pairs at these indices, in this order; None packs all pairs."""
        indices = np.arange(len(self)) if indices is None else indices
        template = self.template
        sizes = zip(
            *(part[indices].tolist() for part in (self._query_sizes, self._document_sizes)),
            strict=True,
        )
        ids: list[np.ndarray] = []
        types: list[np.ndarray] = []
        for index, (query, document) in zip(indices.tolist(), sizes, strict=True):
            ids += template.around(0, self.queries[index][:query], self.documents[index][:document])
            types += template.around(
                1, np.full(query, template.types[0]), np.full(document, template.types[1])
            )
        return PackedPairs(_joined(ids), _joined(types), self.lengths[indices])

    @property
    def document_bounds(self) -> np.ndarray:
        """The start and end of each document in `packed` of all pairs, the end not included.

        Returns:
            (n, 2) int64.
        """
        template = self.template
        special_tokens = len(template.before[0]) + len(template.between[0])
        starts = np.cumsum(self.lengths) - self.lengths + special_tokens + self._query_sizes
        return np.stack([starts, starts + self._document_sizes], axis=1)


class PairEncoder:
    """Turns texts into token ids of pairs: it tokenizes and cuts them, and adds special tokens.

    Args:
        tokenizer: a fast tokenizer.
        max_length: tokens of a pair, special tokens included.

    Attributes:
        template: the special tokens around a pair.

    Raises:
        HarpError: the tokenizer cannot encode pairs.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_length: int) -> None:
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.template = PairTemplate.from_tokenizer(tokenizer)

    def encode(
        self,
        queries: Sequence[str],
        documents: Sequence[str],
        query_limits: Sequence[int | None] | None = None,
    ) -> TokenPairs:
        """Encode ``queries[i]`` with ``documents[i]``; each distinct text is tokenized once.

        Args:
            queries: n texts.
            documents: n texts.
            query_limits: most tokens of each query; None sets no limit except the pair's.
        """
        limits = [None] * len(queries) if query_limits is None else query_limits
        query_ids, document_ids = (self._token_ids(texts) for texts in (queries, documents))
        return self.pairs(
            [ids[:limit] for ids, limit in zip(query_ids, limits, strict=True)], document_ids
        )

    def pairs(self, queries: Sequence[np.ndarray], documents: Sequence[np.ndarray]) -> TokenPairs:
        """Pair texts that `tokenize` has already tokenized."""
        return TokenPairs(queries, documents, self.template, self.max_length)

    def most_document_tokens(self, query_tokens: int) -> int:
        """Return how many tokens of a long document fit next to a query of ``query_tokens``."""
        _, document = self.template.cut(
            np.array([query_tokens]), np.array([self.max_length]), self.max_length
        )
        return int(document[0])

    def _token_ids(self, texts: Sequence[str]) -> list[np.ndarray]:
        distinct = list(dict.fromkeys(texts))
        ids = tokenize(distinct, self.tokenizer, self.max_length)
        by_text = dict(zip(distinct, ids, strict=True))
        return [by_text[text] for text in texts]


def _sizes(texts: Sequence[np.ndarray]) -> np.ndarray:
    return np.fromiter((len(ids) for ids in texts), np.int64, len(texts))


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts).astype(np.int64, copy=False)
