"""The paper's ablation: its router alone, its rotation alone, and both, beside the methods it compares with.

At the ends of the router's range the routed policy is the fixed one by definition, so that rows may differ only in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..baselines import Baseline
from ..baselines.paper import REFLECTIONS, RouterOnly
from ..colours import DASHES, SERIES, Style, style_of
from ..data import Learning
from ..sufficiency.figure import INK, dress
from . import verdicts
from .base import Cell, Claim, Experiment, Part, Settings, Verdict, interval, log_widths, refuse_rotation
from .capacity import name_of, rotation_part
from .curves import COMPARED, OURS
from .margins import margin
from .methods import Measured, method_part, method_parts

WIDTHS = (64, 96, 128, 192, 256)
ROUTER_ONLY = "router only"
ROTATION_ONLY = name_of(REFLECTIONS)
DRAWN = {ROUTER_ONLY: "truncation:router", ROTATION_ONLY: "paper:rotation"}  # as variants of these
NAMES = {ROTATION_ONLY: "rotation only", "paper": "rotation and router"}


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
    found = Measured(cells, unseen=True)
    if not found.pairs:
        return Verdict(False, "**Not tested.** No query is about a document that labels did not name.")
    rows = [
        ("The rotation brings more than the router", "+.209 against +.013", ROTATION_ONLY, ROUTER_ONLY),
        ("The rotation gains over truncation", "+.209", ROTATION_ONLY, "truncation"),
        ("The router alone gains over truncation", "+.0131", ROUTER_ONLY, "truncation"),
        ("The router adds to the rotation", "+.0013", "paper", ROTATION_ONLY),
    ]
    every = Measured(cells)
    claims = []
    for says, paper, ours, other in rows:
        entry = margin(found, ours, other)
        here = f"{interval(entry)}, all queries {margin(every, ours, other)['mean']:+.4f}"
        claims.append(Claim(says, paper, here, found.described, verdicts.above(entry["low"], entry["high"])))
    return verdicts.judged(claims)


def draw(figure: Any, cells: Sequence[Cell]) -> None:
    """Mean nDCG@10 over the widths, one line per row."""
    found = Measured(cells)
    widths = _widths(found)
    figure.set_size_inches(8.2, 4.6)
    axes = figure.add_subplot()
    for method in found.methods:
        style = style_of(DRAWN.get(method, method)) or Style(1)
        spent, means = ([figure_of(method, m) for m in widths] for figure_of in (partial(_spent, found), found.overall))
        axes.plot(
            spent, means, marker="o", markersize=4, linewidth=1.4 if method in COMPARED else 2,
            color=SERIES[style.colour][0], linestyle=DASHES[style.dashes], label=NAMES.get(method, method),
        )  # fmt: skip
    axes.set_xlabel("mean width", color=INK)
    axes.set_ylabel("nDCG@10, mean over the pairs", color=INK)
    log_widths(axes, widths)
    dress(axes, "")
    figure.legend(loc="outside right center", frameon=False, labelcolor=INK)


def _widths(found: Measured) -> list[int]:
    """The paper's, as far as all pairs have them."""
    return [m for m in WIDTHS if m in found.widths()] or found.widths()


def _spent(found: Measured, method: str, width: int) -> float:
    """The mean width that was read, mean over the pairs."""
    return float(np.mean([found.spent(pair, method, width) for pair in found.pairs]))


def _mean(found: Measured, method: str, widths: Sequence[int]) -> float:
    return float(np.mean([found.overall(method, m) for m in widths]))


DIFFERS = (
    "In the paper's table the router differs from truncation at 64 too, the end of its range, where by its own rule both are one "
    "policy; here they are equal."
)
ABLATION = Experiment("Router alone, rotation alone, both", parts, table, judge, draw, differs=DIFFERS)
