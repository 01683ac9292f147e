"""The paper's ablation: its router alone, its rotation alone, and both, beside the methods it compares with.

At the ends of the router's range the routed policy is the fixed one by definition, so that rows may differ only in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from ..baselines import Baseline
from ..baselines.paper import Paper
from ..data import Learning
from ..sufficiency.figure import INK
from ..training.fit import fit_model
from .base import Cell, Experiment, Part, Settings, Verdict, dress, interval, log_widths, refuse_rotation, verdict
from .capacity import name_of, rotation_part
from .curves import COMPARED, OURS
from .margins import margin
from .methods import Measured, method_part, method_parts

WIDTHS = (64, 96, 128, 192, 256)
REFLECTIONS = 64  # of the paper
ROUTER_ONLY = "router only"
ROTATION_ONLY = name_of(REFLECTIONS)
NAMES = {ROTATION_ONLY: "rotation only", "paper": "rotation and router"}


class RouterOnly(Paper):
    """The paper's router over the frozen axes."""

    parameters = 0

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Fits the router; returns itself."""
        found = fit_model(learning, recipe="identity", seed=seed)
        self.rotation, self.router = found.rotation, found.policies.router
        return self


def parts(settings: Settings) -> list[Part]:
    """Every row with every seed."""
    refuse_rotation(settings)
    own = [
        part
        for seed in range(settings.seeds)
        for part in (method_part(ROUTER_ONLY, seed, settings, partial(_fitted, seed)), rotation_part(REFLECTIONS, seed, settings))
    ]
    return [*method_parts(("truncation", *COMPARED), settings), *own, *method_parts(("paper", *OURS), settings)]


def _fitted(seed: int, learning: Learning) -> Baseline:
    return RouterOnly().fit(learning, seed)


def table(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """Rows down, widths across, mean over the pairs."""
    found = Measured(cells)
    widths = _widths(found)
    rows = [
        [NAMES.get(method, method), *(f"{found.overall(method, m):.4f}" for m in widths), f"{_mean(found, method, widths):.4f}"]
        for method in found.methods
    ]
    return ["", *map(str, widths), "mean"], rows


def judge(cells: Sequence[Cell]) -> Verdict:
    """The paper's claims: the rotation brings most of the gain, and the router adds to it."""
    found = Measured(cells)
    widths = _widths(found)
    means = {method: _mean(found, method, widths) for method in found.methods}
    rotation, alone = means[ROTATION_ONLY] - means["truncation"], means[ROUTER_ONLY] - means["truncation"]
    added, gained = margin(found, "paper", ROTATION_ONLY), margin(found, ROUTER_ONLY, "truncation")
    return verdict(
        rotation > alone and added["low"] > 0,
        rotation > alone,
        "The paper finds that its rotation brings most of the gain (+.209 over truncation), the router +.013 alone and +.0013 on top.",
        f"Here, over {len(found.pairs)} dataset-encoder pairs, the rotation brings {rotation:+.4f} and the router alone {alone:+.4f} "
        f"at widths {widths[0]} to {widths[-1]}.",
        f"All widths counted, the router adds {interval(added)} on top of the rotation and {interval(gained)} alone; predictor and "
        "threshold are chosen on dev.",
    )


def draw(figure: Any, cells: Sequence[Cell]) -> None:
    """Mean nDCG@10 over the widths, one line a row."""
    found = Measured(cells)
    widths = _widths(found)
    figure.set_size_inches(8.2, 4.6)
    axes = figure.add_subplot()
    colours = {"truncation": "#98a2b3", ROUTER_ONLY: "#4a5568", ROTATION_ONLY: "#2f9e8f", "paper": "#3b6fd4"}
    colours |= {"adawidth": "#d9480f", "adawidth-query": "#8a4fbf"}
    for method in found.methods:
        dashed = method in COMPARED
        axes.plot(
            widths, [found.overall(method, m) for m in widths], marker="o", markersize=4, linewidth=1.4 if dashed else 2,
            color=colours.get(method, "#b8bec8"), linestyle=(0, (4, 2)) if dashed else "-", label=NAMES.get(method, method),
        )  # fmt: skip
    axes.set_xlabel("mean width", color=INK)
    axes.set_ylabel("nDCG@10, mean over the pairs", color=INK)
    log_widths(axes, widths)
    dress(axes, "")
    figure.legend(loc="outside right center", frameon=False, labelcolor=INK)


def _widths(found: Measured) -> list[int]:
    """The paper's, as far as all pairs have them."""
    return [m for m in WIDTHS if m in found.widths()] or found.widths()


def _mean(found: Measured, method: str, widths: Sequence[int]) -> float:
    return float(np.mean([found.overall(method, m) for m in widths]))


ABLATION = Experiment("Router alone, rotation alone, both", parts, table, judge, draw)
