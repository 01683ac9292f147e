"""The tree that a filter is parsed into. It answers in SQL, over a column of JSON, and in Python, over a dictionary, alike.

Nothing that the user wrote stands in the SQL: fields and values are bound.
"""

from __future__ import annotations

import json
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from typing import Any

import numpy as np

from ..errors import OptionError
from ..types import Mask

ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
DEEPEST = 20  # parentheses and NOTs in one another, and keys in a field
SHOWN = 20  # fields in an error
SMALLEST, LARGEST = -(2**63), 2**63 - 1  # integers that SQLite has

Field = tuple[str, ...]
Value = str | int | float | bool
Condition = tuple[str, list[Any]]  # SQL with ? for each of the values


class Filter(ABC):
    """A condition on a document's metadata. Equal filters are equal, and can be the keys of a dictionary."""

    @abstractmethod
    def sql(self) -> Condition:
        """As a condition on a column `metadata` of JSON, never NULL, and the values bound in it."""

    @abstractmethod
    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether metadata meet it."""

    @abstractmethod
    def mask(self, met: Callable[[Leaf], Mask]) -> Mask:
        """Which of many documents meet it, given which meet each condition on one field. (N,), or a single True or False for all"""

    @abstractmethod
    def fields(self) -> set[Field]:
        """The fields that it asks for, each a tuple of keys."""

    def compared(self) -> set[Field]:
        """Those of them whose values it compares: some document should have each."""
        return self.fields()


@dataclass(frozen=True)
class Joined(Filter):
    """All of some filters, or any of them; all of none is always met."""

    parts: tuple[Filter, ...]
    word: str  # AND or OR

    def sql(self) -> Condition:
        found = sorted((part.sql() for part in self.parts), key=lambda part: -len(part[0]))  # so SQLite's parser needs a short stack
        text = f" {self.word} ".join(text for text, _ in found)
        return f"({text})" if found else "1", [value for _, values in found for value in values]

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        return (all if self.word == "AND" else any)(part.matches(metadata) for part in self.parts)

    def mask(self, met: Callable[[Leaf], Mask]) -> Mask:
        join = np.logical_and if self.word == "AND" else np.logical_or
        return reduce(join, (part.mask(met) for part in self.parts)) if self.parts else np.array(True)

    def fields(self) -> set[Field]:
        return set[Field]().union(*(part.fields() for part in self.parts))

    def compared(self) -> set[Field]:
        return set[Field]().union(*(part.compared() for part in self.parts))


@dataclass(frozen=True)
class Not(Filter):
    """What does not meet a filter."""

    part: Filter

    def sql(self) -> Condition:
        text, values = self.part.sql()
        return f"NOT {text}", values

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        return not self.part.matches(metadata)

    def mask(self, met: Callable[[Leaf], Mask]) -> Mask:
        return ~self.part.mask(met)

    def fields(self) -> set[Field]:
        return self.part.fields()

    def compared(self) -> set[Field]:
        return self.part.compared()


@dataclass(frozen=True)
class Leaf(Filter):
    """A condition on one field."""

    field: Field

    def mask(self, met: Callable[[Leaf], Mask]) -> Mask:
        return met(self)

    def fields(self) -> set[Field]:
        return {self.field}


@dataclass(frozen=True)
class Missing(Leaf):
    """A field is missing or null."""

    def sql(self) -> Condition:
        return "(ifnull(json_type(metadata, ?), 'null') = 'null')", [_path(self.field)]

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        return _found(metadata, self.field) is None

    def compared(self) -> set[Field]:
        return set()


@dataclass(frozen=True)
class Among(Leaf):
    """A field is one of some values, which are kept by their kind: true is not 1."""

    texts: tuple[str, ...]
    numbers: tuple[int | float, ...]
    truths: tuple[bool, ...]

    @classmethod
    def of(cls, field: Field, values: Sequence[Value]) -> Among:
        """Of values of any kind."""
        texts = tuple(value for value in values if isinstance(value, str))
        truths = tuple(value for value in values if isinstance(value, bool))
        return cls(field, texts, tuple(value for value in values if not isinstance(value, str | bool)), truths)

    def sql(self) -> Condition:
        path = _path(self.field)
        kinds = [kind for kind, wanted in (("true", True), ("false", False)) if wanted in self.truths]
        parts = [("(ifnull(json_type(metadata, ?), '') = ?)", [path, kind]) for kind in kinds]
        parts += [
            _compared(self.field, wanted[0], "IN (SELECT value FROM json_each(?))", _json(wanted))
            for wanted in (self.texts, self.numbers)
            if wanted
        ]
        text = " OR ".join(text for text, _ in parts)
        return f"({text or '0'})", [value for _, values in parts for value in values]

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        value = _comparable(_found(metadata, self.field))
        if isinstance(value, bool):
            return value in self.truths
        return value is not None and value in (self.texts if isinstance(value, str) else self.numbers)


@dataclass(frozen=True)
class Order(Leaf):
    """A field is below or above a value."""

    sign: str
    value: str | int | float

    def sql(self) -> Condition:
        return _compared(self.field, self.value, f"{self.sign} json_extract(?, '$')", _json(self.value))

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        value = _comparable(_found(metadata, self.field))
        same = isinstance(value, str) == isinstance(self.value, str)
        return value is not None and not isinstance(value, bool) and same and ORDERS[self.sign](value, self.value)


def leaves(metadata: Mapping[str, Any], above: Field = ()) -> Iterator[tuple[Field, Value | None]]:
    """Every field that is there and not null, inner ones too, and what it is compared by: None for objects, lists and the like."""
    for key, value in metadata.items():
        field = (*above, key)
        if value is not None:
            yield field, _comparable(value)
        if isinstance(value, Mapping) and len(field) < DEEPEST:
            yield from leaves(value, field)


def has(metadata: Mapping[str, Any], field: Field) -> bool:
    """Whether a field is there, be it null."""
    *above, last = field
    inner = _found(metadata, tuple(above))
    return isinstance(inner, Mapping) and last in inner


def there(field: Field) -> Condition:
    """The same as SQL."""
    return "json_type(metadata, ?) IS NOT NULL", [_path(field)]


def held(field: Field) -> Condition:
    """A field's value as JSON, NULL where there is none, as SQL."""
    return "metadata -> ?", [_path(field)]


