"""One change of an index. What it adds and removes becomes visible in one commit, or never.

The order makes this so. Segment files are written and synced first, under names that no manifest has. Then one SQLite transaction
adds them to the manifest, with their documents and the removals.

A process that dies in between leaves segment files that the manifest does not list. They may still be needed: a writer that is
killed while SQLite syncs its log can leave a whole commit there. Others don't see it as long as a reader keeps the log's shared
memory, but SQLite recovers it once all of them have ended. A later commit overwrites it. So files are swept only after a commit
of one's own: from then on no earlier commit can come back.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...data import Document
from ...errors import AdaWidthError, ArtifactError, DataError, UnknownOutcomeError
from ...formats.files import sync
from ...types import I64
from . import lock
from .manifest import Manifest, checksum_of, packed, parts
from .segment import NAME, Entry

TOGETHER = 64  # documents that one statement inserts: one each takes longer
ASIDE = "aside"  # where `repair` moves files that hold what it could not save


class Change(Manifest):
    """The manifest in a transaction: nobody else sees a change before `commit`."""

    def __init__(self, folder: Path, *, mending: bool = False) -> None:
        super().__init__(folder, writing=True, mending=mending)
        self._before = (self.head, self.segments)

    def insert(self, documents: Sequence[Document], *, update: bool = False) -> I64:
        """Adds documents and returns their numbers, ascending. Existing ids are replaced with `update`, and refused without."""
        head, checksums = self.head, array("Q")
        known = self.numbers_of([str(document.id) for document in documents]) if update else {}
        self.remove([number for number in known.values() if number < self._before[0].following])
        with self._told():
            try:
                for start in range(0, len(documents), TOGETHER):
                    some = documents[start : start + TOGETHER]
                    values = _values(some, head.following + start, checksums)
                    self._db.execute(f"INSERT INTO documents VALUES {', '.join(['(?, ?, ?, ?, ?, ?)'] * len(some))}", values)
            except sqlite3.IntegrityError:
                raise self._twice(documents) from None
        self.head = replace(self.head.with_documents(checksums), following=head.following + len(checksums))
        return np.arange(head.following, self.head.following, dtype=np.int64)

    def remove(self, numbers: Collection[int]) -> None:
        """Removes documents; their rows stay in their segments until these are replaced."""
        self.forget(numbers)
        with self._told():
            self._db.executemany("INSERT INTO removed VALUES (?)", ((number,) for number in numbers))
        self.head = self.head.with_removed(numbers)

    def forget(self, numbers: Collection[int]) -> None:
        """Removes documents whose rows are in no segment."""
        for part in parts(list(numbers)):
            gone = self.query(f"DELETE FROM documents WHERE number IN ({', '.join('?' * len(part))}) RETURNING checksum", part)
            self.head = self.head.without_documents([checksum for (checksum,) in gone])

    def replace(self, old: Sequence[Entry], new: Sequence[Entry]) -> None:
        """Replaces segments. The new ones have no rows of documents that were removed before this change."""
        for entry in old:
            gone = self.removed[(self.removed >= entry.first) & (self.removed <= entry.last)].tolist()
            with self._told():
                self._db.executemany("DELETE FROM removed WHERE number = ?", [(number,) for number in gone])
            self.head = self.head.without_removed(gone)
        names = {entry.name for entry in old}
        kept = [entry for entry in self.segments if entry.name not in names]
        self.segments = tuple(sorted((*kept, *new), key=lambda entry: entry.first))

    def commit(self) -> bool:
        """Makes the change visible and durable. Without a change there is no commit; returns whether there was one."""
        if (self.head, self.segments) == self._before:
            self.rollback()
            return False
        self.head = replace(self.head, commit=self.head.commit + 1)
        before, after = ({entry.name: entry for entry in segments} for segments in (self._before[1], self.segments))
        with self._told():
            self._db.executemany("DELETE FROM segments WHERE name = ?", [(name,) for name in before.keys() - after.keys()])
            new = [(name, json.dumps(after[name].to_json())) for name in after.keys() - before.keys()]
            self._db.executemany("INSERT INTO segments VALUES (?, ?)", new)
            texts = [text for (text,) in self._db.execute("SELECT value FROM segments ORDER BY name")]
            self._db.execute("UPDATE head SET value = ?, checksum = ?", packed(self.head, texts))
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._find_out(error)
        self._before = (self.head, self.segments)
        with suppress(sqlite3.Error):  # readers of older commits, or a full disk, may prevent a checkpoint: the next commit tries again
            self._db.execute("PRAGMA busy_timeout = 0")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return True

    def make_certain(self, doubt: int) -> None:
        """Makes this manifest's state the only one that can ever be seen, whatever failed or killed writers left in the log.

        An empty commit overwrites what is in the log but not yet visible. If a commit whose sync had failed (number `doubt`) is
        visible, its pages may be in memory only: a checkpoint copies them to the manifest and syncs it.
        """
        with self._told():
            (turn,) = self._db.execute("PRAGMA user_version").fetchone()  # a number without meaning: SQLite writes only pages that change
            self._db.execute(f"PRAGMA user_version = {(turn + 1) % 2**31}")
            self._db.execute("COMMIT")
            if 0 < doubt <= self.head.commit:
                (busy, *_) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if busy:
                    raise ArtifactError(f"{self.path}: an earlier write failed, and readers keep it from being settled: close them first")
            self._db.execute("BEGIN IMMEDIATE")

    def rollback(self) -> None:
        """Undoes the change."""
        self.head, self.segments = self._before
        with suppress(sqlite3.Error):  # SQLite has done so itself, or the connection is closed
            self._db.execute("ROLLBACK")

    def _find_out(self, error: sqlite3.Error) -> None:
        """COMMIT has failed: SQLite rolled the transaction back, but its log may still hold it, and recover it later.

        Finds out which it is, and makes that final. Returns if the change is written, else raises.
        """
        wanted = self.head.commit
        self._db.close()  # it may be in no state to go on
        try:
            with Change(self.path.parent, mending=True) as found:
                found.make_certain(wanted)
                written = found.head.commit == wanted
        except (AdaWidthError, sqlite3.Error) as second:
            raise UnknownOutcomeError(
                f"{self.path.parent}: it is not known whether this was written ({error}; then {second}): "
                "free some space or mend the disk, open the index again and look"
            ) from error
        if not written:
            raise DataError(f"{self.path.parent}: not written, the index is as it was ({error}): free space or mend the disk") from error

    def _twice(self, documents: Sequence[Document]) -> DataError:
        """The error that names an id which is in the index already, or twice in this change."""
        known = self.numbers_of([str(document.id) for document in documents])
        stood = next((name for name, number in known.items() if number < self._before[0].following), None)
        if stood is not None:
            return DataError(f"{self.path.parent}: id {stood!r} is in the index already: use update, or remove it first")
        counts = Counter(str(document.id) for document in documents)
        before = self.head.following
        twice = next(name for name, count in counts.items() if count > 1 or known.get(name, before) < before)
        return DataError(f"{self.path.parent}: id {twice!r} stands twice in what is added: ids must be unique")


@contextmanager
def change(folder: Path, seen: Manifest | None = None, *, mending: bool = False) -> Iterator[Change]:
    """`with change(folder) as changing: …` commits when the block succeeds, and rolls back when it raises.

    Refuses if another index than the one `seen` is at this path now. `mending` accepts a manifest that has lost commits, and
    moves files that it does not list aside instead of removing them.
    """
    with lock.held(folder) as handle, Change(folder, mending=mending) as changing:
        if seen is not None:
            changing.check_same(seen)
        doubt = lock.doubt(folder)
        if doubt or unknown(folder, changing.segments):
            changing.make_certain(doubt)
            lock.note(handle, lock.last_commit(folder))
            sweep(folder, changing.segments, aside=mending)
        try:
            yield changing
            committed = changing.commit()
        except UnknownOutcomeError:
            lock.note(handle, lock.last_commit(folder), doubt=changing.head.commit)
            changing.rollback()
            raise
        except OSError as error:
            changing.rollback()
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, None)  # NumPy's short writes carry no number
            reason = "the disk is full: free some space" if full else error.strerror
            raise DataError(f"{folder}: not written, the index is as it was: {reason}") from error
        except BaseException:
            changing.rollback()
            raise
        lock.note(handle, changing.head.commit)
        if committed:
            sweep(folder, changing.segments, aside=mending)


def unknown(folder: Path, segments: Sequence[Entry]) -> list[Path]:
    """The segment files that the manifest does not list: of writers that did not finish, and replaced ones."""
    known = {entry.name for entry in segments}
    return [file for file in folder.iterdir() if NAME.fullmatch(file.name) and file.name not in known]


def sweep(folder: Path, segments: Sequence[Entry], *, aside: bool = False) -> None:
    """Removes the segment files that the manifest does not list; with `aside`, moves them to the folder of that name.

    Only after a commit of one's own, under the lock. A file that can't be removed is left to the next sweep.
    """
    for file in unknown(folder, segments):
        with suppress(OSError):
            if aside:
                keep(file)
            file.unlink(missing_ok=True)


def keep(file: Path) -> None:
    """Links a file into the folder `aside`, or copies it where the disk has no hard links."""
    kept = file.parent / ASIDE / file.name
    kept.parent.mkdir(exist_ok=True)
    if kept.exists():
        return
    try:
        os.link(file, kept)
    except OSError:
        copy = kept.with_suffix(".tmp")
        shutil.copyfile(file, copy)
        copy.rename(kept)
    sync(kept.parent)


def _values(documents: Sequence[Document], following: int, checksums: array[int]) -> list[str | int]:
    """What the table holds of documents, one after the other."""
    values: list[str | int] = []
    for number, document in enumerate(documents, following):
        texts = document.plain()
        checksum = checksum_of(number, *texts)
        checksums.append(checksum)
        values += (number, *texts, checksum)
    return values
