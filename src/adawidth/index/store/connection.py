"""Connections to a manifest, and SQLite's errors in one line.

SQLite's write-ahead log needs a shared-memory file beside it, even for reading. A user who may not write to the folder can use the
file of others who have the index open. If nobody has, or the disk is full, the manifest and its log are copied to a private file,
which is read instead. (Opening the manifest as immutable would go wrong as soon as its owner writes again.) SQLite does not survive
a fork either: a child has its parent's connections, but none of their locks. So a child reads a private copy too, and never writes.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import quote
from weakref import WeakSet

from ...errors import ArtifactError, DataError

FILE = "manifest.sqlite"
PRAGMAS = ("trusted_schema = OFF", "cell_size_check = ON", "synchronous = FULL", "temp_store = FILE")
STEP = 10_000  # instructions of SQLite between two checks of the limit
UNSHARED = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_IOERR", "SQLITE_FULL")  # there can be no shared memory
ATTEMPTS = 20  # at copying a manifest that others write to
WAIT = 60.0  # seconds, for a lock
SALTS = 32  # bytes of a log's header, which changes when the log restarts


class Connection(sqlite3.Connection):
    """A connection that knows whose it is."""

    known: ClassVar[WeakSet[Connection]] = WeakSet()  # those that are open
    inherited: ClassVar[list[Connection]] = []  # those of a parent: never closed, as that could release its locks

    path: Path
    process: int

    def of(self, path: Path) -> Self:
        """Notes the path and the process."""
        self.path, self.process = path, os.getpid()
        self.known.add(self)
        return self

    def close(self) -> None:
        """Closes it, in the process that opened it."""
        self.known.discard(self)
        if getattr(self, "process", os.getpid()) == os.getpid():
            super().close()
        else:
            self.inherited.append(self)


def forked(folder: Path) -> bool:
    """Whether this process was forked from one that had the folder's manifest open."""
    mine = os.getpid()
    return any(one.process != mine and one.path == folder / FILE for one in (*Connection.known, *Connection.inherited))


def connected(folder: Path, *, writing: bool) -> Connection:
    """A connection to a folder's manifest. Nothing has been read yet, and nothing in the file is trusted."""
    if forked(folder):
        if writing:
            raise ArtifactError(f"{folder}: this process was forked from one that has the index open: write there, or in a fresh process")
        return _copied(folder)
    if writing:
        return _opened(folder / FILE, "rw")
    try:
        db = _opened(folder / FILE, "ro")
        try:
            db.execute("SELECT 1 FROM sqlite_schema LIMIT 1")  # needs the log and its shared memory
            return db
        except BaseException:
            db.close()
            raise
    except sqlite3.OperationalError as error:
        if not error.sqlite_errorname.startswith(UNSHARED):
            raise
    return _copied(folder)


@contextmanager
def bounded(db: sqlite3.Connection, path: Path, instructions: int) -> Iterator[None]:
    """Stops queries that take more instructions than they could on an intact file: damaged pages may form a cycle."""
    left = [instructions // STEP + 1]

    def over() -> bool:
        left[0] -= 1
        return left[0] < 0

    db.set_progress_handler(over, STEP)
    try:
        yield
    except sqlite3.OperationalError:
        if left[0] >= 0:
            raise
        raise damaged(path, f"a query takes more than {instructions} steps, the most that one on an intact file can") from None
    finally:
        db.set_progress_handler(None, 0)


@contextmanager
def told(path: Path, *, writing: bool) -> Iterator[None]:
    """Turns SQLite's errors into one line."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning, UnicodeError, MemoryError, OverflowError) as error:  # a damaged page may hold anything
        what = str(error) or type(error).__name__
        name = getattr(error, "sqlite_errorname", "")
        if not path.exists():
            raise ArtifactError(f"{path.parent}: this is no index: there is no {FILE} in it") from None
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")):
            raise ArtifactError(f"{path}: another process holds it locked: wait until it is done") from None
        if name.startswith((*UNSHARED, "SQLITE_NOMEM")):
            if writing:
                raise DataError(f"{path}: not written, the disk is full or can't be written ({what}): free some space") from None
            raise ArtifactError(f"{path}: can't be opened or read ({what}): look at the disk, its space and the rights") from None
        raise damaged(path, what) from None


def damaged(path: Path, what: str) -> ArtifactError:
    """The error that says so."""
    return ArtifactError(f"{path}: damaged: {what}; restore a snapshot or index the documents again")


def _opened(path: Path, mode: str) -> Connection:
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=WAIT, factory=Connection).of(path)
    try:
        for pragma in PRAGMAS:
            db.execute(f"PRAGMA {pragma}")
        if sys.version_info >= (3, 12):
            db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    except BaseException:
        db.close()
        raise
    return db


def _copied(folder: Path) -> Connection:
    """A connection to a private copy, whose files are unlinked as soon as it is open."""
    with tempfile.TemporaryDirectory(prefix="adawidth-") as private:
        copy = Path(private) / FILE
        try:
            _copy(folder / FILE, copy)
        except OSError as error:
            what = f"can't be read, nor copied to {private} ({error.strerror})"
            raise ArtifactError(f"{folder / FILE}: {what}: look at the disk, its space and the rights") from None
        db = _opened(copy, "rw")
        try:
            db.execute("PRAGMA journal_mode = DELETE")  # a checkpoint
        finally:
            db.close()
        db = _opened(copy, "ro&immutable=1")
        try:
            db.execute("SELECT 1 FROM sqlite_schema LIMIT 1")
        except BaseException:
            db.close()
            raise
        return db


def _copy(path: Path, copy: Path) -> None:
    """Copies a manifest with its log as of one moment; repeats that if they change meanwhile.

    The log is read before and after. As long as it does not restart, the manifest changes only by what is in the log.
    """
    log = path.with_name(f"{FILE}-wal")
    for _ in range(ATTEMPTS):
        before = (_state(path), _bytes(log)[:SALTS])
        shutil.copyfile(path, copy, follow_symlinks=False)
        data = _bytes(log)
        if (_state(path), data[:SALTS]) == before:
            copy.with_name(log.name).write_bytes(data)
            return
    raise ArtifactError(f"{path}: others write to it all the time, and this user may not share their log: try again, or use a snapshot")


def _state(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
