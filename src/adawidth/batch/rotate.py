"""Vectors of one place, rotated into another: one file, or a folder of Parquet parts or a Lance data set that many workers write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Vectors
from ..errors import OptionError
from ..formats import write_vectors
from ..formats.files import atomic_file, write_lines
from ..formats.parquet import column_of_vectors, pyarrow_modules
from ..formats.vectors import ID_COLUMNS, WRITERS, named
from ..model import AdaWidth
from .arrow import Rotate, values_of
from .parts import write_lance, write_parts
from .run import over
from .shards import Shard, shards_of


def rotate(
    model: AdaWidth,
    source: str,
    out: str,
    *,
    width: int | None = None,
    queries: bool = False,
    task: str | None = None,
    on: str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Rotates all vectors of `source` and cuts them to `width`. Places are paths or URIs, and the ending of `out` chooses the format.

    Without an ending, `out` is a folder of Parquet parts: a run that was cut off goes on where it stopped. `on` is as in `over`.
    """
    kernel = Rotate(model, width, queries, task)
    suffix = Path(out.rstrip("/")).suffix
    if suffix in WRITERS:
        _refuse(out, on, force)
        shards = shards_of(source)
        _to_file(kernel, shards, Path(out))
    elif suffix == ".lance":
        shards = shards_of(source)
        write_lance(kernel, shards, out, on=on, force=force)
    else:
        shards = shards_of(source)
        write_parts(kernel, shards, out, on=on, force=force)
    return {"out": out, "rows": sum(shard.rows for shard in shards), "shards": len(shards), **kernel.facts()}


def _refuse(out: str, on: str | None, force: bool) -> None:
    if on is not None:
        raise OptionError(f"{out} is one file, which workers can't write together: give a folder, or a .lance data set (--out)")
    if Path(out).exists() and not force:
        raise OptionError(f"{out} exists: choose another path (--out), or replace it with force (--force)")


def _to_file(kernel: Rotate, shards: Sequence[Shard], out: Path) -> None:
    """One file, in this process. Parquet and .npy are written as they are read; the others are held in memory until the end."""
    rotated = _rotated(kernel, shards)
    if out.suffix == ".parquet":
        _, parquet = pyarrow_modules()
        first = next(rotated)
        with atomic_file(out) as file, parquet.ParquetWriter(file, first.schema) as writer:
            writer.write_batch(first)
            for batch in rotated:
                writer.write_batch(batch)
    elif out.suffix == ".npy":
        ids: list[str] = []
        with atomic_file(out) as file:
            head = {"descr": "<f4", "fortran_order": False, "shape": (sum(shard.rows for shard in shards), kernel.facts()["width"])}
            np.lib.format.write_array_header_1_0(file, head)
            for batch in rotated:
                values, names = _arrays(batch, len(ids))
                file.write(np.ascontiguousarray(values, "<f4").tobytes())
                ids += names
        write_lines(out.with_suffix(".ids"), ids)
    else:
        blocks, ids = [], []
        for batch in rotated:
            values, names = _arrays(batch, len(ids))
            blocks.append(values)
            ids += names
        write_vectors(out, Vectors(np.concatenate(blocks), ids, str(out)))


def _rotated(kernel: Rotate, shards: Sequence[Shard]) -> Iterator[Any]:
    """All batches, rotated, in order."""
    for shard, start in over(lambda shard: shard.start, shards, None, "rotating"):
        for batch in shard.batches():
            yield kernel(batch, shard.place, start)
            start += len(batch)


def _arrays(batch: Any, start: int) -> tuple[Any, list[str]]:
    """Vectors and ids of a batch; row numbers where there are no ids."""
    values = values_of(batch, column_of_vectors("table", batch.schema), "table")
    name = next((name for name in ID_COLUMNS if name in batch.schema.names), None)
    ids = range(start, start + len(values)) if name is None else batch.column(name).to_pylist()
    return values, named("table", ids)
