"""/v1/index, /v1/width, /v1/stats: what is served, and how it does."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from ..describe import card, examples, facts
from ..schemas import CardResponse, ExamplesResponse, IndexResponse, StatsResponse, WidthResponse
from .shared import Serving, answer, problems

router = APIRouter(tags=["index"])


@router.get("/v1/index", response_model=IndexResponse, responses=problems())
async def index(service: Serving) -> Response:
    """Size, widths, encoder, policies and limits."""
    return answer(await service.read(facts, service))


@router.get("/v1/index/card", response_model=CardResponse, responses=problems())
async def model_card(service: Serving) -> Response:
    """The model card: quality against width on dev queries."""
    return answer(await service.read(card, service.index.model))


@router.get("/v1/index/examples", response_model=ExamplesResponse, responses=problems("invalid_request"))
async def some_examples(service: Serving, count: Annotated[int, Query(ge=1, le=50)] = 8) -> Response:
    """Queries to try, from titles and texts of the index."""
    found = await service.read(examples, service.index, count)
    return answer({"examples": found})


@router.get("/v1/width", response_model=WidthResponse, responses=problems("invalid_request"))
async def width(
    service: Serving,
    documents: Annotated[float, Query(ge=1, le=1e12, description="Corpus size to plan for.")],
    k: Annotated[int, Query(ge=1, le=1_000)] = 10,
) -> Response:
    """How many dimensions would so many documents need? Measured on documents of the index at the first question."""
    planned: dict[str, Any] = await service.read(service.planner.plan, documents, k)
    return answer(planned)


@router.get("/v1/stats", response_model=StatsResponse, responses=problems("invalid_request"))
async def stats(service: Serving, last: Annotated[int, Query(ge=1, le=1_000)] = 200) -> Response:
    """Recent queries of this worker."""
    return answer(service.stats.to_json(last))
