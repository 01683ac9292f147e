"""The interface of all prefix codes, and the checks of stored arrays before faiss sees them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, TypeVar, cast

import faiss
import numpy as np

from ...data import unit
from ...errors import ArtifactError, DataError, OptionError
from ...kernels.halves import unit_rows
from ...kernels.topk import top_k
from ...types import F16, F32, Array, Mask, Rows
from ..candidates import ANY, Near

Made = TypeVar("Made")


class Prefixes:
    """The leading coordinates of stored rows, which are brought to unit length whenever they are read: there may be more than fit
    into memory. (N, m)

    >>> Prefixes(np.full((3, 4), 0.5, np.float16), 1)[1:].tolist()
    [[1.0], [1.0]]
    """

    def __init__(self, rows: F16, width: int) -> None:
        self._bits = rows.view(np.uint16)[:, :width]

    @property
    def shape(self) -> tuple[int, ...]:
        """As an array has it."""
        return self._bits.shape

    def __len__(self) -> int:
        return len(self._bits)

    def __getitem__(self, rows: slice | Rows) -> F32:
        bits = self._bits[rows]
        found = np.empty(bits.shape, np.float32)
        unit_rows(bits, found)
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[:], dtype)


Block = F32 | Prefixes  # (N, m), rows of unit length

LIKE = 0.7  # cosine of a synthetic query with the row it is made of: about as hard to answer as a real one (benchmarks/codes.py)
KINDS: dict[str, type[Codes]] = {}  # by storage


class Codes(ABC):
    """Codes of N prefixes. Safe for concurrent searches."""

    storage: ClassVar[str]
    wide: ClassVar[bool] = False  # whether two coordinates can share a code, so that a block twice as wide takes no more memory
    fewest: ClassVar[int] = 1  # bits of a coordinate, where they can share a code
    spare: ClassVar[float] = 1.2  # times the gap of synthetic queries that real ones need (gap.py, benchmarks/gaps.py)
    threaded: ClassVar[bool] = True  # whether faiss scans, which has threads of its own

    def __init_subclass__(cls) -> None:
        KINDS[cls.storage] = cls

    @cached_property
    def _last(self) -> dict[Callable[[Mask], Any], tuple[Mask | None, Any]]:
        """Filters, and what was made of them."""
        return {}

    @staticmethod
    def of(storage: str, arrays: Mapping[str, Array]) -> Codes:
        """The codes that `arrays()` came from; an ArtifactError if no codes could have given them."""
        return kind(storage).read(arrays)

    @classmethod
    @abstractmethod
    def build(cls, block: Block, seed: int, bits: int = 4) -> Codes:
        """The codes of a block; `bits` per coordinate, 4, 2 or 1, for storages that use them."""

    @classmethod
    @abstractmethod
    def read(cls, arrays: Mapping[str, Array]) -> Codes:
        """The codes of plain arrays, which are checked first."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """All that `of` needs."""

    @property
    @abstractmethod
    def bytes_per_document(self) -> float:
        """Bytes in memory."""

    @property
    def scan_bytes(self) -> float:
        """Bytes of codes that a typical query reads."""
        return self.bytes_per_document * len(self)

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def width(self) -> int:
        """Coordinates coded."""

    def search(self, queries: F32, k: int, allowed: Mask | None = None, near: Near = ANY) -> Rows:
        """The k best rows, in any order, -1 behind them where there are fewer; `allowed` (N,) leaves only these rows. (Q, m) -> (Q, k)

        With 4-bit codes, `near` leaves out those that score too low to matter.
        """
        if queries.shape[1] != self.width:
            raise DataError(f"queries are {queries.shape[1]} wide, the codes {self.width}: cut both to the start width")
        queries = np.ascontiguousarray(queries, np.float32)
        if not self.threaded:
            return self._search(queries, k, near) if allowed is None else self._restricted(queries, k, allowed, near)
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # our own threads share a batch; OpenMP's hang after a fork
        try:
            return self._search(queries, k, near) if allowed is None else self._restricted(queries, k, allowed, near)
        finally:
            faiss.omp_set_num_threads(threads)

    @property
    def lists(self) -> int:
        """Lists that the rows are in; none where all rows are scanned."""
        return 0

    def probing(self, share: float) -> Codes:
        """The same, where a query scans this share of the lists."""
        return self

    def parts(self, count: int) -> list[tuple[int, Codes]]:
        """The same in so many parts that can be searched side by side, and the first row of each; one if they can't be split."""
        return [(0, self)]

    @abstractmethod
    def scores(self, queries: F32, rows: Rows) -> F32:
        """Each query's inner products with some rows, as the codes tell them; -inf of row -1. (Q, m), (Q, n) -> (Q, n)"""

    def _restricted(self, queries: F32, k: int, allowed: Mask, near: Near) -> Rows:
        if allowed.shape != (len(self),):
            raise DataError(f"the filter is for {allowed.shape[0]} rows, the codes are of {len(self)}")
        count = int(self._kept(np.count_nonzero, allowed))
        if count > k:
            return self._search_among(queries, k, allowed, count, near)
        found = np.full((len(queries), k), -1, np.int64)  # there is nothing to compare
        found[:, :count] = np.flatnonzero(allowed)
        return found

    def _kept(self, make: Callable[[Mask], Made], allowed: Mask) -> Made:
        """What is made of a filter; of one that can't change it is kept, since the same one comes with query after query."""
        if allowed.flags.writeable:
            return make(allowed)
        mask, made = self._last.get(make, (None, None))
        if mask is not allowed:
            made = make(allowed)
            self._last[make] = (allowed, made)
        return cast(Made, made)

    def _best_of(self, queries: F32, rows: Rows, k: int) -> Rows:
        """The k best of these rows, which are more than k; one query at a time, as there may be many rows. (Q, k)"""
        places = np.arange(len(rows))
        found = [rows[top_k(self.scores(query[None], rows[None]), places, k)] for query in queries]
        return np.concatenate([np.empty((0, k), np.int64), *found])

    @abstractmethod
    def _search(self, queries: F32, k: int, near: Near) -> Rows: ...

    @abstractmethod
    def _search_among(self, queries: F32, k: int, allowed: Mask, count: int, near: Near) -> Rows:
        """`count` rows, more than k, are allowed."""


