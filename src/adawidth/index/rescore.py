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
from ..types import F16, F32, F64, I64, U16, Rows

Lengths = Callable[[int], F32]
Asked = tuple[Any, ...]  # kernels.rows.Asked
Prepared = tuple[Any, tuple[Any, ...], tuple[Any, ...], int]  # kernel, rows, settings, the widest read

NO_BIAS, NO_HALF = np.empty(0, np.float32), np.empty((0, 0), np.uint16)
ONE, UNKNOWN = np.float32(1.0), np.float32(-1.0)  # squared lengths of queries
MANY = 64  # policies whose settings are kept
FEW = 8  # up to so many queries are rotated one by one, as far as each reads; more are rotated together
CACHED = 1 << 20  # bytes of a rotation that a core's own cache holds; a larger one is read as float16, in half of the time


def fusible(policy: Policy) -> bool:
    """Whether a Rescorer can follow this policy; the stage loop follows any."""
    return isinstance(policy, Taper | Fixed) or (isinstance(policy, Router) and policy.head.features == "paper")


class Rescorer:
    """Answers from given candidates. Safe for concurrent use: compiled code runs without the interpreter's lock."""

    def __init__(self, segments: Sequence[F16], norms: Lengths, ties: I64) -> None:
        """`segments` have the rows, one after the other; `norms` returns all prefix norms at a width; `ties` are tie-break ranks."""
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
        self._table = (bases, firsts, self._width, np.ascontiguousarray(ties, np.int64))
        self._half: tuple[F32, U16] | None = None  # the last rotation that was read as float16, and its bits
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
        found = rescore.Found(np.empty((count, k), np.int64), np.empty((count, k), np.float32), np.empty(count, np.int64), np.empty(count))
        candidates = np.ascontiguousarray(candidates, np.int64)
        outputs = (found.rows, found.scores, found.coordinates, found.widths)
        if kernel is rescore.taper:
            known = ONE if queries.bias is None and reach == queries.values.shape[1] else UNKNOWN  # a rotation preserves norms
            highest = kernel(table, asked, candidates, (*settings, known), outputs)
        else:
            highest = kernel(table, asked, candidates, *settings, outputs)
        if highest >= self._count:
            raise DataError(f"candidate row {highest} is not one of the {self._count} rows")
        return found

    def asked(self, queries: Rotated, width: int = 0) -> Asked:
        """Queries as kernels take them, the leading `width` coordinates rotated: by compiled code where they are few."""
        few = len(queries.queries) <= FEW
        bias = NO_BIAS if queries.bias is None else queries.bias
        half = self._halved(queries.matrix) if few and queries.matrix.nbytes > CACHED else NO_HALF
        asked = (np.ascontiguousarray(queries.queries), queries.matrix, half, bias, queries.values, queries.ready)
        if few:
            rescore.turn(asked, width)
        else:
            queries.upto(width)
        return asked

    def _halved(self, matrix: F32) -> U16:
        """The bits of a rotation in float16."""
        known = self._half
        if known is None or known[0] is not matrix:
            known = self._half = (matrix, np.ascontiguousarray(matrix.astype(np.float16).view(np.uint16)))
        return known[1]

    def _kernel(self, policy: Policy) -> Prepared:
        """The compiled function for a policy, the rows it reads, and its settings."""
        if isinstance(policy, Taper | Fixed):
            ladder, bands, k = _steps(policy)
            self._check(ladder)
            lengths = np.ascontiguousarray(self._norms(int(ladder[-1])), np.float32)
            if lengths.shape != (self._count,):
                raise DataError(f"there are {self._count} rows, but lengths of {len(lengths)}")
            return rescore.taper, (*self._table, lengths), (ladder, bands, k), policy.reach
        if isinstance(policy, Router) and fusible(policy):
            head, widths = policy.head, np.array(policy.head.widths, np.int64)
            self._check(np.array([policy.start, *widths[widths > policy.start]], np.int64))
            routes = (policy.start, widths, head.knots, np.ascontiguousarray(head.curves, np.float64), float(policy.price))
            return rescore.route, self._table, (routes, tuple(head.trees.tensors().values())), policy.reach
        raise OptionError(f"the policy {policy.name} can't be compiled: use stages.loop.by_stages")

    def _check(self, widths: I64) -> None:
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
