"""POST /v1/vectors"""

from __future__ import annotations

import numpy as np
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from ...errors import DataError
from ...types import F32
from ..problems import Problem
from ..schemas import Asked, DocumentId, Text
from ..service import Service
from .shared import Serving, answer, at_most, problems

router = APIRouter(tags=["search"])


class VectorRequest(Asked):
    """What to search for: a text, or a document whose neighbours are sought."""

    text: Text | None = Field(None, examples=["how do I count elements"])
    document: DocumentId | None = None


class VectorResponse(BaseModel):
    """A vector of the index's encoder, as /v1/search and /v1/feedback take it."""

    vector: list[float]


@router.post(
    "/v1/vectors", response_model=VectorResponse, responses=problems("invalid_request", "too_large", "document_not_found", "no_encoder")
)
async def vector(asked: VectorRequest, service: Serving) -> Response:
    """A query's vector, to search with it more than once, or for documents like one that is there."""
    if (asked.text is None) == (asked.document is None):
        raise Problem("invalid_option", "give either text or document")
    if asked.text is not None:
        at_most("the length of a text", len(asked.text), service.settings.longest_text)
        if not asked.text.strip():
            raise Problem("invalid_data", "a query is empty: give some words")
        found, _ = await service.encode([asked.text], "query")
    else:
        assert asked.document is not None
        found = await service.read(_of_document, service, asked.document)
    return answer({"vector": found[0].tolist()})


def _of_document(service: Service, identifier: str | int) -> F32:
    """A document's vector, rotated back; coordinates that are not stored count as 0. (1, D)"""
    index = service.index
    try:
        stored = index.vectors([identifier])
    except DataError as error:
        raise Problem("document_not_found", str(error)) from None
    whole = np.zeros((1, index.model.width), np.float32)
    whole[:, : index.width] = stored
    return index.model.rotation.invert(whole)
