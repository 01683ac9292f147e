"""POST /v1/search"""

from __future__ import annotations

import json

from fastapi import APIRouter, Response

from ...data import as_queries
from ..problems import Problem
from ..schemas import SearchRequest, SearchResponse
from ..service import Options, Service
from .shared import Serving, answer, at_most, numbers, problems

router = APIRouter(tags=["search"])

OPTIONS = ("k", "policy", "budget", "quality", "width", "start", "shortlist", "task", "offset", "min_score", "hybrid")
FIELDS = ("title", "text", "metadata")
EXPLAINED = 32  # queries of a request


@router.post("/v1/search", response_model=SearchResponse, responses=problems("invalid_request", "too_large"))
async def search(asked: SearchRequest, service: Serving) -> Response:
    """The best documents for each query."""
    texts = [asked.text] if isinstance(asked.text, str) else asked.text
    _check(asked, texts, service)
    spent: dict[str, float] = {}
    if texts is not None:
        vectors, spent["encode"] = await service.encode(texts, "query")
    else:
        vectors = numbers(asked.vector, service.index.model.width)
    queries = as_queries(vectors, service.index.model.width)
    at_most("the number of queries", len(queries), EXPLAINED if asked.explain else service.settings.largest_batch)
    found = await service.search(queries, texts, _options(asked), asked.explain, spent.get("encode", 0.0))
    for result in found.results if asked.explain else ():
        result["explain"]["seconds"] |= {"encode": spent.get("encode", 0.0)}
    return answer({"results": found.results, "seconds": spent | found.seconds})


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
