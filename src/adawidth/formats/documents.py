"""Readers that stream documents into an index: vectors in batches, with what is known of each document.

Dataset folders, vector files and Parquet files are read while the index is written: a million documents are never in memory at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import BLOCK, Document, Vectors
from ..data.vectors import one_per_row
from ..errors import DataError
from ..types import StrPath
from .beir import check_width, load_documents, read_entries
from .files import existing, told
from .parquet import batches, column_of_vectors, described, matrix, opened
from .texts import holds_texts
from .vectors import ID_COLUMNS, READERS, named, read_found

log = logging.getLogger("adawidth")

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
    numbered: bool = False  # whether they came without ids, and their ids are row numbers


def of_vectors(
    vectors: Vectors,
    titles: Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    metadata: Sequence[Mapping[str, Any]] | None = None,
) -> Source:
    """Vectors with, where given, titles, texts and metadata, one per row."""
    columns = {
        name: one_per_row(given, len(vectors), vectors.name, what)
        for name, what, given in (("title", "titles", titles), ("text", "texts", texts), ("metadata", "metadata", metadata))
        if given is not None
    }

    def known(row: int) -> Document:
        return Document(vectors.ids[row], **{name: values[row] for name, values in columns.items()})

    return Source(vectors.name, len(vectors), vectors.width, lambda: _batches(vectors, known), isinstance(vectors.ids, range))


def of_loaded(vectors: Vectors) -> Source:
    """Vectors, with what corpus.jsonl says of them if they were loaded from a dataset folder that has one."""
    file = Path(vectors.name)
    inside = file.stem == "corpus" and file.parent.parent.name == "embeddings" and not isinstance(vectors.ids, range)
    texts = existing(file.parents[2] / "corpus.jsonl") if inside else None
    return of_vectors(vectors) if texts is None else _described(vectors, texts)


def of_dataset(path: Path, encoder: str | None = None, *, width: int | None = None) -> Source:
    """The documents of a dataset folder, with what corpus.jsonl says of them where there is one. Other widths than `width` are refused."""
    return _described(load_documents(path, encoder, width=width), existing(path / "corpus.jsonl"))


def of_file(path: Path, *, width: int | None = None) -> Source:
    """A .parquet file with a column of vectors, one of ids and, where there are, title, text and others as metadata; or any other
    file of vectors, with what a .jsonl file of the same name beside it says of the documents."""
    if path.suffix == ".parquet":
        return _of_parquet(path, width)
    values, ids = read_found(path)
    if values.ndim == 2:
        check_width(str(path), values.shape[1], width)
    if ids is None:
        raise DataError(f"{path}: there are no ids: add {path.with_suffix('.ids').name} with one id per line")
    return _described(Vectors.of(values, ids, name=str(path)), existing(path.with_suffix(".jsonl")))


def has_vectors(path: Path) -> bool:
    """Whether a file is one of vectors: by its suffix or, of Parquet, by a column of lists of numbers."""
    if path.suffix != ".parquet":
        return path.suffix in READERS or not holds_texts(path)
    try:
        column_of_vectors(path, opened(path).schema_arrow)
    except DataError:
        return False
    return True


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
        without: list[str] = []

        def known(row: int) -> Document:
            name = str(vectors.ids[row])
            while name not in waiting and (entry := next(entries, None)) is not None:
                waiting[str(entry.id)] = entry
            if name not in waiting:
                without.append(name)
            return waiting.pop(name, None) or Document(name)

        yield from _batches(vectors, known)
        if texts is not None and without:
            log.warning("%s: says nothing of %d of %d documents, %r first", texts, len(without), len(vectors), without[0])

    return Source(vectors.name, len(vectors), vectors.width, batches)


def _entries(path: Path) -> Iterator[Document]:
    """The documents of a .jsonl file: `_id`, `title`, `text`, and as metadata the object of this name and all other fields."""
    for name, entry in read_entries(path):
        stated = entry.get("metadata") or {}
        if not isinstance(stated, dict):
            raise DataError(f"{path}: the metadata of {name!r} is {str(stated)[:80]}: expected an object")
        metadata = {**stated, **{key: value for key, value in entry.items() if key not in FIELDS}}
        yield Document(name, str(entry.get("title") or ""), str(entry.get("text") or ""), metadata)


def _of_parquet(path: Path, expected: int | None) -> Source:
    file = opened(path)
    vector, _ = columns_of(path, file.schema_arrow)

    def read() -> Iterator[Batch]:
        start, width = 0, None
        for part in batches(path, file, BLOCK):
            with told(path):
                batch = batch_of(path, part, start, width)
            width = batch.vectors.width
            yield batch
            start += len(batch.documents)

    first = next(batches(path, file, 1, [vector]), None)
    width = 0 if first is None else matrix(path, first.column(vector)).shape[1]
    check_width(str(path), width, expected)
    return Source(str(path), file.metadata.num_rows, width, read)


def columns_of(place: StrPath, schema: Any) -> tuple[str, str]:
    """The names of the columns of vectors and of ids."""
    vector = column_of_vectors(place, schema)
    identifier = next((name for name in ID_COLUMNS if name in schema.names), None)
    if identifier is None:
        raise DataError(f"{place}: expected a column of ids, one of {', '.join(ID_COLUMNS)}, found {described(schema)}")
    return vector, identifier


def batch_of(place: StrPath, part: Any, start: int = 0, width: int | None = None) -> Batch:
    """An Arrow record batch as documents: vectors, ids, title, text, and every other column as metadata. `start` is its first row."""
    vector, identifier = columns_of(place, part.schema)
    ids = named(place, part.column(identifier).to_pylist())
    values = matrix(place, part.column(vector), start, width)
    rest = part.drop_columns([vector, identifier]).to_pylist()
    vectors = Vectors.of(values, ids, name=str(place), note=not start)  # of lengths that are not one: once
    return Batch(vectors, [_document(name, row) for name, row in zip(ids, rest, strict=True)])


def _document(name: str, row: Mapping[str, Any]) -> Document:
    rest = {key: value for key, value in row.items() if key not in ("title", "text") and value is not None}
    return Document(name, str(row.get("title") or ""), str(row.get("text") or ""), rest)
