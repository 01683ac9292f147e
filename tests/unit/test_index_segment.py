"""Segment files: what was written comes back, and nothing in a file or its entry is believed without a check."""

import json
import os
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adawidth.errors import ArtifactError
from adawidth.index.store.manifest import IndexSettings
from adawidth.index.store.segment import CHECKED, Entry, Place, Segment
from adawidth.index.store.segment_writer import SegmentWriter, inverse_norms

ROWS = np.random.default_rng(0).standard_normal((200, 40)).astype(np.float16)
IDS = [f"é{i}" for i in range(200)]
LADDER = (8, 24, 40)
SETTINGS = IndexSettings("0" * 64, 40, 40, 8, 8, "flat", LADDER, {"config.json": 0})


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    with SegmentWriter(tmp_path, SETTINGS) as writer:
        for start in (0, 70, 71):
            end = {0: 70, 70: 71, 71: 200}[start]
            writer.append(ROWS[start:end], np.arange(start, end) * 3 + 5, IDS[start:end])
        return writer.finish("flat", seed=0)


def test_round_trip(tmp_path: Path, entry: Entry) -> None:
    again = Entry.of(json.loads(json.dumps(entry.to_json())))
    assert again == entry
    segment = Segment(tmp_path, again)
    segment.check()
    np.testing.assert_array_equal(segment.rows, ROWS)
    np.testing.assert_array_equal(segment.numbers, np.arange(200) * 3 + 5)
    assert [segment.id_of(row) for row in range(200)] == segment.ids() == IDS
    assert (entry.rows, entry.first, entry.last) == (200, 5, 602)
    assert [IDS[row] for row in np.argsort(segment.arrays["places"])] == sorted(IDS, reverse=True)
    for column, width in enumerate(LADDER):
        lengths = np.linalg.norm(ROWS[:, :width].astype(np.float64), axis=1)
        np.testing.assert_allclose(segment.inverse[:, column], 1 / lengths, rtol=1e-6)
    np.testing.assert_allclose(segment.total, ROWS.astype(np.float64).sum(axis=0), rtol=1e-6)


def test_codes_find_what_is_near(tmp_path: Path, entry: Entry) -> None:
    segment = Segment(tmp_path, entry)
    prefix = ROWS[:5, :8].astype(np.float32)
    found = segment.codes.search(prefix / np.linalg.norm(prefix, axis=1, keepdims=True), 10, None)
    assert all(row in found[row] for row in range(5))


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="storage"), SegmentWriter(tmp_path, SETTINGS) as writer:
        failing(writer)
    assert os.listdir(tmp_path) == []


def test_it_can_be_read_when_the_file_is_gone(tmp_path: Path, entry: Entry) -> None:
    segment = Segment(tmp_path, entry)
    (tmp_path / entry.name).unlink()
    segment.check()
    np.testing.assert_array_equal(segment.rows, ROWS)


@pytest.mark.parametrize("name", ["inverse", "numbers", "names", "places", "total"])
def test_a_flipped_bit_in_an_array_is_found_at_opening(tmp_path: Path, entry: Entry, name: str) -> None:
    flip(tmp_path / entry.name, entry.arrays[name].offset + 3)
    with pytest.raises(ArtifactError, match=rf"{entry.name}: damaged: the array '{name}' does not have its checksum; .*adawidth repair"):
        Segment(tmp_path, entry)


def test_a_flipped_bit_in_a_row_is_found_when_it_is_read(tmp_path: Path, entry: Entry) -> None:
    flip(tmp_path / entry.name, entry.arrays["rows"].offset + 2 * 40 * 130 + 7)
    segment = Segment(tmp_path, entry)
    segment.check(np.arange(16 * CHECKED))
    for rows in (np.array([130]), np.array([0, 135]), None):
        with pytest.raises(ArtifactError, match="rows 128 to 135 do not have their checksum"):
            segment.check(rows)
    expected = np.ones(200, np.bool_)
    expected[128:136] = False
    np.testing.assert_array_equal(Segment(tmp_path, entry, rows_only=True).sound(), expected)


