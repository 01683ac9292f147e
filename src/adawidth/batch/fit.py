"""`fit` for documents that no machine holds: a rotation from moments that shards add up, its taper set on documents that shards mine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..data import Dataset, Learning, Vectors
from ..errors import OptionError
from ..model import AdaWidth
from ..policies.select import Policies
from ..record import Record
from ..rotation import Rotation
from ..training.corpus import corpus_of, room
from ..training.kyfan import best_kyfan
from ..training.pool import MINED, limited, within
from ..training.taper import RotatedQueries, fit_taper
from ..training.task import Task
from ..types import Rows
from .margins import margin_matrix
from .moments import gather, mine, second_moment
from .shards import Shard

RECIPES = ("pca", "kyfan", "identity")


def fit(
    data: Dataset, shards: Sequence[Shard], *, recipe: str = "pca", labels: bool | None = None, seed: int = 0, on: str | None = None
) -> AdaWidth:
    """A model from documents that shards hold, in the order of `data`. Only `kyfan` learns from labels, where there are any.

    The moments are those of a fit on one machine, to 1e-6. The taper is set, without labels, on the documents nearest to each query, which
    every shard mines, and on others at random, as many as fit into memory; Ky Fan's η is chosen on the same documents."""
    if recipe not in RECIPES:
        raise OptionError(f"the recipe {recipe} learns from documents in memory: on shards there are {', '.join(RECIPES)} (--recipe)")
    labelled = recipe == "kyfan" and ("train" in data.qrels if labels is None else labels)
    learning = limited(data.learning(labels=labelled, seed=seed), seed)
    if recipe == "kyfan" and not (len(learning.train) and len(learning.dev)):
        raise OptionError(f"{data.name}: the recipe kyfan learns from queries, and there are none: take pca (--recipe)")
    rows = _mined(shards, learning, seed, on)
    vectors, ids = gather(shards, rows, on=on)
    pool = within(learning, Vectors(vectors, ids, data.documents.name), rows)
    rotation, how = _rotation(recipe, shards, learning, pool, seed, on)
    index = corpus_of(pool.documents, rotation)
    train, dev = (RotatedQueries.of(replace(part, judged=None), rotation) for part in (pool.train, pool.dev))
    taper = fit_taper(index, train, dev, target=rotation.width)
    record = Record(
        recipe=recipe,
        labels=labelled,
        seed=seed,
        documents=len(data.documents),
        pool=len(rows),
        train_queries=len(train),
        dev_queries=len(dev),
        dev_measure="nDCG@10" if labelled else "nDCG@10 of the frozen first document",
        chosen=recipe,
        reason=f"Asked for, over {len(shards)} shards{how}: nothing else was tried.",
        trials=(),
        target_width=taper.target,
        **data.origin,
    )
    seen = frozenset(data.documents.ids[row] for row in learning.positives.tolist())
    return AdaWidth(rotation, Policies(rotation.width, taper, None, None), record, seen, {})


def _rotation(recipe: str, shards: Sequence[Shard], learning: Learning, pool: Learning, seed: int, on: str | None) -> tuple[Rotation, str]:
    """The rotation that the recipe names, and what is to be said of it."""
    if recipe == "identity":
        return Rotation.identity(learning.documents.width), ""
    moment = second_moment(shards, seed=seed, on=on)
    if recipe == "pca":
        return Rotation.principal(moment, "pca"), ""
    rotation, eta, _ = best_kyfan(Task.of(pool), margin_matrix(shards, learning.train, seed=seed, on=on), moment)
    return rotation, f", with η = {eta:g}"


def _mined(shards: Sequence[Shard], learning: Learning, seed: int, on: str | None) -> Rows:
    """Positives, the documents nearest to each query and their own, and others at random, as many as there is room for. Ascending."""
    count, most = sum(shard.rows for shard in shards), room(learning.documents.width)
    if count <= most:
        return np.arange(count)
    queries = [part for part in (learning.train, learning.dev) if len(part)]
    own = np.concatenate([part.own for part in queries] or [np.empty(0, np.int64)])
    needed = np.union1d(own[own >= 0], learning.positives)
    if queries:
        nearest, _ = mine(shards, np.concatenate([part.vectors.all() for part in queries]), MINED, own, on=on)
        first = nearest.T.ravel()  # the first of every query, then the second
        first = first[np.sort(np.unique(first, return_index=True)[1])][: max(0, most * 3 // 4 - len(needed))]
        needed = np.union1d(needed, first)
    others = np.setdiff1d(np.random.default_rng(seed).choice(count, min(count, 2 * most), replace=False), needed)
    return np.union1d(needed, np.random.default_rng(seed).permutation(others)[: max(0, most - len(needed))])
