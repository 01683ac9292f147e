"""The manifest: a SQLite file with the segments of an index, the documents that are removed from them, and titles, texts and metadata.

It is the only file that changes: a transaction makes new segments, their documents and removals visible together, or not at all.
Every document has a checksum, and the head has checksums over everything, so damage is found. An untrusted file may have
the tables below and no others: any other table, view or trigger is refused before anything is read.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import uuid
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import numpy as np

from ...data import Document
from ...errors import ArtifactError
from ...filters.conditions import Field, there, unknown
from ...formats.files import json_of
from ...types import BYTES, I64
from . import lock
from .connection import FILE, bounded, connected, damaged, forked, told
from .segment import Entry

__all__ = ["FILE", "Head", "IndexSettings", "Manifest", "checksum_of", "log_length", "packed", "parts", "settle"]

FORMAT = "adawidth-index"
VERSION = 5
TABLES = {
    "head": "CREATE TABLE head (value TEXT NOT NULL, checksum INTEGER NOT NULL)",
    "segments": "CREATE TABLE segments (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "removed": "CREATE TABLE removed (number INTEGER PRIMARY KEY)",
    "documents": "CREATE TABLE documents (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, "
    "text TEXT NOT NULL, metadata TEXT NOT NULL, checksum INTEGER NOT NULL)",
}
SCHEMA = {
    *(("table", name, name, text) for name, text in TABLES.items()),
    *(("index", f"sqlite_autoindex_{name}_1", name, None) for name in ("segments", "documents")),
}
SEGMENTS = 1_000  # at most; a sound index has about log2 of its documents
LEAST, PER_ROW, PER_VALUE = 1_000_000, 300, 50  # instructions of SQLite that a query may take: a constant, per document, per bound value
MANY = 500  # values bound in one statement
SOME = 10_000  # documents read at a time
LOG = 4_000_000  # bytes by which the log may grow before a writer waits for readers …
PATIENCE = 1.0  # … for so many seconds
WHOLE = 2**64


@dataclass(frozen=True)
class IndexSettings:
    """What is chosen when an index is made, and never changes."""

    fingerprint: str  # of the rotation
    encoder_width: int
    width: int  # coordinates kept
    start: int  # the width that codes find candidates for
    coded: int  # coordinates that 4-bit codes cover: `start`, or twice as many
    storage: str  # as asked for: auto, or a storage by name
    ladder: tuple[int, ...]  # widths whose prefix norms are stored; the last one is `width`
    model: Mapping[str, int]  # checksum of each file of the copied model
    numbered: bool = False  # whether documents came without ids, and their ids are numbers
    bytes_per_document: int = 0  # of 4-bit codes, as asked for; 0: half of `start`; before version 5 always
    memory: int = 0  # bytes that a graph may take, if storage is auto; 0: no graph is wanted

    def __post_init__(self) -> None:
        """Refuses settings that no index has: a manifest may come from anywhere."""
        widths = (self.encoder_width, self.width, self.start, self.coded, *self.ladder)
        if not all(type(width) is int for width in widths) or not 1 <= self.start <= self.width <= self.encoder_width:
            raise ValueError("widths")
        if self.coded not in (self.start, 2 * self.start) or self.coded > self.width:
            raise ValueError("coded")
        if type(self.bytes_per_document) is not int or self.bytes_per_document not in (0, *BYTES):
            raise ValueError("bytes_per_document")
        if type(self.memory) is not int or self.memory < 0:
            raise ValueError("memory")
        if list(self.ladder) != sorted(set(self.ladder)) or self.ladder[0] < 1 or self.ladder[-1] != self.width:
            raise ValueError("ladder")
        if not isinstance(self.fingerprint, str) or not isinstance(self.model, dict) or "config.json" not in self.model:
            raise ValueError("model")


@dataclass(frozen=True)
class Head:
    """The state of an index at one commit."""

    settings: IndexSettings
    commit: int = 0
    following: int = 0  # the number that the next document gets
    documents: int = 0
    documents_sum: int = 0  # of the documents' checksums
    removed: int = 0
    removed_sum: int = 0
    identity: str = ""  # drawn when the index is made; before version 3 there was none
    words: bool = False  # whether segments have the words of titles and texts; before version 4 none had

    def __post_init__(self) -> None:
        """Refuses values that no index has."""
        if not isinstance(self.identity, str) or not isinstance(self.words, bool):
            raise ValueError("identity")
        counts = (self.commit, self.following, self.documents, self.documents_sum, self.removed, self.removed_sum)
        if not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError("counts")

    def with_documents(self, checksums: Collection[int]) -> Head:
        """With documents of these checksums more."""
        total = (self.documents_sum + sum(checksums)) % WHOLE
        return replace(self, documents=self.documents + len(checksums), documents_sum=total)

    def without_documents(self, checksums: Collection[int]) -> Head:
        """With documents of these checksums fewer."""
        total = (self.documents_sum - sum(checksums)) % WHOLE
        return replace(self, documents=self.documents - len(checksums), documents_sum=total)

    def with_removed(self, numbers: Collection[int]) -> Head:
        """With these removals more."""
        return replace(self, removed=self.removed + len(numbers), removed_sum=(self.removed_sum + sum(map(_mark, numbers))) % WHOLE)

    def without_removed(self, numbers: Collection[int]) -> Head:
        """With these removals fewer."""
        return replace(self, removed=self.removed - len(numbers), removed_sum=(self.removed_sum - sum(map(_mark, numbers))) % WHOLE)


class Manifest:
    """A connection to the manifest of an index folder. A reader sees the commit it was opened at until it is closed."""

    def __init__(self, folder: Path, *, writing: bool = False, mending: bool = False) -> None:
        self.path = folder / FILE
        self._lock = threading.Lock()
        self._writing = writing
        noted = lock.last_commit(folder)
        with self._told():
            self._db = connected(folder, writing=writing)
            try:
                if writing:
                    self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                with bounded(self._db, self.path, LEAST):
                    self._check_tables()
                    self.head, self.segments = self._read()
                with bounded(self._db, self.path, LEAST + PER_ROW * self.head.removed):
                    self.removed = self._removed()
                if self.head.commit < noted and not mending:
                    raise ArtifactError(
                        f"{self.path}: damaged: it is at commit {self.head.commit}, but commit {noted} was made; "
                        f"restore a snapshot, or go on from there after `adawidth repair {folder.name}`"
                    )
            except BaseException:
                self._db.close()
                raise

    @classmethod
    def create(cls, folder: Path, settings: IndexSettings) -> None:
        """An empty manifest."""
        db = sqlite3.connect(folder / FILE, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("BEGIN")
            for statement in TABLES.values():
                db.execute(statement)
            text, checksum = packed(Head(settings, identity=uuid.uuid4().hex), [])
            db.execute("INSERT INTO head VALUES (?, ?)", (text, checksum))
            db.execute("COMMIT")
        finally:
            db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_db"):
            self._db.close()

    def close(self) -> None:
        """Closes the connection; its commit can no longer be read."""
        self._db.close()

    def check_same(self, other: Manifest) -> None:
        """Refuses if this is the manifest of another index than an earlier one at the same path."""
        if (self.head.identity, self.head.settings) != (other.head.identity, other.head.settings) or self.head.commit < other.head.commit:
            raise ArtifactError(f"{self.path.parent}: another index is here now than the one that was opened: open it again")

    def renew(self, fresh: Manifest) -> None:
        """Takes over the connection of another manifest at the same commit: a newer connection may no longer need the log."""
        with self._lock:
            self._db, fresh._db = fresh._db, self._db

    def documents_of(self, numbers: Sequence[int]) -> dict[int, Document]:
        """The documents of these numbers, each with its checksum checked."""
        found: dict[int, Document] = {}
        for part in parts(sorted(set(numbers))):
            for row in self.query(f"SELECT * FROM documents WHERE number IN ({_marks(part)})", part):
                found[row[0]] = self._document(row)
        missing = next((number for number in numbers if number not in found), None)
        if missing is not None:
            raise self.damaged(f"document {missing} is not in it")
        return found

    def numbers_of(self, ids: Sequence[str]) -> dict[str, int]:
        """The numbers of those of these ids that are in the index, each document with its checksum checked."""
        found: dict[str, int] = {}
        for part in parts([name for name in ids if _is_unicode(name)]):
            for row in self.query(f"SELECT * FROM documents WHERE id IN ({_marks(part)})", part):
                self._check_document(row)
                found[row[1]] = row[0]
        return found

    def highest(self) -> int:
        """The highest number among ids that are numbers; -1 where there is none."""
        ((found,),) = self.query("SELECT max(CAST(id AS INTEGER)) FROM documents")
        return -1 if found is None else int(found)

    def matching(self, condition: str, values: Sequence[Any]) -> I64:
        """The numbers of the documents that meet a condition, whose values are bound and never part of its text."""
        return np.array([number for (number,) in self.query(f"SELECT number FROM documents WHERE {condition}", values)], np.int64)

    def check_fields(self, fields: Collection[Field]) -> None:
        """Refuses a filter that asks for a field which no document has, and names those there are."""
        for field in fields if self.head.documents else ():
            condition, values = there(field)
            if not self.query(f"SELECT 1 FROM documents WHERE {condition} LIMIT 1", values):
                known = self.query("SELECT DISTINCT key FROM documents, json_each(metadata)")
                raise unknown(field, [str(key) for (key,) in known], str(self.path.parent))

    def check(self) -> None:
        """Reads every page and every document; refuses a damaged one."""
        for (problem,) in self.query("PRAGMA integrity_check(1)"):
            if problem != "ok":
                raise self.damaged(problem)
        self.check_documents()

    def check_documents(self, since: int = 0) -> None:
        """Reads every document from this number on, and refuses damaged ones; from 0 on, it also checks how many there are."""
        count, total, last = 0, 0, since
        while rows := self.query("SELECT * FROM documents WHERE number >= ? ORDER BY number LIMIT ?", (last, SOME)):
            for row in rows:
                self._check_document(row)
            count, total, last = count + len(rows), total + sum(row[-1] for row in rows), rows[-1][0] + 1
            if count > self.head.documents:  # damaged pages may lead in a circle
                raise self.damaged(f"there are more documents than the {self.head.documents} that were written")
        if not since and (count, total % WHOLE) != (self.head.documents, self.head.documents_sum):
            raise self.damaged(f"{count} documents are not the {self.head.documents} that were written")

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows that a statement gives. Safe for concurrent use."""
        most = LEAST + (PER_ROW + PER_VALUE * len(values)) * (self.head.documents + self.head.removed)
        with self._lock, self._told():
            self._make_own()
            with bounded(self._db, self.path, most):
                return self._db.execute(statement, values).fetchall()

    def copy_to(self, folder: Path) -> None:
        """Writes this commit's manifest into another folder, as that of another index."""
        texts = [text for (text,) in self.query("SELECT value FROM segments ORDER BY name")]
        with self._lock, self._told():
            self._make_own()
            target = sqlite3.connect(folder / FILE, isolation_level=None)
            try:
                self._db.backup(target)
                target.execute("UPDATE head SET value = ?, checksum = ?", packed(replace(self.head, identity=uuid.uuid4().hex), texts))
            finally:
                target.close()

    def damaged(self, what: str) -> ArtifactError:
        """The error that says so."""
        return damaged(self.path, what)

    def _make_own(self) -> None:
        """In a forked process, a connection of its own to the same commit."""
        if self._db.process == os.getpid():
            return
        fresh = Manifest(self.path.parent)
        if fresh.head != self.head:
            then, now = self.head.commit, fresh.head.commit
            raise ArtifactError(f"{self.path.parent}: this process was forked at commit {then}, it is {now} now: refresh the index")
        self._db, fresh._db = fresh._db, self._db

    def _check_tables(self) -> None:
        found = self._db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchmany(len(SCHEMA) + 1)
        if set(found) != SCHEMA or len(found) != len(SCHEMA):
            raise ArtifactError(f"{self.path}: its tables are not those of an AdaWidth index: {', '.join(str(row[1]) for row in found)}")

    def _read(self) -> tuple[Head, tuple[Entry, ...]]:
        """The head and the segments, checked."""
        segments = [text for (text,) in self._db.execute("SELECT value FROM segments ORDER BY name LIMIT ?", (SEGMENTS,))]
        heads = self._db.execute("SELECT value, checksum FROM head LIMIT 2").fetchall()
        if len(heads) != 1:
            raise self.damaged(f"it has {len(heads)} heads")
        text, checksum = heads[0]
        if not all(isinstance(value, str) for value in (text, *segments)) or _checksum(text, *segments) != checksum:
            raise self.damaged("the head does not have its checksum")
        try:
            stored = json.loads(text)
            if stored["format"] != FORMAT:
                raise ArtifactError(f"{self.path}: not an AdaWidth index; expected format {FORMAT!r}")
            if stored["version"] > VERSION:
                newer = f"format version {stored['version']}"
                raise ArtifactError(f"{self.path}: {newer}, this AdaWidth reads up to {VERSION}: upgrade adawidth")
            found = {"coded": stored["settings"]["start"], **stored["settings"]}  # version 1 did not say it
            settings = IndexSettings(**{**found, "ladder": tuple(found["ladder"])})
            values = {name: value for name, value in stored.items() if name not in ("format", "version")}
            entries = sorted((Entry.of(json.loads(segment)) for segment in segments), key=lambda entry: entry.first)
            return Head(**{**values, "settings": settings}), tuple(entries)
        except (TypeError, KeyError, ValueError, AttributeError, IndexError) as error:
            raise self.damaged(f"it does not describe an index ({error})") from None

    def _removed(self) -> I64:
        numbers = [number for (number,) in self._db.execute("SELECT number FROM removed ORDER BY number LIMIT ?", (self.head.removed + 1,))]
        if (len(numbers), sum(map(_mark, numbers)) % WHOLE) != (self.head.removed, self.head.removed_sum):
            raise self.damaged(f"{len(numbers)} removals are not the {self.head.removed} that were written")
        return np.array(numbers, np.int64)

    def _document(self, row: Sequence[Any]) -> Document:
        self._check_document(row)
        _, identifier, title, text, metadata, _ = row
        name = int(identifier) if self.head.settings.numbered and identifier.isdecimal() else identifier
        try:
            known = json_of(metadata)
        except ValueError:
            known = None
        if not isinstance(known, dict):
            raise self.damaged(f"the metadata of document {identifier!r} are no JSON object")
        return Document(name, title, text, known)

    def _check_document(self, row: Sequence[Any]) -> None:
        try:
            sound = checksum_of(row[0], *row[1:-1]) == row[-1]
        except (TypeError, ValueError):
            sound = False
        if not sound:
            raise self.damaged(f"document {row[1]!r} does not have its checksum")

    def _told(self) -> AbstractContextManager[None]:
        return told(self.path, writing=self._writing)


