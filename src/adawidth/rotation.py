"""Rotation, the orthogonal map that queries and documents share, and QueryMap, which only queries pass through. NumPy only.

A row x becomes x Rᵀ. Rows of `matrix` are the new axes, most important first, so the leading m rows are all that a
width of m needs. Closed forms stand here; learned rotations and query maps come from training/.
"""

from __future__ import annotations

import hashlib
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .data import Vectors
from .errors import ArtifactError, OptionError
from .threads import shared
from .types import F16, F32, F64, Floats, Rows

BLOCK = 65_536  # rows multiplied at a time
TOLERANCE = 1e-4  # how far R Rᵀ may be from the identity in float32


@dataclass(frozen=True, eq=False)
class Rotation:
    """An orthogonal D × D matrix and the name of what made it.

    >>> rotation = Rotation.random(64, seed=1)
    >>> rotation.width, rotation.kind
    (64, 'random')
    """

    matrix: F32  # (D, D), rows are axes
    kind: str

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.matrix.shape[1]:
            raise ArtifactError(f"a rotation is a square matrix, this one is {' × '.join(map(str, self.matrix.shape))}")
        if not len(self.matrix) or self.matrix.dtype != np.float32 or not np.isfinite(self.matrix).all():
            raise ArtifactError(f"a rotation holds finite float32 numbers, this one is {self.matrix.dtype}, {self.width} wide")
        error = np.abs(self.matrix @ self.matrix.T - np.eye(self.width, dtype=np.float32)).max()
        if not error <= TOLERANCE:
            raise ArtifactError(f"this matrix is no rotation: R Rᵀ is off the identity by {error:.2g}, at most {TOLERANCE:g} is allowed")

    def __repr__(self) -> str:
        return f"Rotation({self.kind}, {self.width} coordinates, {self.fingerprint})"

    @property
    def width(self) -> int:
        """The encoder width D."""
        return int(self.matrix.shape[0])

    @cached_property
    def fingerprint(self) -> str:
        """Names this rotation: two models with the same one can share an index."""
        return hashlib.sha256(np.ascontiguousarray(self.matrix, np.float32).tobytes()).hexdigest()[:16]

    def check_same(self, fingerprint: str, place: str = "this index") -> None:
        """Refuses documents that are under another rotation.

        >>> rotation.check_same(rotation.fingerprint)
        """
        if fingerprint != self.fingerprint:
            raise ArtifactError(
                f"{place}: its documents are under the rotation {fingerprint}, the model's is {self.fingerprint}: "
                "use the model the index was made with, or one that `refit` made from it"
            )

    def apply(self, x: Floats, width: int | None = None, out: F32 | None = None) -> F32:
        """Rows of x rotated, float32: all D coordinates or the leading `width`. (n, D) -> (n, m)

        >>> rotation.apply(np.eye(64, dtype=np.float32), width=16).shape
        (64, 16)
        """
        return _multiplied(self.matrix, x, width, out)

    @cached_property
    def _axes(self) -> Axes:
        return Axes(self.matrix)

    def stored(self, x: F32 | Vectors, width: int) -> F16:
        """Rows of unit length as an index stores them: rotated, cut, the same bits for equal rows. (n, D) -> (n, m)

        >>> rotation.stored(np.eye(64, dtype=np.float32), 16).dtype
        dtype('float16')
        """
        found = np.empty((len(x), width), np.float16)
        read = x.read if isinstance(x, Vectors) else x.__getitem__
        shared(lambda part: self._axes.halves(read(part), found[part]), len(x))
        return found

    def invert(self, y: Floats) -> F32:
        """The inverse rotation of full-width rows. (n, D) -> (n, D)

        >>> x = np.eye(64, dtype=np.float32)
        >>> bool(np.allclose(rotation.invert(rotation.apply(x)), x, atol=1e-5))
        True
        """
        return np.asarray(y, np.float32) @ self.matrix

    @classmethod
    def identity(cls, width: int) -> Rotation:
        """No rotation: prefixes are the encoder's own leading coordinates.

        >>> Rotation.identity(2).matrix.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return cls(np.eye(width, dtype=np.float32), "identity")

    @classmethod
    def random(cls, width: int, seed: int = 0) -> Rotation:
        """Uniform over all rotations: QR of a Gaussian matrix with fixed signs.

        >>> Rotation.random(64, seed=1).fingerprint == rotation.fingerprint
        True
        """
        q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((width, width)))
        return cls((q * np.sign(np.diag(r))).T.astype(np.float32), "random")

    @classmethod
    def principal(cls, symmetric: Floats, kind: str) -> Rotation:
        """Eigenvectors of a symmetric matrix, largest eigenvalue first. The leading m span its best subspace, for every m (Ky Fan).

        >>> Rotation.principal(np.diag([1.0, 3.0]), "mine").matrix.tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        vectors = np.linalg.eigh(np.asarray(symmetric, np.float64))[1][:, ::-1]  # columns
        signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])  # one sign convention
        return cls(np.ascontiguousarray((vectors * signs).T, np.float32), kind)

    @classmethod
    def pca(cls, documents: Vectors, sample: int = 100_000, seed: int = 0) -> Rotation:
        """Uncentred principal axes of at most `sample` documents.

        >>> Rotation.pca(Vectors.of(np.eye(8, dtype=np.float32))).width
        8
        """
        return cls.principal(second_moment(documents, sample, seed), "pca")


