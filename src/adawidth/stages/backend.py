"""What an index searches and changes: a Backend answers queries over rotated documents, a Store keeps and changes them.

A backend never changes under a search: what a store commits meanwhile is in its next backend. An engine is both at once. The verbs
make sense across a network: search at a width, score given candidates at a width, fetch vectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import Document, Documents, Vectors
from ..errors import DataError, OptionError
from ..formats.documents import Batch, Source, of_vectors
from ..hits import Hits
from ..rotation import Rotated
from ..types import F32, I64, Id, Mask, Rows, StrPath, Widths
from .loop import by_stages
from .state import Decision, Stage

if TYPE_CHECKING:
    from ..policies import Policy

HIGHEST = 2**62  # number of a document


class Backend(ABC):
    """Rotated documents, as one search sees them: in memory, on disk or in an engine."""

    start: int | None = None  # the width that candidates are found at; None if any width will do

    @abstractmethod
    def __len__(self) -> int:
        """Documents that can be found."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The widest that can be read."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Names the rotation that the documents are under."""

    @abstractmethod
    def search(self, queries: F32, width: int, k: int, own: Rows | None = None) -> Stage:
        """The k best of all documents at this width for rotated queries; `own` is a document row each that is never returned."""

    def open(self, queries: F32, candidates: Rows, width: int) -> Stage:
        """Given candidates, read to this width."""
        raise unable()

    def most(self, k: int) -> int:
        """How many of k answers there can be."""
        return min(k, len(self))

    def probing(self, nprobe: int) -> Backend:
        """The same, where a query scans so many inverted lists."""
        raise OptionError(f"nprobe {nprobe} is for index folders whose documents are in lists (storage ivf): leave it out")

    def answer(self, queries: Rotated, policy: Policy, k: int, shortlist: int) -> Hits:
        """The policy's answers: by the stage loop, unless a subclass has a faster way to the same."""
        return by_stages(self, queries.all(), policy, k, shortlist=shortlist)


class Reader(ABC):
    """Reads the candidates of a stage further. Subclasses know the candidates' rows and their prefix norms."""

    @property
    @abstractmethod
    def documents(self) -> Documents:
        """The documents by row; rows of removed documents count too."""

    @abstractmethod
    def norms(self, width: int) -> F32:
        """Length of every document's prefix. (N,)"""

    @abstractmethod
    def rescore(self, stage: Stage, decision: Decision) -> Stage:
        """The kept candidates read on to the decision's widths."""

    @abstractmethod
    def bytes_read(self, width: int, coordinates: I64) -> I64:
        """Of a scan at this width and so many coordinates of candidates. (Q,) -> (Q,)"""

    @property
    def width(self) -> int:
        """The widest that can be read."""
        raise unable()

    @property
    def centre(self) -> F32:
        """Mean of all documents. (m,)"""
        raise unable()

    def block_norms(self, begin: int, end: int, *, centred: bool = False) -> F32:
        """Length of coordinates `begin` to `end` of every document, or of their difference from the mean of all documents. (N,)"""
        raise unable()

    def open(self, queries: F32, candidates: Rows, width: int) -> Stage:
        """Given candidates, read to this width."""
        raise unable()

    def _stage(self, queries: F32, candidates: Rows, sums: F32, width: int) -> Stage:
        """A stage of candidates read to this width; -1 is no candidate."""
        alive = candidates >= 0
        scores = sums / (self.norms(width)[candidates] * prefix_norms(queries, width)[:, None])
        return Stage(
            backend=self,
            queries=queries,
            candidates=candidates,
            sums=sums,
            scores=np.where(alive, scores, -np.inf).astype(np.float32),
            alive=alive,
            last=np.where(alive, width, 0),
            widths=np.full(len(queries), width, np.int64),
            coordinates=alive.sum(axis=1) * width,
        )

    def _moved(self, stage: Stage, decision: Decision, sums: F32, scores: F32) -> Stage:
        """The stage after its kept candidates were read on."""
        keep, widths = decision.keep & stage.alive, decision.widths
        moving = keep & (widths > stage.widths)[:, None]
        return Stage(
            backend=self,
            queries=stage.queries,
            candidates=stage.candidates,
            sums=sums,
            scores=scores,
            alive=keep,
            last=np.where(moving, widths[:, None], stage.last),
            widths=widths,
            coordinates=stage.coordinates + moving.sum(axis=1) * (widths - stage.widths),
        )


