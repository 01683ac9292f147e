"""`encode` on many workers: they make the parts that an encoding consists of, and one process joins them.

A part's file is named after all that its numbers depend on, so that what workers made is taken up as what an interrupted run left is. The
dataset folder must lie where all workers see it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..encoders import encode_dataset, load_encoder
from ..encoders.base import Encoder
from ..encoders.encode import PART, ROLES, Dtype, encode_part, parts_folder, refuse_existing_vectors
from ..formats import read_texts
from ..formats.files import existing
from ..types import StrPath
from .run import over
from .shards import Shard

PARTS = 8  # encoded by a worker at a time


def encode(
    path: StrPath, encoder: str, name: str, *, options: Mapping[str, Any] | None = None, dtype: Dtype = "float16", force: bool = False,
    on: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """As `encoders.encode_dataset`, with the encoder's name and what `load_encoder` takes besides."""
    given = tuple(sorted((options or {}).items()))
    folder = Path(path)
    home = refuse_existing_vectors(folder, name, dtype, force)
    shards: list[Shard] = []
    for side in ROLES:
        file = existing(folder / f"{side}.jsonl")
        rows = 0 if file is None else sum(1 for _ in read_texts(file))
        for start in range(0, rows, PART * PARTS):
            shards.append(Shard(str(file), len(shards), start, min(PART * PARTS, rows - start), ()))
    for _ in over(partial(_encoded, encoder=encoder, options=given, dtype=dtype, kept=str(parts_folder(home))), shards, on, "encoding"):
        pass
    return encode_dataset(folder, _loaded(encoder, given), name, dtype=dtype, force=force)


@lru_cache(maxsize=1)
def _loaded(encoder: str, options: tuple[tuple[str, Any], ...]) -> Encoder:
    return load_encoder(encoder, **dict(options))


def _encoded(shard: Shard, encoder: str, options: tuple[tuple[str, Any], ...], dtype: Dtype, kept: str) -> None:
    """Some parts of a file, whole ones, as a single process would cut it."""
    texts = islice(read_texts(Path(shard.place)), shard.start, shard.start + shard.rows)
    role = ROLES[Path(shard.place).stem]
    while part := list(islice(texts, PART)):
        encode_part(part, Path(shard.place), Path(kept), _loaded(encoder, options), role, np.dtype(dtype))
