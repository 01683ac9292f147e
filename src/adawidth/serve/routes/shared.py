"""What the endpoints share: the service behind them, their answers, and what errors OpenAPI lists."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request, Response
from pydantic_core import to_json

from ..problems import MEDIA_TYPE, TITLES, Problem
from ..service import Service


def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


Serving = Annotated[Service, Depends(_service)]


def answer(content: Any) -> Response:
    """Plain values as JSON."""
    return Response(to_json(content), media_type="application/json")


def problems(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Which problems an endpoint may answer with, for OpenAPI."""
    listed: dict[int | str, dict[str, Any]] = {}
    for code in (*codes, "unauthorized", "rate_limited", "bad_request"):
        status, title = TITLES[code]
        listed[status] = {"description": title, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    return listed


def at_most(what: str, given: int, most: int) -> None:
    """Refuses more than a limit."""
    if given > most:
        raise Problem("invalid_option", f"{what} is {given}, this service takes at most {most}")
