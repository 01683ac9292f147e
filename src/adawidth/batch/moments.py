"""What a fit needs of documents that no machine holds: their second moment, rows by number, rows of ids, and the nearest of each query."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

import numpy as np

from ..data import as_matrix, as_queries, unit
from ..errors import DataError, OptionError
from ..formats.documents import columns_of
from ..formats.parquet import column_of_vectors
from ..formats.vectors import named
from ..kernels.topk import top_k
from ..rotation import sampled_rows
from ..types import F32, F64, Rows
from .arrow import values_of
from .run import over
from .shards import Shard


def second_moment(shards: Sequence[Shard], sample: int = 100_000, seed: int = 0, *, on: str | None = None) -> F64:
    """Mean of x xᵀ over the rows that `rotation.second_moment` would take, added up by shard. (D, D)"""
    rows = sampled_rows(_count(shards), sample, seed)
    total: F64 | None = None
    for _, part in over(partial(_moment, rows=rows), holding(shards, rows), on, "second moment"):
        total = part if total is None else total + part
    assert total is not None
    return np.asarray(total / len(rows))


def gather(shards: Sequence[Shard], rows: Rows, *, on: str | None = None) -> tuple[F32, list[str]]:
    """Some rows, ascending, of unit length, and their ids. (n, D)"""
    parts = {shard.number: part for shard, part in over(partial(_rows, rows=rows), holding(shards, rows), on, "rows")}
    vectors = np.concatenate([parts[number][0] for number in sorted(parts)])
    return vectors, [name for number in sorted(parts) for name in parts[number][1]]


def find(shards: Sequence[Shard], ids: Collection[str], *, on: str | None = None) -> dict[str, int]:
    """The rows of these ids, of those that are there. An id that stands twice is refused."""
    found: dict[str, int] = {}
    for _, part in over(partial(_named, wanted=frozenset(ids)), shards, on, "ids"):
        for name, row in part:
            if name in found:
                raise DataError(f"{shards[0].place}: id {name!r} stands in rows {found[name]} and {row}: ids must be unique")
            found[name] = row
    return found


def mine(shards: Sequence[Shard], queries: F32, k: int, own: Rows | None = None, *, on: str | None = None) -> tuple[Rows, F32]:
    """The k nearest documents of each query by inner product, best first, and their scores; `own` is a row each that is left out. (Q, k)

    Every shard gives its own k best, and the best of these are the best of all: equal to the ranking of all documents at once.
    """
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise OptionError(f"k {k!r} is not a whole number from 1 on")
    k, queries = min(int(k), _count(shards)), np.asarray(as_matrix(queries, "queries"), np.float32)
    own = np.full(len(queries), -1) if own is None else own
    work = partial(_nearest, queries=queries, k=k, own=own)
    found = [part for _, part in over(work, shards, on, "mining")]
    rows, scores = (np.concatenate([part[side] for part in found], axis=1) for side in (0, 1))
    best = best_of(rows, scores, min(k, _count(shards) - bool((own >= 0).any())))
    return np.take_along_axis(rows, best, axis=1), np.take_along_axis(scores, best, axis=1)


def best_of(rows: Rows, scores: F32, k: int) -> Rows:
    """Places of the k best scores of each query; the lower row first where they are equal. (Q, k)"""
    return np.lexsort((rows, -scores), axis=1)[:, :k]


def unit_rows(shard: Shard) -> Iterator[tuple[int, F32]]:
    """(first row, vectors of unit length) of a shard, batch by batch."""
    start = shard.start
    for batch in shard.batches():
        values = values_of(batch, column_of_vectors(shard.place, batch.schema), shard.place, start)
        block = unit(values)
        if not np.isfinite(block).all() or not block.any(axis=1).all():
            row = start + int(np.flatnonzero(~(np.isfinite(block).all(axis=1) & block.any(axis=1)))[0])
            raise DataError(f"{shard.place}: row {row} has NaN, infinite values or only zeros: drop or re-encode it")
        yield start, block
        start += len(block)


def _count(shards: Sequence[Shard]) -> int:
    return sum(shard.rows for shard in shards)


def holding(shards: Sequence[Shard], rows: Rows) -> list[Shard]:
    """The shards that have some of these rows."""
    bounds = np.searchsorted(rows, [[shard.start, shard.start + shard.rows] for shard in shards])
    return [shard for shard, (low, high) in zip(shards, bounds, strict=True) if low < high]


def _within(rows: Rows, start: int, count: int) -> Rows:
    """Those of the rows, ascending, that lie in a block, counted within it."""
    low, high = np.searchsorted(rows, [start, start + count])
    return rows[low:high] - start


def _moment(shard: Shard, rows: Rows) -> F64:
    total: F64 | None = None
    for start, block in unit_rows(shard):
        part = block[_within(rows, start, len(block))].astype(np.float64)
        total = part.T @ part if total is None else total + part.T @ part
    assert total is not None
    return total


def _rows(shard: Shard, rows: Rows) -> tuple[F32, list[str]]:
    blocks, names = [], list[str]()
    start = shard.start
    for batch in shard.batches():
        places = _within(rows, start, len(batch))
        if len(places):
            vector, identifier = columns_of(shard.place, batch.schema)
            blocks.append(unit(values_of(batch, vector, shard.place, start)[places]))
            names += named(shard.place, batch.column(identifier).take(places).to_pylist())
        start += len(batch)
    return np.concatenate(blocks), names


def _named(shard: Shard, wanted: frozenset[str]) -> list[tuple[str, int]]:
    found, start = [], shard.start
    for batch in shard.batches():
        names = named(shard.place, batch.column(columns_of(shard.place, batch.schema)[1]).to_pylist())
        found += [(name, start + place) for place, name in enumerate(names) if name in wanted]
        start += len(names)
    return found


def _nearest(shard: Shard, queries: F32, k: int, own: Rows) -> tuple[Rows, F32]:
    """The k best of one shard: fewer where it has fewer; a query's own document has the score −∞."""
    rows, scores = np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0), np.float32)
    for start, block in unit_rows(shard):
        products = as_queries(queries, block.shape[1]) @ block.T
        inside = np.flatnonzero((own >= start) & (own < start + len(block)))
        products[inside, own[inside] - start] = -np.inf
        places = top_k(products, np.arange(len(block)), k)
        rows = np.concatenate([rows, places + start], axis=1)
        scores = np.concatenate([scores, np.take_along_axis(products, places, axis=1)], axis=1)
        best = best_of(rows, scores, k)
        rows, scores = np.take_along_axis(rows, best, axis=1), np.take_along_axis(scores, best, axis=1)
    return rows, scores
