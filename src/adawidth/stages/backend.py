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
from ..formats.documents import Source, of_vectors
from ..hits import Hits
from ..rotation import Rotated
from ..types import F32, I64, Id, Mask, Rows, StrPath, Widths
from .loop import by_stages
from .state import Decision, Stage

if TYPE_CHECKING:
    from ..policies import Policy


class Backend(ABC):
    """Rotated documents, as one search sees them. Subclasses know where rows lie and how long their prefixes are."""

    start: int | None = None  # the width that finding candidates is made for; none where any width will do

    @abstractmethod
    def __len__(self) -> int:
        """Documents that can be found."""

    @property
    @abstractmethod
    def documents(self) -> Documents:
        """The documents by row; rows of removed documents count too."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The widest that can be read."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Names the rotation that the documents are under."""

    @property
    @abstractmethod
    def centre(self) -> F32:
        """Mean of all documents. (m,)"""

    @abstractmethod
    def norms(self, width: int) -> F32:
        """Length of every document's prefix. (N,)"""

    @abstractmethod
    def block_norms(self, begin: int, end: int, *, centred: bool = False) -> F32:
        """Length of coordinates `begin` to `end` of every document, or of their difference from the mean of all documents. (N,)"""

    @abstractmethod
    def search(self, queries: F32, width: int, k: int, own: Rows | None = None) -> Stage:
        """The k best of all documents at this width for rotated queries; `own` is a document row each that is never returned."""

    @abstractmethod
    def bytes_read(self, width: int, coordinates: I64) -> I64:
        """Of a scan at this width and so many coordinates of candidates. (Q,) -> (Q,)"""

    @abstractmethod
    def _extend(self, queries: F32, candidates: Rows, keep: Mask, begin: Widths, end: Widths, sums: F32) -> None:
        """Adds coordinates begin[q] to end[q] to the partial sums of the kept candidates, in place."""

    @abstractmethod
    def vectors(self, rows: Rows) -> F32:
        """The documents in these rows as they are kept: rotated, cut, rounded. (n, m)"""

    def answer(self, queries: Rotated, policy: Policy, k: int, shortlist: int) -> Hits:
        """The policy's answers: by the stage loop, unless a subclass has a faster way to the same."""
        return by_stages(self, queries.all(), policy, k, shortlist=shortlist)

    def open(self, queries: F32, candidates: Rows, width: int) -> Stage:
        """Given candidates, read to this width."""
        sums = np.zeros(candidates.shape, np.float32)
        begin = np.zeros(len(queries), np.int64)
        self._extend(queries, candidates, candidates >= 0, begin, np.full_like(begin, width), sums)
        return self._stage(queries, candidates, sums, width)

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

    def _stage(self, queries: F32, candidates: Rows, sums: F32, width: int) -> Stage:
        """Candidates that stand at this width; -1 is none."""
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

    @abstractmethod
    def where(self, condition: str | Mapping[str, Any]) -> Backend:
        """The same with only the documents whose metadata meet a filter (see filters.py)."""

    @abstractmethod
    def __contains__(self, identifier: object) -> bool: ...

    @abstractmethod
    def rows_of(self, ids: Sequence[Id]) -> Rows:
        """The rows of documents by their ids; a DataError where one is not there."""

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
        """Adds documents, all or none: vectors and what is known of each. Ids that are there already are refused."""
        return self.write(of_vectors(self.named(Vectors.of(vectors, ids, name="documents")), titles, texts, metadata))

    def update(self, vectors: Any, ids: Iterable[Id] | None = None, **known: Any) -> Written:
        """Like `add`, in place of the documents that have the same ids."""
        return self.write(of_vectors(self.named(Vectors.of(vectors, ids, name="documents")), **known), update=True)

    def named(self, given: Vectors) -> Vectors:
        """Vectors without ids get numbers where the documents are numbered; ids of others are strings."""
        if isinstance(given.ids, range):
            if not self.numbered:
                raise DataError(f"{given.name}: the documents of this index have ids: give one per row")
            return Vectors(given.values, range(self.following, self.following + len(given)), given.name)
        if not self.numbered:
            return Vectors(given.values, [str(name) for name in given.ids], given.name)
        wrong = next((name for name in given.ids if not str(name).isdecimal()), None)
        if wrong is not None:
            raise DataError(f"{given.name}: id {wrong!r}, but the documents of this index are numbered: give whole numbers, or no ids")
        return Vectors(given.values, [int(name) for name in given.ids], given.name)

    def documents(self, ids: Id | Iterable[Id]) -> list[Document]:
        """What is known of these documents, in this order."""
        return self.view.documents.describe(self.rows_of(listed(ids)).tolist())

    def vectors(self, ids: Id | Iterable[Id]) -> F32:
        """These documents' vectors as they are kept: rotated, cut, rounded. (n, m)"""
        return self.view.vectors(self.rows_of(listed(ids)))

    @abstractmethod
    def write(self, documents: Source, *, update: bool = False) -> Written:
        """Adds documents, all or none; with `update` in place of those that have the same ids, which are refused otherwise."""

    @abstractmethod
    def remove(self, ids: Id | Iterable[Id]) -> int:
        """Removes documents, all or none: one id, or several; how many."""

    @property
    @abstractmethod
    def numbered(self) -> bool:
        """Whether documents came without ids and are named by numbers, which go on when others are added."""

    @property
    @abstractmethod
    def following(self) -> int:
        """The number that the next document gets where they are numbered."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What `adawidth info` prints."""

    def compact(self) -> bool:
        """Gives back what removed documents took; False where there is nothing to do."""
        return False

    def refresh(self) -> bool:
        """Goes on to the last commit of any process; whether there was a newer one."""
        return False

    def snapshot(self, path: StrPath, *, force: bool = False) -> None:
        """A copy in another folder."""
        raise OptionError("this index is in memory and has no folder to copy: make one on disk with model.index(documents, path=…)")

    def close(self) -> None:  # noqa: B027  most stores have nothing to end
        """Ends it."""


def listed(ids: Id | Iterable[Id]) -> list[Id]:
    """Ids as a list; a string is one id, not its letters."""
    return [ids] if isinstance(ids, str | int) else list(ids)
