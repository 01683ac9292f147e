"""Qdrant: one point per document, one named vector per width, an HNSW graph on the start width alone; the engine rescores given points.

A point's id is made from the document's, which is in the payload. Filters do not read the metadata, where Qdrant compares by rules of its
own, but `facts` and `numbers`, which are made from it: the same documents meet a filter as in memory, and one index serves every field.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

import numpy as np
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from ..data import Document
from ..errors import ArtifactError, EngineError, OptionError
from ..filters.conditions import Among, Field, Filter, Joined, Missing, Not, Order, Value, leaves
from ..types import F32
from . import base
from .base import Engine, Found, Layout, Row, Settings, T, reason

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "adawidth").bytes  # of the points' ids
VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}  # of a UUID: its two highest bits are 10
EF = 2  # candidates kept on the walk through the graph, for each that is asked for
QUANTILE = 0.99  # of the start width's coordinates that codes span
QUERIES = 64  # in a request
PAGE = 5_000  # points in a request
REQUEST = 8_000_000  # bytes of a request that writes; servers take 32 MB unless told otherwise
CHUNK = 1 << 20  # bytes of the model in a point
UNANSWERED = 3  # times the patience until a request counts as lost: writes take longer than connecting
UNDERSAMPLED = 128  # limit from which shards are asked for their share of it, and some more, instead of all
BUSY = (429, 502, 503, 504)  # what a server or its proxy says while it starts


@dataclass(frozen=True, eq=False)
class Question:
    """The best points for a vector, as any of Qdrant's engines is asked."""

    vector: F32
    limit: int
    filter: Any = None
    payload: Sequence[str] = ()
    exact: bool = False
    coarse: bool = False  # whether the scores of the codes will do, as all that is found is scored again
    among: Question | None = None  # whose answer alone is scored, in the same request

    @property
    def using(self) -> str:
        """The named vector."""
        return vector_name(len(self.vector))