class RowBackend(Backend, Reader):
    """Documents whose rows this process can read: partial sums grow by the coordinates not yet read."""

    @abstractmethod
    def _extend(self, queries: F32, candidates: Rows, keep: Mask, begin: Widths, end: Widths, sums: F32) -> None:
        """Adds coordinates begin[q] to end[q] to the partial sums of the kept candidates, in place."""

    @abstractmethod
    def vectors(self, rows: Rows) -> F32:
        """The documents in these rows as they are kept: rotated, cut, rounded. (n, m)"""

    def open(self, queries: F32, candidates: Rows, width: int) -> Stage:
        """Given candidates, read to this width."""
        sums = np.zeros(candidates.shape, np.float32)
        begin = np.zeros(len(queries), np.int64)
        self._extend(queries, candidates, candidates >= 0, begin, np.full_like(begin, width), sums)
        return self._stage(queries, candidates, sums, width)

    def best_of(self, queries: F32, candidates: Rows, width: int, k: int) -> Stage:
        """The k best of these candidates, ranked at this width."""
        stage = self.open(queries, candidates, width)
        ties = np.where(stage.alive, self.documents.tie_rank[candidates], np.iinfo(np.int64).max)
        order = np.lexsort((ties, -stage.scores), axis=1)[:, :k]
        return self._stage(queries, np.take_along_axis(candidates, order, axis=1), np.take_along_axis(stage.sums, order, axis=1), width)

    def rescore(self, stage: Stage, decision: Decision) -> Stage:
        """The kept candidates' partial sums extended to the decision's widths."""
        keep, widths = decision.keep & stage.alive, decision.widths
        moving = keep & (widths > stage.widths)[:, None]
        sums, scores = stage.sums.copy(), stage.scores.copy()
        self._extend(stage.queries, stage.candidates, keep, stage.widths, widths, sums)
        for width in np.unique(widths[widths > stage.widths]).tolist():
            here = moving & (widths == width)[:, None]
            scale = self.norms(width)[stage.candidates] * prefix_norms(stage.queries, width)[:, None]
            scores[here] = sums[here] / scale[here]
        return self._moved(stage, decision, sums, scores)


def unable() -> OptionError:
    """For what needs rows that an engine does not give."""
    return OptionError("these documents can't be read coordinate by coordinate: use the taper or a fixed width")


def prefix_norms(rows: F32, width: int) -> F32:
    """Length of every row's prefix, never zero. (n, D) -> (n,)"""
    return np.asarray(np.maximum(np.linalg.norm(rows[:, :width], axis=1), 1e-12), np.float32)


@dataclass(frozen=True)
class Written:
    """What a change did, and how many documents there are now."""

    added: int
    replaced: int
    documents: int
    segments: int = 1
    storage: str = ""  # how candidates are found among the new documents


