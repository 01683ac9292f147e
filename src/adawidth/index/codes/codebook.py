"""The codebook of the 4-bit scalar quantiser: sixteen levels of a coordinate, four of each of two, or two of each of four.

A block is rotated at random before it is coded. This changes no inner product and spreads the variance evenly over the coordinates,
so that the same number of levels suits all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import ArtifactError
from ...kernels import quantise
from ...rotation import Axes
from ...threads import shared
from ...types import F32, I32, U8, Array
from .base import Block, checked

CODES = 16  # that four bits can tell apart
LEVELS = {CODES: 4, 4: 2, 2: 1}  # of a coordinate, and the bits that tell them apart
SAMPLE = 16_384  # rows that levels are fitted to …
ROUNDS = 20  # … in so many rounds
NEAR = 0.2  # cosine from which on the order of documents matters


def random_rotation(width: int, seed: int) -> F32:
    """An orthogonal matrix. (m, m)"""
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).standard_normal((width, width)))[0], np.float32)


def coded(block: Block, turn: F32, levels: F32, centres: F32 | None = None, list_of: I32 | None = None) -> U8:
    """The codes of rows, or of what is left of them without their list's centroid. Equal rows get equal codes. (N, bytes)"""
    axes, codes = Axes(turn), np.empty((len(block), code_bytes(levels)), np.uint8)

    def code(part: slice) -> None:
        rows = axes.singles(block[part])
        left = rows if centres is None or list_of is None else rows - centres[list_of[part]]
        quantise.encode(left, rows, levels, weight(len(turn)), codes[part])

    shared(code, len(block))
    return codes


def weight(width: int) -> float:
    """How much more the error along a row counts than one across it, in codes of so many coordinates (ScaNN, Guo et al. 2020).

    Only documents near a query matter, and their errors change the score most where they lie along the document itself. The weight is
    that for scores of at least `NEAR` times the product of the lengths.
    """
    return max(1.0, (width - 1) * NEAR**2 / (1 - NEAR**2))


def code_bytes(levels: F32) -> int:
    """Bytes that the codes of a row take."""
    return -(-len(levels) * _bits(levels) // 8)


def points(levels: F32) -> F32:
    """The centroid of each code: a level of each of its coordinates, the first in the low bits. (M, d, 16)"""
    together, every = 4 // _bits(levels), np.arange(CODES)
    places = [every // levels.shape[1] ** place % levels.shape[1] for place in range(together)]
    return np.stack([levels[place::together, at] for place, at in enumerate(places)], axis=1)


def tables(queries: F32, points: F32) -> F32:
    """Each query's inner products with the centroids. (Q, m), (M, d, 16) -> (Q, M, 16)"""
    return np.asarray(np.einsum("qcd,cdp->qcp", queries.reshape(len(queries), len(points), -1), points))


def checked_levels(arrays: Mapping[str, Array], width: int) -> F32:
    """The stored levels: sixteen per coordinate, four if two coordinates share a code, two if four do."""
    levels = checked(arrays, "levels", np.float32, (width, None))
    if levels.shape[1] not in LEVELS or width % (4 // LEVELS[levels.shape[1]]):
        raise ArtifactError(f"codes: {levels.shape[1]} levels for each of {width} coordinates: build the index again")
    return levels


def fitted_levels(rows: F32, bits: int) -> F32:
    """The levels of each coordinate with the least mean squared error, by Lloyd's algorithm on sorted columns. (n, m) -> (m, 2 ** bits)"""
    count = 2**bits
    if not len(rows):
        return np.tile(np.linspace(-1, 1, count, dtype=np.float32), (rows.shape[1], 1))
    levels = np.empty((rows.shape[1], count), np.float64)
    for j, column in enumerate(np.sort(np.ascontiguousarray(rows.T), axis=1).astype(np.float64)):
        sums = np.concatenate([[0.0], np.cumsum(column)])
        level = np.quantile(column, (np.arange(count) + 0.5) / count)
        for _ in range(ROUNDS):
            cuts = np.concatenate([[0], np.searchsorted(column, 0.5 * (level[1:] + level[:-1])), [len(column)]])
            held = np.diff(cuts)
            level = np.where(held > 0, np.diff(sums[cuts]) / np.maximum(held, 1), level)
        levels[j] = level if level[-1] > level[0] else level[0] + np.linspace(-1e-3, 1e-3, count)  # they must ascend
    return np.asarray(levels, np.float32)


def _bits(levels: F32) -> int:
    """Bits that a coordinate takes."""
    return LEVELS[levels.shape[1]]
