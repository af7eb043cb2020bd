"""`harp serve`, over real sockets: equal results for many clients, limits, and a restart."""

import json
import re
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

import pytest
from adapted import make_adapted, served, started

from harp_plugin.cli import main
from harp_plugin.errors import HarpError
from harp_plugin.ranking.search import FolderSearch, SearchResult
from harp_plugin.text import snippet

pytestmark = pytest.mark.integration


def get(address, **request):
    """The status and the text of an answer."""
    try:
        with urlopen(Request(address, **request), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture(scope="module")
def adapted(tmp_path_factory, tiny_bert):
    return make_adapted(tmp_path_factory.mktemp("serve"), tiny_bert)


@pytest.fixture(scope="module")
def address(adapted):
    with started(adapted, "--base", "https://docs.example.org/") as (_, address):
        yield address


def test_many_clients_get_what_the_pipeline_gives(address, adapted):
    search = FolderSearch(adapted, "https://docs.example.org/")
    queries = ["install", "remove files", "naïve café", "network", "how to read"] * 4
    expected = [
        json.loads(json.dumps([result.as_json() for result in search.search(query, 3)]))
        for query in queries
    ]
    with ThreadPoolExecutor(len(queries)) as clients:
        paths = (f"{address}/api/search?q={quote(query)}&results=3" for query in queries)
        answers = list(clients.map(get, paths))
    assert [status for status, _ in answers] == [200] * len(queries)
    assert [json.loads(text)["results"] for _, text in answers] == expected
    assert json.loads(answers[0][1])["query"] == "install"


def test_the_page_shows_results_and_who_found_them(address):
    status, page = get(f"{address}/?q=installing+%3Cb%3E")
    assert status == 200 and 'value="installing &lt;b&gt;"' in page
    assert '<a href="https://docs.example.org/guide/install.md">Install</a>' in page
    assert "<mark>Installing</mark> needs a &lt;b&gt;network&lt;/b&gt;." in page
    assert re.search(r">BM25: 1 · cosine: \d</p>", page)
    assert "<script" not in page and "src=" not in page and "@import" not in page
    assert '<a href="https://docs.example.org/caf%C3%A9.md">' in get(f"{address}/?q=Zurich")[1]
    assert "<li>" not in get(f"{address}/")[1]
    status, page = get(f"{address}/?q=%3F%21")
    assert status == 422 and "has no word: write what you look for</p>" in page


@pytest.mark.parametrize(
    ("path", "request_", "status", "said"),
    [
        ("/api/search?q=" + "x" * 1001, {}, 422, "at most 1000 characters"),
        ("/api/search?q=a&results=101", {}, 422, "less than or equal to 100"),
        ("/api/search?q=%ED%BF%BF", {}, 422, "has no word"),
        ("/api/search", {}, 422, "Field required"),
        ("/?q=a", {"headers": {"Host": "attacker.example"}}, 400, "Invalid host header"),
        ("/docs", {}, 404, "Not Found"),
    ],
)
def test_what_is_refused(address, path, request_, status, said):
    answer = get(f"{address}{path}", **request_)
    assert answer[0] == status and said in answer[1]
    assert get(f"{address}/api/search?q=install")[0] == 200


@pytest.mark.parametrize("length", ["Content-Length: 1048576", "Transfer-Encoding: chunked"])
def test_a_body_of_a_megabyte_is_refused_before_it_is_read(length, address):
    url = urlsplit(address)
    head = f"POST /api/search?q=a HTTP/1.1\r\nHost: {url.netloc}\r\nConnection: close\r\n"
    with socket.create_connection((url.hostname, url.port), timeout=30) as client:
        client.sendall(f"{head}{length}\r\n\r\n".encode())
        answer = b"".join(iter(lambda: client.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 413 ") and b"a request has no body here" in answer
    assert get(f"{address}/api/search?q=install")[0] == 200


@pytest.mark.slow
def test_a_killed_server_starts_again_on_its_port(adapted):
    with started(adapted) as (process, address):
        before = get(f"{address}/api/search?q=install")
        process.kill()
        process.wait()
    with started(adapted, port=urlsplit(address).port) as (process, again):
        assert again == address and get(f"{address}/api/search?q=install") == before
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_a_port_in_use_is_one_line(adapted, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", str(adapted), "--port", str(port)]) == 2
    error = capsys.readouterr().err
    assert f"cannot listen on port {port} (Address already in use" in error
    assert error.endswith(": name another --port\n")


class SlowSearch:
    """Waits until it may answer."""

    def __init__(self):
        self.may_answer = threading.Event()
        self.begun = []

    def search(self, query, results):
        self.begun.append(query)
        if not self.may_answer.wait(30):
            raise HarpError("nobody let it answer")
        return [SearchResult(1, query, query, query, 1.0, snippet(query, query), {})]


def test_a_search_has_a_time_limit_and_the_queue_a_length():
    search = SlowSearch()
    with served(search, time_limit=3, queue=2) as server, ThreadPoolExecutor(3) as clients:
        address = f"{server}/api/search?q="
        waiting = [clients.submit(get, f"{address}first")]
        while not search.begun:
            time.sleep(0.01)
        waiting.append(clients.submit(get, f"{address}second"))
        time.sleep(0.5)
        status, text = get(f"{address}third")
        assert status == 503 and "too many searches wait: try again" in text
        for answer in waiting:
            status, text = answer.result()
            assert status == 504 and "more than 3 seconds: try again" in text
        search.may_answer.set()
        assert get(f"{address}fourth")[0] == 200
        assert search.begun == ["first", "fourth"]  # nobody waits for the second any more
