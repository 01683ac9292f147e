"""What experiments make of their cells: margins with intervals, widths to match, who is strongest. Worked by hand."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adawidth.evaluation.significance import mean_interval, paired_bootstrap
from adawidth.experiments.ablation import ABLATION, ROUTER_ONLY
from adawidth.experiments.base import Settings
from adawidth.experiments.capacity import CAPACITY, REFLECTIONS, name_of
from adawidth.experiments.curves import COMPARED, CURVES
from adawidth.experiments.margins import losses, margin, needed, saved, strongest
from adawidth.experiments.methods import QUALITY, UNSEEN, Measured, at_most
from adawidth.experiments.sweep import CHOSEN, GRID, SWEEP, settings_of

WIDTHS = (32, 64, 128)


def cell(method: str, means: list[float], *, dataset: str = "one", encoder: str = "e", seed: int = 0) -> dict[str, Any]:
    """Four queries, whose mean at each width is the one given."""
    points = [
        {
            "width": "full" if m == 256 else m,
            "mean_width": m,
            "nDCG@10": mean,
            "multiply_adds": 100 * m,
            "stored_floats_per_document": m,
        }
        for m, mean in zip((*WIDTHS, 256), [*means, 0.7], strict=True)
    ]
    head = {"dataset": dataset, "encoder": encoder, "encoder_width": 256, "documents": 1_000, "frozen": 0.7, "asked": dataset}
    quality = np.add.outer([*means, 0.7], [-0.1, -0.05, 0.05, 0.1])
    arrays = {QUALITY: quality, UNSEEN: np.array([True, True, False, True])}
    return {**head, "method": method, "seed": seed, "parameters": 7, "fit_seconds": 1.0, "points": points, **arrays}


@pytest.fixture
def cells() -> list[dict[str, Any]]:
    return [
        cell("ours", [0.5, 0.6, 0.8]),
        cell("other", [0.3, 0.5, 0.6]),
        cell("ours", [0.4, 0.5, 0.6], dataset="two"),
        cell("other", [0.5, 0.6, 0.65], dataset="two"),
        cell("best:oracle", [0.9, 0.9, 0.9]),
        cell("best:oracle", [0.9, 0.9, 0.9], dataset="two"),
    ]


def test_a_margin_is_the_mean_of_the_differences(cells: list[dict[str, Any]]) -> None:
    found = margin(Measured(cells), "ours", "other")
    assert found["mean"] == pytest.approx(np.mean([0.2, 0.1, 0.2, 0.0, -0.1, -0.1, -0.05, 0.0]))
    assert found["by_dataset"] == pytest.approx({"one": 0.125, "two": -0.0625})
    assert found["by_encoder"] == pytest.approx({"e": found["mean"]})
    assert (found["ahead"], found["of"]) == (3, 8)
    assert found["worst"] == pytest.approx(-0.1)
    assert found["low"] == pytest.approx(found["high"]) == pytest.approx(found["mean"])  # every query has the same difference


def test_seeds_are_averaged_and_their_spread_is_kept() -> None:
    found = Measured([cell("a", [0.4, 0.5, 0.6]), cell("a", [0.6, 0.7, 0.8], seed=1)])
    assert found.mean(("one", "e"), "a", 64) == pytest.approx(0.6)
    assert found.spread(("one", "e"), "a", 64) == pytest.approx(np.std([0.5, 0.7], ddof=1))


def test_full_width_is_a_number_like_any_other(cells: list[dict[str, Any]]) -> None:
    found = Measured(cells)
    assert found.widths() == [32, 64, 128, 256]
    widths, values = found.curve(("one", "e"), "ours")
    assert widths == [32, 64, 128, 256]
    assert values == pytest.approx([0.5, 0.6, 0.8, 0.7])


def test_needed_width_is_read_off_the_curve_through_ln_width() -> None:
    widths, means = [32, 64, 128], [0.3, 0.5, 0.6]
    assert needed(widths, means, 0.3) == 32
    assert needed(widths, means, 0.2) == 32
    assert needed(widths, means, 0.4) == pytest.approx(32 * math.sqrt(2))
    assert needed(widths, means, 0.6) == pytest.approx(128)
    assert needed(widths, means, 0.61) == math.inf


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.floats(0, 1))
def test_a_needed_width_is_on_the_grid_and_never_falls(means: list[float], wanted: float) -> None:
    widths = [32 * 2**i for i in range(len(means))]
    width = needed(widths, means, wanted)
    assert width == math.inf if max(means) < wanted else 32 <= width <= widths[-1]
    assert needed(widths, means, min(1.0, wanted + 0.1)) >= width


def test_saved_is_against_the_rivals_own_quality(cells: list[dict[str, Any]]) -> None:
    only = [c for c in cells if c["dataset"] == "one"]
    at_32, at_64, at_128 = 0.0, 1 - 32 / 64, 1 - 64 / 128
    at_256 = 1 - needed([32, 64, 128, 256], [0.5, 0.6, 0.8, 0.7], 0.7) / 256
    assert saved(Measured(only), "ours", "other")["mean"] == pytest.approx(np.mean([at_32, at_64, at_128, at_256]))


def test_the_strongest_rival_is_no_oracle(cells: list[dict[str, Any]]) -> None:
    found = Measured(cells)
    assert found.rivals(["ours"]) == ["other"]
    assert strongest(found, found.rivals(["ours"]), found.widths()) == "other"
    assert [(entry["dataset"], entry["width"]) for entry in losses(found, ["ours"], ["other"])] == [("two", 32), ("two", 64), ("two", 128)]


def test_an_interval_over_groups_weighs_groups_alike() -> None:
    rng = np.random.default_rng(0)
    small, large = rng.normal(1, 1, 20), rng.normal(0, 1, 2_000)
    mean, low, high = mean_interval([small, large])
    assert mean == pytest.approx((small.mean() + large.mean()) / 2)
    assert low < mean < high
    error = math.sqrt(small.var() / 20 + large.var() / 2_000) / 2
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.08)
    assert paired_bootstrap(small, np.zeros(20)) == mean_interval([small])
    assert mean_interval([]) == (0.0, 0.0, 0.0)


def test_fewer_train_queries_are_drawn_by_the_seed(collection: Any) -> None:
    learning = collection.learning()
    few, same, other = at_most(learning, 10, 0), at_most(learning, 10, 0), at_most(learning, 10, 1)
    assert len(few.train) == 10
    assert few.train.vectors.ids == same.train.vectors.ids != other.train.vectors.ids
    assert few.dev is learning.dev
    assert at_most(learning, 1_000, 0) is learning


def curves_of(paper: float) -> list[dict[str, Any]]:
    rows = {"paper": paper, "adawidth": 0.1, "adawidth-query": 0.0, "dense": 0.05} | dict.fromkeys(COMPARED, 0.0)
    return [cell(name, [0.5 + up, 0.6 + up, 0.7 + up]) for name, up in rows.items()]


@pytest.mark.parametrize(("paper", "outcome"), [(0.05, "holds"), (-0.05, "does not hold")])
def test_curves_are_judged_by_the_papers_own_row(paper: float, outcome: str) -> None:
    verdict = CURVES.judge(curves_of(paper))
    assert verdict.claims[0].verdict == outcome
    assert "The strongest other method is dense." in verdict.paragraph
    assert "nowhere behind" in verdict.paragraph
    summary = CURVES.summarise(curves_of(paper))
    assert summary["strongest"]["method"] == "dense"
    assert summary["losses"] == []
    assert summary["means"]["adawidth"]["64"] == pytest.approx(0.7)


def test_curves_without_the_papers_row_are_not_judged() -> None:
    assert CURVES.judge([cell("pca", [0.1, 0.2, 0.3])]).paragraph.startswith("**Not tested.**")


def test_capacity_is_judged_by_span_and_lead() -> None:
    rows = {name_of(f): 0.1 + 0.001 * i for i, f in enumerate(REFLECTIONS)} | dict.fromkeys(COMPARED, 0.0)
    flat = CAPACITY.judge([cell(name, [0.5 + up, 0.6 + up, 0.7 + up]) for name, up in rows.items()])
    assert flat.holds
    rows[name_of(8)] = -0.1
    assert not CAPACITY.judge([cell(name, [0.5 + up, 0.6 + up, 0.7 + up]) for name, up in rows.items()]).holds


def test_ablation_needs_the_router_to_add() -> None:
    rows = {"truncation": 0.0, ROUTER_ONLY: 0.01, name_of(64): 0.1, "paper": 0.11}
    assert ABLATION.judge([cell(name, [0.5 + up, 0.6 + up, 0.7 + up]) for name, up in rows.items()]).holds
    rows["paper"] = 0.09
    verdict = ABLATION.judge([cell(name, [0.5 + up, 0.6 + up, 0.7 + up]) for name, up in rows.items()])
    assert (verdict.holds, verdict.paragraph[:28]) == (False, "**The claim holds in part.**")


def test_the_sweep_changes_one_factor_or_all() -> None:
    one, whole = settings_of(whole=False), settings_of(whole=True)
    assert len(one) == len(set(one)) == 1 + sum(len(values) - 1 for values in GRID.values())
    assert all(sum(a != b for a, b in zip(setting.values, CHOSEN, strict=True)) <= 1 for setting in one)
    assert len(whole) == 4 * 4 * 3 * 4
    assert len(SWEEP.parts(Settings(seeds=2))) == 2 * len(one)
    assert one[1].recipe().score == 1.0


def test_the_sweep_is_judged_by_the_error_on_dev() -> None:
    head = {"dataset": "one", "encoder": "e", "seed": 0, "error": 0.01}
    cells = [{**head, "setting": list(s.values), "mean": 0.5 if s.values == CHOSEN else 0.505} for s in settings_of(whole=False)]
    assert SWEEP.judge(cells).holds
    cells[-1]["mean"] = 0.52
    assert not SWEEP.judge(cells).holds
    assert SWEEP.table(cells)[1][0][:4] == [f"{value:g}" for value in cells[-1]["setting"]]
