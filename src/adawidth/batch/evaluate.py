"""`evaluate` by shards of documents: each gives its own best at every width, and the best of these are the best of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from .. import metrics
from ..data import Dataset, Documents, Vectors
from ..evaluation import Evaluation
from ..evaluation.evaluate import MEASURES, WIDTHS, _Bench
from ..evaluation.widths import FROZEN, FULL, Width, in_numbers, usable_widths
from ..hits import Hits
from ..model import AdaWidth
from ..rotation import Rotation
from ..stages import MemoryBackend
from ..stages.loop import SHORTLIST
from ..tasks import DEFAULT
from ..types import F32, Rows
from .moments import best_of, unit_rows
from .run import over
from .shards import Shard

Best = tuple[Rows, F32]  # rows and scores of each query's best


class Side(NamedTuple):
    """Queries and documents under the same rotation, ranked at some widths."""

    rotation: Rotation
    queries: F32  # (Q, D), turned
    widths: tuple[int, ...]


def evaluate(
    model: AdaWidth,
    dataset: Dataset,
    shards: Sequence[Shard],
    *,
    split: str = "test",
    widths: Sequence[Width] | None = None,
    measures: Sequence[str] = MEASURES,
    task: str | None = None,
    on: str | None = None,
) -> Evaluation:
    """As `evaluation.evaluate` with the protocol exhaustive and fixed widths: `shards` hold the documents of `dataset`, in the same order.

    Every shard is read and rotated once, for all widths."""
    asked = usable_widths(widths, WIDTHS, model.width, (FULL,))
    picked = model.task(task)
    bench = _Bench(
        model, picked, dataset, dataset.split(split), metrics.parse_measures(" ".join(measures)), protocol="exhaustive", shortlist=SHORTLIST
    )
    queries = bench.queries.vectors.all()
    turned = model.rotation.apply(queries) if picked is None else picked.query_map.apply(queries)
    numbers = tuple(sorted({in_numbers(width, model.width) for width in asked}))
    sides = {"turned": Side(model.rotation, turned, numbers), "plain": Side(Rotation.identity(model.width), queries, (model.width,))}
    found: dict[tuple[str, int], Best] = {}
    for _, part in over(partial(_ranked, sides=sides, k=bench.k, own=bench.queries.own), shards, on, "evaluating"):
        for key, best in part.items():
            found[key] = best if key not in found else _merged(found[key], best, bench.k)

    def hits(side: str, width: int) -> Hits:
        rows, scores = found[side, width]
        return Hits(np.where(np.isneginf(scores), -1, rows), scores, np.full(len(rows), float(width)), Documents(dataset.documents.ids))

    documents = len(dataset.documents)
    points = []
    for width in asked:
        m = in_numbers(width, model.width)
        points.append(bench._point(width, hits("turned", m), (documents + model.width) * m, mean_width=m))
    points.append(bench._point(FROZEN, hits("plain", model.width), documents * model.width, mean_width=model.width))
    return Evaluation(
        dataset.name,
        dataset.encoder,
        model.width,
        split,
        documents,
        tuple(bench.queries.vectors.ids),
        "exhaustive",
        tuple(points),
        None if picked is None else task or DEFAULT,
    )


def _ranked(shard: Shard, sides: Mapping[str, Side], k: int, own: Rows) -> dict[tuple[str, int], Best]:
    """The k best of a shard on each side, at each width."""
    found: dict[tuple[str, int], Best] = {}
    for start, block in unit_rows(shard):
        mine = np.where((own >= start) & (own < start + len(block)), own - start, -1)
        for name, side in sides.items():
            index = MemoryBackend(Vectors.of(block, note=False), side.rotation)
            for width in side.widths:
                stage = index.search(side.queries, width, k, mine)
                best = np.where(stage.candidates < 0, -1, stage.candidates + start), np.where(stage.candidates < 0, -np.inf, stage.scores)
                found[name, width] = best if (name, width) not in found else _merged(found[name, width], best, k)
    return found


def _merged(one: Best, other: Best, k: int) -> Best:
    rows, scores = np.concatenate([one[0], other[0]], axis=1), np.concatenate([one[1], other[1]], axis=1)
    best = best_of(rows, scores, k)
    return np.take_along_axis(rows, best, axis=1), np.take_along_axis(scores, best, axis=1)
