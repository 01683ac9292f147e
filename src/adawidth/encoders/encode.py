"""Encoding a dataset folder, part by part: memory stays bounded, and an interruption loses one part at most.

A part is a fixed number of texts in the order of the file, sorted by length within. Its file is named after a hash of all that its
numbers depend on: what an interrupted run left is taken up where it fits and nowhere else, and the result is the same byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..errors import DataError, OptionError
from ..formats import Kind, Text, atomic_file, atomic_folder, read_texts, write_ids
from ..formats.files import existing
from ..progress import Advance, progress
from ..types import F32, StrPath
from .base import Encoder, Input, Role

PART = 2_048  # texts
ROLES: dict[str, Role] = {"corpus": "document", "queries": "query"}
Dtype = Literal["float16", "float32"]
VECTORS = Kind("a folder of vectors", "meta.json", "fingerprint", entries=("corpus.*", "queries.*"))


def encode_dataset(path: StrPath, encoder: Encoder, name: str, *, dtype: Dtype = "float16", force: bool = False) -> dict[str, Any]:
    """Vectors of corpus.jsonl and, where there is one, queries.jsonl into embeddings/<name>/; returns what meta.json says, and counts.

    An interrupted run resumes when it is called again with the same arguments.
    """
    folder = Path(path)
    files = {side: file for side in ROLES if (file := existing(folder / f"{side}.jsonl"))}
    if "corpus" not in files:
        raise DataError(f"{folder}: there is no corpus.jsonl in it: give a dataset folder with texts")
    home = refuse_existing_vectors(folder, name, dtype, force)
    kept = parts_folder(home)
    ids = {side: _ids(file) for side, file in files.items()}
    parts: dict[str, list[Path]] = {}
    for side, file in files.items():
        with progress(f"encoding {side}", len(ids[side])) as advance:
            parts[side] = list(_encode_parts(file, kept, encoder, ROLES[side], np.dtype(dtype), advance))
    meta = describe(encoder, dtype)
    with atomic_folder(home, VECTORS, force=force) as building:
        for side in files:
            write_ids(building / f"{side}.ids", ids[side])
            _join(building / f"{side}.npy", parts[side], (len(ids[side]), encoder.width), np.dtype(dtype))
        (building / "meta.json").write_text(json.dumps(meta, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.rmtree(kept)
    return {**meta, "documents": len(ids["corpus"]), "queries": len(ids.get("queries", ()))}


def refuse_existing_vectors(folder: Path, name: str, dtype: str, force: bool) -> Path:
    """Where an encoder's vectors go; refused, before any work is done, where there are some, or where they can't be replaced."""
    if dtype not in ("float16", "float32"):
        raise OptionError(f"dtype {dtype!r} is neither float16 nor float32")
    if not name or name.startswith(".") or Path(name).name != name:
        raise OptionError(f"vectors can't be called {name!r}: give a plain name (--as)")
    home = folder / "embeddings" / name
    if home.exists() and not force:
        raise OptionError(f"{home} exists: choose another name (--as), or replace it with force (--force)")
    if home.exists():
        VECTORS.check(home)
    return home


def describe(encoder: Encoder, dtype: str) -> dict[str, Any]:
    """meta.json: which encoder made the vectors, and from what."""
    return {
        "encoder": encoder.name,
        "fingerprint": encoder.fingerprint,
        "dimensions": encoder.width,
        "normalized": True,
        "dtype": dtype,
        "prompts": dict(encoder.prompts),
        "max_length": encoder.max_length,
        "document_text": "title + ' ' + text",
    }


def encode_sorted(encoder: Encoder, texts: Sequence[Text], role: Role, advance: Advance | None = None) -> F32:
    """The vectors of these texts, in order. Texts are batched by length, longest first, so that little is padded."""
    lengths = np.array([len(text.whole) for text in texts])
    order = np.argsort(-lengths, kind="stable")
    vectors = np.empty((len(texts), encoder.width), np.float32)
    for start in range(0, len(order), encoder.batch):
        rows = order[start : start + encoder.batch]
        vectors[rows] = encoder.encode([_input(texts[row]) for row in rows], role)
        if advance is not None:
            advance(len(rows))
    return vectors


def parts_folder(home: Path) -> Path:
    """Where the parts of an encoding lie until they are joined."""
    return home.with_name(f".{home.name}.parts")


def _encode_parts(file: Path, folder: Path, encoder: Encoder, role: Role, dtype: np.dtype[Any], advance: Advance) -> Iterator[Path]:
    """The files of all parts, in order; those that are there already are not encoded again."""
    texts = read_texts(file)
    while part := list(islice(texts, PART)):
        yield encode_part(part, file, folder, encoder, role, dtype, advance)


def encode_part(
    part: Sequence[Text], file: Path, folder: Path, encoder: Encoder, role: Role, dtype: np.dtype[Any], advance: Advance | None = None
) -> Path:
    """The file of one part, encoded unless it is there; `file` is where its texts come from."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{_key(part, encoder, role, dtype)}.npy"
    if target.is_file():
        if advance is not None:
            advance(len(part))
        return target
    vectors = encode_sorted(encoder, part, role, advance).astype(dtype)
    wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(wrong):
        raise DataError(
            f"{file}: the vector of {part[wrong[0]].id!r} is not finite; {len(wrong)} of {len(part)} are not: try dtype float32 (--dtype)"
        )
    with atomic_file(target) as out:
        np.save(out, vectors, allow_pickle=False)
    return target


def _key(part: Sequence[Text], encoder: Encoder, role: Role, dtype: np.dtype[Any]) -> str:
    """A hash of everything the part's numbers depend on."""
    settings = [encoder.fingerprint, encoder.prompts[role], encoder.batch, dtype.str]
    return hashlib.sha256(json.dumps([settings, [_input(text) for text in part]]).encode()).hexdigest()[:32]


def _input(text: Text) -> Input:
    return {"text": text.whole, "image": text.image} if text.image else text.whole


def _ids(file: Path) -> list[str]:
    ids = [text.id for text in read_texts(file)]
    if not ids:
        raise DataError(f"{file}: there are no texts in it")
    if len(set(ids)) != len(ids):
        twice, _ = Counter(ids).most_common(1)[0]
        raise DataError(f"{file}: id {twice!r} stands twice; {len(ids)} texts have {len(set(ids))} ids: ids must be unique")
    return ids


def _join(path: Path, parts: Sequence[Path], shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
    """One .npy of the parts, without holding them in memory."""
    with path.open("xb") as out:
        np.lib.format.write_array_header_1_0(out, {"descr": dtype.str, "fortran_order": False, "shape": shape})
        for part in parts:
            out.write(np.load(part, mmap_mode="r").data)
