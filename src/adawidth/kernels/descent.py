"""A step of coordinate descent for sixteen rows at a time, as LLVM vectors: numba does not see that its arrays don't overlap."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16  # rows side by side


@intrinsic
def descend(_: Any, row: Any, along: Any, chosen: Any, errors: Any, parallel: Any, levels: Any, count: Any, extra: Any) -> Any:
    """Moves the code of one coordinate one level on in those rows whose loss that makes smaller; returns whether there are any.

    All but the last two are addresses: of a coordinate of each row and of its direction (float32), its code (int32) and error
    (float64), which may change, the error of each row along its direction (float64), which may too, and the `count` levels (float32).
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row, along, chosen, errors, parallel, levels, count, extra = arguments
        number = ir.IntType(32)
        single, double, whole = (ir.VectorType(kind, LANES) for kind in (ir.FloatType(), ir.DoubleType(), number))

        def load(address: Any, kind: Any) -> Any:
            return builder.load(builder.inttoptr(address, ir.PointerType()), typ=kind, align=4)

        def all_of(value: Any, kind: Any) -> Any:
            """A vector of one value."""
            first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, number(0))
            return builder.shuffle_vector(first, first, ir.Constant(whole, [0] * LANES))

        def loss(error: Any, along: Any) -> tuple[Any, Any]:
            return builder.fmul(error, error), builder.fmul(along, along)

        zero, x = all_of(ir.DoubleType()(0.0), double), load(row, single)
        along, error, total = builder.fpext(load(along, single), double), load(errors, double), load(parallel, double)
        code = load(chosen, whole)
        up = builder.fcmp_ordered(">", builder.fmul(along, total), zero)  # the level that makes the parallel error smaller
        other = builder.add(code, builder.select(up, all_of(number(1), whole), all_of(number(-1), whole)))
        level = cgutils.alloca_once_value(builder, all_of(ir.FloatType()(0.0), single))  # type: ignore[no-untyped-call]
        with cgutils.for_range(builder, count) as loop:
            value = load(builder.add(levels, builder.mul(loop.index, loop.index.type(4))), ir.FloatType())
            here = builder.icmp_signed("==", other, all_of(builder.trunc(loop.index, number), whole))
            builder.store(builder.select(here, all_of(value, single), builder.load(level)), level)
        moved = builder.fpext(builder.fsub(x, builder.load(level)), double)
        after = builder.fadd(total, builder.fmul(builder.fsub(moved, error), along))
        (own, whole_row), (own_before, whole_before) = loss(moved, after), loss(error, total)
        weighted = builder.fmul(all_of(extra, double), builder.fsub(whole_row, whole_before))
        change = builder.fadd(builder.fsub(own, own_before), weighted)
        exists = builder.icmp_unsigned("<", other, all_of(builder.trunc(count, number), whole))
        better = builder.and_(exists, builder.fcmp_ordered("<", change, zero))
        for address, new, old in ((chosen, other, code), (errors, moved, error), (parallel, after, total)):
            builder.store(builder.select(better, new, old), builder.inttoptr(address, ir.PointerType()), align=4)
        return builder.icmp_unsigned("!=", builder.bitcast(better, ir.IntType(LANES)), ir.IntType(LANES)(0))

    place = types.int64
    return types.boolean(place, place, place, place, place, place, place, types.float64), build
