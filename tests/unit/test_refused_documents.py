"""What is no id, no metadata or far too much is refused alike, in memory and on disk."""

import re
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adawidth.errors import DataError
from adawidth.formats import read_texts, read_vectors
from adawidth.formats.documents import of_file
from adawidth.stages import Store
from adawidth.stages.memory import MemoryStore
from small_index import ROTATION, empty, vectors


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    made: Store = MemoryStore(ROTATION) if request.param == "memory" else empty(tmp_path / "i")
    made.add(vectors(3), ["None", "6", "7"])
    return made


@pytest.mark.parametrize("wrong", [None, b"67", [None], [b"6"], ["6", None], True, 1.5])
def test_what_is_no_id_is_refused_by_every_verb(store: Store, wrong: Any) -> None:
    for verb in (store.remove, store.documents, store.vectors):
        with pytest.raises(DataError, match="is no id: ids are strings or whole numbers"):
            verb(wrong)
    assert len(list(store.ids())) == 3


@pytest.mark.parametrize(
    "known",
    [
        {"metadata": [[1]]},
        {"metadata": [None]},
        {"metadata": [{"a": {1}}]},
        {"metadata": [{"a": float("nan")}]},
        {"metadata": [{1: 2}]},
        {"metadata": [{"a": [{None: 2}]}]},
        {"metadata": {"a": 2}},
        {"titles": [None]},
        {"texts": [1]},
        {"texts": ["\ud800"]},
        {"texts": "a"},
        {"titles": "a"},
        {"titles": 1},
        {"ids": [""]},
        {"ids": ["\ud800"]},
        {"ids": [None]},
        {"ids": [b"a"]},
        {"ids": "a"},
        {"ids": 5},
    ],
)
@pytest.mark.parametrize("verb", ["add", "update"])
def test_what_can_not_be_stored_is_refused(store: Store, verb: str, known: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        getattr(store, verb)(vectors(1, 5), **{"ids": ["a"], **known})
    assert len(list(store.ids())) == 3


@pytest.mark.parametrize("wrong", [{"ids": "qr"}, {"texts": "qr"}, {"metadata": {"q": 1, "r": 2}}])
def test_a_string_is_no_list_of_its_letters(store: Store, wrong: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"give a list, with one of them per row"):
        store.add(vectors(2, 5), **{"ids": ["q", "r"], **wrong})
    assert list(store.ids()) == ["None", "6", "7"]


def test_columns_of_a_data_frame_are_taken_row_by_row(store: Store) -> None:
    frame = pytest.importorskip("pandas").DataFrame({"id": ["q", "r"], "title": ["Q", "R"]}, index=[7, 3])
    store.add(vectors(2, 5), frame["id"], titles=frame["title"])
    assert [document.title for document in store.documents(["q", "r"])] == ["Q", "R"]


def test_an_id_that_is_no_unicode_is_in_no_index(store: Store) -> None:
    assert "\ud800" not in store
    for verb in (store.remove, store.documents, store.vectors):
        with pytest.raises(DataError, match=r"there is no document '\\ud800'; 1 of 2 ids are not in the index"):
            verb(["6", "\ud800"])


def test_a_parquet_file_that_unpacks_to_far_too_much_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = list(np.ones((20_000, 64), np.float32))
    pq.write_table(pa.table({"id": [str(i) for i in range(20_000)], "vector": rows}), tmp_path / "x.parquet", use_dictionary=False)
    assert len(read_vectors(tmp_path / "x.parquet")) == of_file(tmp_path / "x.parquet").count == 20_000
    monkeypatch.setattr("adawidth.formats.parquet.PLAUSIBLE", 2**10)
    monkeypatch.setattr("adawidth.formats.parquet.RATIO", 2)
    for read in (read_vectors, of_file):
        with pytest.raises(
            DataError, match=r"x.parquet: \d+ bytes say they hold 20000 rows, \d+ unpacked at least, at most \d+ are believed"
        ):
            read(tmp_path / "x.parquet")


BEYOND = r"x.parquet: \d+ bytes unpack to \d+ by row (\d+), at most \d+ are believed"


@pytest.mark.parametrize("column", ["id", "text", "tags"])
def test_a_text_that_a_parquet_file_repeats_is_not_unpacked_for_every_row(tmp_path: Path, column: str) -> None:
    """1,000 times a megabyte in a few kilobytes."""
    rows, path = 1_000, tmp_path / "x.parquet"
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * 2**20]))
    columns: dict[str, Any] = {"id": [str(i) for i in range(rows)], "vector": list(np.ones((rows, 8), np.float32)), "text": ["y"] * rows}
    columns[column] = pa.ListArray.from_arrays(np.arange(rows + 1, dtype=np.int32), long) if column == "tags" else long
    pq.write_table(pa.table(columns), path, store_schema=False, compression="zstd")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for read in (read_texts, (lambda path: of_file(path).batches()) if column != "id" else lambda path: iter(read_vectors(path).ids)):
        with pytest.raises(DataError, match=BEYOND):
            list(read(path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kilobytes


def test_texts_that_share_their_beginning_are_unpacked_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adawidth.formats.parquet.PLAUSIBLE", 2**20)
    monkeypatch.setattr("adawidth.formats.parquet.RATIO", 2)
    table = pa.table({"text": ["x" * 100_000] * 100})
    pq.write_table(table, tmp_path / "x.parquet", use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})
    with pytest.raises(DataError, match=BEYOND) as caught:
        list(read_texts(tmp_path / "x.parquet"))
    assert int(re.search(BEYOND, str(caught.value))[1]) < 20  # type: ignore[index]
