"""The diagnostics around the router: curves have the fixed policies for ends, oracles are above all, chance is the chord."""

from dataclasses import replace

import numpy as np
import pytest

from adawidth.evaluation.significance import paired_bootstrap
from adawidth.experiments import routers
from adawidth.policies.features import EXTENDED
from adawidth.training.examples import Examples

WIDTHS = (64, 80, 96, 128, 256)


def made_up(count: int, seed: int) -> Examples:
    """Features of noise, but for one that tells which queries gain."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, len(EXTENDED) + 64))
    hard = features[:, EXTENDED.index("gap_10_11")] < 0
    low = rng.uniform(0, 0.6, count)
    rise = np.array([0, 0.1, 0.2, 0.3, 0.4]) * np.where(hard, 1.0, 0.05)[:, None]
    tops = rng.integers(0, 3, (count, len(WIDTHS), 1)) * 10 + np.arange(10)
    return Examples(features, low[:, None] + rise + rng.normal(scale=0.02, size=rise.shape), tops, WIDTHS, 0.05, True)


@pytest.fixture(scope="module")
def parts() -> tuple[Examples, Examples, Examples]:
    return made_up(600, 0), made_up(200, 1), made_up(300, 2)


def test_pair_curves(parts: tuple[Examples, Examples, Examples]) -> None:
    test = parts[2]
    curves = {curve.name: curve for curve in routers.pair_curves(*parts, (64, 128))}
    assert {"trees", "mlp", "linear", "gap", "nqc", "wig", "smv", "churn", "random", "oracle", "envelope (optimistic)"} <= set(curves)
    for name, curve in curves.items():
        if not name.startswith("oracle"):
            np.testing.assert_allclose(curve.values[0], test.at(64), atol=1e-12)
            np.testing.assert_allclose(curve.values[-1], test.at(128), atol=1e-12)
            assert (curve.widths[0], curve.widths[-1]) == (64, 128)
    middle = len(routers.SHARES) // 2
    assert curves["random"].means[middle] == pytest.approx((test.at(64).mean() + test.at(128).mean()) / 2)
    for name in ("trees", "mlp", "linear", "gap"):
        assert curves[name].means[middle] > curves["random"].means[middle] + 0.05
    assert curves["oracle"].means.max() >= max(curve.means.max() for curve in curves.values())
    assert (curves["envelope (optimistic)"].means >= curves["trees"].means).all()


def test_the_oracle_pays_for_no_loss(parts: tuple[Examples, Examples, Examples]) -> None:
    test = parts[2]
    chosen = routers.oracle_widths(test, WIDTHS, 256)
    np.testing.assert_allclose(routers.worth(test, chosen), test.values.max(axis=1))
    still = replace(test, tops=np.zeros_like(test.tops))
    assert (routers.oracle_widths(still, WIDTHS, 256, only_changed=True) == 64).all()


def test_patience_stops_when_the_list_stands_still() -> None:
    test = made_up(2, 0)
    tops = np.arange(50).reshape(1, 5, 10).repeat(2, axis=0)
    tops[0, 2] = tops[0, 1]  # 80 and 96 agree
    test = replace(test, tops=tops)
    assert routers.patience(test, 1).tolist() == [96, 256]
    assert routers.patience(test, 2).tolist() == [256, 256]


def test_credit_is_against_the_fixed_width_of_the_same_mean(parts: tuple[Examples, Examples, Examples]) -> None:
    test = parts[2]
    found = routers.credit(test, np.full(len(test), 96), test.at)
    assert (found.mean_width, found.fixed_width) == (96, 96)
    assert found.credit == found.low == found.high == 0


def test_leave_one_out(parts: tuple[Examples, Examples, Examples]) -> None:
    train, dev, test = parts
    models = routers.leave_one_out({"a": (train, dev), "b": (train, dev), "c": (train, dev)}, "c", ("paper", "scale-free"))
    chosen = routers.routed_widths(models["paper"], test, 96)
    assert chosen.mean() <= 1.1 * 96
    assert routers.worth(test, chosen).mean() > test.at(96).mean()
    assert models["scale-free"].heads[0].features == "scale-free"


def test_routed_widths_without_heads_stay_at_the_start(parts: tuple[Examples, Examples, Examples]) -> None:
    train, dev, test = parts
    model = routers.fit_router(train.select(range(5)), dev)
    assert (routers.routed_widths(model, test, 96) == 64).all()


def test_paired_bootstrap() -> None:
    rng = np.random.default_rng(0)
    b = rng.uniform(size=500)
    mean, low, high = paired_bootstrap(b + rng.normal(0.1, 0.2, 500), b)
    assert low < mean < high
    assert low == pytest.approx(mean - 1.96 * 0.2 / np.sqrt(500), abs=0.004)
    assert paired_bootstrap(b, b) == (0, 0, 0)
    assert paired_bootstrap(np.empty(0), np.empty(0)) == (0, 0, 0)
    assert paired_bootstrap(b, b[::-1], seed=1) == paired_bootstrap(b, b[::-1], seed=1)
