"""An inverted file (IVF) over 4-bit codes of residuals: about √N lists, with nprobe chosen when it is built."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, fields
from functools import partial
from typing import Self

import faiss
import numpy as np

from ...data import BLOCK
from ...errors import ArtifactError
from ...kernels import lists, quantise
from ...kernels.lookup import TOGETHER
from ...types import F32, I32, I64, U8, U64, Array, Mask, Rows
from .base import Block, Codes, checked, sample, synthetic_queries
from .codebook import SAMPLE, checked_levels, code_bytes, coded, fitted_levels, points, random_rotation, tables
from .fourbit import FEW
from .packed import ALL, bits_of, packed

LIST_SAMPLE = 64  # rows per list that the centroids are learned from …
ROUNDS = 5  # … in so many rounds: with ten, answers are hardly better (benchmarks/storages.py)
# nprobe is chosen on synthetic queries, for the default shortlist
TRIED = 300  # of them
NEAREST = 10  # nearest neighbours of each …
AMONG = 200  # … by whole rows, among so many by the codes of all lists
KEPT = 0.99  # share of these that the lists must hold
MARGIN = 1.5  # of nprobe, since some collections' queries are unlike any of their documents
SHORTLIST = 500
SHORTER, LONGER = 0.25, 0.5  # powers of the length of a shortlist that the lists to scan grow with, below that length and above
MET = 4  # rows scanned per row wanted, at least
NUMBERED = 4 + 4  # bytes of a row beside its code: which row it is, and its list


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
    """An inverted file. A list's codes lie together, from a block of 64 on, as the scan reads them."""

    storage = "ivf"
    wide = True
    fewest = 2  # residuals are of any length, which one bit can't tell
    threaded = False

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._points = np.ascontiguousarray(points(stored.levels))
        counts = np.bincount(stored.list_of, minlength=len(stored.centres))
        ends = np.cumsum(-(-counts // TOGETHER))  # in blocks
        firsts = ends + counts // -TOGETHER
        order = np.argsort(stored.list_of, kind="stable")
        before = np.cumsum(counts) - counts  # rows in the lists before
        places = np.repeat(firsts * TOGETHER - before, counts) + np.arange(len(order))
        self._rows = np.full(ends[-1] * TOGETHER, -1, np.int32)  # by place, -1 behind a list's last
        self._rows[places] = order
        self._bits = partial(_in_places, self._rows)
        scale = 1 / np.maximum(np.linalg.norm(stored.centres, axis=1), 1e-12)
        self._lists = (packed(stored.codes, self._rows), counts, firsts, self._rows, stored.centres, scale.astype(np.float32))

    @classmethod
    def build(cls, block: Block, seed: int, bits: int = 4) -> Self:
        count = 2 ** round(np.log2(max(len(block), 1)) / 2)
        count = max(1, min(count, len(block) // 39))  # faiss wants so many rows per centroid
        learner = faiss.Kmeans(block.shape[1], count, niter=ROUNDS, seed=seed, spherical=True, max_points_per_centroid=LIST_SAMPLE)
        learner.train(sample(block, LIST_SAMPLE * count, seed) if len(block) else np.zeros((count, block.shape[1]), np.float32))
        built = cls(_assigned(block, np.asarray(learner.centroids), seed, bits))
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
        return float(self._stored.codes.shape[1] + NUMBERED)

    @property
    def share_scanned(self) -> float:
        """The share of the lists that a typical query scans."""
        return float(self._stored.probes[0] / len(self._stored.centres))

    @property
    def scan_bytes(self) -> float:
        return self.share_scanned * self._stored.codes.nbytes

    def parts(self, count: int) -> list[tuple[int, Codes]]:
        """All rows each, and every `count`-th list: the others are empty in this part."""
        found: list[tuple[int, Codes]] = []
        for own in range(count):
            part, (packed, counts, *rest) = copy(self), self._lists
            part._lists = (packed, np.where(np.arange(len(counts)) % count == own, counts, 0), *rest)
            found.append((0, part))
        return found

    def scores(self, queries: F32, rows: Rows) -> F32:
        stored, rotated = self._stored, queries @ self._stored.turn.T
        scores = quantise.scores(stored.codes, np.ascontiguousarray(rows), tables(rotated, self._points))  # of residuals
        scores += np.take_along_axis(rotated @ stored.centres.T, stored.list_of[rows], axis=1)
        return scores

    def _search(self, queries: F32, k: int) -> Rows:
        count = len(self._stored.centres)
        return self._scan(queries, k, min(count, -(-self._met(k) * count // max(len(self), 1))))

    def _search_among(self, queries: F32, k: int, allowed: Mask, count: int) -> Rows:
        if count * FEW < len(self):
            return self._best_of(queries, self._kept(np.flatnonzero, allowed), k)
        return self._scan(queries, k, self._probes(queries, k, allowed, count), self._kept(self._bits, allowed))

    def _scan(self, queries: F32, k: int, probes: int, allowed: U64 = ALL) -> Rows:
        found = np.empty((len(queries), k), np.int64)
        lists.some_lists(self._lists, self._stored.turn, self._points, queries, probes, allowed, found)
        return found

    def _probes(self, queries: F32, k: int, allowed: Mask, count: int) -> int:
        """The nprobe at which every query scans as many of the allowed rows as it would of all rows without a filter."""
        stored = self._stored
        wanted = min(count, self._met(k))
        held = np.bincount(stored.list_of[allowed], minlength=len(stored.centres))
        met = np.cumsum(held[np.argsort(-(queries @ stored.turn.T @ stored.centres.T * self._lists[-1]), axis=1)], axis=1)  # (Q, L)
        return int((met < wanted).sum(axis=1).max(initial=0)) + 1

    def _met(self, k: int) -> int:
        """How many rows to scan for k candidates: fewer for a short shortlist, which asks for less, and more for a long one."""
        times = k / SHORTLIST
        return max(int(self.share_scanned * len(self) * times ** (SHORTER if times < 1 else LONGER)), MET * k)

    def _choose_probes(self, block: Block, seed: int) -> None:
        """Chooses the smallest nprobe whose lists hold enough of the nearest neighbours of synthetic queries."""
        if not len(block):
            return
        queries = synthetic_queries(block, TRIED, seed)
        found = self._scan(queries, min(AMONG, len(block)), len(self._stored.centres))
        exact = [block[rows] @ query for rows, query in zip(found, queries, strict=True)]
        near = np.take_along_axis(found, np.argsort(-np.array(exact), axis=1)[:, :NEAREST], axis=1)
        scores = queries @ self._stored.turn.T @ self._stored.centres.T * self._lists[-1]  # (Q, L)
        ahead = -np.sort(-scores, axis=1)
        own = np.take_along_axis(scores, self._stored.list_of[near], axis=1)  # of the list that a neighbour is in
        places = np.concatenate([np.searchsorted(-some, -these) for some, these in zip(ahead, own, strict=True)])
        self._stored.probes[0] = min(scores.shape[1], 1 + MARGIN * np.quantile(places, KEPT, method="higher"))


def _in_places(rows: I32, allowed: Mask) -> U64:
    """A bit for each place, set where its row is allowed."""
    return bits_of(allowed[rows] & (rows >= 0))


def _assigned(block: Block, centres: F32, seed: int, bits: int) -> Stored:
    """The lists of the nearest centroids, and the codes of their rows."""
    width, turn = block.shape[1], random_rotation(block.shape[1], seed)
    nearest = faiss.IndexFlatIP(width)
    nearest.add(centres)
    list_of, sums = np.empty(len(block), np.int32), np.zeros(centres.shape)
    for start in range(0, len(block), BLOCK):
        rows = np.ascontiguousarray(block[start : start + BLOCK])
        list_of[start : start + BLOCK] = nearest.search(rows, 1)[1][:, 0]
        lists.add_rows(rows, list_of[start : start + BLOCK], sums)
    counts = np.bincount(list_of, minlength=len(centres))[:, None]  # a list's mean is nearer to its rows than the direction they share
    centres = np.where(counts, sums / np.maximum(counts, 1), centres).astype(np.float32) @ turn.T
    learned = np.sort(np.random.default_rng(seed).permutation(len(block))[:SAMPLE])
    levels = fitted_levels(block[learned] @ turn.T - centres[list_of[learned]], bits)
    return Stored(turn, levels, coded(block, turn, levels, centres, list_of), centres, list_of, np.ones(1, np.int64))
