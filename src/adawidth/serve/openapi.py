"""The OpenAPI document: FastAPI's, with problems in place of its own errors, this index's width, the key, and links between endpoints."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

ABOUT = "Search that reads only as many coordinates as each query needs."
WRITTEN = "$request.body#/documents/0/id"
TEXTS = ("type", "title", "detail", "code")
PROBLEM = {
    "type": "object",
    "description": "What went wrong, as RFC 9457 has it; `code` stays the same from version to version.",
    "properties": {**{name: {"type": "string"} for name in TEXTS}, "status": {"type": "integer"}},
    "required": [*TEXTS, "status"],
}
FOLLOWING: dict[str, tuple[tuple[str, str], dict[str, Any]]] = {
    "get": (("/v1/documents/{id}", "get"), {"parameters": {"id": WRITTEN}}),
    "fetch": (("/v1/documents:fetch", "post"), {"requestBody": {"ids": [WRITTEN]}}),
    "known": (("/v1/documents:known", "post"), {"requestBody": {"ids": [WRITTEN]}}),
    "label": (("/v1/feedback", "post"), {"requestBody": {"query": "how do I count elements", "document": WRITTEN}}),
    "delete": (("/v1/documents/{id}", "delete"), {"parameters": {"id": WRITTEN}}),
    "remove": (("/v1/documents:remove", "post"), {"requestBody": {"ids": [WRITTEN]}}),
}  # what can be done with a document that was written


def described(app: FastAPI, width: int, with_key: bool) -> dict[str, Any]:
    """The document, made once."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes, description=ABOUT)
        paths, schemas = found["paths"], found["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas["Problem"] = PROBLEM
        for name, field in (("SearchRequest", "vector"), ("GivenDocument", "vector"), ("FeedbackRequest", "query")):
            _set_width(schemas[name]["properties"][field], width)
        paths["/v1/documents"]["post"]["responses"]["200"]["links"] = {
            name: {"operationId": paths[path][method]["operationId"], **given} for name, ((path, method), given) in FOLLOWING.items()
        }
        if with_key:
            found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            for path, methods in paths.items():
                for operation in methods.values() if path.startswith(("/v1/", "/metrics")) else ():
                    operation["security"] = [{"key": []}]
        app.openapi_schema = found
    return app.openapi_schema


def _set_width(schema: Any, width: int) -> None:
    """Every list of numbers is a vector: as long as the encoder width."""
    if isinstance(schema, dict):
        if schema.get("type") == "array" and schema.get("items", {}).get("type") == "number":
            schema |= {"minItems": width, "maxItems": width}
        for inner in schema.values():
            _set_width(inner, width)
    elif isinstance(schema, list):
        for inner in schema:
            _set_width(inner, width)
