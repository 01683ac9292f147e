"""POST /v1/search"""

from __future__ import annotations

import json

from fastapi import APIRouter, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...data import as_queries
from ...types import F32
from ..answers import members
from ..problems import EXPECTED, Problem, answer_to
from ..schemas import SearchRequest, SearchResponse
from ..service import Options, Service
from .shared import JSON, Serving, at_most, numbers, problems

router = APIRouter(tags=["search"])

PATH = "/v1/search"
OPTIONS = ("k", "policy", "budget", "quality", "width", "start", "shortlist", "nprobe", "task", "offset", "min_score", "hybrid")
FIELDS = ("title", "text", "metadata")
EXPLAINED = 32  # queries of a request


@router.post(PATH, response_model=SearchResponse, responses=problems("invalid_request", "too_large"))
async def search(asked: SearchRequest, service: Serving) -> Response:
    """The best documents for each query."""
    return Response(await _found(asked, service), media_type=JSON)


class Direct:
    """The app, with a way for searches that leaves out FastAPI's own, which costs as much as a search itself."""

    path = PATH

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        scope["route"] = self  # for the guard, which counts requests by it
        try:
            found = await _found(_asked(scope, await receive()), self._service)  # the whole body, as the guard passes it on
        except Exception as error:
            await answer_to(error, PATH, self._service.index.path)(scope, receive, send)
            if not isinstance(error, EXPECTED):
                raise
        else:
            head = [(b"content-type", JSON.encode()), (b"content-length", str(len(found)).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            await send({"type": "http.response.body", "body": found})


def _asked(scope: Scope, body: Message) -> SearchRequest:
    sent = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    if sent != JSON.encode() and sent.partition(b";")[0].strip().lower() != JSON.encode():
        raise Problem("invalid_request", f"the body must be JSON: send the header Content-Type: {JSON}")
    try:
        return SearchRequest.model_validate_json(body.get("body", b""))
    except ValidationError as error:
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in error.errors(include_context=False)]) from None


async def _found(asked: SearchRequest, service: Service) -> bytes:
    """The answer, as JSON."""
    texts = [asked.text] if isinstance(asked.text, str) else asked.text
    _check(asked, texts, service)
    spent: dict[str, float] = {}
    if texts is not None:
        vectors, spent["encode"] = await service.encode(texts, "query")
    else:
        vectors = numbers(asked.vector, service.index.model.width)
    queries = _rows(vectors, service.index.model.width)
    at_most("the number of queries", len(queries), EXPLAINED if asked.explain else service.settings.largest_batch)
    found = await service.search(queries, texts, _options(asked), asked.explain, spent.get("encode", 0.0))
    names = map(to_json, range(len(found.results)) if texts is None else texts)
    results = b",".join([b'{"query":%b,%b}' % one for one in zip(names, found.results, strict=True)])
    return b'{"results":[%b],%b}' % (results, members({"seconds": spent | found.seconds}))


def _rows(vectors: F32, width: int) -> F32:
    """Queries as rows; `Index.search` checks what is in them. (n, D)"""
    return vectors.reshape(-1, width) if vectors.ndim in (1, 2) and vectors.shape[-1] == width else as_queries(vectors, width)


def _check(asked: SearchRequest, texts: list[str] | None, service: Service) -> None:
    settings = service.settings
    if (texts is None) == (asked.vector is None):
        raise Problem("invalid_option", "give either text or vector")
    if asked.hybrid and texts is None:
        raise Problem("invalid_option", "hybrid search needs the words of the queries: give text")
    at_most("k", asked.k, settings.largest_k)
    at_most("shortlist", asked.shortlist, settings.largest_shortlist)
    at_most("offset", asked.offset, settings.largest_shortlist)
    if asked.filter is not None:
        length = len(asked.filter) if isinstance(asked.filter, str) else len(json.dumps(asked.filter))
        at_most("the length of the filter", length, settings.longest_filter)
    for text in texts or ():
        at_most("the length of a text", len(text), settings.longest_text)
        if not text.strip():
            raise Problem("invalid_data", "a query is empty: give some words")


def _options(asked: SearchRequest) -> Options:
    given = tuple((name, value) for name in OPTIONS if (value := getattr(asked, name)) is not None)
    fields = tuple(name for name in FIELDS if name in asked.fields)
    if asked.filter is None or isinstance(asked.filter, str):
        return Options(given, asked.filter, False, fields)
    return Options(given, json.dumps(asked.filter, sort_keys=True), True, fields)
