"""The paper's sweep of its loss weights and temperatures, judged on dev queries: one factor at a time, or the whole grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ..colours import LINE, SERIES
from ..data import Dataset
from ..rotation import Rotation
from ..sufficiency.figure import INK, dress
from ..training.pool import sample
from ..training.recipes import PAPER, Recipe
from ..training.rotation import learn
from ..training.task import Task
from . import verdicts
from .base import Cell, Claim, Experiment, Part, Settings, Verdict, pairs, refuse_rotation
from .methods import at_most

GRID = {"λ₁": (1.0, 2.0, 4.0, 8.0), "λ₂": (1.0, 2.0, 4.0, 8.0), "θ": (0.02, 0.05, 0.1), "θ_b": (0.02, 0.05, 0.1, 0.2)}
FACTORS = tuple(GRID)
CHOSEN = (2.0, 8.0, 0.05, 0.05)  # by the paper, for everything


@dataclass(frozen=True)
class Setting:
    """Loss weights λ₁ (score) and λ₂ (geometry), temperatures θ (rank) and θ_b (difficulty)."""

    score: float
    geometry: float
    theta: float
    theta_b: float

    def recipe(self) -> Recipe:
        """The paper's with these numbers."""
        return replace(PAPER, score=self.score, geometry=self.geometry, theta=self.theta, theta_b=self.theta_b)

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:g}" for name, value in zip(FACTORS, self.values, strict=True))

    @property
    def values(self) -> tuple[float, ...]:
        """In the order of FACTORS."""
        return self.score, self.geometry, self.theta, self.theta_b


def settings_of(whole: bool) -> list[Setting]:
    """The whole grid, or the paper's choice and every change of one number."""
    if whole:
        return [Setting(*values) for values in product(*GRID.values())]
    changed = [(*CHOSEN[:i], value, *CHOSEN[i + 1 :]) for i, name in enumerate(FACTORS) for value in GRID[name]]
    return [Setting(*values) for values in dict.fromkeys([CHOSEN, *changed])]


def parts(settings: Settings) -> list[Part]:
    """Every setting with every seed."""
    refuse_rotation(settings)
    return [_part(setting, seed, settings) for seed in range(settings.seeds) for setting in settings_of(settings.whole_grid)]


def _part(setting: Setting, seed: int, settings: Settings) -> Part:
    numbers = " ".join(f"{value:g}" for value in setting.values)
    head = {"train_queries": settings.train_queries}
    sources = ("experiments.sweep:_measure", "data:held_out")
    return Part(f"sweep {numbers} seed {seed}", head, lambda data: _measure(data, setting, seed, settings.train_queries), sources)


def _measure(data: Dataset, setting: Setting, seed: int, train_queries: int) -> dict[str, Any]:
    pool = sample(at_most(data.learning(seed=seed), train_queries, seed), seed)
    task = Task.of(pool, width=64, shortlist=500)
    learned = learn(setting.recipe(), Rotation.identity(task.width), task, seed)
    dev = task.dev_curve(learned.rotation)
    return {
        "setting": list(setting.values),
        "seed": seed,
        "dev_queries": len(task.dev),
        "steps": learned.steps,
        "dev": {str(m): round(float(values.mean()), 4) for m, values in dev.items()},
        "mean": round(float(np.mean([values.mean() for values in dev.values()])), 4),
        "error": round(float(np.mean(list(dev.values()), axis=0).std(ddof=1)) / max(len(task.dev), 1) ** 0.5, 4),
    }


