"""Filters on metadata, as a text or as a dictionary:

    lang = 'en' AND (year >= 2020 OR NOT source.kind IN ('blog', 'forum')) AND retracted IS NULL
    {"lang": "en", "year": {">=": 2020}, "part": ["a", "b"], "retracted": None}       (all of it must hold)

A field is a key of the metadata. Inner keys follow dots; a key that is no plain word stands in double quotes. Only values of one kind
are compared: a field of another kind meets no comparison but `!=`, and a field that is missing or null meets none at all.
A string with a NUL character is of no kind, because SQLite cuts it there.
"""

from .conditions import Filter
from .language import parse

__all__ = ["Filter", "parse"]
