"""What clients send and how they read answers, once for both of them."""

from __future__ import annotations

import base64
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, TypedDict, TypeVar
from urllib.parse import urlsplit

import numpy as np

from ..data import Document, Documents, Vectors, as_queries
from ..data.vectors import as_list, one_per_row
from ..errors import AdaWidthError, ArtifactError, BusyError, DataError, EngineError, OptionError, need
from ..formats.documents import Source, of_vectors
from ..hits import Hits
from ..stages import Written
from ..stages.backend import listed
from ..stages.loop import joined
from ..types import F32, Id
from .settings import KEY, LARGEST_BATCH

PAGE = 1_000  # documents of a list
TRIES = 4  # at a service that is busy
LONGEST_PAUSE = 5.0  # seconds, whatever a service asks for
ERRORS: dict[str, type[AdaWidthError]] = {
    "invalid_option": OptionError,
    "invalid_request": OptionError,
    "no_encoder": OptionError,
    "invalid_data": DataError,
    "document_not_found": DataError,
    "id_exists": DataError,
    "busy": BusyError,
    "index_damaged": ArtifactError,
}  # code -> what an index in this process raises; all others are an EngineError


class Ask(NamedTuple):
    """A request: what is sent, whoever sends it."""

    method: str
    path: str
    body: Mapping[str, Any] | None


Result = TypeVar("Result")
Asking = Generator[Ask, Any, Result]  # yields requests, is sent their answers, returns the result


class SearchOptions(TypedDict, total=False):
    """The options of Index.search that travel."""

    policy: str | None
    budget: float | None
    quality: float | None
    width: int | str | None
    start: int | None
    shortlist: int
    nprobe: int | None
    task: str | None
    where: str | Mapping[str, Any] | None
    offset: int
    min_score: float | None
    hybrid: bool


class Known(Documents):
    """Documents as an answer brought them."""

    def __init__(self, known: Sequence[Document]) -> None:
        super().__init__([document.id for document in known])
        self._known = known

    def describe(self, rows: Iterable[int]) -> list[Document]:
        """What is known of the documents in these rows."""
        return [self._known[row] for row in rows]


def search(queries: Any, k: int, text: str | Sequence[str] | None, options: Mapping[str, Any]) -> Asking[Hits]:
    """Answers of POST /v1/search, as many queries at a time as a request may have."""
    if (queries is None) == (text is None):
        raise OptionError("give either query vectors or text")
    body: dict[str, Any] = {"k": int(k), **{name: value for name, value in options.items() if value is not None}}
    if "where" in body:
        body["filter"] = body.pop("where")
    names, parts = names_of(queries, text), []
    texts, rows = list(names) if text is not None else [], np.empty((0, 0), np.float32)
    if text is None:
        values = queries.values if isinstance(queries, Vectors) else np.asarray(queries, np.float32)
        rows = as_queries(values, values.shape[-1])
    for start in range(0, max(len(texts), len(rows)), LARGEST_BATCH):
        some = slice(start, start + LARGEST_BATCH)
        asked = {"text": texts[some]} if text is not None else {"vector": packed(rows[some])}
        parts.append(hits_of((yield Ask("POST", "/v1/search", {**body, **asked}))))
    if not parts:
        raise DataError("there are no queries: give at least one")
    return replace(joined(parts), queries=names)


def packed(rows: F32) -> str:
    """Vectors as base64."""
    return base64.b64encode(np.ascontiguousarray(rows, "<f4").tobytes()).decode()


def hits_of(answer: Mapping[str, Any]) -> Hits:
    """The answers as an index in this process gives them."""
    results = answer["results"]
    known: dict[Id, Document] = {}
    for result in results:
        for hit in result["hits"]:
            known.setdefault(hit["id"], document_of(hit))
    row_of = {name: row for row, name in enumerate(known)}
    most = max((len(result["hits"]) for result in results), default=0)
    rows, scores = np.full((len(results), most), -1), np.full((len(results), most), -np.inf, np.float32)
    for place, result in enumerate(results):
        for rank, hit in enumerate(result["hits"]):
            rows[place, rank], scores[place, rank] = row_of[hit["id"]], hit["score"]
    widths = np.array([result["mean_width"] for result in results], np.float64)
    return Hits(rows, scores, widths, Known(list(known.values())))


def document_of(stored: Mapping[str, Any]) -> Document:
    """A document from JSON."""
    return Document(stored["id"], stored.get("title", ""), stored.get("text", ""), stored.get("metadata", {}))


def names_of(queries: Any, text: str | Sequence[str] | None) -> Sequence[Id]:
    """Texts or ids of the queries, where they have any."""
    if text is not None:
        return [text] if isinstance(text, str) else list(text)
    return queries.ids if isinstance(queries, Vectors) and not isinstance(queries.ids, range) else ()


