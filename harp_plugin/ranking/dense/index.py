"""The vectors of documents: an index of pyterrier_dr that knows which encoder made it."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from ...errors import HarpError
from ...sampling import stable_id
from ...work.artifact import (
    MANIFEST,
    Artifact,
    OverwriteRules,
    Provenance,
    read_finished,
    read_if_whole,
)
from ...work.provenance import INDEX_RULES
from ...work.records import changed_file, write_record
from ...work.writing import whole
from ..sharing import Shareable
from ..texts import Documents, check_docnos
from .documents import DocumentVectors
from .encoder import Encoder

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex

__all__ = ["DenseIndex", "open_flex_index", "read_index"]

_KIND = "dense index"
_FLEX_FILES = ("vecs.f4", "docnos.npids", "pt_meta.json")
_TEXTS = "texts.npy"
"""Hashes of the texts, in the order of their vectors."""
_OWN = rf"vectors-[0-9a-f]+-\d+\.npy|{'|'.join((*_FLEX_FILES, _TEXTS))}|.*\.faiss(/.*)?|.*\.np_topk"
"""Shards, the files of pyterrier_dr's index, and what it derives from them."""
_DOCUMENTS_PER_SHARD = 1000


@dataclass(eq=False, repr=False)
class DenseIndex(Shareable):
    """The vectors of all documents, in a folder that pyterrier_dr's ``FlexIndex`` opens too.

    Vectors are first written in shards of 1,000 documents. A build that was stopped or killed
    resumes after the last finished shard. Of several hosts that share the folder, each encodes
    ``shards[rank::world]``, and whoever finds all of them there makes the index.
    Vectors of the same texts are taken from another index of the same encoder in ``folder``.

    Args:
        documents: what is encoded: documents, or their passages.
        folder: holds an index for each collection, model and settings.
        encoder: makes the vectors.
        rules: what may be replaced where ``folder`` is that of the index itself; None where it is
            not.
        quiet: show no progress bar.
        rank: number of this host, from 0.
        world: how many hosts share the folder.
    """

    documents: Documents
    folder: Path
    encoder: Encoder
    _: KW_ONLY
    rules: OverwriteRules | None = None
    quiet: bool = True
    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        settings = {**self.documents.documents_identity, **self.encoder.settings}
        inputs = {"model": self.encoder.fingerprint}
        provenance = Provenance(settings, self.encoder.versions, inputs)
        self.folder = self.folder if self.rules else self.folder / f"dense-{provenance.key}"
        rules = self.rules or INDEX_RULES
        self.artifact = Artifact(self.folder, _KIND, provenance, rules, own=_OWN)

    @cached_property
    def flex(self) -> FlexIndex:
        """The index of pyterrier_dr, which has been made."""
        return open_flex_index(self.folder)

    def make(self) -> bool:
        """Make the index, unless it is finished.

        Returns:
            Whether it was made now; False too where other hosts have not encoded their shards yet.

        Raises:
            HarpError: the folder holds another index or other files, a document cannot be encoded,
                or pyterrier_dr is not installed.
        """
        open_flex_index(self.folder)
        if self.artifact.is_whole():  # without a lock: a folder that cannot be written has none
            self.artifact.tell_other_versions()
            return False
        lock = self.artifact.turn()
        with lock:
            if self.artifact.is_finished():
                return False
            self.artifact.start()
        docnos, hashes = self._encode()
        with lock:
            shards = [self._shard(n) for n in range(-(-len(docnos) // _DOCUMENTS_PER_SHARD))]
            is_made = not self.artifact.is_finished() and all(path.exists() for path in shards)
            if is_made:
                self._write_flex(docnos, shards)
                np.save(self.folder / _TEXTS, np.array(hashes, np.int64))
                self.artifact.commit([*_FLEX_FILES, _TEXTS], encoder=self._encoder_path)
            if self.artifact.is_finished():
                for path in self.folder.glob("vectors-*"):
                    path.unlink()
        return is_made

    def search(self, queries: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Compare queries with all documents, as `DocumentVectors.search` does."""
        return self._vectors_of_documents.search(queries, count)

    @cached_property
    def _vectors_of_documents(self) -> DocumentVectors:
        most = self.artifact.provenance.settings.get("max_passages", 1)
        return DocumentVectors.read(self.flex, most)

    def _encode(self) -> tuple[list[str], list[int]]:
        """Encode this host's shards; return the docnos and hashes of the texts of all documents."""
        documents, docnos, hashes = self.documents.documents(), list[str](), list[int]()
        earlier = self._earlier_vectors()
        options: dict[str, Any] = {"total": self.documents.document_count, "disable": self.quiet}
        with tqdm(desc=f"encode {self.documents.name}", unit="doc", **options) as bar:
            while part := list(islice(documents, _DOCUMENTS_PER_SHARD)):
                path = self._shard(len(docnos) // _DOCUMENTS_PER_SHARD)
                is_own = len(docnos) // _DOCUMENTS_PER_SHARD % self.world == self.rank
                docnos += (docno for docno, _ in part)
                hashes += (stable_id(text) for _, text in part)
                if is_own and not path.exists():
                    vectors = self._vectors([text for _, text in part], *earlier)
                    with whole(path) as temporary, temporary.open("wb") as file:
                        np.save(file, vectors)
                bar.update(len(part))
        if not docnos:
            raise HarpError(f"{self.documents.name} has no documents: name another dataset")
        check_docnos(docnos)
        return docnos, hashes

    def _vectors(self, texts: list[str], earlier: pd.Series, vectors: np.ndarray) -> np.ndarray:
        """Encode texts, but for those whose earlier vectors are in known rows."""
        rows = earlier.reindex([*map(stable_id, texts)], fill_value=-1).to_list()
        new = [text for text, row in zip(texts, rows, strict=True) if row < 0]
        encoded = iter(self.encoder.documents(new) if new else ())
        return np.stack([next(encoded) if row < 0 else vectors[row] for row in rows])

    def _earlier_vectors(self) -> tuple[pd.Series, np.ndarray]:
        """Return the vectors of another index of the same encoder, and their rows by text hash."""
        own = self.artifact.provenance
        for folder in () if self.rules else sorted(self.folder.parent.glob("dense-*")):
            record = read_if_whole(folder / MANIFEST) or {"files": ()}
            files = record.get("files", ())
            if _TEXTS not in files or changed_file(folder, files, whole=False):
                continue
            stored = Provenance.from_record(record)
            free = {n: own.settings[n] for n in ("documents", "max_passages") if n in own.settings}
            settings = {**stored.settings, **free}
            if own.agrees_with(replace(stored, settings=settings), OverwriteRules()):
                hashes, rows = np.unique(np.load(folder / _TEXTS), return_index=True)
                return pd.Series(rows, hashes), open_flex_index(folder).payload()[1]
        return pd.Series([], dtype=np.int64), np.zeros((0, 0))

    def _write_flex(self, docnos: list[str], shards: list[Path]) -> None:
        """Write the files of a ``FlexIndex``, with the docnos as they are.

        The shorter forms of npids fail for a single name, and for names whose first characters
        share a byte but not all of them; in numbered names they do not find each one again.
        """
        from npids import Lookup
        from npids.codecs import FwdFixedBytes
        from pyterrier_dr import FlexIndex

        vectors, names, meta = (self.folder / name for name in _FLEX_FILES)
        with whole(vectors) as path, path.open("wb") as file:
            for shard in shards:
                part = np.load(shard, allow_pickle=False).astype(np.float32)
                file.write(part.tobytes())
        with whole(names) as path, Lookup.builder(path, min_block=len(docnos)) as builder:
            builder.seeded_formats = {FwdFixedBytes.NAME: FwdFixedBytes(prefix="")}
            for docno in docnos:
                builder.add(docno)
        kind = {"type": FlexIndex.ARTIFACT_TYPE, "format": FlexIndex.ARTIFACT_FORMAT}
        write_record(meta, {**kind, "vec_size": part.shape[1], "doc_count": len(docnos)})

    def _shard(self, number: int) -> Path:
        versions = stable_id(*self.encoder.versions.values()) % 16**8
        return self.folder / f"vectors-{versions:08x}-{number:05d}.npy"

    @property
    def _encoder_path(self) -> str:
        """The name of the encoder; its folder is named from that of the index."""
        path = Path(self.encoder.model).expanduser()
        if not path.is_dir():
            return self.encoder.model
        return f"./{os.path.relpath(path.resolve(), self.folder.resolve())}"


def read_index(folder: Path) -> dict[str, Any]:
    """Read the record of an index that `DenseIndex` made; ``encoder`` is a path or a name.

    Raises:
        HarpError: there is none, or it is damaged.
    """
    if not (folder / MANIFEST).is_file():
        raise HarpError(
            f"{folder} is not a finished index: make it with `harp index DATASET --model MODEL "
            f"--output-dir {folder}`"
        )
    record = read_finished(folder)
    if record["encoder"].startswith("."):
        record["encoder"] = os.path.normpath(folder.resolve() / record["encoder"])
    return record


def open_flex_index(folder: Path) -> FlexIndex:
    """Open an index of pyterrier_dr, or name the folder of one that is to be made."""
    from pyterrier_dr import FlexIndex

    return FlexIndex(str(folder), verbose=False)
