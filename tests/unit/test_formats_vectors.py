"""Vectors and ids go into files and come back the same."""

import builtins
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings

from adawidth.data import Vectors
from adawidth.errors import DataError, OptionalDependencyError
from adawidth.formats import read_ids, read_vectors, write_ids, write_vectors

SUFFIXES = [".npy", ".npz", ".safetensors", ".parquet"]
IDS = ["a", "zwölf", "id with spaces", "7"]


def some(dtype: Any = np.float32) -> Vectors:
    return Vectors.of(np.random.default_rng(0).standard_normal((4, 40)).astype(dtype), IDS)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trip(suffix: str, dtype: type, tmp_path: Path) -> None:
    file = tmp_path / f"corpus{suffix}"
    write_vectors(file, some(dtype))
    found = read_vectors(file)
    assert found.values.dtype == dtype
    np.testing.assert_array_equal(found.values, some(dtype).values)
    assert list(found.ids) == IDS
    assert found.name == str(file)
    assert {entry.name for entry in tmp_path.iterdir()} == {file.name} | ({"corpus.ids"} if suffix == ".npy" else set())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_ids_may_stand_in_a_file_beside(suffix: str, tmp_path: Path) -> None:
    values = some().values
    file = tmp_path / f"corpus{suffix}"
    if suffix == ".npy":
        np.save(file, values)
    elif suffix == ".npz":
        np.savez_compressed(file, anything=values)
    elif suffix == ".safetensors":
        safetensors.numpy.save_file({"embeddings": values}, file)
    else:
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"emb": values.tolist()}), file, row_group_size=3)
    assert list(read_vectors(file).ids) == [0, 1, 2, 3]
    write_ids(tmp_path / "corpus.ids.gz", IDS)
    found = read_vectors(file)
    assert list(found.ids) == IDS
    np.testing.assert_array_equal(found.all(), some().all())


def test_npy_is_mapped_not_read(tmp_path: Path) -> None:
    write_vectors(tmp_path / "x.npy", some())
    assert isinstance(read_vectors(tmp_path / "x.npy").values, np.memmap)


def test_npy_in_columns_and_in_the_other_byte_order(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.asfortranarray(some().values))
    np.save(tmp_path / "y.npy", some().values.astype(">f4"))
    for name in "xy":
        np.testing.assert_array_equal(read_vectors(tmp_path / f"{name}.npy").values, some().values)


def test_whole_numbers_as_ids_become_strings(tmp_path: Path) -> None:
    """Labels in files name documents as strings."""
    np.savez(tmp_path / "x.npz", vectors=some().values, ids=np.array([3, 1, 4, 15]))
    safetensors.numpy.save_file({"vectors": some().values, "ids": np.array([3, 1, 4, 15])}, tmp_path / "x.safetensors")
    for suffix in (".npz", ".safetensors"):
        assert list(read_vectors(tmp_path / f"x{suffix}").ids) == ["3", "1", "4", "15"]


def test_parquet_with_other_columns_and_the_usual_id_name(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(
        {"text": ["…"] * 4, "_id": [10, 11, 12, 13], "emb": some().values.astype(np.float64).tolist(), "score": [0.5] * 4}
    )
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "x.parquet")
    found = read_vectors(tmp_path / "x.parquet")
    assert list(found.ids) == ["10", "11", "12", "13"]
    np.testing.assert_allclose(found.all(), some().all(), atol=1e-6)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true_import = builtins.__import__

    def without_pyarrow(name: str, *rest: Any, **options: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return true_import(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    (tmp_path / "x.parquet").touch()
    with pytest.raises(OptionalDependencyError, match=r"pyarrow.*pip install 'adawidth\[parquet\]'"):
        read_vectors(tmp_path / "x.parquet")
    with pytest.raises(OptionalDependencyError):
        write_vectors(tmp_path / "y.parquet", some())


lines = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=20)


@settings(max_examples=100, deadline=None)
@given(ids=st.lists(lines, min_size=1, max_size=10), packed=st.booleans())
def test_any_id_that_fits_a_line_comes_back(ids: list[str], packed: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("ids") / ("x.ids.gz" if packed else "x.ids")
    write_ids(file, ids)
    assert read_ids(file) == ids


@pytest.mark.parametrize("name", ["", "two\nlines", "end\r"])
def test_an_id_that_fits_no_line_is_refused_and_nothing_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="of row 1 can't stand on a line of its own"):
        write_vectors(tmp_path / "x.npy", Vectors.of(some().values[:2], ["fine", name]))
    assert not list(tmp_path.iterdir())


def test_ids_of_a_file_with_windows_line_ends(tmp_path: Path) -> None:
    (tmp_path / "x.ids").write_bytes(b"a\r\nb\r\n")
    assert read_ids(tmp_path / "x.ids") == ["a", "b"]
