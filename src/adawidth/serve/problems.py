"""Errors as application/problem+json (RFC 9457), each with a code that stays the same from version to version."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.routing import Match

from ..errors import (
    AdaWidthError,
    ArtifactError,
    BusyError,
    DataError,
    EngineError,
    OptionalDependencyError,
    OptionError,
    UnknownOutcomeError,
)

log = logging.getLogger("adawidth.serve")

MEDIA_TYPE = "application/problem+json"
TITLES = {
    "bad_request": (400, "The request can't be understood"),
    "host_refused": (421, "This host is not served here"),
    "unauthorized": (401, "An API key is needed"),
    "read_only": (403, "This service is read-only"),
    "not_found": (404, "There is no such resource"),
    "document_not_found": (404, "There is no such document"),
    "model_not_found": (404, "There is no such model"),
    "method_not_allowed": (405, "This method is not allowed here"),
    "request_timeout": (408, "The request took too long to arrive"),
    "id_exists": (409, "A document of this id exists"),
    "too_large": (413, "The request is too large"),
    "unsupported_media_type": (415, "The body must be JSON"),
    "invalid_request": (400, "The request does not fit its schema"),
    "invalid_option": (422, "An option is out of its range"),
    "invalid_data": (422, "The data can't be used as they are"),
    "no_encoder": (422, "There is no encoder for texts"),
    "rate_limited": (429, "Too many requests"),
    "head_too_large": (431, "The head of the request is too large"),
    "internal_error": (500, "Something went wrong"),
    "index_damaged": (500, "The index can't be read"),
    "unknown_outcome": (500, "It is not known whether this was written"),
    "engine_unavailable": (503, "The engine can't be reached"),
    "busy": (503, "Another process is writing"),
    "not_ready": (503, "The service is not ready"),
}  # code -> status, title
CODES: tuple[tuple[type[AdaWidthError], str], ...] = (
    (BusyError, "busy"),
    (OptionalDependencyError, "no_encoder"),
    (OptionError, "invalid_option"),
    (DataError, "invalid_data"),
    (UnknownOutcomeError, "unknown_outcome"),
    (EngineError, "engine_unavailable"),
    (ArtifactError, "index_damaged"),
)  # the first that fits
BY_STATUS = {404: "not_found", 405: "method_not_allowed", 415: "unsupported_media_type"}


class Problem(Exception):
    """An error with a code of its own."""

    def __init__(self, code: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.code, self.detail, self.more = code, detail, more
        self.headers: dict[str, str] = {}


EXPECTED = (Problem, AdaWidthError, RequestValidationError)  # whatever else comes up is a fault of the service


def body_of(code: str, detail: str, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The members of a problem."""
    status, title = TITLES[code]
    return {"type": f"urn:adawidth:problem:{code}", "title": title, "status": status, "detail": detail, "code": code, **(more or {})}


def response(code: str, detail: str, more: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as an answer."""
    extra = dict(headers or {})
    if code in ("busy", "rate_limited", "engine_unavailable", "not_ready"):
        extra.setdefault("Retry-After", "1")
    if code == "unauthorized":
        extra.setdefault("WWW-Authenticate", "Bearer")
    return Response(to_json(body_of(code, detail, more)), TITLES[code][0], extra, MEDIA_TYPE)


def code_of(error: AdaWidthError) -> str:
    """The code of an error that AdaWidth raises."""
    return next((code for kind, code in CODES if isinstance(error, kind)), "internal_error")


def install(app: FastAPI) -> None:
    """Every error of the app becomes a problem."""

    async def handled(request: Request, error: Exception) -> Response:
        return answer_to(error, request.url.path, request.app.state.service.index.path)

    for kind in (*EXPECTED, Exception):
        app.add_exception_handler(kind, handled)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        code = BY_STATUS.get(error.status_code, "bad_request" if error.status_code < 500 else "internal_error")
        headers = {"Allow": _methods(request)} if code == "method_not_allowed" else error.headers
        return response(code, str(error.detail), None, headers)


def answer_to(error: Exception, asked: str, index: Path | None) -> Response:
    """What a request of this path is answered with where an error came up. `index` is never told: where it lies is nobody's business."""
    if isinstance(error, RequestValidationError):
        found = [{"where": ".".join(map(str, one["loc"])), "what": one["msg"]} for one in error.errors()[:20]]
        first = f"{found[0]['where']}: {found[0]['what']}" if found else "the request does not fit its schema"
        return response("invalid_request", first, _openai(asked, first, "invalid_request") | {"errors": found})
    if isinstance(error, Problem):
        detail = _without_path(index, error.detail)
        return response(error.code, detail, _openai(asked, detail, error.code) | error.more, error.headers)
    if isinstance(error, AdaWidthError):
        code = code_of(error)
        if TITLES[code][0] >= 500:
            log.error("%s", error, extra={"code": code})
        detail = _without_path(index, str(error))
        return response(code, detail, _openai(asked, detail, code))
    return response("internal_error", "the service's log says what went wrong")


def _without_path(index: Path | None, detail: str) -> str:
    """What went wrong, with the index by its name alone."""
    return detail if index is None else detail.replace(str(index), index.name).replace(str(index.resolve()), index.name)


def _methods(request: Request) -> str:
    """The methods of every endpoint at this path."""
    matching = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for route in matching for method in getattr(route, "methods", None) or ()}))


def _openai(asked: str, detail: str, code: str) -> dict[str, Any]:
    """What clients of OpenAI's API look for in an error."""
    if asked != "/v1/embeddings":
        return {}
    kind = "invalid_request_error" if TITLES[code][0] < 500 else "server_error"
    return {"error": {"message": detail, "type": kind, "param": None, "code": code}}
