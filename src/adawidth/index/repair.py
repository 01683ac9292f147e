"""Checks every byte of an index folder, and saves what can be saved of a damaged one.

Only the rows of a segment can't be recomputed: norms and codes follow from them, and numbers and ids are in the manifest too. So
every row whose block matches its checksum is saved. A damaged manifest can't be repaired: that is what snapshots are for.
Nothing is deleted: before the commit, damaged files and segments that the manifest does not list are moved to the folder `aside`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data import BLOCK
from ..errors import AdaWidthError
from ..types import I64, Rows, StrPath
from .folder import SEED, check_folder, check_model
from .store.commit import Change, change, keep, unknown
from .store.manifest import Manifest
from .store.segment import Entry, Segment
from .store.segment_writer import SegmentWriter


@dataclass(frozen=True)
class Repair:
    """What was found and done."""

    segments: Sequence[str]  # files that were damaged
    saved: int  # documents that were read back from them
    lost: Sequence[str]  # ids of the documents that could not be; add them again
    aside: Sequence[str] = ()  # files that were moved to the folder `aside`


def examine(path: StrPath) -> list[str]:
    """Everything that is damaged, one line each; reads the whole folder."""
    folder = Path(path)
    check_folder(folder)
    with Manifest(folder) as manifest:
        found = [_told(manifest.check), _told(lambda: check_model(folder, manifest.head.settings))]
        found += [_problem(folder, entry) for entry in manifest.segments]
    return [line for line in found if line]


def repair(path: StrPath, *, dry_run: bool = False) -> Repair:
    """Rewrites damaged segments without the rows that are lost, in one commit; with `dry_run`, only says what it would do.

    The damaged files are kept in the folder `aside`.
    """
    folder = Path(path)
    check_folder(folder)
    with Manifest(folder, mending=True) as manifest:
        plan = _plan(folder, manifest)
    if dry_run:
        return plan
    with change(folder, mending=True) as changing:
        for entry in [entry for entry in changing.segments if entry.name in plan.segments]:
            sound, gone = _rows(folder, entry, changing)
            new = _saved(folder, entry, changing, sound)
            changing.forget(gone.tolist())
            changing.replace([entry], new)
            if (folder / entry.name).exists():
                keep(folder / entry.name)  # before the commit: whoever writes after it sweeps what the manifest does not know
    return plan


def _plan(folder: Path, manifest: Manifest) -> Repair:
    """What is damaged, and what can be saved of it. Refuses where the manifest itself or the model is damaged."""
    manifest.check()
    check_model(folder, manifest.head.settings)
    saved, lost = 0, list[str]()
    damaged = [entry for entry in manifest.segments if _problem(folder, entry)]
    for entry in damaged:
        sound, gone = _rows(folder, entry, manifest)
        known = manifest.documents_of(gone.tolist())
        saved += len(sound)
        lost += [str(known[number].id) for number in gone.tolist()]
    names = [entry.name for entry in damaged]
    there = [name for name in names if (folder / name).exists()]
    return Repair(names, saved, lost, sorted([*there, *(file.name for file in unknown(folder, manifest.segments))]))


def _rows(folder: Path, entry: Entry, manifest: Manifest) -> tuple[Rows, Rows]:
    """Which rows of a segment hold documents that can be saved, and the numbers of those that can't."""
    numbers = _numbers(entry, manifest)
    alive = ~np.isin(numbers, manifest.removed, assume_unique=True)
    sound = np.zeros(len(numbers), np.bool_)
    if len(numbers) == entry.rows and (folder / entry.name).exists():
        sound = Segment(folder, entry, rows_only=True).sound()
    return np.flatnonzero(alive & sound), numbers[alive & ~sound]


def _numbers(entry: Entry, manifest: Manifest) -> I64:
    """The numbers of a segment's documents, in row order, from the manifest, which also has those of removed documents."""
    there = manifest.matching("number BETWEEN ? AND ?", (entry.first, entry.last))
    gone = manifest.removed[(manifest.removed >= entry.first) & (manifest.removed <= entry.last)]
    return np.sort(np.concatenate([there, gone]))


def _saved(folder: Path, entry: Entry, changing: Change, rows: Rows) -> list[Entry]:
    """A new segment of these rows; none without rows."""
    settings, numbers = changing.head.settings, _numbers(entry, changing)
    with SegmentWriter(folder, settings, words=changing.head.words) as writer:
        for start in range(0, len(rows), BLOCK):
            part = rows[start : start + BLOCK]
            known = changing.documents_of(numbers[part].tolist())
            values = Segment(folder, entry, rows_only=True).some(part)
            writer.append(values, numbers[part], [str(known[number].id) for number in numbers[part].tolist()])
            if writer.words is not None:
                writer.words.add(known[number] for number in numbers[part].tolist())
        return [writer.finish(settings.storage, SEED)] if len(rows) else []


def _problem(folder: Path, entry: Entry) -> str:
    def read() -> None:
        segment = Segment(folder, entry)
        segment.check()
        _ = segment.codes

    return _told(read)


def _told(call: Callable[[], object]) -> str:
    """What is wrong, or nothing."""
    try:
        call()
    except AdaWidthError as error:
        return str(error)
    return ""