@dataclass(frozen=True, eq=False)
class QueryMap:
    """What was learned from labels on the query side: q̂ = (I + A) R q + b. Documents are only rotated.

    It is folded with its rotation into one matrix W = (I + A) R, so mapping a query costs no more than rotating it. q̂ is not
    of unit length, which changes no cosine.
    """

    matrix: F32  # (D, D), W
    bias: F32  # (D,), b
    fingerprint: str  # of the rotation that the documents are under

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.shape != (len(self.bias), len(self.bias)):
            shapes = " and ".join("×".join(map(str, x.shape)) for x in (self.matrix, self.bias))
            raise ArtifactError(f"a query map is a square matrix and a bias as long as its rows, these are {shapes}")
        if not (np.isfinite(self.matrix).all() and np.isfinite(self.bias).all()):
            raise ArtifactError("a query map holds finite numbers, this one has NaN or infinite ones")

    @classmethod
    def fold(cls, rotation: Rotation, change: Floats, bias: Floats) -> QueryMap:
        """The map that adds `change` (A, D × D) and `bias` (b) to what the rotation gives; zeros change nothing."""
        moved = np.asarray(change, np.float64) @ rotation.matrix.astype(np.float64)
        return cls((rotation.matrix + moved).astype(np.float32), np.asarray(bias, np.float32), rotation.fingerprint)

    @classmethod
    def identity(cls, rotation: Rotation) -> QueryMap:
        """The rotation alone."""
        return cls(rotation.matrix, np.zeros(rotation.width, np.float32), rotation.fingerprint)

    def __repr__(self) -> str:
        return f"QueryMap({self.width} coordinates over rotation {self.fingerprint})"

    @property
    def width(self) -> int:
        """The encoder width D."""
        return len(self.bias)

    def apply(self, x: Floats, width: int | None = None) -> F32:
        """Queries as the encoder gives them, rotated and mapped: all D coordinates or the leading `width`. (n, D) -> (n, m)"""
        mapped = _multiplied(self.matrix, x, width)
        mapped += self.bias[: mapped.shape[1]]
        return mapped


