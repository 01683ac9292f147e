"""Haystack's filters in AdaWidth's language. Dates are compared as text: keep them in one form (2024-05-01T12:00:00)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ..errors import OptionalDependencyError
from . import conditions

try:
    from haystack.errors import FilterError
except ModuleNotFoundError:
    raise OptionalDependencyError("haystack-ai", "haystack") from None

ORDERS = (">", ">=", "<", "<=")
OWN_FIELDS = ("id", "content", "blob", "score", "embedding", "sparse_embedding")


def where_of(filters: dict[str, Any]) -> str:
    """The filter for `index.search`; malformed ones are refused as Haystack does."""
    if "field" in filters:
        return _comparison(filters)
    for key in ("operator", "conditions"):
        if key not in filters:
            raise FilterError(f"'{key}' key missing in {filters}")
    parts = [where_of(part) for part in filters["conditions"]]
    word = filters["operator"]
    if word not in ("AND", "OR", "NOT") or not parts:
        raise FilterError(f"{filters}: expected the operator AND, OR or NOT, and at least one condition")
    whole = conditions.joined("OR" if word == "OR" else "AND", parts)
    return conditions.negated(whole) if word == "NOT" else whole


def _comparison(condition: dict[str, Any]) -> str:
    for key in ("operator", "value"):
        if key not in condition:
            raise FilterError(f"'{key}' key missing in {condition}")
    field, sign, value = condition["field"].removeprefix("meta."), condition["operator"], condition["value"]
    if condition["field"] in OWN_FIELDS:
        raise FilterError(f"a search filters by metadata, not by {field!r}: put it into the document's meta")
    if sign in ORDERS:
        _check_order(field, sign, value)
        return conditions.ordered(field, sign, value)
    if sign in ("==", "!="):
        met = conditions.among(field, [value])
    elif sign in ("in", "not in"):
        if not isinstance(value, list):
            raise FilterError(f"{field} {sign} {value!r}: expected a list")
        met = conditions.among(field, value)
    else:
        raise FilterError(f"unknown operator {sign!r}: use ==, !=, >, >=, <, <=, in or not in")
    return conditions.negated(met) if sign in ("!=", "not in") else met


def _check_order(field: str, sign: str, value: Any) -> None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise FilterError(f"{field} {sign} {value!r}: expected a number or an ISO date") from None
