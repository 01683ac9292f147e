"""Figures of the experiments: points stand where was read, bars end at the encoder, and pages say how they differ from the paper's."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from adawidth.experiments import ablation, curves, rates, stable_widths
from adawidth.experiments.reproduce import REGISTRY, experiment

WIDTHS = (64, 96, 128, 192, 256)


def method_cell(method: str, spent: float) -> dict[str, Any]:
    """A method that reads this share of the width that it is given."""
    points = [{"width": m, "mean_width": spent * m} for m in WIDTHS]
    quality = np.linspace(0.3, 0.5, len(WIDTHS))[:, None] + np.zeros((1, 4))
    head = {"dataset": "d", "encoder": "e", "encoder_width": 384, "documents": 9, "seed": 0, "frozen": 0.5, "asked": "x"}
    return {
        **head,
        "method": method,
        "parameters": 1,
        "fit_seconds": 1.0,
        "points": points,
        "quality": quality,
        "unseen": np.ones(4, np.bool_),
    }


@pytest.mark.parametrize("draw", [curves.draw, ablation.draw])
def test_a_point_stands_at_the_width_that_was_read(draw: Any) -> None:
    figure = Figure()
    draw(figure, [method_cell("truncation", 1.0), method_cell("paper", 0.75)])
    drawn = [line.get_xdata() for line in figure.axes[0].get_lines()]
    for share in (1.0, 0.75):
        assert any(len(x) == len(WIDTHS) and np.allclose(x, share * np.array(WIDTHS)) for x in drawn)


def stable_cell(width: int, bounds: list[int]) -> dict[str, Any]:
    bars = {"k": 10, "bounds": bounds, "shares": [1 / len(bounds)] * len(bounds), "no_stable_hit": 0.0}
    return {"dataset": "d", "encoder": str(width), "encoder_width": width, "k": 10, "bars": [bars]}


def test_no_bar_goes_beyond_the_encoder() -> None:
    to_512 = [16, 32, 64, 128, 256, 512]
    assert stable_widths._ends([stable_cell(384, to_512)]) == [16, 32, 64, 128, 256, 384]
    assert stable_widths._ends([stable_cell(256, to_512[:-1])]) == to_512[:-1]
    assert stable_widths._ends([stable_cell(384, to_512), stable_cell(768, [*to_512, 1024])]) == [*to_512, 768]


@pytest.mark.parametrize("name", [name for name in REGISTRY if name != "sweep"])
def test_every_figure_says_where_it_differs(name: str) -> None:
    assert experiment(name).differs.endswith(".")


@pytest.mark.parametrize(("low", "high", "outcome"), [(0.01, 0.02, "holds"), (-0.02, -0.01, "does not hold"), (-0.01, 0.01, "not shown")])
def test_the_verdict_on_rates(low: float, high: float, outcome: str) -> None:
    found = {"pairs": 30, "before": 0.03, "after": 0.04, "difference": (low + high) / 2, "low": low, "high": high, "raised": 0.6}
    cells = [{"dataset": "d", "encoder": "e", "seed": 0, "queries": 20, "rates": found}]
    assert rates.judge(cells).claims[0].verdict == outcome
    rates.draw(Figure(), cells)
    assert rates.judge([{**cells[0], "rates": None}]).paragraph.startswith("**Not tested.**")