class Qdrant(Engine):
    """A collection of a server, qdrant+http://host:6333, or of the client's local mode, qdrant://folder. A server's API key stands where
    a password does, or in QDRANT_API_KEY."""

    name = "qdrant"
    one_request = True
    unreachable: tuple[type[BaseException], ...] = (ResponseHandlingException,)
    refused = (UnexpectedResponse, ValueError)
    kinds: Any = SimpleNamespace(
        Filter=models.Filter,
        FieldCondition=models.FieldCondition,
        MatchAny=models.MatchAny,
        Range=models.Range,
        has_id=lambda ids: models.HasIdCondition(has_id=list(ids)),
    )  # how conditions are written

    def __init__(self, url: str, collection: str) -> None:
        super().__init__(url, collection)
        self._about = f"{collection}_adawidth"
        self._shards = 1
        self._folder = None if "+" in url.partition("://")[0] else folder_of(url)
        self._opened: Opened | None = None
        self._alone: AbstractContextManager[Any] = nullcontext()
        if self._folder is None:
            self._client = _client(url)
        else:
            self._opened = Opened.of(self._folder, lambda: self._local(), QdrantClient.close)
            self._client, self._alone = self._opened.client, self._opened.lock

    def exists(self) -> bool:
        return bool(self._ask(lambda: self._client.collection_exists(self._about)))

    def create(self, layout: Layout, model: bytes) -> None:
        self.layout = layout
        if not self._ask(lambda: self._client.collection_exists(self.collection)):  # it may be left of a push that was cut off
            self._ask(lambda: self._client.create_collection(self.collection, vectors_config=self._vectors(), on_disk_payload=True))
        if self._folder is None:
            self._ask(lambda: self._client.create_payload_index(self.collection, "facts", models.PayloadSchemaType.KEYWORD))
        parts = [base64.b64encode(model[begin : begin + CHUNK]).decode() for begin in range(0, len(model), CHUNK)]
        made = [models.PointStruct(id=place, vector={}, payload={"model": part}) for place, part in enumerate(parts, 1)]
        self._ask(lambda: self._client.create_collection(self._about, vectors_config={}))
        for point in [*made, models.PointStruct(id=0, vector={}, payload={"layout": layout.to_json(), "parts": len(parts)})]:
            self._ask(lambda point=point: self._client.upsert(self._about, [point], wait=True))  # type: ignore[misc]

    def open(self) -> bytes:
        if not self.exists():
            raise ArtifactError(f"{self.where}: there is no such collection: make it with `adawidth push`")
        first = self._ask(lambda: self._client.retrieve(self._about, [0]))
        if not first or first[0].payload is None:
            raise ArtifactError(f"{self.where}: its settings are missing, a push was cut off: push it again with --force")
        self.layout = Layout.of_json(first[0].payload["layout"], self.where)
        parts = []
        for place in range(1, first[0].payload["parts"] + 1):
            found = self._ask(lambda place=place: self._client.retrieve(self._about, [place]))  # type: ignore[misc]
            parts.append(base64.b64decode(found[0].payload["model"]) if found else b"")
        if self._folder is None:
            self._shards = int(self._ask(lambda: self._client.get_collection(self.collection)).config.params.shard_number or 1)
        return b"".join(parts)

    def settings(self) -> Settings:
        found = self._ask(lambda: self._client.retrieve(self._about, [0]))
        return Settings.of_json(found[0].payload["layout"] if found else "", self.where)

    def settle(self, settings: Settings) -> None:
        self._ask(lambda: self._client.set_payload(self._about, {"layout": settings.to_json()}, [0], wait=True))

    def clear(self) -> None:
        self._ask(lambda: self._client.delete_collection(self.collection))

    def drop(self) -> None:
        for name in (self._about, self.collection):
            self._ask(lambda name=name: self._client.delete_collection(name))  # type: ignore[misc]

    def count(self) -> int:
        return int(self._ask(lambda: self._client.count(self.collection, exact=True)).count)

    def ids(self) -> Iterator[str]:
        offset = None
        while True:
            page, offset = self._page(offset)
            yield from (point.payload["id"] for point in page)
            if offset is None:
                return

    def present(self, ids: Sequence[str]) -> set[str]:
        return {point.payload["id"] for point in self._points(ids, ["id"])}

    def write(self, rows: Sequence[Row], *, update: bool) -> None:
        for part in _requests(rows):
            self._upsert([(point_id(str(row.document.id)), self._named(row.vector), payload_of(row)) for row in part])

    def remove(self, ids: Sequence[str]) -> None:
        for part in _pages(ids):
            self._delete([point_id(name) for name in part])

    def documents(self, ids: Sequence[str]) -> Mapping[str, Document]:
        found = (point.payload for point in self._points(ids, ["id", "title", "text", "metadata"]))
        return {one["id"]: Document(one["id"], one["title"], one["text"], one["metadata"]) for one in found}

    def vectors(self, ids: Sequence[str]) -> Mapping[str, F32]:
        name = vector_name(self.layout.keep)
        return {
            point.payload["id"]: np.asarray(point.vector[name], np.float32) * np.float32(point.payload["norms"][-1])
            for point in self._points(ids, ["id", "norms"], [name])
        }

    def nearest(self, queries: F32, k: int, condition: Filter | None, *, exact: bool = False) -> list[Found]:
        wanted = None if condition is None else self.kinds.Filter(must=[self._condition(condition)])
        limit = k if exact else asked(k, self._shards)
        questions = [Question(query, limit, wanted, ("id", "norms"), exact) for query in queries]
        return [self._found(points[:k]) for points in self._answers(questions)]

    def widened(self, queries: F32, k: int, shortlist: int, condition: Filter | None) -> list[Found]:
        """A prefetch at the start width, of which the query scores all."""
        wanted = None if condition is None else self.kinds.Filter(must=[self._condition(condition)])
        limit = asked(shortlist, self._shards)
        narrow = [Question(query[: self.layout.start], limit, wanted, coarse=True) for query in queries]
        questions = [Question(query, k, payload=("id", "norms"), exact=True, among=one) for query, one in zip(queries, narrow, strict=True)]
        return [self._found(points) for points in self._answers(questions)]

    def scores(self, queries: F32, ids: Sequence[Sequence[str]]) -> list[F32]:
        """Exact, so that no shard leaves out some of the given points."""
        points = [[point_id(name) for name in names] for names in ids]
        questions = [
            Question(query, max(len(given), 1), self.kinds.Filter(must=[self.kinds.has_id(given)]), exact=True)
            for query, given in zip(queries, points, strict=True)
        ]
        found = [{str(point.id): point.score for point in answer} for answer in self._answers(questions)]
        return [np.array([scores.get(one, np.nan) for one in given], np.float32) for scores, given in zip(found, points, strict=True)]

    def facts(self) -> dict[str, Any]:
        return {"shards": self._shards}

    def close(self) -> None:
        if self._folder is None:
            self._client.close()
        else:
            self._client = self._opened = None

    def _ask(self, question: Callable[[], T]) -> T:
        def once() -> T:
            try:
                with self._alone:
                    return question()
            except UnexpectedResponse as error:
                raise (ResponseHandlingException(error) if error.status_code in BUSY else error) from None

        return super()._ask(once)

    def _local(self) -> QdrantClient:
        try:
            return QdrantClient(path=self._folder, force_disable_check_same_thread=True)
        except RuntimeError as error:
            raise EngineError(f"{self.where}: another process has the folder open ({reason(error)}): use a server") from None

    def _vectors(self) -> dict[str, models.VectorParams]:
        """A graph over codes of a byte a coordinate for the start width alone; vectors are on disk, to be read for given points."""
        half, cosine = models.Datatype.FLOAT16, models.Distance.COSINE
        codes = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=QUANTILE, always_ram=True)
        start: dict[str, Any] = {"quantization_config": models.ScalarQuantization(scalar=codes)}
        rest = {"hnsw_config": models.HnswConfigDiff(m=0)}
        return {
            vector_name(width): models.VectorParams(size=width, distance=cosine, datatype=half, on_disk=True, **(rest if place else start))
            for place, width in enumerate(self.layout.widths)
        }

    def _named(self, vector: F32) -> dict[str, list[float]]:
        return {vector_name(width): vector[:width].tolist() for width in self.layout.widths}

    def _found(self, points: Sequence[Any]) -> Found:
        norms = np.array([point.payload["norms"] for point in points], np.float32).reshape(-1, len(self.layout.widths))
        return Found([point.payload["id"] for point in points], np.array([point.score for point in points], np.float32), norms)

    def _answers(self, questions: Sequence[Question]) -> list[Sequence[Any]]:
        return [answer for begin in range(0, len(questions), QUERIES) for answer in self._query(questions[begin : begin + QUERIES])]

    def _points(self, ids: Sequence[str], payload: list[str], vectors: list[str] | None = None) -> Iterator[Any]:
        for part in _pages(ids):
            yield from self._retrieve([point_id(name) for name in part], payload, vectors)

    def _query(self, questions: Sequence[Question]) -> Sequence[Sequence[Any]]:
        requests = [
            models.QueryRequest(
                query=one.vector.tolist(),
                using=one.using,
                limit=one.limit,
                filter=one.filter,
                with_payload=list(one.payload) or False,
                params=self._params(one),
                prefetch=None if one.among is None else self._prefetch(one.among),
            )
            for one in questions
        ]
        return [answer.points for answer in self._ask(lambda: self._client.query_batch_points(self.collection, requests))]

    def _prefetch(self, one: Question) -> models.Prefetch:
        vector = one.vector.tolist()
        return models.Prefetch(query=vector, using=one.using, limit=one.limit, filter=one.filter, params=self._params(one))

    def _params(self, one: Question) -> models.SearchParams | None:
        """Local mode is exact in any case, and warns of parameters."""
        if self._folder is not None:
            return None
        codes = models.QuantizationSearchParams(ignore=one.exact, rescore=not one.coarse)
        return models.SearchParams(exact=one.exact, hnsw_ef=None if one.exact else EF * one.limit, quantization=codes)

    def _retrieve(self, points: list[str], payload: list[str], vectors: list[str] | None) -> Sequence[Any]:
        return self._ask(lambda: self._client.retrieve(self.collection, points, with_payload=payload, with_vectors=vectors or False))

    def _upsert(self, points: Sequence[tuple[str, Any, Any]]) -> None:
        made = [models.PointStruct(id=name, vector=vectors, payload=payload) for name, vectors, payload in points]
        self._ask(lambda: self._client.upsert(self.collection, made, wait=True))

    def _delete(self, points: list[str]) -> None:
        self._ask(lambda: self._client.delete(self.collection, models.PointIdsList(points=points), wait=True))

    def _page(self, offset: Any) -> tuple[Sequence[Any], Any]:
        page, following = self._ask(lambda: self._client.scroll(self.collection, limit=PAGE, offset=offset, with_payload=["id"]))
        return page, following

    def _condition(self, one: Filter) -> Any:
        """A filter as Qdrant writes it."""
        kinds = self.kinds
        match one:
            case Joined(parts, word):
                inner = [self._condition(part) for part in parts]
                return kinds.Filter(must=inner) if word == "AND" else kinds.Filter(should=inner)
            case Not(part):
                return kinds.Filter(must_not=[self._condition(part)])
            case Missing(field):
                return kinds.Filter(must_not=[kinds.FieldCondition(key="facts", match=kinds.MatchAny(any=[fact(field)]))])
            case Among(field, texts, numbers, truths):
                wanted = [fact(field, value) for value in (*texts, *numbers, *truths)]
                return kinds.FieldCondition(key="facts", match=kinds.MatchAny(any=wanted))
            case Order(field, sign, value) if isinstance(value, str):
                raise OptionError(f"{'.'.join(field)} {sign} {value!r}: Qdrant can't order strings: compare numbers, or use = and IN")
            case Order(field, sign, value):
                bound = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}[sign]
                path = ".".join(f'"{key}"' for key in ("numbers", *field))
                return kinds.FieldCondition(key=path, range=kinds.Range(**{bound: float(value)}))
        raise AssertionError(one)


