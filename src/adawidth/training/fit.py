"""From a task to everything a model holds: the rotation chosen on dev, the calibrated taper and the cross-fitted router.

With `auto` and labels, once recipe and steps are chosen and policies calibrated, the rotation that ships is trained once more, on
train and dev queries together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data import Learning
from ..errors import OptionError
from ..policies.router import RouterModel
from ..policies.select import Policies
from ..record import Record
from ..rotation import Rotation, second_moment
from ..stages import MemoryBackend
from ..types import F64
from .choose import Choice, check_recipe, choose_rotation, learned_from_all, made_again
from .examples import examples_of
from .extras import router_possible
from .pool import sample
from .router import fit_router
from .taper import RotatedQueries, fit_taper

AGAIN = "The rotation that ships was then learned once more, from train and dev queries together: dev figures are from before."
ROUTER_SHARE = 0.3  # of the train queries train the router, under a rotation that has not seen them


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit gives."""

    rotation: Rotation
    policies: Policies
    record: Record
    chosen: Rotation | None = None  # of a supervised rotation, the one trained on train queries alone


def fit_model(
    learning: Learning,
    *,
    recipe: str = "auto",
    reflections: int | None = None,
    widths: Sequence[int] | None = None,
    seed: int = 0,
    router: bool = True,
) -> Fitted:
    """Learns from train, chooses on dev; `router=False` leaves the router out, which trains a supervised rotation a second time.

    Memory is bounded by the pool (see training/pool.py), not by the number of documents.
    """
    if widths is not None and not all(1 <= m <= learning.documents.width for m in widths):
        raise OptionError(f"widths {list(widths)} are not all between 1 and the encoder width {learning.documents.width}")
    check_recipe(recipe)
    router = router and router_possible()
    trained = None if widths is None else tuple(sorted(set(widths)))
    pool = sample(learning, seed)
    moment = second_moment(learning.documents, seed=seed)
    choice = choose_rotation(pool, moment, recipe=recipe, reflections=reflections, widths=trained, seed=seed)
    rotation = choice.chosen.rotation
    index = MemoryBackend(pool.documents, rotation)
    train, dev = (RotatedQueries.of(part, rotation) for part in (pool.train, pool.dev))
    supervised = pool.labelled and choice.chosen.name not in ("identity", "pca")
    target = None if supervised else rotation.width  # an unsupervised rotation aims at the frozen ranking
    taper = fit_taper(index, train, dev, target=target)
    routed = _router(pool, choice, moment, index, seed) if router and len(pool.train) and len(pool.dev) else None
    again = recipe == "auto" and supervised and choice.chosen.recipe is not None
    record = Record(
        recipe=recipe,
        labels=learning.labelled,
        seed=seed,
        documents=len(learning.documents),
        pool=len(pool.documents),
        train_queries=len(pool.train),
        dev_queries=len(pool.dev),
        dev_measure="nDCG@10" if learning.labelled else "nDCG@10 of the frozen first document",
        chosen=choice.chosen.name,
        reason=f"{choice.reason} {AGAIN}" if again else choice.reason,
        trials=tuple(trial.recorded() for trial in choice.trials),
        target_width=taper.target,
    )
    if again:
        rotation = learned_from_all(choice.chosen, pool, seed)
    return Fitted(rotation, Policies(rotation.width, taper, routed), record, choice.chosen.rotation if supervised else None)


def _router(pool: Learning, choice: Choice, moment: F64, index: MemoryBackend, seed: int) -> RouterModel | None:
    """The paper's router, cross-fitted: a supervised rotation is trained again without the queries that train the router."""
    queries, backend, rotation = pool.train, index, choice.chosen.rotation
    crossed = pool.labelled and choice.chosen.name not in ("identity", "pca")
    if crossed:
        order = np.random.default_rng(seed).permutation(len(pool.train))
        held = round(ROUTER_SHARE * len(order))
        queries = pool.train.select(np.sort(order[:held]))
        rotation = made_again(choice.chosen, replace(pool, train=pool.train.select(np.sort(order[held:]))), moment, seed)
        backend = MemoryBackend(pool.documents, rotation)
    train = examples_of(queries, backend, rotation)
    dev = examples_of(pool.dev, index, choice.chosen.rotation, noise=train.noise)
    return fit_router(train, dev, one_rotation=not crossed, seed=seed)
