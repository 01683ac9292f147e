"""Every verdict rule on made-up data where the claim is true, false and undecided."""

from typing import Any
from zlib import crc32

import numpy as np
import pytest

from adawidth.experiments import verdicts
from adawidth.experiments.capacity import CAPACITY, REFLECTIONS, name_of
from adawidth.experiments.curves import COMPARED
from adawidth.experiments.margins import ratios, saved
from adawidth.experiments.methods import QUALITY, UNSEEN, Measured
from adawidth.experiments.scaling import SCALING, bounded_fit
from adawidth.experiments.verdicts import FAILS, HOLDS, IN_PART, OPEN
from adawidth.types import F64

WIDTHS = (32, 64, 128, 256)
QUERIES = 200


def cell(
    method: str, means: list[float], *, dataset: str = "one", encoder: str = "e", noise: float = 0.05, unseen: float = 0.0
) -> dict[str, Any]:
    """Queries around these means; the unseen half is `unseen` higher than the other."""
    rng = np.random.default_rng(crc32(f"{method} {dataset} {encoder}".encode()))
    half = np.arange(QUERIES) < QUERIES // 2
    quality = np.asarray(means)[:, None] + rng.normal(0, noise, QUERIES) + np.where(half, unseen, 0.0)
    head = {"dataset": dataset, "encoder": encoder, "encoder_width": 256, "documents": 1_000, "frozen": 0.7, "asked": dataset}
    points = [{"width": m, "mean_width": m} for m in WIDTHS]
    return {**head, "method": method, "seed": 0, "parameters": 7, "fit_seconds": 1.0, "points": points, QUALITY: quality, UNSEEN: half}


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(0.1, 0.2, HOLDS), (-0.2, -0.1, FAILS), (-0.1, 0.1, OPEN), (None, 0.1, OPEN), (0.1, None, HOLDS), (None, -0.1, FAILS)],
)
def test_a_quantity_above_a_bar(low: float | None, high: float | None, outcome: str) -> None:
    assert verdicts.above(low, high) == outcome


@pytest.mark.parametrize(
    ("outcomes", "whole"),
    [
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, FAILS], IN_PART),
        ([HOLDS, OPEN], IN_PART),
        ([FAILS, OPEN], FAILS),
        ([OPEN, OPEN, IN_PART], OPEN),
        ([OPEN, OPEN], OPEN),
        ([], OPEN),
    ],
)
def test_a_claim_of_several_parts(outcomes: list[Any], whole: str) -> None:
    assert verdicts.together(outcomes) == whole


@pytest.mark.parametrize(("gap", "noise", "outcome"), [(0.05, 0.05, HOLDS), (-0.05, 0.05, FAILS), (0.001, 0.3, OPEN)])
def test_ahead(gap: float, noise: float, outcome: str) -> None:
    base = [0.3, 0.4, 0.5, 0.5]
    found = Measured([cell("ours", [m + gap for m in base], noise=noise), cell("a", base, noise=noise), cell("b", base, noise=noise)])
    assert verdicts.ahead(found, "ours", ["a", "b"])[0] == outcome


def test_ahead_on_seen_queries_alone_does_not_hold() -> None:
    cells = [cell("ours", [0.5] * 4, unseen=-0.3), cell("a", [0.4] * 4)]
    assert verdicts.ahead(Measured(cells), "ours", ["a"])[1][0]["mean"] == pytest.approx(-0.05, abs=0.02)
    assert verdicts.ahead(Measured(cells, unseen=True), "ours", ["a"])[0] == FAILS
    assert len(Measured(cells, unseen=True).values(("one", "e"), "ours", 64)) == QUERIES // 2


def test_a_pair_without_unseen_queries_is_left_out_of_the_unseen() -> None:
    cells = [cell("ours", [0.5] * 4), {**cell("ours", [0.5] * 4, dataset="two"), UNSEEN: np.zeros(QUERIES, bool)}]
    assert Measured(cells, unseen=True).pairs == [("one", "e")]


def test_nearly_everywhere() -> None:
    often, seldom = ({"ahead_below_full_width": count, "of_below_full_width": 10} for count in (9, 5))
    assert verdicts.nearly_everywhere([often, often]) == HOLDS
    assert verdicts.nearly_everywhere([often, seldom]) == IN_PART
    assert verdicts.nearly_everywhere([seldom]) == FAILS


@pytest.mark.parametrize(("last", "noise", "outcome"), [(0.5, 0.01, HOLDS), (0.6, 0.01, FAILS), (0.5, 0.5, OPEN)])
def test_flat(last: float, noise: float, outcome: str) -> None:
    cells = [cell(f"F{i}", [0.5] * 4, noise=noise) for i in range(3)] + [cell("F3", [last] * 4, noise=noise)]
    found, (largest, best, _) = verdicts.flat(Measured(cells), [f"F{i}" for i in range(4)], 0.02)
    assert found == outcome
    if outcome == FAILS:
        assert largest == pytest.approx(0.1, abs=0.01)
        assert best == "F3"


def anchored(ours: list[float], rival: list[float]) -> dict[str, Any]:
    found = Measured([cell("ours", ours, noise=0.002), cell("rival", rival, noise=0.002)])
    return next(entry for entry in ratios(found, "ours", "rival") if entry["width"] == 64)


