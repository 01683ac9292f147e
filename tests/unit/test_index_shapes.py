"""How many coordinates at how many bits: what fits, and what is chosen."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adawidth.data import unit
from adawidth.errors import ArtifactError, OptionError
from adawidth.index import IndexFolder
from adawidth.index.codes import FourBit
from adawidth.index.codes.codebook import code_bytes, fitted_levels
from adawidth.index.codes.graph import held_by_graph
from adawidth.index.codes.shapes import Shape, chosen_shape, shapes
from adawidth.types import BYTES
from small_index import ROTATION, empty, fill, head_of, vectors, write_head


@pytest.mark.parametrize("size", BYTES)
@pytest.mark.parametrize("width", [1, 31, 64, 100, 384, 1_024])
def test_shapes_fill_the_bytes_where_there_are_coordinates_enough(size: int, width: int) -> None:
    for shape in shapes(size, width):
        assert 1 <= shape.width <= width
        taken = code_bytes(fitted_levels(np.empty((0, shape.width), np.float32), shape.bits))
        assert taken == size or (shape == Shape(width, 4) and taken < size)


def falling(power: float, count: int = 3_000, width: int = 256) -> np.ndarray:
    """Rows whose coordinates shrink by a power of their place."""
    return (np.random.default_rng(0).standard_normal((count, width)) * np.arange(1, width + 1) ** -power).astype(np.float16)


def test_a_steep_spectrum_gets_few_coordinates_and_a_flat_one_many() -> None:
    assert chosen_shape(falling(1.2), 16, seed=0) == Shape(32, 4)
    assert chosen_shape(falling(0.0), 16, seed=0) == Shape(128, 1)


def test_with_few_rows_or_coordinates_there_is_nothing_to_compare() -> None:
    assert chosen_shape(falling(2.0, count=50), 16, seed=0) == Shape(64, 2)
    assert chosen_shape(falling(0.0, width=33), 16, seed=0) == Shape(32, 4)
    assert chosen_shape(falling(0.0, width=20), 16, seed=0) == Shape(20, 4)


@pytest.mark.parametrize("bits", [4, 2, 1])
def test_codes_of_any_bits_are_read_as_they_were_written(bits: int) -> None:
    rows = falling(0.3)[:, :64].astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    codes = FourBit.build(rows, seed=0, bits=bits)
    again = FourBit.read(codes.arrays())
    assert again.bytes_per_document == 8 * bits
    found = again.search(rows[:20], 50)
    assert (found == codes.search(rows[:20], 50)).all()
    assert all(i in row for i, row in enumerate(found))


@pytest.mark.parametrize(("storage", "beside"), [("pq4", 0), ("ivf", 8), ("graph", None)])
@pytest.mark.parametrize("size", BYTES)
def test_codes_take_the_bytes_that_are_asked_for(tmp_path: Path, storage: str, beside: int | None, size: int) -> None:
    index = empty(tmp_path / "i", start=16, storage=storage, bytes_per_document=size)
    fill(index)
    again = IndexFolder(tmp_path / "i")
    assert (again.settings.bytes_per_document, again.facts()["bytes_per_document"]) == (size, size)
    (segment,) = again.view.segments
    held = min(size, again.view.width // 2)  # narrow documents take less: four bits of all that is there
    assert segment.codes.bytes_per_document == (held_by_graph(held) if beside is None else held + beside)
    assert again.facts()["coded"] == segment.codes.width
    rows = ROTATION.apply(vectors()[:20])
    found = again.view.search(rows, again.view.width, 3).candidates
    assert found[:, 0].tolist() == list(range(20))


@pytest.mark.parametrize("size", [0, -16, 17, 31.5, True, "16", 2**70, float("nan")])
def test_other_bytes_are_refused(tmp_path: Path, size: Any) -> None:
    with pytest.raises(OptionError, match="is none of 16, 24, 32, 48"):
        empty(tmp_path / "i", storage="pq4", bytes_per_document=size)


@pytest.mark.parametrize("storage", ["flat", "int8"])
def test_whole_bytes_per_coordinate_are_not_to_choose(tmp_path: Path, storage: str) -> None:
    with pytest.raises(OptionError, match=f"storage '{storage}' takes as many as it needs"):
        empty(tmp_path / "i", storage=storage, bytes_per_document=16)


@pytest.mark.parametrize("size", [1, -16, 15, 64, "16", True, None, 16.0])
def test_a_manifest_with_other_bytes_is_refused(tmp_path: Path, size: Any) -> None:
    empty(tmp_path / "i", storage="pq4", bytes_per_document=16).close()
    head = head_of(tmp_path / "i")
    head["settings"]["bytes_per_document"] = size
    write_head(tmp_path / "i", head)
    with pytest.raises(ArtifactError, match="bytes_per_document"):
        IndexFolder(tmp_path / "i")


def test_segments_of_different_shapes_are_searched_together(tmp_path: Path) -> None:
    index = empty(tmp_path / "i", start=16, storage="pq4", bytes_per_document=16)
    even, steep = (unit(falling(power, count, 64).astype(np.float32)) for power, count in ((0.0, 3_100), (1.2, 3_000)))
    index.add(even @ ROTATION.matrix, [f"even {i}" for i in range(len(even))])
    index.add(steep @ ROTATION.matrix, [f"steep {i}" for i in range(len(steep))])
    assert [segment.codes.width for segment in index.view.segments] == [64, 32]
    asked = np.concatenate([even[:10], steep[:10]])
    found = index.view.search(asked, 64, 1).candidates[:, 0]
    assert found.tolist() == [*range(10), *range(3_100, 3_110)]
    assert index.compact()
    (segment,) = index.view.segments
    assert segment.codes.bytes_per_document == 16
    assert (index.view.search(asked, 64, 1).candidates[:, 0] == found).all()
