"""Vectors: one vector and one id per row. The one place where vectors are validated, and where plain inputs become arrays."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from ..errors import DataError
from ..types import F32, Floats, Id, Mask, Rows
from .frames import arrays, listed

log = logging.getLogger("adawidth")

BLOCK = 16_384  # rows read at a time
SINGLE = np.dtype(np.float32)
SHORTEST = 1e-12  # a vector's length; below it there is nothing but rounding


def unit(x: Floats) -> F32:
    """Rows of `x` as float32 of length one; a zero row stays zero."""
    x = np.asarray(x, np.float32)
    squares = np.multiply(x, x, order="C")  # sums run in one order, however x lies in memory: equal rows stay equal
    norms = np.sqrt(np.add.reduce(squares, axis=-1, keepdims=True))
    return np.asarray(x / np.maximum(norms, SHORTEST), np.float32)


@dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors, one per row, and their ids. `values` may be memory-mapped; rows come out as float32 of unit length.

    >>> vectors = Vectors.of([[3.0, 4.0], [0.0, 1.0]], ["a", "b"])
    >>> len(vectors), vectors.width, vectors.row_of["b"]
    (2, 2, 1)
    """

    values: Floats  # (n, D)
    ids: Sequence[Id]
    name: str = "vectors"  # in messages; the path, if they come from a file
    split: str | None = None  # of queries, so that a fit can refuse test queries

    @classmethod
    def of(cls, values: Any, ids: Iterable[Id] | None = None, *, name: str = "vectors", note: bool = True) -> Vectors:
        """Validated vectors, one per row: finite, no zero rows, ids unique and as many as rows.

        Takes what people have: arrays, lists of lists, tensors, columns of data frames.

        >>> Vectors.of([[1.0, 0.0]]).ids
        range(0, 1)
        """
        if isinstance(values, Vectors):
            return values
        array = as_matrix(values, name)
        rows, width = array.shape
        if rows == 0 or width == 0:
            raise DataError(f"{name}: there are no vectors, {rows} rows of width {width}")
        vectors = cls(array, range(rows) if ids is None else _checked_ids(ids, rows, name), name)
        vectors._check_rows(note)
        return vectors

    def __repr__(self) -> str:
        return f"Vectors({len(self):,} of width {self.width}, {self.name})"

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def width(self) -> int:
        """The encoder width D."""
        return int(self.values.shape[1])

    def read(self, rows: slice | Rows) -> F32:
        """These rows, float32, unit length.

        >>> vectors.read(slice(0, 1)).tolist()
        [[0.6000000238418579, 0.800000011920929]]
        """
        return unit(self.values[rows])

    def all(self) -> F32:
        """Every row in memory, float32, unit length.

        >>> vectors.all().shape
        (2, 2)
        """
        return self.read(slice(None))

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[int, F32]]:
        """(first row, rows) block by block, so that a memory-mapped file is never whole in memory.

        >>> [(first, len(rows)) for first, rows in vectors.blocks(size=1)]
        [(0, 1), (1, 1)]
        """
        for start in range(0, len(self), size):
            yield start, self.read(slice(start, start + size))

    def select(self, rows: ArrayLike, split: str | None = None) -> Vectors:
        """These rows with their ids, as new vectors; tagged with a split if one is given.

        >>> vectors.select([1]).ids
        ['b']
        """
        picked = np.asarray(rows, np.int64)
        return Vectors(self.values[picked], [self.ids[i] for i in picked], self.name, split or self.split)

    @cached_property
    def row_of(self) -> dict[Id, int]:
        """The row of each id."""
        return {identifier: row for row, identifier in enumerate(self.ids)}

    def _check_rows(self, note: bool) -> None:
        longest, shortest = 0.0, np.inf
        for start in range(0, len(self), BLOCK):
            block = self.values[start : start + BLOCK]
            if block.dtype != np.float32:
                with np.errstate(over="ignore"):
                    block = np.asarray(block, np.float32)
            norms = np.sqrt(np.einsum("nd,nd->n", block, block))
            low, high = float(norms.min()), float(norms.max())
            if not (low >= SHORTEST and high < np.inf):  # NaN is neither
                self._refuse(start, block, norms)
            longest, shortest = max(longest, high), min(shortest, low)
        if note and (longest > 1.01 or shortest < 0.99):
            log.warning(
                "%s: lengths run from %.3g to %.3g and are brought to 1; this changes the ranking of encoders made for raw inner products",
                self.name, shortest, longest,
            )  # fmt: skip

    def _refuse(self, start: int, block: Floats, norms: F32) -> NoReturn:
        bad, what = _faulty(block, norms)
        row = start + int(np.flatnonzero(bad)[0])
        raise DataError(
            f"{self.name}: row {row} (id {self.ids[row]!r}) has {what}; "
            f"{int(bad.sum())} of rows {start} to {start + len(norms) - 1} have: drop or re-encode them"
        )


