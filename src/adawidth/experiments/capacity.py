"""The paper's table of quality against the number of reflections F, with parameter counts, beside the methods it compares with.

The rotation alone at fixed widths, learned by the paper's recipe from the frozen axes; F goes on beyond the paper's 128 to the
encoder width.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..baselines import Baseline
from ..baselines.paper import PaperRotation
from ..colours import SERIES
from ..data import Learning
from ..sufficiency.figure import INK, dress
from . import verdicts
from .base import Cell, Claim, Experiment, Part, Settings, Verdict, interval, log_widths, refuse_rotation
from .curves import COMPARED
from .margins import margin
from .methods import Measured, method_part, method_parts

REFLECTIONS = (8, 16, 32, 64, 128, 256)
INSENSITIVE = 0.02  # nDCG@10 between the best and the worst F that still counts as no difference; the paper finds .0103 up to 128
SPAN = tuple(f for f in REFLECTIONS if f <= 128)  # of the paper


def name_of(reflections: int) -> str:
    """What a row is called."""
    return f"F = {reflections}"


def rotation_part(reflections: int, seed: int, settings: Settings) -> Part:
    """The paper's rotation, which `ablation` measures too."""
    return method_part(name_of(reflections), seed, settings, partial(_fitted, reflections, seed))


def _fitted(reflections: int, seed: int, learning: Learning) -> Baseline:
    return PaperRotation(reflections).fit(learning, seed)


def parts(settings: Settings) -> list[Part]:
    """Every F with every seed, and the methods that the paper sets beside them."""
    refuse_rotation(settings)
    rotations = [rotation_part(f, seed, settings) for seed in range(settings.seeds) for f in REFLECTIONS]
    return [*rotations, *method_parts(COMPARED, settings)]


def table(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """One row per configuration: parameters (mean over the pairs) and nDCG@10, mean over pairs and widths, with the seeds' spread."""
    found = Measured(cells)
    rows = []
    for method in (*COMPARED, *map(name_of, REFLECTIONS)):
        parameters = np.mean([cell["parameters"] for cell in found.cells if cell["method"] == method])
        at_widths = [f"{found.overall(method, m):.4f}" for m in found.widths()]
        rows.append([method, f"{parameters:,.0f}", f"{_mean(found, method):.4f}", *at_widths])
    return ["configuration", "parameters", "mean", *map(str, found.widths())], rows


def judge(cells: Sequence[Cell]) -> Verdict:
    """The paper's claims: F hardly matters from 8 to 128, and every F is ahead of every method it compares with."""
    found, unseen = Measured(cells), Measured(cells, unseen=True)
    if not unseen.pairs:
        return Verdict(False, "**Not tested.** No query is about a document that labels did not name.")
    names, data = [name_of(f) for f in SPAN], unseen.described
    outcome, (largest, best, worst) = verdicts.flat(unseen, names, INSENSITIVE)
    over_all = [_mean(found, name) for name in names]
    here = f"{largest:.4f} between {best} and {worst}; all queries {max(over_all) - min(over_all):.4f}"
    rival = max(COMPARED, key=lambda method: _mean(unseen, method))
    entries = [margin(unseen, name, rival) for name in names]
    leads = "; ".join(f"{entry['method']} {interval(entry)}" for entry in entries)
    ahead = verdicts.together([verdicts.above(entry["low"], entry["high"]) for entry in entries])
    claims = [
        Claim(f"From 8 to 128 reflections nDCG@10 hardly changes (by {INSENSITIVE:g} at most)", ".0103", here, data, outcome),
        Claim(f"Every number of reflections is ahead of the strongest rival, here {rival}", "+.0701 at least", leads, data, ahead),
    ]
    return verdicts.judged(claims)


def draw(figure: Any, cells: Sequence[Cell]) -> None:
    """nDCG@10 over F, one line per pair, the compared methods as marks at the right."""
    found = Measured(cells)
    figure.set_size_inches(8.2, 4.6)
    axes = figure.add_subplot()
    for number, pair in enumerate(found.pairs):
        values = [np.mean([found.mean(pair, name_of(f), m) for m in found.widths(pair)]) for f in REFLECTIONS]
        colour = SERIES[number % len(SERIES)][0]
        axes.plot(REFLECTIONS, values, color=colour, marker="o", markersize=4.5, linewidth=1.8, label=", ".join(pair))
        rival = max(np.mean([found.mean(pair, method, m) for m in found.widths(pair)]) for method in COMPARED)
        axes.plot(REFLECTIONS[-1] * 1.35, rival, color=colour, marker="D", markersize=6)
    axes.set_xlabel("reflections F   (◆ the best of the methods compared with)", color=INK)
    axes.set_ylabel("nDCG@10, mean over the widths", color=INK)
    log_widths(axes, REFLECTIONS)
    dress(axes, "")
    figure.legend(loc="outside right center", frameon=False, labelcolor=INK)


def _mean(found: Measured, method: str) -> float:
    return float(np.mean([found.overall(method, m) for m in found.widths()]))


DIFFERS = "The paper's table ends at 128 reflections; here it goes on to 256."
CAPACITY = Experiment("Quality against the number of reflections", parts, table, judge, draw, differs=DIFFERS)
