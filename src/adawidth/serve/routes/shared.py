"""What the endpoints share: the service behind them, their answers, and what errors OpenAPI lists."""

from __future__ import annotations

import base64
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, Request, Response
from pydantic_core import to_json

from ...types import F32
from ..problems import MEDIA_TYPE, TITLES, Problem
from ..service import Service


async def _service(request: Request) -> Service:  # a function that is not async would take a thread
    found: Service = request.app.state.service
    return found


JSON = "application/json"
Serving = Annotated[Service, Depends(_service)]


def answer(content: Any) -> Response:
    """Plain values as JSON."""
    return Response(to_json(content), media_type=JSON)


def problems(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Which problems an endpoint may answer with, for OpenAPI."""
    listed: dict[int | str, dict[str, Any]] = {}
    unusable = ("invalid_option",) if "invalid_request" in codes else ()
    for code in ("bad_request", *codes, *unusable, "unauthorized", "rate_limited"):
        status, title = TITLES[code]
        listed[status] = {"description": title, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    return listed


def at_most(what: str, given: int, most: int) -> None:
    """Refuses more than a limit."""
    if given > most:
        raise Problem("invalid_option", f"{what} is {given}, this service takes at most {most}")


def numbers(given: str | list[Any] | None, width: int) -> F32:
    """Vectors from lists of numbers, or from base64. (n, D), or (D,) from one list"""
    if not isinstance(given, str):
        try:
            with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, and is refused by row
                return np.asarray(given, np.float32)
        except (ValueError, OverflowError):
            raise Problem("invalid_data", "the vectors are not all of one length") from None
    try:
        raw = base64.b64decode(given, validate=True)
    except ValueError as error:
        raise Problem("invalid_data", f"the vectors are no base64: {error}") from None
    if not raw or len(raw) % (4 * width):
        raise Problem("invalid_data", f"the vectors have {len(raw)} bytes: expected {4 * width} for each, float32 of width {width}")
    return np.frombuffer(raw, "<f4").astype(np.float32).reshape(-1, width)
