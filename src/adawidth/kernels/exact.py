"""Matrix products that no sum rounds: see `rotation.Axes`. A BLAS that knows AVX2 at best takes twice as long where there is AVX-512."""

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from ..types import F32, F64, U16
from .float16 import narrow

LANES = 8  # axes side by side
ROWS = 12 if binding.get_host_cpu_features().get("avx512f") else 6  # at a time: as many sums as there are registers for
TILES = 48 // ROWS  # that are read again for the next axes
DEPTH = 256  # coordinates at a time: those of eight axes stay in the fastest cache
ROUNDED = 1.5 * 2.0**26  # added and taken away again, it rounds to multiples of 2⁻²⁶


@intrinsic
def add_tile(_: Any, rows: Any, axes: Any, depth: Any, sums: Any, stride: Any) -> Any:
    """Adds to sums (ROWS, LANES) the inner products of rows (depth, ROWS) with axes (depth, LANES); all are addresses of float64.

    From one row of sums to the next there are `stride` bytes.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, axes, depth, sums, stride = arguments
        double, number = ir.DoubleType(), ir.IntType(32)
        kind = ir.VectorType(double, LANES)

        def load(address: Any, kind: Any) -> Any:
            return builder.load(builder.inttoptr(address, ir.PointerType()), typ=kind, align=8)

        places = [builder.add(sums, builder.mul(stride, stride.type(row))) for row in range(ROWS)]
        held = [cgutils.alloca_once_value(builder, load(place, kind)) for place in places]  # type: ignore[no-untyped-call]
        with cgutils.for_range(builder, depth) as loop:
            axis = load(builder.add(axes, builder.mul(loop.index, loop.index.type(8 * LANES))), kind)
            coordinates = builder.add(rows, builder.mul(loop.index, loop.index.type(8 * ROWS)))
            for row, place in enumerate(held):
                x = load(builder.add(coordinates, coordinates.type(8 * row)), double)
                one = builder.insert_element(ir.Constant(kind, ir.Undefined), x, number(0))
                x = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(number, LANES), [0] * LANES))
                term = builder.fmul(x, axis, flags=("contract",))
                builder.store(builder.fadd(builder.load(place), term, flags=("contract",)), place)
        for place, total in zip(places, held, strict=True):
            builder.store(builder.load(total), builder.inttoptr(place, ir.PointerType()), align=8)
        return context.get_dummy_value()

    place = types.int64
    return types.void(place, place, place, place, place), build


@njit(cache=True, nogil=True)
def _multiply(x: F32, panels: F64, packed: F64, sums: F64) -> None:
    """The inner products of at most TILES * ROWS rows with all axes. (n, D), (A, D, LANES), (TILES, DEPTH, ROWS), (n, A * LANES)"""
    count, width, _ = panels.shape
    sums[:] = 0.0
    for first in range(0, width, DEPTH):
        depth = min(DEPTH, width - first)
        for i in range(len(x)):
            row, tile = x[i, first : first + depth], packed[i // ROWS]
            for j in range(depth):
                tile[j, i % ROWS] = (np.float64(row[j]) + ROUNDED) - ROUNDED
        for panel in range(count):
            for tile in range(-(-len(x) // ROWS)):
                add_tile(  # type: ignore[call-arg]
                    packed[tile].ctypes.data, panels[panel, first:].ctypes.data, depth,
                    sums[tile * ROWS :, panel * LANES :].ctypes.data, sums.shape[1] * sums.itemsize,
                )  # fmt: skip


@njit(cache=True, nogil=True)
def to_halves(x: F32, panels: F64, bits: U16) -> None:
    """The inner products of rows with axes, rounded once, to float16. (n, D), (A, D, LANES) -> (n, m)"""
    packed, sums = np.zeros((TILES, DEPTH, ROWS)), np.empty((TILES * ROWS, len(panels) * LANES))
    for first in range(0, len(x), len(sums)):
        some = x[first : first + len(sums)]
        _multiply(some, panels, packed, sums)
        for i in range(len(some)):
            narrow(sums[i].ctypes.data, bits[first + i].ctypes.data, bits.shape[1])  # type: ignore[call-arg]


@njit(cache=True, nogil=True)
def to_singles(x: F32, panels: F64, out: F32) -> None:
    """The same, rounded to float32."""
    packed, sums = np.zeros((TILES, DEPTH, ROWS)), np.empty((TILES * ROWS, len(panels) * LANES))
    for first in range(0, len(x), len(sums)):
        some = x[first : first + len(sums)]
        _multiply(some, panels, packed, sums)
        for i in range(len(some)):
            row, total = out[first + i], sums[i]
            for j in range(len(row)):
                row[j] = total[j]
