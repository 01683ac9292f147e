"""`fit` for documents that no machine holds: a rotation from moments that shards add up, its taper set on documents that shards mine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data import Dataset, Queries, Vectors
from ..errors import OptionError
from ..model import AdaWidth
from ..policies.select import Policies
from ..record import Record
from ..rotation import Rotation
from ..training.corpus import corpus_of, room
from ..training.pool import MINED, limited
from ..training.taper import RotatedQueries, fit_taper
from ..types import Rows
from .moments import gather, mine, second_moment
from .shards import Shard

RECIPES = ("pca", "identity")


def fit(data: Dataset, shards: Sequence[Shard], *, recipe: str = "pca", seed: int = 0, on: str | None = None) -> AdaWidth:
    """A model without labels. `shards` hold the documents of `data`, in the same order.

    The rotation is that of a fit on one machine, to 1e-6. The taper is set on the documents nearest to each query, which every shard mines,
    and on others at random, as many as fit into memory."""
    if recipe not in RECIPES:
        raise OptionError(f"the recipe {recipe} learns from documents in memory: on shards there are {' and '.join(RECIPES)} (--recipe)")
    learning = limited(data.learning(labels=False, seed=seed), seed)
    width = data.documents.width
    rotation = Rotation.principal(second_moment(shards, seed=seed, on=on), "pca") if recipe == "pca" else Rotation.identity(width)
    rows = _mined(shards, (learning.train, learning.dev), width, seed, on)
    vectors, ids = gather(shards, rows, on=on)
    index = corpus_of(Vectors(vectors, ids, data.documents.name), rotation)
    train, dev = (_turned(part, rotation, rows) for part in (learning.train, learning.dev))
    taper = fit_taper(index, train, dev, target=rotation.width)
    record = Record(
        recipe=recipe,
        labels=False,
        seed=seed,
        documents=len(data.documents),
        pool=len(rows),
        train_queries=len(train),
        dev_queries=len(dev),
        dev_measure="nDCG@10 of the frozen first document",
        chosen=recipe,
        reason=f"Asked for, over {len(shards)} shards: nothing else was tried.",
        trials=(),
        target_width=taper.target,
        **data.origin,
    )
    return AdaWidth(rotation, Policies(rotation.width, taper, None, None), record, frozenset(), {})


def _mined(shards: Sequence[Shard], parts: Sequence[Queries], width: int, seed: int, on: str | None) -> Rows:
    """The documents nearest to each query and their own, and others at random, as many as there is room for. Ascending."""
    count, most = sum(shard.rows for shard in shards), room(width)
    if count <= most:
        return np.arange(count)
    queries = [part for part in parts if len(part)]
    own = np.concatenate([part.own for part in queries] or [np.empty(0, np.int64)])
    needed = own[own >= 0]
    if queries:
        nearest, _ = mine(shards, np.concatenate([part.vectors.all() for part in queries]), MINED, own, on=on)
        first = nearest.T.ravel()  # the first of every query, then the second
        first = first[np.sort(np.unique(first, return_index=True)[1])][: max(0, most * 3 // 4 - len(needed))]
        needed = np.union1d(needed, first)
    others = np.setdiff1d(np.random.default_rng(seed).choice(count, min(count, 2 * most), replace=False), needed)
    return np.union1d(needed, np.random.default_rng(seed).permutation(others)[: max(0, most - len(needed))])


def _turned(queries: Queries, rotation: Rotation, rows: Rows) -> RotatedQueries:
    """Queries under the rotation; their own documents counted among the rows."""
    found = RotatedQueries.of(queries, rotation)
    if found.own is None:
        return found
    place = np.searchsorted(rows, found.own)
    return RotatedQueries(found.rows, np.where(found.own >= 0, place, -1), None)
