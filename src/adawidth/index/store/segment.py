"""A segment: documents' rotated rows and what belongs to them, as plain arrays in one file that is written once and never changed.

The file has a magic line, and then arrays one after the other. Their names, types, offsets and checksums are in an Entry, which the
manifest keeps. All arrays but the rows are checked when the file is opened; the rows, which are many, are checked block by block
when they are first read. Nothing in a file is trusted: names, types, offsets and sizes are checked before use.

    rows       (N, m) float16   rotated documents, to the width kept
    inverse    (N, W) float32   one over the length of each row's prefix at each width of the ladder
    numbers    (N,) int64       the documents' numbers in the manifest, ascending
    names      bytes, and ends (N,) int64: the documents' ids
    places     (N,) int32       position of each id when the segment's ids are sorted, descending
    total      (m,) float64     sum of the rows
    codes.*                     what finds candidates among the leading coordinates
    gap        (1,) float32     by how much codes may be wrong about what is near (codes/gap.py), where they are coarse
    words.*                     the words of titles and texts (see stages/words.py), if the index has them; checked when first read
"""

from __future__ import annotations

import math
import mmap
import os
import re
import stat
import zlib
from bisect import bisect_left
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...errors import ArtifactError, OptionError
from ...stages.words import Words
from ...types import F16, F32, F64, I32, I64, U32, Array, Mask, Rows

if TYPE_CHECKING:
    from ..codes import Codes

MAGIC = b"adawidth segment 1\n".ljust(64, b"\0")
ALIGNED = 64
CHECKED = 8  # rows under one checksum: a query reads few rows, which lie far apart …
FORMER = 64  # … and what entries mean that do not say
TOGETHER = 1024  # blocks of rows that are checked at a time
KINDS = ("<f2", "<f4", "<f8", "<i8", "<i4", "<i2", "|i1", "|u1", "<u2", "<u4", "<u8")
LAYOUT = {  # kind and dimensions of the arrays that every segment has
    "rows": ("<f2", 2),
    "inverse": ("<f4", 2),
    "numbers": ("<i8", 1),
    "names": ("|u1", 1),
    "ends": ("<i8", 1),
    "places": ("<i4", 1),
    "total": ("<f8", 1),
}
WORDS = "words."
GAP = "gap"
FEW = 65_536  # ids that are kept in memory, in their order
RARE = 20  # if not even one id in so many is another segment's, these are looked up one by one
NOT_FINITE = 0xF800  # twice the bits of a float16, without its sign: infinite and NaN values have this or more
LEAST, MOST = 1e-8, 1e13  # one over the length of float16 numbers, which is never taken for less than 1e-12
NAME = re.compile(r"[0-9a-f]{32}\.segment")


class MissingSegment(ArtifactError):
    """A segment file is missing: lost, or replaced by a writer since its entry was read."""


@dataclass(frozen=True)
class Place:
    """Where an array lies in the file, and its checksum."""

    kind: str
    shape: tuple[int, ...]
    offset: int
    checksum: int

    @property
    def size(self) -> int:
        """In bytes."""
        return math.prod(self.shape) * np.dtype(self.kind).itemsize


