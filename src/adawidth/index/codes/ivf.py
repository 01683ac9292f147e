"""An inverted file (IVF) over 4-bit codes of residuals: about √N lists, with nprobe chosen when it is built."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import faiss
import numpy as np

from ...data import BLOCK
from ...errors import ArtifactError
from ...kernels import quantise
from ...types import F32, I32, I64, U8, Array, Mask, Rows
from .base import SAMPLE, Block, Codes, checked, sample, selector
from .codebook import checked_levels, code_bytes, edges, fitted_levels, points, random_rotation, tables, turned_rows, with_centroids
from .fourbit import FEW

LIST_SAMPLE = 64  # rows per list that the centroids are learned from
# nprobe is chosen on documents as queries: the smallest at which enough of their nearest neighbours are found, times a margin.
TRIED = 200  # documents taken as queries
NEAREST = 10  # nearest neighbours of each …
SHORTLIST = 500  # … looked for among so many candidates; a longer shortlist scans more lists
KEPT = 0.98  # share to find of those that all lists give
MARGIN = 2.0  # queries lie further from documents than documents do
MET = 4  # rows scanned per row wanted, at least
FINER = 1.1  # step of the search for nprobe
AT_ONCE = 64  # lists copied at a time
ONE, MANY = 11, 13  # faiss' `implem`: the fastest for a single query, and for a batch


@dataclass(frozen=True, eq=False)
class Stored:
    """What is stored."""

    turn: F32  # (m, m) orthogonal
    levels: F32  # (m, 16, 4 or 2) ascending
    codes: U8  # (N, bytes)
    centres: F32  # (L, m) centroids of the lists
    list_of: I32  # (N,)
    probes: I64  # (1,) nprobe

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> Self:
        """Checked arrays."""
        width = len(checked(arrays, "turn", np.float32, (None, None)))
        levels = checked_levels(arrays, width)
        codes = checked(arrays, "codes", np.uint8, (None, code_bytes(levels)))
        found = cls(
            turn=checked(arrays, "turn", np.float32, (width, width)),
            levels=levels,
            codes=codes,
            centres=checked(arrays, "centres", np.float32, (None, width)),
            list_of=checked(arrays, "list_of", np.int32, (len(codes),)),
            probes=checked(arrays, "probes", np.int64, (1,)),
        )
        lists, probes = len(found.centres), int(found.probes[0])
        if not 1 <= probes <= lists:
            raise ArtifactError(f"codes: {probes} of {lists} lists are to be scanned: build the index again")
        if len(codes) and not 0 <= found.list_of.min() <= found.list_of.max() < lists:
            raise ArtifactError(f"codes: a row is in list {found.list_of.max()}, there are {lists}: build the index again")
        return found


class Lists(Codes):
    """An inverted file. One index scans for single queries, one for batches; both share the lists."""

    storage = "ivf"
    wide = True

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._points = points(stored.levels)
        self._nearest = faiss.IndexFlatIP(stored.centres.shape[1])  # outlives the scanners
        self._nearest.add(stored.centres)
        self._one = _filled(_scanner(stored, self._nearest, ONE), stored, self._nearest)
        self._many = _scanner(stored, self._nearest, MANY)
        self._many.replace_invlists(self._one.invlists, False)
        self._many.ntotal = self._one.ntotal

    @classmethod
    def build(cls, block: Block, seed: int, bits: int = 4) -> Self:
        count = 2 ** round(np.log2(max(len(block), 1)) / 2)
        count = max(1, min(count, len(block) // 39))  # faiss wants so many rows per centroid
        learner = faiss.Kmeans(block.shape[1], count, niter=10, seed=seed, spherical=True, max_points_per_centroid=LIST_SAMPLE)
        learner.train(sample(block, LIST_SAMPLE * count, seed) if len(block) else np.zeros((count, block.shape[1]), np.float32))
        built = cls(_coded(block, np.asarray(learner.centroids), seed, bits))
        built._choose_probes(block, seed)
        return built

    @classmethod
    def read(cls, arrays: Mapping[str, Array]) -> Self:
        return cls(Stored.of(arrays))

    def arrays(self) -> dict[str, Array]:
        return {field.name: getattr(self._stored, field.name) for field in fields(Stored)}

    def __len__(self) -> int:
        return len(self._stored.codes)

    @property
    def width(self) -> int:
        return len(self._stored.turn)

    @property
    def bytes_per_document(self) -> float:
        return float(self._stored.codes.shape[1] + 8 + 4)  # faiss holds a row number with each code; and the row's list

    @property
    def share_scanned(self) -> float:
        """The share of the lists that a typical query scans."""
        return float(self._stored.probes[0] / len(self._stored.centres))

    @property
    def scan_bytes(self) -> float:
        return self.share_scanned * self._stored.codes.nbytes

    def scores(self, queries: F32, rows: Rows) -> F32:
        stored, rotated = self._stored, queries @ self._stored.turn.T
        scores = quantise.scores(stored.codes, np.ascontiguousarray(rows), tables(rotated, self._points))  # of residuals
        scores += np.take_along_axis(rotated @ stored.centres.T, stored.list_of[rows], axis=1)
        return scores

    def _search(self, queries: F32, k: int) -> Rows:
        lists = len(self._stored.centres)
        return self._scan(queries @ self._stored.turn.T, k, min(lists, -(-self._met(k) * lists // max(len(self), 1))))

    def _search_among(self, queries: F32, k: int, allowed: Mask, count: int) -> Rows:
        if count * FEW < len(self):
            return self._best_of(queries, self._kept(np.flatnonzero, allowed), k)
        rotated = queries @ self._stored.turn.T
        return self._scan(rotated, k, self._probes(rotated, k, allowed, count), sel=self._kept(selector, allowed))

    def _scan(self, rotated: F32, k: int, probes: int, **options: Any) -> Rows:
        scanner = self._one if len(rotated) == 1 else self._many
        return np.asarray(scanner.search(rotated, k, params=faiss.SearchParametersIVF(nprobe=probes, **options))[1])

    def _probes(self, rotated: F32, k: int, allowed: Mask, count: int) -> int:
        """The nprobe at which every query scans as many of the allowed rows as it would of all rows without a filter."""
        stored = self._stored
        wanted = min(count, self._met(k))
        held = np.bincount(stored.list_of[allowed], minlength=len(stored.centres))
        met = np.cumsum(held[np.argsort(-(rotated @ stored.centres.T), axis=1)], axis=1)  # (Q, L)
        return int((met < wanted).sum(axis=1).max(initial=0)) + 1

    def _met(self, k: int) -> int:
        """How many rows to scan for k candidates; grows with √k beyond the default shortlist."""
        return max(round(self.share_scanned * len(self) * math.sqrt(max(1.0, k / SHORTLIST))), MET * k)

    def _choose_probes(self, block: Block, seed: int) -> None:
        """Chooses the smallest nprobe that finds what all lists find, on documents as queries."""
        if not len(block):
            return
        queries = sample(block, TRIED, seed)
        count = min(NEAREST + 1, len(block))
        near = faiss.knn(queries, np.ascontiguousarray(block), count, metric=faiss.METRIC_INNER_PRODUCT)[1][:, 1:]  # not itself
        rotated, lists = queries @ self._stored.turn.T, len(self._stored.centres)

        def found(probes: int) -> float:
            rows = self._scan(rotated, min(SHORTLIST, len(block)), probes)
            return float(np.mean([np.isin(a, b).mean() for a, b in zip(near, rows, strict=True)])) if near.size else 1.0

        probes, wanted = 1, KEPT * found(lists)
        while probes < lists and found(probes) < wanted:
            probes = max(probes + 1, round(FINER * probes))
        self._stored.probes[0] = min(lists, round(MARGIN * probes))


def _coded(block: Block, centres: F32, seed: int, bits: int) -> Stored:
    """Assigns every row to its nearest centroid."""
    width, turn = block.shape[1], random_rotation(block.shape[1], seed)
    nearest = faiss.IndexFlatIP(width)
    nearest.add(centres)
    list_of = np.empty(len(block), np.int32)
    for start in range(0, len(block), BLOCK):
        list_of[start : start + BLOCK] = nearest.search(np.ascontiguousarray(block[start : start + BLOCK]), 1)[1][:, 0]
    centres = centres @ turn.T
    learned = np.sort(np.random.default_rng(seed).permutation(len(block))[:SAMPLE])
    levels = fitted_levels(block[learned] @ turn.T - centres[list_of[learned]], bits)
    codes = np.empty((len(block), code_bytes(levels)), np.uint8)
    for start in range(0, len(block), BLOCK):
        part = slice(start, start + BLOCK)
        quantise.encode(turned_rows(block[part], turn) - centres[list_of[part]], edges(levels), codes[part])
    return Stored(turn, levels, codes, centres, list_of, np.ones(1, np.int64))


def _scanner(stored: Stored, nearest: Any, way: int, held: Mapping[int, Rows] | None = None) -> Any:
    """faiss' index over the codes, by one `implem`, with these rows in the lists of these numbers."""
    lists, width = stored.centres.shape
    meant = points(stored.levels)
    plain = with_centroids(faiss.IndexIVFPQ(nearest, width, lists, len(meant), 4, faiss.METRIC_INNER_PRODUCT), meant)
    for place, rows in (held or {}).items():
        codes = np.ascontiguousarray(stored.codes[rows])  # faiss gets its address
        plain.invlists.add_entries(place, len(rows), faiss.swig_ptr(rows), faiss.swig_ptr(codes))
        plain.ntotal += len(rows)
    scanner = faiss.IndexIVFPQFastScan(plain)
    scanner.implem = way
    return scanner


def _filled(scanner: Any, stored: Stored, nearest: Any) -> Any:
    """With all rows, a few lists at a time: faiss copies the lists that a scanner is made of, and keeps both."""
    order, lists = np.argsort(stored.list_of, kind="stable"), len(stored.centres)
    rows_of = np.split(order, np.cumsum(np.bincount(stored.list_of, minlength=lists))[:-1])
    for begin in range(0, lists, AT_ONCE):
        some = _scanner(stored, nearest, ONE, dict(enumerate(rows_of[begin : begin + AT_ONCE], begin)))
        scanner.invlists.merge_from(some.invlists, 0)
    scanner.ntotal = len(stored.codes)
    return scanner