@pytest.mark.parametrize("size", [0, 10, 64, 5000])
def test_a_truncated_file_is_found(tmp_path: Path, entry: Entry, size: int) -> None:
    os.truncate(tmp_path / entry.name, size)
    with pytest.raises(ArtifactError, match=rf"expected {entry.size} bytes, found {size}"):
        Segment(tmp_path, entry)
    sound = Segment(tmp_path, entry, rows_only=True).sound()
    np.testing.assert_array_equal(sound, np.arange(200) < (size - 64) // (2 * 40) // CHECKED * CHECKED)


def test_what_can_be_saved_of_a_truncated_file(tmp_path: Path, entry: Entry) -> None:
    os.truncate(tmp_path / entry.name, entry.arrays["inverse"].offset + 1)
    segment = Segment(tmp_path, entry, rows_only=True)
    assert segment.sound().all()
    np.testing.assert_array_equal(segment.some(np.array([3, 150])), ROWS[[3, 150]])


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "../outside.segment"},
        {"name": "/etc/passwd"},
        {"name": "0" * 32},
        {"rows": -1},
        {"rows": 1.5},
        {"size": True},
        {"extra": 1},
        {"checks": "00000000"},
        {"checks": "no"},
        {"checks": 7},
        {"checked": 0},
        {"checked": 64},
        {"checked": "8"},
        {"checked": 200, "checks": "00000000"},
        {"arrays": {"rows": {"kind": "|O8", "shape": [1], "offset": 64, "checksum": 0}}},
        {"arrays": {"rows": {"kind": "<f2", "shape": [1], "offset": 63, "checksum": 0}}},
        {"arrays": {"rows": {"kind": "<f2", "shape": [10**12, 10**12], "offset": 64, "checksum": 0}}},
        {"arrays": {"rows": {"kind": "<f2", "shape": [-1], "offset": 64, "checksum": 0}}},
        {"arrays": {"rows": {"kind": "<f2", "shape": "ab", "offset": 64, "checksum": 0}}},
    ],
)
def test_an_entry_that_could_lead_astray_is_refused(entry: Entry, changes: dict) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        Entry.of({**entry.to_json(), **changes})


def test_a_crafted_entry_with_right_checksums_is_refused(tmp_path: Path, entry: Entry) -> None:
    places, inverse = entry.arrays["places"], entry.arrays["inverse"]
    for name, place in (("places", replace(places, shape=(100, 2))), ("inverse", replace(inverse, kind="<i4"))):
        with pytest.raises(ArtifactError, match=f"expected '{name}'"):
            Segment(tmp_path, replace(entry, arrays={**entry.arrays, name: place}))
    with pytest.raises(ArtifactError, match=r"expected 'rows' as <f2 in 2 dimensions, found nothing"):
        Segment(tmp_path, replace(entry, arrays={name: place for name, place in entry.arrays.items() if name != "rows"}))


@pytest.mark.parametrize("numbers", [[-1], [200], [2**31 - 1], [7, 7]])
def test_places_that_are_no_order_are_refused(tmp_path: Path, entry: Entry, numbers: list[int]) -> None:
    place = entry.arrays["places"]
    with (tmp_path / entry.name).open("r+b") as file:
        file.seek(place.offset)
        places = np.frombuffer(file.read(place.size), place.kind).copy()
        places[: len(numbers)] = numbers
        file.seek(place.offset)
        file.write(places.tobytes())
    arrays = {**entry.arrays, "places": replace(place, checksum=zlib.crc32(places.tobytes()))}
    with pytest.raises(ArtifactError, match="the places of the ids are not an order"):
        Segment(tmp_path, replace(entry, arrays=arrays))


