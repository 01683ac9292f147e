"""Fast rescoring: the stage loop, fused into one compiled call per query, for the taper, the router and fixed widths.

It reads float16 rows in place, from one memory-mapped array per segment, and returns what the stage loop returns over the same rows.
Everything that could lead to a wrong address is checked here first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import DataError, OptionError
from ..kernels import rescore
from ..policies import Fixed, Policy
from ..policies.router import Router
from ..policies.taper import Taper
from ..rotation import Rotated, Rotation
from ..types import F16, F32, F64, I64, U16, Mask, Rows
from .panels import of_rotation

Lengths = Callable[[int], F32]
Asked = tuple[Any, ...]  # kernels.rows.Asked
Prepared = tuple[Any, tuple[Any, ...], tuple[Any, ...], int]  # kernel, rows, settings, the widest read

Unread = tuple[Mask, int]  # which blocks of rows were never read, and their size
Check = Callable[[Rows], None]  # checks candidates' blocks, or raises

NO_BIAS = np.empty(0, np.float32)
ONE, UNKNOWN = np.float32(1.0), np.float32(-1.0)  # squared lengths of queries
MANY = 64  # policies whose settings are kept
FEW = 8  # up to so many queries are rotated one by one, as far as each reads; more are rotated together


def fusible(policy: Policy) -> bool:
    """Whether a Rescorer can follow this policy; the stage loop follows any."""
    return isinstance(policy, Taper | Fixed) or (isinstance(policy, Router) and policy.head.features == "paper")


class Rescorer:
    """Answers from given candidates. Safe for concurrent use: compiled code runs without the interpreter's lock."""

    def __init__(
        self, segments: Sequence[F16], norms: Lengths, ties: I64, unread: Sequence[Unread] = (), check: Check | None = None
    ) -> None:
        """`segments` have the rows, one after the other; `norms` returns all prefix norms at a width; `ties` are tie-break ranks.

        `unread` says of each segment which blocks of so many rows were never read: `check` is called before candidates in them are.
        """
        for place, rows in enumerate(segments):
            if rows.dtype != np.float16 or rows.ndim != 2 or not rows.flags.c_contiguous or rows.shape[1] != segments[0].shape[1]:
                raise DataError(f"segment {place}: {rows.dtype} of shape {rows.shape}, not whole float16 rows as wide as segment 0's")
        self._segments = tuple(segments)  # kept alive: kernels hold their addresses
        bases = np.array([rows.ctypes.data for rows in segments], np.int64)
        firsts = np.cumsum([0, *map(len, segments)]).astype(np.int64)
        self._count, self._width = int(firsts[-1]), int(segments[0].shape[1])
        if ties.shape != (self._count,):
            raise DataError(f"there are {self._count} rows, but tie ranks of {len(ties)}")
        self._norms = norms
        for place, ((blocks, size), rows) in enumerate(zip(unread, segments, strict=bool(unread))):
            if blocks.dtype != np.bool_ or not blocks.flags.c_contiguous or size < 1 or len(blocks) * size < len(rows):
                raise DataError(f"segment {place}: {len(blocks)} blocks of {size} rows for {len(rows)} rows")
        self._unread, self._check = tuple(unread), check
        marks, sizes = np.array([blocks.ctypes.data for blocks, _ in unread], np.int64), np.array([size for _, size in unread], np.int64)
        self._table = (bases, firsts, self._width, np.ascontiguousarray(ties, np.int64), marks, sizes)
        self._axes: tuple[F32, U16] | None = None  # of the last rotation, and its panels
        self._prepared: dict[Policy, Prepared] = {}  # functools.cache would make a reference cycle, and keep files open

    def answer(self, queries: Rotated, candidates: Rows, policy: Policy, k: int, asked: Asked | None = None) -> rescore.Found:
        """The k best of each query's candidates (Q, C) by the policy; rows, -1 where there are fewer. `asked` is made of the queries."""
        prepared = self._prepared.get(policy)
        if prepared is None:
            prepared = self._kernel(policy)
            self._prepared = {**(self._prepared if len(self._prepared) < MANY else {}), policy: prepared}
        kernel, table, settings, reach = prepared
        count = len(queries.queries)
        if queries.values.shape[1] < max(self._width, reach) or len(candidates) != count or k < 1:
            shapes = f"queries {queries.values.shape}, candidates {candidates.shape}, k = {k}"
            raise DataError(f"{shapes}: there must be as many of both, queries at least {self._width} wide, and k at least 1")
        if count > FEW:
            queries.upto(reach)
        asked = asked or self.asked(queries)
        coordinates, counts = np.empty((2, count), np.int64)
        outputs = (np.empty((count, k), np.int64), np.empty((count, k), np.float32), coordinates, np.empty(count), counts)
        candidates = np.ascontiguousarray(candidates, np.int64)
        if kernel is rescore.taper:
            known = ONE if queries.bias is None and reach == queries.values.shape[1] else UNKNOWN  # a rotation preserves norms
            highest = kernel(table, asked, candidates, (*settings, known), outputs)
        else:
            highest = kernel(table, asked, candidates, *settings, outputs)
        if highest >= self._count:
            raise DataError(f"candidate row {highest} is not one of the {self._count} rows")
        if highest == rescore.UNREAD and self._check is not None:
            self._check(candidates)
            return self.answer(queries, candidates, policy, k, asked)
        return rescore.Found(*outputs)

    def asked(self, queries: Rotated, width: int = 0) -> Asked:
        """Queries as kernels take them, the leading `width` coordinates rotated: by compiled code where they are few."""
        bias = NO_BIAS if queries.bias is None else queries.bias
        asked = (np.ascontiguousarray(queries.queries), self._panels(queries.matrix), bias, queries.values, queries.ready)
        if len(queries.queries) <= FEW:
            rescore.turn(asked, width)
        else:
            queries.upto(width)
        return asked

    def _panels(self, matrix: F32) -> U16:
        """The axes of a rotation, as kernels read them."""
        axes = self._axes  # other threads may search with another one
        if axes is None or axes[0] is not matrix:
            axes = self._axes = (matrix, of_rotation(matrix))
        return axes[1]

    def _kernel(self, policy: Policy) -> Prepared:
        """The compiled function for a policy, the rows it reads, and its settings."""
        if isinstance(policy, Taper | Fixed):
            ladder, bands, k = _steps(policy)
            self._check_widths(ladder)
            lengths = np.ascontiguousarray(self._norms(int(ladder[-1])), np.float32)
            if lengths.shape != (self._count,):
                raise DataError(f"there are {self._count} rows, but lengths of {len(lengths)}")
            return rescore.taper, (*self._table, lengths), (ladder, bands, k), policy.reach
        if isinstance(policy, Router) and fusible(policy):
            head, widths = policy.head, np.array(policy.head.widths, np.int64)
            self._check_widths(np.array([policy.start, *widths[widths > policy.start]], np.int64))
            routes = (policy.start, widths, head.knots, np.ascontiguousarray(head.curves, np.float64), float(policy.price))
            return rescore.route, self._table, (routes, tuple(head.trees.tensors().values())), policy.reach
        raise OptionError(f"the policy {policy.name} can't be compiled: use stages.loop.by_stages")

    def _check_widths(self, widths: I64) -> None:
        if widths[0] < 1 or (np.diff(widths) <= 0).any():
            raise OptionError(f"the policy reads the widths {widths.tolist()}: they must ascend from at least 1")
        if widths[-1] > self._width:
            raise OptionError(f"the policy reads {widths[-1]} coordinates, but only {self._width} are kept: index with a larger --keep")


def get_ready(policy: Policy, width: int) -> None:
    """Loads, or compiles, the code that the first answer by this policy needs."""
    if fusible(policy):
        nothing = Rescorer([np.empty((0, width), np.float16)], lambda m: np.empty(0, np.float32), np.empty(0, np.int64))
        none = Rotated(np.empty((0, width), np.float32), Rotation.identity(width))
        nothing.answer(none, np.empty((0, 1), np.int64), policy, 1)


def _steps(policy: Taper | Fixed) -> tuple[I64, F64, int]:
    """Widths, z σ / (√2 β) for each but the last, and k. A fixed width is two steps that drop no candidate."""
    if isinstance(policy, Fixed):
        widths = (policy.start,) if policy.width == policy.start else (policy.start, policy.width)
        return np.array(widths, np.int64), np.full(len(widths) - 1, np.inf), 1
    bands = policy.calibration.bands
    scaled = np.full(len(bands), np.inf)
    np.multiply(bands, policy.z, out=scaled, where=np.isfinite(bands) & np.isfinite(policy.z))
    return np.array(policy.calibration.ladder, np.int64), scaled, policy.k
