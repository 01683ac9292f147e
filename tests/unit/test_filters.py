"""The filter language: against Python's own reading of the same metadata, and what it refuses."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adawidth.errors import OptionError
from adawidth.filters import parse
from adawidth.index.columns import Columns

METADATA: list[dict[str, Any]] = [
    {"lang": "en", "year": 2020, "open": True, "score": 0.5, "in": {"part": 1}, "it's": "o'clock"},
    {"lang": "de", "year": 2021, "open": False, "score": 1, "in": {"part": "1"}},
    {"lang": None, "year": "2020", "open": 1, "in": 7},
    {"lang": "en'; DROP TABLE documents; --", "year": -3, "open": "true", "two words": 2},
    {},
    {"lang": "EN", "year": 2019.5, "in": {"part": None}, "lang.x": 1},
]


class Table:
    """A table of documents in memory."""

    def __init__(self, entries: Sequence[dict[str, Any]]) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("CREATE TABLE documents (number INTEGER PRIMARY KEY, metadata TEXT)")
        self.db.executemany(
            "INSERT INTO documents VALUES (?, ?)", [(i, json.dumps(entry, ensure_ascii=False)) for i, entry in enumerate(entries)]
        )

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self.db.execute(statement, values).fetchall()

    def matching(self, condition: str, values: Sequence[Any]) -> np.ndarray:
        return np.array([number for (number,) in self.query(f"SELECT number FROM documents WHERE {condition} ORDER BY number", values)])


def by_sqlite(wanted: str | dict[str, Any], entries: Sequence[dict[str, Any]]) -> list[int]:
    """Which of the entries meet a filter, by SQLite."""
    table = Table(entries)
    with closing(table.db):
        return table.matching(*parse(wanted).sql()).tolist()


def by_columns(wanted: str | dict[str, Any], entries: Sequence[dict[str, Any]]) -> list[int]:
    """Which of the entries meet a filter, by the values of its fields."""
    table = Table(entries)
    with closing(table.db):
        return Columns(table).matching(parse(wanted)).tolist()  # type: ignore[arg-type]


def chosen(wanted: str | dict[str, Any], entries: Sequence[Any] = METADATA) -> list[int]:
    """Which of the entries meet a filter, by SQLite, by columns and by Python."""
    found = by_sqlite(wanted, entries)
    assert by_columns(wanted, entries) == found
    asked = parse(wanted)
    assert [i for i, entry in enumerate(entries) if asked.matches(entry)] == found
    return found


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
        ("\"it's\" = 'o''clock'", [0]),
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
        ("(" * 60 + "a = 1" + ")" * 60, "nested more than 20 deep"),
        ("NOT " * 60 + "a = 1", "nested more than 20 deep"),
        ("a IN (" + ", ".join("1" for _ in range(10_001)) + ")", "the filter has 10001 values, at most 10000 are taken"),
        (" OR ".join(["a = 1"] * 501), "the filter has 501 comparisons, at most 500 are taken"),
        ("a = '" + "x" * 50_000_000 + "'", "the filter is 50000006 characters long, at most 100000 are taken"),
        ("a = 9223372036854775808", "an integer of more than 64 bits"),
        ("a < " + "9" * 5_000, "an integer of more than 64 bits"),
        ("a = 1e999", "not finite"),
        ("a = 'b\0c'", "has a NUL character"),
        (".".join("a" * 21) + " = 1", "a field of 21 keys, at most 20 are taken"),
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
    st.one_of(st.integers(-5, 2025), st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=6)),
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
    condition, values = parse("\"a'b\" = 'x'' OR 1=1 --' AND wörld IN (1, 2)").sql()
    assert not any(part in condition for part in ("a'b", "x'", "--", "wörld", "1=1"))
    assert condition.count("?") == len(values)


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=40))
def test_any_text_is_a_filter_or_refused(text: str) -> None:
    with suppress(OptionError):
        assert all(0 <= number < len(METADATA) for number in chosen(text))


def test_large_integers_compare_as_what_they_are() -> None:
    large = [{"n": 10**18 + i} for i in range(3)] + [{"n": 2**63 - 1}, {"n": -(2**63)}, {"n": 2**70}, {"n": 10**400}]
    assert chosen(f"n = {10**18 + 1}", large) == [1]
    assert chosen(f"n > {10**18}", large) == [1, 2, 3, 5, 6]
    assert chosen(f"n IN ({2**63 - 1}, {-(2**63)})", large) == [3, 4]
    assert chosen(f"n = {float(2**70)!r}", large) == [5]


def test_many_values_and_many_comparisons() -> None:
    entries = [{"n": i, "s": str(i)} for i in range(2_000)]
    assert chosen(f"n IN ({', '.join(map(str, range(1_100)))})", entries) == list(range(1_100))
    assert chosen({"s": [str(i) for i in range(1_900)]}, entries) == list(range(1_900))
    assert chosen(" OR ".join(f"n = {i}" for i in range(500)), entries) == list(range(500))
    assert chosen("n > 0 AND (n >= 0 OR " * 19 + "n < 9" + ")" * 19, entries) == list(range(1, 2_000))
    assert chosen("NOT (n < 5 OR " * 10 + "n < 9" + ")" * 10, entries) == [5, 6, 7, 8]


@pytest.mark.parametrize("key", ["a\\b", "a\nb", "\t", "it's", "two words", "a.b", "ü\x7f", "$", "#-1", "[0]", "\x01", "\\n", "0"])
def test_any_key_can_be_asked_for(key: str) -> None:
    entries: list[dict[str, Any]] = [{key: "here"}, {"a": {key: "here"}}, {}, {key + "x": "here"}]
    assert chosen(f"\"{key}\" = 'here'", entries) == [0]
    assert chosen({f'a."{key}"': "here"}, entries) == [1]


@pytest.mark.parametrize("key", ['a"b', '"', "", 'a."b'])
def test_a_key_that_sqlite_can_not_ask_for_is_refused(key: str) -> None:
    with pytest.raises(OptionError, match="no key is empty or has a double quote"):
        parse({key: 1})


def test_a_string_with_nul_is_not_its_beginning() -> None:
    entries = [{"s": "a"}, {"s": "a\0b"}, {"s": "a\\u0000b", "t": "a\0"}, {"s": "\\\0"}, {"t": "a\0", "s": "a"}]
    assert chosen("s = 'a'", entries) == [0, 4]
    assert chosen("s >= 'a'", entries) == [0, 2, 4]
    assert chosen("s != 'a'", entries) == [1, 2, 3]
    assert chosen("s = 'a\\u0000b'", entries) == [2]


def test_a_dictionary_is_all_of_its_entries() -> None:
    assert chosen({}) == list(range(len(METADATA)))
    assert (
        chosen({"lang": "en", "year": {">=": 2000, "<": 2021}, "open": True})
        == chosen("lang = 'en' AND year >= 2000 AND year < 2021 AND open = true")
        == [0]
    )
    assert chosen({"lang": ["de", "EN"]}) == [1, 5]
    assert chosen({"lang": []}) == []
    assert chosen({"lang": None}) == [2, 4]
    assert chosen({"lang": {"!=": None}}) == [0, 1, 3, 5]
    assert chosen({"in.part": 1}) == [0]
    assert chosen({"two words": 2}) == [3]
    assert chosen({"open": 1}) == [2]
    assert parse({"a": 1}) != parse({"a": True})
    assert parse("a = 1 AND b.c IN ('x')").fields() == parse({"a": 1, "b.c": ["x"]}).fields() == {("a",), ("b", "c")}


@pytest.mark.parametrize(
    "wanted",
    [{"a": {"~": 1}}, {"a": {">": True}}, {"a": {">": None}}, {"a": float("nan")}, {"a": 2**64}, {"a": b"x"}, {1: 1}, {"a": [[1]]}, 7],
)
def test_dictionaries_that_are_refused(wanted: Any) -> None:
    with pytest.raises(OptionError, match="filter"):
        parse(wanted)


NAMES = st.sampled_from(["a", "b", "a.b", "\\", "\n"])
TEXTS = st.text(st.sampled_from("ab'\\u0\0\n\"é\U0001f600"), max_size=4)
NUMBERS = st.one_of(
    st.integers(-3, 3), st.integers(-(2**66), 2**66), st.floats(-4, 4, width=16), st.sampled_from([0.1, 1e17, 2.0**63, -0.0])
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
TREES = st.recursive(SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=3)), max_leaves=5)
VALUES = st.one_of(st.booleans(), NUMBERS, TEXTS)


@st.composite
def filters(draw: st.DrawFn, depth: int = 3) -> str:
    if depth and draw(st.booleans()):
        one, other = draw(filters(depth - 1)), draw(filters(depth - 1))
        return draw(st.sampled_from([f"NOT ({one})", f"({one} AND {other})", f"({one} OR {other})"]))
    field = ".".join(f'"{name}"' for name in draw(st.lists(NAMES, min_size=1, max_size=2)))
    written = [
        str(v).lower() if isinstance(v, bool) else "'" + v.replace("'", "''") + "'" if isinstance(v, str) else repr(v)
        for v in draw(st.lists(VALUES, min_size=1, max_size=3))
    ]
    sign = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "IN", "NOT IN", "IS NULL", "IS NOT NULL"]))
    return f"{field} {sign}" + {"I": "", "N": ""}.get(
        sign[0] if "NULL" in sign else "", f" ({', '.join(written)})" if "IN" in sign else f" {written[0]}"
    )


@settings(deadline=None, max_examples=400)
@given(filters(), st.lists(st.dictionaries(NAMES, TREES, max_size=3), max_size=5))
def test_sqlite_and_python_answer_alike(text: str, entries: list[dict[str, Any]]) -> None:
    with suppress(OptionError):
        chosen(text, entries)


def test_a_field_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And left to SQLite where it has too many values."""
    entries = [{"year": 2000 + i % 30, "lang": "en" if i % 2 else "de"} for i in range(200)]
    table = Table(entries)
    read: list[Any] = []
    query = table.query
    monkeypatch.setattr(table, "query", lambda statement, values=(): read.append(values) or query(statement, values))
    columns = Columns(table)  # type: ignore[arg-type]
    for year in range(2000, 2030):
        wanted = parse(f"year >= {year} AND lang = 'en'")
        assert columns.matching(wanted).tolist() == [i for i, entry in enumerate(entries) if wanted.matches(entry)]
    assert sorted(read) == [['$."lang"'], ['$."year"']]
    monkeypatch.setattr("adawidth.index.columns.VALUES", 29)
    fresh = Columns(table)  # type: ignore[arg-type]
    for year in (2005, 2011):
        wanted = parse(f"year = {year} OR lang = 'de'")
        assert fresh.matching(wanted).tolist() == [i for i, entry in enumerate(entries) if wanted.matches(entry)]
    assert len(read) == 2 + 2 + 2  # both fields again, and each filter by SQLite
    table.db.close()


def test_few_fields_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adawidth.index.columns.FIELDS", 2)
    table = Table([{"a": 1, "b": 2, "c": 3}] * 3)
    columns = Columns(table)  # type: ignore[arg-type]
    for text in ("a = 1 AND b = 2 AND c = 3", "c = 3 AND a = 1", "b = 2"):
        assert columns.matching(parse(text)).tolist() == [0, 1, 2]
    assert len(columns._columns) == 2
    table.db.close()
