"""Scores kept on disk across runs, in the score cache of pyterrier-caching."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from ..errors import HarpError

COLUMNS = {"group": "query_sha256", "key": "text_sha256", "value": "kept_score"}
LOCKED_MILLISECONDS = 60_000
ATTEMPTS = 5


class ScoreCache:
    """Scores of (query, text) pairs by one model under one set of options.

    Each set of settings has a folder of its own below the given one, so a changed model or option
    never meets old scores. Scores are committed at each call of `scores`: what a call has returned
    outlives a kill. Several processes may use one folder at once.

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
        self._settings = json.dumps(settings, sort_keys=True, indent=1)
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
            HarpError: the cache cannot be read or written.
        """
        keys = [_sha256(text) for text in queries], [_sha256(text) for text in texts]
        frame = pd.DataFrame(
            {
                COLUMNS["group"]: [keys[0][query] for query in pairs[:, 0]],
                COLUMNS["key"]: [keys[1][text] for text in pairs[:, 1]],
                "place": np.arange(len(pairs)),
            }
        )
        misses = _Misses(score, len(pairs))
        with self._open(misses) as cache:
            for _ in range(ATTEMPTS):
                try:
                    kept = cache.transform(frame)[COLUMNS["value"]]
                    return kept.to_numpy().astype(np.float32)
                except sqlite3.IntegrityError:  # another process has just kept one of ours
                    cache.db.rollback()
        raise HarpError(f"cache {self.folder} is written by too many at once: try again")

    @contextlib.contextmanager
    def _open(self, misses: _Misses) -> Iterator[Any]:
        try:
            if not (self.folder / "pt_meta.json").is_file():
                self._create()
            with self._class(self.folder, misses, **COLUMNS) as cache:
                cache.db.execute(f"PRAGMA busy_timeout = {LOCKED_MILLISECONDS}")
                yield cache
        except (OSError, sqlite3.Error) as error:
            raise HarpError(f"cannot use cache {self.folder}: {error}") from error

    def _create(self) -> None:
        """Make an empty cache under a temporary name and rename it."""
        temporary = self.folder.with_name(f"{self.folder.name}.{os.getpid()}.tmp")
        shutil.rmtree(temporary, ignore_errors=True)
        self._class(temporary, None, **COLUMNS).close()
        (temporary / "settings.json").write_text(self._settings + "\n", encoding="utf-8")
        try:
            temporary.rename(self.folder)
        except OSError:
            shutil.rmtree(temporary)
            if not self.folder.is_dir():
                raise


class _Misses(pt.Transformer):
    """Scores what the cache lacks, each pair once, however often the cache asks."""

    def __init__(self, score: Callable[[np.ndarray], np.ndarray], count: int) -> None:
        self._score = score
        self._scores = np.full(count, np.nan)

    def transform_inputs(self) -> list[list[str]]:
        return [["place"]]

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        places = inp["place"].to_numpy()
        new = places[np.isnan(self._scores[places])]
        if len(new):
            self._scores[new] = self._score(new)
        return inp.assign(**{COLUMNS["value"]: self._scores[places]})


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
