"""Does the paper's rotation raise the information rate γ, at which overtakers vanish as the prefix grows?

The same pairs of a test query and a relevant document before and after, those alone whose documents no label named.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..baselines.paper import REFLECTIONS, learned_rotation
from ..colours import SERIES
from ..data import Dataset
from ..evaluation.points import unseen_queries
from ..sufficiency import compare_rates
from ..sufficiency.figure import INK, MUTED, dress
from ..sufficiency.overtakers import required_widths
from ..training.pool import sample
from ..training.task import evenly
from . import verdicts
from .base import Cell, Claim, Experiment, Part, Settings, Verdict, label, refuse_rotation
from .methods import at_most


def parts(settings: Settings) -> list[Part]:
    """One per seed."""
    refuse_rotation(settings)
    head = {"train_queries": settings.train_queries, "queries": settings.queries, "smallest": settings.smallest}
    sources = ("experiments.rates:measure", "data:held_out")
    return [Part(f"rates seed {seed}", head, partial(measure, seed=seed, settings=settings), sources) for seed in range(settings.seeds)]


def measure(data: Dataset, seed: int, settings: Settings) -> dict[str, Any]:
    """Median rates before and after, and the interval of their difference."""
    learning, test = at_most(data.learning(seed=seed), settings.train_queries, seed), data.split("test")
    assert test.judged is not None  # a split has labels
    unseen = np.flatnonzero(unseen_queries(test.judged, learning.positives))
    asked = test.select(unseen[evenly(len(unseen), settings.queries)] if len(unseen) else unseen)
    head = {"seed": seed, "queries": len(asked)}
    if not len(asked):
        return {**head, "rates": None}
    rotation = learned_rotation(sample(learning, seed), REFLECTIONS, seed)
    before, after = (
        required_widths(data.documents, asked, turn, smallest=settings.smallest, chains=2, seed=seed) for turn in (None, rotation)
    )
    found = compare_rates(before, after)
    return {**head, "rates": found if found["pairs"] else None}


def table(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """One row per cell."""
    rows = []
    for cell in cells:
        found, row = cell["rates"], [label(cell), str(cell["seed"]), f"{cell['queries']:,}"]
        figures = ["–"] * 5 if found is None else [f"{found[name]:.4f}" for name in ("before", "after", "difference", "low", "high")]
        rows.append([*row, *figures, "–" if found is None else f"{100 * found['raised']:.0f} %"])
    return ["cell", "seed", "queries", "γ before", "γ after", "median difference", "from", "to", "raised"], rows


def judge(cells: Sequence[Cell]) -> Verdict:
    """The paper's claim: the rotation raises γ."""
    told = [cell for cell in cells if cell["rates"] is not None]
    if not told:
        return Verdict(False, "**Not tested.** No query about a document that labels did not name has a rate.")
    outcomes = [verdicts.above(cell["rates"]["low"], cell["rates"]["high"]) for cell in told]
    here = "; ".join(f"{label(cell)} {cell['rates']['before']:.4f} to {cell['rates']['after']:.4f}" for cell in told)
    data = f"{len(told)} cells, {sum(cell['rates']['pairs'] for cell in told):,} pairs of query and document"
    says = "The rotation raises the information rate γ of the same queries and documents"
    return verdicts.judged([Claim(says, "raised, without a figure", here, data, verdicts.together(outcomes))])


def draw(figure: Any, cells: Sequence[Cell]) -> None:
    """A row per cell: the median difference with its interval."""
    told = [cell for cell in cells if cell["rates"] is not None]
    figure.set_size_inches(7.4, 1.5 + 0.4 * len(told))
    axes = figure.add_subplot()
    middle, low, high = (np.array([cell["rates"][name] for cell in told], np.float64) for name in ("difference", "low", "high"))
    axes.errorbar(middle, range(len(told)), xerr=[middle - low, high - middle], fmt="o", color=SERIES[0][0], markersize=5)
    axes.axvline(0, color=MUTED, linewidth=1.1, linestyle=(0, (5, 3)))
    dress(axes, "information rate γ of the rotation, less that of the frozen axes")
    axes.set_yticks(range(len(told)), [f"{label(cell)}, seed {cell['seed']}" for cell in told])
    axes.invert_yaxis()
    axes.set_xlabel("median difference per coordinate, and its 95 % interval", color=INK)


DIFFERS = "The paper names the rate and gives no figure of it; here it is the slope of ln(overtakers / N) over the width, query by query."
RATES = Experiment("The information rate before and after the rotation", parts, table, judge, draw, differs=DIFFERS)
