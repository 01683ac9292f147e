"""Starts a service: one process, or several that share an index folder."""

from __future__ import annotations

import gc
import json
import logging
import os
import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

from ..errors import OptionError, need
from ..threads import cpus
from .logs import to_stderr
from .settings import KEY, Settings

if TYPE_CHECKING:
    from ..model import Index

log = logging.getLogger("adawidth.serve")

PLACE, SETTINGS = "ADAWIDTH_SERVE_PLACE", "ADAWIDTH_SERVE_SETTINGS"  # environment of worker processes
OPTIONS: dict[str, Any] = {  # of uvicorn
    "http": "adawidth.serve.protocol:Bounded",
    "access_log": False,
    "log_config": None,
    "server_header": False,
    "proxy_headers": False,
    "date_header": False,
    "limit_concurrency": 2_048,
}


@dataclass(frozen=True)
class Place:
    """Where documents are: an index folder, or a collection in an engine; and the encoder for texts."""

    path: str | None = None
    engine: str | None = None
    collection: str = "adawidth"
    encoder: str | None = None
    trust_encoder: bool = False

    def open(self) -> Index:
        """The index there."""
        from ..model import connect, open_index

        if (self.path is None) == (self.engine is None):
            raise OptionError("give either an index folder or an engine's address (--engine)")
        if self.engine is not None:
            return connect(self.engine, self.collection, encoder=self.encoder, trust_encoder=self.trust_encoder)
        assert self.path is not None
        return open_index(self.path, encoder=self.encoder, trust_encoder=self.trust_encoder)


def serve(place: Place, settings: Settings) -> None:
    """Serves until it is told to stop (Ctrl-C, SIGTERM); then running requests are finished."""
    need("fastapi", "uvicorn", "httptools", "prometheus_client")
    import uvicorn

    drain = settings.drain_seconds
    options: dict[str, Any] = {**OPTIONS, "host": settings.host, "port": settings.port, "timeout_graceful_shutdown": drain}
    index = place.open()  # what can't be opened is told here, once
    access = "read-only: there is no API key" if settings.key is None else "with an API key"
    log.info("http://%s:%d/ (%s); Ctrl-C stops it", settings.host, settings.port, access)
    to_stderr(settings.log_requests)
    if settings.workers == 1:
        from .app import create_app

        app = create_app(index, settings, place.open)
        gc.freeze()  # a full collection would stop every request while it looks through all that was imported
        uvicorn.run(app, **options)
        return
    index.close()
    os.environ[PLACE], os.environ[SETTINGS] = json.dumps(vars(place)), json.dumps(settings.to_json())
    if settings.key is not None:
        os.environ[KEY] = settings.key
    with TemporaryDirectory(prefix="adawidth-metrics-") as shared:
        os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", shared)  # where the workers' counts are added up
        uvicorn.run("adawidth.serve.run:worker", factory=True, workers=settings.workers, **options)


def worker() -> Any:
    """The app of a worker process, as its parent's environment says."""
    from .app import create_app

    place = Place(**json.loads(os.environ[PLACE]))
    settings = Settings(**json.loads(os.environ[SETTINGS]), key=os.environ.get(KEY))
    to_stderr(settings.log_requests)
    app = create_app(place.open(), settings, place.open)
    gc.freeze()  # as in `serve`
    return app


class Running:
    """A service in a thread of this process, for notebooks and tests; `with` closes it."""

    def __init__(self, app: Any, host: str) -> None:
        import uvicorn

        self._socket = socket.create_server((host, 0), family=socket.AF_INET)
        self.url = f"http://{host}:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(app, **OPTIONS))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True, name="serve")
        self._thread.start()

    def close(self) -> None:
        """Finishes running requests, and closes the index."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def running(index: Index, **settings: Any) -> Running:
    """Serves an open index on a free port of this machine, in a thread. The socket listens already when this returns."""
    need("fastapi", "uvicorn", "httptools", "prometheus_client")
    from .app import create_app

    chosen = Settings(**settings)
    return Running(create_app(index, chosen), chosen.host)


def threads_for(workers: int) -> int:
    """Scans at a time in each of so many workers."""
    return max(1, cpus() // workers)


def feedback_of(path: Path | None) -> str | None:
    """The file of labels, as the settings have it."""
    return None if path is None else str(path)