def source_of(
    vectors: Any,
    ids: Iterable[Id] | None,
    titles: Sequence[str] | None,
    texts: Sequence[str] | None,
    metadata: Sequence[Mapping[str, Any]] | None,
) -> Iterator[dict[str, Any]]:
    """Documents as POST /v1/documents takes them: vectors, or texts for the service's encoder."""
    if vectors is not None:
        return documents_of(of_vectors(Vectors.of(vectors, ids, name="documents"), titles, texts, metadata))
    if texts is None:
        raise OptionError("give vectors, or texts for the encoder")
    columns = {"text": as_list(texts, "documents", "texts")}
    for name, values in (("id", ids), ("title", titles), ("metadata", metadata)):
        if values is not None:
            columns[name] = one_per_row(values, len(columns["text"]), "documents", name)
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def documents_of(source: Source) -> Iterator[dict[str, Any]]:
    """The same, from a source."""
    for batch in source.batches():
        for one, row in zip(batch.documents, batch.vectors.all(), strict=True):
            name = {} if source.numbered else {"id": int(one.id) if isinstance(one.id, np.integer) else one.id}
            yield {**name, "title": one.title, "text": one.text, "metadata": dict(one.metadata), "vector": packed(row)}


def write(documents: Iterator[dict[str, Any]], mode: str) -> Asking[Written]:
    """Documents, as many at a time as a request may have: each request is written as a whole, or not at all."""
    added = replaced = total = 0
    while some := list(islice(documents, LARGEST_BATCH)):
        done = yield Ask("POST", "/v1/documents", {"documents": some, "mode": mode})
        added, replaced, total = added + done["added"], replaced + done["replaced"], done["documents"]
    if not added and not replaced:
        raise DataError("there are no documents")
    return Written(added, replaced, total)


def remove(ids: Id | Iterable[Id]) -> Asking[int]:
    """Removes documents, all or none up to the size of a request."""
    wanted, removed = list(dict.fromkeys(listed(ids))), 0
    for start in range(0, len(wanted), LARGEST_BATCH):
        done = yield Ask("POST", "/v1/documents:remove", {"ids": wanted[start : start + LARGEST_BATCH]})
        removed += done["removed"]
    return removed


def fetch(ids: Id | Iterable[Id], vectors: bool = False) -> Asking[list[dict[str, Any]]]:
    """What is known of documents, in this order."""
    wanted, found = listed(ids), []
    for start in range(0, len(wanted), LARGEST_BATCH):
        done = yield Ask("POST", "/v1/documents:fetch", {"ids": wanted[start : start + LARGEST_BATCH], "vectors": vectors})
        found += done["documents"]
    return found


def everything() -> Asking[list[dict[str, Any]]]:
    """What is known of all documents."""
    found: list[dict[str, Any]] = []
    while True:
        done = yield Ask("GET", f"/v1/documents?offset={len(found)}&limit={PAGE}", None)
        found += done["documents"]
        if len(done["documents"]) < PAGE:
            return found


def contains(identifier: Id) -> Asking[bool]:
    """Whether there is a document of this id."""
    done = yield Ask("POST", "/v1/documents:known", {"ids": [identifier]})
    return bool(done["known"][0])


class Connection:
    """Where a service is and how its answers are read, for both clients."""

    def __init__(self, url: str, key: str | None, timeout: float) -> None:
        need("httpx")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OptionError(f"{url!r} is no address of a service: give http://HOST:PORT")
        if parts.username is not None or parts.password is not None:
            raise OptionError(f"the address holds a user or password: leave them out, and give the key in {KEY}")
        self.url = url.rstrip("/")
        self._key = os.environ.get(KEY) if key is None else key
        self._timeout = timeout

    def opened(self, kind: str) -> Any:
        """A client of httpx. It follows no redirect: a key is for the host it was given for."""
        import httpx

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        return getattr(httpx, kind)(base_url=self.url, timeout=self._timeout, headers=headers)

    def read(self, response: Any, tried: int) -> tuple[Any, float | None]:
        """The answer, or how long to wait before asking again; raises what an index in this process would."""
        if response.status_code in (429, 503) and tried < TRIES:
            asked = response.headers.get("Retry-After")
            return None, min(float(asked) if asked and asked.isdecimal() else 0.1 * 2**tried, LONGEST_PAUSE)
        try:
            body = response.json()
        except ValueError:
            raise EngineError(f"{self.url}: the answer ({response.status_code}) is no JSON: is this an AdaWidth service?") from None
        if response.status_code < 300:
            return body, None
        problem = body if isinstance(body, dict) else {}
        detail = str(problem.get("detail") or f"answered {response.status_code}")[:1_000]
        kind = ERRORS.get(str(problem.get("code", "")), EngineError)
        raise kind(detail if kind is not EngineError else f"{self.url}: {detail}")

    def unreached(self, error: Exception) -> EngineError:
        """What is raised where there is no answer."""
        return EngineError(f"{self.url}: can't be reached ({type(error).__name__}: {error}): is the service running?")
