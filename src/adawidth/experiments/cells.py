"""Finished measurements in a folder: a JSON file each, and beside it the values of single queries as a small npz file.

A cell is one part of an experiment with one dataset and encoder. It appears whole or not at all, is claimed by one process at a time,
and is stale once its settings, or the sources that it rests on, are no longer what they were.
"""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..errors import DataError
from ..formats import atomic_file
from ..formats.files import told
from .base import Cell, Part
from .sources import fingerprint

State = Literal["finished", "stale", "missing"]


@dataclass(frozen=True)
class Store:
    """A folder of cells."""

    folder: Path

    def file(self, part: Part, dataset: str, encoder: str) -> Path:
        """Where a cell is kept."""
        name = re.sub(r"[^\w.]+", "-", part.name)
        return self.folder / f"{name}-{dataset}-{encoder}.json"

    def state(self, part: Part, dataset: str, encoder: str) -> tuple[State, str]:
        """Whether a cell is there and still true, and if it is not, what has changed."""
        file = self.file(part, dataset, encoder)
        if not file.exists():
            return "missing", ""
        changed = difference(read_head(file), stamp(part))
        return ("finished", "") if changed is None else ("stale", changed)

    def read(self, file: Path) -> Cell:
        """A finished cell with its arrays."""
        cell = read_head(file)
        arrays = file.with_suffix(".npz")
        if arrays.exists():
            with told(arrays), np.load(arrays) as found:
                cell |= {name: found[name] for name in found.files}
        return cell

    def write(self, file: Path, cell: Cell) -> None:
        """Keeps a finished cell: first its arrays, then the JSON file that makes it count."""
        file.unlink(missing_ok=True)
        arrays = {name: value for name, value in cell.items() if isinstance(value, np.ndarray)}
        if arrays:
            with atomic_file(file.with_suffix(".npz")) as out:
                np.savez_compressed(out, **arrays)  # type: ignore[arg-type]
        write_json(file, without_arrays(cell))

    @contextmanager
    def claim(self, file: Path) -> Iterator[bool]:
        """True for the one process that may measure a cell now. The system frees the claim of a process that ends."""
        claims = self.folder / ".claims"
        claims.mkdir(parents=True, exist_ok=True)
        with (claims / file.stem).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True


def stamp(part: Part) -> dict[str, Any]:
    """What a cell must have been measured with to be true now."""
    return {"settings": json.loads(json.dumps(dict(part.head))), "sources": fingerprint(part.sources)}


def difference(was: Cell, now: Mapping[str, Any]) -> str | None:
    """The first setting that is another one, or that the sources are; None where nothing is."""
    settings = {key: (was["settings"].get(key), now["settings"].get(key)) for key in (*was["settings"], *now["settings"])}
    changed = next((f"{key} {old}, now {new}" for key, (old, new) in settings.items() if old != new), None)
    return changed or ("other sources" if was.get("sources") != now["sources"] else None)


def read_head(file: Path) -> dict[str, Any]:
    """The JSON of a cell."""
    try:
        cell: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        dict(cell["settings"])
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{file}: this is no finished cell: remove it, or measure with force (--force)") from None
    return cell


def without_arrays(cell: Cell) -> dict[str, Any]:
    """What JSON can hold of a cell."""
    return {name: value for name, value in cell.items() if not isinstance(value, np.ndarray)}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    with atomic_file(path) as file:
        file.write((json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
