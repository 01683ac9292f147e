"""The app: endpoints, guard, errors and page around a service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from starlette.types import ASGIApp

from .. import __version__
from ..model import Index
from . import problems
from .guard import Guard
from .openapi import described
from .routes import documents, embeddings, feedback, index, operations, search, vectors
from .service import Service
from .settings import Settings

PAGE = Path(__file__).parent / "page"
FRONT = "index.html"


def create_app(opened: Index, settings: Settings | None = None, reopen: Callable[[], Index] | None = None) -> ASGIApp:
    """The app that serves an open index. `reopen` opens it again, where another one may be put in its place."""
    settings = Settings() if settings is None else settings
    service = Service(opened, settings, reopen)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(service.watch())
        yield
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await asyncio.to_thread(service.close)

    app = FastAPI(title="AdaWidth", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    for part in (search, vectors, documents, embeddings, feedback, index, operations):
        app.include_router(part.router)
    for file in sorted(PAGE.iterdir()):
        app.add_api_route(f"/{file.name if file.name != FRONT else ''}", _file(file.name), include_in_schema=False)
    problems.install(app)
    app.openapi = lambda: described(app, opened.model.width, settings.key is not None)  # type: ignore[method-assign]
    return Guard(search.Direct(app, service), settings, service.stats.metrics)


def _file(name: str) -> Callable[[], Awaitable[FileResponse]]:
    async def page() -> FileResponse:
        return FileResponse(PAGE / name)

    return page
