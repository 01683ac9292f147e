"""Texts in files: tables (JSON lines, BEIR's among them, JSON, CSV, Parquet), documents (see pages.py), and folders of both.

A row of a table is one text, and its further columns are metadata. A document is cut into passages (see passages.py). A .txt file by itself
holds one text per line; in a folder it is a document.
"""

from __future__ import annotations

import csv
import json
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from ..errors import DataError, OptionalDependencyError, OptionError
from ..progress import progress
from ..types import StrPath
from .files import as_json, atomic_file, existing, json_of, lines, told
from .pages import BYTE_ORDER_MARK, PAGES, text_of
from .parquet import batches, opened
from .passages import Cut, passages

log = logging.getLogger("adawidth")

TEXT_COLUMNS = ("text", "contents", "content", "body", "passage", "question", "query")
TITLE_COLUMNS = ("title", "heading")
ID_COLUMNS = ("_id", "id", "doc_id", "docid", "query_id", "question_id")
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
TRUTHS = {"true": True, "false": False}
OWN = ".adawidth"  # ends the names of folders that quickstart makes, which are no one's notes
SHOWN = 3  # ids in a warning

Row = tuple[int, Mapping[str, Any]]  # number from 1, and the fields


@dataclass(frozen=True)
class Text:
    """A document or a query; `image` is a file's path, `metadata` what else a table or a file says of it."""

    id: str
    text: str
    title: str = ""
    image: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def whole(self) -> str:
        """What is encoded: title and text."""
        return f"{self.title} {self.text}".strip()


@dataclass(frozen=True)
class Columns:
    """Which columns of a file hold what; None: the first one with a usual name. Without ids the rows are numbered from 1."""

    text: str | None = None
    title: str | None = None
    id: str | None = None


def read_texts(path: StrPath, columns: Columns | None = None, cut: Cut | None = None, *, named: bool = False) -> Iterator[Text]:
    """The texts of a file or folder, one after the other; the suffix says how it is read (.gz on top of it where it is text).

    A dataset folder stands for its corpus. In any other folder, a file that can't be read is left out with a warning. Rows without ids
    are numbered from 1; if `named`, after the name of their file, so that those of several files differ.
    """
    path, columns, cut = Path(path), columns or Columns(), cut or Cut()
    prefix = f"{path.name}#" if named else ""
    if path.is_dir():
        corpus = existing(path / "corpus.jsonl")
        return _folder(path, columns, cut) if corpus is None else read_texts(corpus, columns)
    if not path.is_file():
        raise DataError(f"{path}: there is no such file or folder")
    kind = _kind(path)
    if kind not in ROWS and columns != Columns():
        raise OptionError(f"{path}: columns can be named in {', '.join(ROWS)} files, this is {kind or 'without a suffix'}")
    if kind == ".txt":
        return (Text(f"{prefix}{number}", line.strip()) for number, line in lines(path) if line.strip())
    return _file(path, path.name, columns, cut, prefix)


def read_corpus(path: StrPath, columns: Columns | None = None, cut: Cut | None = None) -> Iterator[Text]:
    """The texts of a file or folder that have anything to encode, with a warning of the others. Ids must be unique."""
    place, seen, empty = path, set[str](), list[str]()
    for text in read_texts(path, columns, cut, named=True):
        if text.id in seen:
            raise DataError(f"{place}: id {text.id!r} stands twice: ids must be unique; choose another column of ids (--id-column)")
        seen.add(text.id)
        if text.whole or text.image:
            yield text
        else:
            empty.append(text.id)
    if len(empty) == len(seen):
        raise DataError(f"{place}: there are no texts in it")
    if empty:
        named = ", ".join(empty[:SHOWN]) + ", …" * (len(empty) > SHOWN)
        log.warning("%s: %d of %d texts are empty and are left out: %s", place, len(empty), len(seen), named)