def kind(storage: str) -> type[Codes]:
    """The class of a storage."""
    if storage not in KINDS:
        raise OptionError(f"storage {storage!r} is none of auto, {', '.join(KINDS)}")
    return KINDS[storage]


def sample(block: Block, size: int, seed: int) -> F32:
    """At most so many random rows, in memory."""
    if len(block) <= size:
        return np.array(block)
    rows = np.random.default_rng(seed).choice(len(block), size, replace=False)
    return np.asarray(block[np.sort(rows)])


def synthetic_queries(block: Block, count: int, seed: int, like: float = LIKE) -> F32:
    """Rows moved towards others, each `like` itself by its cosine: real queries lie further from documents than documents do. (count, m)"""
    rng = np.random.default_rng(seed)
    own, other = (np.asarray(block[np.sort(rng.choice(len(block), min(count, len(block)), replace=False))]) for _ in range(2))
    other = rng.permutation(other)
    other = unit(other - (other * own).sum(axis=1, keepdims=True) * own)
    return np.asarray(like * own + math.sqrt(1 - like**2) * other, np.float32)


def selector(allowed: Mask) -> Any:
    """These rows as a faiss selector."""
    return faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))


def checked(arrays: Mapping[str, Array], name: str, kind: type[Any], shape: tuple[int | None, ...]) -> Array:
    """The array of this name, contiguous, if it has this dtype and shape (None: any length) and only finite numbers."""
    if name not in arrays:
        raise ArtifactError(f"codes: there is no array {name!r}, only {', '.join(sorted(arrays)) or 'none'}: build the index again")
    array = np.asarray(arrays[name])
    fits = len(array.shape) == len(shape) and all(wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True))
    if array.dtype != kind or not fits:
        wanted = tuple("any" if length is None else length for length in shape)
        found = f"found {array.dtype} {array.shape}"
        raise ArtifactError(f"codes: expected {name!r} as {np.dtype(kind).name} {wanted}, {found}: build the index again")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ArtifactError(f"codes: {name!r} has NaN or infinite values: build the index again")
    return np.ascontiguousarray(array)
