"""The stage ``query_likeness``: how much each anchor text looks like a query (Anchor-DR)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import HarpError
from ..ranking.dense.encoder import Encoder
from ..ranking.windows import DocumentWindows
from ..sampling import generator
from ..work.manifest import read_content, read_manifest
from ..work.parquet import write_table
from ..work.provenance import OverwriteRules
from ..work.stage import Stage
from .queries import BuildTexts
from .shards import over_shards

__all__ = ["build_query_likeness", "query_likeness_stage", "read_queries"]

_TABLE = "anchor_texts"
_SCHEMA = pa.schema([("id", pa.int64()), ("score", pa.float32())])
_TEXTS_PER_SHARD = 20_000
_FEWEST_QUERIES = 20
_MOST_QUERIES = 10_000
_SEED = 42
_DECIMALS = 4


class _Shard(NamedTuple):
    name: str
    ids: np.ndarray


def build_query_likeness(
    directory: Path,
    examples: str,
    encoder: str,
    *,
    device: str | None = None,
    workers: int = 1,
    quiet: bool = True,
    rules: OverwriteRules | None = None,
) -> dict[str, Any]:
    """Score every anchor text by a classifier that tells queries from anchor texts.

    The classifier is Anchor-DR's (section 3.2, eq. 3), with a logistic regression over the vectors
    of an encoder in place of a small BERT. Queries are its positives, and as many distinct anchor
    texts, functional ones among them, its negatives. The table ``anchor_texts`` has the columns
    ``id`` and ``score``, the logit of being a query.

    Args:
        directory: build folder with finished corpus and graph stages.
        examples: queries, as `read_queries` takes them.
        encoder: of sentence-transformers: a folder, a hub name, or ``package:NAME``.
        device: such as ``cpu`` or ``cuda:1``; None takes a GPU where there is one.
        workers: has no effect: the threads of torch share the work.
        quiet: show no progress bar.
        rules: what may be done with other work in the folder.

    Returns:
        The stage's manifest.

    Raises:
        HarpError: there are too few queries or anchor texts, the encoder cannot be loaded, an
            earlier stage is unfinished or damaged, or the folder holds other work or other files.
    """
    del workers
    read_content(directory, "corpus", "graph")
    stage = query_likeness_stage(directory, examples, encoder, rules=rules)
    if stage.is_finished():
        return read_manifest(stage.folder)
    stage.start()
    texts = BuildTexts(directory, verify=True)
    model = Encoder(encoder, DocumentWindows(), device=device)
    classifier = _classifier(model, read_queries(examples), texts)

    def score(shard: _Shard) -> None:
        vectors = model.queries(texts.queries(_TABLE, shard.ids))
        scores = np.round(classifier.decision_function(vectors), _DECIMALS).astype(np.float32)
        batch = pa.RecordBatch.from_arrays([pa.array(shard.ids), pa.array(scores)], schema=_SCHEMA)
        path = stage.folder / _TABLE / f"{shard.name}.parquet"
        file = write_table(path, _SCHEMA, [batch])
        stage.finish_shard(f"{_TABLE}-{shard.name}", {_TABLE: len(shard.ids)}, {}, [file])

    ids = texts.ids(_TABLE)
    starts = range(0, len(ids), _TEXTS_PER_SHARD)
    parts = [ids[first : first + _TEXTS_PER_SHARD] for first in starts]
    shards = [_Shard(f"from-{part[0]:019d}", part) for part in parts]
    over_shards(score, {f"{_TABLE}-{s.name}": s for s in shards}, stage, 1, quiet)
    return stage.finish()


def query_likeness_stage(
    directory: Path, examples: str, encoder: str, rules: OverwriteRules | None = None
) -> Stage:
    """The stage, not started. Its inputs are None while they are unfinished.

    Raises:
        HarpError: the queries cannot be read, or there is no such encoder.
    """
    inputs = read_content(directory, "corpus", "graph", needed=False)
    inputs["encoder"] = Encoder(encoder, DocumentWindows()).fingerprint
    queries = generator(*read_queries(examples)).bytes(16).hex()
    recorded = {"examples": examples, "queries": queries, "encoder": encoder}
    packages = ("torch", "transformers", "tokenizers", "scikit-learn", "pyarrow")
    return Stage(directory / "query_likeness", recorded, inputs, packages, rules=rules)


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
    return [queries[place] for place in np.sort(chosen)]


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
