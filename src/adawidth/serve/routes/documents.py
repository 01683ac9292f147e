"""/v1/documents: write, fetch, list and remove documents."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response

from ...data import Document
from ...errors import DataError
from ...formats import Text
from ...model import Index
from ...types import Id
from ..problems import Problem
from ..schemas import (
    DocumentsRequest,
    DocumentsResponse,
    FetchRequest,
    GivenDocument,
    IdsRequest,
    KnownResponse,
    RemovedResponse,
    StoredDocument,
    WrittenResponse,
)
from ..service import Service
from .shared import Serving, answer, at_most, numbers, problems

router = APIRouter(tags=["documents"])


@router.post(
    "/v1/documents", response_model=WrittenResponse, responses=problems("invalid_request", "too_large", "read_only", "id_exists", "busy")
)
async def write(asked: DocumentsRequest, service: Serving) -> Response:
    """Adds or updates documents, all or none; when this answers, they are on disk."""
    given = asked.documents
    at_most("the number of documents", len(given), service.settings.largest_batch)
    ids = _ids(given)
    vectors = await _vectors(given, service)
    known: dict[str, Any] = {
        "titles": [one.title for one in given],
        "texts": [one.text for one in given],
        "metadata": [one.metadata for one in given],
    }

    def change() -> dict[str, int]:
        index = service.index
        if asked.mode == "add" and ids is not None:
            there = next((name for name in ids if name in index), None)
            if there is not None:
                raise Problem("id_exists", f"document {there!r} is in the index already: use the mode update, or remove it first")
        done = (index.add if asked.mode == "add" else index.update)(vectors, ids, **known)
        return {"added": done.added, "replaced": done.replaced, "documents": done.documents}

    return answer(await service.write(change))


@router.get("/v1/documents", response_model=DocumentsResponse, responses=problems("invalid_request"))
async def listed(
    service: Serving,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> Response:
    """Documents in the order of the index."""

    def read() -> dict[str, Any]:
        index = service.index
        ids = list(islice(iter(index), offset, offset + limit))
        return {"documents": [plain(one) for one in index.documents(ids)] if ids else [], "total": len(index)}

    return answer(await service.read(read))


@router.get("/v1/documents/{id:path}", response_model=StoredDocument, responses=problems("document_not_found", "invalid_request"))
async def get(id: str, service: Serving) -> Response:
    """What is known of one document."""
    return answer((await service.read(_fetch, service, [id], False))[0])


@router.post("/v1/documents:fetch", response_model=DocumentsResponse, responses=problems("document_not_found", "invalid_request"))
async def fetch(asked: FetchRequest, service: Serving) -> Response:
    """What is known of several documents, and on demand their stored vectors."""
    at_most("the number of ids", len(asked.ids), service.settings.largest_batch)
    found = await service.read(_fetch, service, asked.ids, asked.vectors)
    return answer({"documents": found, "total": len(service.index)})


@router.post("/v1/documents:known", response_model=KnownResponse, responses=problems("invalid_request"))
async def known(asked: IdsRequest, service: Serving) -> Response:
    """Which of these documents there are."""
    at_most("the number of ids", len(asked.ids), service.settings.largest_batch)

    def look() -> list[bool]:
        service.refresh()
        return [name in service.index for name in asked.ids]

    return answer({"known": await service.read(look)})


@router.delete(
    "/v1/documents/{id:path}",
    response_model=RemovedResponse,
    responses=problems("document_not_found", "invalid_request", "read_only", "busy"),
)
async def delete(id: str, service: Serving) -> Response:
    """Removes one document; when this answers, that is on disk."""
    return answer(await service.write(_remove, service, [id]))


@router.post(
    "/v1/documents:remove", response_model=RemovedResponse, responses=problems("document_not_found", "invalid_request", "read_only", "busy")
)
async def remove(asked: IdsRequest, service: Serving) -> Response:
    """Removes several documents, all or none."""
    at_most("the number of ids", len(asked.ids), service.settings.largest_batch)
    return answer(await service.write(_remove, service, asked.ids))


def plain(document: Document) -> dict[str, Any]:
    """A document as JSON has it."""
    return {"id": document.id, "title": document.title, "text": document.text, "metadata": dict(document.metadata)}


def _ids(given: list[GivenDocument]) -> list[Id] | None:
    """All ids, or None where no document has one."""
    ids = [one.id for one in given if one.id is not None]
    if ids and len(ids) != len(given):
        raise Problem("invalid_data", f"{len(ids)} of {len(given)} documents have an id: give all of them one, or none")
    return ids or None


async def _vectors(given: list[GivenDocument], service: Service) -> Any:
    """Vectors as given, those of the others from their texts. (n, D)"""
    width = service.index.model.width
    without = [place for place, one in enumerate(given) if one.vector is None]
    for place in without:
        at_most("the length of a text", len(given[place].text), service.settings.longest_text)
        if not given[place].text.strip():
            raise Problem("invalid_data", f"document {given[place].id!r} has neither a vector nor a text: give one of them")
    values = np.zeros((len(given), width), np.float32)
    for place, one in enumerate(given):
        if one.vector is not None:
            found = numbers(one.vector, width)
            if found.size != width:
                raise Problem("invalid_data", f"document {one.id!r}: its vector is {found.size} wide, the index {width}")
            values[place] = found.reshape(width)
    if without:
        values[without], _ = await service.encode([Text("", given[place].text, given[place].title).whole for place in without], "document")
    return values


def _fetch(service: Service, ids: list[Id], vectors: bool) -> list[dict[str, Any]]:
    index = _having(service, ids)
    found = [plain(one) for one in index.documents(ids)]
    for one, vector in zip(found, index.vectors(ids).tolist() if vectors else (), strict=False):
        one["vector"] = vector
    return found


def _remove(service: Service, ids: list[Id]) -> dict[str, int]:
    index = _having(service, ids)
    try:
        return {"removed": index.remove(ids), "documents": len(index)}
    except DataError as error:
        raise Problem("document_not_found", str(error)) from None


def _having(service: Service, ids: list[Id]) -> Index:
    """The index, at a commit that has these documents."""
    missing = [name for name in ids if name not in service.index]
    if missing:
        service.refresh()  # another worker may just have written them
        missing = [name for name in ids if name not in service.index]
    if missing:
        raise Problem("document_not_found", f"there is no document {missing[0]!r}; {len(missing)} of {len(ids)} ids are not in the index")
    return service.index
