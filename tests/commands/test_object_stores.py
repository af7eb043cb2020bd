"""Every step against an S3 server on this machine: the bytes of local folders, killed or not."""

import json
import logging
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid

import pytest
from test_build import tree
from werkzeug.serving import make_server
from werkzeug.wrappers import Response

from harp_plugin.cli import main

pytestmark = pytest.mark.integration

SECRETS = {"AWS_ACCESS_KEY_ID": "AKIAHARPTESTS00", "AWS_SECRET_ACCESS_KEY": "harp-tests-secret"}
KILLS = int(os.environ.get("HARP_TEST_KILLS", "2"))


class Faulty:
    """An S3 server that fails one request in ``every``; none where it is 0."""

    def __init__(self):
        from moto.server import DomainDispatcherApplication, create_backend_app

        self.served = DomainDispatcherApplication(create_backend_app)
        self.every = self.requests = self.failed = 0
        self.lock = threading.Lock()

    def __call__(self, environ, start_response):
        with self.lock:
            self.requests += 1
            fails = self.every and self.requests % self.every == 0
            self.failed += bool(fails)
        if fails:
            return Response("out of order", 503)(environ, start_response)
        return self.served(environ, start_response)


@pytest.fixture(scope="module")
def server():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = Faulty()
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    patch = pytest.MonkeyPatch()
    for name, value in SECRETS.items():
        patch.setenv(name, value)
    patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
    patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    patch.setenv("NO_PROXY", "127.0.0.1")
    patch.setenv("no_proxy", "127.0.0.1")
    yield application
    patch.undo()
    server.shutdown()
    thread.join()


@pytest.fixture
def bucket(server, monkeypatch, tmp_path):
    """A new bucket, and a folder for the copies of what is in it."""
    import s3fs

    monkeypatch.setenv("HARP_STORE_COPIES", str(tmp_path / "copies"))
    store = s3fs.S3FileSystem(skip_instance_cache=True)
    name = f"bucket-{uuid.uuid4()}"  # training seeds the generator of `random`
    store.mkdir(name)
    return Bucket(store, name)


class Bucket:
    def __init__(self, store, name):
        self.store, self.name = store, name
        self.url = f"s3://{name}"

    def put(self, path, name):
        self.store.put_file(str(path), f"{self.name}/{name}")

    def tree(self, folder):
        """The content of each file below a folder."""
        self.store.invalidate_cache()
        root = f"{self.name}/{folder}".rstrip("/")
        return {name[len(root) + 1 :]: self.store.cat_file(name) for name in self.store.find(root)}

    def remove(self, folder):
        self.store.invalidate_cache()
        self.store.rm(f"{self.name}/{folder}", recursive=True)


@pytest.fixture
def dump(shared_data):
    return shared_data / "wiki" / "simplewiki-core150.xml.bz2"


def build_line(source, output, model):
    line = ["build", source, "--output-dir", output, "--model", model, "--pages-per-shard", "30"]
    line += ["--min-words", "0", "--workers", "1", "--device", "cpu", "--quiet"]
    return [str(word) for word in line]


def whole_way(source, folder, build_model, model):
    """The commands from a dump to a reranked run."""
    build, queries, trained = (f"{folder}/{name}" for name in ("build", "queries", "model"))
    dataset = f"harp:{queries}/test"
    train = ["train", "--model", model, "--build-dir", build, "--tasks", '{"qdm": 1}']
    train += ["--output-dir", trained, "--max-steps", "4", "--save-steps", "2", "--use-cpu"]
    train += ["--max-length", "64", "--report-to", "none"]
    evaluate = ["evaluate", "--dataset", dataset, "--output-dir", f"{folder}/measured", "--quiet"]
    evaluate += ["--rerankers", f'{{"tiny": {{"model": "{trained}"}}}}', "--depth", "5"]
    rerank = ["rerank", f"{folder}/measured/runs/bm25.run", "--dataset", dataset, "--quiet"]
    rerank += ["--model", trained, "--output", f"{folder}/reranked.run", "--device", "cpu"]
    return [
        [*build_line(source, build, build_model), "--held-out-links", "0.3"],
        ["collect", build, "--output-dir", queries, "--quiet"],
        [str(word) for word in train],
        [*evaluate, "--device", "cpu"],
        rerank,
    ]


def test_the_whole_way(bucket, dump, tiny_bert, tmp_path, capsys):
    """Build, collect, train, evaluate and rerank by URLs give the bytes that paths give."""
    bucket.put(dump, dump.name)
    for file in tiny_bert.iterdir():
        bucket.put(file, f"tiny/{file.name}")
    url, local = bucket.url, tmp_path / "local"
    # The stage weights records the name of its model, so that name is the same.
    for line in (
        *whole_way(f"{url}/{dump.name}", url, tiny_bert, f"{url}/tiny"),
        *whole_way(dump, local, tiny_bert, tiny_bert),
    ):
        assert main(line) == 0
    assert bucket.tree("build") == tree(local / "build")
    assert bucket.tree("queries") == tree(local / "queries")
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert bucket.tree("model")[name] == (local / "model" / name).read_bytes()
    for name in ("runs/bm25.run", "runs/tiny.run"):
        assert bucket.tree("measured")[name] == (local / "measured" / name).read_bytes()
    assert bucket.tree("")["reranked.run"] == (local / "reranked.run").read_bytes()
    assert f"{url}/build".encode() in bucket.tree("model")["harp_manifest.json"]
    refuse_secrets(bucket, tmp_path, capsys.readouterr())


