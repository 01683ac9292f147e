"""float16 dot products and prefetching as LLVM intrinsics, since numba has neither."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

SUMS = ("reassoc", "contract", "nsz")  # what a compiler may do to add up in vectors
ABREAST = 32  # axes whose coordinates lie side by side
UNROLLED = 2  # coordinates at a time, with sums of their own


@intrinsic
def products(_: Any, row: Any, query: Any, count: Any) -> Any:
    """Of `count` float16 numbers at an address: their inner product with as many float32 numbers at another, and their squared length.

    By 32 at a time, in sums that need not wait for each other, then by 16, eight and four: a step of the ladder by a few coordinates is
    vector code too.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row, query, count = arguments
        single = ir.FloatType()

        def place_of(value: Any) -> Any:
            return cgutils.alloca_once_value(builder, value)  # type: ignore[no-untyped-call]

        def pointer(address: Any, kind: Any, place: Any) -> Any:
            return builder.inttoptr(builder.add(address, builder.mul(place, place.type(kind))), ir.PointerType())

        def terms(lanes: int, place: Any) -> tuple[Any, Any]:
            """Products and squares of so many numbers from a place on."""
            kind = ir.VectorType(single, lanes)
            x = builder.load(pointer(row, 2, place), typ=ir.VectorType(ir.HalfType(), lanes), align=2)
            x = builder.fpext(x, kind)
            return builder.fmul(x, builder.load(pointer(query, 4, place), typ=kind, align=4), flags=SUMS), builder.fmul(x, x, flags=SUMS)

        def part(numbers: Any, others: Any, places: list[int]) -> Any:
            """The numbers at these places, counted on through the others."""
            return builder.shuffle_vector(numbers, others, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))

        def halved(lanes: int, numbers: Any) -> Any:
            """The first half plus the second."""
            half = lanes // 2
            first, second = (part(numbers, numbers, list(range(begin, begin + half))) for begin in (0, half))
            return builder.fadd(first, second, flags=SUMS)

        wide = ir.VectorType(single, 16)
        sums, others = ([place_of(ir.Constant(wide, [0.0] * 16)) for _ in range(2)] for _ in range(2))

        def add(places: list[Any], lanes: int, behind: Any) -> None:
            for place, added in zip(places, terms(lanes, behind), strict=True):
                builder.store(builder.fadd(builder.load(place), added, flags=SUMS), place)

        with cgutils.for_range(builder, builder.lshr(count, count.type(5))) as loop:
            first = builder.mul(loop.index, count.type(32))
            add(sums, 16, first)
            add(others, 16, builder.add(first, count.type(16)))
        for place, other in zip(sums, others, strict=True):
            builder.store(builder.fadd(builder.load(place), builder.load(other), flags=SUMS), place)
        for lanes in (16, 8, 4):
            if lanes < 16:
                sums = [place_of(halved(2 * lanes, builder.load(place))) for place in sums]
            with builder.if_then(builder.icmp_unsigned("!=", builder.and_(count, count.type(lanes)), count.type(0))):
                add(sums, lanes, builder.and_(count, count.type(-2 * lanes)))
        products, squares = (builder.load(place) for place in sums)
        two = builder.fadd(part(products, squares, [0, 1, 4, 5]), part(products, squares, [2, 3, 6, 7]), flags=SUMS)  # both go on in one
        both = builder.fadd(part(two, two, [0, 2]), part(two, two, [1, 3]), flags=SUMS)
        found = [place_of(builder.extract_element(both, ir.IntType(32)(i))) for i in range(2)]
        behind = builder.and_(count, count.type(-4))
        with cgutils.for_range(builder, builder.and_(count, count.type(3))) as loop:
            for place, added in zip(found, terms(1, builder.add(behind, loop.index)), strict=True):
                value = builder.extract_element(added, ir.IntType(32)(0))
                builder.store(builder.fadd(builder.load(place), value, flags=SUMS), place)
        return context.make_tuple(builder, signature.return_type, [builder.load(place) for place in found])

    pair = types.UniTuple(types.float32, 2)  # type: ignore[no-untyped-call]
    return pair(types.int64, types.int64, types.int64), build


