"""From labels to a task of a model: the query map chosen on dev, and the policies calibrated for mapped queries.

Documents keep their rotation, so an index made before stays as it is. Few labels must not hurt: a map ships only if it is
better on dev than the rotation alone and can hardly be worse. Once recipe, steps and strength are chosen and policies calibrated,
the map that ships is learned once more, from train and dev queries together.

Where the same labels trained the rotation (`fit` with a query map), all choices are made over the rotation that was trained
without dev queries, and the map that ships is learned over the one that ships.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .. import record
from ..data import Learning
from ..errors import DataError, OptionError
from ..policies.router import RouterModel
from ..policies.select import Policies
from ..progress import progress
from ..record import TaskRecord
from ..rotation import QueryMap, Rotation
from ..stages import MemoryBackend
from ..tasks import TaskMap
from ..types import F64
from .corpus import Scanned, corpus_of
from .examples import examples_of
from .extras import router_possible
from .fit import ROUTER_SHARE
from .pool import limited, sample, together
from .query_map import FEWEST_QUERIES, RECIPES, STRENGTHS, SUPERVISED_RECIPES, Change, Lesson, MapRecipe, counted, counted_mean, learn
from .ranking import DevCurve
from .router import fit_router
from .taper import RotatedQueries, fit_taper
from .task import means

TOLERANCE = 0.01  # nDCG on dev by which a map, less a standard error, may be behind the rotation alone
NARROWER = 2.0  # standard errors by which a narrower target width must be ahead of the full width


log = logging.getLogger("adawidth")


@dataclass(frozen=True, eq=False)
class MapTrial:
    """A query map tried, with its dev curve; the rotation alone has no recipe and strength 0."""

    curve: DevCurve
    recipe: MapRecipe | None = None
    change: Change | None = None
    strength: float = 0.0
    step: int = 0
    steps: int = 0

    @property
    def name(self) -> str:
        """The recipe's name."""
        return "rotation alone" if self.recipe is None else self.recipe.name

    def recorded(self) -> record.Trial:
        """As the card shows it."""
        return record.Trial(self.name, means(self.curve), self.steps, self.step, strength=self.strength)


def learn_task(
    rotation: Rotation, policies: Policies, learning: Learning, *, chosen_under: Rotation | None = None, seed: int = 0, router: bool = True
) -> TaskMap:
    """The task learned from labels under a rotation; where no map is safe and better on dev, the rotation alone with the policies given.

    `chosen_under`: where the same labels trained the rotation, the one trained on train queries alone. `router=False` leaves the
    router out.
    """
    if learning.documents.width != rotation.width:
        widths = f"{learning.documents.width} wide, the model {rotation.width}"
        raise DataError(f"{learning.documents.name}: vectors are {widths}: use the encoder the model was fitted for (--encoder)")
    check_labels(learning)
    router = router and router_possible()
    kept = limited(learning, seed)
    pool = sample(kept, seed)
    supervised, under = chosen_under is not None, chosen_under or rotation
    lesson = Lesson.of(pool, under, supervised=supervised)
    trials = [MapTrial(lesson.dev_curve()), *_learned(lesson, SUPERVISED_RECIPES if supervised else RECIPES, seed)]
    chosen, reason = choose(trials)
    seen = frozenset(learning.documents.ids[row] for row in learning.positives.tolist())
    query_map = QueryMap.identity(rotation)
    if chosen.change is not None:
        policies = _policies(kept, pool, under, chosen, seed, supervised=supervised, router=router)
        query_map = _again(chosen, replace(pool, train=together(pool.train, pool.dev)), rotation, seed, supervised=supervised)
    else:
        log.warning("%s", reason)
    made = TaskRecord(
        seed=seed,
        documents=len(learning.documents),
        train_queries=len(pool.train),
        dev_queries=len(pool.dev),
        chosen=chosen.name,
        strength=chosen.strength,
        reason=reason,
        trials=tuple(trial.recorded() for trial in trials),
        target_width=policies.taper.target,
    )
    return TaskMap(query_map, policies, made, seen)


def check_labels(learning: Learning) -> None:
    """Refuses what no query map can be learned from."""
    if not learning.labelled:
        raise OptionError("a query map is learned from labels, and there are none: add qrels/train.tsv")
    if not len(learning.train) or not len(learning.dev):
        found = f"there are {len(learning.train)} and {len(learning.dev)}"
        raise OptionError(f"a query map needs labelled train and dev queries, {found}: leave dev out and some of train is it")


