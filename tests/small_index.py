"""A small index on disk, made without a fit: documents of width 64 with titles, texts and metadata."""

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from adawidth.artifact import write_model
from adawidth.data import unit
from adawidth.index import IndexFolder
from adawidth.index.folder import Finding
from adawidth.rotation import Rotation

DOCUMENTS, WIDTH = 300, 64
ROTATION = Rotation.random(WIDTH, seed=1)
LADDER = (16, 32, 48, 64)


def vectors(count: int = DOCUMENTS, seed: int = 0) -> np.ndarray:
    return unit(np.random.default_rng(seed).standard_normal((count, WIDTH)))


def empty(path: Path, **options: object) -> IndexFolder:
    """An index without documents."""
    finding = Finding(**{name: options.pop(name) for name in ("storage", "bytes_per_document", "memory") if name in options})  # type: ignore[arg-type]
    path.mkdir()
    write_model(path / "model", {"rotation": {"kind": "random"}}, {"rotation": ROTATION.matrix}, "# card\n")
    return IndexFolder.create(path, ROTATION, **{"start": 32, "ladder": LADDER, "finding": finding, **options})  # type: ignore[arg-type]


def known(row: int) -> dict[str, object]:
    """The metadata of a document."""
    return {"lang": ["en", "de", "fr"][row % 3], "year": 2000 + row % 30, "open": row % 2 == 0, "score": row / 7, "in": {"part": row % 5}}


def fill(index: IndexFolder) -> None:
    """300 documents, d0 to d299."""
    rows = range(DOCUMENTS)
    index.add(
        vectors(),
        [f"d{row}" for row in rows],
        titles=[f"title {row}" for row in rows],
        texts=[f"text of {row}, ünïcode" for row in rows],
        metadata=[known(row) for row in rows],
    )


def kept(values: np.ndarray, width: int = WIDTH) -> np.ndarray:
    """What an index keeps of an encoder's vectors."""
    return ROTATION.stored(unit(values), width).astype(np.float32)


def head_of(folder: Path) -> dict[str, Any]:
    """What the manifest says of the whole index."""
    with closing(sqlite3.connect(folder / "manifest.sqlite")) as db:
        return json.loads(db.execute("SELECT value FROM head").fetchone()[0])


def write_head(folder: Path, head: dict[str, Any] | str) -> None:
    """Another head for a manifest, as an object or as text, with a right checksum."""
    with closing(sqlite3.connect(folder / "manifest.sqlite")) as db:
        text = head if isinstance(head, str) else json.dumps(head)
        segments = [row[0] for row in db.execute("SELECT value FROM segments ORDER BY name")]
        db.execute("UPDATE head SET value = ?, checksum = ?", (text, zlib.crc32("\0".join([text, *segments]).encode())))
        db.commit()
