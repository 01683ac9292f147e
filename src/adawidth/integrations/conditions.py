"""Filters in AdaWidth's own language, put together from those of other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

NOTHING = "({0} IS NULL AND NOT {0} IS NULL)"


def quoted(field: str) -> str:
    """A field as the language has it: every key in double quotes, dots between them."""
    return ".".join(f'"{key}"' for key in field.split("."))


def literal(value: Any) -> str:
    """A string, number or boolean as the language has it."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def among(field: str, values: Iterable[Any]) -> str:
    """The field is one of these values; a None among them stands for a field that is missing."""
    given = list(values)
    known = ", ".join(literal(value) for value in given if value is not None)
    parts = [f"{quoted(field)} IN ({known})"] if known else []
    parts += [f"{quoted(field)} IS NULL"] if None in given else []
    return joined("OR", parts) if parts else NOTHING.format(quoted(field))


def ordered(field: str, sign: str, value: Any) -> str:
    """The field is below or above the value; nothing is below or above None."""
    return NOTHING.format(quoted(field)) if value is None else f"{quoted(field)} {sign} {literal(value)}"


def negated(condition: str) -> str:
    """Not this; unlike `!=`, also where the field is missing."""
    return f"NOT ({condition})"


def joined(word: str, conditions: Sequence[str]) -> str:
    """All (AND) or any (OR) of these."""
    return "(" + f" {word} ".join(conditions) + ")"