def table(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """Settings down, best first; pairs across: mean on dev over widths and seeds, with the spread over the seeds."""
    everywhere, settings = pairs(cells), list(dict.fromkeys(tuple(cell["setting"]) for cell in cells))
    ordered = sorted(settings, key=lambda setting: -_overall(cells, setting))
    rows = [[*(f"{v:g}" for v in s), f"{_overall(cells, s):.4f}", *(_shown(cells, s, pair) for pair in everywhere)] for s in ordered]
    return [*FACTORS, "mean", *(", ".join(pair) for pair in everywhere)], rows


def judge(cells: Sequence[Cell]) -> Verdict:
    """The paper's claim: one setting does for every encoder and collection. One standard error behind is no loss, two are one."""
    everywhere, settings = pairs(cells), list(dict.fromkeys(tuple(cell["setting"]) for cell in cells))
    best = max(settings, key=lambda setting: _overall(cells, setting))
    lost = {pair: (max(_mean(cells, s, pair) for s in settings) - _mean(cells, CHOSEN, pair), _error(cells, pair)) for pair in everywhere}
    outcomes = [verdicts.HOLDS if gap <= error else verdicts.FAILS if gap > 2 * error else verdicts.OPEN for gap, error in lost.values()]
    here = "; ".join(f"{', '.join(pair)} {gap:.4f} behind the best (standard error {error:.4f})" for pair, (gap, error) in lost.items())
    seeds = len({cell["seed"] for cell in cells})
    data = f"{len(settings)} settings, {', '.join(' '.join(pair) for pair in everywhere)}, {seeds} seed{'s' if seeds > 1 else ''}, on dev"
    return verdicts.judged(
        [
            Claim(
                f"One setting of the loss does for everything ({Setting(*CHOSEN)})",
                "swept on two collections",
                here,
                data,
                verdicts.together(outcomes),
            )
        ],
        f"Over all pairs the best is {Setting(*best)}: {_overall(cells, best):.4f}, the paper's {_overall(cells, CHOSEN):.4f}.",
    )


def draw(figure: Any, cells: Sequence[Cell]) -> None:
    """A panel per factor: what changing it alone does to the mean on dev, one line per pair."""
    everywhere = pairs(cells)
    figure.set_size_inches(2.2 + 3.0 * len(FACTORS), 4.2)
    first = None
    for i, factor in enumerate(FACTORS):
        first = axes = figure.add_subplot(1, len(FACTORS), i + 1, sharey=first)
        for number, pair in enumerate(everywhere):
            values = [_mean(cells, (*CHOSEN[:i], value, *CHOSEN[i + 1 :]), pair) - _mean(cells, CHOSEN, pair) for value in GRID[factor]]
            axes.plot(
                range(len(values)), values, color=SERIES[number % len(SERIES)][0], marker="o", markersize=4.5, linewidth=1.8,
                label=", ".join(pair) if i == 0 else None,
            )  # fmt: skip
        axes.axvline(GRID[factor].index(CHOSEN[i]), color=LINE, linewidth=1, linestyle=(0, (5, 3)), zorder=1)
        axes.set_xticks(range(len(GRID[factor])), [f"{value:g}" for value in GRID[factor]])
        dress(axes, factor)
    figure.supylabel("dev nDCG@10, less the paper's setting (dashed)", color=INK, fontsize=10.5)
    figure.legend(loc="outside right center", frameon=False, labelcolor=INK)


def _of(cells: Sequence[Cell], setting: Sequence[float], pair: tuple[str, str]) -> list[Cell]:
    return [cell for cell in cells if tuple(cell["setting"]) == tuple(setting) and (cell["dataset"], cell["encoder"]) == pair]


def _mean(cells: Sequence[Cell], setting: Sequence[float], pair: tuple[str, str]) -> float:
    return float(np.mean([cell["mean"] for cell in _of(cells, setting, pair)]))


def _overall(cells: Sequence[Cell], setting: Sequence[float]) -> float:
    return float(np.mean([_mean(cells, setting, pair) for pair in pairs(cells)]))


def _error(cells: Sequence[Cell], pair: tuple[str, str]) -> float:
    """Standard error of a dev mean there."""
    return float(np.mean([cell["error"] for cell in _of(cells, CHOSEN, pair)]))


def _shown(cells: Sequence[Cell], setting: Sequence[float], pair: tuple[str, str]) -> str:
    values = [cell["mean"] for cell in _of(cells, setting, pair)]
    spread = f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{spread}"


SWEEP = Experiment("Loss weights and temperatures", parts, table, judge, draw)
