"""What a Ky Fan rotation needs of documents that no machine holds: the mean margin of the train queries, added up by shard."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ..data import Judged, Queries
from ..training.task import as_judged
from ..types import F32, F64, I64, Rows
from .moments import holding, mine, unit_rows
from .run import over
from .shards import Shard

SHORTLIST, HARD, RANDOM = 200, 16, 16  # as on one machine
DRAWN = 1_024  # queries whose negatives are drawn at a time, likewise


class Pairs(NamedTuple):
    """Which documents count for which query, ascending by row: positives by their mean, negatives by minus theirs."""

    queries: I64
    rows: Rows
    weights: F64
    usable: int  # queries that have a positive and a negative


def margin_matrix(shards: Sequence[Shard], train: Queries, *, seed: int = 0, on: str | None = None) -> F64:
    """What `training.kyfan.margin_matrix` gives for all documents at once. Without labels the first document is the relevant one. (D, D)"""
    queries = train.vectors.all()
    short, _ = mine(shards, queries, SHORTLIST, train.own, on=on)
    pairs = _pairs(short, as_judged(short[:, :1]) if train.judged is None else train.judged, seed)
    total = np.zeros((queries.shape[1], queries.shape[1]))
    for _, part in over(partial(_margin, queries=queries, pairs=pairs), holding(shards, pairs.rows), on, "margins"):
        total += part
    total /= max(pairs.usable, 1)
    return (total + total.T) / 2


def _pairs(short: Rows, judged: Judged, seed: int) -> Pairs:
    """Every query's positives, the hardest negatives of its shortlist and others of it."""
    rng = np.random.default_rng(seed)
    positives = [judged.positives(query) for query in range(len(short))]
    negatives = [row[~np.isin(row, own)] for row, own in zip(short, positives, strict=True)]
    usable = [query for query in range(len(short)) if len(positives[query]) and len(negatives[query])]
    rows, weights = [np.empty(0, np.int64)], [np.empty(0)]
    for start in range(0, len(usable), DRAWN):
        part = usable[start : start + DRAWN]
        counts = np.array([len(negatives[query]) for query in part])[:, None]
        others = rng.integers(np.minimum(HARD, counts - 1), counts, (len(part), RANDOM))
        places = np.concatenate([np.arange(HARD)[None] % counts, others], axis=1)
        for query, drawn in zip(part, places, strict=True):
            good, bad = positives[query], negatives[query][drawn]
            rows += [good, bad]
            weights += [np.full(len(good), 1 / len(good)), np.full(len(bad), -1 / len(bad))]
    owners = np.repeat(np.repeat(np.array(usable, np.int64), 2), [len(one) for one in rows[1:]])
    order = np.argsort(joined := np.concatenate(rows), kind="stable")
    return Pairs(owners[order], joined[order], np.concatenate(weights)[order], len(usable))


def _margin(shard: Shard, queries: F32, pairs: Pairs) -> F64:
    total = np.zeros((queries.shape[1], queries.shape[1]))
    for start, block in unit_rows(shard):
        low, high = np.searchsorted(pairs.rows, [start, start + len(block)])
        asked = queries[pairs.queries[low:high]] * pairs.weights[low:high, None]
        total += asked.T @ block[pairs.rows[low:high] - start].astype(np.float64)
    return total
