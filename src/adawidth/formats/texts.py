"""Texts in files: JSON lines (BEIR's among them), CSV, Parquet, plain text, and folders of .txt and .md files.

A .txt file holds one text per line. A .md file, and every file of a folder, is cut at blank lines into passages of about a thousand
characters, as encoders read little more than that.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ..errors import DataError, OptionError
from ..types import StrPath
from .files import atomic_file, existing, json_of, lines, told
from .parquet import batches, opened

TEXT_COLUMNS = ("text", "contents", "content", "body", "passage", "question", "query")
TITLE_COLUMNS = ("title", "heading")
ID_COLUMNS = ("_id", "id", "doc_id", "docid", "query_id", "question_id")
BYTE_ORDER_MARK = "\ufeff"
PASSAGE = 1_000  # characters
DOCUMENT_SUFFIXES = (".md", ".txt")

Row = tuple[int, Mapping[str, Any]]  # number from 1, and the fields


@dataclass(frozen=True)
class Text:
    """A document or a query; `image` is a file's path."""

    id: str
    text: str
    title: str = ""
    image: str = ""

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


def read_texts(path: StrPath, columns: Columns | None = None) -> Iterator[Text]:
    """The texts of a file or folder, one after the other; the suffix says how it is read (.gz on top of it where it is text).

    A dataset folder stands for its corpus.
    """
    path = Path(path)
    if path.is_dir():
        corpus = existing(path / "corpus.jsonl")
        return _folder(path) if corpus is None else read_texts(corpus, columns)
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if not path.is_file():
        raise DataError(f"{path}: there is no such file or folder")
    if suffix in ROWS:
        return _named(path, ROWS[suffix](path), columns or Columns())
    if columns is not None and columns != Columns():
        raise OptionError(f"{path}: columns can be named in {', '.join(ROWS)} files, this is {suffix or 'without a suffix'}")
    if suffix == ".txt":
        return (Text(str(number), line.strip()) for number, line in lines(path) if line.strip())
    if suffix == ".md":
        return _passages(path, path.name)
    raise DataError(
        f"{path}: texts are read from {', '.join((*ROWS, *DOCUMENT_SUFFIXES))} files and folders, this is {suffix or 'neither'}"
    )


def write_texts(path: StrPath, texts: Iterable[Text]) -> None:
    """BEIR's .jsonl; an empty title or image is left out."""
    with atomic_file(path) as file:
        for text in texts:
            entry = {"_id": text.id, "title": text.title, "text": text.text, "image": text.image}
            kept = {name: value for name, value in entry.items() if value or name in ("_id", "text")}
            file.write(json.dumps(kept, ensure_ascii=False).encode() + b"\n")


def _named(path: Path, rows: Iterator[Row], columns: Columns) -> Iterator[Text]:
    """Rows as texts. The columns of text and id are chosen on the first row; JSON lines may leave out an empty title."""
    first = next(rows, None)
    if first is None:
        return
    text_column = _column(path, first[1], columns.text, TEXT_COLUMNS, "--text-column")
    id_column = _column(path, first[1], columns.id, ID_COLUMNS, "--id-column", needed=False)
    if columns.title is not None:
        _column(path, first[1], columns.title, (), "--title-column")
    titles = TITLE_COLUMNS if columns.title is None else (columns.title,)
    for number, row in chain([first], rows):
        name = _field(path, number, row, id_column) if id_column else str(number)
        if not name:
            raise DataError(f"{path}:{number}: column {id_column!r} is empty: every text needs an id")
        title = _field(path, number, row, next((column for column in titles if column in row), None))
        yield Text(name, _field(path, number, row, text_column), title, str(row.get("image") or ""))


def _column(
    path: Path, row: Mapping[str, Any], asked: str | None, usual: tuple[str, ...], option: str, *, needed: bool = True
) -> str | None:
    found = next((name for name in ((asked,) if asked else usual) if name in row), None)
    if found is None and (asked or needed):
        expected = repr(asked) if asked else f"one of {', '.join(usual)}"
        raise DataError(f"{path}: expected a column {expected}, found {', '.join(map(str, row)) or 'none'}: choose one ({option})")
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


def _separated_rows(path: Path, delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader((f"{line.lstrip(BYTE_ORDER_MARK)}\n" for _, line in lines(path)), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        for number, fields in enumerate(filter(None, reader), 1):
            if len(fields) != len(header):
                raise DataError(f"{path}:{reader.line_num}: found {len(fields)} columns, the header has {len(header)}: quote the texts")
            yield number, dict(zip(header, fields, strict=True))
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: this is no CSV: {error}") from None


def _parquet_rows(path: Path) -> Iterator[Row]:
    number = 0
    for batch in batches(path, opened(path), 1_024):
        with told(path):
            rows = batch.to_pylist()
        for row in rows:
            number += 1
            yield number, row


def _folder(folder: Path) -> Iterator[Text]:
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in DOCUMENT_SUFFIXES and file.is_file())
    shown = [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]
    if not shown:
        raise DataError(f"{folder}: there are no {' or '.join(DOCUMENT_SUFFIXES)} files in it")
    for file in shown:
        yield from _passages(file, file.relative_to(folder).as_posix())


def _passages(file: Path, name: str) -> Iterator[Text]:
    """The paragraphs of a file, joined up to a passage's length; the title is the first heading, or the file's name."""
    title, parts, paragraph = "", [""], ""
    for _, line in [*lines(file), (0, "")]:
        if not title and line.startswith("#"):
            title = line.strip("# \t")
        elif line.strip():
            paragraph += f" {line.strip()}"
        elif paragraph:
            if parts[-1] and len(parts[-1]) + len(paragraph) > PASSAGE:
                parts.append("")
            parts[-1] = f"{parts[-1]}{paragraph}".strip()
            paragraph = ""
    title = title or Path(name).stem
    for number, part in enumerate(parts, 1):
        if part:
            yield Text(name if len(parts) == 1 else f"{name}#{number}", part, title)


ROWS: Mapping[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": _json_rows,
    ".csv": lambda path: _separated_rows(path, ","),
    ".tsv": lambda path: _separated_rows(path, "\t"),
    ".parquet": _parquet_rows,
}
