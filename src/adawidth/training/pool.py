"""What a fit holds in memory: a bounded sample of the documents with every positive of the queries it keeps.

A corpus may be a memory-mapped file larger than memory; a fit reads it once in blocks for the principal axes and
otherwise sees only this sample. With N documents, D wide: all of them where N · D is at most `FLOATS`.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from ..data import Judged, Learning, Queries, Vectors
from ..types import Rows

FLOATS = 40_000_000  # numbers held of the documents: 160 MB
TRAIN = 20_000  # queries learned from, at most
DEV = 1_000  # queries chosen on, at most

log = logging.getLogger("adawidth")


def sample(learning: Learning, seed: int = 0, floats: int = FLOATS) -> Learning:
    """The same task on at most floats / D documents, in memory: positives of the kept queries first, then others at random."""
    rng = np.random.default_rng(seed)
    documents = learning.documents
    room = max(1, floats // documents.width)
    whole = len(documents) <= room
    train, dev = _some(learning.train, TRAIN, rng), _some(learning.dev, DEV, rng)
    if not whole:
        train, dev = _fitting(train, room // 2), _fitting(dev, room // 4)
    rows = np.arange(len(documents))
    if not whole:
        needed = Learning(documents, train, dev).positives
        own = np.concatenate([train.own, dev.own])
        needed = np.union1d(needed, own[own >= 0])
        others = rng.choice(len(documents), min(len(documents), room), replace=False)
        others = others[~np.isin(others, needed)][: room - len(needed)]
        rows = np.union1d(needed, others)
        log.info("fitting on a sample of %d of %d documents", len(rows), len(documents))
    kept = Vectors(documents.read(rows), [documents.ids[row] for row in rows.tolist()], documents.name)
    return Learning(kept, _moved(train, rows), _moved(dev, rows))


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
