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
from .choose import Choice, check_recipe, choose_rotation, learned_from_all, made_again
from .corpus import Scanned, corpus_of
from .examples import examples_of
from .extras import router_possible
from .ground import Ground
from .pool import limited
from .router import fit_paper_router, fit_router
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
    """Learns from train, chooses on dev; `router=False` leaves the routers out: ours trains a supervised rotation a second time.

    The recipe `paper` has the paper's router too.

    Memory does not grow with the number of documents (see training/pool.py and corpus.py).
    """
    if widths is not None and not all(1 <= m <= learning.documents.width for m in widths):
        raise OptionError(f"widths {list(widths)} are not all between 1 and the encoder width {learning.documents.width}")
    check_recipe(recipe)
    router = router and router_possible()
    trained = None if widths is None else tuple(sorted(set(widths)))
    kept = limited(learning, seed)
    ground = Ground.of(kept, second_moment(kept.documents, seed=seed), paper=recipe == "paper", seed=seed)
    choice = choose_rotation(ground, recipe=recipe, reflections=reflections, widths=trained, seed=seed)
    rotation = ground.span.lift(choice.chosen.rotation)
    index = corpus_of(kept.documents, rotation)
    train, dev = (RotatedQueries.of(part, rotation) for part in (kept.train, kept.dev))
    supervised = kept.labelled and choice.chosen.name not in ("identity", "pca")
    target = None if supervised else rotation.width  # an unsupervised rotation aims at the frozen ranking
    taper = fit_taper(index, train, dev, target=target)
    router = router and len(kept.train) > 0 and len(kept.dev) > 0
    routed = _router(kept, ground, choice, index, seed) if router else None
    of_paper = fit_paper_router(kept, index, rotation, seed) if router and recipe == "paper" else None
    again = recipe == "auto" and supervised and choice.chosen.recipe is not None
    record = Record(
        recipe=recipe,
        labels=learning.labelled,
        seed=seed,
        documents=len(learning.documents),
        pool=len(ground.pool.documents),
        train_queries=len(ground.pool.train),
        dev_queries=len(ground.pool.dev),
        dev_measure="nDCG@10" if learning.labelled else "nDCG@10 of the frozen first document",
        chosen=choice.chosen.name,
        reason=f"{choice.reason} {AGAIN}" if again else choice.reason,
        trials=tuple(trial.recorded() for trial in choice.trials),
        target_width=taper.target,
    )
    chosen = rotation if supervised else None
    if again:
        rotation = ground.span.lift(learned_from_all(choice.chosen, ground, seed))
    return Fitted(rotation, Policies(rotation.width, taper, routed, of_paper), record, chosen)


def _router(kept: Learning, ground: Ground, choice: Choice, index: MemoryBackend | Scanned, seed: int) -> RouterModel | None:
    """Our router, cross-fitted: a supervised rotation is trained again without the queries that train the router."""
    rotation = chosen = ground.span.lift(choice.chosen.rotation)
    queries, corpus = kept.train, index
    crossed = kept.labelled and choice.chosen.name not in ("identity", "pca")
    if crossed:
        order = np.random.default_rng(seed).permutation(len(ground.pool.train))
        held = round(ROUTER_SHARE * len(order))
        queries, others = kept.train.select(np.sort(order[:held])), ground.pool.train.select(np.sort(order[held:]))
        rotation = ground.span.lift(made_again(choice.chosen, ground, replace(ground.pool, train=others), seed))
        corpus = corpus_of(kept.documents, rotation)
    train = examples_of(queries, corpus, rotation)
    dev = examples_of(kept.dev, index, chosen, noise=train.noise)
    return fit_router(train, dev, one_rotation=not crossed, seed=seed)
