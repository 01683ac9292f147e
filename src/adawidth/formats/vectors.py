"""Vectors in files: .npy (memory-mapped), .npz, .safetensors and .parquet, with their ids. Nothing is ever unpickled.

Ids stand inside the last three (an array, tensor or column called ids or id), or else in an .ids file of the same name,
one per line in row order. Ids read from a file are strings.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import safetensors
import safetensors.numpy

from ..data import BLOCK, Vectors
from ..errors import DataError
from ..types import Array, Floats, Id, StrPath
from .files import PLAUSIBLE, RATIO, atomic_file, existing, lines, told, write_lines
from .parquet import batches, column_of_vectors, matrix, opened, pyarrow_modules

Found = tuple[Array, list[str] | None]  # what a file holds: values, and ids where it has them

VALUES, IDS = "vectors", "ids"
ID_COLUMNS = ("id", "_id", "ids")


def read_vectors(path: StrPath) -> Vectors:
    """The vectors of a file. Where neither it nor an .ids file beside it has ids, they are row numbers."""
    path = Path(path)
    values, ids = read_found(path)
    return Vectors.of(values, ids, name=str(path))


def read_found(path: Path) -> Found:
    """Values as they are stored, unchecked, and the ids where the file or the .ids file beside it has them."""
    if path.suffix not in READERS:
        raise DataError(f"{path}: vectors are read from {', '.join(READERS)} files, this is {path.suffix or 'without a suffix'}")
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    with told(path):
        values, ids = READERS[path.suffix](path)
    beside = existing(path.with_suffix(".ids"))
    return values, read_ids(beside) if ids is None and beside else ids


def write_vectors(path: StrPath, vectors: Vectors) -> None:
    """Writes values as they are and ids; the suffix chooses the format. An .npy gets an .ids file beside it."""
    path = Path(path)
    if path.suffix not in WRITERS:
        raise DataError(f"{path}: vectors are written to {', '.join(WRITERS)} files, this is {path.suffix or 'without a suffix'}")
    WRITERS[path.suffix](path, vectors.values, _lines_of_ids(path, vectors.ids))


def read_ids(path: StrPath) -> list[str]:
    """One id per line, none empty; .gz accepted."""
    ids = []
    for number, line in lines(Path(path)):
        if not line:
            raise DataError(f"{path}:{number}: expected an id, found an empty line: give one id per line")
        ids.append(line)
    return ids


def write_ids(path: StrPath, ids: Sequence[Id]) -> None:
    """Writes one id per line."""
    write_lines(path, _lines_of_ids(Path(path), ids))


def _lines_of_ids(path: Path, ids: Sequence[Id]) -> list[str]:
    names = [str(identifier) for identifier in ids]
    for row, name in enumerate(names):
        if not name or "\n" in name or name.endswith("\r"):
            raise DataError(f"{path}: id {name!r} of row {row} can't stand on a line of its own: rename it")
    return names


def _read_npy(path: Path) -> Found:
    size = path.stat().st_size
    with path.open("rb") as file:
        try:
            shape, dtype = _head(file)
        except Exception as error:  # of a damaged head NumPy's parser makes anything
            reason = str(error).partition("\n")[0][:200]
            raise DataError(f"{path}: this is no .npy file, or one whose head is damaged ({size} bytes): {reason}") from None
        expected = file.tell() + math.prod(shape) * dtype.itemsize
    if dtype.hasobject:
        raise DataError(f"{path}: this .npy holds pickled Python objects, which are never loaded: save it as a float32 array")
    if size != expected:
        raise _cut_off(path, expected, size)
    if 0 in shape:
        return np.empty(shape, dtype), None  # nothing to map
    return np.load(path, mmap_mode="r", allow_pickle=False), None


def _head(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type that the head of an .npy tells."""
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if any(length < 0 for length in shape) or not dtype.itemsize:
        raise ValueError(f"shape {shape} of {dtype}")
    return shape, dtype


def _read_npz(path: Path) -> Found:
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
            raise DataError(f"{path}: this is no .npz file but a single array: name it .npy")
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist() if info.filename.endswith(".npy")}
        shapes = {name: _shape(path, archive, info, size) for name, info in members.items()}

        def read(name: str) -> Array:
            with archive.open(members[name]) as member:
                return np.asarray(np.lib.format.read_array(member, allow_pickle=False))

        return read(_values(path, shapes)), _ids(path, read(IDS)) if IDS in members else None


