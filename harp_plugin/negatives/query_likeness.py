"""The stage ``query_likeness``: how much each anchor text looks like a query (Anchor-DR)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import HarpError
from ..models.loading import choose_device
from ..ranking.dense.encoder import Encoder
from ..sampling import generator
from ..work.build_stage import (
    BuildRequest,
    BuildStage,
    StageOptions,
    finish_shards,
    part_name,
    parts_of,
)
from ..work.parquet import write_table
from ..work.stage import Stage
from .options import QueryLikenessOptions
from .queries import BuildTexts

__all__ = ["build_query_likeness", "read_queries"]

_TABLE = "anchor_texts"
_SCHEMA = pa.schema([("id", pa.int64()), ("score", pa.float32())])
_TEXTS_PER_SHARD = 20_000
_FEWEST_QUERIES = 20
_MOST_QUERIES = 10_000
_SEED = 42
_DECIMALS = 4


def _options(request: BuildRequest) -> StageOptions:
    examples, encoder = _examples(request), request.of(QueryLikenessOptions).query_likeness_encoder
    queries = generator(*read_queries(examples)).bytes(16).hex()
    return StageOptions(
        {"examples": examples, "queries": queries, "encoder": encoder},
        {"encoder": Encoder(encoder).fingerprint},
        ("torch", "transformers", "tokenizers", "scikit-learn", "pyarrow"),
    )


def _examples(request: BuildRequest) -> str:
    examples = request.of(QueryLikenessOptions).query_examples
    if examples is None:
        raise HarpError("--stages query_likeness needs --query-examples: name a file")
    return examples


def _check(request: BuildRequest) -> None:
    choose_device(request.device)


def _score(stage: Stage, request: BuildRequest) -> dict[str, Any]:
    """Score every anchor text by a classifier that tells queries from anchor texts.

    The classifier is Anchor-DR's (section 3.2, eq. 3), with a logistic regression over the vectors
    of an encoder in place of a small BERT. Queries are its positives, and as many distinct anchor
    texts, functional ones among them, its negatives. The table ``anchor_texts`` has the columns
    ``id`` and ``score``, the logit of being a query. It runs in this process: the threads of torch
    divide the work.

    Raises:
        HarpError: there are too few queries or anchor texts.
    """
    texts = BuildTexts(request.directory)
    model = Encoder(stage.options["encoder"], device=request.device)
    classifier = _classifier(model, read_queries(_examples(request)), texts)

    def score(ids: np.ndarray) -> None:
        vectors = model.queries(texts.queries(_TABLE, ids))
        scores = np.round(classifier.decision_function(vectors), _DECIMALS).astype(np.float32)
        batch = pa.RecordBatch.from_arrays([pa.array(ids), pa.array(scores)], schema=_SCHEMA)
        path = stage.folder / _TABLE / f"{part_name(ids)}.parquet"
        file = write_table(path, _SCHEMA, [batch])
        stage.finish_shard(f"{_TABLE}-{path.stem}", {_TABLE: len(ids)}, {}, [file])

    parts = parts_of(texts.ids(_TABLE), _TEXTS_PER_SHARD)
    finish_shards(stage, request, score, {f"{_TABLE}-{name}": p for name, p in parts.items()})
    return {}


def read_queries(source: str) -> list[str]:
    """Read example queries: the lines of a text file, or the queries of an ir_datasets collection.

    Args:
        source: the path of a file with a query on each line (or an id, a tab and a query), or a
            dataset id such as ``harp:FOLDER/train``.

    Returns:
        The distinct queries in lower case, sorted; of very many, 10,000.

    Raises:
        HarpError: the source cannot be read, or has fewer than 20 queries.
    """
    path = Path(source)
    if path.is_file():
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise HarpError(f"{path} cannot be read ({type(error).__name__})") from error
        texts = [line.rpartition("\t")[2] for line in lines]
    else:
        from ..collections.dataset import Dataset

        texts = list(Dataset(source).queries().values())
    queries = sorted({" ".join(text.lower().split()) for text in texts} - {""})
    if len(queries) < _FEWEST_QUERIES:
        raise HarpError(
            f"--query-examples {source} has {len(queries)} distinct queries: give at least "
            f"{_FEWEST_QUERIES}"
        )
    chosen = generator(_SEED, "query examples").permutation(len(queries))[:_MOST_QUERIES]
    return [queries[number] for number in np.sort(chosen)]


def _classifier(model: Encoder, queries: Sequence[str], texts: BuildTexts):
    from sklearn.linear_model import LogisticRegression

    ids = texts.ids(_TABLE)
    count = min(len(queries), len(ids))
    if count < _FEWEST_QUERIES:
        raise HarpError(f"the build has {count} anchor texts: leave out --query-examples")
    chosen = np.sort(generator(_SEED, "raw anchors").choice(ids, count, replace=False))
    positives, negatives = model.queries(queries), model.queries(texts.queries(_TABLE, chosen))
    labels = np.repeat([1, 0], [len(positives), len(negatives)])
    classifier = LogisticRegression(class_weight="balanced", max_iter=1000)
    return classifier.fit(np.concatenate([positives, negatives]), labels)


build_query_likeness = BuildStage("query_likeness", ("corpus", "graph"), _options, _score, _check)
