"""Filters on metadata: a small language, parsed once into a tree that answers in SQL and in Python alike.

    lang = 'en' AND (year >= 2020 OR NOT source.kind IN ('blog', 'forum')) AND retracted IS NULL
    {"lang": "en", "year": {">=": 2020}, "part": ["a", "b"], "retracted": None}       (all of it must hold)

A field is a key of the metadata, inner ones behind dots, in double quotes where it is no plain word. A comparison is between values
of one kind: a field that is missing, null or of another kind meets none but `!=`, and a field that is missing or null not even that.
Strings with a NUL character are of no kind, as SQLite cuts them there. Nothing of what the user wrote stands in the SQL: it is bound.
"""

from __future__ import annotations

import json
import math
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import OptionError

TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])
    |(?P<string>'(?:[^']|'')*')
    |(?P<field>(?:"[^"]+"|[^\W\d]\w*)(?:\.(?:"[^"]+"|\w+))*)
    |(?P<sign><=|>=|!=|<>|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)
WORDS = ("AND", "OR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE")
ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
COMPARISONS = ("=", "!=", "<>", *ORDERS)
DEEPEST = 20  # parentheses and NOTs in one another, and keys in a field
MOST = 10_000  # values
MOST_COMPARISONS = 500  # SQLite takes expressions a thousand deep
LONGEST = 100_000  # characters
SMALLEST, LARGEST = -(2**63), 2**63 - 1  # integers that SQLite has

Field = tuple[str, ...]
Value = str | int | float | bool
Token = tuple[str, str, int]  # kind, text, place from 1
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
    def fields(self) -> set[Field]:
        """The fields that it asks for, each a tuple of keys."""


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

    def fields(self) -> set[Field]:
        return set[Field]().union(*(part.fields() for part in self.parts))


@dataclass(frozen=True)
class Not(Filter):
    """What does not meet a filter."""

    part: Filter

    def sql(self) -> Condition:
        text, values = self.part.sql()
        return f"NOT {text}", values

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        return not self.part.matches(metadata)

    def fields(self) -> set[Field]:
        return self.part.fields()


@dataclass(frozen=True)
class Leaf(Filter):
    """A condition on one field."""

    field: Field

    def fields(self) -> set[Field]:
        return {self.field}


@dataclass(frozen=True)
class Missing(Leaf):
    """A field is missing or null."""

    def sql(self) -> Condition:
        return "(ifnull(json_type(metadata, ?), 'null') = 'null')", [_path(self.field)]

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        return _found(metadata, self.field) is None


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


def parse(text: str | Mapping[str, Any]) -> Filter:
    """The filter that a text, or a dictionary of fields and what they must be, stands for."""
    if isinstance(text, str):
        if len(text) > LONGEST:
            raise OptionError(f"the filter is {len(text)} characters long, at most {LONGEST} are taken")
        _check_text(text)
        parser = _Parser(text)
        found = parser.either(0)
        parser.end()
    elif isinstance(text, Mapping):
        found = Joined(tuple(part for name, wanted in text.items() for part in _entry(_keys(name), wanted)), "AND")
    else:
        raise OptionError(f"a filter is a text or a dictionary, not {type(text).__name__}")
    _check_size(found)
    return found


class _Parser:
    """Recursive descent: either = both {OR both}, both = one {AND one}, one = NOT one | (either) | field comparison."""

    def __init__(self, text: str) -> None:
        self._text = text.rstrip()
        self._tokens = [*self._split(), ("end", "", len(text) + 1)]
        self._place = 0

    def either(self, depth: int) -> Filter:
        return self._joined("OR", self._both, depth)

    def end(self) -> None:
        if self._kind != "end":
            raise self._wrong("the end, AND or OR")

    def _both(self, depth: int) -> Filter:
        return self._joined("AND", self._one, depth)

    def _joined(self, word: str, operand: Callable[[int], Filter], depth: int) -> Filter:
        found = [operand(depth)]
        while self._takes(word):
            found.append(operand(depth))
        return Joined(tuple(found), word) if len(found) > 1 else found[0]

    def _one(self, depth: int) -> Filter:
        if depth > DEEPEST:
            raise OptionError(f"the filter is nested more than {DEEPEST} deep: write it with fewer parentheses")
        if self._takes("NOT"):
            return Not(self._one(depth + 1))
        if self._takes("("):
            found = self.either(depth + 1)
            self._need(")")
            return found
        return self._comparison()

    def _comparison(self) -> Filter:
        if self._kind != "field":
            raise self._wrong("a field")
        field = _keys(self._next()[1])
        if self._takes("IS"):
            wanted = self._takes("NOT")
            self._need("NULL")
            return Not(Missing(field)) if wanted else Missing(field)
        if self._takes("NOT"):
            self._need("IN")
            return Not(self._among(field))
        if self._takes("IN"):
            return self._among(field)
        if self._tokens[self._place][1] not in COMPARISONS:
            raise self._wrong("=, !=, <, <=, >, >=, IN or IS")
        sign = self._next()[1]
        value = self._value()
        if isinstance(value, bool) and sign in ORDERS:
            raise self._wrong("a number or a string after <, <=, > and >=, not a boolean")
        return _comparison(field, sign, value)

    def _among(self, field: Field) -> Filter:
        self._need("(")
        values = [self._value()]
        while self._takes(","):
            values.append(self._value())
        self._need(")")
        return Among.of(field, values)

    def _value(self) -> Value:
        kind, text, _ = self._tokens[self._place]
        if kind == "word" and text in ("TRUE", "FALSE"):
            self._place += 1
            return text == "TRUE"
        if kind == "string":
            self._place += 1
            return _checked(text[1:-1].replace("''", "'"))
        if kind == "number":
            self._place += 1
            return _number(text)
        raise self._wrong("a number, a 'string', true or false")

    def _split(self) -> list[Token]:
        tokens, place = [], 0
        while place < len(self._text):
            match = TOKEN.match(self._text, place)
            if match is None:
                start = len(self._text) - len(self._text[place:].lstrip())
                raise OptionError(f"the filter can't be read from character {start + 1} on: {self._text[start : start + 30]!r}")
            kind = str(match.lastgroup)
            found = match[kind]
            word = kind == "field" and found.upper() in WORDS
            tokens.append(("word" if word else kind, found.upper() if word else found, match.start(kind) + 1))
            place = match.end()
        return tokens

    @property
    def _kind(self) -> str:
        return self._tokens[self._place][0]

    def _next(self) -> Token:
        self._place += 1
        return self._tokens[self._place - 1]

    def _takes(self, text: str) -> bool:
        kind, found, _ = self._tokens[self._place]
        if kind in ("word", "sign") and found == text:
            self._place += 1
            return True
        return False

    def _need(self, text: str) -> None:
        if not self._takes(text):
            raise self._wrong(text)

    def _wrong(self, expected: str) -> OptionError:
        _, found, place = self._tokens[self._place]
        return OptionError(f"the filter: expected {expected} at character {place}, found {found[:60] or 'its end'}")


