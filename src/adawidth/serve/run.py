"""Starts a service: one process, or several that share an index folder."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import OptionError, need
from ..threads import cpus
from .logs import to_stderr
from .settings import KEY, Settings

PLACE, SETTINGS = "ADAWIDTH_SERVE_PLACE", "ADAWIDTH_SERVE_SETTINGS"  # environment of worker processes


@dataclass(frozen=True)
class Place:
    """Where documents are: an index folder, or a collection in an engine; and the encoder for texts."""

    path: str | None = None
    engine: str | None = None
    collection: str = "adawidth"
    encoder: str | None = None
    trust_encoder: bool = False

    def open(self) -> Any:
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
    need("fastapi", "uvicorn", "prometheus_client")
    import uvicorn

    options: dict[str, Any] = {
        "host": settings.host,
        "port": settings.port,
        "timeout_graceful_shutdown": settings.drain_seconds,
        "access_log": False,
        "log_config": None,
        "server_header": False,
        "date_header": False,
        "limit_concurrency": 2_048,
    }
    to_stderr(settings.log_requests)
    if settings.workers == 1:
        from .app import create_app

        uvicorn.run(create_app(place.open(), settings, place.open), **options)
        return
    place.open().close()  # what can't be opened is told here, once
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
    return create_app(place.open(), settings, place.open)


def threads_for(workers: int) -> int:
    """Scans at a time in each of so many workers."""
    return max(1, cpus() // workers)


def feedback_of(path: Path | None) -> str | None:
    """The file of labels, as the settings have it."""
    return None if path is None else str(path)
