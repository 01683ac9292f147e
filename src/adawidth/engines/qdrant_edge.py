"""Qdrant Edge: Qdrant's own engine inside this process, one shard in a folder; the model lies beside it as a file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import qdrant_edge as edge

from ..errors import ArtifactError, EngineError
from .base import Layout, Settings, T, reason
from .qdrant import EF, PAGE, QUANTILE, Opened, Qdrant, Question, folder_of, vector_name

GRAPH = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000}  # Qdrant's own
LAYOUT, MODEL, SHARD = "layout.json", "model.zip", "shard"


class QdrantEdge(Qdrant):
    """A shard in a folder, qdrant-edge://folder; one process at a time has it open."""

    name = "qdrant-edge"
    unreachable = ()
    kinds: Any = SimpleNamespace(
        Filter=edge.Filter,
        FieldCondition=edge.FieldCondition,
        MatchAny=edge.MatchAny,
        Range=edge.RangeFloat,
        has_id=lambda ids: edge.HasIdCondition(set(ids)),
    )

    def __init__(self, url: str, collection: str) -> None:
        super(Qdrant, self).__init__(url, collection)
        self._shards = 1
        self._path = Path(folder_of(url)) / collection
        self._opened: Opened | None = None

    def exists(self) -> bool:
        return (self._path / LAYOUT).is_file()

    def create(self, layout: Layout, model: bytes) -> None:
        self.layout = layout
        shutil.rmtree(self._path, ignore_errors=True)  # what a push that was cut off has left
        (self._path / SHARD).mkdir(parents=True)
        (self._path / MODEL).write_bytes(model)
        config = edge.EdgeConfig(vectors=self._vectors())
        self._open(partial(edge.EdgeShard.create, str(self._path / SHARD), config))
        self._ask(lambda: self._shard.update(edge.UpdateOperation.create_field_index("facts", edge.PayloadSchemaType.Keyword)))
        (self._path / LAYOUT).write_text(layout.to_json())

    def open(self) -> bytes:
        if not self.exists():
            raise ArtifactError(f"{self.where}: there is no such collection: make it with `adawidth push`")
        self.layout = Layout.of_json((self._path / LAYOUT).read_text(), self.where)
        self._open(partial(edge.EdgeShard.load, str(self._path / SHARD)))
        return (self._path / MODEL).read_bytes()

    def settings(self) -> Settings:
        return Settings.of_json((self._path / LAYOUT).read_text(), self.where)

    def settle(self, settings: Settings) -> None:
        made = self._path / f"{LAYOUT}.new"
        made.write_text(settings.to_json())
        os.replace(made, self._path / LAYOUT)

    def clear(self) -> None:
        self.close()
        shutil.rmtree(self._path / SHARD, ignore_errors=True)

    def drop(self) -> None:
        self.close()
        shutil.rmtree(self._path, ignore_errors=True)

    def count(self) -> int:
        return int(self._ask(lambda: self._shard.count(edge.CountRequest(exact=True))))

    def finish(self) -> None:
        """The graph."""
        self._ask(self._shard.optimize)
        self._ask(self._shard.flush)

    def close(self) -> None:
        self._opened = None

    @property
    def _shard(self) -> Any:
        assert self._opened is not None
        return self._opened.client

    def _open(self, opened: Callable[[], Any]) -> None:
        self._opened = self._ask(lambda: Opened.of(str(self._path), opened, edge.EdgeShard.close))

    def _ask(self, question: Callable[[], T]) -> T:
        """All that can go wrong inside the engine is a plain Exception."""
        self.trips += 1
        try:
            return question()
        except Exception as error:
            if type(error) is not Exception:
                raise
            raise EngineError(f"{self.where}: {reason(error)}") from None

    def _vectors(self) -> Any:
        graph, none = edge.HnswIndexConfig(**GRAPH), edge.HnswIndexConfig(**{**GRAPH, "m": 0})
        codes = edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=QUANTILE, memory=edge.Memory.Pinned)
        return {
            vector_name(width): edge.EdgeVectorParams(
                size=width,
                distance=edge.Distance.Cosine,
                datatype=edge.VectorStorageDatatype.Float16,
                hnsw_config=none if place else graph,
                quantization_config=None if place else codes,
                memory=edge.Memory.Cold,
            )
            for place, width in enumerate(self.layout.widths)
        }

    def _query(self, questions: Sequence[Question]) -> Sequence[Sequence[Any]]:
        requests = [
            edge.QueryRequest(
                query=edge.Query.Nearest(one.vector.tolist(), using=one.using),
                limit=one.limit,
                filter=one.filter,
                with_payload=list(one.payload) or False,
                params=_params(one),
                prefetches=[] if one.among is None else [_prefetch(one.among)],
            )
            for one in questions
        ]
        return self._ask(lambda: self._shard.query_batch(edge.QueryBatchRequest(requests)))

    def _retrieve(self, points: list[str], payload: list[str], vectors: list[str] | None) -> Sequence[Any]:
        return self._ask(lambda: self._shard.retrieve(points, payload, vectors or False))

    def _upsert(self, points: Sequence[tuple[str, Any, Any]]) -> None:
        made = [edge.Point(name, vectors, payload) for name, vectors, payload in points]
        self._ask(lambda: self._shard.update(edge.UpdateOperation.upsert_points(made)))

    def _delete(self, points: list[str]) -> None:
        self._ask(lambda: self._shard.update(edge.UpdateOperation.delete_points(points)))

    def _page(self, offset: Any) -> tuple[Sequence[Any], Any]:
        request = edge.ScrollRequest(limit=PAGE, offset=offset, with_payload=["id"])
        page, following = self._ask(lambda: self._shard.scroll(request))
        return page, following


def _params(one: Question) -> Any:
    codes = edge.QuantizationSearchParams(ignore=one.exact, rescore=not one.coarse)
    return edge.SearchParams(exact=one.exact, hnsw_ef=None if one.exact else EF * one.limit, quantization=codes)


def _prefetch(one: Question) -> Any:
    query = edge.Query.Nearest(one.vector.tolist(), using=one.using)
    return edge.Prefetch(limit=one.limit, query=query, filter=one.filter, params=_params(one))
