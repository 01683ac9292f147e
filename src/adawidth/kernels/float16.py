"""float16 dot products and prefetching as LLVM intrinsics, since numba has neither."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

SUMS = ("reassoc", "contract", "nsz")  # what a compiler may do to add up in vectors


@intrinsic
def products(_: Any, row: Any, query: Any, count: Any) -> Any:
    """Of `count` float16 numbers at an address: their inner product with as many float32 numbers at another, and their squared length.

    By sixteens, then eight and four at a time, so that a step of the ladder by a few coordinates is vector code too.
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
        sums = [place_of(ir.Constant(wide, [0.0] * 16)) for _ in range(2)]
        with cgutils.for_range(builder, builder.lshr(count, count.type(4))) as loop:
            for place, added in zip(sums, terms(16, builder.mul(loop.index, count.type(16))), strict=True):
                builder.store(builder.fadd(builder.load(place), added, flags=SUMS), place)
        for lanes in (8, 4):
            sums = [place_of(halved(2 * lanes, builder.load(place))) for place in sums]
            with builder.if_then(builder.icmp_unsigned("!=", builder.and_(count, count.type(lanes)), count.type(0))):
                behind = builder.and_(count, count.type(-2 * lanes))
                for place, added in zip(sums, terms(lanes, behind), strict=True):
                    builder.store(builder.fadd(builder.load(place), added, flags=SUMS), place)
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
