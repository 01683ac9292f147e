"""IndexFolder: an index folder, to search and to change. It survives kills and I/O errors: see commit.py and docs/index.md.

manifest.sqlite    segments, removals, titles, texts and metadata: one transaction per commit
*.segment          rows, codes and prefix norms of documents; written once
model/             a copy of the model that the index was made with
lock               held by the one writer
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np

from ..artifact import FORMAT, limits, read_model, stored_rotation
from ..data import BLOCK
from ..errors import AdaWidthError, ArtifactError, DataError, OptionError
from ..formats import Kind, atomic_folder
from ..formats.documents import Source
from ..formats.files import regular_checksum
from ..progress import Advance, progress
from ..rotation import Rotation
from ..sizes import in_bytes
from ..stages import Backend, RowStore, Written
from ..stages.backend import check_width, listed, named
from ..stages.energy import check_encoder, spread
from ..types import BYTES, F16, Id, Rows, Storage, StrPath
from .store import lock
from .store.commit import Change, change
from .store.manifest import FILE, IndexSettings, Manifest, log_length, settle
from .store.segment import Entry, MissingSegment, Segment
from .store.segment_writer import SegmentWriter
from .view import View

log = logging.getLogger("adawidth")

MODEL = "model"
INDEX = Kind("an index folder", f"{MODEL}/config.json", "format", FORMAT, (f"{FILE}*", "*.segment", lock.FILE, "aside"), lock=lock.held)
STORAGES = get_args(Storage)
SEED = 0  # of the codes
ATTEMPTS = 10  # at opening, as a writer may replace segments in between


@dataclass(frozen=True)
class Finding:
    """How candidates are found, as asked for: the storage, the bytes of 4-bit codes (half of the start width, if not given), and how
    much memory there is, which may be enough for a graph."""

    storage: str = "auto"
    bytes_per_document: int | None = None
    memory: str | float | None = None

    def __post_init__(self) -> None:
        """Refuses what no codes are."""
        size = self.bytes_per_document
        if self.storage not in STORAGES:
            raise OptionError(f"there is no storage {self.storage!r}; there are {', '.join(STORAGES)}")
        if self.memory is not None and in_bytes(self.memory) and self.storage != "auto":
            raise OptionError(f"memory {self.memory!r}: storage {self.storage!r} is already chosen: use auto, which chooses by memory")
        if size is None:
            return
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or size not in BYTES:
            raise OptionError(f"bytes_per_document {size!r} is none of {', '.join(map(str, BYTES))}")
        if self.storage in ("flat", "int8"):
            raise OptionError(f"bytes_per_document {size}: storage {self.storage!r} takes as many as it needs: use auto, pq4, ivf or graph")


class IndexFolder(RowStore):
    """An index folder. One process at a time writes to it, any number search it. Each sees the commit of its last open or refresh."""

    path: Path
    view: View

    def __init__(self, path: StrPath, *, searching: bool = True) -> None:
        """Opens the folder at its last commit, or only for writing. No code in it is run, and nothing outside of it is read."""
        self.path = Path(path)
        check_folder(self.path)
        self._opening = threading.RLock()
        self._log = 0  # length of SQLite's log after the last commit
        if searching:
            _ = self.view

    def __getstate__(self) -> dict[str, Any]:
        """Pickled as a path: another process opens the folder for itself."""
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["path"])  # type: ignore[misc]

    def __getattr__(self, name: str) -> View:
        """`view` is opened on first use."""
        if name != "view" or "_opening" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with self._opening:
            if "view" not in vars(self):
                view = self._opened({})
                check_model(self.path, view.manifest.head.settings)
                self.view = view
            return self.view

    def where(self, condition: str | Mapping[str, Any]) -> View:
        return self.view.where(condition)

    def lexical(self, view: Backend, texts: Sequence[str], k: int) -> Rows:
        assert isinstance(view, View)
        return view.lexical(texts, k)

    @classmethod
    def create(
        cls,
        folder: Path,
        rotation: Rotation,
        *,
        start: int,
        ladder: Iterable[int],
        target: int | None = None,
        keep: int | None = None,
        finding: Finding | None = None,
        numbered: bool = False,
    ) -> IndexFolder:
        """An empty index in a folder that holds the model in `model/` and nothing else.

        `keep` is how many coordinates are stored (all, if not given), `start` the width that codes find candidates for, `target`
        the least width that searches read to (`keep`, if not given), `ladder` the widths whose prefix norms are stored.
        """
        width = rotation.width if keep is None else keep
        if not start <= width <= rotation.width:
            raise OptionError(f"keep {width} is not between the start width {start} and the encoder width {rotation.width}")
        finding = finding or Finding()
        widths = (*sorted({m for m in ladder if m < width}), width)
        checksums = {file.name: zlib.crc32(file.read_bytes()) for file in sorted((folder / MODEL).iterdir())}
        coded = 2 * start if min(target or width, width) >= 2 * start else start
        settings = IndexSettings(
            rotation.fingerprint, rotation.width, width, start, coded, finding.storage, widths, checksums, numbered,
            int(finding.bytes_per_document or 0), 0 if finding.memory is None else int(in_bytes(finding.memory)),
        )  # fmt: skip
        Manifest.create(folder, settings)
        return cls(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes all files, and checkpoints the manifest if nobody else has it open."""
        if self._seen is not None:
            self._seen.close()
            settle(self.path)

    def __len__(self) -> int:
        """Documents that can be found."""
        return self.view.manifest.head.documents

    def __contains__(self, identifier: object) -> bool:
        return isinstance(identifier, str | int) and bool(self.view.manifest.numbers_of([str(identifier)]))

    @property
    def settings(self) -> IndexSettings:
        """What was chosen when it was made."""
        return self.view.manifest.head.settings

    @property
    def fingerprint(self) -> str:
        """Names the rotation that the documents are under."""
        return self.settings.fingerprint

    @cached_property
    def rotation(self) -> Rotation:
        """The rotation of the copied model."""
        return stored_rotation(*read_model(self.path / MODEL))

    def write(self, documents: Source, *, update: bool = False) -> Written:
        """Adds documents, batch by batch, in one commit; when this returns, they are durable."""
        with change(self.path, self._seen) as changing, progress("indexing", documents.count) as advance:
            settings, before = changing.head.settings, changing.head
            check_width(documents, settings.encoder_width)
            check_model(self.path, settings)
            self.rotation.check_same(settings.fingerprint, str(self.path))
            some = self._some(changing)
            following = max(before.following, 1 + changing.highest()) if documents.numbered and settings.numbered else 0
            absorbed = _absorbed(changing.segments, documents.count)
            with SegmentWriter(self.path, settings, words=before.words) as writer:
                self._copy(changing, absorbed, writer)
                for batch in named(documents, numbered=settings.numbered, following=following):
                    rows = self.rotation.stored(batch.vectors, settings.width)
                    check_encoder(some, rows, settings.encoder_width, documents.name)
                    numbers = changing.insert(batch.documents, update=update)
                    writer.append(rows, numbers, [str(document.id) for document in batch.documents])
                    if writer.words is not None:
                        writer.words.add(batch.documents)
                    advance(len(numbers))
                added = changing.head.following - before.following
                if not added:
                    raise DataError(f"{documents.name}: there are no documents")
                entry = writer.finish(settings.storage, SEED)
            replaced = changing.head.removed - before.removed
            changing.replace(absorbed, (entry,))
        self._committed()
        return Written(added - replaced, replaced, changing.head.documents, len(changing.segments), entry.storage)

    def remove(self, ids: Id | Iterable[Id]) -> int:
        """Removes documents, all or none. Their rows stay on disk until `compact`."""
        wanted = list(dict.fromkeys(map(str, listed(ids))))
        with change(self.path, self._seen) as changing:
            changing.remove(list(self._numbers(changing, wanted).values()))
        self._committed()
        return len(wanted)

    def compact(self, *, hybrid: bool = False) -> bool:
        """Merges all segments into one, without removed rows; False if there is nothing to do. Searches can go on meanwhile.

        With `hybrid`, titles and texts can be searched by their words from then on.
        """
        with change(self.path, self._seen) as changing:
            needed = len(changing.segments) > 1 or changing.head.removed > 0 or (hybrid and not changing.head.words)
            if needed:
                changing.head = head = replace(changing.head, words=hybrid or changing.head.words)
                rows = sum(entry.rows for entry in changing.segments)
                with SegmentWriter(self.path, head.settings, words=head.words) as writer, progress("compacting", rows) as advance:
                    self._copy(changing, changing.segments, writer, advance)
                    new = [writer.finish(head.settings.storage, SEED)] if len(writer) else []
                changing.replace(changing.segments, new)
        self._committed()
        return needed

    def snapshot(self, path: StrPath, *, force: bool = False) -> None:
        """Copies the index as this object sees it, and verifies the copy, whatever is written meanwhile."""
        view = self.view
        view.manifest.check()
        with atomic_folder(path, INDEX, force=force, inputs=[self.path]) as folder, progress("copying", len(view.segments)) as advance:
            for segment in view.segments:
                segment.check()
                (folder / segment.entry.name).write_bytes(segment.bytes())
                advance()
            (folder / MODEL).mkdir()
            for name in self.settings.model:
                (folder / MODEL / name).write_bytes((self.path / MODEL / name).read_bytes())
            check_model(folder, self.settings)
            view.manifest.copy_to(folder)

    def refresh(self) -> bool:
        """Moves on to the last commit; returns whether it is a newer one. Running searches finish on the commit they began with.

        A reader that stays at an old commit keeps SQLite from reusing its log: refresh now and then if others write.
        """
        with self._opening:
            now = self.view
            with Manifest(self.path) as manifest:
                manifest.check_same(now.manifest)
                if manifest.head.commit == now.manifest.head.commit:
                    now.manifest.renew(manifest)
                    return False
            self.view = self._opened({segment.entry.name: segment for segment in now.segments})
        return True

    def _committed(self) -> None:
        """Moves on to a commit just made, and checkpoints it, so that the next one can reuse the log."""
        now: View | None = vars(self).get("view")
        if now is None:
            settle(self.path)
            return
        length, before = log_length(self.path), self._log
        self._log = length
        try:
            with self._opening:
                self.view = self._opened({segment.entry.name: segment for segment in now.segments})
                self.view.checked = now.checked  # only the new documents are still to be checked
            del now  # unless a search is running, nothing needs the older log any more
            for mode in ("FULL", "TRUNCATE") if length > before else ("PASSIVE",):
                settle(self.path, mode)
                self.refresh()
        except AdaWidthError as error:  # the commit stands
            log.warning("%s: written, but it can't be read again yet: refresh later (%s)", self.path, error)

    @property
    def _seen(self) -> Manifest | None:
        """The commit that this object knows of, if any."""
        return self.view.manifest if "view" in vars(self) else None

    def ids(self) -> Iterator[Id]:
        view = self.view
        return (view.documents.ids[row] for row in np.flatnonzero(view.alive).tolist())

    def rows_of(self, ids: Sequence[Id]) -> Rows:
        view = self.view
        numbers = self._numbers(view.manifest, [str(identifier) for identifier in ids])
        return view.rows_of([numbers[str(identifier)] for identifier in ids])

    def facts(self) -> dict[str, Any]:
        """What `adawidth info` prints."""
        head, segments = self.view.manifest.head, self.view.manifest.segments
        return {
            "kind": "index",
            "documents": head.documents,
            "removed": head.removed,
            "encoder_width": head.settings.encoder_width,
            "width": head.settings.width,
            "start": head.settings.start,
            "coded": max((e.arrays["codes.turn"].shape[0] for e in segments if "codes.turn" in e.arrays), default=head.settings.coded),
            "storage": head.settings.storage,
            **({"bytes_per_document": size} if (size := head.settings.bytes_per_document) else {}),
            **({"memory": memory} if (memory := head.settings.memory) else {}),
            "hybrid": head.words,
            "numbered": head.settings.numbered,
            "fingerprint": head.settings.fingerprint,
            "commit": head.commit,
            "bytes": _size(self.path),
            "segments": [
                {"name": e.name, "documents": e.rows, "storage": e.storage, "bytes": e.size}
                | ({"lists": len(found["codes.centres"]), "nprobe": int(found["codes.probes"][0])} if "codes.probes" in found else {})
                for e, found in ((segment.entry, segment.arrays) for segment in self.view.segments)
            ],
        }

    def _opened(self, known: Mapping[str, Segment]) -> View:
        """The last commit. A writer may remove files after the manifest was read: then there is a newer commit."""
        for attempt in range(ATTEMPTS):
            manifest = Manifest(self.path)
            try:
                return View(manifest, [known.get(entry.name) or Segment(self.path, entry) for entry in manifest.segments])
            except MissingSegment:
                manifest.close()
                if attempt == ATTEMPTS - 1:
                    raise
            except BaseException:
                manifest.close()
                raise
        raise AssertionError("every attempt returns or raises")

    def _some(self, changing: Change) -> F16:
        """Some documents' rows, of the largest segment."""
        largest = max(changing.segments, key=lambda entry: entry.rows, default=None)
        if largest is None:
            return np.empty((0, changing.head.settings.width), np.float16)
        return Segment(self.path, largest, rows_only=True).some(spread(largest.rows))

    def _copy(self, changing: Change, entries: Sequence[Entry], writer: SegmentWriter, advance: Advance | None = None) -> None:
        """Appends what is not removed of some segments."""
        for entry in entries:
            segment = Segment(self.path, entry)
            segment.check()
            alive, ids = segment.without(changing.removed), segment.ids()
            for start in range(0, len(segment), BLOCK):
                kept = start + np.flatnonzero(alive[start : start + BLOCK])
                writer.append(segment.rows[kept], segment.numbers[kept], [ids[row] for row in kept.tolist()])
                if writer.words is not None and segment.words is None:
                    known = changing.documents_of(segment.numbers[kept].tolist())
                    writer.words.add(known[number] for number in segment.numbers[kept].tolist())
                if advance is not None:
                    advance(min(BLOCK, len(segment) - start))
            if writer.words is not None and segment.words is not None:
                writer.words.copy(segment.words, np.flatnonzero(alive))

    def _numbers(self, manifest: Manifest, ids: Sequence[str]) -> dict[str, int]:
        """The numbers of these ids; a DataError if one is missing."""
        found = manifest.numbers_of(ids)
        missing = [name for name in ids if name not in found]
        if missing:
            raise DataError(f"{self.path}: there is no document {missing[0]!r}; {len(missing)} of {len(ids)} ids are not in the index")
        return {name: found[name] for name in ids}