@dataclass(frozen=True)
class Entry:
    """What the manifest keeps of a segment."""

    name: str
    rows: int
    first: int  # number of its first document …
    last: int  # … and of its last
    size: int  # of the file, in bytes
    storage: str  # of the codes
    checks: str  # checksums of each block of rows, 32 bits each, as hexadecimal digits
    arrays: dict[str, Place]
    checked: int = FORMER  # rows in a block

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Self:
        """The entry that `to_json` gave. Raises TypeError, KeyError or ValueError for anything else."""
        arrays = {str(name): Place(**{**place, "shape": tuple(place["shape"])}) for name, place in stored["arrays"].items()}
        entry = cls(**{**stored, "arrays": arrays})
        numbers = [entry.rows, entry.first, entry.last, entry.size, entry.checked]
        numbers += [n for place in arrays.values() for n in (*place.shape, place.offset, place.checksum)]
        plain = isinstance(entry.storage, str) and all(type(n) is int and n >= 0 for n in numbers)
        if not NAME.fullmatch(entry.name) or not plain or not entry.rows or not 0 < entry.checked <= FORMER:
            raise ValueError(f"segment {entry.name!r}")
        if any(place.kind not in KINDS or place.offset % ALIGNED or place.offset + place.size > entry.size for place in arrays.values()):
            raise ValueError(f"arrays of segment {entry.name!r}")
        if len(entry.checksums) != -(-entry.rows // entry.checked):
            raise ValueError(f"checksums of segment {entry.name!r}")
        return entry

    @cached_property
    def checksums(self) -> U32:
        """Of each block of rows."""
        return np.frombuffer(bytes.fromhex(self.checks), "<u4")


class Segment:
    """A segment file, memory-mapped: it can still be read after the file has been removed."""

    def __init__(self, folder: Path, entry: Entry, *, rows_only: bool = False) -> None:
        """`rows_only` reads and checks no other array, to save what can be saved of a damaged file."""
        self.entry = entry
        self.path = folder / entry.name
        self._data = _mapped(self.path, entry, whole=not rows_only)
        self._descending: list[str] | None = None
        self._inserted: tuple[str, I64] = ("", np.empty(0, np.int64))
        self._check_layout()
        if rows_only:
            return
        self.arrays = {name: self._array(name) for name in entry.arrays if name != "rows" and not name.startswith(WORDS)}
        self.rows: F16 = self._array("rows")
        self.inverse: F32 = self.arrays["inverse"]
        self.numbers: I64 = self.arrays["numbers"]
        self.total: F64 = self.arrays["total"]
        if (np.diff(self.numbers) <= 0).any() or [self.numbers[0], self.numbers[-1]] != [entry.first, entry.last]:
            raise self._damaged(f"the documents' numbers do not ascend from {entry.first} to {entry.last}")
        if not (self.inverse.min(initial=1.0) >= LEAST and self.inverse.max(initial=1.0) <= MOST):  # NaN is neither
            raise self._damaged("the lengths of rows are none")
        if not _is_order(self.arrays["places"]):
            raise self._damaged("the places of the ids are not an order")
        self.gap = self._gap()
        self.unread = np.ones(len(entry.checksums), np.bool_)  # blocks not yet checked

    def __len__(self) -> int:
        return self.entry.rows

    @cached_property
    def codes(self) -> Codes:
        """What finds candidates."""
        from ..codes import Codes  # faiss loads only here

        arrays = {name.removeprefix("codes."): array for name, array in self.arrays.items() if name.startswith("codes.")}
        try:
            found = Codes.of(self.entry.storage, arrays)
        except (ArtifactError, OptionError) as error:
            raise self._damaged(str(error)) from None
        if len(found) != len(self):
            raise self._damaged(f"there are codes of {len(found)} rows, but {len(self)} rows")
        return found

    @cached_property
    def words(self) -> Words | None:
        """The words of titles and texts, if the index has them."""
        arrays = {name.removeprefix(WORDS): self._array(name) for name in self.entry.arrays if name.startswith(WORDS)}
        try:
            return Words(arrays, len(self)) if arrays else None
        except ValueError as error:
            raise self._damaged(str(error)) from None

    def id_of(self, row: int) -> str:
        """The id of the document in this row."""
        ends = self.arrays["ends"]
        return bytes(self.arrays["names"][ends[row - 1] if row else 0 : ends[row]]).decode(errors="replace")

    def ids(self) -> list[str]:
        """The ids of all documents, in row order."""
        data, ends = self.arrays["names"].tobytes(), self.arrays["ends"].tolist()
        return [data[begin:end].decode(errors="replace") for begin, end in zip([0, *ends], ends, strict=False)]

    def order(self) -> Rows:
        """The rows in the order of their ids, descending. (N,)"""
        places, order = self.arrays["places"], np.empty(len(self), np.int64)
        order[places] = np.arange(len(places))
        return order

    def descending(self) -> list[str]:
        """The ids in their order, descending; kept of small segments, since every commit beside them needs it again."""
        if self._descending is not None:
            return self._descending
        ids = self.ids()
        names = [ids[row] for row in self.order().tolist()]
        if len(self) <= FEW:
            self._descending = names
        return names

    def inserted(self, large: Segment) -> I64:
        """How many ids of a larger segment are no smaller than each id, for the ids in their order, descending. Kept. (N,)"""
        name, places = self._inserted
        if name != large.entry.name:
            places = self._looked_up(large) if RARE * len(self) <= len(large) else self._merged(large)
            self._inserted = (large.entry.name, places)
        return places

    def _looked_up(self, large: Segment) -> I64:
        order, found, low = large.order(), [], 0
        for own in self.descending():
            low = bisect_left(order, True, lo=low, key=partial(large._is_below, own))
            found.append(low)
        return np.array(found, np.int64)

    def _is_below(self, name: str, row: int) -> bool:
        return self.id_of(row) < name

    def _merged(self, large: Segment) -> I64:
        names = [*large.descending(), *self.descending()]
        order = np.array(sorted(range(len(names)), key=names.__getitem__, reverse=True))  # Python's sort merges runs that are sorted
        theirs = order < len(large)
        return np.cumsum(theirs, dtype=np.int64)[~theirs]

    def rows_of(self, numbers: I64) -> Rows:
        """The rows of those of these documents, by their numbers, that are in this segment."""
        near = numbers[(numbers >= self.entry.first) & (numbers <= self.entry.last)]
        rows = np.searchsorted(self.numbers, near)
        return np.asarray(rows[self.numbers[rows] == near])

    def without(self, removed: I64) -> Mask:
        """Which rows hold documents that are not among the removed. (N,)"""
        alive = np.ones(len(self), np.bool_)
        alive[self.rows_of(removed)] = False
        return alive

    def check(self, rows: Rows | None = None) -> None:
        """Checks the blocks of these rows (of all rows, and the words, if None) that were not checked before; refuses damaged ones."""
        if rows is None:
            _ = self.words
        blocks = np.arange(len(self.unread)) if rows is None else rows // self.entry.checked
        wanted = np.unique(blocks[self.unread[blocks]])
        for start in range(0, len(wanted), TOGETHER):
            self._check_blocks(wanted[start : start + TOGETHER], far=rows is not None)

    def _check_blocks(self, blocks: I64, *, far: bool) -> None:
        """Checks these blocks, ascending; where they lie `far` apart, the disk reads all at once and nothing around them."""
        if far and isinstance(self._data, mmap.mmap):
            begins, ends = self._spans(blocks)
            pages = begins - begins % mmap.PAGESIZE
            for page, length in zip(pages.tolist(), (ends - pages).tolist(), strict=True):
                self._data.madvise(mmap.MADV_WILLNEED, page, length)
        different = self._sums(blocks) != self.entry.checksums[blocks]
        if different.any():
            raise self._damaged(f"{self._named(int(blocks[different][0]))} do not have their checksum")
        rows = (blocks[:, None] * self.entry.checked + np.arange(self.entry.checked)).ravel()
        rows = rows[rows < len(self)]  # the last block may have fewer
        bits = self.rows.view("<u2")[rows]
        bits += bits
        if bits.max(initial=0) >= NOT_FINITE:
            row = int(rows[bits.max(axis=1) >= NOT_FINITE][0])
            raise self._damaged(f"{self._named(row // self.entry.checked)} have NaN or infinite values")
        self.unread[blocks] = False

    def _named(self, block: int) -> str:
        first = block * self.entry.checked
        return f"rows {first} to {min(first + self.entry.checked, len(self)) - 1}"

    def check_widths(self, width: int, ladder: int) -> None:
        """Refuses rows whose width, or whose number of prefix norms, is not what the manifest says."""
        if (self.rows.shape[1], self.inverse.shape[1]) != (width, ladder):
            found = f"{self.rows.shape[1]} and {self.inverse.shape[1]}"
            raise self._damaged(f"rows and lengths are {found} wide, expected {width} and {ladder}")

    def sound(self) -> Mask:
        """Which rows can be trusted, whatever else is damaged. (N,)"""
        sound = self._sums(np.arange(len(self.entry.checksums))) == self.entry.checksums
        return np.repeat(sound, self.entry.checked)[: len(self)]

    def some(self, rows: Rows) -> F16:
        """These rows, unchecked, of a file opened with `rows_only`."""
        place = self.entry.arrays["rows"]
        size = 2 * place.shape[1]
        parts = [self._data[place.offset + row * size : place.offset + (row + 1) * size] for row in rows.tolist()]
        return np.frombuffer(b"".join(parts), "<f2").reshape(len(rows), place.shape[1])

    def bytes(self) -> memoryview:
        """The whole file."""
        return memoryview(self._data)

    def _sums(self, blocks: I64) -> U32:
        """The checksums that these blocks of rows have."""
        data, (begins, ends) = memoryview(self._data), self._spans(blocks)
        return np.array([zlib.crc32(data[begin:end]) for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)], np.uint32)

    def _spans(self, blocks: I64) -> tuple[I64, I64]:
        """Where blocks of rows begin and end in the file."""
        place, checked = self.entry.arrays["rows"], self.entry.checked
        size = 2 * place.shape[1]
        return place.offset + blocks * checked * size, place.offset + np.minimum((blocks + 1) * checked, len(self)) * size

    def _array(self, name: str) -> Array:
        place = self.entry.arrays[name]
        if name != "rows" and zlib.crc32(memoryview(self._data)[place.offset : place.offset + place.size]) != place.checksum:
            raise self._damaged(f"the array {name!r} does not have its checksum")
        if not place.size:
            return np.empty(place.shape, place.kind)
        count = place.size // np.dtype(place.kind).itemsize
        return np.frombuffer(self._data, place.kind, count, place.offset).reshape(place.shape)

    def _gap(self) -> float:
        """How much lower by its code than the k-th best document one may be that is among the k best; infinite where nothing tells."""
        gap = self.arrays.get(GAP, np.full(1, np.inf, np.float32))
        if gap.shape != (1,) or gap.dtype != np.float32 or not gap[0] >= 0:  # NaN is neither
            raise self._damaged(f"expected {GAP!r} as one float32 number from 0 on, found {gap.dtype} {gap.ravel()[:1]}")
        return float(gap[0])

    def _check_layout(self) -> None:
        """Refuses an entry whose arrays are not those of a segment."""
        places = self.entry.arrays
        for name, (kind, dimensions) in LAYOUT.items():
            place = places.get(name)
            if place is None or place.kind != kind or len(place.shape) != dimensions:
                found = "nothing" if place is None else f"{place.kind} in {len(place.shape)} dimensions"
                raise self._damaged(f"expected {name!r} as {kind} in {dimensions} dimensions, found {found}")
            if name not in ("names", "total") and place.shape[0] != len(self):
                raise self._damaged(f"{name!r} is of {place.shape[0]} rows, the segment has {len(self)}")
        if places["total"].shape[0] != places["rows"].shape[1]:
            raise self._damaged(f"'total' is {places['total'].shape[0]} wide, the rows {places['rows'].shape[1]}")

    def _damaged(self, what: str) -> ArtifactError:
        return ArtifactError(
            f"{self.path}: damaged: {what}; restore a snapshot, or save the rest with `adawidth repair {self.path.parent.name}`"
        )


