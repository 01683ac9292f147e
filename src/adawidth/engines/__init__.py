"""Engines that others run, as places to search in: PostgreSQL with pgvector, Milvus, Qdrant, LanceDB, and a user's own faiss index.
Each engine is one file with one class after base.Engine, the few verbs that AdaWidth asks of it; store.py makes an index of them."""

from ..threads import settle
from .base import Engine, Found, Layout, Row, Settings
from .prices import PRICES, Prices
from .registry import address_of, engine_at, engine_name
from .store import EngineStore

__all__ = ["PRICES", "Engine", "EngineStore", "Found", "Layout", "Prices", "Row", "Settings", "address_of", "engine_at", "engine_name"]

settle()  # faiss.py loads faiss
