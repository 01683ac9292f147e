"""Rotated rows in a process's own memory: exact, float32, nothing on disk."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from ..data import BLOCK, Document, Documents, Vectors
from ..errors import DataError, OptionError
from ..filters import parse
from ..filters.conditions import has, unknown
from ..formats.documents import Source
from ..kernels.extend import extend
from ..kernels.topk import top_k
from ..rotation import Rotation
from ..types import F32, I64, Id, Mask, Rows, Widths
from .backend import Backend, RowBackend, RowStore, Written, check_width, listed, named, prefix_norms
from .energy import check_encoder, spread
from .state import Stage
from .words import Lexicon, Words, WordsWriter

SCORES = 64_000_000  # at most this many scores are held at a time while scanning


class MemoryBackend(RowBackend):
    """Documents under a rotation, in memory. Safe for concurrent searches: nothing changes after it is made."""

    def __init__(self, source: Vectors, rotation: Rotation, documents: Documents | None = None) -> None:
        self.source = source  # as the encoder gave them
        self._documents = Documents(source.ids) if documents is None else documents
        self._rotation = rotation
        self._allowed: Mask | None = None  # (N,) rows that may be found; all of them if None
        self.rows = np.empty((len(source), source.width), np.float32)
        for start, block in source.blocks():
            rotation.apply(block, out=self.rows[start : start + len(block)])
        self._copies, self._originals = twins(source)
        self.rows[self._copies] = self.rows[self._originals]  # ids order equal documents, not rounding
        self._norms: dict[int, F32] = {}
        self._blocks: dict[tuple[int, int, bool], F32] = {}

    def __len__(self) -> int:
        return len(self.rows) if self._allowed is None else int(self._allowed.sum())

    @property
    def documents(self) -> Documents:
        """The documents by row."""
        return self._documents

    def restricted(self, allowed: Mask) -> MemoryBackend:
        """The same with only these rows. (N,)"""
        same = copy(self)
        same._allowed = allowed
        return same

    def vectors(self, rows: Rows) -> F32:
        """The documents in these rows, rotated. (n, D)"""
        return np.asarray(self.rows[rows])

    @property
    def width(self) -> int:
        """The widest that can be read: the encoder width."""
        return int(self.rows.shape[1])

    @property
    def fingerprint(self) -> str:
        """Names the rotation that the documents are under."""
        return self._rotation.fingerprint

    def norms(self, width: int) -> F32:
        """Length of every document's prefix. (N,)"""
        if width not in self._norms:
            self._norms[width] = prefix_norms(self.rows, width)
        return self._norms[width]

    @cached_property
    def centre(self) -> F32:
        """Mean of all documents. (D,)"""
        return np.asarray(self.rows.mean(axis=0, dtype=np.float64), np.float32)

    def block_norms(self, begin: int, end: int, *, centred: bool = False) -> F32:
        """Length of coordinates `begin` to `end` of every document, or of their difference from the mean of all documents. (N,)"""
        key = (begin, end, centred)
        if key not in self._blocks:
            block = self.rows[:, begin:end]
            self._blocks[key] = np.linalg.norm(block - self.centre[begin:end] if centred else block, axis=1)
        return self._blocks[key]

    def search(self, queries: F32, width: int, k: int, own: Rows | None = None) -> Stage:
        """The k best of all documents at this width for rotated queries; `own` is a document row each that is never returned."""
        k = min(k, len(self.rows))
        found = np.empty((len(queries), k), np.int64)
        sums = np.empty((len(queries), k), np.float32)
        prefix = np.ascontiguousarray(self.rows[:, :width])  # (N, m)
        inverse = np.reciprocal(self.norms(width))
        step = max(1, SCORES // max(1, len(self.rows)))
        for start in range(0, len(queries), step):
            part = slice(start, start + step)
            products = np.ascontiguousarray(queries[part, :width]) @ prefix.T  # (q, N)
            products[:, self._copies] = products[:, self._originals]
            scores = products * inverse
            if self._allowed is not None:
                scores[:, ~self._allowed] = -np.inf
            if own is not None:
                masked = np.flatnonzero(own[part] >= 0)
                scores[masked, own[part][masked]] = -np.inf
            found[part] = top_k(scores, self._documents.tie_rank, k)
            sums[part] = np.take_along_axis(products, found[part], axis=1)
            found[part][np.take_along_axis(scores, found[part], axis=1) == -np.inf] = -1
        return self._stage(queries, found, sums, width)

    def bytes_read(self, width: int, coordinates: I64) -> I64:
        """Bytes read by a scan at this width and by so many coordinates of candidates. (Q,) -> (Q,)"""
        return (len(self.rows) * width + coordinates) * self.rows.itemsize

    def _extend(self, queries: F32, candidates: Rows, keep: Mask, begin: Widths, end: Widths, sums: F32) -> None:
        extend(queries, self.rows, candidates, keep, begin, end, sums)


class _Known(Documents):
    """Documents with what is known of them."""

    def __init__(self, known: Sequence[Document]) -> None:
        super().__init__([document.id for document in known])
        self.known = known

    def describe(self, rows: Iterable[int]) -> list[Document]:
        return [self.known[row] for row in rows]

    @cached_property
    def lexicon(self) -> Lexicon:
        """Their words, gathered on first use."""
        writer = WordsWriter()
        writer.add(self.known)
        return Lexicon([Words(writer.arrays(), len(self.known))], np.ones(len(self.known), np.bool_), self.tie_rank)


class MemoryStore(RowStore):
    """Documents in memory that can be changed. A change copies the rows: for many small ones, keep the index on disk."""

    view: MemoryBackend

    def __init__(self, rotation: Rotation, *, numbered: bool = False) -> None:
        self._rotation = rotation
        self._numbered = numbered
        self._following = 0
        self._changing = threading.Lock()
        self._set(np.empty((0, rotation.width), np.float32), [])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_changing"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _changing=threading.Lock())

    def where(self, condition: str | Mapping[str, Any]) -> MemoryBackend:
        wanted, view = parse(condition), self.view
        for field in wanted.compared() if self._known else ():
            if not any(has(document.metadata, field) for document in self._known):
                raise unknown(field, {str(key) for document in self._known for key in document.metadata}, "this index")
        met = [wanted.matches(document.metadata) for document in self._known]
        return view.restricted(np.array(met, np.bool_))

    def lexical(self, view: Backend, texts: Sequence[str], k: int) -> Rows:
        assert isinstance(view, MemoryBackend)
        assert isinstance(view.documents, _Known)
        if not view.documents.lexicon.length and len(view):
            raise OptionError("no document has a title or text: hybrid search needs words")
        return view.documents.lexicon.search(texts, k, view._allowed)

    def __contains__(self, identifier: object) -> bool:
        return isinstance(identifier, str | int) and str(identifier) in self._row_of

    def rows_of(self, ids: Sequence[Id]) -> Rows:
        missing = [name for name in ids if str(name) not in self._row_of]
        if missing:
            raise DataError(f"there is no document {missing[0]!r}; {len(missing)} of {len(ids)} ids are not in the index")
        return np.array([self._row_of[str(name)] for name in ids], np.int64)

    def ids(self) -> Iterator[Id]:
        return (document.id for document in self._known)

    def write(self, documents: Source, *, update: bool = False) -> Written:
        check_width(documents, self._rotation.width)
        with self._changing:
            batches = list(named(documents, numbered=self._numbered, following=self._following))
            known = [document for batch in batches for document in batch.documents]
            for document in known:
                document.plain()  # refuses what an index folder does
            values = np.concatenate([np.empty((0, documents.width), np.float32), *(batch.vectors.all() for batch in batches)])
            some, held = values[spread(len(values))], self.view.rows[spread(len(self.view.rows))]
            check_encoder(held, self._rotation.apply(some), documents.width, documents.name)
            replaced = [document.id for document in known if str(document.id) in self._row_of]
            if replaced and not update:
                raise DataError(f"id {replaced[0]!r} is in the index already: use update, or remove it first")
            keep = self._kept(replaced)
            rows = np.concatenate([self.view.source.values[keep], values])
            self._set(rows, [*(self._known[row] for row in keep.tolist()), *known])
            if self._numbered:
                self._following = max(self._following, 1 + max(int(document.id) for document in known)) if known else self._following
        return Written(len(known) - len(replaced), len(replaced), len(self._known))

    def remove(self, ids: Id | Iterable[Id]) -> int:
        wanted = list(dict.fromkeys(map(str, listed(ids))))
        with self._changing:
            self.rows_of(wanted)
            keep = self._kept(wanted)
            self._set(np.asarray(self.view.source.values[keep]), [self._known[row] for row in keep.tolist()])
        return len(wanted)

    def facts(self) -> dict[str, Any]:
        view = self.view
        return {"kind": "index", "documents": len(view), "encoder_width": view.width, "width": view.width, "storage": "memory"}

    def _kept(self, gone: Iterable[Id]) -> Rows:
        """The rows of all documents but these."""
        keep = np.ones(len(self._known), np.bool_)
        keep[[self._row_of[str(name)] for name in gone]] = False
        return np.flatnonzero(keep)

    def _set(self, rows: F32, known: Sequence[Document]) -> None:
        self._known = known
        self._row_of = {str(document.id): row for row, document in enumerate(known)}
        if len(self._row_of) != len(known):
            raise DataError("an id stands twice in what is added: ids must be unique")
        documents = _Known(known)
        self.view = MemoryBackend(Vectors(rows, documents.ids, "documents"), self._rotation, documents)


def twins(documents: Vectors) -> tuple[Rows, Rows]:
    """Rows that repeat an earlier row's vector, and those earlier rows; by a 64-bit hash of the stored numbers."""
    values = documents.values
    factors = np.random.default_rng(0).integers(2**63, size=documents.width, dtype=np.uint64) | np.uint64(1)
    hashes = np.empty(len(documents), np.uint64)
    for start in range(0, len(documents), BLOCK):
        bits = np.ascontiguousarray(values[start : start + BLOCK]).view(f"u{values.dtype.itemsize}")
        hashes[start : start + len(bits)] = (bits.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64)
    _, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    originals = first[place]
    copies = np.flatnonzero(originals != np.arange(len(documents)))
    return copies, originals[copies]
