"""A faiss index that rotates and cuts what it is given: plain faiss opens it, trains it, fills it and searches it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data import Vectors
from ...errors import DataError, OptionError
from ...formats.files import atomic_file
from ...model import AdaWidth
from ...types import StrPath
from .side import Side, refuse_existing


def export_faiss(
    model: AdaWidth,
    path: StrPath,
    *,
    factory: str = "Flat",
    width: int | None = None,
    vectors: Any = None,
    force: bool = False,
) -> dict[str, Any]:
    """An IndexPreTransform: the rotation's first `width` rows, unit length, then the index that faiss' `factory` string names.

    It takes vectors as the encoder gives them, and scores are cosines of prefixes. With `vectors` it is trained and filled, in their
    order; without, it is empty. A query map has no place in it: queries and documents take the same way through a faiss index.
    """
    import faiss

    side, out = Side.of(model, width), refuse_existing(path, force)
    try:
        inner = faiss.index_factory(side.width, factory, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        reason = str(error).strip().rpartition("\n")[2]
        raise OptionError(f"faiss makes no index of {factory!r} at width {side.width}: {reason}") from None
    rotation = faiss.LinearTransform(side.encoder_width, side.width, False)
    faiss.copy_array_to_vector(side.matrix.ravel(), rotation.A)
    rotation.is_trained = True
    index = faiss.IndexPreTransform(inner)
    index.prepend_transform(faiss.NormalizationTransform(side.width, 2.0))
    index.prepend_transform(rotation)
    if vectors is not None:
        _fill(index, Vectors.of(vectors), side.encoder_width)
    with atomic_file(out) as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))
    return {**side.facts(), "factory": factory, "documents": int(index.ntotal), "trained": bool(index.is_trained)}


def _fill(index: Any, vectors: Vectors, width: int) -> None:
    if vectors.width != width:
        raise DataError(f"{vectors.name}: vectors are {vectors.width} wide, the model {width}: use the encoder the model was fitted for")
    if not index.is_trained:
        try:
            index.train(vectors.all())
        except RuntimeError as error:
            reason = str(error).strip().rpartition("\n")[2]
            raise DataError(f"{vectors.name}: faiss can't train on these {len(vectors)} vectors: {reason}") from None
    for _, rows in vectors.blocks():
        index.add(np.ascontiguousarray(rows))