def refuse_secrets(bucket, folder, printed):
    texts = [*bucket.tree("").values(), *(part.encode() for part in printed)]
    texts += [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not [text for text in texts for secret in SECRETS.values() if secret.encode() in text]
    ours = {name: text for name, text in bucket.tree("").items() if "/index/" not in name}  # PISA's
    assert not [name for name, text in ours.items() if str(folder).encode() in text]


WITH_TIMES = re.compile(r"/checkpoint-|pisa\.log|training_args\.bin")
"""Files of transformers and PISA that say when and how long."""
CHAIN = "import json, sys; from harp_plugin.cli import main; "
CHAIN += "sys.exit(max(map(main, json.loads(sys.argv[1]))))"


def start(*lines):
    """Run commands one after the other in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", CHAIN, json.dumps(lines)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def finish(process):
    errors = process.communicate()[1].decode()
    assert process.returncode == 0, errors


def test_killed_on_machines_without_a_copy(bucket, dump, tiny_bert, tmp_path):
    """Commands go on from what the store has, until all has the bytes of no kill."""
    lines = whole_way(dump, f"{bucket.url}/all", tiny_bert, tiny_bert)
    began = time.monotonic()
    finish(start(*lines))
    seconds = time.monotonic() - began
    whole = bucket.tree("all")
    draw = random.Random(1)
    for kill in range(KILLS):
        if kill % 5 == 0:
            bucket.remove("all")
        shutil.rmtree(tmp_path / "copies", ignore_errors=True)
        process = start(*lines)
        time.sleep(seconds * draw.uniform(0.2, 1))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    shutil.rmtree(tmp_path / "copies")
    finish(start(*lines))
    left = bucket.tree("all")
    assert sorted(left) == sorted(whole)
    different = [name for name in whole if left[name] != whole[name]]
    assert [name for name in different if not WITH_TIMES.search(name)] == []


def test_a_store_that_fails_one_request_in_twenty(server, bucket, dump, tiny_bert, tmp_path):
    local = tmp_path / "local"
    assert main(build_line(dump, local, tiny_bert)) == 0
    server.every, server.failed = 20, 0
    try:
        assert main(build_line(dump, f"{bucket.url}/build", tiny_bert)) == 0
        assert server.failed > 3
        shutil.rmtree(tmp_path / "copies")
        assert main(build_line(dump, f"{bucket.url}/build", tiny_bert)) == 0
    finally:
        server.every = 0
    assert bucket.tree("build") == tree(local)


def test_hosts_with_folders_of_their_own(bucket, dump, tiny_bert, tmp_path, monkeypatch):
    """They share stages through the store alone; one dies, and the others make its shards."""
    mining = ["--negatives", "dense", "--negatives-encoder", str(tiny_bert)]
    line = [*build_line(dump, f"{bucket.url}/build", tiny_bert), *mining]
    alone = [*build_line(dump, f"{bucket.url}/alone", tiny_bert), *mining]
    for words in (alone, [*line, "--stages", "corpus", "graph"]):
        finish(start(words))

    def start_host(rank, stage, world):
        monkeypatch.setenv("HARP_STORE_COPIES", str(tmp_path / f"host{rank}"))
        return start([*line, "--stages", stage, "--rank", str(rank), "--world", str(world)])

    hosts = [start_host(rank, "weights", 3) for rank in range(3)]
    time.sleep(5)
    os.killpg(hosts[0].pid, signal.SIGKILL)
    hosts[0].communicate()
    for host in hosts[1:]:
        finish(host)
    for host in [start_host(rank, "dense_negatives", 2) for rank in range(2)]:
        finish(host)
    finish(start(line))
    assert bucket.tree("build") == bucket.tree("alone")


def test_what_cannot_be_read_is_one_line(server, bucket, capsys, monkeypatch):
    monkeypatch.setattr("harp_plugin.work.stores._WAITS", ())
    assert main(["inspect", f"{bucket.url}/missing"]) == 2
    assert capsys.readouterr().err == (
        f"harp: error: nothing lies at {bucket.url}/missing: check the URL\n"
    )
    line = ["rerank", "x.run", "--dataset", "vaswani", "--output", "out.run"]
    assert main([*line, "--model", "s3://harp-no-such-bucket/model"]) == 2
    assert "nothing lies at s3://harp-no-such-bucket/model" in capsys.readouterr().err
    assert main(["build", "x.xml", "--output-dir", "s3://harp-no-such-bucket/build"]) == 2
    assert capsys.readouterr().err.startswith("harp: error: s3://harp-no-such-bucket/build: ")
