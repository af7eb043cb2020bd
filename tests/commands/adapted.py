"""A folder as `harp adapt` leaves it, made in seconds without any training, and its server."""

import json
import re
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

import uvicorn

from harp_plugin import HarpFusion, HarpPipeline
from harp_plugin.commands.serve import ServeOptions
from harp_plugin.commands.serve.app import make_app
from harp_plugin.ranking.dense import DenseCosine
from harp_plugin.ranking.fielded import FieldedBm25, FieldedIndex

PAGES = {
    "guide/install.md": (
        "Install",
        "Wait for a while. " * 30 + "Installing needs a <b>network</b>.",
    ),
    "guide/remove.md": ("Remove", "The uninstaller removes the files that were installed."),
    "café.md": ("Café", "A café in Zürich serves naïve \x1b[2J search engineers."),
    "guide/50%%20faster?.md": ("Speed", "Half of the time."),
    "index.md": ("Start", "Welcome. Read how to install, or how to remove."),
}


def make_adapted(folder, model):
    """Make the collection, the indexes and the pipeline."""
    (folder / "collection").mkdir(parents=True)
    pages = (
        {"doc_id": docno, "title": title, "text": text, "anchor_text": ""}
        for docno, (title, text) in PAGES.items()
    )
    lines = "".join(f"{json.dumps(page)}\n" for page in pages)
    (folder / "collection" / "documents.jsonl").write_text(lines)
    dataset, index = f"harp:{folder / 'collection'}", folder / "index"
    index.mkdir()
    bm25 = FieldedBm25(FieldedIndex(dataset, index), num_results=10)
    cosine = DenseCosine(str(model), dataset=dataset, index_dir=index, num_results=10)
    systems, weights = {"BM25": bm25, "cosine": cosine}, {"BM25": 1, "cosine": 0.01}
    pipeline = HarpPipeline(HarpFusion(systems, weights=weights, candidates="union"))
    pipeline.search("install")
    pipeline.save(folder)
    return folder


@contextmanager
def started(folder, *options, port=0):
    """Start `harp serve` on a folder; give its process and its address."""
    command = [sys.executable, "-m", "harp_plugin.cli", "serve", str(folder), "--port", str(port)]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        yield process, re.match(r"(http://127\.0\.0\.1:\d+) ", line)[1]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def served(search, **options):
    """Serve the page of `harp serve` from a thread of this process; give its address."""
    server = uvicorn.Server(
        uvicorn.Config(make_app(search, ServeOptions(**options)), log_level="error")
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=server.run, args=([listener],))
        serving.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            serving.join()
