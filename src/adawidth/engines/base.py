"""What AdaWidth asks of an engine: keep rotated vectors, find the nearest at the start width, score given ids at other widths."""

from __future__ import annotations

import json
import logging
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from ..data import Document
from ..errors import ArtifactError, EngineError
from ..filters import Filter
from ..types import F32

log = logging.getLogger("adawidth")

FORMAT, VERSION = "adawidth-collection", 1
PATIENCE = 10.0  # seconds until an engine that does not answer counts as unreachable
TRIES = 4  # of one request to an engine that can't be reached
PAUSE = 0.1  # seconds before the second try, twice as long before each further one
LOOK = 0.2  # seconds between two looks at a collection whose writes are held back

T = TypeVar("T")


@dataclass(frozen=True)
class Layout:
    """How a collection keeps its documents; written once, beside the model, when the collection is made."""

    fingerprint: str  # of the rotation
    widths: tuple[int, ...]  # ascending: the start width, those between, and the coordinates kept
    shortlist: int = 500  # candidates of stage 1, unless a search says otherwise

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in zip(self.widths, self.widths[1:], strict=False))
        if not self.widths or not rising or not all(type(width) is int and width >= 1 for width in self.widths):
            raise ArtifactError(f"widths {self.widths!r}: expected whole numbers that rise from at least 1")
        if self.shortlist < 1:
            raise ArtifactError(f"shortlist {self.shortlist!r}: expected a whole number from 1 on")

    @property
    def start(self) -> int:
        """The width at which candidates are found."""
        return self.widths[0]

    @property
    def keep(self) -> int:
        """Coordinates kept of each document."""
        return self.widths[-1]

    def to_json(self) -> str:
        """As the engine keeps it."""
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)})

    @classmethod
    def of_json(cls, text: str, where: str) -> Self:
        """What `to_json` wrote."""
        try:
            found = json.loads(text)
            if found["format"] != FORMAT or not 1 <= found["version"] <= VERSION:
                raise ValueError("another format, or a newer one")
            return cls(str(found["fingerprint"]), tuple(found["widths"]), int(found.get("shortlist", 500)))
        except (ValueError, KeyError, TypeError, ArtifactError) as error:
            raise ArtifactError(f"{where}: this is no collection that this AdaWidth reads ({error}): push it again") from None


@dataclass(frozen=True)
class Settings:
    """What is written beside the documents: how they are kept, and, once they move to another rotation, how far that is."""

    layout: Layout
    held: bool = False  # whether writes are held back, as the last of them are being copied
    moved_to: str | None = None  # the collection that answers instead

    def to_json(self) -> str:
        """As the engine keeps it."""
        return json.dumps({**json.loads(self.layout.to_json()), "held": self.held, "moved_to": self.moved_to})

    @classmethod
    def of_json(cls, text: str, where: str) -> Self:
        """What `to_json`, or a layout's, wrote."""
        layout = Layout.of_json(text, where)
        found = json.loads(text)
        return cls(layout, bool(found.get("held", False)), found.get("moved_to"))


@dataclass(frozen=True, eq=False)
class Row:
    """A document as an engine takes it."""

    document: Document  # its id is a string
    vector: F32  # (keep,) rotated and cut
    norms: F32  # (widths,) lengths of its prefixes


@dataclass(frozen=True, eq=False)
class Found:
    """What an engine finds for one query, best first."""

    ids: Sequence[str]
    scores: F32  # (n,) cosines of the prefixes
    norms: F32  # (n, widths) lengths of the documents' prefixes


