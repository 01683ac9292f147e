"""One writer at a time: a lock on a file that says which process holds it and what the last commit was.

The system frees the lock when the process ends, however it ends. The file also has the number of the last commit, outside of
SQLite: so it is noticed if commits are lost with a damaged or missing write-ahead log. If it is not known whether a commit was
written, the file has its number as a doubt, which the next writer resolves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import ArtifactError, BusyError

FILE = "lock"


@contextmanager
def held(folder: Path) -> Iterator[int]:
    """Holds the folder's lock, and yields its handle; refuses if another process, or another part of this one, holds it."""
    try:
        import fcntl  # Linux and macOS have it; without it everything but writing to an index works
    except ImportError:
        raise ArtifactError(f"{folder}: can't be locked on this system: write to an index on Linux") from None
    path = folder / FILE
    if not os.access(folder, os.W_OK):
        raise ArtifactError(f"{folder}: can't be written to: give this user the right to, or work on a snapshot")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ArtifactError(f"{folder}: can't be written to: {error.strerror}") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            process = _read(path).get("process", "unknown")
            raise BusyError(f"{folder}: process {process} is writing to it: wait until it is done; searching goes on") from None
        _write(handle, last_commit(folder), doubt(folder))
        yield handle
    finally:
        os.close(handle)


def note(handle: int, commit: int, doubt: int = 0) -> None:
    """Notes the number of a durable commit, and of one in doubt. If this can't be written, there is no note."""
    _write(handle, commit, doubt)


def last_commit(folder: Path) -> int:
    """The last commit that was noted; 0 where none was."""
    return _read(folder / FILE).get("commit", 0)


def doubt(folder: Path) -> int:
    """The commit of which it is not known whether it was written; 0 where there is none."""
    return _read(folder / FILE).get("doubt", 0)


def _write(handle: int, commit: int, doubt: int) -> None:
    data = json.dumps({"process": os.getpid(), "commit": commit, "doubt": doubt}).encode()
    with suppress(OSError):
        os.pwrite(handle, data.ljust(80), 0)


def _read(path: Path) -> dict[str, int]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            found = json.loads(os.read(handle, 80))
        finally:
            os.close(handle)
    except (OSError, ValueError):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, int)} if isinstance(found, dict) else {}
