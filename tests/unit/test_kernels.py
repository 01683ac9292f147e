"""The compiled loops against plain NumPy."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from adawidth.data import unit
from adawidth.kernels.extend import extend
from adawidth.kernels.halves import measure_rows, unit_rows
from adawidth.kernels.topk import top_k


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    queries=st.integers(0, 4),
    documents=st.integers(1, 300),
    k=st.integers(1, 320),
    levels=st.sampled_from([1, 2, 7, 10**6]),
)
def test_top_k_is_a_sort_cut_short(seed: int, queries: int, documents: int, k: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    scores = (rng.integers(-levels, levels, size=(queries, documents)) / levels).astype(np.float32)
    scores[rng.random(scores.shape) < 0.05] = -np.inf  # documents that are never returned
    ranks = rng.permutation(documents)
    expected = np.array([np.lexsort((ranks, -row))[:k] for row in scores], np.int64).reshape(queries, min(k, documents))
    np.testing.assert_array_equal(top_k(scores, ranks, k), expected)


def test_top_k_of_rising_falling_and_equal_scores() -> None:
    ranks = np.arange(50)
    rising = np.arange(50, dtype=np.float32)
    scores = np.stack([rising, -rising, np.zeros_like(rising)])
    found = top_k(scores, ranks, 5)
    assert found.tolist() == [[49, 48, 47, 46, 45], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), width=st.integers(1, 200))
def test_extend_adds_the_products_of_the_coordinates_in_between(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    queries = rng.standard_normal((3, width)).astype(np.float32)
    rows = rng.standard_normal((40, width)).astype(np.float32)
    candidates = rng.integers(40, size=(3, 9))
    keep = rng.random((3, 9)) < 0.7
    begin, end = rng.integers(width + 1, size=(2, 3))  # some queries go nowhere: their end is not beyond their begin
    sums = rng.standard_normal((3, 9)).astype(np.float32)
    expected = sums.astype(np.float64)
    for q in range(3):
        for c in range(9):
            if keep[q, c]:
                part = slice(begin[q], end[q])
                expected[q, c] += queries[q, part].astype(np.float64) @ rows[candidates[q, c], part]
    extend(queries, rows, candidates, keep, begin, end, sums)
    np.testing.assert_allclose(sums, expected, rtol=1e-4, atol=1e-4)


def test_extend_leaves_the_dropped_and_the_padding_alone() -> None:
    queries, rows = np.ones((1, 32), np.float32), np.ones((4, 32), np.float32)
    sums = np.array([[5.0, 6.0, 7.0]], np.float32)
    keep = np.array([[True, False, False]])
    extend(queries, rows, np.array([[2, 1, -1]]), keep, np.array([0]), np.array([32]), sums)
    assert sums.tolist() == [[37.0, 6.0, 7.0]]


def test_top_of_nothing_is_nothing() -> None:
    for k in (0, -3):
        assert top_k(np.ones((2, 5), np.float32), np.arange(5), k).shape == (2, 0)
    assert top_k(np.empty((2, 0), np.float32), np.empty(0, np.int64), 4).shape == (2, 0)


def halves(seed: int, rows: int, width: int) -> np.ndarray:
    """Rows of unit length as they are stored, with numbers too small for float16's usual form among them."""
    rng = np.random.default_rng(seed)
    return unit(rng.standard_normal((rows, width)) * 10.0 ** rng.uniform(-8, 0, (rows, width))).astype(np.float16)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(0, 5), width=st.integers(1, 70), read=st.integers(1, 70))
def test_prefixes_are_read_at_unit_length(seed: int, rows: int, width: int, read: int) -> None:
    stored = halves(seed, rows, width)[:, :read]
    found, wide = np.empty(stored.shape, np.float32), stored.astype(np.float64)
    unit_rows(stored.view(np.uint16), found)
    inverse = (1 / np.maximum(np.sqrt((wide**2).sum(axis=1, keepdims=True)), 1e-12)).astype(np.float32)
    np.testing.assert_array_equal(found, stored.astype(np.float32) * inverse)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(0, 5), ladder=st.sets(st.integers(1, 70), min_size=1))
def test_lengths_of_prefixes_are_those_of_numpy(seed: int, rows: int, ladder: set[int]) -> None:
    widths, stored = sorted(ladder), halves(seed, rows, 70)
    inverse, total = np.empty((rows, len(widths)), np.float32), np.ones(70)
    measure_rows(stored.view(np.uint16), np.array(widths), inverse, total)
    wide = stored.astype(np.float64)
    lengths = np.stack([np.sqrt((wide[:, :width] ** 2).sum(axis=1)) for width in widths], axis=1)
    np.testing.assert_array_equal(inverse, (1 / np.maximum(lengths, 1e-12)).astype(np.float32))
    np.testing.assert_array_equal(total, 1 + wide.sum(axis=0))
