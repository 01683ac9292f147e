"""The dataset folder: BEIR's layout plus embeddings/<encoder>/ with the vectors of corpus and queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset, Qrels, Vectors
from ..errors import DataError
from ..types import Array, StrPath
from .files import existing, json_of, lines
from .trec import Repeated, read_qrels
from .vectors import READERS, read_found

SPLITS = ("train", "dev", "test")


def load_dataset(
    path: StrPath, encoder: str | None = None, *, skip_unknown: bool = False, repeated: Repeated = "refuse", width: int | None = None
) -> Dataset:
    """The dataset in a folder. `encoder` is needed only if there are several; `skip_unknown` ignores labels without vectors.

    `repeated` says what to do with a pair that is judged twice, with different grades (see `read_qrels`). `width` is the
    encoder width of the model that the vectors are for: vectors of another width are refused before they are read.

    >>> from adawidth import bundled
    >>> load_dataset(bundled.path())
    Dataset(docstrings, minilm: 3,037 documents, 2,874 queries of width 384; labels train: 1,690, dev: 450, test: 734)
    """
    folder, home = Path(path), _embeddings(Path(path), encoder)
    corpus = _find(folder, home, "corpus", width)
    asked = None if _has_no_queries(folder, home) else _find(folder, home, "queries")
    if asked is not None and asked.width != corpus.width:
        widths = f"queries are {asked.width} wide, documents ({corpus.file}) {corpus.width}"
        raise DataError(f"{asked.file}: {widths}: encode both with one encoder")
    documents = corpus.read()
    queries = _none(documents) if asked is None else asked.read()
    qrels: dict[str, Qrels] = {}
    for split in SPLITS:
        file = existing(folder / "qrels" / f"{split}.tsv")
        if file is not None:
            qrels[split] = read_qrels(file, repeated=repeated).known(queries, documents, skip_unknown=skip_unknown)
            if not len(qrels[split]):
                raise DataError(f"{file}: none of its judgements has both vectors: are these the vectors of another dataset?")
    own = _settings(folder)["queries_are_documents"]
    return Dataset(documents, queries, qrels, folder.resolve().name, home.name, own, _encoding(home))


def load_documents(path: StrPath, encoder: str | None = None, *, width: int | None = None) -> Vectors:
    """The documents of a dataset folder, without queries and labels. `width` as in `load_dataset`."""
    return _find(Path(path), _embeddings(Path(path), encoder), "corpus", width).read()


def check_width(name: str, found: int, width: int | None) -> None:
    """Refuses vectors that are not as wide as the model."""
    if width is not None and found != width:
        raise DataError(f"{name}: vectors are {found} wide, the model {width}: use the encoder it was fitted for (--encoder)")


def encoders_in(folder: Path) -> list[str]:
    """Names of the encoders whose vectors a dataset folder holds. Unfinished ones have hidden names and are left out."""
    base = folder / "embeddings"
    return sorted(entry.name for entry in base.iterdir() if entry.is_dir() and not entry.name.startswith(".")) if base.is_dir() else []


def _embeddings(folder: Path, encoder: str | None) -> Path:
    """The folder of an encoder's vectors."""
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder: give a dataset folder, which holds embeddings/<encoder>/corpus.npy")
    base = folder / "embeddings"
    found = encoders_in(folder)
    if not found:
        raise DataError(f"{base}: there are no vectors: expected {base / '<encoder>' / 'corpus.npy'}; `adawidth encode` makes them")
    if encoder is None and len(found) == 1:
        encoder = found[0]
    if encoder is None:
        raise DataError(f"{folder}: there are {len(found)} encoders, {', '.join(found)}: choose one (--encoder)")
    if encoder not in found:
        raise DataError(f"{folder}: there is no encoder {encoder!r}, found {', '.join(found)}: choose one of these (--encoder)")
    return base / encoder


@dataclass(frozen=True)
class _Found:
    """Vectors of corpus or queries, not checked yet."""

    file: Path
    values: Array
    ids: Sequence[str]

    @property
    def width(self) -> int | None:
        return int(self.values.shape[-1]) if self.values.ndim else None

    def read(self) -> Vectors:
        return Vectors.of(self.values, self.ids, name=str(self.file))


def _find(folder: Path, home: Path, side: str, width: int | None = None) -> _Found:
    """The vectors of corpus or queries; where they bring no ids, those of the texts, row by row."""
    files = [home / f"{side}{suffix}" for suffix in READERS if (home / f"{side}{suffix}").is_file()]
    if len(files) != 1:
        found = ", ".join(sorted(entry.name for entry in home.iterdir())) or "nothing"
        raise DataError(f"{home}: expected one file {side} with {', '.join(READERS)}, found {len(files)} ({found})")
    values, ids = read_found(files[0])
    if values.ndim == 2:
        check_width(str(files[0]), values.shape[1], width)
    if ids is None:
        texts = existing(folder / f"{side}.jsonl")
        if texts is None:
            raise DataError(f"{files[0]}: there are no ids: add {home / side}.ids with one id per line, or {folder / side}.jsonl")
        ids = [identifier for identifier, _ in read_entries(texts)]
        if len(ids) != len(values):
            raise DataError(f"{files[0]}: {len(values)} vectors but {len(ids)} texts in {texts}: encode again, or add {home / side}.ids")
    return _Found(files[0], values, ids)


def _has_no_queries(folder: Path, home: Path) -> bool:
    """Whether there is nothing but documents: neither query vectors nor texts nor labels."""
    vectors = any((home / f"queries{suffix}").exists() for suffix in READERS)
    return not vectors and existing(folder / "queries.jsonl") is None and not (folder / "qrels").is_dir()


def _none(documents: Vectors) -> Vectors:
    return Vectors(np.empty((0, documents.width), np.float32), [], "no queries")


def _encoding(home: Path) -> dict[str, Any]:
    """Of meta.json, where there is one, what it takes to encode further texts alike."""
    file = home / "meta.json"
    try:
        stored = json_of(file.read_bytes()) if file.is_file() else {}
    except ValueError as error:
        raise DataError(f"{file}: not JSON: {error}") from None
    return {name: stored[name] for name in ("encoder", "fingerprint", "prompts") if name in stored} if isinstance(stored, dict) else {}


def read_entries(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(id, entry) of each line of a .jsonl file of texts."""
    for number, line in lines(path):
        try:
            entry = json_of(line)
            identifier = entry["_id"]
        except (ValueError, TypeError, KeyError):
            identifier = None
        if not isinstance(identifier, str | int):
            raise DataError(f'{path}:{number}: expected {{"_id": …, "text": …}}, found {line[:80]!r}')
        yield str(identifier), entry


def _settings(folder: Path) -> dict[str, bool]:
    """What dataset.json says, defaults where it is silent."""
    settings = {"queries_are_documents": False}
    file = folder / "dataset.json"
    if not file.is_file():
        return settings
    try:
        stored = json_of(file.read_bytes())
    except ValueError as error:
        raise DataError(f"{file}: not JSON: {error}") from None
    for name in settings:
        value = stored.get(name, False) if isinstance(stored, dict) else None
        if not isinstance(value, bool):
            raise DataError(f'{file}: expected {{"{name}": true}} or false, found {str(stored)[:80]}')
        settings[name] = value
    return settings
