"""AsyncClient: the verbs of an index, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar, Unpack

import numpy as np

from ..data import Document
from ..errors import EngineError
from ..hits import Hits
from ..stages import Written
from ..types import F32, Id
from . import wire
from .client import SECONDS
from .wire import Ask, Asking, Connection, SearchOptions

Result = TypeVar("Result")


class AsyncClient:
    """An index behind a service, for programs that await: the verbs and results of `Client`.

    >>> import asyncio
    >>> import numpy as np
    >>> from adawidth import AdaWidth, AsyncClient
    >>> from adawidth.serve.run import running
    >>> documents = np.random.default_rng(0).standard_normal((200, 64)).astype(np.float32)
    >>> served = running(AdaWidth.fit(documents, recipe="pca").index(documents), key="for this example only")
    >>> def asked(verb, *arguments, **options):
    ...     async def ask():
    ...         async with AsyncClient(served.url, "for this example only") as client:
    ...             return await getattr(client, verb)(*arguments, **options)
    ...     return asyncio.run(ask())
    """

    def __init__(self, url: str, key: str | None = None, *, timeout: float = SECONDS) -> None:
        """`key` is the service's API key, by default that of the variable ADAWIDTH_API_KEY."""
        self._connection = Connection(url, key, timeout)
        self._http = self._connection.opened("AsyncClient")

    async def search(
        self, queries: Any = None, k: int = 10, *, text: str | Sequence[str] | None = None, **options: Unpack[SearchOptions]
    ) -> Hits:
        """As `Index.search`.

        >>> asked("search", documents[7], k=3)[0][0].id
        7
        """
        return await self._ask(wire.search(queries, k, text, options))

    async def add(
        self,
        vectors: Any = None,
        ids: Iterable[Id] | None = None,
        *,
        titles: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> Written:
        """As `Index.add`.

        >>> asked("add", documents[:1], titles=["A copy"]).documents
        201
        """
        return await self._ask(wire.write(wire.source_of(vectors, ids, titles, texts, metadata), "add"))

    async def update(
        self,
        vectors: Any = None,
        ids: Iterable[Id] | None = None,
        *,
        titles: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> Written:
        """Like `add`, but replaces documents that have the same ids.

        >>> asked("update", documents[:1], ids=[7]).replaced
        1
        """
        return await self._ask(wire.write(wire.source_of(vectors, ids, titles, texts, metadata), "update"))

    async def remove(self, ids: Id | Iterable[Id]) -> int:
        """Removes documents by id; returns how many.

        >>> asked("remove", [7, 8])
        2
        """
        return await self._ask(wire.remove(ids))

    async def get(self, identifier: Id) -> Document:
        """What is known of one document.

        >>> asked("get", 7)
        Document(id=7, title='', text='', metadata={})
        """
        return (await self.documents([identifier]))[0]

    async def documents(self, ids: Iterable[Id] | None = None) -> list[Document]:
        """What is known of these documents, in this order, or of all documents.

        >>> len(asked("documents"))
        200
        """
        found = await self._ask(wire.everything() if ids is None else wire.fetch(ids))
        return [wire.document_of(one) for one in found]

    async def vectors(self, ids: Iterable[Id]) -> F32:
        """The stored vectors of these documents: rotated and cut. (n, m)

        >>> asked("vectors", [7, 8]).shape
        (2, 64)
        """
        return np.array([one["vector"] for one in await self._ask(wire.fetch(ids, vectors=True))], np.float32)

    async def contains(self, identifier: Id) -> bool:
        """Whether there is a document of this id.

        >>> asked("contains", 7)
        True
        """
        return await self._ask(wire.contains(identifier))

    async def facts(self) -> dict[str, Any]:
        """What GET /v1/index says.

        >>> asked("facts")["documents"]
        200
        """
        found: dict[str, Any] = await self._send(Ask("GET", "/v1/index", None))
        return found

    async def close(self) -> None:
        """Closes the connections. An `async with` block does it by itself.

        >>> asyncio.run(AsyncClient(served.url).close())
        """
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self._connection.url})"

    async def _ask(self, asking: Asking[Result]) -> Result:
        try:
            asked = next(asking)
            while True:
                asked = asking.send(await self._send(asked))
        except StopIteration as done:
            result: Result = done.value
            return result

    async def _send(self, asked: Ask) -> Any:
        import httpx

        for tried in range(1, wire.TRIES + 1):
            try:
                response = await self._http.request(asked.method, asked.path, json=asked.body)
            except httpx.HTTPError as error:
                raise self._connection.unreached(error) from None
            body, pause = self._connection.read(response, tried)
            if pause is None:
                return body
            await asyncio.sleep(pause)
        raise EngineError(f"{self._connection.url}: still busy after {wire.TRIES} tries: try again later")