class Store(ABC):
    """Keeps documents and changes them. One process at a time changes a store; any number search it."""

    path: Path | None = None  # of the folder, where there is one
    view: Backend  # the documents as of the last change that this object knows of

    @property
    def place(self) -> str:
        """Where the documents are, in a few words."""
        return "memory" if self.path is None else str(self.path)

    @abstractmethod
    def where(self, condition: str | Mapping[str, Any]) -> Backend:
        """The same with only the documents whose metadata meet a filter (see `filters`)."""

    @abstractmethod
    def __contains__(self, identifier: object) -> bool: ...

    @abstractmethod
    def ids(self) -> Iterator[Id]:
        """The ids of all documents that can be found."""

    def add(
        self,
        vectors: Any,
        ids: Iterable[Id] | None = None,
        *,
        titles: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> Written:
        """Adds documents, all or none: vectors and what is known of each. Existing ids are refused."""
        return self.write(of_vectors(Vectors.of(vectors, ids, name="documents"), titles, texts, metadata))

    def update(self, vectors: Any, ids: Iterable[Id] | None = None, **known: Any) -> Written:
        """Like `add`, but replaces documents that have the same ids."""
        return self.write(of_vectors(Vectors.of(vectors, ids, name="documents"), **known), update=True)

    @abstractmethod
    def documents(self, ids: Id | Iterable[Id]) -> list[Document]:
        """What is known of these documents, in this order; a DataError if one is missing."""

    @abstractmethod
    def vectors(self, ids: Id | Iterable[Id]) -> F32:
        """These documents' vectors as they are kept: rotated, cut, rounded. (n, m)"""

    @abstractmethod
    def sample(self, count: int) -> F32:
        """Vectors of at most so many documents, taken from all over the index. (n, m)"""

    def lexical(self, view: Backend, texts: Sequence[str], k: int) -> Rows:
        """The k best rows of a view of this store for each text, by the words of titles and texts; -1 where there are fewer. (Q, k)"""
        raise OptionError("hybrid search needs documents in memory or in an index folder; an engine has a search for words of its own")

    @abstractmethod
    def write(self, documents: Source, *, update: bool = False) -> Written:
        """Adds documents, all or none. Existing ids are replaced with `update`, and refused without."""

    @abstractmethod
    def remove(self, ids: Id | Iterable[Id]) -> int:
        """Removes documents, all or none, by one id or several; returns how many."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What `adawidth info` prints."""

    def compact(self, *, hybrid: bool = False) -> bool:
        """Frees the space of removed documents, and with `hybrid` indexes their words; returns False if there is nothing to do."""
        return False

    def refresh(self) -> bool:
        """Moves on to the last commit of any process; returns whether it is a newer one."""
        return False

    def snapshot(self, path: StrPath, *, force: bool = False) -> None:
        """A copy in another folder."""
        raise OptionError("this index is in memory and has no folder to copy: make one on disk with model.index(documents, path=…)")

    def close(self) -> None:  # noqa: B027  most stores have nothing to end
        """Closes files and connections."""


def check_width(documents: Source, width: int) -> None:
    """Refuses documents whose width is not the model's."""
    if documents.width != width:
        raise DataError(f"{documents.name}: documents are {documents.width} wide, the index {width}: use the index's own encoder")


def named(documents: Source, *, numbered: bool, following: int) -> Iterator[Batch]:
    """The batches with ids as a store has them: strings or, if its documents are `numbered`, numbers; new documents get the next ones."""
    if documents.numbered and not numbered:
        raise DataError(f"{documents.name}: the documents of this index have ids: give one per row")
    for batch in documents.batches():
        if not numbered and {type(one.id) for one in batch.documents} == {str}:  # as most are
            yield batch
            continue
        if documents.numbered:
            ids: Iterable[Id] = range(following, following + len(batch.documents))
            following += len(batch.documents)
        else:
            ids = (_number(one.id, documents.name) if numbered else _string(one.id) for one in batch.documents)
        yield Batch(batch.vectors, [Document(i, one.title, one.text, one.metadata) for i, one in zip(ids, batch.documents, strict=True)])


def _string(name: Id) -> Id:
    """Numbers as strings; anything else is checked when it is stored."""
    return str(name) if isinstance(name, int | np.integer) else name


def _number(name: Id, place: str) -> int:
    if not str(name).isdecimal():
        raise DataError(f"{place}: id {name!r}, but the documents of this index are numbered: give whole numbers, or no ids")
    if int(name) > HIGHEST:
        raise DataError(f"{place}: id {int(name)}, but numbers go up to {HIGHEST}: give lower ones, or no ids")
    return int(name)


class RowStore(Store):
    """A store whose documents have rows in this process."""

    view: RowBackend

    @abstractmethod
    def rows_of(self, ids: Sequence[Id]) -> Rows:
        """The rows of documents by their ids; a DataError if one is missing."""

    def documents(self, ids: Id | Iterable[Id]) -> list[Document]:
        return self.view.documents.describe(self.rows_of(listed(ids)).tolist())

    def vectors(self, ids: Id | Iterable[Id]) -> F32:
        return self.view.vectors(self.rows_of(listed(ids)))

    def sample(self, count: int) -> F32:
        rows = np.linspace(0, len(self.view.documents.ids) - 1, count).astype(np.int64)
        return self.view.vectors(np.unique(rows))


def listed(ids: Id | Iterable[Id]) -> list[Id]:
    """Ids as a list; a string is one id, not its letters."""
    found: list[Any] = list(ids) if isinstance(ids, Iterable) and not isinstance(ids, str | bytes) else [ids]
    for name in found:
        if not isinstance(name, str | int | np.integer) or isinstance(name, bool):
            raise DataError(f"{name!r} is no id: ids are strings or whole numbers")
    return found