def _size(folder: Path) -> int:
    """Bytes of all files in a folder. Others may remove some meanwhile, as SQLite does with its log."""
    size = 0
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):
            size += file.stat().st_size if file.is_file() else 0
    return size


def _absorbed(entries: Sequence[Entry], count: int) -> list[Entry]:
    """The last segments, each no larger than all that follow it: a new segment of `count` documents absorbs them.

    So the number of segments grows with the logarithm of the documents, however few are added at a time.
    """
    taken: list[Entry] = []
    for entry in reversed(entries):
        if entry.rows > count:
            break
        taken.insert(0, entry)
        count += entry.rows
    return taken


def check_folder(path: Path) -> None:
    """Refuses what is not an index folder, and one with links, which could lead out of it."""
    if not path.is_dir():
        raise ArtifactError(f"{path}: there is no such index; make one with `adawidth index MODEL DATASET --out {path.name}`")
    if not (path / FILE).is_file():
        raise ArtifactError(f"{path}: this is no index: there is no {FILE} in it")
    link = next((file for folder in (path, path / MODEL) if folder.is_dir() for file in folder.iterdir() if file.is_symlink()), None)
    if link is not None:
        raise ArtifactError(f"{link}: this is a link; an index has none, and what it leads to is not read: copy the file itself")


def check_model(path: Path, settings: IndexSettings) -> None:
    """Refuses a copy of the model that is not what was copied."""
    most = limits(path / MODEL)
    for name, checksum in settings.model.items():
        file = path / MODEL / name
        try:
            found = regular_checksum(file, most[name]) if name in most else None
        except OSError as error:
            raise ArtifactError(f"{file}: can't be read ({error.strerror}): restore a snapshot") from None
        if found != checksum:
            raise ArtifactError(f"{file}: damaged: it is not what was written (checksum {found}, expected {checksum}); restore a snapshot")
