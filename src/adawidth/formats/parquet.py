"""Parquet files, read in batches of bounded size: a few bytes of one may unpack to any number, row for row the same long text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, OptionalDependencyError
from ..types import StrPath
from .files import PLAUSIBLE, RATIO, told

FIXED = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}  # bytes of a value
BUFFER = 2**16  # bytes of a column that are read ahead


def pyarrow_modules() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet, which only some users need."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise OptionalDependencyError("pyarrow", "parquet") from None
    return pyarrow, pyarrow.parquet


def opened(path: Path) -> Any:
    """A pyarrow ParquetFile. One that says it holds far more rows, values or bytes than its length allows is refused."""
    _, parquet = pyarrow_modules()
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    with told(path):
        file = parquet.ParquetFile(path, pre_buffer=False)  # else it holds what it has read
        _check_footer(path, file)
        sizes = [(chunk.total_uncompressed_size, chunk.num_values * _bytes(file, column)) for column, chunk in _chunks(file)]
    rows, most = file.metadata.num_rows, _most(path)
    claimed = max(rows, sum(map(max, sizes)))
    if not 0 <= claimed <= most or any(min(size) < 0 for size in sizes):
        said = f"{rows} rows, {claimed} unpacked at least"
        raise DataError(f"{path}: {path.stat().st_size} bytes say they hold {said}, at most {most} are believed: write the file again")
    return file


def batches(path: Path, file: Any, rows: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Record batches of at most so many rows, until they are more than the file's length allows.

    Texts stay as they are stored, once for many rows (DictionaryArray), so that their lengths are known before they are unpacked.
    Where they are stored as differences from the text before, each may be as long as all of them: then fewer rows are read at a time.
    """
    _, parquet = pyarrow_modules()
    total, start, most = 0, 0, _most(path)
    with told(path):
        texts = [chunk for _, chunk in _chunks(file) if chunk.physical_type == "BYTE_ARRAY"]
        deltas = [chunk for chunk in texts if any(name.startswith("DELTA") for name in chunk.encodings)]
        whole = sorted({chunk.path_in_schema for chunk in texts} - {chunk.path_in_schema for chunk in deltas})
        rows = max(1, min(rows, PLAUSIBLE // max([1, *(chunk.total_uncompressed_size for chunk in deltas)])))
        packed = parquet.ParquetFile(path, read_dictionary=whole, metadata=file.metadata, pre_buffer=False)
    # a row group at a time: each has its own texts, and pyarrow can't put those of nested columns together
    groups = ([group] for group in range(file.metadata.num_row_groups))
    found = chain.from_iterable(packed.iter_batches(rows, group, columns) for group in groups)
    while True:
        with told(path):
            batch = next(found, None)
            total += 0 if batch is None else sum(map(_size, batch.columns))
        if batch is None:
            return
        if total > most:
            size, last = path.stat().st_size, start + batch.num_rows - 1
            raise DataError(f"{path}: {size} bytes unpack to {total} by row {last}, at most {most} are believed: write the file again")
        start += batch.num_rows
        yield batch


def column_of_vectors(path: StrPath, schema: Any) -> str:
    """The one column of lists of floats."""
    arrow, _ = pyarrow_modules()
    lists = [field.name for field in schema if hasattr(field.type, "value_type") and arrow.types.is_floating(field.type.value_type)]
    if len(lists) != 1:
        raise DataError(f"{path}: expected one column of lists of floats, found {len(lists)} among {described(schema)}")
    return str(lists[0])


def described(schema: Any) -> str:
    """Names and types of the columns."""
    return ", ".join(f"{field.name} ({field.type})" for field in schema)


def matrix(path: StrPath, column: Any, start: int = 0, width: int | None = None) -> Any:
    """A column of lists as one array; its first row is row `start` of the file, whose vectors have this width. (n, D)"""
    if column.null_count:
        row = start + column.is_null().to_pylist().index(True)
        raise DataError(f"{path}: row {row} has no vector, {column.null_count} rows have none: drop or re-encode them")
    lengths = np.diff(column.offsets.to_numpy()) if hasattr(column, "offsets") else np.full(len(column), column.type.list_size)
    expected = (int(lengths[0]) if len(lengths) else 0) if width is None else width
    if (lengths != expected).any():
        row = int(np.flatnonzero(lengths != expected)[0])
        raise DataError(f"{path}: row {start + row} is {lengths[row]} wide, row 0 {expected}: all vectors need one width")
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), expected)


def _check_footer(path: Path, file: Any) -> None:
    """Raises if what the footer says of a column contradicts its schema: pyarrow ends the process when asked for it, but not on reading."""
    _, parquet = pyarrow_modules()
    probe = parquet.ParquetFile(path, metadata=file.metadata, pre_buffer=False, buffer_size=BUFFER)  # which reads a page at a time
    for group in range(file.metadata.num_row_groups):
        next(probe.iter_batches(1, [group]), None)


def _most(path: Path) -> int:
    return max(PLAUSIBLE, RATIO * path.stat().st_size)


def _chunks(file: Any) -> Iterator[tuple[int, Any]]:
    """The columns of every row group, with their numbers."""
    for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
        yield from enumerate(map(group.column, range(group.num_columns)))


def _bytes(file: Any, column: int) -> int:
    """How long a value of this column is; 0 for texts, which have any length."""
    stored = file.schema.column(column)
    return int(FIXED.get(stored.physical_type, max(0, stored.length)))


def _size(array: Any) -> int:
    """Bytes that an array takes once its texts are unpacked."""
    arrow, _ = pyarrow_modules()
    import pyarrow.compute as compute

    if arrow.types.is_dictionary(array.type):
        lengths = compute.binary_length(array.dictionary).cast("int64")
        return int(compute.sum(lengths.take(array.indices)).as_py() or 0)
    if arrow.types.is_map(array.type):
        begin, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return sum(_size(part.slice(begin, end - begin)) for part in (array.keys, array.items))
    if arrow.types.is_nested(array.type):
        inside = array.flatten()
        return sum(map(_size, inside)) if isinstance(inside, list) else _size(inside)
    return int(array.nbytes)