def _faulty(rows: Floats, norms: F32) -> tuple[Mask, str]:
    """Which rows can't be brought to unit length, of those with the worst fault, and what it is. At least one can't."""
    infinite, zero = ~np.isfinite(norms), (rows == 0).all(axis=1)
    if infinite.any():
        return infinite, "NaN or infinite values"
    return (np.asarray(zero), "only zeros") if zero.any() else (np.asarray(norms < SHORTEST), f"a length below {SHORTEST:g}")


def as_matrix(values: Any, name: str) -> Floats:
    """One vector per row, as an array: from arrays, lists, tensors, and tables or their columns; one vector is one row."""
    values = arrays(values)
    given = isinstance(values, np.ndarray) and values.dtype.kind != "O"
    try:
        array = values if given else np.array([np.asarray(row, np.float32) for row in values], np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: expected one vector of numbers per row, all of one width: {error}") from None
    if array.ndim == 1 and array.size:
        array = array[None]
    if array.ndim != 2:
        raise DataError(f"{name}: expected one vector per row (2 dimensions), found {array.ndim}: reshape the array")
    if array.dtype.kind != "f":
        raise DataError(f"{name}: expected floating-point numbers, found {array.dtype}: convert to float32 or float16")
    return array if array.dtype.itemsize <= 8 else np.asarray(array, np.float64)


def as_queries(values: Any, width: int) -> F32:
    """Queries as float32 of unit length, one per row; their own lengths change no ranking, so nothing is said of them. (n, D)"""
    values = values.values if isinstance(values, Vectors) else values
    plain = isinstance(values, np.ndarray) and values.dtype == SINGLE and values.ndim in (1, 2)
    array = np.asarray(as_matrix(values, "queries"), np.float32) if not plain else values if values.ndim == 2 else values[None]
    if array.shape[1] != width:
        raise DataError(f"queries are {array.shape[1]} wide, the model {width}: use the encoder the model was fitted for")
    if len(array) == 1:  # as most are that come one at a time
        row = array[0]
        length = math.sqrt(row.dot(row))
        if SHORTEST <= length < math.inf:
            return np.asarray(np.divide(array, np.float32(length), order="C"))
    norms = np.sqrt(np.einsum("nd,nd->n", array, array))
    if len(array) and not (norms.min() >= SHORTEST and norms.max() < np.inf):  # NaN is neither
        bad, what = _faulty(array, norms)
        raise DataError(f"queries: row {int(np.flatnonzero(bad)[0])} has {what}: re-encode it")
    return np.ascontiguousarray(array / norms[:, None])


def as_list(values: Any, name: str, what: str) -> list[Any]:
    """Ids, texts or the like as a list, from a list or a column of a data frame. A string or a dictionary is one value, not several."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise DataError(f"{name}: {what} are {str(values)[:60]!r}: give a list, with one of them per row")
    return listed(values)


def one_per_row(values: Any, rows: int, name: str, what: str) -> list[Any]:
    """Such a list, as long as there are rows."""
    found = as_list(values, name, what)
    if len(found) != rows:
        raise DataError(f"{name}: {rows} vectors but {len(found)} {what}: give one per row, in row order")
    return found


def _checked_ids(given: Iterable[Id], rows: int, name: str) -> Sequence[Id]:
    ids = one_per_row(given, rows, name, "ids")
    for row, identifier in enumerate(ids):
        if not isinstance(identifier, str | int | np.integer) or isinstance(identifier, bool):
            raise DataError(f"{name}: the id in row {row} is {identifier!r}: ids are strings or whole numbers")
    if len(set(ids)) != len(ids):
        first: dict[Id, int] = {}
        for row, identifier in enumerate(ids):
            if identifier in first:
                raise DataError(f"{name}: id {identifier!r} stands in rows {first[identifier]} and {row}: ids must be unique")
            first[identifier] = row
    return ids