class Rotated:
    """Queries that are rotated, or mapped, only as far as they are read: leading coordinates first."""

    def __init__(self, queries: F32, through: Rotation | QueryMap) -> None:
        """`queries` (n, D) are of unit length, as the encoder gives them."""
        self.queries = queries
        self.matrix = through.matrix
        self.bias = getattr(through, "bias", None)
        self.values: F32 = np.empty(queries.shape, np.float32)  # (n, D), rotated up to `ready`
        self.ready = np.zeros(len(queries), np.int64)  # (n,)

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, part: slice) -> Rotated:
        """Some of the queries, with what is rotated of them."""
        same = copy(self)
        same.queries, same.values, same.ready = self.queries[part], self.values[part], self.ready[part]
        return same

    def upto(self, width: int) -> F32:
        """All queries, the leading `width` coordinates of which are rotated. (n, D)"""
        begin = int(self.ready.min(initial=width))
        if begin < width:
            block = np.matmul(self.queries, self.matrix[begin:width].T)
            self.values[:, begin:width] = block if self.bias is None else block + self.bias[begin:width]
            np.maximum(self.ready, width, out=self.ready)
        return self.values

    def all(self) -> F32:
        """All queries, rotated at full width. (n, D)"""
        return self.upto(len(self.matrix))


def _multiplied(matrix: F32, x: Floats, width: int | None, out: F32 | None = None) -> F32:
    """Rows of x times the leading `width` rows of a square matrix, block by block. (n, D) -> (n, m)"""
    whole = len(matrix)
    width = whole if width is None else width
    if not 1 <= width <= whole:
        raise OptionError(f"width {width} is not between 1 and the encoder width {whole}")
    if x.ndim != 2:
        raise OptionError(f"expected one vector per row (2 dimensions), found {x.ndim}: give one vector as x[None]")
    if x.shape[-1] != whole:
        raise OptionError(f"vectors are {x.shape[-1]} wide, the rotation {whole}: use the encoder the model was fitted for")
    out = np.empty((len(x), width), np.float32) if out is None else out
    axes = matrix[:width].T
    for start in range(0, len(x), BLOCK):
        part = slice(start, start + BLOCK)
        np.matmul(np.asarray(x[part], np.float32), axes, out=out[part])
    return out


class Axes:
    """Axes by which rows of unit length are multiplied to the same bits, in whatever batch and on whatever machine.

    Both are rounded to multiples of 2⁻²⁶ first. Their products are multiples of 2⁻⁵², and no sum of them is longer than the two vectors,
    so float64 holds every one of them. No sum rounds, in whatever order it is added up.
    """

    def __init__(self, matrix: F32) -> None:
        from .kernels import exact  # which loads numba

        count = -(-len(matrix) // exact.LANES)
        wide = np.zeros((count * exact.LANES, matrix.shape[1]))
        wide[: len(matrix)] = matrix
        wide += exact.ROUNDED
        wide -= exact.ROUNDED
        self._panels: F64 = np.ascontiguousarray(wide.reshape(count, exact.LANES, -1).swapaxes(1, 2))

    def singles(self, x: F32) -> F32:
        """The products with as many axes as there are coordinates, rounded once. (n, D) -> (n, D)"""
        from .kernels import exact

        out = np.empty(x.shape, np.float32)
        exact.to_singles(np.ascontiguousarray(x), self._panels, out)
        return out

    def halves(self, x: F32, out: F16) -> None:
        """The products with the first axes, rounded once, in place of `out`. (n, D), (n, m)"""
        from .kernels import exact

        panels = self._panels[: -(-out.shape[1] // exact.LANES)]
        exact.to_halves(np.ascontiguousarray(x), panels, out.view(np.uint16))


def second_moment(vectors: Vectors, sample: int = 100_000, seed: int = 0) -> F64:
    """Mean of x xᵀ over at most `sample` rows, accumulated in float64 block by block. (D, D)"""
    rows = sampled_rows(len(vectors), sample, seed)
    total = np.zeros((vectors.width, vectors.width))
    for start in range(0, len(rows), 4096):
        block = vectors.read(rows[start : start + 4096]).astype(np.float64)
        total += block.T @ block
    return total / len(rows)


def sampled_rows(count: int, sample: int, seed: int) -> Rows:
    """At most `sample` of `count` rows, drawn at random, ascending."""
    if count <= sample:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, sample, replace=False))