def multiplying(element: Any, size: int) -> Any:
    """What multiplies a query by axes of numbers of this LLVM type, of so many bytes."""

    @intrinsic
    def across(_: Any, axes: Any, query: Any, count: Any, out: Any, wanted: Any) -> Any:
        """The inner products of `count` float32 numbers, at the address `query`, with the first `wanted` of `ABREAST` axes.

        They go to the address `out`. At the address `axes` are the axes' first coordinates, side by side, then their second ones, and so
        on: no sum is taken across a vector, and none waits for another.
        """

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            axes, query, count, out, wanted = arguments
            single, lanes = ir.FloatType(), 16
            kind, parts = ir.VectorType(single, lanes), ABREAST // lanes

            def at(address: Any, offset: Any) -> Any:
                return builder.inttoptr(builder.add(address, offset), ir.PointerType())

            def add(sums: list[Any], index: Any) -> None:
                """What one coordinate adds to the products with all axes."""
                number = builder.load(at(query, builder.mul(index, index.type(4))), typ=single, align=4)
                number = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
                number = builder.shuffle_vector(number, number, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))
                for part, total in enumerate(sums):
                    place = builder.add(builder.mul(index, index.type(size * ABREAST)), index.type(size * lanes * part))
                    column = builder.load(at(axes, place), typ=ir.VectorType(element, lanes), align=size)
                    column = column if element == single else builder.fpext(column, kind)
                    added = builder.fmul(column, number, flags=SUMS)
                    builder.store(builder.fadd(builder.load(total), added, flags=SUMS), total)

            zeros = ir.Constant(kind, [0.0] * lanes)
            sums = [[cgutils.alloca_once_value(builder, zeros) for _ in range(parts)] for _ in range(UNROLLED)]  # type: ignore[no-untyped-call]
            whole = builder.udiv(count, count.type(UNROLLED))
            with cgutils.for_range(builder, whole) as loop:
                for turn, totals in enumerate(sums):
                    add(totals, builder.add(builder.mul(loop.index, count.type(UNROLLED)), count.type(turn)))
            with cgutils.for_range_slice(builder, builder.mul(whole, count.type(UNROLLED)), count, count.type(1), count.type) as (index, _):
                add(sums[0], index)
            room = cgutils.alloca_once(builder, ir.ArrayType(kind, parts))  # type: ignore[no-untyped-call]
            for part in range(parts):
                total = builder.load(sums[0][part])
                for others in sums[1:]:
                    total = builder.fadd(total, builder.load(others[part]), flags=SUMS)
                builder.store(total, builder.gep(room, [ir.IntType(32)(0), ir.IntType(32)(part)]))
            cgutils.raw_memcpy(builder, at(out, out.type(0)), builder.bitcast(room, ir.PointerType()), wanted, 4)  # type: ignore[no-untyped-call]
            return context.get_dummy_value()

        long = types.int64
        return types.void(long, long, long, long, long), build

    return across


across_halves: Any = multiplying(ir.HalfType(), 2)
across_singles: Any = multiplying(ir.FloatType(), 4)


@intrinsic
def fetch(_: Any, address: Any) -> Any:
    """Prefetches the cache line at this address."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        builder.call(fetch, [builder.inttoptr(arguments[0], pointer), number(0), number(3), number(1)])  # to read, keep it, data
        return context.get_dummy_value()

    return types.void(types.int64), build


@intrinsic
def is_set(_: Any, address: Any) -> Any:
    """Whether the byte at this address is not zero."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = builder.load(builder.inttoptr(arguments[0], ir.PointerType()), typ=ir.IntType(8))
        return builder.icmp_unsigned("!=", byte, byte.type(0))

    return types.boolean(types.int64), build


LANES = 16  # numbers converted at a time


@intrinsic
def widen(_: Any, halves: Any, singles: Any, count: Any) -> Any:
    """Writes `count` float16 numbers at an address as float32 to another."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def convert(lanes: int, halves: Any, singles: Any) -> None:
            half, single = (ir.VectorType(kind, lanes) for kind in (ir.HalfType(), ir.FloatType()))
            numbers = builder.load(builder.inttoptr(halves, ir.PointerType()), typ=half, align=2)
            builder.store(builder.fpext(numbers, single), builder.inttoptr(singles, ir.PointerType()), align=4)

        _by_lanes(builder, convert, arguments, (2, 4))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), build


@intrinsic
def narrow(_: Any, doubles: Any, halves: Any, count: Any) -> Any:
    """Writes `count` float64 numbers at an address to another, rounded to float16 once, to nearest even, as NumPy rounds.

    They must lie between -60,000 and 60,000. Whole numbers do it, since not every CPU rounds to float16.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def convert(lanes: int, doubles: Any, halves: Any) -> None:
            double, whole = (ir.VectorType(kind, lanes) for kind in (ir.DoubleType(), ir.IntType(64)))

            def every(number: float, kind: Any = whole) -> Any:
                return ir.Constant(kind, [number] * lanes)

            bits = builder.load(builder.inttoptr(doubles, ir.PointerType()), typ=whole, align=8)
            size = builder.and_(bits, every(2**63 - 1))
            # The last 42 bits go: half of what they can hold is added, less one bit where what stays is even.
            even = builder.and_(builder.lshr(size, every(42)), every(1))
            near = builder.lshr(builder.add(builder.add(size, every(((15 - 1023) << 52) + 2**41 - 1)), even), every(42))
            # Below 2⁻¹⁴ float16 has multiples of 2⁻²⁴, and so has float64 from 2²⁸ on.
            moved = builder.fadd(builder.bitcast(size, double), every(2.0**28, double))
            tiny = builder.sub(builder.bitcast(moved, whole), every((1023 + 28) << 52))
            number = builder.select(builder.icmp_unsigned("<", size, every((1023 - 14) << 52)), tiny, near)
            sign = builder.and_(builder.lshr(bits, every(48)), every(2**15))
            found = builder.trunc(builder.or_(number, sign), ir.VectorType(ir.IntType(16), lanes))
            builder.store(found, builder.inttoptr(halves, ir.PointerType()), align=2)

        _by_lanes(builder, convert, arguments, (8, 2))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), build


def _by_lanes(builder: Any, convert: Any, arguments: Any, sizes: tuple[int, int]) -> None:
    """Calls `convert` with the addresses of sixteen numbers at a time, then of one: from, to and count, and both numbers' bytes."""
    *addresses, count = arguments
    behind = builder.and_(count, count.type(-LANES))
    for lanes, begin, end in ((LANES, count.type(0), behind), (1, behind, count)):
        with cgutils.for_range_slice(builder, begin, end, count.type(lanes), count.type) as (place, _):
            convert(lanes, *(builder.add(one, builder.mul(place, place.type(size))) for one, size in zip(addresses, sizes, strict=True)))