def write_texts(path: StrPath, texts: Iterable[Text]) -> None:
    """BEIR's .jsonl; an empty title, image or metadata is left out."""
    with atomic_file(path) as file:
        for text in texts:
            entry = {"_id": text.id, "title": text.title, "text": text.text, "image": text.image, "metadata": text.metadata}
            kept = {name: value for name, value in entry.items() if value or name in ("_id", "text")}
            file.write(json.dumps(kept, ensure_ascii=False).encode() + b"\n")


def holds_texts(path: Path) -> bool:
    """Whether a file is one of texts, by its suffix: documents, or a table."""
    return _kind(path) in (*ROWS, *PAGES)


def _kind(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _file(path: Path, name: str, columns: Columns, cut: Cut, prefix: str = "") -> Iterator[Text]:
    """The rows of a table; or the passages of a document, whose ids begin with its `name`."""
    kind = _kind(path)
    if kind in ROWS:
        yield from _named(path, columns, _numbers(path) if kind in SEPARATED else {}, prefix)
        return
    if kind not in PAGES:
        known = ", ".join((*ROWS, *PAGES))
        raise DataError(f"{path}: texts are read from {known} files and folders, this is {kind or 'neither'}")
    found = passages(PAGES[kind](path), name, cut)
    if not found:
        raise DataError(f"{path}: there is no text in it")
    for number, (title, text, metadata) in enumerate(found, 1):
        yield Text(name if len(found) == 1 else f"{name}#{number}", text, title, metadata={"file": name, **metadata})


def _folder(folder: Path, columns: Columns, cut: Cut) -> Iterator[Text]:
    """The texts of all files, in the order of their names. Rows of tables have their file's name before their id."""
    inner = ((file, file.relative_to(folder)) for file in sorted(folder.rglob("*")) if holds_texts(file) and file.is_file())
    shown = [(file, name) for file, name in inner if not any(part.startswith(".") or part.endswith(OWN) for part in name.parts)]
    if not shown:
        raise DataError(f"{folder}: there are no {', '.join((*PAGES, *ROWS))} files in it")
    read, refused = 0, list[str]()
    with progress("reading", len(shown)) as advance:
        for file, name in shown:
            advance()
            try:
                texts = list(_file(file, name.as_posix(), columns, cut))
            except (DataError, OptionalDependencyError) as error:
                refused.append(str(error) if isinstance(error, DataError) else f"{file}: {error}")
                log.warning("left out: %s", refused[-1])
                continue
            read += 1
            if _kind(file) in ROWS:
                known = name.as_posix()
                texts = [replace(text, id=f"{known}#{text.id}", metadata={"file": known, **text.metadata}) for text in texts]
            yield from texts
    if not read:
        raise DataError(f"{folder}: none of its {len(shown)} files can be read; the first: {refused[0]}")


def _named(path: Path, columns: Columns, kinds: Mapping[str, Callable[[str], Any]], prefix: str) -> Iterator[Text]:
    """Rows as texts. The columns of text and id are chosen on the first row; JSON lines may leave out an empty title."""
    rows = ROWS[_kind(path)](path)
    first = next(rows, None)
    if first is None:
        return
    text_column = _column(path, first[1], columns.text, TEXT_COLUMNS, "--text-column")
    id_column = _column(path, first[1], columns.id, ID_COLUMNS, "--id-column", needed=False)
    if columns.title is not None:
        _column(path, first[1], columns.title, (), "--title-column")
    titles = TITLE_COLUMNS if columns.title is None else (columns.title,)
    for number, row in chain([first], rows):
        name = _field(path, number, row, id_column) if id_column else f"{prefix}{number}"
        if not name:
            raise DataError(f"{path}:{number}: column {id_column!r} is empty: every text needs an id")
        title_column = next((column for column in titles if column in row), None)
        known = {key: kinds[key](value) if key in kinds and value else value for key, value in row.items()}
        metadata = _metadata(path, number, known, (text_column, id_column, title_column, "image"))
        text, title = _field(path, number, row, text_column), _field(path, number, row, title_column)
        yield Text(name, text, title, str(row.get("image") or ""), metadata)


def _metadata(path: Path, number: int, row: Mapping[str, Any], taken: tuple[str | None, ...]) -> dict[str, Any]:
    """What the other columns say, and the entries of one called metadata; nothing is said by an empty cell."""
    rest = {key: value for key, value in row.items() if key not in taken}
    stated = rest.pop("metadata", None) or {}
    if not isinstance(stated, Mapping):
        raise DataError(f"{path}:{number}: the metadata are {str(stated)[:60]!r}: expected an object")
    plain = {str(key): as_json(value) for key, value in {**stated, **rest}.items()}
    return {key: value for key, value in plain.items() if value is not None and value != ""}


def _column(
    path: Path, row: Mapping[str, Any], asked: str | None, usual: tuple[str, ...], option: str, *, needed: bool = True
) -> str | None:
    found = next((name for name in ((asked,) if asked else usual) if name in row), None)
    if found is None and (asked or needed):
        expected = f"a column {asked!r}" if asked else f"a column, one of {', '.join(usual)}"
        raise DataError(f"{path}: expected {expected}, found {', '.join(map(str, row)) or 'none'}: choose one ({option})")
    return found


def _field(path: Path, number: int, row: Mapping[str, Any], column: str | None) -> str:
    value = row.get(column) if column else None
    if isinstance(value, list | dict):
        raise DataError(f"{path}:{number}: column {column!r} holds a {type(value).__name__}, expected text: {str(value)[:60]}")
    return "" if value is None else str(value)


def _json_rows(path: Path) -> Iterator[Row]:
    for number, line in lines(path):
        if not line.strip():
            continue
        try:
            row = json_of(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise DataError(f"{path}:{number}: expected a JSON object, found {line[:80]!r}")
        yield number, row


def _json_file(path: Path) -> Iterator[Row]:
    """A list of objects, alone or as the only list in an object; or one object."""
    with told(path):
        value = json_of(text_of(path))
    if isinstance(value, dict):
        listed = [inner for inner in value.values() if isinstance(inner, list)]
        value = listed[0] if len(listed) == 1 and not set(value) & {*TEXT_COLUMNS} else [value]
    for number, row in enumerate(value if isinstance(value, list) else [value], 1):
        if not isinstance(row, dict):
            raise DataError(f"{path}:{number}: expected a list of JSON objects, found {str(row)[:80]!r}")
        yield number, row


def _separated_rows(path: Path) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)
    source = (f"{line.lstrip(BYTE_ORDER_MARK)}\n" for _, line in lines(path))
    reader = csv.reader(source, delimiter=SEPARATED[_kind(path)], strict=True)
    try:
        header = next(reader, [])
        for number, fields in enumerate(filter(None, reader), 1):
            if len(fields) != len(header):
                raise DataError(f"{path}:{reader.line_num}: found {len(fields)} columns, the header has {len(header)}: quote the texts")
            yield number, dict(zip(header, fields, strict=True))
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: this is no CSV: {error}") from None


def _numbers(path: Path) -> dict[str, Callable[[str], Any]]:
    """How to read the columns of a CSV file all of whose values are numbers, or truth values: these can be compared in filters."""
    left = dict[str, set[Any]]()  # ways to read each column that fit so far
    for _, row in _separated_rows(path):
        for name, value in row.items():
            fits = left.setdefault(name, {_number, _truth})
            if value and fits:
                fits -= {_number} if not NUMBER.fullmatch(value) else set()
                fits -= {_truth} if value.lower() not in TRUTHS else set()
    return {name: next(iter(fits)) for name, fits in left.items() if len(fits) == 1}


def _number(text: str) -> int | float:
    return float(text) if set(text) & set(".eE") else int(text)


def _truth(text: str) -> bool:
    return TRUTHS[text.lower()]


def _parquet_rows(path: Path) -> Iterator[Row]:
    number = 0
    for batch in batches(path, opened(path), 1_024):
        with told(path):
            rows = batch.to_pylist()
        for row in rows:
            number += 1
            yield number, row


SEPARATED = {".csv": ",", ".tsv": "\t"}
ROWS: Mapping[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": _json_rows,
    ".json": _json_file,
    ".csv": _separated_rows,
    ".tsv": _separated_rows,
    ".parquet": _parquet_rows,
}
