"""The diagnostics around the router: curves have the fixed policies for ends, oracles are above all, chance is the chord."""

from dataclasses import replace

import numpy as np
import pytest

from adawidth.evaluation.significance import paired_bootstrap
from adawidth.experiments import routers, routing
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


@pytest.mark.slow
def test_pair_curves(parts: tuple[Examples, Examples, Examples]) -> None:
    train, _, test = parts
    curves = {curve.name: curve for curve in routing.pair_curves(train, test, (64, 128))}
    assert {"trees", "mlp", "ridge", "gap", "nqc", "wig", "smv", "churn", "random", "oracle"} == set(curves)
    for curve in curves.values():
        np.testing.assert_allclose(curve.values[0], test.at(64), atol=1e-12)
        np.testing.assert_allclose(curve.values[-1], test.at(128), atol=1e-12)
        np.testing.assert_array_equal(curve.widths, [64, 80, 96, 112, 128])  # 300 queries: every share is a whole number of them
    middle = len(routing.SHARES) // 2
    assert curves["random"].means[middle] == pytest.approx((test.at(64).mean() + test.at(128).mean()) / 2)
    for name in ("trees", "mlp", "ridge", "gap"):
        assert curves[name].means[middle] > curves["random"].means[middle] + 0.05
    for curve in curves.values():
        assert (curves["oracle"].means >= curve.means - 1e-12).all()


@pytest.mark.slow
def test_the_oracle_of_a_pair_spends_its_share_even_where_nothing_is_gained(parts: tuple[Examples, Examples, Examples]) -> None:
    train, _, test = parts
    flat = replace(test, values=np.repeat(test.values[:, :1], len(WIDTHS), axis=1))
    (oracle,) = (curve for curve in routing.pair_curves(train, flat, (64, 256)) if curve.name == "oracle")
    np.testing.assert_array_equal(oracle.widths, [64, 112, 160, 208, 256])


def cell(documents: int, seed: int, gain: float, oracle: float) -> dict[str, object]:
    """A cell as `reproduce routers` keeps it, with made-up gains."""
    rng, count = np.random.default_rng(seed), 200
    entries = []
    for rotation in routers.ROTATIONS:
        for pair in routers.PAIRS:
            fixed = [0.4, 0.45, 0.5, 0.55, 0.6]
            lifts = {"trees": gain, "mlp": gain - 0.001, "ridge": gain + 0.002, "random": 0.0, "oracle": oracle}
            curves = {name: [fixed[0], *(value + lift for value in fixed[1:-1]), fixed[-1]] for name, lift in lifts.items()}
            entries.append({"rotation": rotation, "pair": list(pair), "widths": [0, 1, 2, 3, 4], "fixed": fixed, "curves": curves})
    arrays = {
        f"{kind}_{rotation}": rng.normal(mean, 0.02, count)
        for kind, mean in (("trees", gain), ("oracle", oracle))
        for rotation in routers.ROTATIONS
    }
    return {
        "dataset": f"d{documents}",
        "encoder": "e",
        "documents": documents,
        "seed": seed,
        "asked": f"d{documents}",
        "routed": entries,
        "unseen": np.arange(count) < 150,
        **arrays,
    }


@pytest.mark.parametrize(("gain", "opening"), [(0.02, "The claim holds."), (-0.01, "The claim does not hold."), (0.0, "Not shown.")])
def test_the_verdict_on_routers(gain: float, opening: str) -> None:
    cells = [cell(5_000, 0, gain, 0.06), cell(5_000, 1, gain, 0.06), cell(200_000, 2, gain, 0.06)]
    verdict = routers.judge(cells)
    assert verdict.paragraph.startswith(f"**{opening}**")
    assert [claim.paper for claim in verdict.claims] == ["+.0131", "+.0013", "+.0045"]
    assert verdict.claims[2].data == "d200000, e, 1 seed"
    assert "differ by 0.0030" in verdict.paragraph
    assert "the predictor is what limits it" in verdict.paragraph


