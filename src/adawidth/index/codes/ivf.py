"""An inverted file (IVF) over 4-bit codes of residuals, whose lists are scanned until they change the shortlist no more.

How many lists that takes hangs on the query. They are scanned some at a time, the nearest first, and a search ends when hardly any of
its candidates come from the last of them: as the taper, it goes on only where the answer is in doubt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, fields
from functools import partial
from typing import Self

import numpy as np

from ...errors import ArtifactError
from ...kernels import lists, quantise
from ...kernels.lookup import TOGETHER
from ...types import F32, I32, I64, U8, U64, Array, Mask, Rows
from ..candidates import ANY, Near
from ..panels import panels
from .base import Block, Codes, checked, synthetic_queries
from .centroids import divided
from .codebook import SAMPLE, checked_levels, code_bytes, coded, fitted_levels, points, random_rotation, tables
from .fourbit import FEW
from .packed import ALL, bits_of, packed

ROUND = 0.08  # share of the lists that is scanned at a time …
ROUNDED = 8  # … or more, so that there are so many …
ENOUGH = 0.005  # … until no larger a share of the shortlist comes from the last of them
MET = 4  # rows scanned per row wanted, at least, if a search says how many lists
TRIED, SHORTLIST = 100, 500  # synthetic queries that tell how many lists are typical, and their candidates
FURTHEST = 1.01  # coordinate of a mean of rows of unit length, for what is rounded
NUMBERED = 4 + 4  # bytes of a row beside its code: which row it is, and its list


@dataclass(frozen=True, eq=False)
class Stored:
    """What is stored."""

    turn: F32  # (m, m) orthogonal
    levels: F32  # (m, 16, 4 or 2) ascending
    codes: U8  # (N, bytes)
    centres: F32  # (L, m) centroids of the lists
    list_of: I32  # (N,)
    probes: I64  # (1,) lists that a typical query scans

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
        if (furthest := float(np.abs(found.centres).max(initial=0))) > FURTHEST:
            raise ArtifactError(f"codes: a centroid has a coordinate of {furthest:g}, but rows have unit length: build the index again")
        if len(codes) and not 0 <= found.list_of.min() <= found.list_of.max() < lists:
            raise ArtifactError(f"codes: a row is in list {found.list_of.max()}, there are {lists}: build the index again")
        return found


class Lists(Codes):
    """An inverted file. The codes of a list lie together."""

    storage = "ivf"
    wide = True
    fewest = 2  # residuals are of any length, which one bit can't tell
    threaded = False
    spare = 1.35
    _asked: float | None = None  # the share of the lists to scan, if not as many as a query needs

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._points = np.ascontiguousarray(points(stored.levels))
        counts = np.bincount(stored.list_of, minlength=len(stored.centres))
        starts, length = laid_out(counts)
        order = np.argsort(stored.list_of, kind="stable")
        before = np.cumsum(counts) - counts  # rows in the lists before
        self._rows = np.full(length, -1, np.int32)  # by place, -1 where there is none
        self._rows[np.repeat(starts - before, counts) + np.arange(len(order))] = order
        self._bits = partial(_in_places, self._rows)
        scale = 1 / np.maximum(np.linalg.norm(stored.centres, axis=1), 1e-12)
        axes = panels(stored.centres)
        self._lists = (packed(stored.codes, self._rows), counts, starts, self._rows, axes, scale.astype(np.float32))

    @classmethod
    def build(cls, block: Block, seed: int, bits: int = 4) -> Self:
        turn = random_rotation(block.shape[1], seed)
        centres, list_of = divided(block, seed)
        centres = (centres @ turn.T).astype(np.float16).astype(np.float32)  # as they are read
        learned = np.sort(np.random.default_rng(seed).permutation(len(block))[:SAMPLE])
        levels = fitted_levels(block[learned] @ turn.T - centres[list_of[learned]], bits)
        codes = coded(block, turn, levels, centres, list_of)
        built = cls(Stored(turn, levels, codes, centres, list_of, np.ones(1, np.int64)))
        if len(block):
            queries = synthetic_queries(block, TRIED, seed)
            scanned = built._scan(queries, min(SHORTLIST, len(block)), built.lists, built._round)[1]
            built._stored.probes[0] = round(scanned / len(queries))
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
    def lists(self) -> int:
        """Lists that the rows are in."""
        return len(self._stored.centres)

    @property
    def share_scanned(self) -> float:
        """The share of the lists that a typical query scans."""
        return float(self._stored.probes[0] / self.lists) if self._asked is None else self._asked

    def probing(self, share: float) -> Codes:
        """The same, where a query scans this share of the lists, however long its shortlist is."""
        same = copy(self)
        same._asked = min(share, 1.0)
        return same

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

    def _search(self, queries: F32, k: int, near: Near) -> Rows:
        if self._asked is None:
            return self._scan(queries, k, self.lists, self._round, near)[0]
        count = min(self.lists, max(round(self._asked * self.lists), math.ceil(MET * k * self.lists / max(len(self), 1))))
        return self._scan(queries, k, count, count, near)[0]

    def _search_among(self, queries: F32, k: int, allowed: Mask, count: int, near: Near) -> Rows:
        if count * FEW < len(self):
            return self._best_of(queries, self._kept(np.flatnonzero, allowed), k)
        return self._scan(queries, k, self.lists, self._round, near, self._kept(self._bits, allowed))[0]

    @property
    def _round(self) -> int:
        """How many lists are scanned at a time."""
        share = ROUND if self._asked is None else self._asked
        return min(self.lists, max(ROUNDED, math.ceil(share * self.lists)))

    def _scan(self, queries: F32, k: int, most: int, size: int, near: Near = ANY, allowed: U64 = ALL) -> tuple[Rows, int]:
        """The best rows of at most so many lists, and how many were scanned for all queries together."""
        found, enough = np.empty((len(queries), k), np.int64), int(ENOUGH * k)
        turn = self._stored.turn
        scanned = lists.some_lists(self._lists, turn, self._points, queries, most, size, enough, allowed, *near, found)
        return found, int(scanned)


def laid_out(counts: I64) -> tuple[I64, int]:
    """The place of each list's first row, and how many places there are, in whole blocks. (L,) -> (L,)

    A list lies in as few blocks as can hold it, and may share its first and its last with others: behind one that leaves much of its
    last block free come those that need little of theirs.
    """
    starts, order, rest = (
        np.empty(len(counts), np.int64),
        np.argsort(counts % TOGETHER, kind="stable").tolist(),
        (counts % TOGETHER).tolist(),
    )
    first, last, end = 0, len(order) - 1, 0
    while first <= last:
        free = -end % TOGETHER
        if rest[order[last]] <= free:
            one, last = order[last], last - 1
        elif rest[order[first]] <= free:
            one, first = order[first], first + 1
        else:
            end += free
            one, last = order[last], last - 1
        starts[one], end = end, end + int(counts[one])
    return starts, -(-end // TOGETHER) * TOGETHER


def _in_places(rows: I32, allowed: Mask) -> U64:
    """A bit for each place, set where its row is allowed."""
    return bits_of(allowed[rows] & (rows >= 0))
