"""Shards: the parts of a collection that workers read one at a time.

Parquet files and folders and Lance data sets, on disk or by the URI of an object store; and the other files of vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..data import BLOCK
from ..errors import DataError, need
from ..formats.files import told
from ..formats.parquet import pyarrow_modules
from ..formats.vectors import READERS, Found, read_found

SHARD = 262_144  # rows of a shard, or more where a single row group or fragment has more


@dataclass(frozen=True)
class Piece:
    """Some of a file: row groups of a Parquet file, a fragment of a Lance data set, or rows of a file of vectors."""

    path: str
    groups: tuple[int, ...]
    rows: int


@dataclass(frozen=True)
class Shard:
    """A part of a collection: its number, its first row, and where it lies."""

    place: str
    number: int
    start: int
    rows: int
    pieces: tuple[Piece, ...]

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Its Arrow record batches, in order; all columns, or these."""
        pyarrow_modules()
        for piece in self.pieces:
            yield from _read(self.place, piece, columns)


def shards_of(place: str, size: int = SHARD) -> list[Shard]:
    """The shards of a collection, in the order of its rows."""
    pyarrow_modules()
    pieces = list(_pieces(place, size))
    if not sum(piece.rows for piece in pieces):
        raise DataError(f"{place}: there are no rows: give a .parquet file or a folder of them, a .lance data set, or a file of vectors")
    shards: list[Shard] = []
    start, waiting = 0, list[Piece]()
    for place_of, piece in enumerate(pieces):
        waiting.append(piece)
        rows = sum(one.rows for one in waiting)
        if rows >= size or place_of == len(pieces) - 1:
            shards.append(Shard(place, len(shards), start, rows, tuple(waiting)))
            start, waiting = start + rows, []
    return shards


def filesystem(place: str) -> tuple[Any, str]:
    """pyarrow's file system of a path or URI, and the path in it."""
    from pyarrow import fs

    if "://" not in place:
        return fs.LocalFileSystem(), str(Path(place).resolve())
    try:
        system, path = fs.FileSystem.from_uri(place)
    except (ValueError, OSError) as error:
        raise DataError(f"{place}: no file system for this address: {str(error).partition(chr(10))[0][:200]}") from None
    return system, str(path)


def is_local(system: Any) -> bool:
    """Whether a folder can be renamed in one step."""
    from pyarrow import fs

    return isinstance(system, fs.LocalFileSystem)


def stamps(shards: Sequence[Shard]) -> list[tuple[str, int | None, int | None]]:
    """Path, size and time of the last change of every file, by which a run sees that its input is another one now."""
    system, whole = filesystem(shards[0].place)
    paths = {whole if piece.path == shard.place else piece.path for shard in shards for piece in shard.pieces}
    return [(found.path, found.size, found.mtime_ns) for found in system.get_file_info(sorted(paths))]


def _pieces(place: str, size: int) -> Iterator[Piece]:
    """What a collection is made of, in order."""
    if place.rstrip("/").endswith(".lance"):
        need("lance")
        import lance

        for fragment in _opened(place, lambda: lance.dataset(place)).get_fragments():
            yield Piece(place, (fragment.fragment_id,), fragment.count_rows())
    elif Path(place).suffix in READERS and Path(place).suffix != ".parquet":
        rows = len(_vectors(place)[0])
        for start in range(0, rows, size):
            yield Piece(place, (start,), min(size, rows - start))
    else:
        _, parquet = pyarrow_modules()
        system, _ = filesystem(place)
        for path in _files(place):
            metadata = _opened(path, lambda path=path: parquet.read_metadata(path, filesystem=system))
            for group in range(metadata.num_row_groups):
                yield Piece(path, (group,), metadata.row_group(group).num_rows)


def _files(place: str) -> list[str]:
    """The Parquet files of a folder by name, or the file itself; names that begin with _ or . are left out, as everywhere."""
    from pyarrow import fs

    system, path = filesystem(place)
    found = system.get_file_info(path)
    if found.type == fs.FileType.NotFound:
        raise DataError(f"{place}: there is no such file or folder")
    if found.type == fs.FileType.File:
        if not path.endswith(".parquet"):
            raise DataError(f"{place}: vectors are read from {', '.join(READERS)}, .lance and folders of .parquet files, this is neither")
        return [path]
    inside = system.get_file_info(fs.FileSelector(path, recursive=True))
    names = sorted(one.path for one in inside if one.type == fs.FileType.File and one.path.endswith(".parquet"))
    return [name for name in names if not any(part.startswith(("_", ".")) for part in name[len(path) :].split("/") if part)]


def _read(place: str, piece: Piece, columns: Sequence[str] | None) -> Iterator[Any]:
    arrow, parquet = pyarrow_modules()
    if place.rstrip("/").endswith(".lance"):
        import lance

        yield from lance.dataset(place).get_fragment(piece.groups[0]).to_batches(columns=columns and list(columns), batch_size=BLOCK)
    elif Path(place).suffix in READERS and Path(place).suffix != ".parquet":
        values, ids = _vectors(place)
        for start in range(piece.groups[0], piece.groups[0] + piece.rows, BLOCK):
            stop = min(start + BLOCK, piece.groups[0] + piece.rows)
            block = values[start:stop]
            flat = arrow.array(block.reshape(-1))
            names = arrow.array([str(row) for row in range(start, stop)] if ids is None else ids[start:stop])
            yield arrow.record_batch({"id": names, "vector": arrow.FixedSizeListArray.from_arrays(flat, block.shape[1])})
    else:
        system, _ = filesystem(place)
        try:
            with system.open_input_file(piece.path) as stream:
                file = parquet.ParquetFile(stream, pre_buffer=False)
                yield from file.iter_batches(batch_size=BLOCK, row_groups=list(piece.groups), columns=columns and list(columns))
        except (OSError, arrow.ArrowException) as error:
            raise _damaged(piece.path, error) from None


@lru_cache(maxsize=1)
def _vectors(place: str) -> Found:
    """A file of vectors, opened once in each process."""
    values, ids = read_found(Path(place))
    if values.ndim != 2:
        raise DataError(f"{place}: expected one vector per row (2 dimensions), found {values.ndim}: reshape the array")
    return values, ids


def _opened(path: str, read: Any) -> Any:
    """What `read` gives; whatever a library raises on a damaged file becomes an error of one line."""
    if Path(path).is_file():
        with told(Path(path)):
            return read()
    try:
        return read()
    except Exception as error:
        raise _damaged(path, error) from None


def _damaged(path: str, error: Exception) -> DataError:
    return DataError(f"{path}: can't be read: {str(error).partition(chr(10))[0][:200]}")