def settle(folder: Path, mode: str = "PASSIVE") -> None:
    """Checkpoints SQLite's log as far as readers allow; does nothing if the manifest can't be written.

    Modes are SQLite's: FULL waits for readers of older commits to refresh, TRUNCATE for all that need the log, and empties it.
    """
    if forked(folder):
        return
    wait = 0.0 if mode == "PASSIVE" else PATIENCE
    with suppress(sqlite3.Error):
        db = sqlite3.connect(f"file:{quote(str((folder / FILE).absolute()))}?mode=rw", uri=True, isolation_level=None, timeout=wait)
        try:
            db.execute(f"PRAGMA wal_checkpoint({mode})")
        finally:
            db.close()


def log_length(folder: Path) -> int:
    """The length of SQLite's log, in multiples of LOG."""
    try:
        return (folder / f"{FILE}-wal").stat().st_size // LOG
    except OSError:
        return 0


def checksum_of(number: int, *texts: str) -> int:
    """Of a document. A ValueError for text that is not valid Unicode, a TypeError for anything but text."""
    return zlib.crc32("\0".join((str(number), *texts)).encode())


def _is_unicode(text: str) -> bool:
    """Whether it can be stored: half of a surrogate pair can't."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _checksum(*texts: str) -> int:
    return zlib.crc32("\0".join(texts).encode())


def _mark(number: int) -> int:
    return zlib.crc32(str(number).encode())


def packed(head: Head, segments: Sequence[str]) -> tuple[str, int]:
    """A head as text, and the checksum of it and of the segments' texts, ordered by name."""
    text = json.dumps({"format": FORMAT, "version": VERSION, **asdict(head)})
    return text, _checksum(text, *segments)


def parts(values: list[Any]) -> Iterator[list[Any]]:
    """The values in parts that one statement can bind."""
    return (values[start : start + MANY] for start in range(0, len(values), MANY))


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
