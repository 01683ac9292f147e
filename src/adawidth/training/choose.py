"""Choosing a rotation on dev queries: closed forms first, then a few learned ones; what ships is never worse on dev than a closed form.

Every trial is recorded with its dev figures. Test queries have no way in: a Task is made of train and dev alone.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace

from .. import record
from ..data import Learning
from ..errors import OptionError
from ..progress import progress
from ..rotation import Rotation
from .extras import installed, require
from .ground import Ground
from .kyfan import best_kyfan, margin_matrix
from .pool import together
from .ranking import DevCurve
from .recipes import CLOSED_FORMS, LABELLED, PAPER, UNLABELLED, Recipe
from .task import Task, mean, means

RECIPES = ("auto", "paper", *CLOSED_FORMS)
FEWEST_QUERIES = 32  # with fewer usable train queries nothing is learned by gradient
SLACK = 2.0  # standard errors by which a learned rotation may trail a closed form at one width, on dev

log = logging.getLogger("adawidth")


@dataclass(frozen=True, eq=False)
class RotationTrial:
    """One rotation tried, with its dev curve; `recipe` is None for a closed form."""

    name: str
    rotation: Rotation
    curve: DevCurve
    recipe: Recipe | None = None
    start: Rotation | None = None  # the closed form it was learned from
    step: int = 0
    steps: int = 0
    detail: str = ""

    def recorded(self) -> record.Trial:
        """As the card shows it."""
        return record.Trial(self.name, means(self.curve), self.steps, self.step, self.detail)


@dataclass(frozen=True, eq=False)
class Choice:
    """The trial that ships, all that were tried, and why."""

    chosen: RotationTrial
    trials: tuple[RotationTrial, ...]
    reason: str


def check_recipe(recipe: str) -> None:
    """Refuses an unknown recipe, and one that only learns where PyTorch is not installed."""
    if recipe not in RECIPES:
        raise OptionError(f"there is no recipe {recipe!r}; there are {', '.join(RECIPES)}")
    if recipe == "paper":
        require("torch")


def choose_rotation(
    ground: Ground, *, recipe: str = "auto", reflections: int | None = None, widths: tuple[int, ...] | None = None, seed: int = 0
) -> Choice:
    """Tries what the recipe names and takes the best on dev. Rotations are those of the ground's span, but for `identity`."""
    if not len(ground.pool.train) or not len(ground.pool.dev):
        return _without_queries(ground, recipe)
    task = ground.task()
    if recipe == "identity" or recipe == "pca":
        rotation = ground.span.axes if recipe == "pca" else Rotation.identity(ground.span.pca.width)
        trial = RotationTrial(recipe, rotation, ground.curve(rotation, task))
        return Choice(trial, (trial,), "as asked")
    closed = _closed_forms(ground, task, seed)
    if recipe == "kyfan":
        return Choice(closed[-1], tuple(closed), "as asked")
    if recipe == "auto" and not installed("torch"):
        return _without_torch(closed)
    recipes = [PAPER] if recipe == "paper" else list(LABELLED if task.labelled else UNLABELLED)
    recipes = [replace(r, reflections=r.reflections if reflections is None else reflections, widths=widths or r.widths) for r in recipes]
    if recipe == "paper":
        trials = [*closed, *_learned(recipes, closed, ground, task, seed)]
        return Choice(trials[-1], tuple(trials), "as asked")
    if task.labelled:
        return _best([*closed, *_learned(recipes, closed, ground, task, seed)])
    return _first_ahead(recipes, closed, ground, task, seed)


def made_again(trial: RotationTrial, ground: Ground, pool: Learning, seed: int = 0) -> Rotation:
    """The trial's rotation learned again on this pool: with fewer train queries, one that has never seen the others."""
    if trial.name in ("identity", "pca"):
        return trial.rotation
    task = ground.task(pool)
    kyfan = best_kyfan(task, margin_matrix(task, seed=seed), ground.moment)[0]
    if trial.recipe is None:
        return kyfan
    from .rotation import learn

    starts = {"identity": Rotation.identity(task.width), "pca": ground.span.axes, "kyfan": kyfan}
    return learn(trial.recipe, starts[trial.recipe.start], task, seed, until=trial.step).rotation


def learned_from_all(trial: RotationTrial, ground: Ground, seed: int = 0) -> Rotation:
    """A learned trial's rotation learned once more, for as many steps, from train and dev queries together."""
    assert trial.recipe is not None
    assert trial.start is not None
    from .rotation import learn

    task = ground.task(replace(ground.pool, train=together(ground.pool.train, ground.pool.dev)))
    return learn(trial.recipe, trial.start, task, seed, until=trial.step).rotation


