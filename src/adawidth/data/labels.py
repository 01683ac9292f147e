"""Relevance labels: Qrels by id, as people give them; Judged by row, as CSR arrays."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import DataError
from ..types import F64, I64, Id, Rows
from .frames import columns_of, listed
from .vectors import Vectors

log = logging.getLogger("adawidth")


@dataclass(frozen=True, eq=False)
class Judged:
    """Relevance judgements as CSR arrays: those of query i are `documents[offsets[i]:offsets[i + 1]]`, with their grades."""

    offsets: I64  # (queries + 1,)
    documents: Rows
    grades: F64

    @classmethod
    def of(cls, per_query: Sequence[Mapping[int, float]]) -> Judged:
        """From one {document row: grade} per query."""
        offsets = np.cumsum([0, *(len(grades) for grades in per_query)]).astype(np.int64)
        documents = np.array([row for grades in per_query for row in grades], np.int64)
        return cls(offsets, documents, np.array([g for grades in per_query for g in grades.values()], np.float64))

    def __repr__(self) -> str:
        return f"Judged({len(self):,} queries, {len(self.documents):,} judgements)"

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def positives(self, query: int) -> Rows:
        """Rows of the documents relevant to this query (grade above 0)."""
        part = slice(self.offsets[query], self.offsets[query + 1])
        return self.documents[part][self.grades[part] > 0]

    def select(self, queries: ArrayLike) -> Judged:
        """The judgements of these queries alone, in this order."""
        spans = [np.arange(self.offsets[i], self.offsets[i + 1]) for i in np.asarray(queries, np.int64)]
        flat = np.concatenate(spans) if spans else np.empty(0, np.int64)
        offsets = np.cumsum([0, *(len(span) for span in spans)]).astype(np.int64)
        return Judged(offsets, self.documents[flat], self.grades[flat])

    @cached_property
    def relevant(self) -> Rows:
        """Every document that is relevant to some query, sorted, once."""
        return np.unique(self.documents[self.grades > 0])


@dataclass(frozen=True, eq=False)
class Qrels:
    """Relevance labels: for each query id the grade of each judged document id; above 0 is relevant.

    >>> qrels = Qrels.of({"q1": {"d1": 2, "d2": 0}, "q2": ["d3"]})
    >>> qrels.grades["q2"]
    {'d3': 1.0}
    """

    grades: Mapping[Id, Mapping[Id, float]]
    name: str = "qrels"

    @classmethod
    def of(cls, given: Any, name: str = "qrels") -> Qrels:
        """Labels as people have them: {query: {document: grade}}, {query: [documents]}, (query, document[, grade]) tuples, as
        ir_measures and ir_datasets have them, a table with these three columns in this order, or ranx' Qrels.

        >>> Qrels.of([("q1", "d1", 2), ("q2", "d3")])
        Qrels(2 queries, qrels)
        """
        if isinstance(given, Qrels):
            return cls(given.grades, name)
        columns = columns_of(given)
        if columns is not None:
            given = list(zip(*(listed(column) for column in list(columns.values())[:3]), strict=True))
        elif hasattr(given, "to_dict"):  # ranx
            given = given.to_dict()
        grades: dict[Id, dict[Id, float]] = {}
        try:
            if isinstance(given, Mapping):
                pairs = ((query, known) for query, known in given.items())
                return cls({q: dict(known) if isinstance(known, Mapping) else dict.fromkeys(known, 1.0) for q, known in pairs}, name)
            for query, document, *grade in given:
                grades.setdefault(query, {})[document] = float(grade[0]) if grade else 1.0
        except (TypeError, ValueError) as error:
            wanted = "{query: {document: grade}}, (query, document, grade) tuples or a data frame with these columns"
            raise DataError(f"{name}: expected {wanted}, found {type(given).__name__} ({error})") from None
        return cls(grades, name)

    def to_dict(self) -> dict[str, dict[str, int]]:
        """{query: {document: grade}} with ids as strings and whole grades: what ranx.Qrels, ir_measures and pytrec_eval take.

        >>> Qrels.of({7: {"d1": 2}}).to_dict()
        {'7': {'d1': 2}}
        """
        for query, grades in self.grades.items():
            for document, grade in grades.items():
                if not float(grade).is_integer():
                    raise DataError(
                        f"{self.name}: query {query!r} and document {document!r} have grade {grade:g}: grades must be whole here"
                    )
        return {str(query): {str(document): int(grade) for document, grade in grades.items()} for query, grades in self.grades.items()}

    def __repr__(self) -> str:
        return f"Qrels({len(self):,} queries, {self.name})"

    def __len__(self) -> int:
        return len(self.grades)

    def judged(self, queries: Vectors, documents: Vectors) -> Judged:
        """The same labels by row, one entry for each of `queries`.

        >>> documents = Vectors.of([[1.0, 0.0], [0.0, 1.0]], ["d1", "d2"])
        >>> queries = Vectors.of([[0.6, 0.8]], ["q1"])
        >>> Qrels.of({"q1": {"d2": 1}}).judged(queries, documents).positives(0).tolist()
        [1]
        """
        row_of = documents.row_of
        return Judged.of([{row_of[d]: g for d, g in self.grades.get(q, {}).items()} for q in queries.ids])

    def known(self, queries: Vectors, documents: Vectors, *, skip_unknown: bool = False) -> Qrels:
        """The labels, checked: every id must have a vector. `skip_unknown` leaves out the others and says so.

        >>> documents, queries = Vectors.of([[1.0, 0.0]], ["d1"]), Vectors.of([[0.6, 0.8]], ["q1"])
        >>> qrels.known(queries, documents, skip_unknown=True).grades
        {'q1': {'d1': 2}}
        """
        unknown = [(q, d) for q, grades in self.grades.items() for d in grades if d not in documents.row_of]
        strangers = [q for q in self.grades if q not in queries.row_of]
        total = sum(map(len, self.grades.values()))
        if not unknown and not strangers:
            return self
        if not skip_unknown:
            if strangers:
                raise DataError(
                    f"{self.name}: query {strangers[0]!r} has no vector; {len(strangers)} of {len(self)} queries have none "
                    f"in {queries.name}: encode them, or leave them out with skip_unknown (--skip-unknown)"
                )
            q, d = unknown[0]
            raise DataError(
                f"{self.name}: query {q!r} names document {d!r}, which has no vector; {len(unknown)} of {total} judgements "
                f"name documents that are not in {documents.name}: encode them, or leave them out with skip_unknown (--skip-unknown)"
            )
        kept = {
            q: known
            for q, grades in self.grades.items()
            if q in queries.row_of and (known := {d: g for d, g in grades.items() if d in documents.row_of})
        }
        gone, left = len(self) - len(kept), total - sum(map(len, kept.values()))
        log.warning("%s: left out %d of %d queries and %d of %d judgements without a vector", self.name, gone, len(self), left, total)
        return replace(self, grades=kept)
