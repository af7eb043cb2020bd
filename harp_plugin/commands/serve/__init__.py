"""`harp serve`: the search of a folder as a page and a JSON API on this machine."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from ...errors import HarpError
from ...options import Count, Interval, Options
from ...options_parser import Command

__all__ = ["Results", "ServeOptions", "serve"]

Results = Annotated[int, Interval(ge=1, le=100)]
"""How many pages a search shows."""
_FOLDER = {"metavar": "DIR", "help": "Folder that `harp adapt` wrote."}
_HOST = "127.0.0.1"
_SECONDS_TO_END = 5


@dataclass(kw_only=True)
class ServeOptions(Options):
    """Where the page is served, and what a search may take.

    Attributes:
        port: Port on 127.0.0.1; 0 for any that is free.
        base: What stands before the name of a page in its address, such as
            https://docs.example.org/.
        results: How many pages a search shows where the request does not say it.
        time_limit: Seconds after which a search is given up.
        queue: How many searches may run or wait at once; a further one is refused.
    """

    port: Annotated[int, Interval(ge=0, le=65535)] = 8000
    base: str = ""
    results: Results = 10
    time_limit: Annotated[float, Interval(gt=0, le=3600)] = 30.0
    queue: Count = 100


def serve(folder: str, options: ServeOptions) -> None:
    """Serve until the process is interrupted.

    Args:
        folder: that `harp adapt` wrote.
        options: where, and what a search may take.

    Raises:
        HarpError: the folder cannot be searched, or the port is in use.
    """
    import uvicorn

    from ...ranking.search import FolderSearch
    from .app import make_app

    search = FolderSearch(folder, options.base)
    search.search("ready", 1)  # loads models and indexes
    try:
        listener = socket.create_server((_HOST, options.port))
    except OSError as error:
        raise HarpError(
            f"cannot listen on port {options.port} ({error.strerror}): name another --port"
        ) from error
    with listener:
        print(f"http://{_HOST}:{listener.getsockname()[1]} (Ctrl-C ends it)", flush=True)
        config = uvicorn.Config(
            make_app(search, options),
            http="h11",
            log_level="warning",
            timeout_graceful_shutdown=_SECONDS_TO_END,
        )
        uvicorn.Server(config).run(sockets=[listener])


@Command("DIR", ServeOptions, positional=_FOLDER)
def command(options: ServeOptions, folder: str) -> None:
    """Only this machine can reach it.

    The page has a search box, and shows of each result which system of the pipeline found it.
    /api/search?q=QUERY&results=10 answers in JSON.
    """
    with suppress(KeyboardInterrupt):
        serve(folder, options)