def test_width_ratios_are_bounds_where_a_rival_never_gets_there_or_starts_there() -> None:
    reached = anchored([0.3, 0.5, 0.6, 0.7], [0.2, 0.3, 0.5, 0.7])
    assert reached["at_least"] == pytest.approx(2, rel=0.05)
    assert reached["at_most"] == pytest.approx(2, rel=0.05)
    assert [verdicts.ratio(reached, value) for value in (1.5, 3.0)] == [HOLDS, FAILS]
    never = anchored([0.3, 0.9, 0.9, 0.9], [0.2, 0.3, 0.5, 0.7])
    assert (never["at_least"], never["at_most"], never["never"]) == (pytest.approx(4), None, ["one e"])
    assert [verdicts.ratio(never, value) for value in (3.0, 6.0)] == [HOLDS, OPEN]
    before = anchored([0.1, 0.15, 0.6, 0.7], [0.2, 0.3, 0.5, 0.7])
    assert (before["at_least"], before["at_most"]) == (None, pytest.approx(0.5))
    assert [verdicts.ratio(before, value) for value in (0.4, 1.2)] == [OPEN, FAILS]


def test_saved_charges_the_full_width_where_we_never_get_there() -> None:
    found = Measured([cell("ours", [0.3, 0.4, 0.5, 0.6], noise=0.0), cell("rival", [0.9] * 4, noise=0.0)])
    entry = saved(found, "ours", "rival")
    assert entry["mean"] == pytest.approx(np.mean([1 - 256 / m for m in WIDTHS]))
    assert (entry["never"], entry["of"]) == (4, 4)
    assert entry["low"] <= entry["mean"] <= entry["high"]


def test_a_query_under_two_encoders_counts_once() -> None:
    """The interval of the same queries twice is as wide as that of them once."""
    values = {encoder: [cell(m, [up] * 4, noise=0.2) for m, up in (("ours", 0.5), ("a", 0.45))] for encoder in "e"}["e"]
    copies = [{**one, "encoder": "f"} for one in values]
    (_, (once,)), (_, (twice,)) = (verdicts.ahead(Measured(cells), "ours", ["a"]) for cells in (values, values + copies))
    assert twice["high"] - twice["low"] == pytest.approx(once["high"] - once["low"])


@pytest.mark.parametrize(
    ("r2", "missed", "known", "outcome"),
    [
        (0.95, 0.05, 0.9, HOLDS),
        (0.95, 0.3, 0.9, IN_PART),
        (0.95, 0.05, 0.3, OPEN),
        (0.7, 0.05, 0.9, FAILS),
        (0.7, None, 0.2, OPEN),
        (None, None, 0.1, OPEN),
    ],
)
def test_the_law(r2: float | None, missed: float | None, known: float, outcome: str) -> None:
    assert verdicts.law(r2, missed, known) == outcome


def tailed(kind: str, count: int) -> F64:
    rng = np.random.default_rng(0)
    drawn = 16 * (1 + rng.pareto(1.2, count)) if kind == "power" else 16 + rng.exponential(60, count)
    return np.where(drawn > 1_024, np.inf, drawn)


def test_heavy_tails() -> None:
    assert verdicts.heavy(tailed("power", 4_000), 1_024)[0] == HOLDS
    assert verdicts.heavy(tailed("exponential", 4_000), 1_024)[0] == FAILS
    assert verdicts.heavy(tailed("power", 30), 1_024)[0] == OPEN
    assert verdicts.heavy(np.full(50, np.inf), 1_024) == (OPEN, 0.0)


def test_spread() -> None:
    assert verdicts.spread(tailed("power", 4_000))[0] == HOLDS
    assert verdicts.spread(100 + np.arange(100.0) / 10)[0] == FAILS
    assert verdicts.spread(np.array([*[50.0] * 20, *[100.0] * 2, *[101.0] * 2]))[0] == OPEN
    assert verdicts.spread(np.full(50, np.inf))[0] == OPEN


@pytest.mark.parametrize(("unseen", "outcome"), [(0.0, FAILS), (1.0, HOLDS)])
def test_capacity_is_judged_on_unseen_queries(unseen: float, outcome: str) -> None:
    """More reflections remember more seen documents; on the others they may be alike."""
    rows = {name_of(f): 0.03 * i for i, f in enumerate(REFLECTIONS)} | dict.fromkeys(COMPARED, -0.2)
    cells = [cell(name, [0.5 + up] * 4, noise=0.001, unseen=-up * unseen) for name, up in rows.items()]
    flat, _ = CAPACITY.judge(cells).claims
    assert flat.verdict == outcome


def scaled(power: float, end: float) -> dict[str, Any]:
    """Required widths that grow as ln N, or as a power of it, undefined above the encoder width."""
    sizes, depths = [500 * 2**i for i in range(7)], [1, 3, 10, 30]
    widths = [[20 * np.log(n / 100) ** power - 10 * np.log(k) + 30 for k in depths] for n in sizes]
    shown = [[width if width <= end else None for width in row] for row in widths]
    at = {
        "quantile": 0.9,
        "defined": sum(v is not None for row in shown for v in row),
        "widths": shown,
        "law": {"missed": 0.02, "best_form": "logarithm"},
    }
    return {
        "dataset": "one",
        "encoder": "e",
        "encoder_width": int(end),
        "documents": 64_000,
        "sizes": sizes,
        "depths": depths,
        "quantiles": [at],
    }


@pytest.mark.parametrize(("power", "end", "outcome"), [(1.0, 400, HOLDS), (1.0, 75, OPEN), (4.0, 100_000, FAILS)])
def test_the_width_law_with_undefined_cells_as_bounds(power: float, end: float, outcome: str) -> None:
    assert SCALING.judge([scaled(power, end)]).claims[0].verdict == outcome


def test_a_law_below_the_encoder_width_is_charged_for_undefined_cells() -> None:
    found = scaled(1.0, 400)
    bounded = bounded_fit(found)
    assert (bounded["b"], bounded["c"], bounded["r2"]) == pytest.approx((20, -10, 1))
    found["quantiles"][0]["widths"][-1] = [None] * 4  # said to be above 400, where the law says 150
    assert bounded_fit(found)["r2"] < 0.9
