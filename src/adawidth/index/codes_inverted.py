"""Four-bit codes that faiss scans with its fast-scan kernels: in one list, or in many of which a query scans the nearest.

The block is turned at random before it is coded. That changes no inner product and spreads what the leading coordinates carry, so
that sixteen levels a coordinate do for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import faiss
import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..data import BLOCK, Rows
from ..errors import ArtifactError
from . import codes_kernels
from .codes_base import SAMPLE, Array, Block, Codes, Mask, checked, sample, selector

LEVELS = 16
ROUNDS = 20  # of fitting levels
FEW = 20  # where fewer than one row in so many is allowed, those alone are scored
LIST_SAMPLE = 64  # rows a list that the lists are learned from
TRIED = 200  # documents that stand in for queries when the number of lists to scan is chosen …
NEAREST = 100  # … so that of these nearest neighbours …
SHORTLIST = 500  # … among so many candidates …
KEPT = 0.99  # … this share of what all lists give is found …
MARGIN = 2  # … and so many times that number is scanned: queries lie further from documents than documents do


@dataclass(frozen=True, eq=False)
class Inverted:
    """What is stored."""

    turn: NDArray[np.float32]  # (m, m) orthogonal
    levels: NDArray[np.float32]  # (m, 16) ascending
    codes: NDArray[np.uint8]  # (N, (m + 1) // 2)
    centres: NDArray[np.float32]  # (L, m) of the lists; what is coded is a row less its list's centre
    list_of: NDArray[np.int32]  # (N,)
    probes: NDArray[np.int64]  # (1,) lists to scan

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> Self:
        """Checked arrays."""
        width = len(checked(arrays, "turn", np.float32, (None, None)))
        codes = checked(arrays, "codes", np.uint8, (None, (width + 1) // 2))
        centres = checked(arrays, "centres", np.float32, (None, width))
        found = cls(
            turn=checked(arrays, "turn", np.float32, (width, width)),
            levels=checked(arrays, "levels", np.float32, (width, LEVELS)),
            codes=codes,
            centres=centres,
            list_of=checked(arrays, "list_of", np.int32, (len(codes),)),
            probes=checked(arrays, "probes", np.int64, (1,)),
        )
        lists, probes = len(centres), int(found.probes[0])
        if not 1 <= probes <= lists:
            raise ArtifactError(f"codes: {probes} of {lists} lists are to be scanned: build the index anew")
        if len(codes) and not 0 <= found.list_of.min() <= found.list_of.max() < lists:
            raise ArtifactError(f"codes: a row is in list {found.list_of.max()}, there are {lists}: build the index anew")
        return found


class FourBit(Codes):
    """All codes in one list."""

    storage = "pq4"

    def __init__(self, stored: Inverted) -> None:
        self._stored = stored
        self._nearest = faiss.IndexFlatIP(stored.centres.shape[1])
        self._nearest.add(stored.centres)
        self._index = _scanner(stored, self._nearest)

    @classmethod
    def build(cls, block: Block, seed: int) -> Self:
        width = block.shape[1]
        return cls(_coded(block, np.zeros((1, width), np.float32), np.zeros(len(block), np.int32), seed))

    @classmethod
    def read(cls, arrays: Mapping[str, Array]) -> Self:
        return cls(Inverted.of(arrays))

    def arrays(self) -> dict[str, Array]:
        return {field.name: getattr(self._stored, field.name) for field in fields(Inverted)}

    def __len__(self) -> int:
        return len(self._stored.codes)

    @property
    def width(self) -> int:
        return len(self._stored.turn)

    @property
    def bytes_per_document(self) -> float:
        return float(self._stored.codes.shape[1] + 8)  # faiss holds a row number with each code

    def _search(self, queries: NDArray[np.float32], k: int) -> Rows:
        turned = queries @ self._stored.turn.T
        probes = self._probes(k, len(self))
        if probes == self._stored.probes[0]:
            return np.asarray(self._index.search(turned, k)[1])
        return np.asarray(self._index.search(turned, k, params=faiss.SearchParametersIVF(nprobe=probes))[1])

    def _search_among(self, queries: NDArray[np.float32], k: int, allowed: Mask, rows: Rows) -> Rows:
        turned = queries @ self._stored.turn.T
        if len(rows) * FEW < len(self):
            return np.concatenate([self._score(query, rows, k) for query in turned]).reshape(len(queries), k)
        options = faiss.SearchParametersIVF(sel=selector(allowed), nprobe=self._probes(k, len(rows)))
        return np.asarray(self._index.search(turned, k, params=options)[1])

    def _score(self, query: NDArray[np.float32], rows: Rows, k: int) -> Rows:
        """The k best of these rows, which are more than k."""
        stored = self._stored
        scores = codes_kernels.scores(stored.codes, rows, query[:, None] * stored.levels, stored.centres @ query, stored.list_of)
        return np.asarray(rows[kernels.top_k(scores[None], np.arange(len(rows)), k)[0]])

    def _probes(self, k: int, rows: int) -> int:
        """Lists to scan, so that as many of these `rows` are met as at build time, and at least four for each that is asked for."""
        lists, usual = len(self._stored.centres), int(self._stored.probes[0])
        return min(lists, max(-(-usual * len(self) // max(rows, 1)), -(-4 * k * lists // max(rows, 1))))


class Lists(FourBit):
    """Codes in about √N lists."""

    storage = "ivf"

    @classmethod
    def build(cls, block: Block, seed: int) -> Self:
        count = 2 ** round(np.log2(max(len(block), 1)) / 2)
        count = max(1, min(count, len(block) // 39))  # faiss wants so many rows to learn a list from
        learner = faiss.Kmeans(block.shape[1], count, niter=10, seed=seed, spherical=True, max_points_per_centroid=LIST_SAMPLE)
        learner.train(sample(block, LIST_SAMPLE * count, seed) if len(block) else np.zeros((count, block.shape[1]), np.float32))
        centres = np.asarray(learner.centroids)
        nearest = faiss.IndexFlatIP(block.shape[1])
        nearest.add(centres)
        list_of = np.empty(len(block), np.int32)
        for start in range(0, len(block), BLOCK):
            list_of[start : start + BLOCK] = nearest.search(np.ascontiguousarray(block[start : start + BLOCK]), 1)[1][:, 0]
        built = cls(_coded(block, centres, list_of, seed))
        built._choose_probes(block, seed)
        return built

    @property
    def bytes_per_document(self) -> float:
        return super().bytes_per_document + 4

    @property
    def share_scanned(self) -> float:
        """Of the lists, for a usual query."""
        return float(self._stored.probes[0] / len(self._stored.centres))

    def _choose_probes(self, block: Block, seed: int) -> None:
        """Scans as few lists as keep what all lists find, for documents in place of queries."""
        if not len(block):
            return
        queries = sample(block, TRIED, seed)
        near = faiss.knn(queries, np.ascontiguousarray(block), min(NEAREST, len(block)), metric=faiss.METRIC_INNER_PRODUCT)[1]
        turned = queries @ self._stored.turn.T
        lists = len(self._stored.centres)

        def found(probes: int) -> float:
            options = faiss.SearchParametersIVF(nprobe=probes)
            rows = self._index.search(turned, min(SHORTLIST, len(block)), params=options)[1]
            return float(np.mean([np.isin(a, b).mean() for a, b in zip(near, rows, strict=True)]))

        probes, wanted = 1, KEPT * found(lists)
        while probes < lists and found(probes) < wanted:
            probes *= 2
        self._stored.probes[0] = self._index.nprobe = min(lists, MARGIN * probes)


def _coded(block: Block, centres: NDArray[np.float32], list_of: NDArray[np.int32], seed: int) -> Inverted:
    """The codes of a block in given lists."""
    width = block.shape[1]
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((width, width)))[0].astype(np.float32)
    centres = centres @ turn.T
    learned = np.random.default_rng(seed).permutation(len(block))[:SAMPLE]
    levels = _levels(block[np.sort(learned)] @ turn.T - centres[list_of[np.sort(learned)]])
    edges = 0.5 * (levels[:, 1:] + levels[:, :-1])
    codes = np.empty((len(block), (width + 1) // 2), np.uint8)
    for start in range(0, len(block), BLOCK):
        part = slice(start, start + BLOCK)
        codes_kernels.encode(block[part] @ turn.T - centres[list_of[part]], edges, codes[part])
    return Inverted(turn, levels, codes, centres, list_of, np.ones(1, np.int64))


def _levels(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sixteen levels for each coordinate with the least mean squared error: Lloyd's rounds over sorted columns. (n, m) -> (m, 16)"""
    if not len(rows):
        return np.tile(np.linspace(-1, 1, LEVELS, dtype=np.float32), (rows.shape[1], 1))
    levels = np.empty((rows.shape[1], LEVELS), np.float64)
    for j, column in enumerate(np.sort(rows.astype(np.float64), axis=0).T):
        sums = np.concatenate([[0.0], np.cumsum(column)])
        level = np.quantile(column, (np.arange(LEVELS) + 0.5) / LEVELS)
        for _ in range(ROUNDS):
            cuts = np.concatenate([[0], np.searchsorted(column, 0.5 * (level[1:] + level[:-1])), [len(column)]])
            held = np.diff(cuts)
            level = np.where(held > 0, np.diff(sums[cuts]) / np.maximum(held, 1), level)
        levels[j] = level if level[-1] > level[0] else level[0] + np.linspace(-1e-3, 1e-3, LEVELS)  # faiss wants levels to differ
    return np.asarray(levels, np.float32)


def _scanner(stored: Inverted, nearest: Any) -> Any:
    """faiss' index over the codes; `nearest`, the index over the lists' centres, must outlive it."""
    lists, width = stored.centres.shape
    plain = faiss.IndexIVFPQ(nearest, width, lists, width, 4, faiss.METRIC_INNER_PRODUCT)
    faiss.copy_array_to_vector(stored.levels.ravel(), plain.pq.centroids)
    plain.is_trained = True
    order = np.argsort(stored.list_of, kind="stable")
    ends = np.cumsum(np.bincount(stored.list_of, minlength=lists))
    for place, (begin, end) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
        rows = np.ascontiguousarray(order[begin:end], np.int64)
        codes = np.ascontiguousarray(stored.codes[rows])
        plain.invlists.add_entries(place, len(rows), faiss.swig_ptr(rows), faiss.swig_ptr(codes))
    plain.ntotal = len(stored.codes)
    scanner = faiss.IndexIVFPQFastScan(plain)
    scanner.nprobe = int(stored.probes[0])
    return scanner
