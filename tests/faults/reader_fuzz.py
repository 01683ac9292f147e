"""Input files of every format that is read, what reads them, and ways to damage them."""

import gzip
import io
import json
import tempfile
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from adawidth.data import Vectors
from adawidth.formats import read_ids, read_qrels, read_run, read_texts, read_vectors, write_vectors
from adawidth.formats.documents import of_file

ROWS = np.random.default_rng(0).standard_normal((40, 36)).astype(np.float32)
NAMES = [f"döc{i}" for i in range(40)]
TEXTS = "".join(json.dumps({"_id": name, "title": "T", "text": f"text of {name}", "year": 3}) + "\n" for name in NAMES).encode()


def vectors_in(path: Path) -> None:
    found = read_vectors(path)
    assert np.allclose(np.linalg.norm(found.all(), axis=1), 1, atol=1e-3)


def documents_in(path: Path) -> None:
    source = of_file(path)
    for batch in source.batches():
        assert np.isfinite(batch.vectors.all()).all()
        "".join(f"{document.id}{document.text}" for document in batch.documents).encode()


def texts_in(path: Path) -> None:
    "".join(text.id + text.whole for text in read_texts(path)).encode()


def saved(suffix: str) -> bytes:
    """Vectors and ids as a file of this kind."""
    if suffix == "packed.npz":
        file = io.BytesIO()
        np.savez_compressed(file, vectors=ROWS, ids=np.array(NAMES))
        return file.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        write_vectors(Path(folder, f"x{suffix}"), Vectors.of(ROWS, NAMES))
        return Path(folder, f"x{suffix}").read_bytes()


def table() -> bytes:
    return packed({"id": NAMES, "text": [f"text {name}" for name in NAMES], "vector": ROWS.tolist(), "year": list(range(40))})


def columns() -> dict[str, Any]:
    """Columns of every kind that Parquet stores."""
    import pyarrow as arrow

    numbers = range(40)
    lists = arrow.FixedSizeListArray.from_arrays(arrow.array(ROWS.ravel()), ROWS.shape[1])
    return {
        "id": arrow.array(NAMES).dictionary_encode(),
        "text": [f"text {name}" if i % 5 else None for i, name in enumerate(NAMES)],
        "vector": lists,
        "whole": arrow.array(numbers, "int8"),
        "long": arrow.array([i * 10**12 for i in numbers], "uint64"),
        "half": arrow.array(np.arange(40, dtype=np.float16)),
        "true": [i % 3 == 0 if i % 7 else None for i in numbers],
        "bytes": arrow.array([b"x" * i for i in numbers], "binary"),
        "same": arrow.array([b"abcd"] * 40, arrow.binary(4)),
        "time": arrow.array(numbers, "timestamp[us]"),
        "day": arrow.array(numbers, "date32"),
        "decimal": arrow.array([Decimal(i) / 100 for i in numbers], arrow.decimal128(9, 2)),
        "inside": [{"part": i, "names": [f"n{j}" for j in range(i % 4)]} for i in numbers],
        "map": arrow.array([[("key", i)] for i in numbers], arrow.map_("string", "int32")),
        "nothing": arrow.nulls(40),
    }


def packed(columns: dict[str, Any], **options: Any) -> bytes:
    """A table as a Parquet file of several row groups."""
    import pyarrow as arrow
    from pyarrow.parquet import write_table

    file = io.BytesIO()
    write_table(arrow.table(columns), file, row_group_size=13, **options)
    return file.getvalue()


# ways that pages are written: compressed and not, checked or not, of both versions, texts as they are and as differences
PAGES: dict[str, dict[str, Any]] = {
    "snappy": {},
    "plain": {"compression": "none", "use_dictionary": False, "write_statistics": False},
    "zstd": {"compression": "zstd", "data_page_version": "2.0", "data_page_size": 64},
    "gzip": {"compression": "gzip", "write_page_checksum": True},
    "delta": {
        "compression": "none",
        "use_dictionary": False,
        "column_encoding": {"text": "DELTA_BYTE_ARRAY", "bytes": "DELTA_LENGTH_BYTE_ARRAY"},
    },
}


FORMATS: dict[str, tuple[Callable[[], bytes], Callable[[Path], Any]]] = {
    "x.npy": (lambda: saved(".npy"), vectors_in),
    "x.npz": (lambda: saved(".npz"), vectors_in),
    "packed.npz": (lambda: saved("packed.npz"), vectors_in),
    "x.safetensors": (lambda: saved(".safetensors"), vectors_in),
    "x.parquet": (lambda: saved(".parquet"), vectors_in),
    "documents.parquet": (table, documents_in),
    "texts.parquet": (table, texts_in),
    **{f"{name}.parquet": (partial(packed, columns(), **options), documents_in) for name, options in PAGES.items()},
    "columns.parquet": (lambda: packed(columns()), texts_in),
    "texts.jsonl": (lambda: TEXTS, texts_in),
    "texts.jsonl.gz": (lambda: gzip.compress(TEXTS, mtime=0), texts_in),
    "texts.csv": (lambda: ("id,text\n" + "".join(f'{name},"a, ""b"""\n' for name in NAMES)).encode(), texts_in),
    "test.tsv": (
        lambda: ("query-id\tcorpus-id\tscore\n" + "".join(f"q{i}\t{name}\t1\n" for i, name in enumerate(NAMES))).encode(),
        read_qrels,
    ),
    "x.run": (lambda: "".join(f"q{i % 7} Q0 {name} {i} {i / 3} tag\n" for i, name in enumerate(NAMES)).encode(), read_run),
    "x.ids": (lambda: "\n".join(NAMES).encode(), read_ids),
}


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """One to three changes, half of them near the beginning or the end, where formats keep their heads; or only bytes in their places,
    so that all the rest is still found."""
    changed = bytearray(data)
    if rng.random() < 0.5:
        for place in rng.integers(len(changed), size=int(rng.integers(1, 4))):
            changed[place] = int(rng.choice([changed[place] ^ (1 << int(rng.integers(8))), rng.integers(256), 0, 127, 255]))
        return bytes(changed)
    for _ in range(int(rng.integers(1, 4))):
        size = max(1, len(changed))
        place = int(rng.choice([rng.integers(size), rng.integers(min(size, 300)), size - 1 - rng.integers(min(size, 600))]))
        match int(rng.integers(7)):
            case 0:
                changed[place : place + 1] = bytes([int(rng.integers(256))])
            case 1:
                changed[place : place + 8] = rng.choice([b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7])
            case 2:
                del changed[place:]
            case 3:
                del changed[place : place + int(rng.integers(1, 50))]
            case 4:
                changed[place:place] = rng.bytes(int(rng.integers(1, 50)))
            case 5:
                changed[place:place] = changed[place : place + 100]
            case _:
                changed[place : place + 1] = bytes([changed[place] ^ (1 << int(rng.integers(8)))]) if changed else b""
    return bytes(changed)
