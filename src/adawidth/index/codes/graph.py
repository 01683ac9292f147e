"""A graph of near neighbours over 4-bit codes: the quickest way to candidates in a large segment, for those who have the memory.

faiss builds the graph (HNSW); a kernel of our own walks its lowest layer. In memory the codes of a row's neighbours lie beside it, as
in SymphonyQG, so that expanding a row is one pass over a kilobyte. On disk there are only the codes and who is whose neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import faiss
import numpy as np

from ...data import BLOCK
from ...errors import ArtifactError
from ...kernels import graph
from ...types import F32, I32, I64, U8, U64, Array, Mask, Rows
from .base import Block, Codes, checked, sample
from .fourbit import FourBit
from .packed import ALL, bits_of, even, packed

LINKS = graph.NEIGHBOURS // 2  # of a row in the upper layers; the lowest has twice as many
CARE = 200  # rows that a new row chooses its neighbours from
ENTRIES = 1_024  # rows at which a walk may begin, at most
# The effort, rows held by a walk in percent of the rows wanted, is chosen on documents as queries: the least that finds enough, and more.
TRIED = 200  # documents taken as queries
WANTED = 100  # candidates for each
EFFORTS = (100, 125, 150, 200, 250, 300, 400)
KEPT = 0.97  # share to find of the candidates that a scan finds
MARGIN = 1.5  # queries lie further from documents than documents do
LEAST = 64  # rows held by any walk
SCANNED = 300  # rows that a scan reads in the time in which a walk expands one


def held_by_graph(size: int) -> int:
    """Bytes of memory that a document takes whose code takes so many."""
    return size + graph.NEIGHBOURS * (even(size) + 4)


class Graph(FourBit):
    """The codes and the graph. Where a walk would take as long as a scan, as in a small segment, the codes are scanned."""

    storage = "graph"

    def __init__(self, turn: F32, levels: F32, codes: U8, neighbours: I32, entries: I32, effort: I64) -> None:
        super().__init__(turn, levels, codes)
        self._neighbours = neighbours  # (N, 32), -1 behind the last
        self._entries = entries  # (E,)
        self._effort = effort  # (1,) rows held by a walk, in percent of those wanted
        self._blocks = _beside(self._packed.shape[1], codes, neighbours)  # (N, bytes, 32)
        self._first = packed(codes[entries])

    @classmethod
    def build(cls, block: Block, seed: int, bits: int = 4) -> Self:
        plain = FourBit.build(block, seed, bits).arrays()
        near = faiss.IndexHNSWFlat(block.shape[1], LINKS, faiss.METRIC_L2)  # rows have length one
        near.hnsw.efConstruction, near.keep_max_size_level0 = CARE, True
        for start in range(0, len(block), BLOCK):
            near.add(np.ascontiguousarray(block[start : start + BLOCK]))
        built = cls(**plain, neighbours=_neighbours(near), entries=_entries(near), effort=np.array(EFFORTS[:1], np.int64))
        built._choose_effort(block, seed)
        return built

    @classmethod
    def read(cls, arrays: Mapping[str, Array]) -> Self:
        plain = FourBit.read(arrays).arrays()
        count = len(plain["codes"])
        neighbours = checked(arrays, "neighbours", np.int32, (count, graph.NEIGHBOURS))
        entries, effort = checked(arrays, "entries", np.int32, (None,)), checked(arrays, "effort", np.int64, (1,))
        for name, rows, least in (("neighbours", neighbours, -1), ("entries", entries, 0)):
            if rows.size and not least <= rows.min() <= rows.max() < count:
                raise ArtifactError(f"codes: {name} run from {rows.min()} to {rows.max()}, there are {count} rows: build the index again")
        if (np.diff(entries) <= 0).any():  # a row would be found twice
            raise ArtifactError("codes: entries do not ascend: build the index again")
        if not 100 <= effort[0] <= MARGIN * EFFORTS[-1] or bool(count) != bool(len(entries)):
            what = f"an effort of {effort[0]} percent and {len(entries)} entries"
            raise ArtifactError(f"codes: a graph of {count} rows with {what}: build the index again")
        return cls(**plain, neighbours=neighbours, entries=entries, effort=effort)

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), "neighbours": self._neighbours, "entries": self._entries, "effort": self._effort}

    @property
    def bytes_per_document(self) -> float:
        return float(held_by_graph(self._codes.shape[1]))

    @property
    def scan_bytes(self) -> float:
        """Of a walk for a hundred candidates."""
        held = self._held(WANTED)
        if self._scans(held):
            return super().bytes_per_document * len(self)
        return float(held * graph.NEIGHBOURS * (self._blocks.shape[1] + 4) + self._first.nbytes)

    def parts(self, count: int) -> list[tuple[int, Codes]]:
        """One: a walk can't be split."""
        return [(0, self)]

    def _search(self, queries: F32, k: int, allowed: U64 = ALL) -> Rows:
        held = self._held(k)
        return super()._search(queries, k, allowed) if len(allowed) or self._scans(held) else self._walk(queries, k, held)

    def _search_among(self, queries: F32, k: int, allowed: Mask, count: int) -> Rows:
        held = self._held(k) * len(self) // count  # as many that are allowed as without a filter
        if self._scans(held):
            return super()._search_among(queries, k, allowed, count)
        found = self._walk(queries, k, held, self._kept(bits_of, allowed))
        if len(few := np.flatnonzero(found[:, -1] < 0)):  # what is allowed lies together, and far from these queries
            found[few] = super()._search_among(queries[few], k, allowed, count)
        return found

    def _held(self, k: int) -> int:
        """How many rows a walk for k candidates holds."""
        return max(LEAST, k * int(self._effort[0]) // 100)

    def _scans(self, held: int) -> bool:
        """Whether a scan takes no longer than a walk that holds so many rows."""
        return held * SCANNED >= len(self)

    def _walk(self, queries: F32, k: int, held: int, allowed: U64 = ALL) -> Rows:
        found = np.empty((len(queries), k), np.int64)
        steps = (self._blocks, self._neighbours, self._entries, self._first)
        graph.walk(steps, self._turn, self._points, queries, held, allowed, found)
        return found

    def _choose_effort(self, block: Block, seed: int) -> None:
        """Chooses the least effort that finds what a scan finds, on documents as queries."""
        if not len(block):
            return
        queries, k = sample(block, TRIED, seed), min(WANTED, len(block))
        near = super()._search(queries, k)
        effort = EFFORTS[-1]
        for effort in EFFORTS:
            rows = self._walk(queries, k, max(k, k * effort // 100))
            if np.mean([np.isin(a, b).mean() for a, b in zip(near, rows, strict=True)]) >= KEPT:
                break
        self._effort[0] = round(MARGIN * effort)


def _neighbours(near: Any) -> I32:
    """Every row's neighbours in the lowest layer of faiss' graph. (N, 32)"""
    firsts = faiss.vector_to_array(near.hnsw.offsets)[:-1].astype(np.int64)
    held = faiss.vector_to_array(near.hnsw.neighbors)
    neighbours = np.empty((near.ntotal, graph.NEIGHBOURS), np.int32)
    for start in range(0, near.ntotal, BLOCK):
        part = slice(start, start + BLOCK)
        neighbours[part] = held[firsts[part, None] + np.arange(graph.NEIGHBOURS)]
    return neighbours


def _entries(near: Any) -> I32:
    """The rows of the lowest layer that has few enough to begin at."""
    levels = faiss.vector_to_array(near.hnsw.levels)
    upper = next(level for level in range(1, int(levels.max(initial=0)) + 2) if (levels >= level).sum() <= ENTRIES)
    rows = np.flatnonzero(levels >= upper)
    return np.asarray(rows if len(rows) else [near.hnsw.entry_point] * bool(near.ntotal), np.int32)


def _beside(width: int, codes: U8, neighbours: I32) -> U8:
    """The codes of every row's neighbours, 32 side by side, in so many bytes; any codes where there is no neighbour. (N, bytes, 32)"""
    blocks = np.zeros((len(codes), width, graph.NEIGHBOURS), np.uint8)
    for start in range(0, len(codes), BLOCK):
        part = slice(start, start + BLOCK)
        blocks[part, : codes.shape[1]] = codes[neighbours[part]].swapaxes(1, 2)
    return blocks
