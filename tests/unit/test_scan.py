"""The scan of codes against plain NumPy."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings
from numba import njit

from adawidth.index.codes.packed import ALL, bits_of, packed
from adawidth.kernels.lists import some_lists
from adawidth.kernels.scan import LARGEST, all_rows
from adawidth.kernels.select import front, kth_largest

SIZE = 4  # bytes of a row
UNIT = 2.0**-10  # that scores are whole multiples of: centroids are of unit length, so no score is much above 1


@njit
def selected(numbers, k):  # type: ignore[no-untyped-def]
    """Both ways, from compiled code, which alone can call them."""
    return kth_largest(numbers, k), front(numbers, len(numbers), k)


def made(seed: int, count: int, order: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of rows, centroids, and the rows' scores for a query of ones, in units."""
    rng = np.random.default_rng(seed)
    points = rng.integers(0, int(LARGEST) + 1, (2 * SIZE, 16, 1)).astype(np.float32)
    points[:, 0], points[0, 1] = 0, LARGEST  # tables begin at 0 and end at what a table can hold: nothing is rounded
    codes = rng.integers(0, 256, (count, SIZE), dtype=np.uint8)
    nibbles = np.stack([codes & 15, codes >> 4], axis=2).reshape(count, 2 * SIZE)
    scores = points[np.arange(2 * SIZE), nibbles, 0].sum(axis=1).astype(np.int64)
    if order != "random":
        by = np.argsort(scores if order == "rising" else -scores, kind="stable")
        codes, scores = codes[by], scores[by]
    return codes, points * np.float32(UNIT), scores


def best(scores: np.ndarray, allowed: np.ndarray, k: int) -> list[int]:
    """The k best of the allowed rows: by score, then the lower row."""
    rows = np.flatnonzero(allowed)
    return sorted(rows[np.lexsort((rows, -scores[rows]))][:k].tolist())


cases = given(
    seed=st.integers(0, 2**32 - 1),
    count=st.sampled_from([1, 63, 64, 65, 1_000, 9_001, 30_000]),
    k=st.sampled_from([1, 10, 80, 1_000]),
    order=st.sampled_from(["random", "rising", "falling"]),  # where all the best lie together, a sample of the blocks misleads
    kept=st.sampled_from([1.0, 0.5, 0.01]),
)


@settings(max_examples=150, deadline=None)
@cases
def test_the_best_of_all_rows(seed: int, count: int, k: int, order: str, kept: float) -> None:
    codes, points, scores = made(seed, count, order)
    allowed = np.random.default_rng(seed).random(count) < kept
    ones, found = np.ones((1, 2 * SIZE), np.float32), np.empty((1, k), np.int64)
    identity = np.eye(2 * SIZE, dtype=np.float32)
    all_rows(packed(codes), count, identity, points, ones, ALL if kept == 1 else bits_of(allowed), found)
    expected = best(scores, allowed, k)
    assert sorted(found[0, : len(expected)].tolist()) == expected
    assert (found[0, len(expected) :] == -1).all()


@settings(max_examples=100, deadline=None)
@cases
def test_the_best_of_some_lists(seed: int, count: int, k: int, order: str, kept: float) -> None:
    """Rows in lists of unequal lengths, whose scores are higher by that of their centroid."""
    codes, points, scores = made(seed, count, order)
    rng = np.random.default_rng(seed)
    lists, probes = 5, 3
    list_of = np.minimum(rng.geometric(0.4, count) - 1, lists - 1)
    counts = np.bincount(list_of, minlength=lists)
    firsts = np.cumsum(-(-counts // 64)) - -(-counts // 64)
    rows = np.full(-(-counts // 64).sum() * 64, -1, np.int32)
    for one in range(lists):
        rows[firsts[one] * 64 :][: counts[one]] = np.flatnonzero(list_of == one)
    near = rng.permutation(lists) * 100
    centres = np.zeros((lists, 2 * SIZE), np.float32)
    centres[:, 0] = near * UNIT
    probed = np.isin(list_of, np.argsort(-near)[:probes])
    allowed = rng.random(count) < kept
    mask = ALL if kept == 1 else bits_of(allowed[rows] & (rows >= 0))
    scale, found = np.ones(lists, np.float32), np.empty((1, k), np.int64)
    identity, ones = np.eye(2 * SIZE, dtype=np.float32), np.ones((1, 2 * SIZE), np.float32)
    some_lists((packed(codes, rows), counts, firsts, rows, centres, scale), identity, points, ones, probes, mask, found)
    total = scores + near[list_of]
    chosen = found[0][found[0] >= 0]
    assert len(chosen) == len(set(chosen.tolist())) == min(k, int((allowed & probed).sum()))
    assert (allowed & probed)[chosen].all()
    assert sorted(total[chosen].tolist()) == sorted(np.sort(total[allowed & probed])[::-1][:k].tolist())  # of equal ones any


@settings(max_examples=200, deadline=None)
@given(numbers=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=300, unique=True), data=st.data())
def test_selecting_is_a_sort_cut_short(numbers: list[int], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(numbers)))
    array = np.array(numbers, np.int64)
    least = sorted(numbers)[-k]
    assert selected(array, k) == (least, least)
    assert array[:k].tolist() == [number for number in numbers if number >= least]