def _closed_forms(ground: Ground, task: Task, seed: int) -> list[RotationTrial]:
    """identity, pca and kyfan, in this order."""
    identity, pca = Rotation.identity(ground.span.pca.width), ground.span.axes
    kyfan, eta, curve = best_kyfan(task, margin_matrix(task, seed=seed), ground.moment)
    return [
        RotationTrial("identity", identity, ground.curve(identity, task)),
        RotationTrial("pca", pca, ground.curve(pca, task)),
        RotationTrial("kyfan", kyfan, curve if ground.whole else ground.curve(kyfan, task), detail=f"η = {eta:g}"),
    ]


def _learned(recipes: list[Recipe], closed: list[RotationTrial], ground: Ground, task: Task, seed: int) -> list[RotationTrial]:
    usable = len(task.candidates.usable())
    if usable < FEWEST_QUERIES:
        log.warning("%d usable train queries, learning by gradient needs %d: only closed forms were tried", usable, FEWEST_QUERIES)
        return []
    from .rotation import learn  # PyTorch loads only here

    starts = {trial.name: trial.rotation for trial in closed}
    trials = []
    with progress("learning rotations", sum(r.steps for r in recipes)) as advance:
        for recipe in recipes:
            learned = learn(recipe, starts[recipe.start], task, seed, advance)
            advance(recipe.steps - learned.steps)
            curve = ground.curve(learned.rotation, task)
            start, detail = starts[recipe.start], f"from {recipe.start}"
            trials.append(RotationTrial(recipe.name, learned.rotation, curve, recipe, start, learned.step, learned.steps, detail))
    return trials


def _best(trials: list[RotationTrial]) -> Choice:
    """The best mean on dev among those that trail no closed form at any width by more than chance."""
    closed = [trial for trial in trials if trial.recipe is None]
    allowed = [trial for trial in trials if trial.recipe is None or not any(_trails(trial, other) for other in closed)]
    chosen = max(allowed, key=lambda trial: mean(trial.curve))
    if chosen.recipe is None:
        return _closed_form(chosen, trials)
    best = f"Best mean on dev ({mean(chosen.curve):.4f}) of {len(trials)} tried"
    return Choice(chosen, tuple(trials), f"{best}, and behind no closed form at any width by more than chance.")


def _first_ahead(recipes: list[Recipe], closed: list[RotationTrial], ground: Ground, task: Task, seed: int) -> Choice:
    """Without labels: the first recipe that finds the frozen first documents better than every closed form does.

    The order is a preference and not a contest: agreement with the frozen ranking tells whether a rotation learned something
    sound, but not which of two is better, since what it should do best is to be right where the frozen ranking is not.
    """
    best, trials = max(closed, key=lambda trial: mean(trial.curve)), list(closed)
    for recipe in recipes:
        for trial in _learned([recipe], closed, ground, task, seed):
            trials.append(trial)
            if mean(trial.curve) > mean(best.curve):
                reason = f"The frozen first document is found better ({mean(trial.curve):.4f} on dev) than by any closed form"
                return Choice(trial, tuple(trials), f"{reason} ({best.name} {mean(best.curve):.4f}).")
    return _closed_form(best, trials)


def _closed_form(chosen: RotationTrial, trials: list[RotationTrial]) -> Choice:
    reason = f"No learned rotation was better on dev than {chosen.name}, so that one ships."
    log.warning("%s", reason)
    return Choice(chosen, tuple(trials), reason)


def _without_torch(closed: list[RotationTrial]) -> Choice:
    reason = "PyTorch is not installed: only closed-form rotations were tried (pip install 'adawidth[train]' to learn one)."
    log.warning("%s", reason)
    return Choice(max(closed, key=lambda trial: mean(trial.curve)), tuple(closed), reason)


def _trails(trial: RotationTrial, other: RotationTrial) -> bool:
    for m, values in trial.curve.items():
        difference = values - other.curve[m]
        error = float(difference.std()) / math.sqrt(max(len(difference), 1))
        if difference.mean() < -SLACK * error - 1e-12:
            return True
    return False


def _without_queries(ground: Ground, recipe: str) -> Choice:
    if recipe not in ("auto", "pca", "identity"):
        found = f"{len(ground.pool.train)} and {len(ground.pool.dev)}"
        raise OptionError(f"the recipe {recipe} needs train and dev queries, there are {found}: use the recipe pca (--recipe)")
    rotation = Rotation.identity(ground.span.pca.width) if recipe == "identity" else ground.span.axes
    reason = "There are no queries: PCA needs none, but nothing says how good it is here; a few hundred queries would."
    log.warning("%s", reason)
    trial = RotationTrial(rotation.kind, rotation, {})
    return Choice(trial, (trial,), reason)
