"""The paper's table of quality against the number of reflections F, with parameter counts, beside the methods it compares with.

The rotation alone at fixed widths, learned by the paper's recipe from the frozen axes; F goes on beyond the paper's 128 to the
encoder width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..baselines import Baseline, Rotated
from ..data import Learning
from ..rotation import Rotation
from ..sufficiency.figure import INK
from ..training.pool import sample
from ..training.recipes import PAPER
from ..training.rotation import learn
from ..training.task import Task
from .base import Cell, Experiment, Part, Settings, Verdict, dress, interval, log_widths, refuse_rotation, verdict
from .curves import COMPARED
from .margins import margin
from .methods import Measured, method_part, method_parts

REFLECTIONS = (8, 16, 32, 64, 128, 256)
INSENSITIVE = 0.02  # nDCG@10 between the best and the worst F that still counts as no difference; the paper finds .0103 up to 128
SPAN = tuple(f for f in REFLECTIONS if f <= 128)  # of the paper


class PaperRotation(Rotated):
    """The paper's rotation with so many reflections, at most the encoder width."""

    def __init__(self, reflections: int) -> None:
        super().__init__()
        self.reflections = reflections

    def _found(self, learning: Learning, seed: int) -> Rotation:
        task = Task.of(sample(learning, seed), width=64, shortlist=500)
        recipe = replace(PAPER, reflections=min(self.reflections, learning.documents.width // 2 * 2))
        return learn(recipe, Rotation.identity(learning.documents.width), task, seed).rotation

    @property
    def parameters(self) -> int:
        """The reflections' directions."""
        return 0 if self.rotation is None else min(self.reflections, self.rotation.width) * self.rotation.width


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
    found = Measured(cells)
    means = {f: _mean(found, name_of(f)) for f in REFLECTIONS}
    span = max(means[f] for f in SPAN) - min(means[f] for f in SPAN)
    rivals = {method: _mean(found, method) for method in COMPARED}
    best = max(rivals, key=lambda method: rivals[method])
    ahead = [f for f in SPAN if means[f] > rivals[best]]
    flat, top = span <= INSENSITIVE, max(means, key=lambda f: means[f])
    return verdict(
        flat and len(ahead) == len(SPAN),
        flat or bool(ahead),
        "The paper finds that from 8 to 128 reflections nDCG@10 changes by .0103 and that every one of them is ahead of every method it "
        "compares with, by .0701 at least.",
        f"Here it changes by {span:.4f}; the best is F = {top} ({means[top]:.4f}), F = {SPAN[0]} has {means[SPAN[0]]:.4f}; {len(ahead)} of "
        f"{len(SPAN)} are ahead of {best} ({rivals[best]:.4f}).",
        f"F = {top} against {best}, over {len(found.pairs)} dataset-encoder pairs: {interval(margin(found, name_of(top), best))}.",
    )


def draw(figure: Any, cells: Sequence[Cell]) -> None:
    """nDCG@10 over F, one line per pair, the compared methods as marks at the right."""
    found = Measured(cells)
    figure.set_size_inches(8.2, 4.6)
    axes = figure.add_subplot()
    colours = ("#d9480f", "#8a4fbf", "#2f9e8f", "#3b6fd4", "#b58900", "#c2255c", "#5c7c3a", "#4a5568")
    for number, pair in enumerate(found.pairs):
        values = [np.mean([found.mean(pair, name_of(f), m) for m in found.widths(pair)]) for f in REFLECTIONS]
        colour = colours[number % len(colours)]
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


CAPACITY = Experiment("Quality against the number of reflections", parts, table, judge, draw)