def _is_order(places: I32) -> bool:
    """Whether each number from 0 on stands there once."""
    inside = int(places.min()) >= 0 and int(places.max()) < len(places)
    return inside and bool((np.bincount(places) == 1).all())


def _mapped(path: Path, entry: Entry, *, whole: bool) -> mmap.mmap | bytes:
    """The file's bytes; a `whole` one is as long as its entry says."""
    mend = f"restore a snapshot, or save the rest with `adawidth repair {path.parent.name}`"
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise MissingSegment(f"{path}: the file is missing; {mend}") from None
    except OSError as error:
        raise ArtifactError(f"{path}: can't be read ({error.strerror}): look at the disk and at the rights") from None
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise ArtifactError(f"{path}: this is no file: {mend}")
        if whole and state.st_size != entry.size:
            raise ArtifactError(f"{path}: damaged: expected {entry.size} bytes, found {state.st_size}; {mend}")
        data = mmap.mmap(handle, 0, access=mmap.ACCESS_READ) if state.st_size else b""
    except OSError as error:
        raise ArtifactError(f"{path}: can't be mapped ({error.strerror}): look at the disk and at the memory") from None
    finally:
        os.close(handle)
    if whole and data[: len(MAGIC)] != MAGIC:
        raise ArtifactError(f"{path}: damaged: this does not begin like a segment; {mend}")
    return data
