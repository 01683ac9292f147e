"""POST /v1/feedback"""

from __future__ import annotations

from fastapi import APIRouter, Response

from ..problems import Problem
from ..schemas import FeedbackRequest, FeedbackResponse
from .shared import Serving, answer, at_most, problems

router = APIRouter(tags=["feedback"])


@router.post(
    "/v1/feedback", response_model=FeedbackResponse, responses=problems("document_not_found", "invalid_request", "too_large", "read_only")
)
async def feedback(asked: FeedbackRequest, service: Serving) -> Response:
    """Notes how well a document answers a query, for `refit`."""
    if isinstance(asked.query, str):
        at_most("the length of a text", len(asked.query), service.settings.longest_text)
    elif len(asked.query) != service.index.model.width:
        raise Problem("invalid_data", f"the query is {len(asked.query)} wide, the index {service.index.model.width}")

    def note() -> int:
        if asked.document not in service.index:
            raise Problem("document_not_found", f"there is no document {asked.document!r}")
        return service.feedback.add(asked.query, asked.document, asked.grade)

    return answer({"recorded": await service.write(note)})
