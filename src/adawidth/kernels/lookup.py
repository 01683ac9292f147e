"""Table lookups as LLVM intrinsics, since numba has none: a byte shuffle looks up 16, 32 or 64 four-bit codes at once.

AVX-512, AVX2, SSSE3 and NEON have one; what they are is asked of numba, which compiles for this CPU or for the one it is told of.
Elsewhere a lookup is 16 loads.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

TOGETHER = 64  # rows whose codes lie side by side
UNROLLED = 2  # bytes of a row at a time …
LARGEST = 63  # … whose four numbers in tables are added in a byte: the largest of them
SHUFFLES = {  # by a CPU's feature: the intrinsic and how many bytes it takes, widest first
    "avx512bw": ("llvm.x86.avx512.pshuf.b.512", 64),
    "avx2": ("llvm.x86.avx2.pshuf.b", 32),
    "ssse3": ("llvm.x86.ssse3.pshuf.b.128", 16),
    "neon": ("llvm.aarch64.neon.tbl1.v16i8", 16),
}
BYTE, SHORT, INT, LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))


def shuffle_of(triple: str, features: str, most: int = TOGETHER) -> tuple[str, int]:
    """The widest intrinsic of a CPU that takes at most so many bytes, and how many it takes; no name and 16 where there is none."""
    has, arm = set(features.split(",")), triple.startswith(("aarch64", "arm64"))
    fitting = (found for name, found in SHUFFLES.items() if f"+{name}" in has and (name == "neon") == arm and found[1] <= most)
    return next(fitting, ("", 16))


def _vector(kind: Any, lanes: int, values: Any) -> Any:
    """A constant: these values, or one in all places."""
    return ir.Constant(ir.VectorType(kind, lanes), values if isinstance(values, list) else [values] * lanes)


def _at(builder: Any, address: Any, place: Any) -> Any:
    return builder.inttoptr(builder.add(address, place), ir.PointerType())


def _looked_up(builder: Any, name: str, lanes: int, address: Any, places: Any) -> Any:
    """The bytes of a table of 16 at an address, at each of these places."""
    kind, sixteen = ir.VectorType(BYTE, lanes), ir.VectorType(BYTE, 16)
    if not name:
        found = ir.Constant(kind, ir.Undefined)
        for lane in range(lanes):
            place = builder.zext(builder.extract_element(places, INT(lane)), LONG)
            found = builder.insert_element(found, builder.load(_at(builder, address, place), typ=BYTE), INT(lane))
        return found
    table = builder.load(builder.inttoptr(address, ir.PointerType()), typ=sixteen, align=1)
    if lanes > 16:
        table = builder.shuffle_vector(table, table, _vector(INT, lanes, list(range(16)) * (lanes // 16)))
    shuffle = builder.module.declare_intrinsic(name, (), ir.FunctionType(kind, [kind, kind]))
    return builder.call(shuffle, [table, places])


def summing(together: int) -> Any:
    """What adds up the lookups of so many rows whose codes lie side by side, 32 or 64."""

    @intrinsic
    def sums(_: Any, codes: Any, tables: Any, count: Any, out: Any, least: Any) -> Any:
        """Adds up what the codes of these rows look up; which of the sums are `least` or more, a bit each, the first row's lowest.

        At the address `codes` is a byte per row for each of `count` bytes of a row, an even number; at `tables` two tables of 16
        bytes for each, of numbers up to 63, for the low and the high four bits. The sums, below 2¹⁶, go to `out`.
        """

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            codes, tables, count, out, least = arguments
            triple, _, features = context.codegen().magic_tuple()
            name, lanes = shuffle_of(triple, features, together)
            half, kind, pairs = lanes // 2, ir.VectorType(BYTE, lanes), ir.VectorType(SHORT, lanes // 2)
            begins = range(0, together, lanes)
            totals = [[cgutils.alloca_once_value(builder, _vector(SHORT, half, 0)) for _ in range(2)] for _ in begins]  # type: ignore[no-untyped-call]

            def looked_up(begin: int, index: Any) -> Any:
                """What one byte of each of so many rows looks up: two numbers, added."""
                place = builder.add(builder.mul(index, LONG(together)), LONG(begin))
                both = builder.load(_at(builder, codes, place), typ=kind, align=1)
                high = builder.bitcast(builder.lshr(builder.bitcast(both, pairs), _vector(SHORT, half, 4)), kind)
                table = builder.add(tables, builder.mul(index, LONG(32)))
                found = [
                    _looked_up(builder, name, lanes, builder.add(table, LONG(16 * place)), builder.and_(four, _vector(BYTE, lanes, 15)))
                    for place, four in enumerate((both, high))
                ]
                return builder.add(*found)

            with cgutils.for_range(builder, builder.udiv(count, LONG(UNROLLED))) as loop:
                for begin, part in zip(begins, totals, strict=True):
                    first = builder.mul(loop.index, LONG(UNROLLED))
                    four = builder.add(looked_up(begin, first), looked_up(begin, builder.add(first, LONG(1))))
                    two = builder.bitcast(four, pairs)  # sums are kept for two rows at a time, and for the second of them alone
                    for total, added in zip(part, (two, builder.lshr(two, _vector(SHORT, half, 8))), strict=True):
                        builder.store(builder.add(builder.load(total), added), total)
            bits: Any = LONG(0)
            bound = builder.insert_element(ir.Constant(ir.VectorType(SHORT, lanes), ir.Undefined), builder.trunc(least, SHORT), INT(0))
            bound = builder.shuffle_vector(bound, bound, _vector(INT, lanes, 0))
            for begin, part in zip(begins, totals, strict=True):
                two, second = (builder.load(total) for total in part)
                first = builder.sub(two, builder.shl(second, _vector(SHORT, half, 8)))
                order = [place for i in range(half) for place in (i, half + i)]
                found = builder.shuffle_vector(first, second, _vector(INT, lanes, order))
                builder.store(found, _at(builder, out, LONG(2 * begin)), align=2)
                reached = builder.bitcast(builder.icmp_unsigned(">=", found, bound), ir.IntType(lanes))
                reached = reached if lanes == 64 else builder.zext(reached, LONG)
                bits = builder.or_(bits, builder.shl(reached, LONG(begin)))
            return bits

        long = types.int64
        return types.uint64(long, long, long, long, long), build

    return sums


sums: Any = summing(TOGETHER)


@intrinsic
def tabled(_: Any, points: Any, query: Any, count: Any, least: Any, steps: Any, out: Any) -> Any:
    """One table: sixteen inner products less the least of them, in so many steps, as bytes.

    At the address `points` are `count` times sixteen float32 coordinates, at `query` as many of the query. What is no number up to
    `LARGEST` becomes 0.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        points, query, count, least, steps, out = arguments
        single = ir.FloatType()

        def every(value: Any) -> Any:
            first = builder.insert_element(ir.Constant(ir.VectorType(single, 16), ir.Undefined), value, INT(0))
            return builder.shuffle_vector(first, first, _vector(INT, 16, 0))

        zeros, half = _vector(single, 16, 0.0), _vector(single, 16, 0.5)
        total = cgutils.alloca_once_value(builder, zeros)  # type: ignore[no-untyped-call]
        with cgutils.for_range(builder, count) as loop:
            axis = builder.load(_at(builder, points, builder.mul(loop.index, LONG(64))), typ=ir.VectorType(single, 16), align=4)
            asked = builder.load(_at(builder, query, builder.mul(loop.index, LONG(4))), typ=single)
            builder.store(builder.fadd(builder.load(total), builder.fmul(every(asked), axis)), total)
        above = builder.fmul(builder.fsub(builder.load(total), every(least)), every(steps))
        enough = builder.fcmp_ordered(">=", above, zeros)
        fits = builder.and_(enough, builder.fcmp_ordered("<", above, _vector(single, 16, LARGEST + 0.5)))
        found = builder.fptosi(builder.fadd(builder.select(fits, above, zeros), half), ir.VectorType(INT, 16))
        builder.store(builder.trunc(found, ir.VectorType(BYTE, 16)), _at(builder, out, LONG(0)), align=1)
        return context.get_dummy_value()

    long, real = types.int64, types.float32
    return types.void(long, long, long, real, real, long), build


@intrinsic
def lowest(_: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set; at least one is."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.uint64), build
