"""The order statistics on a hand-made vector and at the edges, and the kernel against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adawidth.kernels.trees import batch_features
from adawidth.policies.features import EXTENDED, FEATURES, SCALE_FREE, columns, extended, normal_cdf, order_statistics


def named(scores: np.ndarray) -> dict[str, float]:
    return dict(zip(FEATURES, order_statistics(scores[None])[0].tolist(), strict=True))


def test_hand_made() -> None:
    scores = np.linspace(1.0, 0.01, 100)  # 1.00, 0.99, …
    found = named(scores)
    assert len(FEATURES) == 18
    for rank in (1, 2, 5, 10, 11, 20):
        assert found[f"score_{rank}"] == pytest.approx(1.01 - rank / 100)
    assert [found[f"gap_{pair}"] for pair in ("1_2", "1_10", "10_11", "10_15")] == pytest.approx([0.01, 0.09, 0.01, 0.05])
    assert found["mean_10"] == pytest.approx(0.955)
    assert found["std_10"] == pytest.approx(np.sqrt(99 / 12) / 100)
    assert found["mean_50"] == pytest.approx(0.755)
    assert found["std_50"] == pytest.approx(np.sqrt(2499 / 12) / 100)
    weights = np.exp(scores[:50] / 0.05)
    eta = weights / weights.sum()
    assert found["entropy"] == pytest.approx(-(eta * np.log(eta)).sum())
    assert found["effective"] == pytest.approx(np.exp(found["entropy"]))
    assert found["peak"] == pytest.approx((1.0 - 0.755) / found["std_50"])
    assert found["spread"] == pytest.approx(scores.std() / scores.mean())


def test_order_of_the_scores_is_no_matter() -> None:
    scores = np.random.default_rng(0).normal(size=(3, 200)).astype(np.float32)
    ordered = -np.sort(-scores, axis=1)
    np.testing.assert_allclose(order_statistics(scores), order_statistics(ordered))
    np.testing.assert_allclose(batch_features(scores), order_statistics(scores), atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.3, -0.7])
def test_constant_scores(value: float) -> None:
    scores = np.full((2, 60), value, np.float32)
    for found in (order_statistics(scores), batch_features(scores)):
        assert np.isfinite(found).all()
        assert found[:, FEATURES.index("effective")] == pytest.approx(50)
        assert np.abs(found[:, [FEATURES.index("std_50"), FEATURES.index("gap_10_11")]]).max() < 1e-7


def test_short_lists_go_on_with_their_last_score() -> None:
    short = np.array([[0.9, 0.5, 0.4, -np.inf, -np.inf]], np.float32)
    whole = np.concatenate([short[:, :3], np.full((1, 97), 0.4, np.float32)], axis=1)
    np.testing.assert_allclose(order_statistics(short), order_statistics(whole), atol=1e-12)
    np.testing.assert_allclose(batch_features(short), order_statistics(whole), atol=1e-6)


def test_no_candidates_at_all() -> None:
    nothing = np.full((1, 4), -np.inf, np.float32)
    assert np.isfinite(order_statistics(nothing)).all()
    assert np.isfinite(batch_features(nothing)).all()


@settings(max_examples=60, deadline=None)
@given(arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 150)), elements=st.floats(-1, 1, width=32)), st.integers(0, 150))
def test_kernel_equals_numpy(scores: np.ndarray, short: int) -> None:
    scores[0, short:] = -np.inf
    plain, fast = order_statistics(scores), batch_features(scores)
    np.testing.assert_allclose(fast, plain, rtol=1e-6, atol=1e-6)


def test_extended_is_finite_and_named() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(0.3, 0.1, (5, 120)).astype(np.float32)
    scores[0, 7:] = -np.inf
    found = extended(scores, scores, 0.05, np.full(5, 0.1), np.full(5, 0.4))
    assert found.shape == (5, len(EXTENDED))
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[:, :18], order_statistics(scores))
    assert (found[:, EXTENDED.index("agreement")] == 1).all()
    assert (found[:, EXTENDED.index("tail")] == 0.4).all()


def test_agreement_counts_the_shared_top_ten() -> None:
    scores = -np.arange(40, dtype=np.float32)[None]
    half = scores.copy()
    half[0, [9, 10]] = half[0, [10, 9]]  # the tenth and the eleventh swap
    found = extended(scores, half, 0.05, np.zeros(1), np.zeros(1))[0]
    assert found[EXTENDED.index("agreement")] == pytest.approx(0.9)
    assert found[EXTENDED.index("same_first")] == 1


def test_scale_free_features_do_not_scale() -> None:
    rng = np.random.default_rng(2)
    scores, half = rng.normal(0.4, 0.1, (2, 6, 200))
    reference, tails = rng.uniform(0.1, 0.2, (2, 6))
    one = extended(scores, half, 0.05, reference, tails)
    three = extended(3 * scores, 3 * half, 3 * 0.05, 3 * reference, tails)
    free = columns("scale-free", 64)
    assert len(free) == len(SCALE_FREE)
    np.testing.assert_allclose(three[:, free], one[:, free], rtol=1e-9)


def test_intruders_grow_with_the_noise() -> None:
    scores = np.linspace(1, 0, 100)[None]
    place = EXTENDED.index("intruders")
    few, many = (extended(scores, scores, noise, np.ones(1), np.ones(1))[0, place] for noise in (0.001, 0.1))
    assert few < 0.01 < 1 < many


def test_columns_of_the_sets() -> None:
    assert columns("paper", 32).tolist() == list(range(18))
    assert columns("extended", 32).tolist() == list(range(len(EXTENDED)))
    assert columns("query", 32).tolist() == list(range(len(EXTENDED) + 32))


def test_normal_cdf() -> None:
    np.testing.assert_allclose(normal_cdf(np.array([0.0, 1.959964, -1.959964, 9.0])), [0.5, 0.975, 0.025, 1.0], atol=1e-8)
