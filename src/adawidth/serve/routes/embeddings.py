"""POST /v1/embeddings, as OpenAI's API has it: rotated, cut and renormalised vectors of the index's encoder."""

from __future__ import annotations

import base64
import re
from typing import Any

from fastapi import APIRouter, Response

from ..problems import Problem
from ..schemas import EmbeddingsRequest, EmbeddingsResponse
from ..service import Service
from .shared import Serving, answer, at_most, problems

router = APIRouter(tags=["embeddings"])

QUERY = ":query"  # after the model's name: texts are queries, not documents
OWN = "adawidth"  # the encoder of the index, whatever it is called
WORD = re.compile(r"\w+|[^\w\s]")


@router.post(
    "/v1/embeddings", response_model=EmbeddingsResponse, responses=problems("invalid_request", "too_large", "model_not_found", "busy")
)
async def embeddings(asked: EmbeddingsRequest, service: Serving) -> Response:
    """Vectors of texts. `dimensions` may be any number up to the encoder width, whether the encoder was trained for it or not.

    Texts are documents; with `:query` after the model's name they are queries, and pass through the default query map if there is one.
    """
    texts, model = _texts(asked, service), service.index.model
    role = "query" if asked.model.endswith(QUERY) else "document"
    _check_model(asked.model.removesuffix(QUERY), service)
    width = model.width if asked.dimensions is None else asked.dimensions
    at_most("dimensions", width, model.width)
    vectors, _ = await service.encode(texts, role)
    rotated = (model.rotate_queries if role == "query" else model.rotate)(vectors, width)
    as_text = asked.encoding_format == "base64"
    found = [base64.b64encode(row.tobytes()).decode() for row in rotated.astype("<f4")] if as_text else rotated.tolist()
    tokens = await service.read(_tokens, service, texts)
    return answer(
        {
            "object": "list",
            "data": [{"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(found)],
            "model": asked.model,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )


def _texts(asked: EmbeddingsRequest, service: Service) -> list[str]:
    given: list[Any] = [asked.input] if isinstance(asked.input, str) else list(asked.input)
    if not all(isinstance(text, str) for text in given):
        raise Problem(
            "invalid_data", "input has tokens, but this encoder has its own: send texts (in LangChain: check_embedding_ctx_length=False)"
        )
    at_most("the number of texts", len(given), service.settings.largest_batch)
    for text in given:
        at_most("the length of a text", len(text), service.settings.longest_text)
        if not text.strip():
            raise Problem("invalid_data", "a text is empty: give some words")
    return given


def _check_model(name: str, service: Service) -> None:
    known = service.encoder_names
    if name not in known:
        raise Problem("model_not_found", f"there is no model {name!r} here; there are {', '.join(known)}, each also with {QUERY}")


def _tokens(service: Service, texts: list[str]) -> int:
    """As the encoder counts them; words and signs where it does not say."""
    count = getattr(service.index.encoder, "tokens", None)
    return int(count(texts)) if count is not None else sum(len(WORD.findall(text)) for text in texts)