def choose(trials: list[MapTrial]) -> tuple[MapTrial, str]:
    """The map that ships, and why; the first trial is the rotation alone.

    Dev documents were no one's positives in training, so dev tells harm and gain on documents that labels never named, but not
    the gain on those they did. Of safe maps that dev can't tell from the best, the strongest is therefore taken, and of equally
    strong ones that with the most weight on the frozen scores, which drifts least.
    """
    alone, *maps = trials
    safe = [trial for trial in maps if _safe(trial.curve, alone.curve)]
    best = max([alone, *safe], key=lambda trial: counted_mean(trial.curve))
    if best is alone:
        return alone, "No query map was safe and better on dev than the rotation alone: queries stay as they are."
    alike = [trial for trial in safe if not _ahead(best.curve, trial.curve)]
    chosen = max(alike, key=lambda trial: (trial.strength, 0.0 if trial.recipe is None else trial.recipe.kl, counted_mean(trial.curve)))
    figures = f"the rotation alone {counted_mean(alone.curve):.4f}, the best of {len(trials)} {counted_mean(best.curve):.4f}"
    return chosen, f"Mean on dev {counted_mean(chosen.curve):.4f} ({figures})."


def _safe(curve: DevCurve, alone: DevCurve) -> bool:
    """Less a standard error, neither over all widths nor at the widest more than TOLERANCE behind."""
    gains = _gains(curve, alone)
    return all(float(gain.mean()) - _error(gain) >= -TOLERANCE for gain in (gains.mean(axis=0), gains[-1]))


def _ahead(curve: DevCurve, other: DevCurve) -> bool:
    """Over all widths, by more than a standard error."""
    gain = _gains(curve, other).mean(axis=0)
    return float(gain.mean()) > _error(gain)


def _gains(curve: DevCurve, other: DevCurve) -> F64:
    return np.stack([curve[m] - other[m] for m in sorted(counted(curve))])  # (W, Q)


def _error(values: F64) -> float:
    """Standard error of the mean."""
    return float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf


def _learned(lesson: Lesson, recipes: Sequence[MapRecipe], seed: int) -> list[MapTrial]:
    """Every recipe at every strength."""
    usable = len(lesson.task.candidates.usable())
    if usable < FEWEST_QUERIES:
        log.warning("%d usable train queries, a query map needs %d", usable, FEWEST_QUERIES)
        return []
    trials = []
    with progress("learning query maps", sum(recipe.steps for recipe in recipes)) as advance:
        for recipe in recipes:
            found = learn(recipe, lesson, seed, advance)
            advance(recipe.steps - found.steps)
            if found.change is not None:
                for strength in STRENGTHS:
                    curve = lesson.dev_curve(found.change, strength)
                    trials.append(MapTrial(curve, recipe, found.change, strength, found.step, found.steps))
    return trials


def _policies(
    kept: Learning, pool: Learning, rotation: Rotation, chosen: MapTrial, seed: int, *, supervised: bool, router: bool
) -> Policies:
    """Taper and router for mapped queries, over all documents.

    The target is the full width unless a narrower one is clearly better on dev; over a supervised rotation, the one `fit` would take.
    """
    assert chosen.change is not None
    index, query_map = corpus_of(kept.documents, rotation), chosen.change.fold(rotation, chosen.strength)
    train, dev = (RotatedQueries.of(part, query_map) for part in (kept.train, kept.dev))
    target = None if supervised else _target(chosen.curve)
    taper = fit_taper(index, train, dev, target=target)
    routed = _router(kept, pool, rotation, index, query_map, chosen, seed, supervised=supervised) if router else None
    return Policies(rotation.width, taper, routed)


def _target(curve: DevCurve) -> int:
    full = max(curve)
    gains = {m: values - curve[full] for m, values in curve.items()}
    clear = [m for m, gain in gains.items() if gain.mean() > NARROWER * _error(gain)]
    return max(clear, key=lambda m: float(gains[m].mean()), default=full)


def _router(
    kept: Learning,
    pool: Learning,
    rotation: Rotation,
    index: MemoryBackend | Scanned,
    query_map: QueryMap,
    chosen: MapTrial,
    seed: int,
    *,
    supervised: bool,
) -> RouterModel | None:
    """Cross-fitted: the queries that train the router are mapped by a map that has not seen them."""
    order = np.random.default_rng(seed).permutation(len(pool.train))
    held = round(ROUTER_SHARE * len(order))
    held_out, others = kept.train.select(np.sort(order[:held])), pool.train.select(np.sort(order[held:]))
    train = examples_of(held_out, index, _again(chosen, replace(pool, train=others), rotation, seed, supervised=supervised))
    return fit_router(train, examples_of(kept.dev, index, query_map, noise=train.noise), seed=seed)


def _again(chosen: MapTrial, pool: Learning, rotation: Rotation, seed: int, *, supervised: bool) -> QueryMap:
    """The chosen map learned again on this pool, for as many steps and at the same strength."""
    assert chosen.recipe is not None
    change = learn(chosen.recipe, Lesson.of(pool, rotation, supervised=supervised), seed, until=chosen.step).change
    assert change is not None
    return change.fold(rotation, chosen.strength)
