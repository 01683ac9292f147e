"""Codes of a row: how near they are to it, along the row and across."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adawidth.data import unit
from adawidth.index.codes import FourBit, codebook
from adawidth.index.codes.codebook import fitted_levels, points, tables
from adawidth.kernels import quantise


def drawn(seed: int, count: int, width: int) -> np.ndarray:
    return unit(np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32))


def coded(rows: np.ndarray, along: np.ndarray, levels: np.ndarray, weight: float) -> np.ndarray:
    """What the codes of these rows stand for. (n, m)"""
    codes = np.empty((len(rows), codebook.code_bytes(levels)), np.uint8)
    quantise.encode(rows, along, levels, weight, codes)
    bits = {16: 4, 4: 2, 2: 1}[levels.shape[1]]
    places = np.arange(rows.shape[1]) * bits
    return levels[np.arange(rows.shape[1]), codes[:, places // 8] >> (places % 8) & (2**bits - 1)]


def losses(rows: np.ndarray, along: np.ndarray, found: np.ndarray, weight: float) -> np.ndarray:
    error = (rows - found).astype(np.float64)
    return (error**2).sum(axis=1) + (weight - 1) * (error * along).sum(axis=1) ** 2


@given(st.integers(0, 99), st.sampled_from([1, 2, 4]), st.sampled_from([4, 8, 32]))
@settings(max_examples=40, deadline=None)
def test_a_weight_of_one_gives_the_nearest_levels(seed: int, bits: int, width: int) -> None:
    rows = drawn(seed, 30, width)
    levels = fitted_levels(rows, bits)
    found = coded(rows, rows, levels, 1.0)
    np.testing.assert_allclose(np.abs(rows - found), np.abs(rows[:, :, None] - levels).min(axis=2), atol=1e-6)


@given(st.integers(0, 99), st.sampled_from([1, 2, 4]), st.sampled_from([4, 8, 32]), st.floats(1.0, 50.0))
@settings(max_examples=40, deadline=None)
def test_no_weight_makes_the_loss_larger_than_that_of_the_nearest_levels(seed: int, bits: int, width: int, weight: float) -> None:
    rows, along = drawn(seed, 30, width), drawn(seed + 1, 30, width)
    levels = fitted_levels(rows, bits)
    weighted, nearest = (losses(rows, along, coded(rows, along, levels, each), weight) for each in (weight, 1.0))
    assert (weighted <= nearest + 1e-6).all()


def test_no_single_coordinate_would_do_better_one_level_on() -> None:
    rows = drawn(3, 50, 4)
    levels, weight = fitted_levels(rows, 2), 6.0
    found = coded(rows, rows, levels, weight)
    least = losses(rows, rows, found, weight)
    for j in range(4):
        at = np.argmin(np.abs(levels[j] - found[:, j, None]), axis=1)
        for step in (-1, 1):
            other = found.copy()
            other[:, j] = levels[j, np.clip(at + step, 0, 3)]
            assert (losses(rows, rows, other, weight) >= least - 1e-6).all()


def test_residuals_are_coded_along_their_rows() -> None:
    rows, centre = drawn(5, 200, 32), drawn(6, 1, 32) * 0.3
    levels = fitted_levels(rows - centre, 2)
    along, across = (coded(rows - centre, rows, levels, weight) + centre for weight in (8.0, 1.0))
    assert np.abs(((rows - along) * rows).sum(axis=1)).mean() < 0.5 * np.abs(((rows - across) * rows).sum(axis=1)).mean()


@pytest.mark.parametrize(("width", "bits"), [(32, 2), (64, 2)])
def test_near_documents_are_told_apart_better(monkeypatch: pytest.MonkeyPatch, width: int, bits: int) -> None:
    """The same bytes find more of the nearest neighbours than codes that are nearest to the rows."""
    rng = np.random.default_rng(0)
    spread = np.linspace(2.0, 0.5, width)
    rows = unit((rng.standard_normal((4_000, width)) * spread + 1.0).astype(np.float32))
    queries = unit((rows[::40] + 0.05 * rng.standard_normal((100, width))).astype(np.float32))
    nearest = np.argsort(-(queries @ rows.T), axis=1)[:, :10]

    def share() -> float:
        found = FourBit.build(rows, 0, bits).search(queries, 30)
        return float(np.mean([np.isin(a, b).mean() for a, b in zip(nearest, found, strict=True)]))

    weighted = share()
    monkeypatch.setattr(codebook, "NEAR", 0.0)
    assert weighted > share() + 0.02


def test_scores_are_those_of_what_the_codes_stand_for() -> None:
    rows, queries = drawn(1, 40, 16), drawn(2, 3, 16)
    levels = fitted_levels(rows, 2)
    codes = np.empty((40, 4), np.uint8)
    quantise.encode(rows, rows, levels, 4.0, codes)
    scores = quantise.scores(codes, np.tile(np.arange(40), (3, 1)), tables(queries, points(levels)))
    np.testing.assert_allclose(scores, queries @ coded(rows, rows, levels, 4.0).T, atol=1e-5)


def one_by_one(row: np.ndarray, along: np.ndarray, levels: np.ndarray, weight: float) -> list[int]:
    """The descent as it is told: one row, one coordinate after the other, in Python's numbers."""
    cuts = np.float32(0.5) * (levels[:, :-1] + levels[:, 1:])
    chosen = (row[:, None] > cuts).sum(axis=1).tolist()
    errors = [float(row[j] - levels[j, at]) for j, at in enumerate(chosen)]
    parallel = sum(error * float(a) for error, a in zip(errors, along, strict=True))
    for _ in range(quantise.PASSES):
        for j, a in enumerate(map(float, along)):
            at = chosen[j] + (1 if a * parallel > 0 else -1)
            if 0 <= at < levels.shape[1]:
                error = float(row[j] - levels[j, at])
                after = parallel + (error - errors[j]) * a
                if error * error - errors[j] * errors[j] + (weight - 1) * (after * after - parallel * parallel) < 0:
                    chosen[j], errors[j], parallel = at, error, after
    return chosen


@given(st.integers(0, 99), st.sampled_from([1, 2, 4]), st.sampled_from([4, 12, 40]), st.sampled_from([1, 15, 16, 37]), st.floats(1.0, 50.0))
@settings(max_examples=40, deadline=None)
def test_rows_side_by_side_are_coded_as_one_by_one(seed: int, bits: int, width: int, count: int, weight: float) -> None:
    along = drawn(seed, count, width)
    rows = along - drawn(seed + 1, 1, width) * 0.5
    levels = fitted_levels(drawn(seed + 2, 60, width) - 0.1, bits)
    found = coded(rows, along, levels, weight)
    for i in range(count):
        assert found[i].tolist() == levels[np.arange(width), one_by_one(rows[i], along[i], levels, weight)].tolist()