def test_routers_are_judged_on_unseen_queries_alone() -> None:
    made = cell(5_000, 0, 0.02, 0.06)
    made["trees_paper"] = np.where(np.arange(200) < 150, -0.01, 1.0)
    assert routers.added([made], "paper")["mean"] == pytest.approx(-0.01)
    assert routers.added([made], "paper", unseen=False)["mean"] == pytest.approx((150 * -0.01 + 50) / 200)
    assert routers.judge([made]).claims[1].verdict == "does not hold"


def test_the_envelope_is_taken_after_the_mean_over_seeds() -> None:
    cells = [cell(5_000, 0, 0.01, 0.05), cell(5_000, 1, 0.03, 0.05)]
    for entry in cells[1]["routed"]:  # type: ignore[attr-defined]
        entry["curves"]["mlp"], entry["curves"]["ridge"] = entry["curves"]["ridge"], entry["curves"]["mlp"]
    header, rows = routers.table(cells)
    assert len(rows) == 6
    assert rows[0][header.index("trees")] == "+0.0200"
    assert rows[0][header.index("envelope")] == "+0.0205"  # the best of each seed would be .0220
    assert rows[0][header.index("oracle")] == "+0.0500"


def test_the_oracle_pays_for_no_loss(parts: tuple[Examples, Examples, Examples]) -> None:
    test = parts[2]
    chosen = routing.oracle_widths(test, WIDTHS, 256)
    np.testing.assert_allclose(routing.values_at(test, chosen), test.values.max(axis=1))
    still = replace(test, tops=np.zeros_like(test.tops))
    assert (routing.oracle_widths(still, WIDTHS, 256, only_changed=True) == 64).all()


def test_patience_stops_when_the_list_stands_still() -> None:
    test = made_up(2, 0)
    tops = np.arange(50).reshape(1, 5, 10).repeat(2, axis=0)
    tops[0, 2] = tops[0, 1]  # 80 and 96 agree
    test = replace(test, tops=tops)
    assert routing.patience(test, 1).tolist() == [96, 256]
    assert routing.patience(test, 2).tolist() == [256, 256]


def test_credit_is_against_the_fixed_width_of_the_same_mean(parts: tuple[Examples, Examples, Examples]) -> None:
    test = parts[2]
    found = routing.credit(test, np.full(len(test), 96), test.at)
    assert (found.mean_width, found.fixed_width) == (96, 96)
    assert found.credit == found.low == found.high == 0


@pytest.mark.slow
def test_leave_one_out(parts: tuple[Examples, Examples, Examples]) -> None:
    train, dev, test = parts
    models = routing.leave_one_out({"a": (train, dev), "b": (train, dev), "c": (train, dev)}, "c", ("paper", "scale-free"))
    chosen = routing.routed_widths(models["paper"], test, 96)
    assert chosen.mean() <= 1.1 * 96
    assert routing.values_at(test, chosen).mean() > test.at(96).mean()
    assert models["scale-free"].heads[0].features == "scale-free"


def test_routed_widths_without_heads_stay_at_the_start(parts: tuple[Examples, Examples, Examples]) -> None:
    train, dev, test = parts
    model = routing.fit_router(train.select(range(5)), dev)
    assert (routing.routed_widths(model, test, 96) == 64).all()


def test_paired_bootstrap() -> None:
    rng = np.random.default_rng(0)
    b = rng.uniform(size=500)
    mean, low, high = paired_bootstrap(b + rng.normal(0.1, 0.2, 500), b)
    assert low < mean < high
    assert low == pytest.approx(mean - 1.96 * 0.2 / np.sqrt(500), abs=0.004)
    assert paired_bootstrap(b, b) == (0, 0, 0)
    assert paired_bootstrap(np.empty(0), np.empty(0)) == (0, 0, 0)
    assert paired_bootstrap(b, b[::-1], seed=1) == paired_bootstrap(b, b[::-1], seed=1)
