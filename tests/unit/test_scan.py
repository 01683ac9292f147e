"""The scan of four-bit codes against sums that NumPy adds up, on every kind of CPU that numba can be told of."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from adawidth.index.codes.ivf import laid_out
from adawidth.index.codes.packed import ALL, bits_of, packed
from adawidth.index.panels import panels
from adawidth.kernels import scan, select
from adawidth.kernels.lists import some_lists
from adawidth.kernels.lookup import shuffle_of

EVERY = {"avx512": "+ssse3,+avx2,+avx512f,+avx512bw", "avx2": "+ssse3,+avx2", "ssse3": "+ssse3", "none": "-ssse3"}


# what only compiled code calls
@njit
def best(packed, counts, starts, shifts, allowed, tables, sure, reach, found):  # type: ignore[no-untyped-def]
    return scan.best(packed, counts, starts, shifts, allowed, tables, sure, reach, found)


@njit
def filled(query, points, leasts, tables):  # type: ignore[no-untyped-def]
    return scan.fill(query, points, leasts, tables)


@njit
def fronted(numbers, k):  # type: ignore[no-untyped-def]
    return select.front(numbers, len(numbers), k)


def summed(codes: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """What the codes of each row look up. (N, bytes), (bytes, 2, 16) -> (N,)"""
    every = np.arange(codes.shape[1])
    return (tables[every, 0, codes & 15].astype(int) + tables[every, 1, codes >> 4]).sum(axis=1)


def drawn(seed: int, rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes, and tables of numbers up to 63."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (rows, width), np.uint8), rng.integers(0, 64, (width, 2, 16), np.uint8)


def found(codes: np.ndarray, tables: np.ndarray, k: int, allowed: np.ndarray = ALL, sure: int = 1, reach: int = scan.MOST) -> np.ndarray:
    out, one = np.empty(k, np.int64), np.zeros(1, np.int64)
    best(packed(codes), np.array([len(codes)]), one, one, allowed, tables, sure, reach, out)
    return out


def best_of(scores: np.ndarray, k: int) -> list[int]:
    """The best rows, of equal ones the first."""
    return sorted(np.lexsort((np.arange(len(scores)), -scores))[:k].tolist())


@given(st.data(), st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), min_size=1, unique=True))
@settings(max_examples=100, deadline=None)
def test_the_largest_numbers_are_selected(data: st.DataObject, numbers: list[int]) -> None:
    """Also where the difference of two of them overflows."""
    k, held = data.draw(st.integers(1, len(numbers))), np.array(numbers)
    least, largest = fronted(held, k), sorted(numbers)[-k:]
    assert sorted(held[:k].tolist()) == largest
    assert least == largest[0]


@given(st.integers(0, 9), st.integers(1, 300), st.sampled_from([2, 8, 32]), st.integers(1, 320))
@settings(max_examples=30, deadline=None)
def test_the_best_rows_are_found(seed: int, rows: int, width: int, k: int) -> None:
    codes, tables = drawn(seed, rows, width)
    rows_found = found(codes, tables, k)
    held = min(k, rows)
    assert sorted(rows_found[:held].tolist()) == best_of(summed(codes, tables), held)
    assert (rows_found[held:] == -1).all()


@given(st.integers(0, 99), st.integers(1, 300), st.integers(1, 320), st.integers(1, 400), st.integers(0, 300))
@settings(max_examples=50, deadline=None)
def test_rows_too_far_below_the_best_are_left_out(seed: int, rows: int, k: int, sure: int, reach: int) -> None:
    """Not those that score as much as the bound itself."""
    codes, tables = drawn(seed, rows, 8)
    scores = summed(codes, tables)
    best = np.array(best_of(scores, min(k, rows)))
    held = best if sure >= len(best) else best[scores[best] >= np.sort(scores[best])[-sure] - reach]
    rows_found = found(codes, tables, k, ALL, sure, reach)
    assert sorted(rows_found[: len(held)].tolist()) == sorted(held.tolist())
    assert (rows_found[len(held) :] == -1).all()


@pytest.mark.parametrize("k", [1, 10, 100, 3_000])
@pytest.mark.parametrize("order", ["any", "rising", "falling", "equal"])
def test_whatever_the_sample_says(k: int, order: str) -> None:
    """Many rows, so that a sample of them sets a bound: also if it tells nothing of the others."""
    codes, tables = drawn(1, 30_000, 16)
    if order == "equal":
        codes[:] = codes[0]
    elif order != "any":
        codes = codes[np.argsort(summed(codes, tables) * (1 if order == "rising" else -1), kind="stable")]
    assert sorted(found(codes, tables, k).tolist()) == best_of(summed(codes, tables), k)


@pytest.mark.parametrize("part", [0.9, 0.2])
def test_a_filter_leaves_only_its_rows(part: float) -> None:
    codes, tables = drawn(2, 30_001, 16)
    allowed = np.random.default_rng(3).random(len(codes)) < part
    wanted = best_of(np.where(allowed, summed(codes, tables), -1), 200)
    assert sorted(found(codes, tables, 200, bits_of(allowed)).tolist()) == wanted


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.sampled_from([1, 63, 64, 65, 1_000, 9_001, 30_000]),
    k=st.sampled_from([1, 10, 80, 1_000]),
    order=st.sampled_from([0, 1, -1]),
    part=st.sampled_from([0.5, 0.01]),
)
@settings(max_examples=100, deadline=None)
def test_a_filter_of_rows_in_any_order(seed: int, rows: int, k: int, order: int, part: float) -> None:
    """Also where all the best lie together, and the sample misleads."""
    codes, tables = drawn(seed, rows, 4)
    codes = codes[np.argsort(order * summed(codes, tables), kind="stable")]
    allowed = np.random.default_rng(seed).random(rows) < part
    rows_found, held = found(codes, tables, k, bits_of(allowed)), min(k, int(allowed.sum()))
    assert sorted(rows_found[:held].tolist()) == best_of(np.where(allowed, summed(codes, tables), -1), held)
    assert (rows_found[held:] == -1).all()


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.sampled_from([1, 64, 1_000, 9_001]),
    k=st.sampled_from([1, 80, 1_000]),
    part=st.sampled_from([1.0, 0.5, 0.01]),
    size=st.sampled_from([1, 2, 5]),
    enough=st.sampled_from([0, 20, -1]),
)
@settings(max_examples=100, deadline=None)
def test_lists_are_scanned_until_they_change_the_best_no_more(seed: int, count: int, k: int, part: float, size: int, enough: int) -> None:
    """Against the same rule in NumPy, over tables of whole multiples of a unit, and lists of unequal lengths, whose scores are higher
    by that of their centroid."""
    rng, width, lists, most, unit = np.random.default_rng(seed), 4, 7, 5, 2.0**-10
    codes, whole = rng.integers(0, 256, (count, width), np.uint8), np.sort(rng.integers(0, 64, (width, 2, 16), np.uint8))
    whole[:, :, 0], whole[0, 0, 15] = 0, 63  # they begin at 0 and end at what a table can hold: nothing is rounded
    list_of = np.minimum(rng.geometric(0.4, count) - 1, lists - 1)
    counts = np.bincount(list_of, minlength=lists)
    starts, length = laid_out(counts)
    rows = np.full(length, -1, np.int32)
    for one in range(lists):
        rows[starts[one] :][: counts[one]] = np.flatnonzero(list_of == one)
    near, centres = rng.permutation(lists) * 100, np.zeros((lists, 2 * width), np.float32)
    centres[:, 0] = near * unit
    allowed = rng.random(count) < part
    mask, out = bits_of(allowed[rows] & (rows >= 0)), np.empty((1, k), np.int64)
    stored = (packed(codes, rows), counts, starts, rows, panels(centres), np.ones(lists, np.float32))
    points, ones = (whole.reshape(2 * width, 1, 16) * unit).astype(np.float32), np.ones((1, 2 * width), np.float32)
    bits = ALL if part == 1 else mask
    scanned = some_lists(stored, np.eye(2 * width, dtype=np.float32), points, ones, most, size, enough, bits, 1, np.inf, out)

    place = np.empty(count, np.int64)
    place[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    keys = ((summed(codes, whole) + near[list_of]) << 32) - place
    order, best = np.argsort(-near), np.empty(0, np.int64)
    for begin in range(0, most, size):
        end, former = min(begin + size, most), best
        here = np.isin(list_of, order[begin:end]) & (allowed | (part == 1))
        best = np.sort(np.concatenate([former, keys[here]]))[::-1][:k]
        if begin and len(best) == k and len(np.setdiff1d(best, former)) <= enough:
            break
    assert scanned == end
    assert sorted(keys[out[0][out[0] >= 0]].tolist()) == sorted(best.tolist())


@pytest.mark.parametrize("begin", [0, 1, 27, 28])
def test_lists_are_shifted(begin: int) -> None:
    """Rows of the first and the third list, whose centroids are nearer or further, and which share blocks with the second."""
    codes, tables = drawn(4, 300, 8)
    out, starts, shifts = np.empty(50, np.int64), np.array([begin, begin + 112]), np.array([300, 0])
    places = np.concatenate([np.full(begin, -1), np.arange(300)])
    best(packed(codes[places]), np.array([100, 128]), starts, shifts, ALL, tables, 1, scan.MOST, out)
    scores = summed(codes, tables)
    scores[:100] += 300
    scores[100:112], scores[240:] = -1, -1
    assert sorted(places[out].tolist()) == best_of(scores, 50)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40))
@settings(max_examples=100, deadline=None)
def test_lists_lie_in_as_few_blocks_as_can_hold_them(counts: list[int]) -> None:
    """Each apart from the others, and all in hardly more places than there are rows, where there are many lists."""
    held = np.array(counts)
    starts, length = laid_out(held)
    taken = np.zeros(length, np.int64)
    for start, count in zip(starts.tolist(), counts, strict=True):
        taken[start : start + count] += 1
        assert (start + count + 63) // 64 - start // 64 == -(-count // 64) or not count
    assert taken.sum() == held.sum()
    assert taken.max(initial=0) <= 1
    assert length <= 64 * int((-(-held // 64)).sum())


def test_many_lists_leave_few_gaps() -> None:
    counts = np.random.default_rng(0).integers(1, 300, 1_000)
    assert laid_out(counts)[1] < 1.02 * counts.sum()


@pytest.mark.parametrize("numbers", [np.inf, 1e38, 0.0, np.nan])
def test_tables_of_unsound_numbers_are_harmless(numbers: float) -> None:
    tables, leasts = np.empty((2, 2, 16), np.uint8), np.empty(4, np.float32)
    filled(np.ones(4, np.float32), np.full((4, 1, 16), numbers, np.float32), leasts, tables)
    assert tables.max() <= 63


def test_sums_of_the_widest_rows_do_not_overflow() -> None:
    """Tables get fewer steps where there are so many that their sum would not fit into 16 bits."""
    width = 1_024
    tables, leasts = np.empty((width // 2, 2, 16), np.uint8), np.empty(width, np.float32)
    filled(np.ones(width, np.float32), np.tile(np.linspace(-1, 1, 16, dtype=np.float32), (width, 1, 1)), leasts, tables)
    assert 60_000 < int(tables.max(axis=2).astype(int).sum()) <= 65_535


def test_a_cpu_gets_the_widest_shuffle_it_has() -> None:
    assert shuffle_of("x86_64-linux", "+avx2,+ssse3,-avx512bw") == ("llvm.x86.avx2.pshuf.b", 32)
    assert shuffle_of("x86_64-linux", "+avx512bw,+avx2")[1] == 64
    assert shuffle_of("x86_64-linux", "+avx512bw,+avx2", 32)[1] == 32
    assert shuffle_of("aarch64-linux", "+neon") == ("llvm.aarch64.neon.tbl1.v16i8", 16)
    assert shuffle_of("aarch64-linux", "+avx2") == shuffle_of("x86_64-linux", "") == ("", 16)


@pytest.mark.slow
@pytest.mark.parametrize("cpu", EVERY)
def test_every_cpu_finds_the_same(cpu: str, tmp_path: str) -> None:
    """In a process whose numba compiles for a lesser CPU than this one."""
    from llvmlite.binding import get_host_cpu_features

    wanted = [name[1:] for name in EVERY[cpu].split(",") if name.startswith("+")]
    if not all(get_host_cpu_features().get(name) for name in wanted):
        pytest.skip(f"this CPU has no {cpu}")
    program = """
import sys
sys.path.append("..")
import test_index_graph, test_scan
test_scan.test_whatever_the_sample_says(100, "any")
test_scan.test_lists_are_shifted(27)
test_index_graph.test_a_walk_is_a_beam_search()
"""
    environment = {**os.environ, "NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": EVERY[cpu], "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=os.path.dirname(__file__))