def nested(field: Field, value: object) -> dict[str, object]:
    """Metadata that hold this value in this field, and nothing else."""
    for key in reversed(field):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def unknown(field: Field, known: Collection[str], place: str) -> OptionError:
    """The error for a field that no document has."""
    name = ".".join(field)
    near = get_close_matches(name, known, 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    fields = f"there are {', '.join(sorted(known)[:SHOWN])}{', …' * (len(known) > SHOWN)}" if known else "none has any metadata"
    return OptionError(f"the filter: no document of {place} has a field {name!r}; {fields}{meant}")


def _found(metadata: Mapping[str, Any], field: Field) -> Any:
    """What a field holds; None where it is missing."""
    value: Any = metadata
    for key in field:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def _comparable(value: Any) -> Value | None:
    """A value as SQLite compares it; None where it does not."""
    if isinstance(value, str):
        return None if "\0" in value else value
    if isinstance(value, bool | float):
        return value
    if not isinstance(value, int):
        return None
    try:
        return value if SMALLEST <= value <= LARGEST else float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _path(field: Field) -> str:
    """A field as SQLite's JSON path: keys as they stand in JSON."""
    return "$" + "".join(f".{_json(key)}" for key in field)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _compared(field: Field, value: str | int | float, comparison: str, bound: str) -> Condition:
    """A comparison with strings or with numbers. Those of the filter go the same way through SQLite's reader as those of documents."""
    path = _path(field)
    if not isinstance(value, str):
        kind = "ifnull(json_type(metadata, ?), '') IN ('integer', 'real')"
        return f"({kind} AND json_extract(metadata, ?) {comparison})", [path, path, bound]
    # two paths give JSON as it stands, in which a backslash is doubled and NUL is \u0000
    whole = r"(instr(metadata, '\u0000') = 0 OR instr(replace(json_extract(metadata, ?, ?), '\\', ''), '\u0000') = 0)"
    kind = "ifnull(json_type(metadata, ?), '') = 'text'"
    return f"({kind} AND json_extract(metadata, ?) {comparison} AND {whole})", [path, path, bound, path, path]
