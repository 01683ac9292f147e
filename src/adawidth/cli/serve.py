"""adawidth serve"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import need
from .options import Collection, EngineUrl


def add(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(serve)


def serve(
    path: Annotated[Path | None, typer.Argument(metavar="INDEX", help="Index folder, as written by `index`.")] = None,
    engine: EngineUrl = None,
    collection: Collection = "adawidth",
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on; other than this machine's own needs an API key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", min=1, max=65_535, help="Port to listen on.")] = 8080,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Processes that share the index folder.")] = 1,
    api_key_file: Annotated[
        Path | None,
        typer.Option("--api-key-file", metavar="FILE", help="File with the API key.  [default: the variable ADAWIDTH_API_KEY]"),
    ] = None,
    feedback: Annotated[
        Path | None, typer.Option("--feedback", metavar="FILE", help="File for labels from users.  [default: INDEX.feedback.jsonl]")
    ] = None,
    rate: Annotated[float, typer.Option("--rate", metavar="N", min=0, help="Requests per second of one client; 0 for any number.")] = 1000,
    log_requests: Annotated[bool, typer.Option("--log-requests", help="Log every request, not only those that fail.")] = False,
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="NAME", help="Where to find the index's encoder, if it was moved.")
    ] = None,
    trust_encoder: Annotated[bool, typer.Option("--trust-encoder", help="Load whichever encoder the index names.")] = False,
) -> None:
    """Serve an index over HTTP, with a page.

    Without an API key the service is read-only and answers this machine only.
    """
    need("fastapi", "uvicorn", "httptools", "prometheus_client")
    from ..serve.run import Place, feedback_of, threads_for
    from ..serve.run import serve as start
    from ..serve.settings import Settings, read_key

    settings = Settings(
        host=host,
        port=port,
        workers=workers,
        threads=threads_for(workers),
        key=read_key(api_key_file),
        feedback=feedback_of(feedback),
        rate=rate,
        log_requests=log_requests,
    )
    place = Place(None if path is None else str(path), engine, collection, encoder, trust_encoder)
    start(place, settings)
