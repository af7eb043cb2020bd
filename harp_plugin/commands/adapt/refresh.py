"""`harp adapt` again: the pages of a finished pipeline are replaced, and its models stay."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from ...collections.dataset import Dataset
from ...collections.datasets import DOCUMENTS, PREFIX
from ...collections.documents import INDEX
from ...corpus.options import CorpusOptions
from ...errors import HarpError
from ...models.loading import model_fingerprint
from ...sampling import stable_id
from ...work.artifact import MANIFEST, Artifact, Provenance, read_if_whole
from ...work.manifest import read_content
from ...work.provenance import scoring_versions
from ...work.records import file_hash, read_record, write_record
from ...work.writing import TEMPORARY
from .options import AdaptOptions
from .ranking import make_indexes

__all__ = ["pipeline_record", "refresh"]

_FREE = {"output_dir", "budget", "retrain", "queries", "qrels"}
"""Options that may change from run to run."""


def pipeline_record(
    sources: Sequence[str | Path], options: AdaptOptions, corpus: CorpusOptions | None
) -> Artifact:
    """Return the record of the pipeline of a folder, which is written when all steps are finished.

    Raises:
        HarpError: a model is missing, or the folder has a pipeline, or one that was begun, of other
            options or models, and the options do not allow to replace it.
    """
    names = [name for name in AdaptOptions.__annotations__ if name not in _FREE]
    settings = {name: getattr(options, name) for name in names} | asdict(corpus or CorpusOptions())
    settings["SOURCE"] = [Path(str(source)).name for source in sources]
    models = {"model": options.model, "encoder": options.cosine_encoder}
    inputs = {name: model_fingerprint(model) for name, model in models.items()}
    if (recipe := Path(options.training)).is_file():
        inputs["training"] = file_hash(recipe)
    made_from = Provenance(settings, scoring_versions(), inputs)
    record = Artifact(options.folder, "pipeline", made_from, options.rules, is_shared=True)
    if stored := record.read():
        made_from.refuse_replacing(options.folder, Provenance.from_record(stored), options.rules)
    return record


def refresh(options: AdaptOptions, collect: Callable[[Path], object]) -> str:
    """Put the pages of the build in the place of those that a finished pipeline searches.

    Their collection and its indexes are made first. Then the file of the documents is replaced,
    and the pipeline, which is the same, finds the indexes of just these documents.

    Args:
        options: of the command.
        collect: makes the collection of the build in a folder.

    Returns:
        What has changed; an empty text if nothing has.

    Raises:
        HarpError: as ``collect`` does, or the pipeline cannot be loaded.
    """
    old, new = options.folder / "collection", options.folder / f"collection{TEMPORARY}"
    made_from = (read_if_whole(old / MANIFEST) or {}).get("inputs")
    if made_from == read_content(options.folder / "build", "corpus", "graph"):
        return ""
    collect(new)
    before, after = map(_texts, (old, new))
    changed = sum(before[docno] != after[docno] for docno in before.keys() & after.keys())
    _make_indexes(options.folder, new)
    _publish(new, old)
    _remove_other_indexes(options.folder / "index", old)
    added, deleted = len(after.keys() - before.keys()), len(before.keys() - after.keys())
    pages = "page" if changed == 1 else "pages"
    return f"{changed:,} {pages} changed, {added:,} new, {deleted:,} deleted (of {len(after):,})"


def _texts(collection: Path) -> dict[str, int]:
    """Return the hash of the title and the text of each page."""
    documents = Dataset(f"{PREFIX}{collection}").documents()
    return {docno: stable_id(text) for docno, text in documents}


def _make_indexes(folder: Path, collection: Path) -> None:
    """Make the indexes that the pipeline of a folder needs, of another collection in the folder."""
    from ...ranking import HarpPipeline

    path = HarpPipeline.load(folder).save(collection)
    text = json.dumps(read_record(path)).replace(f'"{PREFIX}../collection/', f'"{PREFIX}')
    write_record(path, json.loads(text))
    make_indexes(HarpPipeline.load(collection), f"{PREFIX}{collection}")
    path.unlink()


def _publish(new: Path, old: Path) -> None:
    """Move the files of a collection over those of another; it is whole at each moment."""
    (old / DOCUMENTS).with_suffix(INDEX).unlink(missing_ok=True)  # it is of the old documents
    files = [path for path in new.rglob("[!.]*") if path.is_file()]
    for path in sorted(files, key=lambda path: (path.name == MANIFEST, path.name != DOCUMENTS)):
        path.replace(old / path.relative_to(new))
    shutil.rmtree(new)


def _remove_other_indexes(folder: Path, collection: Path) -> None:
    """Remove the indexes that are not of a collection."""
    documents = Dataset(f"{PREFIX}{collection}").documents_hash
    for path in folder.iterdir():
        record = read_if_whole(path / MANIFEST)
        if record is not None and str(documents) not in json.dumps(record["settings"]):
            with suppress(HarpError):  # it has files of others
                Artifact(path, record["kind"], Provenance.from_record(record)).clear()
