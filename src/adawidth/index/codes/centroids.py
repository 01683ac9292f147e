"""The lists of an inverted file: their centroids, learned in groups, and each row's list.

K-means over thousands of centroids would take longer than all else. So a few groups are learned first, then the centroids within each
group, and a row is compared with the centroids of the nearest groups only. Queries need hardly more lists for it.
"""

from __future__ import annotations

from typing import NamedTuple

import faiss
import numpy as np

from ...data import BLOCK, unit
from ...kernels import lists
from ...threads import shared
from ...types import F32, F64, I32, I64
from .base import Block, sample

ROWS = 64  # per centroid that it is learned from …
ROUNDS = 5  # … in so many rounds: with ten, answers are hardly better (benchmarks/storages.py)
FINE = 2  # lists per square root of the number of rows
FEWEST = 39  # rows per list, on average


class Divided(NamedTuple):
    """A block in lists."""

    centres: F32  # (L, m) the mean of each list's rows
    list_of: I32  # (N,)


def divided(block: Block, seed: int) -> Divided:
    """Lists of a block of unit-length rows. Equal rows are in the same list."""
    count = min(round(FINE * len(block) ** 0.5), len(block) // FEWEST)
    learned = sample(block, ROWS * max(1, count), seed)
    groups, ends, centres = _learned(learned, max(1, count), seed)
    list_of = np.empty(len(block), np.int32)
    shared(lambda part: lists.assign(block[part], groups, ends, centres, list_of[part]), len(block))
    return Divided(_means(block, list_of, centres), list_of)


def _learned(rows: F32, count: int, seed: int) -> tuple[F32, I64, F32]:
    """The centroids of groups (G, m), where the lists of each end (G,), and about `count` lists' centroids (L, m)."""
    if not len(rows):
        return np.zeros((1, rows.shape[1]), np.float32), np.ones(1, np.int64), np.zeros((1, rows.shape[1]), np.float32)
    groups = _means_of_k(rows, round(count**0.5), seed)
    nearest = faiss.IndexFlatIP(rows.shape[1])
    nearest.add(groups)
    group_of = nearest.search(rows, 1)[1][:, 0]
    held = [rows[group_of == g] for g in range(len(groups))]
    found = [_means_of_k(some, max(1, round(count * len(some) / len(rows))), seed) for some in held]
    return groups, np.cumsum([len(some) for some in found]), np.concatenate(found)


def _means_of_k(rows: F32, count: int, seed: int) -> F32:
    """At most so many directions, by spherical k-means. (n, m) -> (count, m)"""
    if len(rows) <= count:
        return unit(rows)
    learner = faiss.Kmeans(rows.shape[1], count, niter=ROUNDS, seed=seed, spherical=True, min_points_per_centroid=1)
    learner.train(np.ascontiguousarray(rows))
    return np.asarray(learner.centroids)


def _means(block: Block, list_of: I32, centres: F32) -> F32:
    """The mean of each list, which is nearer to its rows than the direction that they share; an empty list's centroid stays. (L, m)"""
    sums: F64 = np.zeros(centres.shape)
    for start in range(0, len(block), BLOCK):
        lists.add_rows(np.ascontiguousarray(block[start : start + BLOCK]), list_of[start : start + BLOCK], sums)
    counts = np.bincount(list_of, minlength=len(centres))[:, None]
    return np.where(counts, sums / np.maximum(counts, 1), centres).astype(np.float32)
