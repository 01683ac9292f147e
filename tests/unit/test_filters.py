"""The filter language: against Python's own reading of the same metadata, and what it refuses."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adawidth.errors import OptionError
from adawidth.filters import parse

METADATA = [
    {"lang": "en", "year": 2020, "open": True, "score": 0.5, "in": {"part": 1}, "it's": "o'clock"},
    {"lang": "de", "year": 2021, "open": False, "score": 1, "in": {"part": "1"}},
    {"lang": None, "year": "2020", "open": 1, "in": 7},
    {"lang": "en'; DROP TABLE documents; --", "year": -3, "open": "true", "two words": 2},
    {},
    {"lang": "EN", "year": 2019.5, "in": {"part": None}, "lang.x": 1},
]


def chosen(text: str) -> list[int]:
    """Which of the entries meet a filter, by SQLite."""
    condition, values = parse(text)
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE documents (number INTEGER PRIMARY KEY, metadata TEXT)")
    db.executemany("INSERT INTO documents VALUES (?, ?)", [(i, json.dumps(entry)) for i, entry in enumerate(METADATA)])
    return [number for (number,) in db.execute(f"SELECT number FROM documents WHERE {condition} ORDER BY number", values)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lang = 'en'", [0]),
        ("lang != 'en'", [1, 3, 5]),
        ("NOT lang = 'en'", [1, 2, 3, 4, 5]),
        ("lang <> 'en' and year > 0", [1, 5]),
        ("year >= 2020", [0, 1]),
        ("year = '2020'", [2]),
        ("year < 2020 AND year > -5", [3, 5]),
        ("year=-3 OR year=2.02e3", [0, 3]),
        ("open = true", [0]),
        ("open = 1", [2]),
        ("open != true", [1, 2, 3]),
        ("open IN (true, 'true')", [0, 3]),
        ("lang IN ('de', 'EN')", [1, 5]),
        ("lang NOT IN ('de', 'EN')", [0, 2, 3, 4]),
        ("lang IS NULL", [2, 4]),
        ("lang IS NOT NULL", [0, 1, 3, 5]),
        ("in.part = 1", [0]),
        ("in.part IS NOT NULL", [0, 1]),
        ('"two words" = 2', [3]),
        ('"it\'s" = \'o\'\'clock\'', [0]),
        ('"lang.x" = 1', [5]),
        ("lang = 'en' OR lang = 'de' AND year = 2020", [0]),
        ("(lang = 'en' OR lang = 'de') AND NOT (year = 2020)", [1]),
        ("NOT NOT lang = 'en'", [0]),
        ("lang > 'de'", [0, 3]),
        ("score <= 1", [0, 1]),
        ("lang = 'en''; DROP TABLE documents; --'", [3]),
    ],
)
def test_what_it_chooses(text: str, expected: list[int]) -> None:
    assert chosen(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a field at character 1, found its end"),
        ("lang =", "expected a number, a 'string', true or false at character 7, found its end"),
        ("lang = en", "expected a number, a 'string', true or false at character 8, found en"),
        ("lang == 'en'", "expected a number, a 'string', true or false at character 7, found ="),
        ("lang = 'en' year = 3", "expected the end, AND or OR at character 13, found year"),
        ("(lang = 'en'", "expected ) at character 13, found its end"),
        ("lang LIKE 'e%'", "expected =, !=, <, <=, >, >=, IN or IS at character 6, found LIKE"),
        ("lang = 'en", "can't be read from character 8 on: \"'en\""),
        ("lang = 'en'; DROP TABLE documents", "can't be read from character 12 on"),
        ("open < true", "not a boolean"),
        ("lang IN ()", "expected a number, a 'string', true or false at character 10, found )"),
        ("lang IS 'en'", "expected NULL at character 9"),
        ("year = 20x", "can't be read from character 8 on"),
        ("(" * 60 + "a = 1" + ")" * 60, "nested more than 50 deep"),
        ("NOT " * 60 + "a = 1", "nested more than 50 deep"),
        ("a IN (" + ", ".join("1" * 1 for _ in range(5_000)) + ")", "the filter has 15000 values, at most 10000"),
        ("lang = '\udcff'", "no UTF-8"),
    ],
)
def test_what_it_refuses(text: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse(text)
    assert message in str(caught.value)


TRUTHS: dict[str, Callable[[object, object], bool]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,  # type: ignore[operator]
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
}


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["lang", "year"]),
    st.sampled_from(sorted(TRUTHS)),
    st.one_of(st.integers(-5, 2025), st.text(st.characters(exclude_categories=("Cs",)), max_size=6)),
)
def test_comparisons_are_pythons(field: str, sign: str, value: int | str) -> None:
    quoted = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
    kinds = (str,) if isinstance(value, str) else (int, float)
    expected = [
        i
        for i, entry in enumerate(METADATA)
        if isinstance(entry.get(field), kinds) and not isinstance(entry[field], bool) and TRUTHS[sign](entry[field], value)
    ]
    assert chosen(f"{field} {sign} {quoted}") == expected


def test_nothing_of_the_text_reaches_sql() -> None:
    condition, values = parse("\"a'b\" = 'x'' OR 1=1 --' AND wörld IN (1, 2)")
    assert not any(part in condition for part in ("a'b", "x'", "--", "wörld", "1=1"))
    assert condition.count("?") == len(values)


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=40))
def test_any_text_is_a_filter_or_refused(text: str) -> None:
    with suppress(OptionError):
        assert all(0 <= number < len(METADATA) for number in chosen(text))


def test_values_keep_their_kind() -> None:
    assert [type(value) for value in parse("a IN (1, 1.0, '1', 99999999999999999999)")[1][2::3]] == [int, float, str, float]
    assert np.isinf(parse(f"a = {'9' * 5000}")[1][2])
