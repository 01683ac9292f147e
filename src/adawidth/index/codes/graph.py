"""A graph of near neighbours over 4-bit codes: the quickest way to candidates in a large segment, for those who have the memory.

A scan of the codes finds rows near each row, of which those that lie apart are linked. In memory the codes of a row's neighbours lie
beside it, as in SymphonyQG, so that expanding a row is one pass over a kilobyte. On disk are only the codes and who is whose neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from ...data import BLOCK
from ...errors import ArtifactError
from ...kernels import graph, links
from ...threads import shared
from ...types import F32, I32, I64, U8, U64, Array, Mask, Rows
from ..candidates import ANY, Near
from .base import Block, Codes, checked, synthetic_queries
from .fourbit import FourBit
from .packed import ALL, bits_of, even, packed

NEAR = 400  # rows near a row, by their codes, that its neighbours are chosen from
ENTRIES = 16  # times the square root of the number of rows: rows at which a walk may begin, drawn at random
# The effort, rows expanded by a walk in percent of the rows wanted, is chosen on synthetic queries: the least that finds enough.
TRIED, LIKE = 300, 0.85  # of them, and their cosines with documents: a walk finds about as much for them as for those of benchmarks/real.py
WANTED = 100  # candidates for each
NEAREST = 10  # of them by whole rows, which count
EFFORTS = (15, 20, 25, 30, 40, 50, 60, 80, 100, 130, 160, 200)
KEPT = 0.965  # share of these to find, of those that a scan finds; a longer shortlist finds more
LEAST = 24  # rows expanded by any walk
SCANNED = 500  # rows that a scan reads in the time in which a walk expands one
SLOWEST = 1_000  # percent


def held_by_graph(size: int) -> int:
    """Bytes of memory that a document takes whose code takes so many."""
    return size + graph.NEIGHBOURS * (even(size) + 4)


class Graph(FourBit):
    """The codes and the graph. Where a walk would take as long as a scan, as in a small segment, the codes are scanned."""

    storage = "graph"

    def __init__(self, turn: F32, levels: F32, codes: U8, neighbours: I32, entries: I32, effort: I64) -> None:
        super().__init__(turn, levels, codes)
        self._entries = entries  # (E,)
        self._effort = effort  # (1,) rows expanded by a walk, in percent of those wanted
        self._blocks = _beside(self._packed.shape[1], codes, neighbours)  # (N, 8 bytes + 32)
        self._first = packed(codes[entries])

    @classmethod
    def build(cls, block: Block, seed: int, bits: int = 4) -> Self:
        plain = FourBit.build(block, seed, bits)
        count = min(len(block), round(ENTRIES * len(block) ** 0.5))
        entries = np.sort(np.random.default_rng(seed).choice(len(block), count, replace=False)).astype(np.int32)
        built = cls(**plain.arrays(), neighbours=_linked(block, plain), entries=entries, effort=np.array(EFFORTS[-1:], np.int64))
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
        if not 1 <= effort[0] <= SLOWEST or bool(count) != bool(len(entries)):
            what = f"an effort of {effort[0]} percent and {len(entries)} entries"
            raise ArtifactError(f"codes: a graph of {count} rows with {what}: build the index again")
        return cls(**plain, neighbours=neighbours, entries=entries, effort=effort)

    def arrays(self) -> dict[str, Array]:
        neighbours = self._blocks[:, -graph.NEIGHBOURS :]
        neighbours = np.where(neighbours < len(self), neighbours, -1).astype(np.int32)
        return {**super().arrays(), "neighbours": neighbours, "entries": self._entries, "effort": self._effort}

    @property
    def bytes_per_document(self) -> float:
        return float(held_by_graph(self._codes.shape[1]))

    @property
    def scan_bytes(self) -> float:
        """Of a walk for a hundred candidates."""
        expanded = self._expanded(WANTED)
        if self._scans(expanded):
            return super().bytes_per_document * len(self)
        return float(expanded * self._blocks[:1].nbytes + self._first.nbytes)

    def parts(self, count: int) -> list[tuple[int, Codes]]:
        """One: a walk can't be split."""
        return [(0, self)]

    def _search(self, queries: F32, k: int, near: Near = ANY, allowed: U64 = ALL) -> Rows:
        expanded = self._expanded(k)
        if len(allowed) or self._scans(expanded):
            return super()._search(queries, k, near, allowed)
        return self._walk(queries, k, expanded, near)

    def _search_among(self, queries: F32, k: int, allowed: Mask, count: int, near: Near) -> Rows:
        expanded = self._expanded(k) * len(self) // count  # to meet as many that are allowed as without a filter
        if self._scans(expanded):
            return super()._search_among(queries, k, allowed, count, near)
        found = self._walk(queries, k, expanded, allowed=self._kept(bits_of, allowed))
        if len(few := np.flatnonzero(found[:, -1] < 0)):  # what is allowed lies together, and far from these queries
            found[few] = super()._search_among(queries[few], k, allowed, count, near)
        return found

    def _expanded(self, k: int) -> int:
        """How many rows a walk for k candidates expands, about."""
        return max(LEAST, k * int(self._effort[0]) // 100)

    def _scans(self, expanded: int) -> bool:
        """Whether a scan takes no longer than a walk that expands so many rows."""
        return expanded * SCANNED >= len(self)

    def _walk(self, queries: F32, k: int, expanded: int, near: Near = ANY, allowed: U64 = ALL) -> Rows:
        found = np.empty((len(queries), k), np.int64)
        stored = (self._blocks, self._entries, self._first)
        graph.walk(stored, self._turn, self._points, queries, expanded, allowed, *near, found)
        return found

    def _choose_effort(self, block: Block, seed: int) -> None:
        """Chooses the least effort that finds what a scan finds, on synthetic queries."""
        if not len(block):
            return
        queries, k = synthetic_queries(block, TRIED, seed, LIKE), min(WANTED, len(block))
        scanned = super()._search(queries, k)
        exact = np.array([block[rows] @ query for rows, query in zip(scanned, queries, strict=True)])
        near = np.take_along_axis(scanned, np.argsort(-exact, axis=1)[:, :NEAREST], axis=1)
        for effort in EFFORTS:
            self._effort[0] = effort
            rows = self._walk(queries, k, self._expanded(k))
            if np.mean([np.isin(a, b).mean() for a, b in zip(near, rows, strict=True)]) >= KEPT:
                break


def _linked(block: Block, plain: FourBit) -> I32:
    """Every row's neighbours, -1 behind the last. (N, 32)"""
    block, count, most = np.asarray(block, np.float32), len(block), min(NEAR, len(block))
    near, kept = np.empty((count, graph.NEIGHBOURS), np.int32), np.empty(count, np.int64)

    def link(part: slice) -> None:
        links.link(block, part.start, plain.search(block[part], most), near, kept)

    shared(link, count)
    ends, sources = np.empty(count, np.int64), np.empty(int(kept.sum()), np.int32)
    links.reverse(near, kept, ends, sources)
    neighbours = np.empty_like(near)
    shared(lambda part: links.relink(block, part.start, near, ends, sources, neighbours[part]), count)
    return neighbours


def _beside(width: int, codes: U8, neighbours: I32) -> I32:
    """The codes of every row's neighbours, 32 side by side, in so many bytes, and who they are; N where there is none. (N, 8 bytes + 32)"""
    blocks = np.zeros((len(codes), 8 * width + graph.NEIGHBOURS), np.int32)
    beside = blocks[:, : -graph.NEIGHBOURS].view(np.uint8).reshape(len(codes), width, graph.NEIGHBOURS)
    for start in range(0, len(codes), BLOCK):
        part = slice(start, start + BLOCK)
        beside[part, : codes.shape[1]] = codes[neighbours[part]].swapaxes(1, 2)
        blocks[part, -graph.NEIGHBOURS :] = np.where(neighbours[part] < 0, len(codes), neighbours[part])
    return blocks
