"""Plain files: numbered lines, gzipped or not, and files that appear whole or not at all."""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
import stat
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

from ..errors import AdaWidthError, DataError
from ..types import StrPath

PART = 2**20  # bytes read at a time
LONGEST = 2**26  # bytes of a line
PLAUSIBLE, RATIO = 2**28, 200  # a packed file may unpack to so many bytes, or to so many times its own


def existing(path: Path) -> Path | None:
    """This text file or, where there is none, the same with .gz; None where there is neither."""
    return next((file for file in (path, path.with_name(path.name + ".gz")) if file.is_file()), None)


def regular_bytes(path: Path, limit: int) -> bytes:
    """What a file holds; an OSError for links, for pipes and devices, which could be waited for, and for more than `limit` bytes."""
    with _regular(path, limit) as (file, size):
        return file.read(size)  # not `limit`, for which memory would be taken


def regular_checksum(path: Path, limit: int) -> int:
    """CRC-32 of what a file holds, which is refused as `regular_bytes` does."""
    checksum = 0
    with _regular(path, limit) as (file, _):
        while part := file.read(PART):
            checksum = zlib.crc32(part, checksum)
    return checksum


@contextmanager
def _regular(path: Path, limit: int) -> Iterator[tuple[IO[bytes], int]]:
    """A plain file, opened, and its size."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if found.st_size > limit:
            raise OSError(errno.EFBIG, f"{found.st_size} bytes, at most {limit} are expected")
        yield file, found.st_size


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turns whatever a library raises on a damaged file into an error of one line."""
    try:
        yield
    except AdaWidthError:
        raise
    except Exception as error:
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{path}: can't be read: {error.strerror}") from None
        size = path.stat().st_size
        raise DataError(f"{path}: this {path.suffix} file is damaged or cut off ({size} bytes): {reason}") from None


def json_of(text: str | bytes) -> Any:
    """The value; a ValueError also for what is nested too deeply, and for halves of characters, which no file of ours can hold."""
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if "\\ud" in text or "\\uD" in text:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def as_json(value: Any) -> Any:
    """A value of a table or of front matter as JSON has it: dates as text, what JSON lacks (NaN, bytes) as None."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(inner) for inner in value]
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, bytes | bytearray | memoryview):
        return None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, line without its end) of a UTF-8 file, gzipped where its name ends in .gz."""
    number = total = 0
    try:
        if path.exists() and not path.is_file():
            raise DataError(f"{path}: this is no file but a folder, a pipe or a device: give a file")
        packed = path.suffix == ".gz"
        with gzip.open(path) if packed else path.open("rb") as file:
            most = max(PLAUSIBLE, RATIO * path.stat().st_size)
            while line := file.readline(LONGEST):
                total += len(line)
                if len(line) == LONGEST or (packed and total > most):
                    what = f"over {LONGEST} bytes long" if len(line) == LONGEST else f"{total} bytes into {path.stat().st_size} packed ones"
                    raise DataError(f"{path}:{number + 1}: this line is {what}: that is no text, fetch or write it again")
                text = line.decode().rstrip("\r\n")
                number += 1
                yield number, text
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DataError(f"{path}:{number + 1}: expected UTF-8, found byte 0x{byte:02x}: convert the file to UTF-8") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        size = path.stat().st_size
        raise DataError(f"{path}: damaged or cut off behind line {number} ({size} bytes, {error}): fetch or write it again") from None
    except OSError as error:
        raise DataError(f"{path}: can't be read: {error.strerror}") from None


@contextmanager
def atomic_file(path: StrPath) -> Iterator[IO[bytes]]:
    """A file to write. It gets its name, replacing an existing file, only if the block succeeds."""
    path = Path(path)
    building = hidden_name(path)
    with written(path):
        try:
            with building.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(building, path)
            sync(path.parent)
        finally:
            building.unlink(missing_ok=True)


def write_lines(path: StrPath, text: Iterable[str]) -> None:
    """Lines of UTF-8, gzipped (the same bytes every time) where the name ends in .gz; atomic."""
    with atomic_file(path) as file:
        if Path(path).suffix == ".gz":
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                packed.writelines(f"{line}\n".encode() for line in text)
        else:
            file.writelines(f"{line}\n".encode() for line in text)


def hidden_name(path: Path) -> Path:
    """A hidden name in the same folder, and so on the same disk, that nothing has."""
    absolute = Path(os.path.abspath(path))
    return absolute.with_name(f".{absolute.name}.{uuid.uuid4().hex}.tmp")


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Turns a system error during a write to `path` into an error of one line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, None):  # NumPy's short writes carry no number
            reason = "the disk is full: free some space, or choose another path (--out)"
        elif isinstance(error, FileExistsError):  # a parent that is to be made
            reason = f"{error.filename} is a file: choose another path (--out)"
        else:
            reason = f"{error.strerror or error}: choose another path (--out)"
        raise DataError(f"{path}: not written, {reason}") from error


def sync(path: Path) -> None:
    """Waits until this file, or this folder's entries, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