def _entry(field: Field, wanted: Any) -> Iterable[Filter]:
    """What one entry of a dictionary stands for."""
    if isinstance(wanted, Mapping):
        for sign, value in wanted.items():
            if sign not in COMPARISONS or (isinstance(value, bool) and sign in ORDERS) or (value is None and sign in ORDERS):
                raise OptionError(f"the filter: {'.'.join(field)} {sign!r} {value!r}: expected one of {' '.join(COMPARISONS)} and a value")
            yield _comparison(field, sign, None if value is None else _checked(value))
    elif isinstance(wanted, list | tuple | set | frozenset):
        yield Among.of(field, [_checked(value) for value in wanted])
    else:
        yield _comparison(field, "=", None if wanted is None else _checked(wanted))


def _comparison(field: Field, sign: str, value: Value | None) -> Filter:
    if sign in ORDERS:
        assert value is not None
        return Order(field, sign, value)
    there, equal = Not(Missing(field)), Missing(field) if value is None else Among.of(field, [value])
    return equal if sign == "=" else Joined((there, Not(equal)), "AND")


def _keys(name: Any) -> Field:
    """The keys of a field: apart at the dots, but for those between double quotes."""
    if not isinstance(name, str):
        raise OptionError(f"the filter: a field is a text, not {name!r}")
    _check_text(name)
    quoted = re.fullmatch(r'(?:"[^"]+"|[^."]+)(?:\.(?:"[^"]+"|[^."]+))*', name)
    if quoted is None:
        raise OptionError(f"the filter: {name[:60]!r} is no field: no key is empty or has a double quote")
    keys = tuple(inner or plain for inner, plain in re.findall(r'"([^"]+)"|([^."]+)', name))
    if len(keys) > DEEPEST:
        raise OptionError(f"the filter: a field of {len(keys)} keys, at most {DEEPEST} are taken")
    return keys


def _checked(value: Any) -> Value:
    """A value that can be compared as it is."""
    if isinstance(value, str):
        _check_text(value)
        if "\0" in value:
            raise OptionError(f"the filter: {value[:60]!r} has a NUL character, which can't be compared")
        return value
    if isinstance(value, bool) or (isinstance(value, int) and SMALLEST <= value <= LARGEST):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, int | float):
        raise OptionError(f"the filter: the number {value!r:.40} is not finite, or an integer of more than 64 bits")
    raise OptionError(f"the filter: {value!r:.60} is no number, string, true or false")


def _number(text: str) -> int | float:
    whole = re.fullmatch(r"[-+]?\d+", text)
    if whole and len(text) > 30:
        raise OptionError(f"the filter: the number {text[:30]}… is an integer of more than 64 bits")
    found = _checked(int(text) if whole else float(text))
    assert not isinstance(found, str)
    return found


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OptionError(f"the filter is no UTF-8 text: {text[:60]!r}") from None


def _check_size(found: Filter) -> None:
    comparisons = values = characters = 0
    waiting = [found]
    while waiting:
        match waiting.pop():
            case Joined(parts):
                waiting.extend(parts)
            case Not(part):
                waiting.append(part)
            case Among(_, texts, numbers, truths):
                comparisons, values = comparisons + 1, values + len(texts) + len(numbers) + len(truths)
                characters += sum(map(len, texts))
            case Order(_, _, value):
                comparisons, values = comparisons + 1, values + 1
                characters += len(value) if isinstance(value, str) else 0
            case _:
                comparisons += 1
    limits = ((comparisons, MOST_COMPARISONS, "comparisons"), (values, MOST, "values"), (characters, LONGEST, "characters"))
    for count, most, what in limits:
        if count > most:
            raise OptionError(f"the filter has {count} {what}, at most {most} are taken")


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