class Opened:
    """A folder that this process has open, shared by all engines on it, and closed with the last of them."""

    everywhere: ClassVar[weakref.WeakValueDictionary[str, Opened]] = weakref.WeakValueDictionary()
    making = threading.Lock()

    def __init__(self, client: Any, close: Callable[[Any], Any]) -> None:
        self.client = client
        self.lock = threading.RLock()
        weakref.finalize(self, close, client)

    @classmethod
    def of(cls, folder: str, opened: Callable[[], Any], close: Callable[[Any], Any]) -> Opened:
        """The one of this folder."""
        key = str(Path(folder).resolve())
        with cls.making:
            found = cls.everywhere.get(key)
            if found is None:
                found = cls.everywhere[key] = cls(opened(), close)
            return found


def folder_of(url: str) -> str:
    """The folder that an address without a host names: relative after two slashes, absolute after three."""
    return url.partition("://")[2] or "."


def point_id(name: str) -> str:
    """The id of a document's point: uuid.uuid5, written out, as that is asked for every candidate."""
    found = hashlib.sha1(NAMESPACE + name.encode(), usedforsecurity=False).hexdigest()
    return f"{found[:8]}-{found[8:12]}-5{found[13:16]}-{VARIANT[found[16]]}{found[17:20]}-{found[20:32]}"


