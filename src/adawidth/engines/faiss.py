"""A user's own faiss index finds the candidates; AdaWidth reads them further from its own rows, in memory or on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from ..data import Document
from ..errors import DataError, OptionError
from ..formats.documents import Source
from ..stages import Backend, Stage, Store, Written
from ..stages.backend import RowBackend
from ..threads import openmp
from ..types import F32, Id, Rows, StrPath

SAMPLE, NEAR = 16, 10  # so many documents must mostly be among the so many nearest to themselves


class FaissView(Backend):
    """Documents by row, of which a faiss index over their first coordinates finds the candidates."""

    start: int

    def __init__(self, rows: RowBackend, finder: Any) -> None:
        self._rows, self._finder = rows, finder
        self.start = int(finder.d)
        self._check()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def width(self) -> int:
        return self._rows.width

    @property
    def fingerprint(self) -> str:
        return self._rows.fingerprint

    def search(self, queries: F32, width: int, k: int, own: Rows | None = None) -> Stage:
        """The k best that the faiss index finds, scored exactly."""
        if width != self.start:
            raise OptionError(f"the faiss index finds candidates at width {self.start}, not at {width}")
        candidates = self._nearest(queries[:, :width], k if own is None else k + 1)
        if own is not None:
            candidates[candidates == own[:, None]] = -1
        return self._rows.best_of(queries, candidates, width, k)

    def open(self, queries: F32, candidates: Rows, width: int) -> Stage:
        return self._rows.open(queries, candidates, width)

    def _nearest(self, prefixes: F32, k: int) -> Rows:
        """Rows, -1 where there are fewer. (Q, start) -> (Q, k)"""
        units = prefixes / np.maximum(np.linalg.norm(prefixes, axis=1, keepdims=True), 1e-12)
        with openmp(faiss, 1):
            found = self._finder.search(np.ascontiguousarray(units, np.float32), min(k, len(self)))[1]
        if found.max(initial=-1) >= len(self):
            raise DataError(
                f"the faiss index finds row {found.max()}, there are {len(self)}: its ids must be the documents' rows, from 0 on"
            )
        return np.asarray(found, np.int64)

    def _check(self) -> None:
        count, every = int(self._finder.ntotal), len(self._rows.documents.ids)
        if not count == every == len(self):
            raise DataError(
                f"the faiss index has {count} rows, the documents {every}, {len(self)} of them not removed: they must be the same"
            )
        if self.start > self.width:
            raise DataError(f"the faiss index is {self.start} wide, the documents keep {self.width} coordinates: cut its vectors first")
        rows = np.unique(np.linspace(0, count - 1, min(count, SAMPLE)).astype(np.int64))
        met = (self._nearest(self._rows.vectors(rows)[:, : self.start], NEAR) == rows[:, None]).any(axis=1)
        if 2 * met.sum() < len(rows):
            raise DataError(
                f"the faiss index finds {met.sum()} of {len(rows)} documents by their own vectors: "
                f"fill it with model.rotate(documents, width={self.start}), in the documents' order"
            )


class FaissStore(Store):
    """The documents of another store, with candidates found by a faiss index. Both stay as they are."""

    view: FaissView

    def __init__(self, store: Store, finder: Any) -> None:
        if isinstance(finder, str | Path):
            if not Path(finder).is_file():
                raise DataError(f"{finder}: there is no such file: give a faiss index, or one that faiss.write_index wrote")
            finder = faiss.read_index(str(finder))
        if not isinstance(finder, faiss.Index) or not isinstance(store.view, RowBackend):
            raise OptionError(f"expected a faiss index over documents in memory or on disk, not {type(finder).__name__}")
        self._store = store
        self.path = store.path
        self.view = FaissView(store.view, finder)

    def where(self, condition: str | Mapping[str, Any]) -> Backend:
        """Found without the faiss index, which knows no metadata."""
        return self._store.where(condition)

    def lexical(self, view: Backend, texts: Sequence[str], k: int) -> Rows:
        return self._store.lexical(view._rows if isinstance(view, FaissView) else view, texts, k)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._store

    def ids(self) -> Iterator[Id]:
        return self._store.ids()

    def documents(self, ids: Id | Iterable[Id]) -> list[Document]:
        return self._store.documents(ids)

    def vectors(self, ids: Id | Iterable[Id]) -> F32:
        return self._store.vectors(ids)

    def sample(self, count: int) -> F32:
        return self._store.sample(count)

    def write(self, documents: Source, *, update: bool = False) -> Written:
        raise _fixed()

    def remove(self, ids: Id | Iterable[Id]) -> int:
        raise _fixed()

    def facts(self) -> dict[str, Any]:
        return {**self._store.facts(), "finder": type(self.view._finder).__name__, "start": self.view.start}

    def snapshot(self, path: StrPath, *, force: bool = False) -> None:
        self._store.snapshot(path, force=force)

    def close(self) -> None:
        self._store.close()


def _fixed() -> OptionError:
    return OptionError("documents behind a faiss index do not change: change the index without it, then give a new faiss index")
