"""Filters over metadata of every kind: each engine finds the documents that meet them in memory, or says that it can't."""

from __future__ import annotations

from typing import Any

import pytest

from adawidth.data import Vectors
from adawidth.errors import OptionError
from adawidth.filters import parse
from adawidth.formats.documents import of_vectors
from adawidth.model.collections import connect, layout_of, push
from engine_places import START, WIDTH, Corpus, Place

pytestmark = pytest.mark.engines
UNORDERED = ("qdrant", "qdrant-edge", "lancedb")  # have no order of strings
METADATA: list[dict[str, Any]] = [
    {},
    {"a": None},
    {"a": 1},
    {"a": 1.0},
    {"a": 1.5},
    {"a": -3},
    {"a": "1"},
    {"a": True},
    {"a": "true"},
    {"a": "it's"},
    {"a": 'a "quoted" one'},
    {"a": "back\\slash\nline"},
    {"a": "ünï 😀"},
    {"a": ""},
    {"a": "null"},
    {"a": [1, "it's"]},
    {"a": []},
    {"a": {"b": 1}},
    {"a": {"b": {"c": "deep"}}},
    {"a": [{"b": 1}]},
    {"a": {"b": None}},
    {"a.b": 1},
    {"a b": {"c]": 2}},
    {"it's": 1, "back\\slash": 2},
    {"a": 2**53 + 1},
    {"a": 1e20},
]
FILTERS: list[Any] = [
    "a = 1",
    "a != 1",
    "a = 1.5",
    "a = '1'",
    "a = true",
    "a IN (1, '1', false)",
    "a = 'it''s'",
    {"a": 'a "quoted" one'},
    {"a": "back\\slash\nline"},
    "a = 'ünï 😀'",
    "a = ''",
    "a = 'null'",
    "a IS NULL",
    "a IS NOT NULL",
    "a.b = 1",
    "a.b IS NULL",
    "a.b.c = 'deep'",
    '"a.b" = 1',
    '"a b"."c]" >= 2',
    '"it\'s" = 1',
    {"back\\slash": 2},
    "a > 0",
    "a >= 1",
    "a < 1.5",
    "a <= -2.5",
    "a > -3.5",
    "a < 1e19",
    f"a = {2**53 + 1}",
    f"a = {2**53}",
    "NOT (a > 0 OR a IS NULL)",
    "a > 0 AND NOT a = 1",
    {"a": []},
    {},
]


@pytest.fixture(scope="module")
def met() -> dict[str, set[str]]:
    return {str(one): {f"m{place}" for place, known in enumerate(METADATA) if parse(one).matches(known)} for one in FILTERS}


def test_every_filter_means_what_it_means_in_memory(engine_place: Place, corpus: Corpus, met: dict[str, set[str]]) -> None:
    assert engine_place.url is not None
    vectors = Vectors.of(corpus.documents[: len(METADATA)], [f"m{place}" for place in range(len(METADATA))])
    layout = layout_of(corpus.model, widths=(START, WIDTH))
    push(corpus.model, of_vectors(vectors, metadata=METADATA), engine_place.url, engine_place.collection, layout=layout)
    index = connect(engine_place.url, engine_place.collection)
    found = {str(one): set(index.search(corpus.queries[0], k=len(METADATA), where=one).ids[0]) for one in FILTERS}
    assert found == met
    assert [index.get(f"m{place}").metadata for place in range(len(METADATA))] == METADATA


def test_strings_are_ordered_or_refused(engine_place: Place, corpus: Corpus) -> None:
    index = engine_place.made(corpus, slice(0, 60))
    if engine_place.name in UNORDERED:
        with pytest.raises(OptionError, match="can't order strings"):
            index.search(corpus.queries[0], where="lang >= 'en'")
    else:
        found = set(index.search(corpus.queries[0], k=60, where="lang >= 'en'").ids[0])
        assert found == {corpus.ids[row] for row in range(60) if corpus.metadata[row].get("lang", "") >= "en"}
