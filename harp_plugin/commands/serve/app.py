"""The web application of `harp serve`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from markupsafe import Markup, escape
from starlette.middleware.trustedhost import TrustedHostMiddleware

from ...errors import HarpError
from ...html_page import render_page
from . import Results

if TYPE_CHECKING:
    from ...ranking.search import FolderSearch, SearchResult
    from ...text import Snippet
    from . import ServeOptions

__all__ = ["make_app"]

_HOSTS = ["127.0.0.1", "localhost"]
"""A page of another site that has this address by a name of its own is refused."""
Text = Annotated[str, Query(max_length=1000)]


def make_app(search: FolderSearch, options: ServeOptions) -> FastAPI:
    """Make the application.

    Args:
        search: one at a time; the others wait.
        options: what a search may take.
    """
    app = FastAPI(title="harp", docs_url=None, redoc_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS)
    app.middleware("http")(_refuse_bodies)
    queue = _Queue(search, options)

    @app.get("/api/search")
    async def answer(q: Text, results: Results = options.results) -> dict[str, Any]:
        found = await queue.search(q, results)
        return {"query": q, "results": [result.as_json() for result in found]}

    @app.get("/", response_class=HTMLResponse)
    async def page(q: Text = "", results: Results = options.results) -> HTMLResponse:
        found: list[SearchResult] = []
        status, error = 200, ""
        try:
            found = await queue.search(q, results) if q.strip() else []
        except HTTPException as refused:
            status, error = refused.status_code, refused.detail
        values = {"query": q, "results": found, "error": error}
        html = render_page(__package__, {"marked": _marked}, **values)
        return HTMLResponse(html, status)

    return app


class _Queue:
    """Searches that wait for each other, each for a limited time."""

    def __init__(self, search: FolderSearch, options: ServeOptions) -> None:
        self._search = search
        self._options = options
        self._worker = ThreadPoolExecutor(1, "search")
        self._waiting = 0

    async def search(self, query: str, results: int) -> list[SearchResult]:
        """Search, when those before have ended.

        Raises:
            HTTPException: too many searches wait, the time is over, or the query is at fault.
        """
        if self._waiting >= self._options.queue:
            raise HTTPException(503, "too many searches wait: try again", {"Retry-After": "1"})
        self._waiting += 1
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._worker, self._search.search, query, results)
        try:
            return await asyncio.wait_for(running, self._options.time_limit)
        except TimeoutError:
            limit = f"{self._options.time_limit:g} seconds"
            raise HTTPException(504, f"the search took more than {limit}: try again") from None
        except HarpError as error:
            raise HTTPException(422, str(error)) from error
        finally:
            self._waiting -= 1


async def _refuse_bodies(
    request: Request, handle: Callable[[Request], Awaitable[Response]]
) -> Response:
    """Answer a request with a body, which none needs, before the body is read."""
    has_body = request.headers.get("content-length", "0") != "0"
    if has_body or "transfer-encoding" in request.headers:
        detail = "a request has no body here: write the query into the address"
        return JSONResponse({"detail": detail}, 413)
    return await handle(request)


def _marked(snippet: Snippet) -> Markup:
    """Write a passage as HTML."""
    return Markup(snippet.marked("<mark>", "</mark>", escape))
