"""Filters on metadata: a small language, parsed into a condition whose text holds nothing of what the user wrote.

    lang = 'en' AND (year >= 2020 OR NOT source.kind IN ('blog', 'forum')) AND retracted IS NULL

A field is a key of the metadata, inner ones behind dots, in double quotes where it is no plain word. A comparison is between values
of one kind: a field that is missing, null or of another kind meets none but `!=`, and a field that is missing or null not even that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
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
COMPARISONS = ("=", "!=", "<>", "<", "<=", ">", ">=")
DEEPEST = 50
LONGEST = 10_000  # values

Token = tuple[str, str, int]  # kind, text, place from 1
Condition = tuple[str, list[Any]]  # SQL with ? for each of the values


def parse(text: str) -> Condition:
    """The condition that a filter stands for."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OptionError(f"the filter is no UTF-8 text: {text[:60]!r}") from None
    parser = _Parser(text)
    condition = parser.either(0)
    parser.end()
    if len(condition[1]) > LONGEST:
        raise OptionError(f"the filter has {len(condition[1])} values, at most {LONGEST} are taken")
    return condition


class _Parser:
    """Recursive descent: either = both {OR both}, both = one {AND one}, one = NOT one | (either) | field comparison."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [*self._split(), ("end", "", len(text) + 1)]
        self._place = 0

    def either(self, depth: int) -> Condition:
        return self._joined("OR", self._both, depth)

    def end(self) -> None:
        if self._kind != "end":
            raise self._wrong("the end, AND or OR")

    def _both(self, depth: int) -> Condition:
        return self._joined("AND", self._one, depth)

    def _joined(self, word: str, operand: Callable[[int], Condition], depth: int) -> Condition:
        found = [operand(depth)]
        while self._takes(word):
            found.append(operand(depth))
        sql = f" {word} ".join(part for part, _ in found)
        return (f"({sql})" if len(found) > 1 else sql), [value for _, values in found for value in values]

    def _one(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise OptionError(f"the filter is nested more than {DEEPEST} deep: write it with fewer parentheses")
        if self._takes("NOT"):
            sql, values = self._one(depth + 1)
            return f"NOT {sql}", values
        if self._takes("("):
            condition = self.either(depth + 1)
            self._need(")")
            return condition
        return self._comparison()

    def _comparison(self) -> Condition:
        if self._kind != "field":
            raise self._wrong("a field")
        path = _path(self._next()[1])
        if self._takes("IS"):
            wanted = "IS NOT" if self._takes("NOT") else "IS"
            self._need("NULL")
            return f"(nullif(json_type(metadata, ?), 'null') {wanted} NULL)", [path]
        if self._takes("NOT"):
            self._need("IN")
            sql, values = self._among(path)
            return f"NOT {sql}", values
        if self._takes("IN"):
            return self._among(path)
        if self._tokens[self._place][1] not in COMPARISONS:
            raise self._wrong("=, !=, <, <=, >, >=, IN or IS")
        sign = self._next()[1]
        value = self._value()
        if isinstance(value, bool) and sign not in ("=", "!=", "<>"):
            raise self._wrong("a number or a string after <, <=, > and >=, not a boolean")
        if sign in ("!=", "<>"):
            sql, values = _equal(path, value)
            return f"(nullif(json_type(metadata, ?), 'null') IS NOT NULL AND NOT {sql})", [path, *values]
        return _compared(path, sign, value)

    def _among(self, path: str) -> Condition:
        self._need("(")
        parts = [_equal(path, self._value())]
        while self._takes(","):
            parts.append(_equal(path, self._value()))
        self._need(")")
        return f"({' OR '.join(sql for sql, _ in parts)})", [value for _, values in parts for value in values]

    def _value(self) -> str | int | float | bool:
        kind, text, _ = self._tokens[self._place]
        if kind == "word" and text in ("TRUE", "FALSE"):
            self._place += 1
            return text == "TRUE"
        if kind == "string":
            self._place += 1
            return text[1:-1].replace("''", "'")
        if kind == "number":
            self._place += 1
            return _number(text)
        raise self._wrong("a number, a 'string', true or false")

    def _split(self) -> list[Token]:
        tokens, place = [], 0
        while place < len(self._text.rstrip()):
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
        return OptionError(f"the filter: expected {expected} at character {place}, found {found or 'its end'}")


def _path(field: str) -> str:
    """A field as SQLite's JSON path."""
    keys = re.findall(r'"([^"]+)"|([^."]+)', field)
    return "$" + "".join(f'."{quoted or plain}"' for quoted, plain in keys)


def _equal(path: str, value: str | int | float | bool) -> Condition:
    if isinstance(value, bool):
        return "(ifnull(json_type(metadata, ?), '') = ?)", [path, "true" if value else "false"]
    return _compared(path, "=", value)


def _compared(path: str, sign: str, value: str | int | float | bool) -> Condition:
    if isinstance(value, bool):
        return _equal(path, value)
    kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
    return f"(ifnull(json_type(metadata, ?), '') IN {kinds} AND json_extract(metadata, ?) {sign} ?)", [path, path, value]


def _number(text: str) -> int | float:
    """An integer where it is one that SQLite has."""
    return int(text) if re.fullmatch(r"[-+]?\d{1,18}", text) else float(text)
