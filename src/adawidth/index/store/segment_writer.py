"""Writing a segment: rows as they come, then what is computed from them, then a sync."""

from __future__ import annotations

import logging
import math
import os
import uuid
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from ...data import BLOCK
from ...formats.files import sync
from ...kernels.halves import measure_rows
from ...stages.words import WordsWriter
from ...types import F16, F32, F64, I64, Array
from .manifest import IndexSettings
from .segment import ALIGNED, CHECKED, GAP, MAGIC, WORDS, Entry, Place

if TYPE_CHECKING:
    from ..codes import Codes

log = logging.getLogger("adawidth")


class SegmentWriter:
    """Writes a segment: rows as they come, the rest in `finish`. The file is part of the index once the manifest has its entry."""

    def __init__(self, folder: Path, settings: IndexSettings, *, words: bool = False) -> None:
        """With `words`, the words of all documents are given to `words`, row by row, too."""
        self._folder = folder
        self._settings = settings
        self.words = WordsWriter() if words else None
        self.path = folder / f"{uuid.uuid4().hex}.segment"
        self._file = self.path.open("xb")
        self._file.write(MAGIC)
        self._numbers: list[I64] = []
        self._ids: list[str] = []
        self._places: dict[str, Place] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._file.close()
        if kind is not None or not self._places:  # it failed, or there was nothing to write
            self.path.unlink(missing_ok=True)

    def append(self, rows: F16, numbers: I64, ids: Sequence[str]) -> None:
        """Some more rotated rows, with the numbers and ids of their documents. Numbers ascend."""
        self._file.write(np.ascontiguousarray(rows, "<f2").data)
        self._numbers.append(numbers)
        self._ids.extend(ids)

    def __len__(self) -> int:
        return len(self._ids)

    def finish(self, storage: str, seed: int) -> Entry:
        """Writes everything that is computed from the rows, and syncs the file."""
        from .. import codes

        numbers = np.concatenate(self._numbers)
        count = len(numbers)
        place = Place("<f2", (count, self._settings.width), len(MAGIC), 0)  # its blocks have checksums of their own
        self._places["rows"] = place
        self._file.flush()
        rows = np.memmap(self.path, "<f2", "r", place.offset, place.shape)
        data, size = rows.reshape(-1).view(np.uint8).data, 2 * CHECKED * self._settings.width
        checks = np.array([zlib.crc32(data[begin : begin + size]) for begin in range(0, len(data), size)], "<u4").tobytes().hex()
        total = np.zeros(self._settings.width)
        inverse = (inverse_norms(part, self._settings.ladder, total) for part in _parts(rows))
        self._write_parts("inverse", "<f4", (count, len(self._settings.ladder)), inverse)
        self._write("total", total)
        width, bits = self._shape(rows, codes.chosen(storage, count), seed)
        built = codes.build(codes.Prefixes(rows, width), storage, seed, bits, self._settings.memory)
        if storage == "auto":
            graph = f", from {codes.WALKED} on graph where memory suffices" if self._settings.memory else ""
            limits = f"flat (exact) up to {codes.SMALL}, then pq4{graph}, and from {codes.LARGE} on ivf where its lists pay"
            log.info("storage %s for %d documents: %s", built.storage, count, limits)
        for name, array in built.arrays().items():
            self._write(f"codes.{name}", array)
        if (gap := codes.measured_gap(built, rows, seed)) < math.inf:
            self._write(GAP, np.array([gap], np.float32))
        encoded = [identifier.encode() for identifier in self._ids]
        order = sorted(range(count), key=self._ids.__getitem__, reverse=True)
        places = np.empty(count, np.int32)
        places[order] = np.arange(count, dtype=np.int32)
        self._write("numbers", numbers)
        self._write("names", np.frombuffer(b"".join(encoded), np.uint8))
        self._write("ends", np.cumsum([len(name) for name in encoded], dtype=np.int64))
        self._write("places", places)
        for name, array in self.words.arrays().items() if self.words is not None else ():
            self._write(f"{WORDS}{name}", array)
        self._file.flush()
        os.fsync(self._file.fileno())
        sync(self._folder)
        return Entry(
            self.path.name, count, int(numbers[0]), int(numbers[-1]), self._file.tell(), built.storage, checks, self._places, CHECKED
        )

    def _shape(self, rows: F16, kind: type[Codes], seed: int) -> tuple[int, int]:
        """The coordinates that the codes of these rows cover, and the bits of each."""
        from ..codes.shapes import chosen_shape

        settings = self._settings
        if kind.wide and settings.bytes_per_document:
            return chosen_shape(rows, settings.bytes_per_document, seed, kind.fewest)
        return (settings.coded, 2) if kind.wide and settings.coded > settings.start else (settings.start, 4)

    def _write(self, name: str, array: Array) -> None:
        self._write_parts(name, array.dtype.newbyteorder("<").str, array.shape, iter([array]))

    def _write_parts(self, name: str, kind: str, shape: tuple[int, ...], parts: Iterator[Array]) -> None:
        self._file.write(b"\0" * (-self._file.tell() % ALIGNED))
        offset, checksum = self._file.tell(), 0
        for part in parts:
            data = np.ascontiguousarray(part, kind).reshape(-1).view(np.uint8).data
            self._file.write(data)
            checksum = zlib.crc32(data, checksum)
        self._places[name] = Place(kind, shape, offset, checksum)


def inverse_norms(rows: F16, ladder: Sequence[int], total: F64 | None = None) -> F32:
    """One over the length of every row's prefix at each width of the ladder; no prefix counts as shorter than 1e-12. (n, D) -> (n, W)

    The rows are added to `total` (D,).
    """
    inverse = np.empty((len(rows), len(ladder)), np.float32)
    measure_rows(rows.view(np.uint16), np.array(ladder), inverse, np.zeros(ladder[-1]) if total is None else total)
    return inverse


def _parts(rows: Array) -> Iterator[Array]:
    return (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))
