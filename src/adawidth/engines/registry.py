"""From an address to an engine: the scheme names it, and `scheme+http` the way to its server."""

from __future__ import annotations

from importlib import import_module

from ..errors import OptionError, need
from .base import Engine, without_password

REGISTRY = {
    "pgvector": ("pgvector:PgVector", "psycopg", ("postgresql", "postgres")),
    "milvus": ("milvus:Milvus", "pymilvus", ("milvus", "milvus+http", "milvus+https")),
    "qdrant": ("qdrant:Qdrant", "qdrant_client", ("qdrant", "qdrant+http", "qdrant+https")),
    "qdrant-edge": ("qdrant_edge:QdrantEdge", "qdrant_edge", ("qdrant-edge",)),
    "lancedb": ("lancedb:LanceDB", "lancedb", ("lancedb", "lancedb+s3", "lancedb+gs", "lancedb+az")),
}  # name -> module:class, the package it needs, the schemes of its addresses


def address_of(name: str, url: str) -> str:
    """An address for `connect`, from an engine's name and the address as its own clients take it."""
    if name not in REGISTRY:
        raise OptionError(f"there is no engine {name!r}; there are {', '.join(REGISTRY)}")
    scheme = url.partition("://")[0] if "://" in url else ""
    if scheme in REGISTRY[name][2]:
        return url
    return f"{name}+{url}" if scheme else f"{name}://{url}"


def engine_at(url: str, collection: str) -> Engine:
    """The engine that an address names."""
    module, package, _ = REGISTRY[engine_name(url)]
    need(package)
    file, _, name = module.partition(":")
    found: Engine = getattr(import_module(f".{file}", __package__), name)(url, collection)
    return found


def engine_name(url: str) -> str:
    """Which engine an address is of."""
    scheme = url.partition("://")[0]
    for name, (_, _, schemes) in REGISTRY.items():
        if scheme in schemes:
            return name
    every = ", ".join(f"{one}://" for _, _, schemes in REGISTRY.values() for one in schemes)
    raise OptionError(f"{without_password(url)}: no engine has such an address; expected one of {every}")
