"""Filters for Milvus. Its own JSON conditions differ between versions where a field is missing, null or of another kind, and
milvus-lite has neither NOT nor string escapes. So each document carries its metadata once more, flat, as `facets`:

    {"lang": "de", "inner": {"score": 3}}  ->  {"k:lang": "s", "v:lang": "6465", "k:inner": "o", "k:inner:score": "n", "v:inner:score": 3}

`k:` is the kind of a field's value, `v:` the value; strings are the hex digits of their UTF-8 bytes, which sort as the strings do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from ..data import Document
from ..errors import DataError
from ..filters.conditions import LARGEST, SMALLEST, Among, Field, Filter, Joined, Missing, Not, Order

MOST = 65_535  # bytes of JSON in a field
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
KINDS = '["b", "n", "o", "s"]'  # boolean, number, string, and others, which no comparison meets


def facets(document: Document) -> dict[str, Any]:
    """A document's metadata as filters see them."""
    found: dict[str, Any] = {}
    for field, value in _fields(document.metadata, ()):
        if isinstance(value, int) and not SMALLEST <= value <= LARGEST:
            name, bits = ".".join(field), value.bit_length()
            raise DataError(f"document {document.id!r}: {name} is an integer of {bits} bits, Milvus takes 63 and a sign: give a float")
        kind, kept = _kind(value)
        found[f"k:{_name(field)}"] = kind
        if kind != "o":
            found[f"v:{_name(field)}"] = kept
    size = sum(len(name) + len(str(value)) + 6 for name, value in found.items())
    if size > MOST:
        raise DataError(f"document {document.id!r}: its metadata take {size} bytes for filters, Milvus takes {MOST}: cut them")
    return found


def expression(condition: Filter, *, exists: bool) -> str:
    """A filter as Milvus reads it; the same documents meet it as in memory. `exists` where the server has that word."""

    def kind_of(field: Field) -> str:
        return f'facets["k:{_name(field)}"]'

    def value_of(field: Field) -> str:
        return f'facets["v:{_name(field)}"]'

    def unless(place: str, positive: str) -> str:
        return f"((not (exists {place})) or ({positive}))" if exists else positive

    def text_of(one: Filter, wanted: bool) -> str:
        match one:
            case Joined(parts, word):
                joint = " and " if (word == "AND") == wanted else " or "
                return "(" + joint.join(text_of(part, wanted) for part in parts) + ")" if parts else _always(wanted)
            case Not(part):
                return text_of(part, not wanted)
            case Missing(field):
                kind = kind_of(field)
                return unless(kind, f"{kind} not in {KINDS}") if wanted else f"{kind} in {KINDS}"
            case Among(field, texts, numbers, truths):
                value = value_of(field)
                lists = [
                    [f'"{_hex(text)}"' for text in texts],
                    [str(number) for number in numbers if isinstance(number, int)],
                    [repr(number) for number in numbers if not isinstance(number, int)],
                    [str(truth).lower() for truth in truths],
                ]
                given = [f"[{', '.join(values)}]" for values in lists if values]
                if not given:
                    return _always(not wanted)
                if wanted:
                    return "(" + " or ".join(f"{value} in {values}" for values in given) + ")"
                return unless(value, "(" + " and ".join(f"{value} not in {values}" for values in given) + ")")
            case Order(field, sign, value):
                bound, kind = (f'"{_hex(value)}"', "s") if isinstance(value, str) else (repr(value), "n")
                if wanted:
                    return f"{value_of(field)} {sign} {bound}"
                return unless(kind_of(field), f'({kind_of(field)} != "{kind}" or {value_of(field)} {OPPOSITE[sign]} {bound})')
        raise AssertionError(one)

    return text_of(condition, True)


def _always(wanted: bool) -> str:
    return 'id != ""' if wanted else 'id == ""'


def _fields(metadata: Mapping[str, Any], above: Field) -> Iterator[tuple[Field, Any]]:
    """Every field that is not null, inner ones too."""
    for key, value in metadata.items():
        field = (*above, key)
        if value is not None:
            yield field, value
        if isinstance(value, Mapping):
            yield from _fields(value, field)


def _kind(value: Any) -> tuple[str, Any]:
    match value:
        case bool():
            return "b", value
        case str() if "\0" not in value:
            return "s", _hex(value)
        case int() | float():
            return "n", value
    return "o", None


def _name(field: Field) -> str:
    return ":".join(quote(str(key), safe="").replace("~", "%7E") for key in field)


def _hex(text: str) -> str:
    return text.encode().hex()
