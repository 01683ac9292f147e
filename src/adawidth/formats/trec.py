"""Relevance labels and runs: TREC's columns, and BEIR's .tsv with its header. All may be gzipped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..data import Qrels
from ..errors import DataError
from ..hits import Hits
from ..types import Id, StrPath
from .files import lines, write_lines

HEADER = ("query-id", "corpus-id", "score")
Repeated = Literal["refuse", "mean"]
Run = dict[str, dict[str, float]]  # for each query its documents with their scores, best first


def read_qrels(path: StrPath, *, repeated: Repeated = "refuse") -> Qrels:
    """Labels: BEIR's three columns below a header where the name ends in .tsv or .tsv.gz, TREC's four elsewhere.

    A pair that is judged again with another grade is refused, or (`mean`: clicks and skips, one line each) has the mean of its grades.
    """
    path = Path(path)
    grades: dict[Id, dict[Id, float]] = {}
    counts: dict[tuple[Id, Id], int] = {}
    for number, query, document, text in _beir_fields(path) if _is_tsv(path) else _trec_fields(path):
        grade = _number(text, path, number, "a grade")
        earlier = grades.setdefault(query, {}).setdefault(document, grade)
        if repeated == "mean":
            count = counts[query, document] = counts.get((query, document), 0) + 1
            grades[query][document] += (grade - earlier) / count
        elif earlier != grade:
            raise DataError(
                f"{path}:{number}: query {query!r} and document {document!r} have grade {grade:g} here "
                f"and {earlier:g} further up: keep one of them"
            )
    if not grades:
        raise DataError(f"{path}: there are no judgements in it: add some, or remove the file")
    return Qrels(grades, str(path))


def write_qrels(path: StrPath, qrels: Qrels) -> None:
    """Writes what `read_qrels` reads back; the name chooses the format in the same way."""
    path = Path(path)
    tsv = _is_tsv(path)

    def text() -> Iterator[str]:
        if tsv:
            yield "\t".join(HEADER)
        for query, grades in qrels.grades.items():
            for document, grade in grades.items():
                value = str(int(grade)) if float(grade).is_integer() else repr(float(grade))
                if tsv:
                    yield f"{_column(query, path, tsv)}\t{_column(document, path, tsv)}\t{value}"
                else:
                    yield f"{_column(query, path, tsv)} 0 {_column(document, path, tsv)} {value}"

    write_lines(path, text())


def read_run(path: StrPath) -> Run:
    """A TREC run, its documents in the order in which trec_eval ranks them: by 32-bit score, then by id, both descending."""
    path = Path(path)
    scores: Run = {}
    for number, line in lines(path):
        query, _, document, _, text, _ = _columns(line, 6, path, number, "query Q0 document rank score tag")
        if document in scores.setdefault(query, {}):
            raise DataError(f"{path}:{number}: document {document!r} stands twice in the results of query {query!r}: keep one of them")
        scores[query][document] = _number(text, path, number, "a score")
    return {query: _sorted(found) for query, found in scores.items()}


def run_of(given: Any) -> Run:
    """A run as people have it, in the order in which trec_eval ranks it: {query: {document: score}}, (query, document, score) tuples (as
    ir_measures has them), a table with these columns, or ranx' Run."""
    known = Qrels.of(given, "run").grades
    return {str(query): _sorted({str(document): float(score) for document, score in found.items()}) for query, found in known.items()}


def _sorted(found: Mapping[str, float]) -> dict[str, float]:
    """By 32-bit score, then by id, both descending."""
    return dict(sorted(found.items(), key=lambda item: (np.float32(item[1]), item[0]), reverse=True))


def write_run(path: StrPath, queries: Sequence[Id], hits: Hits, tag: str = "adawidth") -> None:
    """A TREC run of the answers to these query ids. A score is lowered where trec_eval would otherwise reorder documents."""
    path = Path(path)
    if len(queries) != len(hits):
        raise DataError(f"{path}: {len(queries)} query ids but answers to {len(hits)} queries: give one id an answer")

    def text() -> Iterator[str]:
        for query, found in zip(queries, hits.ranked(), strict=True):
            for rank, (document, score) in enumerate(found, 1):
                yield f"{_column(query, path, tsv=False)} Q0 {_column(document, path, tsv=False)} {rank} {score!s} {tag}"

    write_lines(path, text())


def _is_tsv(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(".tsv")


def _beir_fields(path: Path) -> Iterator[tuple[int, str, str, str]]:
    for number, line in lines(path):
        if number == 1:
            if tuple(line.split("\t")) != HEADER:
                raise DataError(
                    f"{path}:1: expected the header {' '.join(HEADER)} (with tabs), found {line!r}: add it, "
                    "or name a file of TREC's four columns .qrels"
                )
            continue
        fields = line.split("\t")
        if len(fields) != 3 or not all(fields):
            raise DataError(f"{path}:{number}: expected 3 columns with tabs ({' '.join(HEADER)}), found {_found(fields, line)}")
        yield number, fields[0], fields[1], fields[2]


def _trec_fields(path: Path) -> Iterator[tuple[int, str, str, str]]:
    for number, line in lines(path):
        query, _, document, grade = _columns(line, 4, path, number, "query 0 document grade")
        yield number, query, document, grade


def _columns(line: str, count: int, path: Path, number: int, names: str) -> list[str]:
    fields = line.split()
    if len(fields) != count:
        raise DataError(f"{path}:{number}: expected {count} columns ({names}), found {_found(fields, line)}")
    return fields


def _found(fields: list[str], line: str) -> str:
    return f"{len(fields)}: {line[:80]!r}" if line else "an empty line"


def _number(text: str, path: Path, number: int, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{path}:{number}: expected {what}, a number, found {text!r}")
    return value


def _column(identifier: Id, path: Path, tsv: bool) -> str:
    """The id as a column; refused where it would break the line apart."""
    name = str(identifier)
    if not name or (any(c in name for c in "\t\r\n") if tsv else len(name.split()) != 1 or name != name.strip()):
        raise DataError(f"{path}: id {name!r} can't be a column here: {'tabs' if tsv else 'spaces'} stand between columns, rename it")
    return name
