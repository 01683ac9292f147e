"""Documents of all shards into an engine: every worker writes its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ..engines import EngineStore, Layout
from ..errors import DataError
from ..formats.documents import Batch, Source, batch_of
from ..model import AdaWidth
from ..model.collections import current, layout_of, ready
from ..stages import Written
from .run import over
from .shards import Shard


def push(
    model: AdaWidth,
    shards: Sequence[Shard],
    url: str,
    collection: str = "adawidth",
    *,
    layout: Layout | None = None,
    force: bool = False,
    on: str | None = None,
) -> Written:
    """As `model.collections.push`, shard by shard. A shard is sent again if its worker dies: under the same ids, so nothing is doubled."""
    layout = layout_of(model, url=url) if layout is None else layout
    engine = current(url, collection)
    try:
        ready(engine, model, layout, force=force)
        added = replaced = 0
        for _, written in over(partial(_sent, model=model, url=url, collection=collection), shards, on, "pushing"):
            added, replaced = added + written.added, replaced + written.replaced
        engine.finish()
        return Written(added, replaced, engine.count(), storage=engine.name)
    finally:
        engine.close()


def _sent(shard: Shard, model: AdaWidth, url: str, collection: str) -> Written:
    engine = current(url, collection)
    try:
        engine.open()
        return EngineStore(engine, model.rotation).write(_source(shard, model.width), update=True)
    finally:
        engine.close()


def _source(shard: Shard, width: int) -> Source:
    def batches() -> Iterator[Batch]:
        start = shard.start
        for part in shard.batches():
            batch = batch_of(shard.place, part, start)
            if batch.vectors.width != width:
                raise DataError(f"{shard.place}: vectors are {batch.vectors.width} wide, the model {width}: use the model's own encoder")
            yield batch
            start += len(batch.documents)

    return Source(shard.place, shard.rows, width, batches)