def _shape(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> tuple[int, ...]:
    """The shape of a packed array, which must be as long as its head says, and no longer than its packed bytes can be."""
    if info.compress_size > size or info.file_size > max(PLAUSIBLE, RATIO * info.compress_size):
        raise DataError(f"{path}: {info.filename[:60]!r} unpacks {info.compress_size} bytes to {info.file_size}: these are no vectors")
    with archive.open(info) as member:
        shape, dtype = _head(member)
        expected = member.tell() + math.prod(shape) * dtype.itemsize
    if dtype.hasobject:
        raise DataError(f"{path}: this holds pickled Python objects, which are never loaded: save plain arrays with np.savez")
    if expected != info.file_size:
        raise _cut_off(path, expected, info.file_size)
    return shape


def _read_safetensors(path: Path) -> Found:
    try:
        tensors = safetensors.numpy.load_file(path)
    except Exception as error:  # the library's own kinds differ between versions
        expected, size = _safetensors_size(path), path.stat().st_size
        if expected is not None and expected != size:
            raise _cut_off(path, expected, size) from None
        raise DataError(f"{path}: this .safetensors file is damaged ({size} bytes) or not of float16, 32 or 64: {error}") from None
    values = tensors[_values(path, {name: array.shape for name, array in tensors.items()})]
    return values, _ids(path, tensors[IDS]) if IDS in tensors else None


def _safetensors_size(path: Path) -> int | None:
    """How long the file's own head says it is; None where the head is damaged."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        try:
            head = json.loads(file.read(length) if length <= path.stat().st_size else b"")
            return 8 + length + max(int(entry["data_offsets"][1]) for name, entry in head.items() if name != "__metadata__")
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError):
            return None


def _values(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """The array called vectors, or else the only one with two dimensions."""
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    if VALUES not in shapes and len(tables) != 1:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())[:200] or "none"
        raise DataError(f"{path}: expected an array called {VALUES!r} or only one with 2 dimensions, found {found}")
    return VALUES if VALUES in shapes else tables[0]


def _ids(path: Path, stored: Array) -> list[str]:
    """Ids from an array of them, or from their lines as UTF-8 bytes (safetensors has no strings)."""
    if stored.ndim != 1:
        raise DataError(f"{path}: ids have {stored.ndim} dimensions, expected one id per row")
    return named(path, stored.tobytes().split(b"\n") if stored.dtype == np.uint8 else stored.tolist())


def named(path: StrPath, ids: Iterable[Any]) -> list[str]:
    """Ids as text; one that is missing, or that UTF-8 can't hold, is refused with its row."""
    names = []
    for row, identifier in enumerate(ids):
        try:
            name = identifier.decode() if isinstance(identifier, bytes) else str(identifier)
            name.encode()
        except UnicodeError:
            raise DataError(f"{path}: the id of row {row} is not UTF-8, found {ascii(identifier)[:60]}: rename it") from None
        if identifier is None:
            raise DataError(f"{path}: row {row} has no id: every vector needs one")
        names.append(name)
    return names


def _read_parquet(path: Path) -> Found:
    arrow, _ = pyarrow_modules()
    file = opened(path)
    vector = column_of_vectors(path, file.schema_arrow)
    identifier = next((name for name in ID_COLUMNS if name in file.schema_arrow.names), None)
    wanted = [vector] if identifier is None else [vector, identifier]
    parts = list(batches(path, file, BLOCK, wanted))
    kind = file.schema_arrow.field(vector).type
    column = arrow.chunked_array([part.column(vector) for part in parts], kind).combine_chunks()
    values = matrix(path, column)
    ids = None if identifier is None else [name for part in parts for name in part.column(identifier).to_pylist()]
    return values, None if ids is None else named(path, ids)


def _cut_off(path: Path, expected: int, size: int) -> DataError:
    return DataError(f"{path}: expected {expected} bytes, found {size}: the file is cut off or damaged, fetch or write it again")


def _write_npy(path: Path, values: Floats, ids: list[str]) -> None:
    with atomic_file(path) as file:
        np.lib.format.write_array(file, values, allow_pickle=False)
    write_lines(path.with_suffix(".ids"), ids)


def _write_npz(path: Path, values: Floats, ids: list[str]) -> None:
    with atomic_file(path) as file:
        np.savez(file, allow_pickle=False, **{VALUES: values, IDS: np.array(ids, np.str_)})


def _write_safetensors(path: Path, values: Floats, ids: list[str]) -> None:
    text = np.frombuffer("\n".join(ids).encode(), np.uint8)
    with atomic_file(path) as file:
        file.write(safetensors.numpy.save({VALUES: np.ascontiguousarray(values), IDS: text}))


def _write_parquet(path: Path, values: Floats, ids: list[str]) -> None:
    arrow, parquet = pyarrow_modules()
    flat = arrow.array(np.ascontiguousarray(values).reshape(-1))
    table = arrow.table({"id": ids, "vector": arrow.FixedSizeListArray.from_arrays(flat, values.shape[1])})
    with atomic_file(path) as file:
        parquet.write_table(table, file)


READERS: Mapping[str, Callable[[Path], Found]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".parquet": _read_parquet,
}
WRITERS: Mapping[str, Callable[[Path, Floats, list[str]], None]] = {
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".safetensors": _write_safetensors,
    ".parquet": _write_parquet,
}
