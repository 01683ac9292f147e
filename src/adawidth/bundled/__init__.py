"""Real vectors that come with the package: docstrings of Python's standard library and of NumPy, with their first sentences as queries.
Only vectors, ids and labels are stored; texts are looked up in the running Python. tools/make_bundled.py generates the data."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from adawidth.bundled.text import docstring_of, document_text, query_text, resolve

ENCODER = "minilm"
QUERY_PREFIX = "q:"

__all__ = ["ENCODER", "path", "query_text_of", "text_of"]


def path() -> Path:
    """The dataset folder, in the layout that `load_dataset` reads; its only encoder is "minilm".

    >>> path().name
    'docstrings'
    """
    return Path(__file__).parent / "docstrings"


def text_of(document_id: str) -> str | None:
    """The text of a bundled document, or None if this Python or NumPy has no such object. Never raises.

    >>> text_of("statistics.median").splitlines()[0]
    'statistics.median'
    """
    docstring = _docstring(document_id)
    return document_text(document_id, docstring) if docstring else None


def query_text_of(query_id: str) -> str | None:
    """The text of a bundled query, or None if this Python or NumPy has no such object. Never raises.

    >>> query_text_of("q:statistics.median")
    'Return the median (middle value) of numeric data.'
    """
    if not isinstance(query_id, str) or not query_id.startswith(QUERY_PREFIX):
        return None
    return query_text(_docstring(query_id.removeprefix(QUERY_PREFIX))) or None


def _docstring(name: str) -> str:
    """The cleaned docstring; empty for names that are not bundled, so that no caller can have anything else imported."""
    if not isinstance(name, str) or name not in _document_ids():
        return ""
    try:
        return docstring_of(resolve(name))
    except Exception:  # an import may fail in any way on a Python built without some library
        return ""


@cache
def _document_ids() -> frozenset[str]:
    ids = path() / "embeddings" / ENCODER / "corpus.ids"
    return frozenset(ids.read_text(encoding="utf-8").splitlines()) if ids.is_file() else frozenset()
