"""The vectors of a dataset in the index format of pyterrier_dr, with a record of the encoder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from ...collections.dataset import Dataset
from ...errors import HarpError
from ...work.hashes import changed_file, describe_files
from ...work.lock import one_of_several_writers, one_writer
from ...work.provenance import MadeFrom, OverwriteRules
from ...work.records import NOT_WRITTEN_BY_HARP, read_own_record, read_record, write_record
from ...work.sharing import ALONE, Share
from ...work.writing import TEMPORARY
from .encoder import Encoder
from .index import DenseIndex

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex

__all__ = ["FLEX_FILES", "FlexFolder", "open_flex_index"]

FLEX_FILES = ("vecs.f4", "docnos.npids", "pt_meta.json")
"""The files of an index of pyterrier_dr, apart from what it derives from them."""
_RECORD = "harp_index.json"
_VECTORS = "vectors"


class FlexFolder:
    """A folder that is an index of pyterrier_dr, and knows which encoder made it.

    Vectors are first written in shards, beside the index. A build that was stopped or killed goes
    on behind the last finished shard.

    Args:
        folder: of the index.
        dataset: what is encoded.
        encoder: makes the vectors, one for each document.
        rules: what may be replaced.
        quiet: show no progress bar.
        share: of this host, where several encode; whoever ends last finds the index finished.
    """

    def __init__(
        self,
        folder: Path,
        dataset: Dataset,
        encoder: Encoder,
        *,
        rules: OverwriteRules | None = None,
        quiet: bool = True,
        share: Share = ALONE,
    ) -> None:
        self.folder = folder
        self.dataset = dataset
        self.encoder = encoder
        self.rules = rules or OverwriteRules()
        self.quiet = quiet
        self.share = share

    @property
    def made_from(self) -> MadeFrom:
        """The documents, the model and the settings; a model's folder is named from the index."""
        settings = {**self.dataset.documents_identity, **self.encoder.settings}
        name, path = self.encoder.model, Path(self.encoder.model).expanduser()
        if path.is_dir():
            name = f"./{os.path.relpath(path.resolve(), self.folder.resolve())}"
        return MadeFrom(settings | {"encoder": name}, self.encoder.versions)

    def make(self) -> bool:
        """Make the index, unless it is there.

        Returns:
            Whether it was made now.

        Raises:
            HarpError: the folder holds another index or other files, a document cannot be encoded,
                or pyterrier_dr is not installed.
        """
        flex = open_flex_index(self.folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise HarpError(f"{self.folder} is a file: name another {self.rules.output}")
        if self._is_finished():
            if self.share.world == 1:
                self._clean()
            return False
        vectors = DenseIndex(
            self.dataset,
            self.folder / _VECTORS,
            self.encoder,
            quiet=self.quiet,
            share=self.share,
            is_needed=lambda: not (self.folder / _RECORD).exists(),
        )
        with self._writer():
            with self._turn():
                if (self.folder / _RECORD).exists() and not self._is_finished():
                    self._remove()
            is_made = self._make_from(vectors, type(flex))
            if self.share.world == 1:
                self._clean()
        return is_made

    def _make_from(self, vectors: DenseIndex, flex: type[FlexIndex]) -> bool:
        """Make the vectors, and the index from them; return whether this host made the index."""
        try:
            vectors.make()
            with self._turn():
                if self._is_finished():
                    return False
                self._write(flex, vectors)
                return True
        except FileNotFoundError:
            if not self._is_finished():
                raise
            return False

    def _writer(self) -> AbstractContextManager[None]:
        if self.share.world == 1:
            return one_writer(self.folder)
        return one_of_several_writers(self.folder, self._clean)

    def _clean(self) -> None:
        shutil.rmtree(self.folder / _VECTORS, ignore_errors=True)

    def _turn(self) -> FileLock:
        return FileLock(self.folder / f".{_VECTORS}.lock")

    def _write(self, flex: type[FlexIndex], vectors: DenseIndex) -> None:
        unfinished = self.folder / f"{_VECTORS}.flex{TEMPORARY}"
        shutil.rmtree(unfinished, ignore_errors=True)
        flex(str(unfinished), verbose=False).index(_documents(vectors))
        for name in FLEX_FILES:
            (unfinished / name).replace(self.folder / name)
        unfinished.rmdir()
        self._write_record()

    def _is_finished(self) -> bool:
        path = self.folder / _RECORD
        if not path.exists():
            is_begun = (self.folder / _VECTORS).is_dir()
            if not is_begun and any((self.folder / name).exists() for name in FLEX_FILES):
                raise HarpError(f"{self.folder} {NOT_WRITTEN_BY_HARP}: name another --output-dir")
            return False
        record = read_own_record(path, self.rules.output)
        stored = MadeFrom(record["settings"], record["versions"])
        same = self.made_from.can_use(self.folder, stored, self.rules)
        return same and changed_file(self.folder, record["files"]) is None

    def _remove(self) -> None:
        for name in (_RECORD, *FLEX_FILES):
            (self.folder / name).unlink(missing_ok=True)

    def _write_record(self) -> None:
        made = self.made_from
        content = {"settings": made.settings, "versions": made.versions}
        files = describe_files(self.folder, FLEX_FILES)
        write_record(self.folder / _RECORD, content | {"files": files})

    @staticmethod
    def settings_of(folder: Path) -> dict[str, Any]:
        """Read what an index was made from.

        Raises:
            HarpError: there is no such folder, or it is no finished index of harp's.
        """
        if not (folder / _RECORD).is_file():
            raise HarpError(
                f"{folder} is no finished index: make it with `harp index DATASET --model MODEL "
                f"--output-dir {folder}`"
            )
        settings = read_record(folder / _RECORD)["settings"]
        if settings["encoder"].startswith("."):
            settings["encoder"] = os.path.normpath(folder.resolve() / settings["encoder"])
        return settings


def open_flex_index(folder: Path) -> FlexIndex:
    """Open an index of pyterrier_dr, or name the place of one that is to be made.

    Raises:
        HarpError: pyterrier_dr is not installed.
    """
    try:
        from pyterrier_dr import FlexIndex
    except ImportError as error:
        raise HarpError(
            f"pyterrier_dr cannot be imported ({error}): run `pip install 'harp-plugin[dense]'`"
        ) from error
    return FlexIndex(str(folder), verbose=False)


def _documents(vectors: DenseIndex) -> Iterator[dict[str, Any]]:
    docnos = iter(vectors.docnos)
    for shard in vectors.shards():
        for vector in shard.content.vectors:
            yield {"docno": next(docnos), "doc_vec": vector}
