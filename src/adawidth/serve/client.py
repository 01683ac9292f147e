"""Client: an index behind a service, with the verbs of any other. `connect("http://…")` gives one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ..data import Document
from ..errors import EngineError, OptionError
from ..formats.documents import Source
from ..hits import Hits
from ..model import Index
from ..stages import Written
from ..stages.loop import SHORTLIST
from ..types import F32, Id, StrPath
from . import wire
from .wire import Ask, Asking, Connection

Result = TypeVar("Result")
SECONDS = 60.0  # for one answer


class Client(Index):
    """An index behind a service: the same verbs. The service encodes texts, chooses widths and writes.

    >>> import numpy as np
    >>> from adawidth import AdaWidth, Client
    >>> from adawidth.serve.run import running
    >>> documents = np.random.default_rng(0).standard_normal((200, 64)).astype(np.float32)
    >>> served = running(AdaWidth.fit(documents, recipe="pca").index(documents), key="for this example only")
    >>> client = Client(served.url, "for this example only")
    >>> client.search(documents[7], k=3)[0][0].id
    7
    """

    def __init__(self, url: str, key: str | None = None, *, timeout: float = SECONDS) -> None:
        """`key` is the service's API key, by default that of the variable ADAWIDTH_API_KEY."""
        self._connection = Connection(url, key, timeout)
        self._http = self._connection.opened("Client")

    def __getattr__(self, name: str) -> Any:
        """What is on the other side: `model` and `store`."""
        raise AttributeError(f"an index behind a service has no {name} in this process: open the folder, or connect to the engine")

    @property
    def path(self) -> None:
        """None: the folder is the service's."""
        return None

    @property
    def width(self) -> int:
        """How many coordinates can be read: those that are stored."""
        return int(self.facts()["width"])

    @property
    def takes_text(self) -> bool:
        """Whether the service has an encoder for texts."""
        return bool(self.facts()["text"])

    def search(
        self,
        queries: Any = None,
        k: int = 10,
        *,
        text: str | Sequence[str] | None = None,
        policy: str | None = None,
        budget: float | None = None,
        quality: float | None = None,
        width: int | str | None = None,
        start: int | None = None,
        shortlist: int = SHORTLIST,
        nprobe: int | None = None,
        task: str | None = None,
        where: str | Mapping[str, Any] | None = None,
        offset: int = 0,
        min_score: float | None = None,
        hybrid: bool = False,
        threads: int = 1,
    ) -> Hits:
        """As `Index.search`; `threads` are the service's own, and a hybrid search takes texts without vectors.

        >>> client.search(documents[:5], k=3, budget=48).ids[4][0]
        4
        """
        options = {
            "policy": policy, "budget": budget, "quality": quality, "width": width, "start": start, "shortlist": shortlist,
            "nprobe": nprobe, "task": task, "where": where, "offset": offset, "min_score": min_score, "hybrid": hybrid,
        }  # fmt: skip
        return self._ask(wire.search(queries, k, text, options))

    def add(
        self,
        vectors: Any = None,
        ids: Iterable[Id] | None = None,
        *,
        titles: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> Written:
        """As `Index.add`; more than 256 documents go in several requests, each of them all or none.

        >>> client.add(documents[:1], titles=["A copy"]).documents
        201
        """
        return self._ask(wire.write(wire.source_of(vectors, ids, titles, texts, metadata), "add"))

    def update(
        self,
        vectors: Any = None,
        ids: Iterable[Id] | None = None,
        *,
        titles: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> Written:
        """Like `add`, but replaces documents that have the same ids.

        >>> client.update(documents[:1], ids=[7], titles=["Now a copy of 0"]).replaced
        1
        """
        return self._ask(wire.write(wire.source_of(vectors, ids, titles, texts, metadata), "update"))

    def write(self, documents: Source, *, update: bool = False) -> Written:
        """Adds or updates documents while they are read from files.

        >>> from adawidth import Vectors
        >>> from adawidth.formats.documents import of_vectors
        >>> client.write(of_vectors(Vectors.of(documents[:1], [200]))).added
        1
        """
        return self._ask(wire.write(wire.documents_of(documents), "update" if update else "add"))

    def remove(self, ids: Id | Iterable[Id]) -> int:
        """Removes documents by id; returns how many.

        >>> client.remove([7, 8])
        2
        """
        return self._ask(wire.remove(ids))

    def documents(self, ids: Iterable[Id] | None = None) -> list[Document]:
        """What is known of these documents, in this order, or of all documents.

        >>> [document.id for document in client.documents([8, 7])]
        [8, 7]
        """
        found = self._ask(wire.everything() if ids is None else wire.fetch(ids))
        return [wire.document_of(one) for one in found]

    def vectors(self, ids: Iterable[Id]) -> F32:
        """The stored vectors of these documents: rotated and cut. (n, m)

        >>> client.vectors([7, 8]).shape
        (2, 64)
        """
        return np.array([one["vector"] for one in self._ask(wire.fetch(ids, vectors=True))], np.float32)

    def facts(self) -> dict[str, Any]:
        """What GET /v1/index says.

        >>> client.facts()["documents"]
        200
        """
        found: dict[str, Any] = self._send(Ask("GET", "/v1/index", None))
        return found

    def refresh(self) -> bool:
        """False: the service moves on to new commits by itself.

        >>> client.refresh()
        False
        """
        return False

    def compact(self, *, hybrid: bool = False) -> bool:
        """Refused: run `adawidth compact` where the folder is.

        >>> client.compact()
        Traceback (most recent call last):
        adawidth.errors.OptionError: a service does not compact: run `adawidth compact` where the folder is
        """
        raise OptionError("a service does not compact: run `adawidth compact` where the folder is")

    def snapshot(self, path: StrPath, *, force: bool = False) -> None:
        """Refused: run `adawidth snapshot` where the folder is.

        >>> client.snapshot("copy.index")
        Traceback (most recent call last):
        adawidth.errors.OptionError: a service copies no folders: run `adawidth snapshot` where the folder is
        """
        raise OptionError("a service copies no folders: run `adawidth snapshot` where the folder is")

    def close(self) -> None:
        """Closes the connections. A `with` block does it by itself.

        >>> client.close()
        """
        self._http.close()

    def __len__(self) -> int:
        return int(self.facts()["documents"])

    def __contains__(self, identifier: object) -> bool:
        return isinstance(identifier, str | int) and self._ask(wire.contains(identifier))

    def __iter__(self) -> Iterator[Id]:
        return (document.id for document in self.documents())

    def __repr__(self) -> str:
        return f"Client({self._connection.url})"

    def _ask(self, asking: Asking[Result]) -> Result:
        """Sends what a verb asks for, until it has its result."""
        try:
            asked = next(asking)
            while True:
                asked = asking.send(self._send(asked))
        except StopIteration as done:
            result: Result = done.value
            return result

    def _send(self, asked: Ask) -> Any:
        import httpx

        for tried in range(1, wire.TRIES + 1):
            try:
                response = self._http.request(asked.method, asked.path, json=asked.body)
            except httpx.HTTPError as error:
                raise self._connection.unreached(error) from None
            body, pause = self._connection.read(response, tried)
            if pause is None:
                return body
            time.sleep(pause)
        raise EngineError(f"{self._connection.url}: still busy after {wire.TRIES} tries: try again later")
