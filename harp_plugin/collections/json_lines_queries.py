"""Judged queries from Tevatron's JSON lines: what `harp export` and Tevatron's scripts write."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import HarpError
from ..options import checked
from .judged_queries import JudgedQueries, JudgedQuery, few_shot_order, read_query_ids

__all__ = ["JsonLinesQueries"]


class _Line(NamedTuple):
    """The index of its file, its offset in bytes, and its number from 1, of a line."""

    file: int
    offset: int
    number: int
    query_id: str


_Passage = tuple[str, float | None, str | None]
"""The text of a passage, its score and its id."""


class JsonLinesQueries(JudgedQueries):
    """Judged queries from lines of ``query``, ``positive_passages`` and ``negative_passages``.

    A line is read again whenever documents are drawn from it. Its id is ``query_id``, else its
    number. A line of `harp export` with ``"swapped": true`` is swapped back: its passages are
    queries, and its query is a document. A passage's ``score``, as Tevatron names it, is the
    teacher's score.

    Args:
        files: paths of plain JSON lines.
        fields: the passage fields that make up a text, joined by a space; empty ones are left out.
        teacher: whether a teacher's scores are read. Passages without one are then not drawn.
        queries: how many query ids are drawn by the seed, None for all. Fewer nest in more.
        query_ids: file of the ids that may be taken, one a line.
        seed: of that draw.

    Raises:
        HarpError: a file cannot be read, a line is malformed, or too few lines are left.
    """

    def __init__(
        self,
        files: Sequence[str],
        *,
        fields: Sequence[str] = ("title", "text"),
        teacher: bool = False,
        queries: int | None = None,
        query_ids: str | None = None,
        seed: int = 42,
    ) -> None:
        super().__init__(", ".join(files), teacher=teacher)
        self.files = list(files)
        self.fields = tuple(fields)
        digest = hashlib.sha256()
        usable = [
            line for file in range(len(self.files)) for line in self._usable_lines(file, digest)
        ]
        allowed = read_query_ids(query_ids, {line.query_id for line in usable}, self.source)
        ids = few_shot_order(allowed, seed)[:queries]
        self._check_enough(len(ids), queries)
        chosen = set(ids)
        self._lines = [line for line in usable if line.query_id in chosen]
        digest.update("\n".join(ids).encode("utf-8", "surrogatepass"))
        self.fingerprint = digest.hexdigest()

    def __len__(self) -> int:
        return len(self._lines)

    def judged(self, index: int) -> JudgedQuery:
        """Return the line at an index, its documents by their texts."""
        line = self._lines[index]
        path = self.files[line.file]
        with _reading(path), Path(path).open("rb") as file:
            file.seek(line.offset)
            content = file.readline()
        return self._parsed(content, line.query_id, f"{path}, line {line.number}").scored()

    def texts(self, documents: Sequence[str]) -> list[str]:
        """Return the documents themselves, which are texts."""
        return list(documents)

    def _usable_lines(self, file: int, digest: Any) -> list[_Line]:
        """Return the lines of a file that can be learnt from; the others are counted."""
        path, lines, offset = self.files[file], [], 0
        with _reading(path), Path(path).open("rb") as contents:
            for number, content in enumerate(contents, start=1):
                digest.update(content)
                if content.strip():
                    where = f"{path}, line {number}"
                    judged = self._parsed(content, f"{file}:{number}", where)
                    if reason := self._reason(judged):
                        self.drops[reason] += 1
                    else:
                        lines.append(_Line(file, offset, number, judged.id))
                offset += len(content)
        return lines

    def _reason(self, judged: JudgedQuery) -> str | None:
        """Return why a line cannot be learnt from, if it cannot."""
        if not judged.positives:
            return "without a positive passage that has text"
        if not judged.negatives:
            return "without a negative passage that has a text of its own"
        scored = self._take_scored(judged)
        return scored if isinstance(scored, str) else None

    def _parsed(self, line: bytes, default_id: str, where: str) -> JudgedQuery:
        try:
            row = json.loads(line)
        except ValueError as error:
            raise HarpError(f"{where}: not JSON ({error}): write one object a line") from error
        row = checked(where, dict[str, Any], row)
        query = checked(f"{where}: query", str, row.get("query"))
        positives = self._passages(row, "positive_passages", where)
        negatives = self._passages(row, "negative_passages", where)
        passages = [*negatives, *positives]
        scores = {text: score for text, score, _ in passages if score is not None}
        texts = [text for text, _, _ in positives]
        return JudgedQuery(
            default_id if (id := row.get("query_id")) is None else str(id),
            query,
            texts,
            [text for text, _, _ in negatives if text not in texts],
            row.get("swapped") is True,
            scores if self.has_teacher_scores else None,
            {text: id for text, _, id in passages if id is not None},
        )

    def _passages(self, row: Mapping[str, Any], key: str, where: str) -> list[_Passage]:
        """Read the passages that have a text, with a teacher's scores."""
        where = f"{where}: {key}"
        with_text: list[_Passage] = []
        for passage in checked(where, list[dict[str, Any]], row.get(key)):
            named = [field for field in self.fields if field in passage]
            texts = [checked(f"{where}: {field}", str, passage[field]) for field in named]
            if not texts:
                raise HarpError(f"{where}: a passage has no text in {', '.join(self.fields)}")
            score = passage.get("score") if self.has_teacher_scores else None
            score = checked(f"{where}: score", float | None, score)
            text = " ".join(filter(None, texts))
            id = passage.get("docid")
            if text.strip():
                with_text.append((text, score, None if id is None else str(id)))
        return with_text


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HarpError(f"cannot read train_file {path}: {error}") from error
