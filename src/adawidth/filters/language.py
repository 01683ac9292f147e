"""The filter language: texts and dictionaries, parsed into conditions and bounded in size."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import OptionError
from .conditions import DEEPEST, LARGEST, ORDERS, SMALLEST, Among, Field, Filter, Joined, Missing, Not, Order, Value

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
COMPARISONS = ("=", "!=", "<>", *ORDERS)
MOST = 10_000  # values
MOST_COMPARISONS = 500  # SQLite takes expressions a thousand deep
LONGEST = 100_000  # characters

Token = tuple[str, str, int]  # kind, text, position from 1


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
