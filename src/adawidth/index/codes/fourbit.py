"""4-bit codes, one per coordinate or one per two, scanned by a kernel of our own."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from itertools import pairwise
from typing import Self

import numpy as np

from ...kernels import quantise, scan
from ...kernels.lookup import TOGETHER
from ...types import F32, U8, U64, Array, Mask, Rows
from ..candidates import ANY, Near
from .base import Block, Codes, checked
from .codebook import SAMPLE, checked_levels, code_bytes, coded, fitted_levels, points, random_rotation, tables
from .packed import ALL, bits_of, packed

FEW = 20  # if a filter allows fewer than one row in so many, only the allowed rows are scored


class FourBit(Codes):
    """The codes, the random rotation they were made under, and their codebook."""

    storage = "pq4"
    wide = True
    threaded = False

    def __init__(self, turn: F32, levels: F32, codes: U8) -> None:
        self._turn = turn  # (m, m) orthogonal
        self._levels = levels  # (m, 16, 4 or 2) ascending
        self._codes = codes  # (N, bytes)
        self._points = np.ascontiguousarray(points(levels))
        self._packed = packed(codes)

    @classmethod
    def build(cls, block: Block, seed: int, bits: int = 4) -> Self:
        turn = random_rotation(block.shape[1], seed)
        learned = np.sort(np.random.default_rng(seed).permutation(len(block))[:SAMPLE])
        levels = fitted_levels(block[learned] @ turn.T, bits)
        return cls(turn, levels, coded(block, turn, levels))

    @classmethod
    def read(cls, arrays: Mapping[str, Array]) -> Self:
        width = len(checked(arrays, "turn", np.float32, (None, None)))
        turn, levels = checked(arrays, "turn", np.float32, (width, width)), checked_levels(arrays, width)
        return cls(turn, levels, checked(arrays, "codes", np.uint8, (None, code_bytes(levels))))

    def arrays(self) -> dict[str, Array]:
        return {"turn": self._turn, "levels": self._levels, "codes": self._codes}

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def width(self) -> int:
        return len(self._turn)

    @property
    def bytes_per_document(self) -> float:
        return float(self._codes.shape[1])

    def parts(self, count: int) -> list[tuple[int, Codes]]:
        """Whole blocks of rows each."""
        ends = np.linspace(0, len(self._packed), count + 1).astype(int) * TOGETHER
        found: list[tuple[int, Codes]] = []
        for first, end in pairwise(ends.tolist()):
            part = copy(self)
            part.__dict__.pop("_last", None)  # made of filters of all rows
            part._codes, part._packed = self._codes[first:end], self._packed[first // TOGETHER : end // TOGETHER]
            found.append((first, part))
        return found

    def scores(self, queries: F32, rows: Rows) -> F32:
        return quantise.scores(self._codes, np.ascontiguousarray(rows), tables(queries @ self._turn.T, self._points))

    def _search(self, queries: F32, k: int, near: Near = ANY, allowed: U64 = ALL) -> Rows:
        found = np.empty((len(queries), k), np.int64)
        scan.all_rows(self._packed, len(self._codes), self._turn, self._points, queries, allowed, *near, found)
        return found

    def _search_among(self, queries: F32, k: int, allowed: Mask, count: int, near: Near) -> Rows:
        if count * FEW >= len(self):
            return self._search(queries, k, near, self._kept(bits_of, allowed))
        return self._best_of(queries, self._kept(np.flatnonzero, allowed), k)
