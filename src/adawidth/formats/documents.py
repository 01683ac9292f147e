"""Documents on their way into an index: vectors in batches, with what is known of each document beside them.

A dataset folder, vector files and Parquet files are read as they are written, so that a million documents never stand in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data import BLOCK, Document, Vectors, unit
from ..errors import DataError
from .beir import load_dataset
from .files import existing, lines
from .vectors import ID_COLUMNS, pyarrow_modules, read_vectors

FIELDS = ("_id", "title", "text", "metadata")


@dataclass(frozen=True, eq=False)
class Batch:
    """Some vectors, in the encoder's own coordinates, and the documents they are of."""

    vectors: Vectors
    documents: Sequence[Document]


@dataclass(frozen=True, eq=False)
class Source:
    """Where documents come from: how many, how wide, and their batches."""

    name: str
    count: int
    width: int
    batches: Callable[[], Iterator[Batch]]


def of_vectors(
    vectors: Vectors,
    titles: Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    metadata: Sequence[Mapping[str, Any]] | None = None,
) -> Source:
    """Vectors with, where given, titles, texts and metadata, one a row."""
    for name, given in (("titles", titles), ("texts", texts), ("metadata", metadata)):
        if given is not None and len(given) != len(vectors):
            raise DataError(f"{vectors.name}: {len(vectors)} vectors but {len(given)} {name}: give one a row, in row order")

    def known(row: int) -> Document:
        return Document(
            vectors.ids[row],
            "" if titles is None else titles[row],
            "" if texts is None else texts[row],
            {} if metadata is None else metadata[row],
        )

    return Source(vectors.name, len(vectors), vectors.width, lambda: _batches(vectors, known))


def of_dataset(path: Path, encoder: str | None = None) -> Source:
    """The documents of a dataset folder, with what corpus.jsonl says of them where there is one."""
    data = load_dataset(path, encoder)
    return _described(data.documents, existing(path / "corpus.jsonl"))


def of_file(path: Path) -> Source:
    """A .parquet file with a column of vectors, one of ids and, where there are, title, text and others as metadata; or any other
    file of vectors, with what a .jsonl file of the same name beside it says of the documents."""
    if path.suffix == ".parquet":
        return _of_parquet(path)
    vectors = read_vectors(path)
    if isinstance(vectors.ids, range):
        raise DataError(f"{path}: there are no ids: add {path.with_suffix('.ids').name} with one id a line")
    return _described(vectors, existing(path.with_suffix(".jsonl")))


def joined(sources: Sequence[Source]) -> Source:
    """Several, one after the other, as one."""
    first = sources[0]
    for other in sources[1:]:
        if other.width != first.width:
            raise DataError(f"{other.name}: vectors are {other.width} wide, those of {first.name} {first.width}: use one encoder")
    name = first.name if len(sources) == 1 else f"{first.name} and {len(sources) - 1} more"
    return Source(name, sum(source.count for source in sources), first.width, lambda: (b for source in sources for b in source.batches()))


def _batches(vectors: Vectors, known: Callable[[int], Document]) -> Iterator[Batch]:
    for start in range(0, len(vectors), BLOCK):
        rows = range(start, min(start + BLOCK, len(vectors)))
        values = vectors.values[start : start + BLOCK]
        yield Batch(Vectors(values, [vectors.ids[row] for row in rows], vectors.name), [known(row) for row in rows])


def _described(vectors: Vectors, texts: Path | None) -> Source:
    """Vectors with the documents of a .jsonl file. Where both are in one order, no more of the file is held than a batch needs."""

    def batches() -> Iterator[Batch]:
        entries = _entries(texts) if texts is not None else iter(())
        waiting: dict[str, Document] = {}

        def known(row: int) -> Document:
            name = str(vectors.ids[row])
            while name not in waiting and (entry := next(entries, None)) is not None:
                waiting[str(entry.id)] = entry
            return waiting.pop(name, None) or Document(name)

        yield from _batches(vectors, known)

    return Source(vectors.name, len(vectors), vectors.width, batches)


def _entries(path: Path) -> Iterator[Document]:
    """The documents of a .jsonl file: `_id`, `title`, `text`, and as metadata the object of this name and all other fields."""
    for number, line in lines(path):
        try:
            entry = json.loads(line)
            name = entry["_id"]
            metadata = {**(entry.get("metadata") or {}), **{key: value for key, value in entry.items() if key not in FIELDS}}
        except (ValueError, TypeError, KeyError):
            raise DataError(f'{path}:{number}: expected {{"_id": …, "text": …}}, found {line[:80]!r}') from None
        yield Document(str(name), str(entry.get("title") or ""), str(entry.get("text") or ""), metadata)


def _of_parquet(path: Path) -> Source:
    arrow, parquet = pyarrow_modules()
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    try:
        file = parquet.ParquetFile(path, pre_buffer=False)  # else it holds what it has read
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: this .parquet file is damaged or cut off ({path.stat().st_size} bytes): {error}") from None
    schema = file.schema_arrow
    lists = [f.name for f in schema if hasattr(f.type, "value_type") and arrow.types.is_floating(f.type.value_type)]
    names = [name for name in ID_COLUMNS if name in schema.names]
    if len(lists) != 1 or not names:
        found = ", ".join(f"{field.name} ({field.type})" for field in schema)
        raise DataError(f"{path}: expected one column of lists of floats and one of {', '.join(ID_COLUMNS)}, found {found}")
    vector, identifier = lists[0], names[0]

    def batches() -> Iterator[Batch]:
        start, width = 0, None
        try:
            for part in file.iter_batches(batch_size=BLOCK):
                ids = [str(name) for name in part.column(identifier).to_pylist()]
                values = _matrix(path, part.column(vector), start, width)
                values = unit(values) if start else values  # what is said of lengths is said once
                width = values.shape[1]
                rest = part.drop_columns([vector, identifier]).to_pylist()
                yield Batch(Vectors.of(values, ids, name=str(path)), [_document(name, row) for name, row in zip(ids, rest, strict=True)])
                start += len(ids)
        except (arrow.ArrowException, OSError) as error:
            raise DataError(f"{path}: this .parquet file is damaged behind row {start}: {error}") from None

    first = next(file.iter_batches(batch_size=1, columns=[vector]), None)
    width = 0 if first is None else len(first.column(vector)[0])
    return Source(str(path), file.metadata.num_rows, width, batches)


def _matrix(path: Path, column: Any, start: int, width: int | None) -> Any:
    """A column of lists as one array."""
    if column.null_count:
        raise DataError(f"{path}: row {start + column.is_null().to_pylist().index(True)} has no vector: drop or re-encode it")
    lengths = np.diff(column.offsets.to_numpy()) if hasattr(column, "offsets") else np.full(len(column), column.type.list_size)
    expected = int(lengths[0]) if width is None else width
    if (lengths != expected).any():
        row = int(np.flatnonzero(lengths != expected)[0])
        raise DataError(f"{path}: row {start + row} is {lengths[row]} wide, row 0 {expected}: all vectors need one width")
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), expected)


def _document(name: str, row: Mapping[str, Any]) -> Document:
    rest = {key: value for key, value in row.items() if key not in ("title", "text") and value is not None}
    return Document(name, str(row.get("title") or ""), str(row.get("text") or ""), rest)
