"""Rescoring at speed: the stage loop of stages, fused into one compiled call a query, for the taper, the router and fixed widths.

It reads float16 rows where they lie, a memory-mapped array a segment, and gives what the stage loop gives over the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import DataError, OptionError
from ..kernels import rescore
from ..policies import Fixed, Policy
from ..policies.router import Router
from ..policies.taper import Taper
from ..types import F16, F32, F64, I64, Rows

Lengths = Callable[[int], F32]
Arguments = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Answers:
    """Rows and scores of the k best, best first (-1 and -inf where there are fewer), and what each query has read."""

    rows: Rows  # (Q, k)
    scores: F32  # (Q, k)
    widths: F64  # (Q,) coordinates read per candidate
    coordinates: I64  # (Q,) over all candidates


def fusible(policy: Policy) -> bool:
    """Whether a Rescorer can follow this policy; the stage loop follows any."""
    return isinstance(policy, Taper | Fixed) or (isinstance(policy, Router) and policy.head.features == "paper")


class Rescorer:
    """Answers from given candidates. Safe for concurrent use: compiled code runs without the interpreter's lock."""

    def __init__(self, segments: Sequence[F16], norms: Lengths, ties: I64) -> None:
        """`segments` hold the rows one after the other; `norms` gives all prefix lengths at a width, `ties` the tie ranks."""
        for place, rows in enumerate(segments):
            if rows.dtype != np.float16 or rows.ndim != 2 or not rows.flags.c_contiguous or rows.shape[1] != segments[0].shape[1]:
                raise DataError(f"segment {place}: {rows.dtype} of shape {rows.shape}, not whole float16 rows as wide as segment 0's")
        self._segments = tuple(segments)  # kept alive: kernels hold their addresses
        self._bases = np.array([rows.ctypes.data for rows in segments], np.int64)
        self._firsts = np.cumsum([0, *map(len, segments)]).astype(np.int64)
        self._count, self._width = int(self._firsts[-1]), int(segments[0].shape[1])
        self._norms = norms
        self._ties = ties
        self._prepared = lru_cache(maxsize=64)(self._kernel)

    def answer(self, queries: F32, candidates: Rows, policy: Policy, k: int, threads: int = 1) -> Answers:
        """The k best of each query's candidates (rows, -1 where there are fewer) by the policy. (Q, D), (Q, C)"""
        if queries.shape[1] < self._width or len(queries) != len(candidates):
            shapes = f"queries {queries.shape}, candidates {candidates.shape}"
            raise DataError(f"{shapes}: there must be as many of both, and queries at least {self._width} wide")
        queries = np.ascontiguousarray(queries, np.float32)
        candidates = np.ascontiguousarray(candidates, np.int64)
        kernel, before, after = self._prepared(policy)
        shape = (len(queries), k)
        found = Answers(np.empty(shape, np.int64), np.empty(shape, np.float32), np.empty(shape[0]), np.empty(shape[0], np.int64))
        outputs = (found.rows, found.scores, found.coordinates, found.widths)

        def run(part: slice) -> int:
            return kernel(*before, queries[part], candidates[part], *after, *(output[part] for output in outputs))

        if threads == 1 or len(queries) == 1:
            highest = kernel(*before, queries, candidates, *after, *outputs)
        else:
            step = -(-len(queries) // threads)
            with ThreadPoolExecutor(threads) as pool:
                highest = max(pool.map(run, [slice(begin, begin + step) for begin in range(0, len(queries), step)]))
        if highest >= self._count:
            raise DataError(f"candidate row {highest} is not one of the {self._count} rows")
        return found

    def _kernel(self, policy: Policy) -> tuple[Callable[..., int], Arguments, Arguments]:
        """The compiled function for a policy, its arguments before the queries and candidates, and those after."""
        place = (self._bases, self._firsts, self._width)
        if isinstance(policy, Taper | Fixed):
            ladder, bands, k = _steps(policy)
            self._check(int(ladder[-1]))
            return rescore.taper, (*place, self._norms(int(ladder[-1])), self._ties), (ladder, bands, k)
        if isinstance(policy, Router) and fusible(policy):
            self._check(policy.head.widths[-1])
            return rescore.route, (*place, self._ties), _routes(policy)
        raise OptionError(f"the policy {policy.name} is not one that can be fused: use stages.loop.by_stages")

    def _check(self, widest: int) -> None:
        if widest > self._width:
            raise OptionError(f"the policy reads {widest} coordinates, but only {self._width} are kept: index with a larger --keep")


def get_ready(policy: Policy, width: int) -> None:
    """Loads the compiled code that the first answer by this policy needs, or has it compiled where no one ever did."""
    if fusible(policy):
        nothing = Rescorer([np.empty((0, width), np.float16)], lambda m: np.empty(0, np.float32), np.empty(0, np.int64))
        nothing.answer(np.empty((0, width), np.float32), np.empty((0, 1), np.int64), policy, 1)


def _steps(policy: Taper | Fixed) -> tuple[I64, F64, int]:
    """Widths, z σ / (√2 β) for each but the last, and k. A fixed width is two steps with no one left out."""
    if isinstance(policy, Fixed):
        widths = (policy.start,) if policy.width == policy.start else (policy.start, policy.width)
        return np.array(widths, np.int64), np.full(len(widths) - 1, np.inf), 1
    bands = policy.calibration.bands
    scaled = np.full(len(bands), np.inf)
    np.multiply(bands, policy.z, out=scaled, where=np.isfinite(bands) & np.isfinite(policy.z))
    return np.array(policy.calibration.ladder, np.int64), scaled, policy.k


def _routes(policy: Router) -> Arguments:
    """Start width, widths, gain curves, price and trees."""
    head = policy.head
    curves = np.ascontiguousarray(head.curves, np.float64)
    return (policy.start, np.array(head.widths, np.int64), head.knots, curves, float(policy.price), *head.trees.tensors().values())
