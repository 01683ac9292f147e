"""Labels that users of a service gave, as a dataset to `refit` on: the documents of the index, the queries of the file."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset, Qrels, Vectors, unit
from ..errors import DataError
from ..types import F32, Id
from .index import Index

log = logging.getLogger("adawidth")


def feedback_dataset(index: Index, path: Path) -> Dataset:
    """The last grade that each query gave each document. Labels of documents that have been removed since are left out."""
    if index.width < index.model.width:
        raise DataError(
            f"{path}: the index keeps {index.width} of {index.model.width} coordinates, a query map needs all: refit on a dataset folder"
        )
    texts: dict[str, str] = {}  # name -> text
    vectors: dict[str, list[float]] = {}  # name -> vector
    grades: dict[Id, dict[Id, float]] = {}
    ids = {str(name): name for name in index}
    unknown = 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        query, document, grade = _label(line, path, number, index.model.width)
        if document not in ids:
            unknown += 1
            continue
        name = f"text:{query}" if isinstance(query, str) else f"vector:{hash(tuple(query)):x}"
        if isinstance(query, str):
            texts[name] = query
        else:
            vectors[name] = query
        grades.setdefault(name, {})[ids[document]] = grade
    if unknown:
        log.warning("%s: %d labels are of documents that are not in the index any more: left out", path, unknown)
    if not grades:
        raise DataError(f"{path}: there are no labels of documents in the index")
    rows = index.model.rotation.invert(index.vectors(list(ids.values())))
    known = index.model.record
    return Dataset(
        Vectors.of(rows, list(ids.values()), name="documents"),
        Vectors.of(_encoded(index, texts, vectors), [*texts, *vectors], name=str(path)),
        {"train": Qrels(grades, "train")},
        name=path.name,
        encoder=known.encoder,
        encoding=known.encoding,
    )


def _encoded(index: Index, texts: dict[str, str], vectors: dict[str, list[float]]) -> F32:
    """Vectors of all queries: first those of texts, then those that were given. (n, D)"""
    of_texts = index.encoder.encode(list(texts.values()), "query") if texts else np.empty((0, index.model.width), np.float32)
    given = np.array(list(vectors.values()), np.float32).reshape(-1, index.model.width)
    return unit(np.concatenate([of_texts, given]))


def _label(line: str, path: Path, number: int, width: int) -> tuple[str | list[float], str, float]:
    """Query, document and grade of one line."""
    try:
        found: Any = json.loads(line)
        query: Any = found["query"] if "query" in found else [float(value) for value in found["vector"]]
        document, grade = str(found["document"]), float(found["grade"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DataError(f"{path}: line {number} is no label: expected query or vector, document and grade, found {line[:60]!r}") from None
    if not isinstance(query, str) and len(query) != width:
        raise DataError(f"{path}: line {number}: the vector is {len(query)} wide, the index {width}: is this the index's own file?")
    return query, document, grade
