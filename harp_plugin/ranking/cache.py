"""Scores kept on disk across runs, in the score cache of pyterrier-caching."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import HarpError
from ..work.writing import remove_temporary_of, whole_folder, write_text

__all__ = ["ScoreCache"]

_COLUMNS = {"group": "query_sha256", "key": "text_sha256", "value": "kept_score"}
_LOCKED_SECONDS = 60
_KEYS_AT_ONCE = 500
_CHECK_BITS = 21
"""A kept number holds the 32 bits of a score and these, 53 together: a float64 holds it too."""

_maker_lock = threading.Lock()


class ScoreCache:
    """Scores of (query, text) pairs by one model under one set of options.

    Each set of settings has a subfolder of its own, so that a changed model or option never meets
    old scores. Scores are committed at each call of `scores`: what a call has returned
    outlives a kill. Several processes and threads may use one folder at once. Each score is kept
    with check bits of itself and of its pair, so that damage is noticed.

    Args:
        folder: made when needed; shared by models and options.
        settings: everything a score depends on besides query and text; JSON types.

    Raises:
        HarpError: pyterrier-caching is not installed.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: dict[str, Any]) -> None:
        try:
            from pyterrier_caching import ScorerCache
        except ModuleNotFoundError as error:
            raise HarpError(
                f"a cache needs {error.name}: run `pip install 'harp-plugin[cache]'`"
            ) from error
        self._class = ScorerCache
        self._settings = json.dumps(settings, sort_keys=True, indent=1) + "\n"
        self.folder = Path(folder).expanduser() / _sha256(self._settings)[:32]

    def scores(
        self,
        queries: Sequence[str],
        texts: Sequence[str],
        pairs: np.ndarray,
        score: Callable[[np.ndarray], np.ndarray],
    ) -> np.ndarray:
        """Read the scores that are kept, and score and keep the others.

        Args:
            queries: distinct queries.
            texts: distinct texts.
            pairs: (n, 2) distinct pairs of places in them.
            score: takes the places among ``pairs`` of those that are not kept, (m,), and gives
                their (m,) scores.

        Returns:
            (n,) float32.

        Raises:
            HarpError: the cache is damaged, holds something else, or cannot be read or written.
        """
        query_hashes = [_sha256(query) for query in queries]
        text_hashes = [_sha256(text) for text in texts]
        keys = [(query_hashes[query], text_hashes[text]) for query, text in pairs.tolist()]
        with self._open() as database:
            kept = self._read(database, keys)
        missing = [place for place, key in enumerate(keys) if key not in kept]
        if missing:
            scores = score(np.array(missing)).astype(np.float32)
            rows = [
                (*keys[place], _packed(*keys[place], one_score))
                for place, one_score in zip(missing, scores, strict=True)
            ]
            with self._open() as database:
                self._keep(database, rows)
                kept = self._read(database, keys)
        try:
            return np.array([kept[key] for key in keys], dtype=np.float32)
        except KeyError:
            raise self._damaged("it loses what is written to it") from None

    def _read(
        self, database: sqlite3.Connection, keys: list[tuple[str, str]]
    ) -> dict[tuple[str, str], float]:
        texts_of_query: dict[str, list[str]] = {}
        for query, text in keys:
            texts_of_query.setdefault(query, []).append(text)
        kept: dict[tuple[str, str], float] = {}
        for query, texts in texts_of_query.items():
            for start in range(0, len(texts), _KEYS_AT_ONCE):
                part = texts[start : start + _KEYS_AT_ONCE]
                marks = ", ".join("?" * len(part))
                rows = database.execute(
                    f"SELECT key, value FROM cache WHERE [group] = ? AND key IN ({marks})",
                    [query, *part],
                )
                for text, value in rows:
                    kept[query, text] = self._unpacked(query, text, value)
        return kept

    def _keep(self, database: sqlite3.Connection, rows: list[tuple[str, str, int]]) -> None:
        """Write scores; those that another process has written in the meantime stay."""
        with database:
            database.executemany(
                "INSERT OR IGNORE INTO cache ([group], key, value) VALUES (?, ?, ?)", rows
            )

    def _unpacked(self, query: str, text: str, value: Any) -> float:
        if isinstance(value, int) and 0 <= value < 1 << 32 + _CHECK_BITS:
            (score,) = struct.unpack("<f", struct.pack("<I", value >> _CHECK_BITS))
            if _packed(query, text, score) == value:
                return score
        raise self._damaged("a score is not as it was written")

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            if not self._is_made():
                self._make()
            self._check()
            with self._class(self.folder, None, **_COLUMNS) as cache:
                cache.db.execute(f"PRAGMA busy_timeout = {_LOCKED_SECONDS * 1000}")
                yield cache.db
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise HarpError(f"cache {self.folder} is in use: try again") from error
            raise self._damaged(str(error)) from error
        except OSError as error:
            raise HarpError(f"cannot use cache {self.folder}: {error}") from error

    def _is_made(self) -> bool:
        return self.folder.is_file() or (self.folder.is_dir() and any(self.folder.iterdir()))

    def _make(self) -> None:
        """Make an empty cache under a temporary name and rename it."""
        with _maker_lock:
            if self._is_made():
                return
            try:
                with whole_folder(self.folder) as temporary:
                    self._class(temporary, None, **_COLUMNS).close()
                    write_text(temporary / "settings.json", self._settings)
            except (OSError, sqlite3.Error):
                # Another process may have made the cache, and have removed what is left of others.
                if not self._is_made():
                    raise
            remove_temporary_of(self.folder)

    def _check(self) -> None:
        """Check that the folder is a cache of these settings; nothing that it holds is run.

        Raises:
            HarpError: the folder is no such cache.
        """
        expected = {"type": "scorer_cache", "format": "sqlite3", "pickle": None, **_COLUMNS}
        try:
            meta = json.loads((self.folder / "pt_meta.json").read_text(encoding="utf-8"))
            settings = (self.folder / "settings.json").read_text(encoding="utf-8")
        except (OSError, ValueError, RecursionError) as error:
            raise self._damaged(f"{type(error).__name__}: {error}") from error
        if not isinstance(meta, dict) or any(meta.get(k) != v for k, v in expected.items()):
            raise self._damaged("its pt_meta.json is of another cache")
        if settings != self._settings:
            raise self._damaged("its settings.json is of another cache")
        database = self.folder / "db.sqlite3"
        if not database.is_file() or not database.stat().st_size:
            raise self._damaged("it has no db.sqlite3")

    def _damaged(self, reason: str) -> HarpError:
        return HarpError(
            f"cache {self.folder} is damaged or was not written by harp ({reason:.200}): delete "
            "that folder, or name another cache"
        )


def _packed(query: str, text: str, score: float) -> int:
    """Join the bits of a score and check bits of the hash of query, text and score."""
    (bits,) = struct.unpack("<I", struct.pack("<f", score))
    digest = hashlib.sha256(f"{query} {text} {bits}".encode()).digest()
    return bits << _CHECK_BITS | int.from_bytes(digest[:4]) >> 32 - _CHECK_BITS


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
