"""Ways to damage the files of an index folder: bytes of any of them, SQLite's pages, cells and log frames, arrays of segments.

A way that is `sealed` makes every checksum right again, so that what it changed is read as if it had been written.
"""

import json
import sqlite3
import struct
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from adawidth.index.store.manifest import checksum_of
from faults import model_fuzz
from faults.model_fuzz import HOSTILE, crafted, damaged_bytes
from small_index import head_of, write_head

Rng = np.random.Generator
MANIFEST, LOG, SHARED, LOCK = "manifest.sqlite", "manifest.sqlite-wal", "manifest.sqlite-shm", "lock"
FIELDS = ((16, 2), (18, 1), (19, 1), (20, 1), (24, 4), (28, 4), (32, 4), (36, 4), (40, 4), (44, 4), (52, 4), (56, 4), (92, 4))  # of page 1
NUMBERS = (0.0, -0.0, -1.0, 1.0, 1e30, -1e30, 1e-40, np.nan, np.inf, -np.inf, 127, 2**31 - 1, -(2**31), 2**62)


def some(rng: Rng, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def raw(name: str) -> Callable[[Path, Rng], None]:
    """Bytes of one file; of a segment, of any one."""

    def mutate(folder: Path, rng: Rng) -> None:
        file = some(rng, sorted(folder.glob(name)))
        file.write_bytes(damaged_bytes(file.read_bytes(), rng))

    return mutate


def pages(folder: Path, rng: Rng) -> None:
    """A page of the manifest in another's place, or a field of its header, a pointer to a cell or the head of a cell changed."""
    file = folder / MANIFEST
    data = bytearray(file.read_bytes())
    size = int.from_bytes(data[16:18])
    count = len(data) // size
    page, other = int(rng.integers(count)), int(rng.integers(count))
    begin, from_ = page * size, other * size
    top = begin + (100 if page == 0 else 0)
    match int(rng.integers(7)):
        case 0:
            data[begin : begin + size], data[from_ : from_ + size] = data[from_ : from_ + size], data[begin : begin + size]
        case 1:
            data[begin : begin + size] = data[from_ : from_ + size]
        case 2:
            data[begin : begin + size] = bytes(size)
        case 3:
            place = top + int(rng.integers(12))
            data[place] = some(rng, (0, 1, 2, 5, 10, 13, 127, 128, 255))
        case 4:
            cells = max(1, int.from_bytes(data[top + 3 : top + 5]))
            place = top + (12 if data[top] in (2, 5) else 8) + 2 * int(rng.integers(cells))
            data[place : place + 2] = int(rng.integers(2 * size)).to_bytes(2)
        case 5:
            cells = max(1, int.from_bytes(data[top + 3 : top + 5]))
            pointer = top + (12 if data[top] in (2, 5) else 8) + 2 * int(rng.integers(cells))
            place = begin + int.from_bytes(data[pointer : pointer + 2])
            data[place : place + 9] = rng.bytes(min(9, max(0, len(data) - place)))
        case _:
            place, length = some(rng, FIELDS)
            data[place : place + length] = some(rng, (0, 1, 2, 2**15, 2 ** (8 * length) - 1, count + 1)).to_bytes(8)[-length:]
    file.write_bytes(data)


def frames(folder: Path, rng: Rng) -> None:
    """Frames of the log dropped, doubled, exchanged or of another page, their checksums right."""
    file = folder / LOG
    data = file.read_bytes()
    size = int.from_bytes(data[8:12]) + 24
    parts = [bytearray(data[start : start + size]) for start in range(32, len(data), size)]
    place, other = int(rng.integers(len(parts))), int(rng.integers(len(parts)))
    match int(rng.integers(6)):
        case 0:
            del parts[place:]
        case 1:
            del parts[place]
        case 2:
            parts.insert(place, bytearray(parts[other]))
        case 3:
            parts[place], parts[other] = parts[other], parts[place]
        case 4:
            parts[place][0:4] = int(some(rng, (0, 1, 2, 3, 2**31, 2**32 - 1))).to_bytes(4)
        case _:
            spot = int(rng.integers(24, size))
            parts[place][spot] ^= 1 << int(rng.integers(8))
    file.write_bytes(framed(data[:32], parts))


def framed(head: bytes, parts: list[bytearray]) -> bytes:
    """A log with right checksums: each frame's is over all before it."""
    order = "<" if head[:4] == b"\x37\x7f\x06\x82" else ">"

    def added(data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
        first, second = sums
        for one, two in struct.iter_unpack(f"{order}II", data):
            first = (first + one + second) & 0xFFFFFFFF
            second = (second + two + first) & 0xFFFFFFFF
        return first, second

    sums = added(head[:24], (0, 0))
    for part in parts:
        sums = added(bytes(part[24:]), added(bytes(part[:8]), sums))
        part[16:24] = struct.pack(">II", *sums)
    return head + b"".join(parts)


def head(folder: Path, rng: Rng) -> None:
    """One value of the manifest's head."""
    found = head_of(folder)
    crafted(found, rng)
    write_head(folder, found)


def entries(folder: Path, rng: Rng) -> None:
    """One value of a segment's entry."""
    found = entries_of(folder)
    crafted(found, rng)
    write_entries(folder, found)


def entries_of(folder: Path) -> dict[str, Any]:
    """What the manifest says of each segment."""
    with closing(sqlite3.connect(folder / MANIFEST)) as db:
        return {name: json.loads(text) for name, text in db.execute("SELECT name, value FROM segments")}


def write_entries(folder: Path, found: dict[str, Any]) -> None:
    """Other entries, with a right checksum."""
    with closing(sqlite3.connect(folder / MANIFEST)) as db:
        db.executemany("UPDATE segments SET value = ? WHERE name = ?", [(json.dumps(entry), name) for name, entry in found.items()])
        db.commit()
    write_head(folder, head_of(folder))


def documents(folder: Path, rng: Rng) -> None:
    """A cell of a document, or its number."""
    with closing(sqlite3.connect(folder / MANIFEST)) as db:
        rows = db.execute("SELECT * FROM documents ORDER BY number").fetchall()
        old = some(rng, rows)
        row, column = list(old), int(rng.integers(5))
        strange = ("", "x" * 5_000, "{}", "[]", "null", "{", '{"year": 1e999}', '{"lang": {"a": []}}', "\0", "d1", b"d1", 7, 1.5, -1, 2**62)
        row[column] = some(rng, strange) if column else some(rng, (-1, 0, 2**31, 2**62, old[0] + 1, 10**6))
        try:
            row[5] = checksum_of(row[0], *row[1:5])
            db.execute("DELETE FROM documents WHERE number = ?", old[:1])
            db.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?)", row)
        except (TypeError, ValueError, sqlite3.Error):
            db.execute("UPDATE documents SET title = ? WHERE number = ?", (b"\xff", old[0]))
        (count, total) = db.execute("SELECT count(*), sum(checksum) FROM documents").fetchone()
        db.commit()
    write_head(folder, head_of(folder) | {"documents": count, "documents_sum": total % 2**64})


def removed(folder: Path, rng: Rng) -> None:
    """Another removal, of a document that is there or of none."""
    with closing(sqlite3.connect(folder / MANIFEST)) as db:
        db.execute(
            "UPDATE removed SET number = ? WHERE number = (SELECT min(number) FROM removed)", (some(rng, (-1, 0, 7, 340, 10**6, 2**62)),)
        )
        db.commit()
        numbers = [number for (number,) in db.execute("SELECT number FROM removed")]
    marks = sum(zlib.crc32(str(number).encode()) for number in numbers) % 2**64
    write_head(folder, head_of(folder) | {"removed": len(numbers), "removed_sum": marks})


def arrays(part: str) -> Callable[[Path, Rng], None]:
    """Numbers of one array of a segment, whose name begins with `part`; its checksum is made right."""

    def mutate(folder: Path, rng: Rng) -> None:
        found = entries_of(folder)
        entry = found[some(rng, sorted(found))]
        name = some(rng, sorted(name for name in entry["arrays"] if name.startswith(part)))
        place = entry["arrays"][name]
        file = folder / entry["name"]
        data = bytearray(file.read_bytes())
        begin, count = place["offset"], int(np.prod(place["shape"]))
        values = np.frombuffer(data, place["kind"], count, begin).copy()
        spots = rng.integers(count, size=int(some(rng, (1, 1, 5, count))))
        with np.errstate(all="ignore"):
            if rng.random() < 0.5:
                values[spots] = np.array([some(rng, NUMBERS) for _ in spots]).astype(place["kind"])
            else:
                values[spots] = np.frombuffer(rng.bytes(values.itemsize * len(spots)), place["kind"])
        data[begin : begin + values.nbytes] = values.tobytes()
        file.write_bytes(data)
        place["checksum"] = zlib.crc32(values.tobytes())
        if name == "rows":
            size = entry["checked"] * place["shape"][1] * values.itemsize
            blocks = [zlib.crc32(data[begin + at : min(begin + at + size, begin + values.nbytes)]) for at in range(0, values.nbytes, size)]
            entry["checks"] = np.array(blocks, "<u4").tobytes().hex()
        write_entries(folder, found)

    return mutate


def lock(folder: Path, rng: Rng) -> None:
    """A value of what the lock says, or something else in its place."""
    file = folder / LOCK
    try:
        found = json.loads(file.read_bytes())
        found[some(rng, ("process", "commit", "doubt"))] = some(rng, HOSTILE)
        text = json.dumps(found).encode()
    except ValueError:
        text = b"{}"
    file.write_bytes(text if rng.random() < 0.8 else some(rng, (b"", b"[" * 80, b"[1]", b"\xff" * 80, b'{"commit": 1e999}')))


def model(folder: Path, rng: Rng) -> None:
    """Anything of the copied model, and the manifest's checksums of its files."""
    model_fuzz.structure(folder / "model", rng)
    found = head_of(folder)
    found["settings"]["model"] = {file.name: zlib.crc32(file.read_bytes()) for file in (folder / "model").iterdir()}
    write_head(folder, found)
