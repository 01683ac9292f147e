"""/healthz, /readyz, /metrics: for those who run the service."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ..problems import Problem
from ..schemas import HealthResponse
from .shared import Serving, answer, problems

router = APIRouter(tags=["operations"])


@router.get("/healthz", response_model=HealthResponse)
async def health() -> Response:
    """Whether the process answers."""
    return answer({"status": "ok"})


@router.get("/readyz", response_model=HealthResponse, responses=problems("not_ready"))
async def ready(service: Serving) -> Response:
    """Whether the index can be searched."""
    reason = await service.read(service.trouble)
    if reason is not None:
        raise Problem("not_ready", reason)
    return answer({"status": "ready"})


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **problems()})
async def metrics(service: Serving) -> Response:
    """Counts and times in Prometheus' format, of all workers."""
    content, media_type = await service.read(service.stats.metrics.exposed, service.index)
    return Response(content, media_type=media_type)
