"""What all prefix codes are, and the checks that stand between stored arrays and faiss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import faiss
import numpy as np

from ...errors import ArtifactError, DataError, OptionError
from ...threads import openmp
from ...types import F32, Array, Mask, Rows

Block = F32  # (N, m), rows of unit length

SAMPLE = 65_536  # rows that quantisers learn from
KINDS: dict[str, type[Codes]] = {}  # by storage


class Codes(ABC):
    """Codes of N prefixes. Safe for concurrent searches."""

    storage: ClassVar[str]
    wide: ClassVar[bool] = False  # whether two coordinates can share a code, so that a block twice as wide takes no more memory

    def __init_subclass__(cls) -> None:
        KINDS[cls.storage] = cls

    @staticmethod
    def of(storage: str, arrays: Mapping[str, Array]) -> Codes:
        """The codes that `arrays()` came from; an ArtifactError where they could not be."""
        return kind(storage).read(arrays)

    @classmethod
    @abstractmethod
    def build(cls, block: Block, seed: int, bits: int = 4) -> Codes:
        """The codes of a block; `bits` a coordinate, 4 or 2, are for the wide ones."""

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
        """Held in memory."""

    @property
    def scan_bytes(self) -> float:
        """Of codes that a usual query reads."""
        return self.bytes_per_document * len(self)

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def width(self) -> int:
        """Coordinates coded."""

    def search(self, queries: F32, k: int, allowed: Mask | None = None) -> Rows:
        """The k best rows, best first, -1 where there are fewer; `allowed` (N,) leaves only these rows. (Q, m) -> (Q, k)"""
        if queries.shape[1] != self.width:
            raise DataError(f"queries are {queries.shape[1]} wide, the codes {self.width}: cut both to the start width")
        queries = np.ascontiguousarray(queries, np.float32)
        if allowed is None:
            with openmp(faiss, 1):  # a batch is shared out by threads of our own; OpenMP's hang after a fork
                return self._search(queries, k)
        if allowed.shape != (len(self),):
            raise DataError(f"the filter is for {allowed.shape[0]} rows, the codes are of {len(self)}")
        rows = np.flatnonzero(allowed)
        if len(rows) <= k:  # nothing to find out
            found = np.full((len(queries), k), -1, np.int64)
            found[:, : len(rows)] = rows
            return found
        with openmp(faiss, 1):
            return self._search_among(queries, k, allowed, rows)

    @abstractmethod
    def _search(self, queries: F32, k: int) -> Rows: ...

    @abstractmethod
    def _search_among(self, queries: F32, k: int, allowed: Mask, rows: Rows) -> Rows: ...


def kind(storage: str) -> type[Codes]:
    """The class of a storage."""
    if storage not in KINDS:
        raise OptionError(f"storage {storage!r} is none of auto, {', '.join(KINDS)}")
    return KINDS[storage]


def sample(block: Block, size: int, seed: int) -> Block:
    """At most so many random rows, in memory."""
    if len(block) <= size:
        return np.array(block)
    rows = np.random.default_rng(seed).choice(len(block), size, replace=False)
    return np.asarray(block[np.sort(rows)])


def selector(allowed: Mask) -> Any:
    """What faiss calls these rows."""
    return faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))


def checked(arrays: Mapping[str, Array], name: str, kind: type[Any], shape: tuple[int | None, ...]) -> Array:
    """The array of this name, contiguous, if it has this dtype and shape (None: any length) and only finite numbers."""
    if name not in arrays:
        raise ArtifactError(f"codes: there is no array {name!r}, only {', '.join(sorted(arrays)) or 'none'}: build the index anew")
    array = np.asarray(arrays[name])
    fits = len(array.shape) == len(shape) and all(wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True))
    if array.dtype != kind or not fits:
        wanted = tuple("any" if length is None else length for length in shape)
        found = f"found {array.dtype} {array.shape}"
        raise ArtifactError(f"codes: expected {name!r} as {np.dtype(kind).name} {wanted}, {found}: build the index anew")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ArtifactError(f"codes: {name!r} has NaN or infinite values: build the index anew")
    return np.ascontiguousarray(array)
