"""What a fit learns from, in memory: all documents where they fit, else those that mining finds in the whole corpus.

A corpus may be a memory-mapped file larger than memory. Where it has more than `corpus.FLOATS` numbers, the pool takes the positives of the
queries, what a scan of all documents finds nearest to each query, rank by rank, and others at random.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from ..data import Judged, Learning, Queries, Vectors
from ..rotation import Rotation
from ..types import Rows
from .corpus import BLOCK, Scanned, room
from .span import Span

TRAIN = 20_000  # queries learned from, at most
DEV = 1_000  # queries chosen on, at most
MINED = 100  # documents that are looked for to each query
MINED_SHARE = 0.75  # of the room beside the positives; the others are drawn at random

log = logging.getLogger("adawidth")


def limited(learning: Learning, seed: int = 0) -> Learning:
    """The same documents with as many queries as a fit takes."""
    rng = np.random.default_rng(seed)
    return replace(learning, train=_some(learning.train, TRAIN, rng), dev=_some(learning.dev, DEV, rng))


def sample(learning: Learning, seed: int = 0, *, span: Span | None = None, mined: int | None = None) -> Learning:
    """The same task on as many documents as fit, in memory: in a span's coordinates where one is given.

    Where not all documents fit, the nearest to each query are taken by all coordinates or by the encoder's first `mined`.
    """
    learning = limited(learning, seed)
    documents, train, dev = learning.documents, learning.train, learning.dev
    most = room(documents.width if span is None else span.width)
    rows = np.arange(len(documents))
    if len(documents) > most:
        train, dev = _fitting(train, most // 2), _fitting(dev, most // 4)
        rows = _mined(Learning(documents, train, dev), most, span, mined, seed)
        log.info(
            "learning from %d of %d documents: positives, those nearest to the queries, and others at random", len(rows), len(documents)
        )
    kept = _read(documents, rows, span)
    return Learning(kept, _moved(_cut(train, span), rows), _moved(_cut(dev, span), rows))


def within(learning: Learning, documents: Vectors, rows: Rows) -> Learning:
    """The same task on some of its documents, which lie in these rows of all, ascending; judgements of others are left out."""
    return Learning(documents, _moved(learning.train, rows), _moved(learning.dev, rows))


def _mined(learning: Learning, most: int, span: Span | None, width: int | None, seed: int) -> Rows:
    """Positives and the queries' own documents, the nearest to each query, and random others. Sorted."""
    documents, parts = learning.documents, (learning.train, learning.dev)
    own = np.concatenate([part.own for part in parts])
    needed = np.union1d(learning.positives, own[own >= 0])
    queries = np.concatenate([part.vectors.all() for part in parts if len(part)] or [np.empty((0, documents.width), np.float32)])
    rotation = span.pca if span is not None and span.cuts else Rotation.identity(documents.width)
    width = width or (rotation.width if span is None else span.width)
    nearest = Scanned(documents, rotation).rankings(rotation.apply(queries, width), [width], MINED, own)[width]
    found = nearest.T.ravel()  # the first of every query, then the second
    found = found[np.sort(np.unique(found, return_index=True)[1])]
    found = found[(found >= 0) & ~np.isin(found, needed)][: max(0, int(MINED_SHARE * (most - len(needed))))]
    taken = np.union1d(needed, found)
    others = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(len(documents)), taken))
    return np.union1d(taken, others[: max(0, most - len(taken))])


def _read(documents: Vectors, rows: Rows, span: Span | None) -> Vectors:
    """These documents in memory, cut to the span block by block."""
    ids = [documents.ids[row] for row in rows.tolist()]
    if span is None or not span.cuts:
        return Vectors(documents.read(rows), ids, documents.name)
    values = np.empty((len(rows), span.width), np.float32)
    for start in range(0, len(rows), BLOCK):
        values[start : start + BLOCK] = span.cut(documents.read(rows[start : start + BLOCK]))
    return Vectors(values, ids, documents.name)


def _cut(queries: Queries, span: Span | None) -> Queries:
    if span is None or not span.cuts or not len(queries):
        return queries
    vectors = queries.vectors
    return replace(queries, vectors=replace(vectors, values=span.cut(vectors.all())))


def together(train: Queries, dev: Queries) -> Queries:
    """Both as one; with labels where both have some."""
    vectors = Vectors(np.concatenate([train.vectors.all(), dev.vectors.all()]), [*train.vectors.ids, *dev.vectors.ids], train.vectors.name)
    judged = None
    if train.judged is not None and dev.judged is not None:
        judged = Judged(
            np.concatenate([train.judged.offsets, train.judged.offsets[-1] + dev.judged.offsets[1:]]),
            np.concatenate([train.judged.documents, dev.judged.documents]),
            np.concatenate([train.judged.grades, dev.judged.grades]),
        )
    return Queries(vectors, judged, np.concatenate([train.own, dev.own]))


def _some(queries: Queries, most: int, rng: np.random.Generator) -> Queries:
    if len(queries) <= most:
        return queries
    return queries.select(np.sort(rng.choice(len(queries), most, replace=False)))


def _fitting(queries: Queries, room: int) -> Queries:
    """As many of the queries, in order, as have at most `room` judged documents together."""
    if queries.judged is None or len(queries.judged.documents) <= room:
        return queries
    return queries.select(np.arange(np.searchsorted(queries.judged.offsets, room, side="right") - 1))


def _moved(queries: Queries, rows: Rows) -> Queries:
    """The same queries with document rows counted within `rows` (sorted); judgements of documents outside are left out."""
    place = np.searchsorted(rows, queries.own)
    own = np.where((queries.own >= 0) & (rows[np.minimum(place, len(rows) - 1)] == queries.own), place, -1)
    if queries.judged is None:
        return replace(queries, own=own)
    judged = queries.judged
    inside = np.isin(judged.documents, rows)
    counts = np.add.reduceat(np.append(inside, 0), judged.offsets[:-1]) * (np.diff(judged.offsets) > 0)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    moved = Judged(offsets, np.searchsorted(rows, judged.documents[inside]), judged.grades[inside])
    return replace(queries, judged=moved, own=own)