@pytest.mark.parametrize("number", [np.nan, np.inf, 0.0, -1.0, 1e-30, 1e30])
def test_lengths_that_are_none_are_refused(tmp_path: Path, entry: Entry, number: float) -> None:
    place = entry.arrays["inverse"]
    data = bytearray((tmp_path / entry.name).read_bytes())
    data[place.offset + 8 : place.offset + 12] = np.float32(number).tobytes()
    (tmp_path / entry.name).write_bytes(data)
    arrays = {**entry.arrays, "inverse": replace(place, checksum=zlib.crc32(data[place.offset : place.offset + place.size]))}
    with pytest.raises(ArtifactError, match="the lengths of rows are none"):
        Segment(tmp_path, replace(entry, arrays=arrays))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_rows_that_are_no_numbers_are_refused_when_they_are_read(tmp_path: Path, entry: Entry, number: float) -> None:
    rows = ROWS.copy()
    rows[130, 7] = number
    data = bytearray((tmp_path / entry.name).read_bytes())
    offset = entry.arrays["rows"].offset
    data[offset : offset + rows.nbytes] = rows.tobytes()
    (tmp_path / entry.name).write_bytes(data)
    checks = np.array([zlib.crc32(rows[start : start + CHECKED].tobytes()) for start in range(0, 200, CHECKED)], "<u4")
    segment = Segment(tmp_path, replace(entry, checks=checks.tobytes().hex()))
    segment.check(np.array([0, 127]))
    with pytest.raises(ArtifactError, match="damaged: rows 128 to 135 have NaN or infinite values"):
        segment.check(np.array([135]))


@pytest.mark.parametrize("rows", [[5], [199], [0, 40, 199], list(range(200)), None])
@pytest.mark.parametrize("checked", [8, 64])
def test_what_is_read_is_checked_and_nothing_else(tmp_path: Path, entry: Entry, rows: list[int] | None, checked: int) -> None:
    checks = np.array([zlib.crc32(ROWS[start : start + checked].tobytes()) for start in range(0, 200, checked)], "<u4")
    segment = Segment(tmp_path, replace(entry, checks=checks.tobytes().hex(), checked=checked))
    segment.check(None if rows is None else np.array(rows))
    read = np.zeros(len(checks), np.bool_)
    read[np.array(range(200) if rows is None else rows) // checked] = True
    np.testing.assert_array_equal(segment.unread, ~read)


def test_a_row_that_is_no_number_is_found_among_many(tmp_path: Path, entry: Entry) -> None:
    for row in (0, 77, 199):
        rows = ROWS.copy()
        rows[row, 39] = -np.inf
        data = bytearray((tmp_path / entry.name).read_bytes())
        offset = entry.arrays["rows"].offset
        data[offset : offset + rows.nbytes] = rows.tobytes()
        (tmp_path / entry.name).write_bytes(data)
        checks = np.array([zlib.crc32(rows[start : start + CHECKED].tobytes()) for start in range(0, 200, CHECKED)], "<u4")
        segment = Segment(tmp_path, replace(entry, checks=checks.tobytes().hex()))
        first = row // CHECKED * CHECKED
        with pytest.raises(ArtifactError, match=f"damaged: rows {first} to {min(first + CHECKED, 200) - 1} have NaN or infinite values"):
            segment.check()
        assert segment.unread.all()


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path, entry: Entry) -> None:
    outside = tmp_path / "outside"
    (tmp_path / entry.name).rename(outside)
    (tmp_path / entry.name).symlink_to(outside)
    with pytest.raises(ArtifactError, match="can't be read"):
        Segment(tmp_path, entry)


def test_inverse_lengths_of_nothing() -> None:
    assert np.isfinite(inverse_norms(np.zeros((2, 8), np.float16), (4, 8))).all()
    assert Place("<f4", (3, 2), 0, 0).size == 24


def failing(writer: SegmentWriter) -> None:
    writer.append(ROWS, np.arange(200), IDS)
    raise ValueError("no such storage")


def flip(file: Path, place: int) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 8
    file.write_bytes(data)