class Engine(ABC):
    """One collection in an engine. Ids are strings, vectors rotated, scores cosines of prefixes; batches are one request where the
    engine can. Every question that is safe to ask again goes through `_ask`."""

    name: ClassVar[str]
    transactional: ClassVar[bool] = False  # whether writes are, so that holding them back waits for those that have begun
    any_width: ClassVar[bool] = False  # whether it scores every width up to the coordinates kept, not only those of the layout
    one_request: ClassVar[bool] = False  # whether it finds a shortlist and scores it at a larger width in one request: `widened`
    unreachable: tuple[type[BaseException], ...] = ()  # what the client raises when the engine is not there
    spent: tuple[type[BaseException], ...] = ()  # the same, after it has tried again by itself
    refused: tuple[type[BaseException], ...] = ()  # what it raises when the engine says no

    def __init__(self, url: str, collection: str) -> None:
        self.url = url
        self.collection = collection
        self.trips = 0  # requests so far
        self.layout: Layout  # set by `create` or `open`

    @property
    def transacting(self) -> bool:
        """Whether this thread is in a transaction, which others may be waiting for."""
        return False

    @property
    def where(self) -> str:
        """The address without its password, for messages."""
        return f"{without_password(self.url)}, collection {self.collection}"

    @abstractmethod
    def exists(self) -> bool:
        """Whether the collection is there."""

    @abstractmethod
    def create(self, layout: Layout, model: bytes) -> None:
        """Makes the collection, empty, with the model beside it."""

    @abstractmethod
    def open(self) -> bytes:
        """Reads the layout of an existing collection; returns its model."""

    @abstractmethod
    def settings(self) -> Settings:
        """What is written beside the documents, as of now. Within a transaction it stays so until the end."""

    @abstractmethod
    def settle(self, settings: Settings) -> None:
        """Replaces it, in one step that others see whole or not at all."""

    @abstractmethod
    def clear(self) -> None:
        """Removes the documents and what holds them, but not the settings."""

    @abstractmethod
    def drop(self) -> None:
        """Removes the collection and all that is in it."""

    @abstractmethod
    def count(self) -> int:
        """Documents in it."""

    @abstractmethod
    def ids(self) -> Iterator[str]:
        """All ids, in batches behind the scenes."""

    @abstractmethod
    def present(self, ids: Sequence[str]) -> set[str]:
        """Those of these ids that the collection has."""

    @abstractmethod
    def write(self, rows: Sequence[Row], *, update: bool) -> None:
        """Writes documents. Existing ids are replaced with `update`; without, they are refused here, or were checked before."""

    @abstractmethod
    def remove(self, ids: Sequence[str]) -> None:
        """Removes documents that are there."""

    @abstractmethod
    def documents(self, ids: Sequence[str]) -> Mapping[str, Document]:
        """What is known of these, of those that are there."""

    @abstractmethod
    def vectors(self, ids: Sequence[str]) -> Mapping[str, F32]:
        """Their vectors as they are kept. (keep,)"""

    @abstractmethod
    def nearest(self, queries: F32, k: int, condition: Filter | None, *, exact: bool = False) -> list[Found]:
        """The k best for each query at the start width. (Q, start)"""

    @abstractmethod
    def scores(self, queries: F32, ids: Sequence[Sequence[str]]) -> list[F32]:
        """Of each query, at its width, with its own ids, in their order; NaN where one is gone. (Q, width)"""

    def widened(self, queries: F32, k: int, shortlist: int, condition: Filter | None) -> list[Found]:
        """The k best of each query's shortlist: found at the start width, scored at the queries' own, in one request. Without norms.
        (Q, width)"""
        raise NotImplementedError

    def writing(self) -> Any:
        """A context in which several writes are one transaction, if the engine has any; else each is one of its own."""
        from contextlib import nullcontext

        return nullcontext()

    def check_writable(self) -> None:
        """Before a write: waits while writes are held back, and refuses a collection that has moved."""
        end = time.monotonic() + (0 if self.transacting else PATIENCE)
        while (found := self.settings()).held:
            if found.moved_to is not None:
                raise EngineError(f"{self.where}: it has moved to another rotation, in {found.moved_to}: connect again")
            if time.monotonic() >= end:
                raise EngineError(f"{self.where}: it is moving to another rotation, and writes are held back: try again later")
            time.sleep(LOOK)

    def finish(self) -> None:  # noqa: B027  most engines build their indexes as they go
        """After a bulk load: builds what is built better afterwards."""

    def facts(self) -> dict[str, Any]:
        """What `adawidth info` says of it besides what every engine has."""
        return {}

    def close(self) -> None:  # noqa: B027
        """Closes the connection."""

    def _ask(self, question: Callable[[], T]) -> T:
        """The answer to a question that may be asked again: a few times, with growing pauses, while the engine can't be reached."""
        for tried in range(1, TRIES + 1):
            self.trips += 1
            try:
                return question()
            except self.spent as error:
                raise EngineError(f"{self.where}: can't be reached ({reason(error)}): is the engine running?") from None
            except self.unreachable as error:
                if tried == TRIES:
                    raise EngineError(
                        f"{self.where}: can't be reached ({reason(error)}); tried {TRIES} times: is the engine running?"
                    ) from None
                log.info("%s: can't be reached (%s): trying again", self.where, reason(error))
                time.sleep(PAUSE * 2 ** (tried - 1) * random.uniform(0.5, 1.5))
            except self.refused as error:
                raise EngineError(f"{self.where}: {reason(error)}") from None
        raise AssertionError


def reason(error: BaseException) -> str:
    """The first line of what a client says."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]


def without_password(url: str) -> str:
    """An address as it may be shown: no password, and no key in its query."""
    from urllib.parse import urlsplit, urlunsplit

    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    user = parts.netloc.rpartition("@")[0].partition(":")[0]
    return urlunsplit((parts.scheme, f"{user}@{host}" if user else host, parts.path, "", ""))


def prefix_lengths(vectors: F32, widths: Sequence[int]) -> F32:
    """Lengths of every row's prefixes, never zero. (n, keep) -> (n, widths)"""
    squares = np.cumsum(np.square(vectors, dtype=np.float64), axis=1)
    return np.asarray(np.sqrt(np.maximum(squares[:, [width - 1 for width in widths]], 1e-24)), np.float32)


def cosines(queries: F32, ids: Sequence[Sequence[str]], row_of: Mapping[str, int], vectors: F32) -> list[F32]:
    """Of each query with its own ids, whose vectors were brought here; NaN where one is not among them. (Q, width), (n, width)"""
    widths = [queries.shape[1]]
    gone = np.full((1, *widths), np.nan, np.float32)
    units = np.concatenate([vectors / prefix_lengths(vectors, widths), gone])
    asked = queries / prefix_lengths(queries, widths)
    return [units[[row_of.get(name, -1) for name in names]] @ query for query, names in zip(asked, ids, strict=True)]