def vector_name(width: int) -> str:
    """The name of the vectors of a width."""
    return f"w{width}"


def fact(field: Field, *value: Value) -> str:
    """One of the facts: that a field is there, or what it is. Numbers are written one way: 1.0 as 1."""
    return "=".join([json.dumps(field, ensure_ascii=False), *(json.dumps(_plain(one), ensure_ascii=False) for one in value)])


def payload_of(row: Row) -> dict[str, Any]:
    """What a point carries."""
    one, facts, numbers = row.document, [], dict[str, Any]()
    for field, value in leaves(one.metadata):
        facts.append(fact(field))
        if value is not None:
            facts.append(fact(field, value))
        if isinstance(value, int | float) and not isinstance(value, bool):
            inner = numbers
            for key in field[:-1]:
                inner = inner.setdefault(key, {})
            inner[field[-1]] = float(value)
    known = {"id": one.id, "title": one.title, "text": one.text, "metadata": dict(one.metadata)}
    return {**known, "norms": row.norms.tolist(), "facts": facts, "numbers": numbers}


def asked(k: int, shards: int) -> int:
    """How many to ask for: of many, a shard brings its share and a fifth; a quarter more makes up for shards that hold more of the best."""
    return k + k // 4 if shards > 1 and k >= UNDERSAMPLED else k


def _plain(value: Value) -> Value:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _client(url: str) -> QdrantClient:
    parts = urlsplit(url)
    at, _, host = parts.netloc.rpartition("@")
    key = at.partition(":")[2] or os.environ.get("QDRANT_API_KEY")
    address = urlunsplit((parts.scheme.partition("+")[2], host, parts.path.rstrip("/"), "", ""))
    wait = UNANSWERED * base.PATIENCE
    return QdrantClient(url=address, port=parts.port or 6333, api_key=key, timeout=wait, check_compatibility=False)


def _pages(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[begin : begin + PAGE] for begin in range(0, len(ids), PAGE))


def _requests(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows by requests of bounded size."""
    part: list[Row] = []
    size = 0
    for row in rows:
        one = row.document
        bytes_ = 40 * len(row.vector) + 4 * (len(one.title) + len(one.text)) + 200 * (len(one.metadata) + 1)
        if part and size + bytes_ > REQUEST:
            yield part
            part, size = [], 0
        part.append(row)
        size += bytes_
    if part:
        yield part
